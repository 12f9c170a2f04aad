/* The keeper's two children, each in its inner jail: the VMM and space-daemon. Started through
 * bwrap; its monitor process is our child, and its exit status is the inner program's. */
#ifndef SPACE_KEEPER_CHILDREN_H
#define SPACE_KEEPER_CHILDREN_H

#include "base/fail.h"
#include "os/jail.h"

#include <sys/types.h>

/* The VMM: descriptor i of the program is fds[i]; 0 and 1 are /dev/null, 2 is `err`. */
int child_start_vmm(const struct jail_paths *paths, bool kvm, const char *const *tail,
		    const int *fds, size_t n_fds, int err, pid_t *ret_pid, struct fail *f);

/* space-daemon's descriptors, in the order of its main(): from 3 on. */
enum daemon_fd {
	DAEMON_FD_KEEPER,
	DAEMON_FD_CLIENT,
	DAEMON_FD_PLATFORM,
	DAEMON_FD_CONTROL,
	DAEMON_FD_EGRESS,
	DAEMON_FD_WAKE,
	DAEMON_FDS
};
int child_start_daemon(const struct jail_paths *paths, const int fds[DAEMON_FDS], int err,
		       pid_t *ret_pid, struct fail *f);

#define CHILD_STATUS_SIZE 32
/* "killed by signal 9", "exit status 1", from a wait status that went through bwrap's monitor. */
void child_status_print(char *dst, size_t size, int wait_status);

#endif
