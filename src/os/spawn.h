/* Starts a program with exactly the descriptors, identity, environment and cgroup it is meant to
 * have. Between fork and exec only async-signal-safe calls are made and nothing is allocated, so a
 * multi-threaded program may use it. */
#ifndef SPACE_OS_SPAWN_H
#define SPACE_OS_SPAWN_H

#include "base/fail.h"

#include <sys/types.h>

#define SPAWN_FDS_MAX 64

struct spawn_spec {
	const char *const *argv; /* argv[0] is the path that is executed: no search */
	const char *const *envp; /* NULL: empty */

	/* The child's descriptor i is fds[i] (borrowed, any number, may repeat); -1: none. 0, 1 and
	 * 2 are /dev/null where not given. Everything else is closed. */
	const int *fds;
	size_t n_fds;

	bool new_session;  /* setsid */
	bool no_new_privs; /* prctl */

	/* No file grows past this by the program or what it starts (RLIMIT_FSIZE); 0: no limit. */
	uint64_t file_max_bytes;

	/* Identity, when has_ids: groups, gid and uid in that order, real, effective and saved. */
	bool has_ids;
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	size_t n_groups;

	/* Open cgroup.procs (or v1 tasks) files: the child enters each before it drops rights. */
	const int *cgroup_fds;
	size_t n_cgroup_fds;
};

/* Returns when the program runs (its exec succeeded) or could not be started; then the child is
 * reaped already. ret_pidfd may be NULL. The child's signals are all default and unblocked. */
int spawn(const struct spawn_spec *s, pid_t *ret_pid, int *ret_pidfd, struct fail *f);

#endif
