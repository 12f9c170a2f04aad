/* See children.h. */
#include "keeper/children.h"

#include "os/spawn.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define FIRST_FD    3
#define SIGNAL_BASE 128

static int jailed_start(const struct jail_argv *a, const int *fds, size_t n_fds, pid_t *ret_pid,
			struct fail *f)
{
	const struct spawn_spec s = {
		.argv = (const char *const *)a->argv,
		.fds = fds,
		.n_fds = n_fds,
		.no_new_privs = true,
	};

	return spawn(&s, ret_pid, NULL, f);
}

int child_start_vmm(const struct jail_paths *paths, bool kvm, const char *const *tail,
		    const int *fds, size_t n_fds, int err, pid_t *ret_pid, struct fail *f)
{
	int map[SPAWN_FDS_MAX];
	struct jail_argv a;
	int r;

	if (n_fds > SPAWN_FDS_MAX || n_fds < FIRST_FD)
		return fail_set(f, -EINVAL, "the VM has %zu descriptors", n_fds);
	memcpy(map, fds, n_fds * sizeof *fds);
	map[0] = -1;
	map[1] = -1;
	map[2] = err;
	jail_argv_qemu(paths, kvm, -1, tail, &a);
	r = jailed_start(&a, map, n_fds, ret_pid, f);
	jail_argv_done(&a);
	return r;
}

int child_start_daemon(const struct jail_paths *paths, const int fds[DAEMON_FDS], int err,
		       pid_t *ret_pid, struct fail *f)
{
	int map[FIRST_FD + DAEMON_FDS] = {-1, -1, err};
	struct jail_argv a;
	int r;

	memcpy(map + FIRST_FD, fds, DAEMON_FDS * sizeof *fds);
	jail_argv_daemon(paths, -1, NULL, &a);
	r = jailed_start(&a, map, ARRAY_LEN(map), ret_pid, f);
	jail_argv_done(&a);
	return r;
}

/* bwrap reports a signal as 128 + its number, as a shell does. */
void child_status_print(char *dst, size_t size, int wait_status)
{
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;

	if (WIFSIGNALED(wait_status))
		(void)snprintf(dst, size, "killed by signal %d", WTERMSIG(wait_status));
	else if (code > SIGNAL_BASE && code < SIGNAL_BASE + NSIG)
		(void)snprintf(dst, size, "killed by signal %d", code - SIGNAL_BASE);
	else
		(void)snprintf(dst, size, "exit status %d", code);
}
