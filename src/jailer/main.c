/* space-jailer: the only part that may be root. It prepares the node, starts spaced without rights
 * and keeps it running, and does three things for it: start a jail, end a jail, tell what became of
 * it. It is the reaper of all that it started.
 *
 * Trusts: its command line, the kernel. Never trusts spaced: anything outside the message table
 * ends that spaced (a new one is started). Never opens a path that came in a message. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "node.h"
#include "os/fd.h"
#include "os/seqpacket.h"
#include "os/spawn.h"
#include "sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SPACED_FD          3
#define SPACED_ARGS_MAX    64
#define RESTARTS_MAX       5
#define RESTART_WINDOW_NS  (60 * NS_PER_S)
#define FIRST_START_NS     (3 * NS_PER_S) /* an exit so soon is an answer, not a crash */
#define TELL_QUEUE_BYTES   (1024 * 1024)  /* answers that spaced has not read yet */
#define REPORT_TEXT_MAX    256
#define PACKET_MAX         1024 /* no message of ours or to us is as long */
#define EXIT_USAGE         2
#define MESSAGES_AT_A_TIME 64 /* then the sandboxes get their turn */

struct jailer {
	struct node node;
	struct jail_paths paths;
	struct table table;
	struct fail limits; /* why there are none */
	const char *const *spaced_args;
	int signals;
	int sock; /* to spaced; -1: the connection was ended */
	pid_t spaced;
	uint64_t started_ns;
	uint64_t starts[RESTARTS_MAX + 1];
	size_t n_starts;  /* in all */
	bool is_stopping; /* SIGTERM came, or JAIL_QUIT: no new spaced */
	bool is_quitting; /* JAIL_QUIT: no new sandbox */
};

/* --- what spaced is told --- */

static void cut_off(struct jailer *j, const char *why)
{
	log_error("spaced is ended", "why=%s", why);
	fd_drop(&j->sock);
	if (j->spaced > 0)
		(void)kill(j->spaced, SIGKILL); /* our child, not reaped: the number is its own */
}

static void send_msg(struct jailer *j, enum msg_type type, uint32_t seq, const struct wr *body)
{
	uint8_t packet[PACKET_MAX];
	struct wr w = wr_of(packet, sizeof packet);
	size_t n = wr_len(body);

	if (j->sock < 0)
		return; /* a new spaced asks the keepers and the exit records */
	msg_head_print(&w, type, seq);
	wr_bytes(&w, body->start, n);
	assert(!w.bad && !body->bad && msg_allowed(type, PEER_JAILER, PEER_SPACED, n, 0) == 0);
	if (seqpacket_send(j->sock, packet, wr_len(&w), NULL, 0) == -EAGAIN)
		cut_off(j, "it does not read its answers");
}

static void on_report(void *arg, const struct report *r)
{
	struct jailer *j = arg;
	uint8_t bytes[PACKET_MAX - MSG_HEAD];
	struct wr w = wr_of(bytes, sizeof bytes);
	char text[REPORT_TEXT_MAX];

	wr_str(&w, r->id);
	wr_be32(&w, r->value);
	if (r->type == MSG_JAIL_FAILED) {
		(void)snprintf(text, sizeof text, "%s", r->text);
		wr_str(&w, text);
	}
	log_info(msg_name(r->type), "sandbox=%s value=%" PRIu32 "%s%s", r->id, r->value,
		 r->type == MSG_JAIL_FAILED ? " why=" : "",
		 r->type == MSG_JAIL_FAILED ? r->text : "");
	send_msg(j, r->type, r->seq, &w);
}

static void send_hello(struct jailer *j)
{
	uint8_t bytes[PACKET_MAX - MSG_HEAD];
	struct wr w = wr_of(bytes, sizeof bytes);
	struct jail_hello h = {.is_root = j->node.is_root,
			       .has_limits = j->table.limits.kind != CGROUP_NONE,
			       .uid_first = j->node.uid_first};

	(void)snprintf(h.limits_why, sizeof h.limits_why, "%.*s", (int)sizeof h.limits_why - 1,
		       j->limits.text);
	jail_hello_print(&w, &h);
	send_msg(j, MSG_JAIL_HELLO, 0, &w);
}

/* --- what spaced asks --- */

static int on_start(struct jailer *j, uint32_t seq, struct rd body, const int *fds)
{
	struct jail_start q;
	int err = jail_start_parse(&q, body);

	if (err < 0)
		return err;
	if (j->is_quitting)
		return -EPROTO; /* it said itself that it would not */
	sandbox_start(&j->table, &q, seq, fds);
	return 0;
}

static int on_kill(struct jailer *j, uint32_t seq, struct rd body, int pidfd)
{
	char id[SANDBOX_ID_SIZE];

	rd_str(&body, id, sizeof id);
	if (!rd_end(&body) || !sandbox_id_valid(id))
		return -EBADMSG;
	sandbox_kill(&j->table, id, seq, pidfd);
	return 0;
}

