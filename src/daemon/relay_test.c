/* The whole of space-daemon but its main, between a client over a real socket and a guest made here
 * of net/h2: an honest one, and hostile ones that write raw bytes. Nothing may crash, hang or stay. */
#include "daemon/guest.h"
#include "daemon/relay.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/test.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"
#include "wire/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#define TOKEN       "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define PATIENCE_S  30u
#define BULK        (3u * 1024 * 1024)
#define CHUNK       (32u * 1024)
#define FLOOD_BYTES 2048u
#define RETRY_MS    50u
#define REQUESTS    (RELAY_STREAMS_MAX + 8u)

/* --- the guest --- */

enum guest_mode {
	GUEST_HONEST,
	GUEST_ABSENT, /* never answers the wake */
	GUEST_RAW,    /* answers the handshake, then writes fake.raw on space.control */
};

/* One of the fake guest's streams. */
struct served {
	size_t up;   /* bytes of the request */
	size_t down; /* still to send */
	bool is_echo;
	bool has_end;
};

struct fake {
	struct loop *loop;
	int fd[GUEST_PORTS];
	struct watch *watch[GUEST_PORTS];
	struct wake_scan wake_scan;
	struct preface_scan scan[2];
	uint8_t nonce[WAKE_NONCE];
	struct h2 *h2[2];
	enum guest_mode mode;
	const char *raw;
	size_t raw_n;
	size_t flood_n; /* bytes of the frame that is repeated; 0: none */
	size_t part_n;  /* still to write of this round */
	bool has_begun;
	bool is_raw; /* the handshake is done, the bytes follow */
	unsigned sessions;
	unsigned closed;        /* streams that ended before their answer did */
	size_t up_bytes;        /* of all requests */
	unsigned egress_got;    /* status of our own request on space.egress */
	bool has_token;         /* a credential reached us */
	struct h2_stream *held; /* of /hold */
};

static void served_free(struct h2_stream *s, uint32_t code)
{
	struct fake *g = h2_arg(h2_stream_session(s));

	if (code != H2_NO_ERROR)
		g->closed++;
	if (g->held == s)
		g->held = NULL;
	free(h2_stream_arg(s));
	loop_stop(g->loop);
}

static void served_send(struct h2_stream *s)
{
	static const uint8_t zeros[CHUNK];
	struct served *v = h2_stream_arg(s);

	while (v->down && h2_room(s) >= CHUNK) {
		size_t n = size_min(v->down, CHUNK);

		(void)h2_write(s, zeros, n);
		v->down -= n;
		if (!v->down)
			h2_finish(s);
	}
}

static void served_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct fake *g = h2_arg(h2_stream_session(s));
	struct served *v = h2_stream_arg(s);

	v->up += n;
	g->up_bytes += n;
	if (v->is_echo)
		(void)h2_write(s, p, n);
	else
		h2_consume(s, n);
}

static void served_on_end(struct h2_stream *s)
{
	struct served *v = h2_stream_arg(s);

	v->has_end = true;
	if (v->is_echo)
		h2_finish(s);
}

static void served_on_drain(struct h2_stream *s, size_t n)
{
	struct served *v = h2_stream_arg(s);

	if (v->is_echo)
		h2_consume(s, n);
	else
		served_send(s);
}

static const struct h2_stream_ops served_ops = {
	.on_data = served_on_data,
	.on_end = served_on_end,
	.on_drain = served_on_drain,
	.on_close = served_free,
};

static void answer(struct h2_stream *s, const char *status, bool is_end)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":status", status);
	(void)h2_add(&m, "content-type", "text/plain");
	(void)h2_respond(s, &m, is_end);
}

static void fake_on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct fake *g = h2_arg(h);
	struct served *v = xcalloc(1, sizeof *v);
	const char *path = h2_get(m, ":path");

	g->has_token = g->has_token || h2_get(m, "x-access-token") || h2_get(m, "cookie");
	h2_accept(s, &served_ops, v);
	if (strcmp(path, "/health") == 0 || strcmp(path, "/space/init") == 0) {
		answer(s, "204", true);
	} else if (strcmp(path, "/echo") == 0) {
		v->is_echo = true;
		answer(s, "200", false);
	} else if (strcmp(path, "/bulk") == 0) {
		v->down = BULK;
		answer(s, "200", false);
		served_send(s);
	} else if (strcmp(path, "/early") == 0) {
		answer(s, "413", true);
	} else if (strcmp(path, "/reset") == 0) {
		h2_reset(s, H2_INTERNAL_ERROR);
	} else if (strcmp(path, "/cut") == 0) {
		answer(s, "200", false);
		(void)h2_write(s, "half", 4);
		g->held = s;
	} else {
		g->held = s; /* "/hold": no answer */
	}
	loop_stop(g->loop);
}

