/* spaced: the control daemon. Holds the state of all sandboxes and speaks with clients; it
 * executes nothing, parses no byte of a guest, and has no rights beyond its data folder and its
 * sockets.
 *
 * Started by space-jailer, whose socket it inherits. In order: options, data folder and its lock,
 * state.db, QEMU's identity (read while /usr is still of use), confinement, sockets, the jailer's
 * hello, recovery of what runs already, and only then the first client.
 *
 * Ends: SIGTERM, SIGINT and POST /node/shutdown end every sandbox first, exit 0. Without the
 * jailer it cannot keep its word: exit 1, and the sandboxes live on for the next one. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "os/confine.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/sock.h"
#include "spaced/api.h"
#include "spaced/engine_id.h"
#include "spaced/jailer.h"
#include "spaced/keys.h"
#include "spaced/options.h"
#include "spaced/sandbox.h"
#include "spaced/variants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define STOP_MS       30000 /* then the program ends with what is left, for the next one to find */
#define ENDPOINT_MAX  64u
#define EXIT_USAGE    2
#define EXIT_NO_START 3

struct spaced {
	struct node n;
	struct options o;
	struct api tcp_api;
	struct api unix_api;
	struct http_server *tcp;
	struct http_server *local;
	struct sigwatch *term;
	struct sigwatch *intr;
	struct timer *stop_timer;
	int exit_status;
	bool is_open;
};

/* --- the end --- */

static bool all_gone(const struct node *n)
{
	return sandboxes_left(n) == 0 && !variants_busy(n->variants) && db_idle(n->db);
}

static void finish(struct spaced *s, int status)
{
	s->exit_status = status;
	loop_stop(s->n.loop);
}

static void on_stop_timer(void *arg)
{
	struct spaced *s = arg;

	if (s->n.is_stopping && all_gone(&s->n)) {
		jailer_quit(s->n.jailer);
		finish(s, EXIT_SUCCESS);
		return;
	}
	if (clock_mono_ns() - s->n.stop_ns > STOP_MS * NS_PER_MS) {
		log_error("not everything ended in time", "left=%zu", sandboxes_left(&s->n));
		finish(s, EXIT_FAILURE);
		return;
	}
	timer_set(s->stop_timer, 20);
}

void node_stop(struct node *n, const char *why)
{
	struct spaced *s = (struct spaced *)n; /* the node is its first member */

	if (!n->is_stopping) {
		log_info("stopping", "why=%s sandboxes=%zu", why ? why : "", sandboxes_left(n));
		n->is_stopping = true;
		n->stop_ns = clock_mono_ns();
		variants_stop(n->variants);
		sandboxes_stop(n);
	}
	timer_set(s->stop_timer, 0);
}

static void on_signal(void *arg, int signo)
{
	node_stop(arg, signo == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void on_jailer_lost(void *arg)
{
	finish(arg, EXIT_FAILURE);
}

/* --- the doors --- */

/* The port of the endpoint file that an earlier start wrote, or 0. */
static uint16_t last_port(const struct node *n)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *host = xcalloc(1, ENDPOINT_MAX + 1);
	size_t len = 0;
	uint16_t port = 0;
	struct fail f;

	if (file_slurp(n->data.state, "endpoint", ENDPOINT_MAX, &text, &len, &f) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, "http://", 7) != 0 || listen_parse(text + 7, host, &port, &f) < 0)
		return 0;
	return port;
}

static int open_tcp(struct spaced *s, int *ret_fd, struct fail *f)
{
	uint16_t port = s->o.port ? s->o.port : last_port(&s->n);
	bool is_v6 = strchr(s->o.host, ':') != NULL;
	int r = sock_tcp_listen(s->o.host, port, ret_fd, &port, f);

	if (r < 0 && !s->o.port)
		r = sock_tcp_listen(s->o.host, 0, ret_fd, &port, f);
	if (r < 0)
		return r;
	(void)snprintf(s->n.cfg.url, sizeof s->n.cfg.url, is_v6 ? "http://[%s]:%u" : "http://%s:%u",
		       s->o.host, port); /* fits: a literal and a port */
	return 0;
}

static int open_doors(struct spaced *s, struct fail *f)
{
	AUTO(fd_drop) int tcp = -1;
	AUTO(fd_drop) int local = -1;
	AUTO(str_drop) char *line = NULL;
	int r;

	if ((r = open_tcp(s, &tcp, f)) < 0 ||
	    (r = sock_unix_listen(s->n.data.state, "api.sock", SOCK_STREAM, &local, f)) < 0)
		return r;
	line = xasprintf("%s\n", s->n.cfg.url);
	r = file_replace(s->n.data.state, "endpoint", 0600, line, strlen(line), f);
	if (r < 0)
		return r;
	s->tcp_api = (struct api){.n = &s->n, .is_local = false};
	s->unix_api = (struct api){.n = &s->n, .is_local = true};
	s->tcp = http_server_new(s->n.loop, fd_take(&tcp), &api_server_ops, &s->tcp_api);
	s->local = http_server_new(s->n.loop, fd_take(&local), &api_server_ops, &s->unix_api);
	return 0;
}

