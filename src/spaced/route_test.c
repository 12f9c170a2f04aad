/* Requests of clients to a sandbox, over real HTTP on one side and real HTTP/2 on the other, with a
 * space-daemon (test_world.h) that answers well, badly, early, late or not to the end. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/test.h"
#include "net/h2_internal.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"
#include "spaced/api.h"
#include "spaced/test_world.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define GUARD_MS   20000
#define ANSWER_MAX (8u * 1024 * 1024)
#define BIG        (3u * 1024 * 1024)
#define LONG_VALUE 30000
#define HEAD_ID    "E2b-Sandbox-Id: %s\r\n"
#define HEAD_PORT  "E2b-Sandbox-Port: 49983\r\n"

static struct timer *guard;
static struct sandbox *sandbox;
static struct http_server *server;
static uint16_t port;
static char seen_head[4096]; /* what space-daemon got last */
static size_t seen_body;
static struct h2_stream *held; /* answered by nobody yet */

static void on_guard(void *arg)
{
	(void)arg;
	EXPECT("it ends in time", false);
	loop_stop(world.n.loop);
}

static void run_loop(void)
{
	timer_set(guard, GUARD_MS);
	loop_run(world.n.loop);
	timer_clear(guard);
}

/* --- as space-daemon --- */

static size_t to_send; /* of /big */

static void answer(struct h2_stream *s, const char *status, const char *name, const char *value,
		   bool is_end)
{
	struct h2_message m = {.n = 0};

	CHECK(h2_add(&m, ":status", status) == 0);
	if (name)
		CHECK(h2_add(&m, name, value) == 0);
	CHECK(h2_respond(s, &m, is_end) == 0);
}

static void send_more(struct h2_stream *s)
{
	static const uint8_t zeros[16384];

	while (to_send && h2_room(s)) {
		size_t n = size_min(size_min(h2_room(s), sizeof zeros), to_send);

		CHECK(h2_write(s, zeros, n) == 0);
		to_send -= n;
	}
	if (!to_send)
		h2_finish(s);
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	(void)p;
	seen_body += n;
	h2_consume(s, n);
}

static void on_end(struct h2_stream *s)
{
	if (h2_stream_arg(s))
		answer(s, "200", "content-length", "0", true);
}

static void on_drain(struct h2_stream *s, size_t n)
{
	(void)n;
	if (to_send)
		send_more(s);
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	(void)code;
	if (held == s)
		held = NULL;
	if (strcmp(seen_head, "held") == 0)
		loop_stop(world.n.loop);
}

static const struct h2_stream_ops stream_ops = {
	.on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_close = on_close};

static void note_head(const struct h2_message *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += (size_t)snprintf(seen_head + n, sizeof seen_head - n, "%s: %s\n", m->h[i].name,
				      m->h[i].value);
	seen_body = 0;
}

static void on_client(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	const char *path = h2_get(m, ":path");
	bool is_echo = strcmp(path, "/echo") == 0;

	note_head(m);
	h2_accept(s, &stream_ops, is_echo ? s : NULL);
	if (strcmp(path, "/hello") == 0) {
		answer(s, "200", "x-guest", "yes", false);
		CHECK(h2_write(s, "hello", 5) == 0);
		h2_finish(s);
	} else if (strcmp(path, "/empty") == 0) {
		answer(s, "204", NULL, NULL, true);
	} else if (strcmp(path, "/length") == 0) {
		answer(s, "200", "content-length", "5", false);
		CHECK(h2_write(s, "12345", 5) == 0);
		h2_finish(s);
	} else if (strcmp(path, "/more") == 0) {
		answer(s, "200", "content-length", "5", false);
		CHECK(h2_write(s, "123456", 6) == 0);
		h2_finish(s);
	} else if (strcmp(path, "/cut") == 0) {
		answer(s, "200", NULL, NULL, false);
		CHECK(h2_write(s, "half", 4) == 0);
	} else if (strcmp(path, "/refuse") == 0) {
		h2_reset(s, H2_REFUSED_STREAM);
	} else if (strcmp(path, "/strange") == 0) {
		static const uint8_t frame[FRAME_HEAD] = {0, 0, 0, 99};

		CHECK(write(h->fd, frame, sizeof frame) == sizeof frame);
	} else if (strcmp(path, "/hold") == 0) {
		held = s;
		(void)snprintf(seen_head, sizeof seen_head, "held");
		loop_stop(world.n.loop);
	} else if (strcmp(path, "/big") == 0) {
		answer(s, "200", NULL, NULL, false);
		to_send = BIG;
		send_more(s);
	}
}