static void fake_on_end(struct h2 *h, int err)
{
	struct fake *g = h2_arg(h);

	(void)err;
	for (size_t i = 0; i < ARRAY_LEN(g->h2); i++)
		if (g->h2[i] == h)
			g->h2[i] = NULL;
	h2_free(h);
	loop_stop(g->loop);
}

static const struct h2_ops fake_server = {.on_request = fake_on_request, .on_end = fake_on_end};
static const struct h2_ops fake_client = {.on_end = fake_on_end};

static void egress_on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct fake *g = h2_stream_arg(s);

	g->egress_got = (unsigned)(h2_get(m, ":status")[0] - '0') * 100 + 3;
	EXPECT_STR("egress is refused", h2_get(m, ":status"), "403");
	loop_stop(g->loop);
}

static void egress_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	(void)p;
	h2_consume(s, n);
}

static void nothing_end(struct h2_stream *s)
{
	(void)s;
}

static void nothing_drain(struct h2_stream *s, size_t n)
{
	(void)s, (void)n;
}

static void nothing_close(struct h2_stream *s, uint32_t code)
{
	(void)s, (void)code;
}

static const struct h2_stream_ops egress_ops = {
	.on_head = egress_on_head,
	.on_data = egress_on_data,
	.on_end = nothing_end,
	.on_drain = nothing_drain,
	.on_close = nothing_close,
};

static void fake_sessions_drop(struct fake *g)
{
	for (size_t i = 0; i < ARRAY_LEN(g->h2); i++) {
		struct h2 *h = g->h2[i];

		g->h2[i] = NULL;
		h2_free(h);
	}
}

/* Begins after the host's request is there, so that an answer to it is one. A flood goes on as long
 * as the host reads: the first frames once, then the last frame for ever. */
static void raw_write(struct fake *g)
{
	uint8_t many[FLOOD_BYTES];
	size_t n = 0;

	if (!g->flood_n) {
		watch_set(g->watch[PORT_CONTROL], 0);
		(void)!write(g->fd[PORT_CONTROL], g->raw, g->raw_n);
		return;
	}
	if (!g->has_begun)
		(void)!write(g->fd[PORT_CONTROL], g->raw, g->raw_n);
	g->has_begun = true;
	while (n + g->flood_n <= sizeof many) {
		memcpy(many + n, g->raw + g->raw_n - g->flood_n, g->flood_n);
		n += g->flood_n;
	}
	if (g->part_n == 0)
		g->part_n = n;
	ssize_t sent = write(g->fd[PORT_CONTROL], many + n - g->part_n, g->part_n);

	if (sent > 0)
		g->part_n -= (size_t)sent;
	watch_set(g->watch[PORT_CONTROL], WATCH_READ | WATCH_WRITE);
}

static void fake_session(struct fake *g, size_t port, const uint8_t *early, size_t n)
{
	g->sessions++;
	if (g->mode == GUEST_RAW && port == PORT_CONTROL) {
		g->is_raw = true;
		return;
	}
	watch_set(g->watch[port], 0);
	if (port == PORT_CONTROL)
		g->h2[port] = h2_new(g->loop, g->fd[port], H2_SERVER, &fake_server, g, early, n);
	else
		g->h2[port] = h2_new(g->loop, g->fd[port], 0, &fake_client, g, early, n);
}

static void fake_port(struct fake *g, size_t port)
{
	uint8_t bytes[2048];
	uint8_t echo[PREFACE_SIZE];
	ssize_t n = read(g->fd[port], bytes, sizeof bytes);
	size_t used;

	if (g->is_raw && port == PORT_CONTROL) {
		raw_write(g);
		return;
	}
	if (n <= 0 || !preface_scan_step(&g->scan[port], bytes, (size_t)n, &used))
		return;
	preface_print(echo, g->nonce);
	if (write(g->fd[port], echo, sizeof echo) == (ssize_t)sizeof echo)
		fake_session(g, port, bytes + used, (size_t)n - used);
}

