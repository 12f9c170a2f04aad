/* The command lines of the jails: outer bwrap for a keeper, inner bwrap for QEMU and for
 * space-daemon. Pure text: nothing is started here.
 *
 * Inside the outer jail everything has a fixed place, whatever the host calls it:
 *   /usr/bin/{space-keeper,space-daemon,bwrap,qemu-system-x86_64} and the libraries,
 * so the keeper probes the same struct with JAIL_LIBEXEC and JAIL_QEMU and gets what is there.
 *
 * Rules that are not visible in the lines (all measured):
 *  - the sandbox's uid is taken on BEFORE the outer bwrap (spawn_spec.uid), never inside it;
 *  - descriptors pass through both bwraps with their numbers: everything else must be closed;
 *  - the outer one has no --die-with-parent: a sandbox outlives jailer and spaced;
 *  - --info-fd must be read to its end, else bwrap dies of EPIPE. */
#ifndef SPACE_OS_JAIL_H
#define SPACE_OS_JAIL_H

#include "base/fail.h"

#include <sys/types.h>

#define JAIL_LIBEXEC "/usr/bin" /* programs, as the keeper sees them */
#define JAIL_QEMU    "/usr/bin/qemu-system-x86_64"
#define JAIL_KEEPER  "/usr/bin/space-keeper"
#define JAIL_DAEMON  "/usr/bin/space-daemon"
#define JAIL_BWRAP   "/usr/bin/bwrap"

#define JAIL_TREES_MAX 12

/* A directory bound read-only at its own path, or a symbolic link to make there. */
struct jail_tree {
	char *path;
	char *link; /* NULL: bind; else the link's target */
	bool qemu_only;
};

/* Where this host keeps what the jails are made of. Probed once, then only read. */
struct jail_paths {
	char *libexec; /* holds space-keeper and space-daemon */
	char *bwrap;
	char *qemu;
	size_t n_trees;
	struct jail_tree tree[JAIL_TREES_MAX];
};

/* libexec: an absolute path. qemu: an absolute path, or NULL for the distribution's.
 * -ENOENT with a sentence that names the missing program. */
int jail_paths_probe(const char *libexec, const char *qemu, struct jail_paths *ret, struct fail *f);
void jail_paths_done(struct jail_paths *p);

/* NULL-terminated, owned; argv[0] is the path to execute. */
struct jail_argv {
	char **argv;
	size_t n;
};
void jail_argv_done(struct jail_argv *a);

/* `tail`: NULL-terminated arguments after the program's name, or NULL. info_fd >= 0: the descriptor
 * (in bwrap) to which bwrap writes {"child-pid": N, ...}: the pid of the program itself, as the
 * caller's PID namespace counts, because of --as-pid-1. Results are complete command lines; `ret`
 * is overwritten. */
void jail_argv_keeper(const struct jail_paths *p, bool kvm, int info_fd, const char *const *tail,
		      struct jail_argv *ret);
void jail_argv_qemu(const struct jail_paths *p, bool kvm, int info_fd, const char *const *tail,
		    struct jail_argv *ret);
void jail_argv_daemon(const struct jail_paths *p, int info_fd, const char *const *tail,
		      struct jail_argv *ret);

/* Reads what came through an info_fd, whole. -EBADMSG when it names no child. */
int jail_info_parse(const char *text, size_t n, pid_t *ret_pid);
#define JAIL_INFO_MAX 512

#endif
