/* Programs started with exactly what they are given. The child is this program again; it prints
 * what it finds to descriptor 1. */
#include "os/spawn.h"

#include "base/alloc.h"
#include "os/memfd.h"
#include "os/pidfd.h"
#include "os/test_tmp.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static int child_main(void)
{
	struct rlimit file = {0};
	sigset_t blocked;

	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			(void)printf("%d ", fd);
	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	(void)getrlimit(RLIMIT_FSIZE, &file);
	(void)printf(
		"| uid %u gid %u groups %d | nnp %d | leader %d | usr1 %d blocked %d | file %lld |",
		getuid(), getgid(), getgroups(0, NULL), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
		getsid(0) == getpid(), signal(SIGUSR1, SIG_DFL) == SIG_DFL,
		sigismember(&blocked, SIGTERM), (long long)file.rlim_max);
	for (char **e = environ; *e != NULL; e++)
		(void)printf(" %s", *e);
	return 7;
}

/* What the child printed. */
static char *run(const char *says, struct spawn_spec *s, int want_status)
{
	AUTO(fd_drop) int pidfd = -1;
	AUTO(fd_drop) int out = -1;
	static const char *const argv[] = {"/proc/self/exe", "child", NULL};
	struct fail f = {0};
	char *text = NULL;
	int status = -1;
	pid_t pid;
	pid_t same;
	size_t n;
	int map[SPAWN_FDS_MAX];

	EXPECT_EQ(says, memfd_make("out", 0, &out, NULL), 0);
	for (size_t i = 0; i < s->n_fds; i++)
		map[i] = s->fds[i] == -2 ? out : s->fds[i];
	s->fds = map;
	s->argv = argv;
	if (!EXPECT_EQ(says, spawn(s, &pid, &pidfd, &f), 0)) {
		(void)printf("%s\n", f.text);
		return xstrdup("");
	}
	EXPECT_EQ(says, pidfd_pid(pidfd, &same), 0);
	EXPECT_EQ(says, same, pid);
	EXPECT_EQ(says, pidfd_wait_end(pidfd, 10000), 0);
	EXPECT_EQ(says, waitpid(pid, &status, 0), pid);
	EXPECT_EQ(says, WEXITSTATUS(status), want_status);
	EXPECT_EQ(says, pidfd_pid(pidfd, &same), -ESRCH);
	EXPECT_EQ(says, pidfd_signal(pidfd, SIGTERM), -ESRCH);
	EXPECT_EQ(says, fd_slurp(out, 4096, &text, &n), 0);
	return text;
}

/* -2 stands for the output. */
static void test_maps(void)
{
	static const struct {
		const char *says;
		int fds[8];
		size_t n;
		const char *want;
	} cases[] = {
		{"only output", {-1, -2}, 2, "0 1 2 |"},
		{"a gap", {-1, -2, -1, -1, -2}, 5, "0 1 2 4 |"},
		{"swapped", {1, -2, 0, 2, 1, 0}, 6, "0 1 2 3 4 5 |"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct spawn_spec s = {.fds = cases[i].fds, .n_fds = cases[i].n};
		AUTO(str_drop) char *text = run(cases[i].says, &s, 7);

		text[size_min(strlen(text), strlen(cases[i].want))] = '\0';
		EXPECT_STR(cases[i].says, text, cases[i].want);
	}
}

static void test_plain(void)
{
	static const char *const env[] = {"A=1", "B=2", NULL};
	static const int fds[] = {-1, -2};
	struct spawn_spec s = {.fds = fds,
			       .n_fds = 2,
			       .envp = env,
			       .new_session = true,
			       .no_new_privs = true,
			       .file_max_bytes = 1 << 20};
	AUTO(str_drop) char *text = run("plain", &s, 7);
	const char *at = strstr(text, "| nnp");

	EXPECT_STR("privileges, session, signals, limit, environment", at,
		   "| nnp 1 | leader 1 | usr1 1 blocked 0 | file 1048576 | A=1 B=2");
}

static void test_ids(void)
{
	static const int fds[] = {-1, -2};
	static const gid_t groups[] = {70003, 70004};
	struct spawn_spec s = {.fds = fds,
			       .n_fds = 2,
			       .has_ids = true,
			       .uid = 70001,
			       .gid = 70002,
			       .groups = groups,
			       .n_groups = 2};
	AUTO(str_drop) char *text = NULL;

	if (geteuid() != 0)
		return;
	text = run("ids", &s, 7);
	EXPECT("they are given", strstr(text, "uid 70001 gid 70002 groups 2") != NULL);
}

static void test_failures(void)
{
	static const char *const none[] = {"/none/such", NULL};
	static const char *const folder[] = {"/", NULL};
	static const int closed[] = {1000};
	struct spawn_spec s = {.argv = none};
	pid_t pid = -5;

	EXPECT_EQ("no program", spawn(&s, &pid, NULL, NULL), -ENOENT);
	s.argv = folder;
	EXPECT_EQ("no file", spawn(&s, &pid, NULL, NULL), -EACCES);
	s.fds = closed;
	s.n_fds = 1;
	EXPECT_EQ("no descriptor", spawn(&s, &pid, NULL, NULL), -EBADF);
	s.n_fds = SPAWN_FDS_MAX + 1;
	EXPECT_EQ("one too many", spawn(&s, &pid, NULL, NULL), -E2BIG);
	s = (struct spawn_spec){.argv = folder, .cgroup_fds = closed, .n_cgroup_fds = 1};
	EXPECT_EQ("no cgroup", spawn(&s, &pid, NULL, NULL), -EBADF);
	EXPECT_EQ("nothing was set", pid, -5);
	EXPECT_EQ("no child is left", waitpid(-1, NULL, 0), -1);
}

static void test_most(void)
{
	int fds[SPAWN_FDS_MAX];
	struct spawn_spec s = {.fds = fds, .n_fds = SPAWN_FDS_MAX};
	AUTO(str_drop) char *text = NULL;

	for (size_t i = 0; i < SPAWN_FDS_MAX; i++)
		fds[i] = -2;
	text = run("as many as may be", &s, 7);
	EXPECT("the last is there", strstr(text, " 63 |") != NULL);
}

static void ignore(int signo)
{
	(void)signo;
}

int main(int argc, char **argv)
{
	sigset_t term;

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child_main();
	/* Handlers and masks that a child must not inherit. */
	(void)signal(SIGUSR1, ignore);
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	test_maps();
	test_plain();
	test_ids();
	test_failures();
	test_most();
	return test_done();
}