static void fake_on_control(void *arg, int events)
{
	(void)events;
	fake_port(arg, PORT_CONTROL);
}

static void fake_on_egress(void *arg, int events)
{
	(void)events;
	fake_port(arg, PORT_EGRESS);
}

static void fake_on_wake(void *arg, int events)
{
	struct fake *g = arg;
	uint8_t bytes[WAKE_SIZE];
	struct wake w;
	size_t used;
	ssize_t n = read(g->fd[PORT_WAKE], bytes, sizeof bytes);

	(void)events;
	if (n <= 0 || g->mode == GUEST_ABSENT ||
	    !wake_scan_step(&g->wake_scan, bytes, (size_t)n, &used, &w))
		return;
	fake_sessions_drop(g);
	g->is_raw = false;
	memcpy(g->nonce, w.nonce, sizeof g->nonce);
	for (size_t i = 0; i < ARRAY_LEN(g->scan); i++) {
		preface_scan_init(&g->scan[i], w.nonce);
		watch_set(g->watch[i], WATCH_READ);
	}
	wake_print(bytes, &w);
	if (write(g->fd[PORT_WAKE], bytes, sizeof bytes) < 0)
		EXPECT("the wake is echoed", false);
}

static void fake_start(struct fake *g, struct loop *l, const int fd[GUEST_PORTS])
{
	g->loop = l;
	for (size_t i = 0; i < GUEST_PORTS; i++)
		g->fd[i] = fd[i];
	wake_scan_init(&g->wake_scan);
	g->watch[PORT_CONTROL] = watch_new(l, fd[PORT_CONTROL], fake_on_control, g);
	g->watch[PORT_EGRESS] = watch_new(l, fd[PORT_EGRESS], fake_on_egress, g);
	g->watch[PORT_WAKE] = watch_new(l, fd[PORT_WAKE], fake_on_wake, g);
	watch_set(g->watch[PORT_WAKE], WATCH_READ);
}

/* --- the client --- */

struct asked {
	struct loop *loop;
	struct h2_stream *stream; /* NULL when closed */
	char status[8];
	size_t up; /* still to send */
	size_t got;
	size_t unread; /* not given back, when is_slow */
	bool is_slow;
	bool has_end;
	bool is_closed;
	uint32_t code;
};

static void asked_on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct asked *q = h2_stream_arg(s);

	(void)snprintf(q->status, sizeof q->status, "%s", h2_get(m, ":status"));
	loop_stop(q->loop);
}

static void asked_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct asked *q = h2_stream_arg(s);

	(void)p;
	q->got += n;
	if (q->is_slow)
		q->unread += n;
	else
		h2_consume(s, n);
	loop_stop(q->loop);
}

static void asked_on_end(struct h2_stream *s)
{
	struct asked *q = h2_stream_arg(s);

	q->has_end = true;
	loop_stop(q->loop);
}

static void asked_send(struct asked *q)
{
	static const uint8_t zeros[CHUNK];

	while (q->up && h2_room(q->stream) >= CHUNK) {
		size_t n = size_min(q->up, CHUNK);

		(void)h2_write(q->stream, zeros, n);
		q->up -= n;
		if (!q->up)
			h2_finish(q->stream);
	}
}

static void asked_on_drain(struct h2_stream *s, size_t n)
{
	(void)n;
	asked_send(h2_stream_arg(s));
}

static void asked_on_close(struct h2_stream *s, uint32_t code)
{
	struct asked *q = h2_stream_arg(s);

	q->stream = NULL;
	q->is_closed = true;
	q->code = code;
	loop_stop(q->loop);
}

static const struct h2_stream_ops asked_ops = {
	.on_head = asked_on_head,
	.on_data = asked_on_data,
	.on_end = asked_on_end,
	.on_drain = asked_on_drain,
	.on_close = asked_on_close,
};

/* --- all together --- */

struct bench {
	struct loop *loop;
	struct timer *deadline;
	char dir[32];
	int dirfd;
	int listening[2];
	int host[GUEST_PORTS];
	struct fake fake;
	struct relay *relay;
	struct guest *guest;
	int client_fd[2];
	struct h2 *client[2];
	unsigned ups;
	unsigned losses;
	bool is_gone;
};

static void on_deadline(void *arg)
{
	const char *says = arg;

	printf("%s: hangs\n", says);
	exit(EXIT_FAILURE);
}

