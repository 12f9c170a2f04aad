/* Fork and exec. The child reports where it failed through a close-on-exec pipe: end of file there
 * means that the program runs. Order in the child: session, cgroups, descriptors, identity,
 * limit, no_new_privs, signals, exec; cgroups before identity because the files are root's. */
#include "os/spawn.h"

#include "os/fd.h"
#include "os/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum stage { STAGE_SESSION, STAGE_CGROUP, STAGE_FDS, STAGE_IDS, STAGE_PRIVS, STAGE_EXEC, STAGES };

static const char *const stage_name[] = {
	"make a session for", "make a cgroup hold", "hand descriptors to",
	"drop rights for",    "lock the rights of", "execute",
};
static_assert(ARRAY_LEN(stage_name) == STAGES, "a name for every stage");

struct report {
	int stage;
	int err;
};

/* What the child needs, prepared before the fork. */
struct child {
	const struct spawn_spec *s;
	int null_fd;
	int report_fd;
	size_t n_map; /* descriptors 0 .. n_map-1 exist in the program */
};

static int child_source(const struct child *c, size_t i)
{
	int fd = i < c->s->n_fds ? c->s->fds[i] : -1;

	return fd < 0 && i <= STDERR_FILENO ? c->null_fd : fd;
}

/* First every source goes above the map, then down to its place: no order of numbers can clobber a
 * source that is still needed. The copies are CLOEXEC. */
static int child_fds(struct child *c)
{
	int high[SPAWN_FDS_MAX];
	int base = (int)c->n_map;
	int report = fcntl(c->report_fd, F_DUPFD_CLOEXEC, base);

	if (report < 0)
		return -errno;
	c->report_fd = report;
	for (size_t i = 0; i < c->n_map; i++) {
		int fd = child_source(c, i);

		high[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, base);
		if (fd >= 0 && high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < c->n_map; i++) {
		if (high[i] < 0)
			(void)close((int)i); /* not open is what is wanted */
		else if (dup2(high[i], (int)i) < 0)
			return -errno;
	}
	/* Not closed at once: the report pipe must tell of a failing exec. */
	if (syscall(SYS_close_range, (unsigned)base, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static int child_cgroups(const struct spawn_spec *s)
{
	for (size_t i = 0; i < s->n_cgroup_fds; i++)
		if (write(s->cgroup_fds[i], "0", 1) != 1)
			return errno != 0 ? -errno : -EIO;
	return 0;
}

/* The raw calls: glibc's would signal other threads, and after fork there are none. */
static int child_ids(const struct spawn_spec *s)
{
	if (!s->has_ids)
		return 0;
	if (syscall(SYS_setgroups, s->n_groups, s->groups) < 0 ||
	    syscall(SYS_setresgid, s->gid, s->gid, s->gid) < 0 ||
	    syscall(SYS_setresuid, s->uid, s->uid, s->uid) < 0)
		return -errno;
	return 0;
}

static int child_file_limit(const struct spawn_spec *s)
{
	const struct rlimit l = {.rlim_cur = s->file_max_bytes, .rlim_max = s->file_max_bytes};

	return s->file_max_bytes != 0 && setrlimit(RLIMIT_FSIZE, &l) < 0 ? -errno : 0;
}

static void child_signals(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &dfl, NULL); /* KILL, STOP and glibc's own refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_prepare(struct child *c, enum stage *at)
{
	int err;

	*at = STAGE_SESSION;
	if (c->s->new_session && setsid() < 0)
		return -errno;
	/* Entered while the caller's descriptor numbers still stand. */
	*at = STAGE_CGROUP;
	err = child_cgroups(c->s);
	if (err < 0)
		return err;
	*at = STAGE_FDS;
	err = child_fds(c);
	if (err < 0)
		return err;
	*at = STAGE_IDS;
	err = child_ids(c->s);
	if (err < 0)
		return err;
	*at = STAGE_PRIVS;
	err = child_file_limit(c->s);
	if (err < 0)
		return err;
	if (c->s->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static _Noreturn void child_run(struct child *c)
{
	static char *const no_env[] = {NULL};
	union {
		const char *const *in;
		char *const *out;
	} argv = {.in = c->s->argv}, envp = {.in = c->s->envp}; /* execve's old prototype */
	struct report r = {.stage = STAGE_EXEC};
	enum stage at;
	int err = child_prepare(c, &at);

	if (err == 0) {
		at = STAGE_EXEC;
		child_signals();
		(void)execve(argv.out[0], argv.out, c->s->envp != NULL ? envp.out : no_env);
		err = -errno;
	}
	r.stage = (int)at;
	r.err = err;
	(void)!write(c->report_fd, &r, sizeof r); /* nobody is left to tell if this fails */
	_exit(127);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Waits until the child's program runs. */
static int await_exec(int report_fd, pid_t pid, const char *program, struct fail *f)
{
	struct report r;
	int err = fd_read_full(report_fd, &r, sizeof r);

	if (err == -ENODATA)
		return 0;
	reap(pid);
	if (err < 0)
		return fail_errno(f, err, "cannot hear from '%s'", program);
	if (r.stage < 0 || r.stage >= STAGES || r.err >= 0)
		return fail_set(f, -EIO, "cannot start '%s'", program);
	return fail_errno(f, r.err, "cannot %s '%s'", stage_name[r.stage], program);
}

static pid_t fork_quietly(struct child *c)
{
	sigset_t all;
	sigset_t old;
	pid_t pid;

	/* The parent's handlers must not run in the child. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	pid = fork();
	if (pid == 0)
		child_run(c);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

int spawn(const struct spawn_spec *s, pid_t *ret_pid, int *ret_pidfd, struct fail *f)
{
	AUTO(fd_drop) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO(fd_drop) int read_end = -1;
	AUTO(fd_drop) int write_end = -1;
	AUTO(fd_drop) int pidfd = -1;
	struct child c = {.s = s, .n_map = s->n_fds < 3 ? 3 : s->n_fds};
	int ends[2];
	pid_t pid;
	int err;

	if (s->n_fds > SPAWN_FDS_MAX)
		return fail_set(f, -E2BIG, "too many descriptors for '%s'", s->argv[0]);
	if (null_fd < 0)
		return fail_errno(f, -errno, "cannot open /dev/null");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot make a pipe");
	read_end = ends[0];
	write_end = ends[1];
	c.null_fd = null_fd;
	c.report_fd = write_end;
	pid = fork_quietly(&c);
	if (pid < 0)
		return fail_errno(f, -errno, "cannot fork for '%s'", s->argv[0]);
	fd_drop(&write_end);
	if (ret_pidfd != NULL) {
		err = pidfd_of(pid, &pidfd); /* not reaped yet: the pid is still ours */
		if (err < 0) {
			(void)kill(pid, SIGKILL);
			reap(pid);
			return fail_errno(f, err, "cannot get a pidfd of '%s'", s->argv[0]);
		}
	}
	err = await_exec(read_end, pid, s->argv[0], f);
	if (err < 0)
		return err;
	*ret_pid = pid;
	if (ret_pidfd != NULL)
		*ret_pidfd = fd_take(&pidfd);
	return 0;
}