/* --- as the client --- */

struct talk {
	int fd;
	struct watch *watch;
	struct buf in;
	const char *until; /* NULL: the connection's end */
	size_t until_n;    /* or so many bytes; 0: not asked */
	bool is_over;
	int err;
};

static bool has_all(const struct talk *t)
{
	if (t->until_n)
		return buf_len(&t->in) >= t->until_n;
	return t->until &&
	       memmem(buf_data(&t->in), buf_len(&t->in), t->until, strlen(t->until)) != NULL;
}

static void on_readable(void *arg, int events)
{
	struct talk *t = arg;
	static uint8_t b[65536];
	ssize_t n = read(t->fd, b, sizeof b);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		CHECK(buf_append(&t->in, b, (size_t)n) == 0);
	if (n <= 0) {
		t->is_over = true;
		t->err = n < 0 ? errno : 0;
	}
	if (t->is_over || has_all(t)) {
		watch_set(t->watch, 0);
		loop_stop(world.n.loop);
	}
}

static void talk_start(struct talk *t, const char *text)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port)};

	*t = (struct talk){.fd = -1};
	buf_init(&t->in, ANSWER_MAX);
	t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(t->fd, (const struct sockaddr *)&to, sizeof to) == 0);
	CHECK(fd_set_nonblock(t->fd, true) == 0);
	CHECK(write(t->fd, text, strlen(text)) == (ssize_t)strlen(text));
	t->watch = watch_new(world.n.loop, t->fd, on_readable, t);
}

static void talk_listen(struct talk *t, const char *until)
{
	t->until = until;
	watch_set(t->watch, WATCH_READ);
	run_loop();
}

static bool talk_holds(const struct talk *t, const char *text)
{
	return memmem(buf_data(&t->in), buf_len(&t->in), text, strlen(text)) != NULL;
}

static void talk_end(struct talk *t)
{
	watch_free(t->watch);
	fd_drop(&t->fd);
	buf_done(&t->in);
}

PRINTF_LIKE(1, 2) static char *request(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	CHECK(vasprintf(&text, fmt, ap) > 0);
	va_end(ap);
	return text;
}

/* --- the cases --- */

static void check_answers(void)
{
	static const struct {
		const char *says;
		const char *line;
		const char *fields; /* beside the routing ones */
		const char *until;  /* NULL: cut */
		const char *holds;
	} cases[] = {
		{"a whole answer", "GET /hello", "", "0\r\n\r\n", "hello"},
		{"its own fields", "GET /hello", "", "0\r\n\r\n", "x-guest: yes"},
		{"no content", "GET /empty", "", "\r\n\r\n", "204"},
		{"a named length", "GET /length", "", "12345", "Content-Length: 5"},
		{"more than the named length", "GET /more", "", NULL, ""},
		{"no answer at all", "GET /refuse", "", "}", "502"},
		{"a private path", "GET /init", "", "}", "404"},
		{"the platform's path", "POST /space/init", "Content-Length: 0\r\n", "}", "404"},
		{"a private path with a query", "GET /freeze?x", "", "}", "404"},
		{"the head of it", "HEAD /hello", "", "\r\n\r\n", "200"},
		{"a space-daemon that sends what none of ours sends", "GET /strange", "", "}",
		 "502"},
		{"and a request after it", "GET /hello", "", "0\r\n\r\n", "hello"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop)
		char *text = request("%s HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT "%s\r\n",
				     cases[i].line, sandbox->node.id, cases[i].fields);
		struct talk t;

		talk_start(&t, text);
		talk_listen(&t, cases[i].until);
		EXPECT_EQ(cases[i].says, t.is_over, cases[i].until == NULL);
		EXPECT(cases[i].says, talk_holds(&t, cases[i].holds));
		talk_end(&t);
	}
}

