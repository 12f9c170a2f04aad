/* See node.h. */
#include "cli/node.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/term.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define READY_MS     60000 /* the first start may have to sweep what a crash left */
#define LOOK_MS      50
#define HEALTH_MS    2000
#define STOP_S       60
#define LOG_TAIL     4096
#define LOG_LINES    8
#define ENDPOINT_MAX 256
#define STAT_MAX     4096
#define JAILER_COMM  "space-jailer"

static volatile sig_atomic_t signal_seen;

static void on_signal(int signo)
{
	if (!signal_seen)
		signal_seen = signo;
}

int node_signal(void)
{
	static bool is_set;
	struct sigaction a = {.sa_handler = on_signal};

	if (!is_set) {
		(void)sigaction(SIGINT, &a, NULL);
		(void)sigaction(SIGTERM, &a, NULL);
		(void)sigaction(SIGHUP, &a, NULL);
		is_set = true;
	}
	return signal_seen;
}

void node_drop(struct node *n)
{
	fd_drop(&n->jailer);
	n->pid = 0;
}

/* The parent of `pid`, when it is a space-jailer. */
static int jailer_of(pid_t pid, pid_t *ret)
{
	AUTO(fd_drop) int fd = -1;
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *path = xasprintf("/proc/%d/stat", pid);
	AUTO(str_drop) char *comm_path = NULL;
	AUTO(fd_drop) int comm_fd = -1;
	AUTO(str_drop) char *comm = NULL;
	const char *p;
	uint64_t ppid;
	size_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_slurp(fd, STAT_MAX, &text, &n) < 0)
		return -ESRCH;
	p = strrchr(text, ')'); /* "pid (comm) state ppid ...": comm may hold anything */
	if (!p || strlen(p) < 5 || str_u64_n(p + 4, strcspn(p + 4, " "), INT32_MAX, &ppid) < 0 ||
	    ppid < 2)
		return -ESRCH;
	comm_path = xasprintf("/proc/%" PRIu64 "/comm", ppid);
	comm_fd = open(comm_path, O_RDONLY | O_CLOEXEC);
	if (comm_fd < 0 || fd_slurp(comm_fd, STAT_MAX, &comm, &n) < 0 ||
	    strcmp(comm, JAILER_COMM "\n") != 0)
		return -ESRCH;
	*ret = (pid_t)ppid;
	return 0;
}

int node_find(const struct cli *c, struct node *ret, struct fail *f)
{
	AUTO(str_drop) char *state_path = xasprintf("%s/state", c->data);
	AUTO(fd_drop) int state = open(state_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(fd_drop) int sock = -1;
	struct ucred peer;
	socklen_t n = sizeof peer;
	pid_t pid;

	if (state < 0 && errno == EACCES)
		return fail_set(f, -EACCES, "the data folder '%s' is another user's", c->data);
	if (state < 0 || sock_unix_connect(state, "api.sock", SOCK_STREAM, &sock, NULL) < 0)
		return fail_set(f, -ECONNREFUSED, "no node runs on the data folder '%s'", c->data);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 ||
	    jailer_of(peer.pid, &pid) < 0 || pidfd_of(pid, &ret->jailer) < 0)
		return fail_set(f, -ESRCH,
				"a node answers, but its jailer cannot be found: was it started by "
				"another user?");
	ret->pid = pid;
	return 0;
}

static int log_open(const struct cli *c, int *ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/node.log", c->data);

	*ret = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? fail_errno(f, -errno, "cannot open '%s'", path) : 0;
}

int node_start(const struct cli *c, const char *const *args, struct node *ret, struct fail *f)
{
	static const char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
					  "/sbin:/bin",
					  "LANG=C.UTF-8", NULL};
	AUTO(str_drop) char *program = xasprintf("%s/space-jailer", c->libexec);
	AUTO(fd_drop) int log = -1;
	const char *argv[16] = {program, "--libexec", c->libexec, "--data", c->data, "--"};
	int r = log_open(c, &log, f);
	off_t log_end = r < 0 ? 0 : lseek(log, 0, SEEK_END);
	const int fds[] = {-1, log, log};
	const struct spawn_spec spec = {
		.argv = argv,
		.envp = env,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.new_session = true,
	};

	if (r < 0)
		return r;
	ret->log_at = log_end > 0 ? log_end : 0;
	for (size_t i = 0; args[i]; i++) {
		assert(i + 7 < ARRAY_LEN(argv));
		argv[i + 6] = args[i];
	}
	return spawn(&spec, &ret->pid, &ret->jailer, f);
}

