/* A process gives up what it does not need, for good: privileges, core dumps, being looked at,
 * files and network (Landlock), system calls (seccomp). Called once, before the first byte from
 * outside is read and while the process has one thread. */
#ifndef SPACE_OS_CONFINE_H
#define SPACE_OS_CONFINE_H

#include "base/fail.h"

enum confine_role {
	/* space-daemon: an event loop over the descriptors it has. May not open, connect, fork,
	 * exec, signal another process or make memory executable. A call outside its list kills it.
	 * The event loop may be made before or after. */
	CONFINE_DAEMON,
	/* space-keeper: starts bwrap and QEMU, which inherit this filter, so it is the list of what
	 * none of the three needs (io_uring, bpf, keyctl, ptrace, sockets beyond AF_UNIX and
	 * AF_NETLINK, ...); those calls fail with EPERM. No Landlock: it would forbid bwrap to
	 * mount. */
	CONFINE_KEEPER,
	/* spaced: threads, files and sockets, but no new process, program, mount or namespace, and
	 * no look into another process. Forbidden calls fail with EPERM. Threads may be made
	 * afterwards. */
	CONFINE_SPACED,
	CONFINE_ROLES
};

/* Fatal to the caller when it fails. A kernel without Landlock is not a failure: every role's
 * seccomp list stands without it. */
int confine_enter(enum confine_role role, struct fail *f);

/* 0: the kernel has no Landlock. */
int confine_landlock_abi(void);

#endif
