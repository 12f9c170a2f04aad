/* The whole of space-daemon but its main, between a client over a real socket and a guest made of
 * net/h2: an honest one, and hostile ones that write raw bytes. Nothing may crash, hang or stay. */
#include "daemon/guest.h"
#include "daemon/relay.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/test.h"
#include "daemon/test_peers.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#define PATIENCE_S 30u
#define RETRY_MS   50u
#define REQUESTS   (RELAY_STREAMS_MAX + 8u)

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
	b->relay = relay_new(b->loop, PEER_TOKEN, wait_ms);
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
	fake_stop(&b->fake);
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
	asked_start(&health, b.loop, b.client[SIDE_CLIENT], "GET", "/health", 0);
	asked_start(&init, b.loop, b.client[SIDE_PLATFORM], "POST", "/space/init", PEER_CHUNK);
	asked_start(&echo, b.loop, b.client[SIDE_CLIENT], "POST", "/echo", PEER_BULK);
	asked_start(&bulk, b.loop, b.client[SIDE_CLIENT], "GET", "/bulk", 0);
	asked_start(&early, b.loop, b.client[SIDE_CLIENT], "POST", "/early", PEER_BULK);
	wait_closed(&b, &health);
	wait_closed(&b, &init);
	wait_closed(&b, &echo);
	wait_closed(&b, &bulk);
	wait_closed(&b, &early);
	EXPECT_STR("health", health.status, "204");
	EXPECT_STR("init by the platform", init.status, "204");
	EXPECT_STR("echo", echo.status, "200");
	EXPECT_EQ("echo is whole", echo.got, PEER_BULK);
	EXPECT("echo ended well", echo.has_end && echo.code == H2_NO_ERROR);
	EXPECT_EQ("bulk is whole", bulk.got, PEER_BULK);
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

		asked_start(&q, b.loop, b.client[cases[i].side], cases[i].method, cases[i].path,
			    PEER_CHUNK);
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
	asked_start(&early, b.loop, b.client[SIDE_CLIENT], "POST", "/echo", PEER_BULK);
	bench_wake(&b);
	wait_closed(&b, &early);
	EXPECT_EQ("an early request is whole", early.got, PEER_BULK);
	bench_close(&b);

	static char says[] = "guest never there";
	bench_open(&b, says, 200);
	b.fake.mode = GUEST_ABSENT;
	bench_wake(&b);
	for (size_t i = 0; i < ARRAY_LEN(late); i++)
		asked_start(&late[i], b.loop, b.client[SIDE_CLIENT], "GET", "/hold", 0);
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
	asked_start(&reset, b.loop, b.client[SIDE_CLIENT], "GET", "/reset", 0);
	wait_closed(&b, &reset);
	EXPECT_STR("reset before a head", reset.status, "502");
	asked_start(&cut, b.loop, b.client[SIDE_CLIENT], "GET", "/cut", 0);
	while (cut.got < 4)
		loop_run(b.loop);
	h2_reset(b.fake.held, H2_INTERNAL_ERROR);
	wait_closed(&b, &cut);
	EXPECT("a cut answer is not finished", !cut.has_end && cut.code != H2_NO_ERROR);
	b.fake.closed = 0;
	asked_start(&gone, b.loop, b.client[SIDE_CLIENT], "GET", "/hold", 0);
	while (!b.fake.held)
		loop_run(b.loop);
	h2_reset(gone.stream, H2_CANCEL);
	while (!b.fake.closed)
		loop_run(b.loop);
	EXPECT_EQ("a client's reset reaches the guest", b.fake.closed, 1);
	asked_start(&left, b.loop, b.client[SIDE_CLIENT], "GET", "/hold", 0);
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
	asked_start(&slow, b.loop, b.client[SIDE_CLIENT], "GET", "/bulk", 0);
	while (slow.got < H2_STREAM_WINDOW)
		loop_run(b.loop);
	asked_start(&other, b.loop, b.client[SIDE_CLIENT], "POST", "/echo", PEER_BULK);
	wait_closed(&b, &other);
	EXPECT_EQ("another stream is not held up", other.got, PEER_BULK);
	EXPECT_EQ("one window, not more", slow.got, H2_STREAM_WINDOW);
	slow.is_slow = false;
	h2_consume(slow.stream, slow.unread);
	wait_closed(&b, &slow);
	EXPECT_EQ("then the rest", slow.got, PEER_BULK);
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
		asked_start(&q[i], b.loop, b.client[SIDE_CLIENT], "GET", "/hold", 0);
	wait_closed(&b, &q[RELAY_STREAMS_MAX]);
	EXPECT_STR("one more than may be", q[RELAY_STREAMS_MAX].status, "429");
	EXPECT("the last that may be is open", !q[RELAY_STREAMS_MAX - 1].is_closed);
	asked_start(&platform, b.loop, b.client[SIDE_PLATFORM], "POST", "/space/init", 0);
	wait_closed(&b, &platform);
	EXPECT_STR("the platform still gets through", platform.status, "204");
	bench_close(&b);
}

static void test_egress(void)
{
	BENCH(b, "egress");
	bench_wake(&b);
	wait_up(&b, 1);
	while (!b.fake.h2[PORT_EGRESS])
		loop_run(b.loop);
	fake_ask_egress(&b.fake);
	while (!*b.fake.egress_got)
		loop_run(b.loop);
	EXPECT_STR("egress is refused", b.fake.egress_got, "403");
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
		asked_start(&q, b.loop, b.client[SIDE_CLIENT], "GET", "/hold", 0);
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
			asked_start(&after, b.loop, b.client[SIDE_CLIENT], "GET", "/health", 0);
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
