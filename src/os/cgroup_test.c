/* Cgroups of this machine: made, in force, killed, removed. Needs the right to make them. */
#include "os/cgroup.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/test.h"
#include "os/fd.h"
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define ID "i0123456789abcdefghi"

/* Starts children until the limit says no, then waits to be killed. */
static _Noreturn void child_main(void)
{
	char byte = 0;

	for (int i = 0; i < 64; i++) {
		pid_t pid = fork();

		if (pid < 0)
			byte = (char)(i + 1);
		if (pid <= 0)
			break;
	}
	if (byte != 0)
		(void)!write(STDOUT_FILENO, &byte, 1);
	for (;;)
		(void)pause();
}

static void expect_file(const struct cgroup *c, size_t tree, const char *name, const char *want)
{
	AUTO(fd_drop) int fd = openat(c->dir_fd[tree], name, O_RDONLY | O_CLOEXEC);
	AUTO(str_drop) char *text = NULL;
	size_t n;

	if (EXPECT_EQ(name, fd < 0 ? -errno : fd_slurp(fd, 256, &text, &n), 0))
		EXPECT_STR(name, text, want);
}

static void expect_limits(const struct cgroup_base *b, const struct cgroup *c)
{
	if (b->kind == CGROUP_V2) {
		expect_file(c, 0, "memory.max", "67108864\n");
		expect_file(c, 0, "pids.max", "16\n");
		expect_file(c, 0, "cpu.max", "50000 100000\n");
	} else {
		expect_file(c, 0, "memory.limit_in_bytes", "67108864\n");
		expect_file(c, 1, "pids.max", "16\n");
		expect_file(c, 2, "cpu.cfs_quota_us", "50000\n");
	}
}

static void test_life(const struct cgroup_base *b)
{
	static const char *const argv[] = {"/proc/self/exe", "child", NULL};
	const struct cgroup_limits l = {64u << 20, 16, 500};
	uint64_t until = clock_mono_ns() + 10 * NS_PER_S;
	struct cgroup c;
	struct cgroup same;
	struct fail f = {0};
	char byte = 0;
	int ends[2];
	pid_t pid;

	EXPECT_EQ("not there", cgroup_open(b, ID, &same), -ENOENT);
	if (!EXPECT_EQ("make", cgroup_make(b, ID, &l, &c, &f), 0)) {
		(void)printf("%s\n", f.text);
		return;
	}
	expect_limits(b, &c);
	EXPECT_EQ("open", cgroup_open(b, ID, &same), 0);
	EXPECT_EQ("pipe", pipe2(ends, O_CLOEXEC), 0);
	const int map[] = {-1, ends[1]};
	const struct spawn_spec s = {.argv = argv,
				     .fds = map,
				     .n_fds = 2,
				     .cgroup_fds = c.procs_fd,
				     .n_cgroup_fds = c.n};

	EXPECT_EQ("start", spawn(&s, &pid, NULL, &f), 0);
	EXPECT_EQ("it was stopped", read(ends[0], &byte, 1), 1);
	EXPECT_EQ("at 16 processes", byte, 16);
	EXPECT_EQ("somebody is inside", cgroup_remove(b, ID), -EBUSY);
	EXPECT_EQ("a second of that name", cgroup_make(b, ID, &l, &(struct cgroup){0}, NULL),
		  -EEXIST);
	do
		EXPECT_EQ("kill", cgroup_kill(&same), 0);
	while (cgroup_remove(b, ID) == -EBUSY && clock_mono_ns() < until && poll(NULL, 0, 2) == 0);
	EXPECT_EQ("removed", cgroup_remove(b, ID), 0);
	EXPECT_EQ("all are dead", waitpid(pid, NULL, WNOHANG), pid);
	cgroup_done(&c);
	cgroup_done(&same);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(int argc, char **argv)
{
	struct cgroup_base b;
	struct fail f = {0};

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		child_main();
	EXPECT_EQ("a bad name", cgroup_base_open("../x", &b, &f), -EINVAL);
	if (cgroup_base_open("test", &b, &f) < 0)
		return test_skip(f.text);
	test_life(&b);
	cgroup_base_done(&b);
	EXPECT_EQ("nothing to do without a base",
		  cgroup_make(&b, ID, &(struct cgroup_limits){1, 1, 1}, &(struct cgroup){0}, NULL),
		  0);
	return test_done();
}