static void on_up(void *arg, struct h2 *control)
{
	struct bench *b = arg;

	b->ups++;
	relay_guest_found(b->relay, control);
	loop_stop(b->loop);
}

static void on_lost(void *arg)
{
	struct bench *b = arg;

	b->losses++;
	relay_guest_lost(b->relay);
	loop_stop(b->loop);
}

static void on_gone(void *arg)
{
	struct bench *b = arg;

	b->is_gone = true;
	loop_stop(b->loop);
}

static const struct guest_ops guest_ops = {.on_up = on_up, .on_lost = on_lost, .on_gone = on_gone};

static void client_on_end(struct h2 *h, int err)
{
	(void)err;
	h2_free(h);
}

static const struct h2_ops client_ops = {.on_end = client_on_end};

static void side_open(struct bench *b, enum side side)
{
	const char *name = side == SIDE_CLIENT ? "daemon.sock" : "platform.sock";
	struct fail f = {0};

	if (sock_unix_listen(b->dirfd, name, SOCK_STREAM, &b->listening[side], &f) < 0 ||
	    sock_unix_connect(b->dirfd, name, SOCK_STREAM, &b->client_fd[side], &f) < 0) {
		printf("%s\n", f.text);
		exit(EXIT_FAILURE);
	}
	relay_listen(b->relay, side, b->listening[side]);
	b->client[side] = h2_new(b->loop, b->client_fd[side], 0, &client_ops, b, NULL, 0);
}

static void bench_open(struct bench *b, char *says, unsigned wait_ms)
{
	int peer[GUEST_PORTS];

	*b = (struct bench){.loop = loop_new()};
	b->deadline = timer_new(b->loop, on_deadline, says);
	timer_set(b->deadline, PATIENCE_S * 1000);
	(void)snprintf(b->dir, sizeof b->dir, "/tmp/relay.XXXXXX");
	if (!mkdtemp(b->dir))
		exit(EXIT_FAILURE);
	b->dirfd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < GUEST_PORTS; i++) {
		int pair[2];

		if (sock_pair(SOCK_STREAM, pair) < 0)
			exit(EXIT_FAILURE);
		b->host[i] = pair[0];
		peer[i] = pair[1];
	}
	fake_start(&b->fake, b->loop, peer);
	b->relay = relay_new(b->loop, TOKEN, wait_ms);
	side_open(b, SIDE_CLIENT);
	side_open(b, SIDE_PLATFORM);
}

static void bench_wake(struct bench *b)
{
	b->guest = guest_new(b->loop, b->host, RETRY_MS, &guest_ops, b);
}

static void on_last_turn(void *arg)
{
	loop_stop(arg);
}

static void bench_close(struct bench *b)
{
	for (size_t i = 0; i < ARRAY_LEN(b->client); i++)
		h2_free(b->client[i]);
	fake_sessions_drop(&b->fake);
	for (size_t i = 0; i < GUEST_PORTS; i++)
		watch_free(b->fake.watch[i]);
	guest_free(b->guest);
	relay_free(b->relay);
	timer_free(b->deadline);
	loop_later(b->loop, on_last_turn, b->loop); /* what the sessions still had to free */
	loop_run(b->loop);
	for (size_t i = 0; i < ARRAY_LEN(b->client); i++) {
		fd_drop(&b->client_fd[i]);
		fd_drop(&b->listening[i]);
	}
	for (size_t i = 0; i < GUEST_PORTS; i++) {
		fd_drop(&b->host[i]);
		fd_drop(&b->fake.fd[i]);
	}
	(void)unlinkat(b->dirfd, "daemon.sock", 0);
	(void)unlinkat(b->dirfd, "platform.sock", 0);
	fd_drop(&b->dirfd);
	(void)rmdir(b->dir);
	loop_free(b->loop);
}

static void ask(struct bench *b, struct asked *q, enum side side, const char *method,
		const char *path, size_t up)
{
	struct h2_message m = {0};

	q->loop = b->loop;
	q->up = up;
	(void)h2_add(&m, ":method", method);
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "envd");
	(void)h2_add(&m, ":path", path);
	(void)h2_add(&m, "x-access-token", TOKEN);
	(void)h2_add(&m, "cookie", "a=b");
	q->stream = h2_request(b->client[side], &m, up == 0, &asked_ops, q);
	EXPECT("the request goes out", q->stream != NULL);
	if (q->stream)
		asked_send(q);
}

