/* The roles, from inside: each case runs in a child that has entered the role. What must still work
 * is here; what must not is asserted for space-daemon in tests/redteam and for the others here. */
#include "os/confine.h"

#include "base/alloc.h"
#include "os/fd.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static int answer(long rc)
{
	return rc < 0 ? errno : 0;
}

static int talk(void)
{
	char bytes[8];
	int pair[2] = {3, 4}; /* made before */

	if (write(pair[0], "hello", 5) != 5 || read(pair[1], bytes, sizeof bytes) != 5)
		return errno;
	if (send(pair[0], "x", 1, MSG_NOSIGNAL) != 1 || recv(pair[1], bytes, 1, 0) != 1)
		return errno;
	return fd_set_nonblock(pair[0], true) == 0 && fd_set_cloexec(pair[0], true) == 0 ? 0 : 1;
}

static int wait_for_events(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int ep = epoll_create1(EPOLL_CLOEXEC);
	int ev = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	int tm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (ep < 0 || ev < 0 || tm < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) < 0)
		return errno;
	return epoll_wait(ep, &e, 1, 1000) == 1 ? 0 : 1;
}

static int use_memory(void)
{
	void *p = malloc(64 * 1024 * 1024);
	void *q = realloc(p, 96 * 1024 * 1024);

	if (q == NULL)
		return ENOMEM;
	memset(q, 1, 4096);
	free(q);
	return 0;
}

static int print(void)
{
	return fprintf(stderr, "%s", "") < 0 || fflush(stderr) != 0;
}

static int fail_assertion(void)
{
	abort();
}

static int make_socket(void)
{
	return answer(socket(AF_INET, SOCK_STREAM, 0));
}

static int make_odd_family(void)
{
	/* The kernel sees AF_INET, a filter of 64 bits something else. */
	return answer(syscall(SYS_socket, 0x100000000L | AF_INET, SOCK_STREAM, 0));
}

static int make_packet(void)
{
	return answer(socket(AF_PACKET, SOCK_RAW, 0));
}

static int make_unix(void)
{
	return answer(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int open_file(void)
{
	return answer(open("/dev/null", O_RDWR));
}

static int start_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : waitpid(pid, NULL, 0) != pid;
}

static int run_program(void)
{
	char *const argv[] = {NULL};

	return answer(execve("/bin/true", argv, argv));
}

static void *nothing(void *arg)
{
	return arg;
}

static int start_thread(void)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, nothing, NULL);

	return err != 0 ? err : pthread_join(t, NULL);
}

static int new_namespace(void)
{
	return answer(unshare(CLONE_NEWUSER));
}

static int mount_something(void)
{
	return answer(mount("t", "/tmp/none", "tmpfs", 0, NULL));
}

static int trace(void)
{
	return answer(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int ring(void)
{
	char params[120] = {0};

	return answer(syscall(SYS_io_uring_setup, 1, params));
}

static int key(void)
{
	return answer(syscall(SYS_keyctl, 0, -3, 0)); /* KEYCTL_GET_KEYRING_ID */
}

static int is_closed_up(void)
{
	struct rlimit core;

	return getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max != 0 ||
	       prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}

#define KILLED (256 + SIGSYS)

static const struct {
	const char *says;
	enum confine_role role;
	int (*try)(void);
	int want; /* 0, an errno, or 256 + a signal */
} cases[] = {
	{"daemon: bytes", CONFINE_DAEMON, talk, 0},
	{"daemon: events", CONFINE_DAEMON, wait_for_events, 0},
	{"daemon: memory", CONFINE_DAEMON, use_memory, 0},
	{"daemon: stdio", CONFINE_DAEMON, print, 0},
	{"daemon: an assertion looks like one", CONFINE_DAEMON, fail_assertion, 256 + SIGABRT},
	{"daemon: socket", CONFINE_DAEMON, make_unix, KILLED},
	{"daemon: open", CONFINE_DAEMON, open_file, KILLED},
	{"daemon: fork", CONFINE_DAEMON, start_process, KILLED},
	{"daemon: thread", CONFINE_DAEMON, start_thread, KILLED},
	{"daemon: prctl", CONFINE_DAEMON, is_closed_up, KILLED},
	{"daemon: ring", CONFINE_DAEMON, ring, ENOSYS},
	{"keeper: closed up", CONFINE_KEEPER, is_closed_up, 0},
	{"keeper: fork", CONFINE_KEEPER, start_process, 0},
	{"keeper: exec", CONFINE_KEEPER, run_program, 0},
	{"keeper: thread", CONFINE_KEEPER, start_thread, 0},
	{"keeper: unix socket", CONFINE_KEEPER, make_unix, 0},
	{"keeper: internet socket", CONFINE_KEEPER, make_socket, EPERM},
	{"keeper: disguised internet socket", CONFINE_KEEPER, make_odd_family, EPERM},
	{"keeper: packet socket", CONFINE_KEEPER, make_packet, EPERM},
	{"keeper: trace", CONFINE_KEEPER, trace, EPERM},
	{"keeper: ring", CONFINE_KEEPER, ring, ENOSYS},
	{"keeper: key", CONFINE_KEEPER, key, EPERM},
	{"spaced: closed up", CONFINE_SPACED, is_closed_up, 0},
	{"spaced: open", CONFINE_SPACED, open_file, 0},
	{"spaced: thread", CONFINE_SPACED, start_thread, 0},
	{"spaced: unix socket", CONFINE_SPACED, make_unix, 0},
	{"spaced: internet socket", CONFINE_SPACED, make_socket, 0},
	{"spaced: disguised socket", CONFINE_SPACED, make_odd_family, EPERM},
	{"spaced: packet socket", CONFINE_SPACED, make_packet, EPERM},
	{"spaced: fork", CONFINE_SPACED, start_process, EPERM},
	{"spaced: exec", CONFINE_SPACED, run_program, EPERM},
	{"spaced: namespace", CONFINE_SPACED, new_namespace, EPERM},
	{"spaced: mount", CONFINE_SPACED, mount_something, EPERM},
	{"spaced: trace", CONFINE_SPACED, trace, EPERM},
	{"spaced: ring", CONFINE_SPACED, ring, ENOSYS},
};

static int run_case(size_t i)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct fail f = {0};
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || dup2(pair[0], 3) < 0 ||
		    dup2(pair[1], 4) < 0)
			_exit(255);
		if (confine_enter(cases[i].role, &f) < 0) {
			(void)fprintf(stderr, "%s\n", f.text);
			_exit(255);
		}
		_exit(cases[i].try());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		EXPECT_EQ(cases[i].says, run_case(i), cases[i].want);
	return test_done();
}
