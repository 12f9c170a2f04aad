/* The first seconds of PID 1: kernel file systems, modules, the disk, `lo`. Runs once, before the
 * loop, and may block. Everything it makes lives in init's own mount namespace, in the initramfs,
 * which the user's root never replaces. Any failure ends the guest (main.c). */
#ifndef SPACE_INIT_BOOT_H
#define SPACE_INIT_BOOT_H

#include "base/fail.h"

#define SYSROOT "/sysroot" /* where the user's root is mounted until userspace_new() took it */
#define CGROUPS "/cgroup"

/* As much as is needed to say something: /dev, then a descriptor of the console, or -1. It may be a
 * virtio device that comes up a moment after its module was loaded: see CONSOLE_WAIT_MS. */
#define CONSOLE_WAIT_MS 2000
void boot_devices(void);
int boot_console(uint64_t wait_ms);
/* Into the kernel's log, which a console that comes later shows too. */
void boot_last_words(const char *text);
int boot_mounts(struct fail *f);  /* /proc, /sys, cgroup2 */
int boot_modules(struct fail *f); /* /modules.list, in order */
int boot_network(struct fail *f); /* lo up */
int boot_disk(struct fail *f);    /* /dev/vda on SYSROOT */
void boot_settings(void);         /* what the kernel shall do when init dies; best effort */

/* Opens the virtio-serial port of that name; waits for it a while. */
int boot_port(const char *name, int *ret_fd, struct fail *f);

#endif