static void wait_closed(struct bench *b, const struct asked *q)
{
	while (!q->is_closed)
		loop_run(b->loop);
}

static void wait_up(struct bench *b, unsigned ups)
{
	while (b->ups < ups)
		loop_run(b->loop);
}

#define BENCH(b, says)                                                                             \
	struct bench b;                                                                            \
	static char b##_says[] = says;                                                             \
	bench_open(&b, b##_says, 200)

static void test_honest(void)
{
	struct asked health = {0}, init = {0}, echo = {0}, bulk = {0}, early = {0};

	BENCH(b, "honest guest");
	bench_wake(&b);
	wait_up(&b, 1);
	ask(&b, &health, SIDE_CLIENT, "GET", "/health", 0);
	ask(&b, &init, SIDE_PLATFORM, "POST", "/space/init", CHUNK);
	ask(&b, &echo, SIDE_CLIENT, "POST", "/echo", BULK);
	ask(&b, &bulk, SIDE_CLIENT, "GET", "/bulk", 0);
	ask(&b, &early, SIDE_CLIENT, "POST", "/early", BULK);
	wait_closed(&b, &health);
	wait_closed(&b, &init);
	wait_closed(&b, &echo);
	wait_closed(&b, &bulk);
	wait_closed(&b, &early);
	EXPECT_STR("health", health.status, "204");
	EXPECT_STR("init by the platform", init.status, "204");
	EXPECT_STR("echo", echo.status, "200");
	EXPECT_EQ("echo is whole", echo.got, BULK);
	EXPECT("echo ended well", echo.has_end && echo.code == H2_NO_ERROR);
	EXPECT_EQ("bulk is whole", bulk.got, BULK);
	EXPECT_STR("early answer", early.status, "413");
	EXPECT("early answer is whole", early.has_end);
	EXPECT("no credential reached the guest", !b.fake.has_token);
	while (relay_exchanges(b.relay))
		loop_run(b.loop);
	bench_close(&b);
}

static void test_refusals(void)
{
	static const struct {
		const char *says;
		enum side side;
		const char *method;
		const char *path;
		const char *want;
	} cases[] = {
		{"platform's path", SIDE_CLIENT, "POST", "/space/init", "404"},
		{"client's path", SIDE_PLATFORM, "POST", "/process.Process/Start", "404"},
		{"init", SIDE_CLIENT, "POST", "/init", "404"},
	};

	BENCH(b, "refusals");
	bench_wake(&b);
	wait_up(&b, 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct asked q = {0};

		ask(&b, &q, cases[i].side, cases[i].method, cases[i].path, CHUNK);
		wait_closed(&b, &q);
		EXPECT_STR(cases[i].says, q.status, cases[i].want);
		EXPECT(cases[i].says, q.got > 0 && q.has_end);
	}
	EXPECT_EQ("the guest saw none of them", b.fake.up_bytes, 0);
	bench_close(&b);
}

static void test_early_and_waiting(void)
{
	struct asked early = {0};
	struct asked late[RELAY_WAITING_MAX + 1] = {0};

	BENCH(b, "requests before the guest");
	ask(&b, &early, SIDE_CLIENT, "POST", "/echo", BULK);
	bench_wake(&b);
	wait_closed(&b, &early);
	EXPECT_EQ("an early request is whole", early.got, BULK);
	bench_close(&b);

	static char says[] = "guest never there";
	bench_open(&b, says, 200);
	b.fake.mode = GUEST_ABSENT;
	bench_wake(&b);
	for (size_t i = 0; i < ARRAY_LEN(late); i++)
		ask(&b, &late[i], SIDE_CLIENT, "GET", "/hold", 0);
	for (size_t i = 0; i < ARRAY_LEN(late); i++)
		wait_closed(&b, &late[i]);
	EXPECT_STR("the last that may wait", late[RELAY_WAITING_MAX - 1].status, "502");
	EXPECT_STR("one more", late[RELAY_WAITING_MAX].status, "503");
	while (relay_exchanges(b.relay))
		loop_run(b.loop);
	bench_close(&b);
}

static void test_resets(void)
{
	struct asked gone = {0}, reset = {0}, cut = {0}, left = {0};

	BENCH(b, "resets");
	bench_wake(&b);
	wait_up(&b, 1);
	ask(&b, &reset, SIDE_CLIENT, "GET", "/reset", 0);
	wait_closed(&b, &reset);
	EXPECT_STR("reset before a head", reset.status, "502");
	ask(&b, &cut, SIDE_CLIENT, "GET", "/cut", 0);
	while (cut.got < 4)
		loop_run(b.loop);
	h2_reset(b.fake.held, H2_INTERNAL_ERROR);
	wait_closed(&b, &cut);
	EXPECT("a cut answer is not finished", !cut.has_end && cut.code != H2_NO_ERROR);
	b.fake.closed = 0;
	ask(&b, &gone, SIDE_CLIENT, "GET", "/hold", 0);
	while (!b.fake.held)
		loop_run(b.loop);
	h2_reset(gone.stream, H2_CANCEL);
	while (!b.fake.closed)
		loop_run(b.loop);
	EXPECT_EQ("a client's reset reaches the guest", b.fake.closed, 1);
	ask(&b, &left, SIDE_CLIENT, "GET", "/hold", 0);
	while (!b.fake.held)
		loop_run(b.loop);
	for (size_t i = 0; i < GUEST_PORTS; i++)
		(void)shutdown(b.fake.fd[i], SHUT_RDWR);
	wait_closed(&b, &left);
	EXPECT_STR("QEMU ended before an answer", left.status, "502");
	while (!b.is_gone)
		loop_run(b.loop);
	bench_close(&b);
}

static void test_slow_reader(void)
{
	struct asked slow = {.is_slow = true}, other = {0};

	BENCH(b, "slow reader");
	bench_wake(&b);
	wait_up(&b, 1);
	ask(&b, &slow, SIDE_CLIENT, "GET", "/bulk", 0);
	while (slow.got < H2_STREAM_WINDOW)
		loop_run(b.loop);
	ask(&b, &other, SIDE_CLIENT, "POST", "/echo", BULK);
	wait_closed(&b, &other);
	EXPECT_EQ("another stream is not held up", other.got, BULK);
	EXPECT_EQ("one window, not more", slow.got, H2_STREAM_WINDOW);
	slow.is_slow = false;
	h2_consume(slow.stream, slow.unread);
	wait_closed(&b, &slow);
	EXPECT_EQ("then the rest", slow.got, BULK);
	bench_close(&b);
}

static void test_stream_limit(void)
{
	static struct asked q[REQUESTS];
	struct asked platform = {0};

	memset(q, 0, sizeof q);
	BENCH(b, "stream limit");
	bench_wake(&b);
	wait_up(&b, 1);
	for (size_t i = 0; i <= RELAY_STREAMS_MAX; i++)
		ask(&b, &q[i], SIDE_CLIENT, "GET", "/hold", 0);
	wait_closed(&b, &q[RELAY_STREAMS_MAX]);
	EXPECT_STR("one more than may be", q[RELAY_STREAMS_MAX].status, "429");
	EXPECT("the last that may be is open", !q[RELAY_STREAMS_MAX - 1].is_closed);
	ask(&b, &platform, SIDE_PLATFORM, "POST", "/space/init", 0);
	wait_closed(&b, &platform);
	EXPECT_STR("the platform still gets through", platform.status, "204");
	bench_close(&b);
}

static void test_egress(void)
{
	struct h2_message m = {0};

	BENCH(b, "egress");
	bench_wake(&b);
	wait_up(&b, 1);
	while (!b.fake.h2[PORT_EGRESS])
		loop_run(b.loop);
	(void)h2_add(&m, ":method", "CONNECT");
	(void)h2_add(&m, ":authority", "example.org:443");
	EXPECT("a guest may ask",
	       h2_request(b.fake.h2[PORT_EGRESS], &m, false, &egress_ops, &b.fake) != NULL);
	while (!b.fake.egress_got)
		loop_run(b.loop);
	bench_close(&b);
}

/* --- hostile guests: the handshake, then these bytes --- */

#define SETTINGS  "\0\0\0\4\0\0\0\0\0"
#define ACK       "\0\0\0\4\1\0\0\0\0"
#define HEAD(len) "\0\0" len "\1\4\0\0\0\1" /* HEADERS, END_HEADERS, stream 1 */
#define RAW(text) text, sizeof text - 1

static const struct {
	const char *says;
	const char *raw;
	size_t n;
	size_t flood_n;
	const char *status; /* of the request; NULL: none yet after the session was lost */
	bool is_lost;       /* the session ends */
} hostile[] = {
	{"garbage", RAW("GET / HTTP/1.1\r\n\r\nxxxxxxxxxxxxxxxxxxxxxx"), 0, "502", true},
	{"a frame of 16 MiB", RAW(SETTINGS "\xff\xff\xff\0\0\0\0\0\1"), 0, "502", true},
	{"unknown frame type", RAW(SETTINGS "\0\0\0\x42\0\0\0\0\0"), 0, "502", true},
	{"push", RAW(SETTINGS "\0\0\4\5\4\0\0\0\1\0\0\0\2"), 0, "502", true},
	{"settings flood", RAW(SETTINGS), 9, "502", true},
	{"ping flood", RAW(SETTINGS "\0\0\x8\6\0\0\0\0\0abcdefgh"), 17, "502", true},
	{"window flood", RAW(SETTINGS "\0\0\4\x8\0\0\0\0\0\0\0\0\1"), 13, "502", true},
	{"settings of a new value each time", RAW(SETTINGS "\0\0\6\4\0\0\0\0\0\0\1\0\0\0\0"), 15,
	 "502", true},
	{"DATA nobody asked for", RAW(SETTINGS ACK "\0\0\2\0\0\0\0\0\1hi"), 11, "502", true},
	{"broken HPACK", RAW(SETTINGS ACK HEAD("\4") "\xff\xff\xff\xff"), 0, "502", true},
	{"head of another stream", RAW(SETTINGS ACK "\0\0\1\1\4\0\0\0\x63\x88"), 0, "502", true},
	{"status 99", RAW(SETTINGS ACK HEAD("\5") "\x08\x03\x30\x39\x39"), 0, "502", false},
	{"status 600", RAW(SETTINGS ACK HEAD("\x5") "\x08\x03\x36\x30\x30"), 0, "502", false},
	{"status twice", RAW(SETTINGS ACK HEAD("\2") "\x88\x88"), 0, "502", false},
	{"no status", RAW(SETTINGS ACK HEAD("\5") "\0\1a\1b"), 0, "502", false},
	{"capital name", RAW(SETTINGS ACK HEAD("\x6") "\x88\0\1A\1b"), 0, "502", false},
	{"line end in a value", RAW(SETTINGS ACK HEAD("\x8") "\x88\0\1a\3b\r\n"), 0, "502", false},
	{"goodbye", RAW(SETTINGS "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\0"), 0, "502", true},
	{"length that lies, short",
	 RAW(SETTINGS ACK HEAD("\5") "\x88\x0f\x0d\1\x35"
				     "\0\0\2\0\1\0\0\0\1hi"),
	 0, NULL, false},
};

static void test_hostile(void)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		struct asked q = {0};
		struct asked after = {0};
		static char says[64];
		struct bench b;

		(void)snprintf(says, sizeof says, "%s", hostile[i].says);
		bench_open(&b, says, 5000);
		b.fake.mode = GUEST_RAW;
		b.fake.raw = hostile[i].raw;
		b.fake.raw_n = hostile[i].n;
		b.fake.flood_n = hostile[i].flood_n;
		ask(&b, &q, SIDE_CLIENT, "GET", "/hold", 0);
		bench_wake(&b);
		wait_up(&b, 1);
		wait_closed(&b, &q);
		if (hostile[i].status)
			EXPECT_STR(says, q.status, hostile[i].status);
		else
			EXPECT(says, q.code != H2_NO_ERROR && !q.has_end);
		if (hostile[i].is_lost) {
			b.fake.mode = GUEST_HONEST;
			wait_up(&b, 2);
			ask(&b, &after, SIDE_CLIENT, "GET", "/health", 0);
			wait_closed(&b, &after);
			EXPECT_STR("an honest session follows", after.status, "204");
		}
		EXPECT_EQ(says, b.losses, hostile[i].is_lost ? 1 : 0);
		bench_close(&b);
	}
}

int main(void)
{
	log_init("relay_test", LOG_ERROR, STDERR_FILENO);
	(void)signal(SIGPIPE, SIG_IGN);
	test_honest();
	test_refusals();
	test_early_and_waiting();
	test_resets();
	test_slow_reader();
	test_stream_limit();
	test_egress();
	test_hostile();
	return test_done();
}