static void on_jailer_hello(void *arg, const struct jail_hello *h)
{
	struct spaced *s = arg;
	struct fail f = {0};

	if (s->is_open)
		return;
	s->is_open = true;
	s->n.jails = *h;
	if (sandboxes_recover(&s->n, &f) < 0 || open_doors(s, &f) < 0) {
		log_error("cannot start", "why=%s", f.text);
		finish(s, EXIT_NO_START);
		return;
	}
	log_info("ready", "url=%s accel=%s limits=%s own_uids=%s", s->n.cfg.url,
		 accel_name(s->n.cfg.accel), h->has_limits ? "on" : "off",
		 h->is_root ? "yes" : "no");
}

/* --- the beginning --- */

static int fill_config(struct spaced *s, struct fail *f)
{
	struct config *c = &s->n.cfg;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	c->max_sandboxes = s->o.max_sandboxes;
	c->max_hours = s->o.max_hours;
	c->cores = cores > 0 ? (uint32_t)cores : 1;
	return engine_find(s->o.accel, s->o.accel_why, c, f);
}

static void raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* fewer sandboxes fit, each says so */
	}
}

static int prepare(struct spaced *s, struct fail *f)
{
	AUTO(str_drop) char *state = xasprintf("%s/state", s->o.data);
	int r;

	raise_limits();
	(void)umask(077);
	if ((r = data_open(s->o.data, &s->n.data, f)) < 0 || (r = fill_config(s, f)) < 0)
		return r;
	s->n.meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (s->n.meminfo < 0)
		log_warn("cannot see the host's memory, going on without that limit", "errno=%d",
			 errno);
	s->n.loop = loop_new();
	if ((r = confine_enter(CONFINE_SPACED, f)) < 0 || (r = db_open(state, &s->n.db, f)) < 0 ||
	    (r = keys_prepare(&s->n, f)) < 0)
		return r;
	s->n.sandboxes = sandboxes_new(&s->n);
	db_start(s->n.db, s->n.loop);
	s->n.variants = variants_new(&s->n);
	return 0;
}

static void serve(struct spaced *s)
{
	static const struct jailer_ops ops = {.on_hello = on_jailer_hello,
					      .on_lost = on_jailer_lost};

	s->stop_timer = timer_new(s->n.loop, on_stop_timer, s);
	s->term = sigwatch_new(s->n.loop, SIGTERM, on_signal, &s->n);
	s->intr = sigwatch_new(s->n.loop, SIGINT, on_signal, &s->n);
	s->n.jailer = jailer_new(s->n.loop, s->o.jailer_fd, &ops, s);
	loop_run(s->n.loop);
}

/* After a clean stop everything is freed, so that a leak shows; else the process just ends. */
static void clean_up(struct spaced *s)
{
	http_server_free(s->tcp);
	http_server_free(s->local);
	(void)unlinkat(s->n.data.state, "api.sock", 0); /* the next start removes it too */
	sigwatch_free(s->term);
	sigwatch_free(s->intr);
	timer_free(s->stop_timer);
	jailer_free(s->n.jailer);
	variants_free(s->n.variants);
	sandboxes_free(s->n.sandboxes);
	db_close(s->n.db);
	fd_drop(&s->n.meminfo);
	data_done(&s->n.data);
	loop_free(s->n.loop);
}

int main(int argc, char **argv)
{
	static struct spaced s = {.n = {.data = {NULL, -1, -1, -1, -1, -1}, .meminfo = -1}};
	struct fail f = {0};

	static_assert(offsetof(struct spaced, n) == 0, "the program is found by its node");
	log_init("spaced", LOG_INFO, STDERR_FILENO);
	(void)signal(SIGPIPE, SIG_IGN);
	s.n.started_ns = clock_mono_ns();
	if (options_parse(argc, argv, &s.o, &f) < 0) {
		log_error("bad options", "why=%s", f.text);
		return EXIT_USAGE;
	}
	if (prepare(&s, &f) < 0) {
		log_error("cannot start", "why=%s", f.text);
		return EXIT_NO_START;
	}
	serve(&s);
	if (s.exit_status == EXIT_SUCCESS)
		clean_up(&s);
	return s.exit_status;
}