static int on_packet(struct jailer *j, struct rd in, const int *fds, size_t n_fds)
{
	enum msg_type type;
	uint32_t seq;
	int err = msg_head_parse(&in, &type, &seq);

	if (err == 0)
		err = msg_allowed(type, PEER_SPACED, PEER_JAILER, rd_left(&in), n_fds);
	if (err < 0)
		return err;
	if (type == MSG_JAIL_START)
		return on_start(j, seq, in, fds);
	if (type == MSG_JAIL_KILL)
		return on_kill(j, seq, in, n_fds > 0 ? fds[0] : -1);
	assert(type == MSG_JAIL_QUIT); /* the table has no other for us */
	j->is_quitting = true;
	j->is_stopping = true;
	return 0;
}

static void on_readable(struct jailer *j)
{
	uint8_t packet[PACKET_MAX];
	int fds[MSG_FDS_MAX];

	for (int i = 0; i < MESSAGES_AT_A_TIME && j->sock >= 0; i++) {
		size_t n_fds = 0;
		size_t n = 0;
		int err = seqpacket_recv(j->sock, packet, sizeof packet, &n, fds, MSG_FDS_MAX,
					 &n_fds);

		if (err == -EAGAIN)
			return;
		if (err == -EPIPE) {
			fd_drop(&j->sock); /* it ends, or will not be talked to: its exit says */
			return;
		}
		if (err == 0)
			err = on_packet(j, rd_of(packet, n), fds, n_fds);
		while (n_fds > 0)
			(void)close(fds[--n_fds]); /* the jail has its own */
		if (err < 0)
			cut_off(j, "it broke the protocol");
	}
}

/* --- spaced's life --- */

static int spaced_sockets(int ret[2], struct fail *f)
{
	int size = TELL_QUEUE_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return fail_errno(f, -errno, "cannot make sockets for spaced");
	if (setsockopt(ret[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
		(void)setsockopt(ret[0], SOL_SOCKET, SO_SNDBUF, &size,
				 sizeof size); /* cut is fine */
	return 0;
}

static int start_spaced(struct jailer *j, struct fail *f)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL};
	AUTO(str_drop) char *program = xasprintf("%s/spaced", j->node.libexec);
	AUTO(fd_drop) int theirs = -1;
	const char *argv[6 + SPACED_ARGS_MAX] = {program, "--data", j->node.data, "--jailer-fd",
						 "3"};
	int ends[2];
	int err = spaced_sockets(ends, f);

	if (err < 0)
		return err;
	j->sock = ends[0];
	theirs = ends[1];
	for (size_t i = 0; j->spaced_args[i] != NULL; i++)
		argv[5 + i] = j->spaced_args[i];
	const int map[] = {-1, STDOUT_FILENO, STDERR_FILENO, theirs};
	const struct spawn_spec spec = {.argv = argv,
					.envp = env,
					.fds = map,
					.n_fds = ARRAY_LEN(map),
					.new_session = true,
					.no_new_privs = true,
					.has_ids = j->node.is_root,
					.uid = j->node.spaced_uid,
					.gid = j->node.spaced_gid};

	err = spawn(&spec, &j->spaced, NULL, f);
	if (err < 0) {
		fd_drop(&j->sock);
		return err;
	}
	j->started_ns = clock_mono_ns();
	j->starts[j->n_starts++ % ARRAY_LEN(j->starts)] = j->started_ns;
	log_info("spaced started", "pid=%d uid=%u", j->spaced, j->node.spaced_uid);
	send_hello(j);
	return 0;
}

/* More than RESTARTS_MAX restarts in the window: another one would end the same way. */
static bool may_restart(const struct jailer *j)
{
	uint64_t oldest;

	if (j->n_starts <= RESTARTS_MAX)
		return true;
	oldest = j->starts[j->n_starts % ARRAY_LEN(j->starts)];
	return clock_mono_ns() - oldest > RESTART_WINDOW_NS;
}

/* -1: go on; else the exit status of the jailer. */
static int on_spaced_end(struct jailer *j, int status)
{
	bool is_first = j->n_starts == 1;
	uint64_t ran_ns = clock_mono_ns() - j->started_ns;
	struct fail f = {0};

	j->spaced = 0;
	on_readable(j); /* what it still said */
	fd_drop(&j->sock);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		j->is_stopping = true;
		return j->is_quitting && j->table.n > 0 ? -1 : 0;
	}
	log_error("spaced ended", "status=%d ran_ms=%" PRIu64, status, ran_ns / NS_PER_MS);
	if (j->is_stopping)
		return EXIT_FAILURE;
	if (WIFEXITED(status) && is_first && ran_ns < FIRST_START_NS)
		return WEXITSTATUS(status);
	if (!may_restart(j)) {
		log_error("spaced ends again and again", "restarts=%d", RESTARTS_MAX);
		return EXIT_FAILURE;
	}
	if (start_spaced(j, &f) < 0) {
		log_error("cannot restart spaced", "why=%s", f.text);
		return EXIT_FAILURE;
	}
	return -1;
}