static void check_heads(void)
{
	static const struct {
		const char *says;
		const char *fields; /* %s: the id */
		const char *status;
	} cases[] = {
		{"only the id", HEAD_ID, "400"},
		{"only the port", HEAD_PORT "X: %.0s\r\n", "400"},
		{"the id twice", HEAD_ID HEAD_PORT "E2b-Sandbox-Id: x\r\n", "400"},
		{"a port of nothing", HEAD_ID "E2b-Sandbox-Port: 0\r\n", "400"},
		{"no number", HEAD_ID "E2b-Sandbox-Port: x\r\n", "400"},
		{"past the last port", HEAD_ID "E2b-Sandbox-Port: 65536\r\n", "400"},
		{"another port", HEAD_ID "E2b-Sandbox-Port: 8080\r\n", "502"},
		{"an unknown sandbox", HEAD_PORT "E2b-Sandbox-Id: i%.0saaaaaaaaaaaaaaaaaaa\r\n",
		 "502"},
		{"no id at all", HEAD_PORT "E2b-Sandbox-Id: ../../%s\r\n", "502"},
		{"an old client's id", "E2b-Sandbox-Id: %s-abc\r\n" HEAD_PORT, "200"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char fields[512];
		AUTO(str_drop) char *text = NULL;
		struct talk t;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(fields, sizeof fields, cases[i].fields, sandbox->node.id);
#pragma GCC diagnostic pop
		text = request("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
			       fields);
		talk_start(&t, text);
		talk_listen(&t, NULL);
		EXPECT(cases[i].says, talk_holds(&t, cases[i].status));
		talk_end(&t);
	}
}

static void check_fields(void)
{
	AUTO(str_drop)
	char *text = request(
		"POST /echo HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT
		"X-API-KEY: secret\r\nCookie: secret\r\nX-Access-Token: t\r\nTE: trailers\r\n"
		"X-Mixed: Case\r\nContent-Length: 4\r\n\r\nbody",
		sandbox->node.id);
	struct talk t;

	talk_start(&t, text);
	talk_listen(&t, "\r\n\r\n");
	EXPECT("the method", strstr(seen_head, ":method: POST\n"));
	EXPECT("the path", strstr(seen_head, ":path: /echo\n"));
	EXPECT("who is asked", strstr(seen_head, ":authority: envd\n"));
	EXPECT("names in lower case", strstr(seen_head, "x-mixed: Case\n"));
	EXPECT("the sandbox's token", strstr(seen_head, "x-access-token: t\n"));
	EXPECT("no key of ours, no cookie", !strstr(seen_head, "secret"));
	EXPECT("no routing", !strstr(seen_head, "e2b-sandbox"));
	EXPECT("no field of one hop", !strstr(seen_head, "\nte:"));
	EXPECT_EQ("the body", seen_body, 4);
	talk_end(&t);
}

/* Fields that our parser takes and that HTTP/2 does not: said as what it is. */
static void check_long_fields(void)
{
	AUTO(str_drop) char *value = xcalloc(1, 2 * LONG_VALUE + 1);
	AUTO(str_drop) char *text = NULL;
	struct talk t;

	memset(value, 'v', 2 * LONG_VALUE);
	text = request("GET /hello HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT
		       "A: %.*s\r\nB: %.*s\r\n\r\n",
		       sandbox->node.id, LONG_VALUE, value, LONG_VALUE, value);
	talk_start(&t, text);
	talk_listen(&t, "}");
	EXPECT("too long for the guest", talk_holds(&t, "HTTP/1.1 431 "));
	talk_end(&t);
}

/* Who needs no key gets its answer at once: a body that never comes holds no place. */
static void check_health(void)
{
	struct talk t;

	talk_start(&t, "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
	talk_listen(&t, "\r\n\r\n");
	EXPECT("health is told before the body", talk_holds(&t, "HTTP/1.1 204 "));
	talk_end(&t);
}

/* More than all windows together, to a client that reads late. */
static void check_big(void)
{
	AUTO(str_drop)
	char *text = request("GET /big HTTP/1.0\r\nHost: x\r\n" HEAD_ID HEAD_PORT "\r\n",
			     sandbox->node.id);
	struct talk t;

	talk_start(&t, text);
	t.until_n = 100;
	talk_listen(&t, NULL);
	EXPECT("the guest is held back", to_send > 0);
	t.until_n = 0;
	talk_listen(&t, NULL);
	EXPECT("all of it came", buf_len(&t.in) > BIG && buf_len(&t.in) < BIG + 1000);
	EXPECT_EQ("and its end", t.is_over && !t.err, true);
	talk_end(&t);
}

static void check_client_gone(void)
{
	AUTO(str_drop)
	char *text = request("GET /hold HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT "\r\n",
			     sandbox->node.id);
	struct talk t;

	talk_start(&t, text);
	run_loop();
	EXPECT("the guest has it", held != NULL);
	talk_end(&t);
	run_loop();
	EXPECT("the guest is told", held == NULL);
	seen_head[0] = '\0';
}

static void on_ended(void *arg)
{
	(void)arg;
	loop_stop(world.n.loop);
}

/* The sandbox dies while one answer is half sent and one request is not answered at all. */
static void check_death(void)
{
	AUTO(str_drop)
	char *half = request("GET /cut HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT "\r\n",
			     sandbox->node.id);
	AUTO(str_drop)
	char *none = request("GET /hold HTTP/1.1\r\nHost: x\r\n" HEAD_ID HEAD_PORT "\r\n",
			     sandbox->node.id);
	struct talk a, b;

	talk_start(&a, half);
	talk_listen(&a, "half\r\n");
	talk_start(&b, none);
	run_loop();
	seen_head[0] = '\0';
	sandbox_end(sandbox, "by the test", on_ended, NULL);
	run_loop();
	talk_listen(&a, NULL);
	EXPECT_EQ("the half answer is cut, not finished", a.err, ECONNRESET);
	EXPECT("no last chunk", !talk_holds(&a, "\r\n0\r\n"));
	talk_listen(&b, "}");
	EXPECT("the other is told", talk_holds(&b, "502") && talk_holds(&b, "was not found"));
	talk_end(&a);
	talk_end(&b);
}

static void on_created(void *arg, struct sandbox *s, const struct refusal *r)
{
	(void)arg;
	(void)r;
	sandbox = s;
	loop_stop(world.n.loop);
}

static void make_sandbox(void)
{
	AUTO(new_sandbox_done) struct new_sandbox want = {.timeout_s = 60};
	AUTO(template_done) struct template t = {.memory_mib = 0};
	struct sandbox *s;
	struct fail f = {0};

	want.metadata = json_object();
	want.env = json_object();
	CHECK(template_find(&world.n.data, "base", &t, &f) == 0);
	CHECK(sandbox_create(&world.n, &want, &t, on_created, NULL, &s) == NULL);
	run_loop();
}

int main(void)
{
	static struct api api = {.is_local = false};
	struct fail f = {0};
	int fd = -1;

	log_init("route_test", LOG_ERROR, open("/dev/null", O_WRONLY | O_CLOEXEC));
	world.on_client = on_client;
	if (!world_make())
		return test_skip("no temporary folder");
	guard = timer_new(world.n.loop, on_guard, NULL);
	make_sandbox();
	if (!EXPECT("there is a sandbox", sandbox != NULL))
		return test_done();
	api.n = &world.n;
	CHECK(sock_tcp_listen("127.0.0.1", 0, &fd, &port, &f) == 0);
	server = http_server_new(world.n.loop, fd, &api_server_ops, &api);
	check_answers();
	check_heads();
	check_fields();
	check_long_fields();
	check_health();
	check_big();
	check_client_gone();
	check_death();
	http_server_free(server);
	timer_free(guard);
	world_end();
	return test_done();
}