/* The last lines that this node has logged, as notes. */
static void log_show(const struct cli *c, const struct node *node)
{
	AUTO(fd_drop) int fd = -1;
	struct fail f = {0};
	char text[LOG_TAIL + 1];
	struct stat st;
	off_t at;
	ssize_t n;
	int lines = 0;
	char *p;

	if (log_open(c, &fd, &f) < 0 || fstat(fd, &st) < 0)
		return;
	at = st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0;
	n = pread(fd, text, LOG_TAIL, at > node->log_at ? at : node->log_at);
	if (n <= 0)
		return;
	text[n] = 0;
	for (p = text + n - 1; p > text; p--)
		if (p[-1] == '\n' && ++lines == LOG_LINES)
			break;
	for (char *end; (end = strchr(p, '\n')); p = end + 1) {
		*end = 0;
		term_note("  %s", p);
	}
}

static bool is_ready(const struct cli *c)
{
	struct api_answer answer = {0};
	struct api *a = NULL;
	struct fail f = {0};
	int r = api_open(c, &a, &f);

	if (r == 0)
		r = api_call(a, "GET", "/health", NULL, HEALTH_MS, &answer, &f);
	api_answer_done(&answer);
	api_close(a);
	return r == 0;
}

int node_wait_ready(const struct cli *c, struct node *n, struct fail *f)
{
	uint64_t began_ns = clock_mono_ns();
	struct fail why = {0};

	while (!is_ready(c)) {
		uint64_t waited_ms = (clock_mono_ns() - began_ns) / NS_PER_MS;

		if (node_signal()) {
			(void)node_stop(c, n, &why);
			return fail_set(f, -EINTR, "stopped by a signal");
		}
		if (pidfd_wait_end(n->jailer, LOOK_MS) == 0) {
			log_show(c, n);
			return fail_set(
				f, -ECHILD,
				"the node ended at once: the lines above, from '%s/node.log', "
				"say why",
				c->data);
		}
		if (waited_ms > READY_MS) {
			log_show(c, n);
			(void)node_stop(c, n, &why);
			return fail_set(f, -ETIMEDOUT, "the node does not answer within %d s",
					READY_MS / 1000);
		}
		if (waited_ms > 1000)
			term_progress("waiting for the node: %" PRIu64 " s", waited_ms / 1000);
	}
	term_progress_end();
	return 0;
}

int node_stop(const struct cli *c, struct node *n, struct fail *f)
{
	if (pidfd_signal(n->jailer, SIGTERM) < 0)
		return 0; /* it has ended */
	for (unsigned s = 0; s < STOP_S; s++) {
		if (pidfd_wait_end(n->jailer, 1000) == 0) {
			term_progress_end();
			return 0;
		}
		term_progress("waiting for the sandboxes to end: %u s", s + 1);
	}
	return fail_set(f, -ETIMEDOUT,
			"the node does not end within %d s: look at '%s/node.log'; its jailer is "
			"process %d",
			STOP_S, c->data, n->pid);
}

int node_endpoint(const struct cli *c, char **ret, struct fail *f)
{
	AUTO(str_drop) char *state_path = xasprintf("%s/state", c->data);
	AUTO(fd_drop) int state = open(state_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO(str_drop) char *text = NULL;
	size_t n;
	int r = state < 0 ? -errno : file_slurp(state, "endpoint", ENDPOINT_MAX, &text, &n, f);

	if (r < 0)
		return fail_set(f, r,
				"cannot read '%s/endpoint': no node has run here (start one with "
				"`space up`), or it is another user's",
				state_path);
	text[strcspn(text, "\r\n")] = 0;
	*ret = text;
	text = NULL;
	return 0;
}