static int reap_all(struct jailer *j)
{
	int verdict = -1;
	int status;
	pid_t pid;

	while (verdict < 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!sandbox_reaped(&j->table, pid, status) && pid == j->spaced)
			verdict = on_spaced_end(j, status);
	return verdict;
}

static int on_signal(struct jailer *j)
{
	struct signalfd_siginfo si;

	while (read(j->signals, &si, sizeof si) == (ssize_t)sizeof si) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		j->is_stopping = true;
		if (j->spaced > 0)
			(void)kill(j->spaced, SIGTERM);
	}
	return reap_all(j);
}

/* --- the loop --- */

static int run(struct jailer *j)
{
	struct pollfd *p = xcalloc(2 + SANDBOXES_MAX, sizeof *p);
	int verdict = -1;
	int due = -1;

	while (verdict < 0) {
		size_t n = 2;

		p[0] = (struct pollfd){.fd = j->signals, .events = POLLIN};
		p[1] = (struct pollfd){.fd = j->sock, .events = POLLIN};
		n += sandbox_poll(&j->table, p + n);
		if (poll(p, n, due) < 0 && errno != EINTR) {
			log_error("cannot wait", "errno=%d", errno);
			break;
		}
		if (p[1].revents != 0)
			on_readable(j);
		verdict = on_signal(j);
		due = sandbox_step(&j->table);
		if (verdict < 0 && j->spaced == 0 && j->table.n == 0)
			verdict = 0; /* after JAIL_QUIT */
	}
	free(p);
	return verdict < 0 ? EXIT_FAILURE : verdict;
}

static int prepare_process(struct jailer *j, struct fail *f)
{
	struct rlimit files;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return fail_errno(f, -errno, "cannot block signals");
	j->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j->signals < 0)
		return fail_errno(f, -errno, "cannot make a signalfd");
	/* What outlives its parent comes to us and is reaped, not left to process 1. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return fail_errno(f, -errno, "cannot become the reaper");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer sandboxes fit, no more */
	}
	return 0;
}

static int prepare(struct jailer *j, const struct node_request *r, struct fail *f)
{
	int err = node_prepare(r, &j->node, f);

	(void)umask(077); /* spaced's too; what must be open was made with its mode */
	if (err == 0)
		err = jail_paths_probe(j->node.libexec, NULL, &j->paths, f);
	if (err == 0)
		err = prepare_process(j, f);
	if (err < 0)
		return err;
	j->table.node = &j->node;
	j->table.paths = &j->paths;
	j->table.tell = on_report;
	j->table.arg = j;
	if (cgroup_base_open(j->node.instance, &j->table.limits, &j->limits) < 0)
		log_warn("no limits on sandboxes, going on", "why=%s", j->limits.text);
	return start_spaced(j, f);
}

/* --- options --- */

static int parse_args(char **argv, struct node_request *r, const char *const **ret_rest)
{
	uint64_t v;
	size_t i;

	for (i = 1; argv[i] != NULL && strcmp(argv[i], "--") != 0; i += 2) {
		if (argv[i + 1] == NULL)
			return -EINVAL;
		if (strcmp(argv[i], "--data") == 0) {
			r->data = argv[i + 1];
		} else if (strcmp(argv[i], "--libexec") == 0) {
			r->libexec = argv[i + 1];
		} else if (strcmp(argv[i], "--uid-first") == 0) {
			if (str_u64(argv[i + 1], INT32_MAX - NODE_UIDS, &v) < 0)
				return -EINVAL;
			r->has_uid_first = true;
			r->uid_first = (uid_t)v;
		} else {
			return -EINVAL;
		}
	}
	if (argv[i] != NULL)
		i++;
	union {
		char **in;
		const char *const *out;
	} rest = {.in = argv + i};
	size_t n = 0;

	while (rest.in[n] != NULL)
		n++;
	*ret_rest = rest.out;
	return r->data != NULL && r->libexec != NULL && n <= SPACED_ARGS_MAX ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	static struct jailer j = {.sock = -1, .signals = -1};
	struct node_request r = {0};
	struct fail f = {0};
	int verdict;

	(void)argc;
	log_init("space-jailer", LOG_INFO, STDERR_FILENO);
	if (parse_args(argv, &r, &j.spaced_args) < 0) {
		(void)fprintf(stderr,
			      "usage: space-jailer --libexec DIR --data DIR [--uid-first N] "
			      "[-- SPACED-ARGUMENTS...]\n");
		return EXIT_USAGE;
	}
	if (prepare(&j, &r, &f) < 0) {
		log_error("cannot start", "why=%s", f.text);
		return EXIT_FAILURE;
	}
	verdict = run(&j);
	cgroup_base_done(&j.table.limits);
	return verdict;
}
