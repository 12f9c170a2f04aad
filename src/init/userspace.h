/* The world of user code: a second mount namespace in which the disk is the root, and a cgroup
 * namespace whose root is /user. Init itself stays in the initramfs; it holds descriptors of the
 * two namespaces and every started process enters them (launch.c).
 *
 * The disk is moved onto "/" as switch_root does. In a plain chroot the kernel would refuse user
 * namespaces, and with them every sandboxing browser and rootless container.
 *
 * Nothing is needed from the root: missing mount points are made, missing files are skipped. It is
 * written by the user, so no symbolic link in it is followed here. */
#ifndef SPACE_INIT_USERSPACE_H
#define SPACE_INIT_USERSPACE_H

#include "init/identity.h"

struct cgroups;

struct userspace {
	int mnt_ns;
	int cgroup_ns;
	int root; /* O_PATH of the user's root */
	int pts;  /* O_PATH of its /dev/pts */
	int file[IDENTITY_FILES];
};

/* Once, at boot, when SYSROOT is mounted and no process is in /user. */
int userspace_init(struct userspace *u, const struct cgroups *c, struct fail *f);

#endif
