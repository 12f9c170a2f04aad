/* A server in a thread of its own, raw sockets in this one. What the server does with a request is
 * chosen by its path; what it sees of an exchange comes back as lines through a pipe, so that
 * nothing here waits for time to pass. */
#include "base/clock.h"
#include "base/test.h"
#include "net/http_internal.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DEADLINE_MS 20000
#define BULK        (64u * 1024 * 1024)

static struct loop *loop;
static struct http_server *server;
static uint16_t port;
static int event_fd[2]; /* server -> test */

/* --- the server's side --- */

struct job {
	struct http_exchange *x;
	uint64_t got;
	uint64_t to_send;
	bool is_echo, is_sink, is_slow;
	size_t held;
	struct timer *timer;
	char name[16];
};

static void event(const char *what, const char *name, uint64_t n)
{
	char line[64];
	int len = snprintf(line, sizeof line, "%s %s %" PRIu64 "\n", what, name, n);

	if (write(event_fd[1], line, (size_t)len) != len)
		abort();
}

static void pump(struct job *j)
{
	static const uint8_t p[16384] = "pattern";
	size_t n;

	while (j->to_send && (n = http_room(j->x)) > 0) {
		n = size_min(size_min(n, sizeof p), (size_t)j->to_send);
		if (http_write(j->x, p, n) < 0)
			abort();
		j->to_send -= n;
		if (!j->to_send)
			http_finish(j->x);
	}
}

static void on_slow(void *arg)
{
	struct job *j = arg;
	size_t n = j->held;

	j->held = 0;
	http_consume(j->x, n);
}

static void on_data(struct http_exchange *x, const uint8_t *p, size_t n)
{
	struct job *j = http_exchange_arg(x);

	j->got += n;
	j->held += n;
	if (j->held > HTTP_WINDOW)
		event("window", j->name, j->held);
	if (j->is_echo && http_write(x, p, n) < 0)
		abort();
	if (j->is_sink) {
		j->held -= n;
		http_consume(x, n);
	}
	if (j->is_slow && !timer_is_set(j->timer))
		timer_set(j->timer, 1);
	if (!j->is_echo && !j->is_sink && !j->is_slow && j->held == HTTP_WINDOW)
		event("full", j->name, j->held);
}

static void on_end(struct http_exchange *x)
{
	struct job *j = http_exchange_arg(x);
	char text[32];

	if (j->is_echo) {
		http_finish(x);
	} else if (j->is_sink || j->is_slow) {
		(void)snprintf(text, sizeof text, "%" PRIu64, j->got);
		http_respond_full(x, 200, "text/plain", text, strlen(text));
	}
}

static void on_drain(struct http_exchange *x, size_t n)
{
	struct job *j = http_exchange_arg(x);

	if (j->is_echo) {
		j->held -= n;
		http_consume(x, n);
	}
	pump(j);
}

static void on_close(struct http_exchange *x, bool is_aborted)
{
	struct job *j = http_exchange_arg(x);

	event(is_aborted ? "aborted" : "done", j->name, j->got);
	timer_free(j->timer);
	free(j);
}

static const struct http_exchange_ops exchange_ops = {
	.on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_close = on_close};

static bool path_is(const struct http1_request *r, const char *path)
{
	return r->target.n == strlen(path) && memcmp(r->target.p, path, r->target.n) == 0;
}

static void streams_start(struct job *j, const struct http1_request *r)
{
	static const struct http_field bad = {"X", "a\r\nb"};
	static const struct http_field framing = {"Content-Length", "5"};
	struct http_exchange *x = j->x;

	if (path_is(r, "/echo")) {
		j->is_echo = true;
		EXPECT_EQ("a line break in a field", http_respond(x, 200, &bad, 1, 1), -EINVAL);
		EXPECT_EQ("a field of framing", http_respond(x, 200, &framing, 1, 1), -EINVAL);
		EXPECT_EQ("no room before the head", http_room(x), 0);
		EXPECT_EQ("respond", http_respond(x, 200, NULL, 0, HTTP_CHUNKED), 0);
		EXPECT_EQ("twice", http_respond(x, 200, NULL, 0, HTTP_CHUNKED), -EALREADY);
		EXPECT_EQ("over the queue", http_write(x, "", HTTP_QUEUE + 1), -ENOBUFS);
	}
	j->is_sink = path_is(r, "/sink");
	if (path_is(r, "/slow")) {
		j->is_slow = true;
		j->timer = timer_new(loop, on_slow, j);
	}
	if (path_is(r, "/bulk") || path_is(r, "/sized")) {
		j->to_send = BULK;
		(void)http_respond(x, 200, NULL, 0, path_is(r, "/sized") ? BULK : HTTP_CHUNKED);
		pump(j);
	}
	if (path_is(r, "/short") || path_is(r, "/cut")) {
		(void)http_respond(x, 200, NULL, 0, path_is(r, "/short") ? 10 : HTTP_CHUNKED);
		(void)http_write(x, "12345", 5);
		if (path_is(r, "/short"))
			EXPECT_EQ("longer than promised", http_write(x, "123456", 6), -ENOBUFS);
		if (path_is(r, "/short"))
			http_finish(x);
		else
			http_abort(x);
	}
	if (path_is(r, "/early"))
		http_respond_full(x, 413, "text/plain", "too long", 8);
}

static void on_request(void *arg, struct http_exchange *x, const struct http1_request *r)
{
	struct job *j;

	(void)arg;
	if (path_is(r, "/hello")) {
		http_respond_full(x, 200, "text/plain", "hello", 5);
		return;
	}
	if (path_is(r, "/empty")) {
		http_respond_full(x, 204, NULL, NULL, 0);
		return;
	}
	if (path_is(r, "/big")) {
		char *p = calloc(1, HTTP_QUEUE * 4);

		http_respond_full(x, 200, "text/plain", p, HTTP_QUEUE * 4);
		free(p);
		return;
	}
	if (path_is(r, "/none"))
		return;
	if (path_is(r, "/quit")) {
		http_server_free(server);
		loop_stop(loop);
		return;
	}
	j = calloc(1, sizeof *j);
	j->x = x;
	memcpy(j->name, r->target.p + 1, size_min(r->target.n - 1, sizeof j->name - 1));
	http_exchange_set(x, &exchange_ops, j);
	streams_start(j, r);
}

static const struct http_server_ops server_ops = {.on_request = on_request};

static void *server_run(void *arg)
{
	(void)arg;
	loop_run(loop);
	return NULL;
}

/* --- the client's side --- */

static int dial(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = DEADLINE_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
		abort();
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	return fd;
}

static void say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		printf("cannot send: %s\n", strerror(errno));
}

/* Reads until the client's end or, when `until` is given, that text. Returns the last errno or
 * 0. */
static int hear(int fd, char *dst, size_t max, const char *until)
{
	size_t n = 0;
	ssize_t got;

	dst[0] = '\0';
	while (n < max - 1) {
		got = recv(fd, dst + n, max - 1 - n, 0);
		if (got <= 0)
			return got < 0 ? errno : 0;
		n += (size_t)got;
		dst[n] = '\0';
		if (until && strstr(dst, until))
			return 0;
	}
	return EMSGSIZE;
}

/* Without the Date, which changes. */
static void undate(char *text)
{
	char *at;

	while ((at = strstr(text, "Date: ")) != NULL) {
		char *end = strstr(at, "\r\n");

		EXPECT("a date has 29 characters", end - at == 35);
		memmove(at, end + 2, strlen(end + 2) + 1);
	}
}

static bool next_event(char *line, size_t size)
{
	size_t n = 0;

	for (;;) {
		struct pollfd p = {.fd = event_fd[0], .events = POLLIN};

		if (n + 1 >= size || poll(&p, 1, DEADLINE_MS) != 1 ||
		    read(event_fd[0], line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
}

static void expect_event(const char *says, const char *want)
{
	char line[64] = "";

	(void)next_event(line, sizeof line);
	EXPECT_STR(says, line, want);
}

#define H(rest) "HTTP/1.1 " rest
#define HOST    "Host: a\r\n"

static const struct {
	const char *says;
	const char *in;
	const char *want;
	const char *event;
} cases[] = {
	{"whole answer, then the next request, then close",
	 "GET /hello HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST
	 "Connection: close\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
		 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
		   "close\r\n\r\nhello"),
	 NULL},
	{"HTTP/1.0 closes", "GET /hello HTTP/1.0\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
	   "close\r\n\r\nhello"),
	 NULL},
	{"HTTP/1.0 keeps when asked to",
	 "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /hello HTTP/1.0\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
	   "keep-alive\r\n\r\nhello") H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
					"5\r\nConnection: close\r\n\r\nhello"),
	 NULL},
	{"HEAD has no body, and its connection goes on",
	 "HEAD /hello HTTP/1.1\r\n" HOST "\r\nHEAD /hello HTTP/1.0\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n")
		 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
		   "close\r\n\r\n"),
	 NULL},
	{"HEAD of a stream", "HEAD /bulk HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
	 H("200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"), "done bulk 0"},
	{"204", "GET /empty HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
	 H("204 No Content\r\nConnection: close\r\n\r\n"), NULL},
	{"chunked in, chunked out",
	 "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	 "3\r\nabc\r\n0\r\n\r\n",
	 H("200 OK\r\nTransfer-Encoding: chunked\r\nConnection: "
	   "close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
	 "done echo 3"},
	{"length in, to HTTP/1.0 until the close",
	 "POST /echo HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
	 H("200 OK\r\nConnection: close\r\n\r\nabc"), "done echo 3"},
	{"the rest of a short unwanted body is read over",
	 "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nabcdGET /hello HTTP/1.0\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
		 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
		   "close\r\n\r\nhello"),
	 NULL},
	{"after an unwanted body of unknown length the connection ends",
	 "POST /hello HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "4\r\nabcd\r\n0\r\n\r\nGET /hello HTTP/1.0\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
	   "close\r\n\r\nhello"),
	 NULL},
	{"Expect: 100-continue when the body is wanted",
	 "POST /sink HTTP/1.1\r\n" HOST
	 "Expect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
	 H("100 Continue\r\n\r\n") H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
				     "1\r\nConnection: close\r\n\r\n3"),
	 "done sink 3"},
	{"and not when it is not; then the connection ends",
	 "POST /hello HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
	 H("200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: "
	   "close\r\n\r\nhello"),
	 NULL},
	{"nobody took it", "GET /none HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
	 H("500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), NULL},
	{"an early answer", "POST /early HTTP/1.1\r\n" HOST "Content-Length: 9999999\r\n\r\nabc",
	 H("413 Content Too Large\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n"
	   "Connection: close\r\n\r\ntoo long"),
	 "done early 0"},
};

static void test_cases(void)
{
	static char got[65536];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fd = dial();

		say(fd, cases[i].in);
		EXPECT_EQ(cases[i].says, hear(fd, got, sizeof got, NULL), 0);
		undate(got);
		EXPECT_STR(cases[i].says, got, cases[i].want);
		(void)close(fd);
		if (cases[i].event)
			expect_event(cases[i].says, cases[i].event);
	}
}

/* The same, byte by byte. */
static void test_dripped(void)
{
	static char got[65536];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *in = cases[i].in;
		int fd = dial();
		char one[2] = "";

		if (strstr(cases[i].says, "ends")) {
			(void)close(fd); /* what it would say depends on how fast it is told */
			continue;
		}
		for (; *in; in++) {
			one[0] = *in;
			say(fd, one);
		}
		EXPECT_EQ(cases[i].says, hear(fd, got, sizeof got, NULL), 0);
		undate(got);
		if (!strstr(cases[i].want, "chunked\r\n") && !strstr(cases[i].want, "413"))
			EXPECT_STR(cases[i].says, got, cases[i].want);
		(void)close(fd);
		if (cases[i].event && !strstr(cases[i].event, "early"))
			expect_event(cases[i].says, cases[i].event);
		else if (cases[i].event)
			expect_event(cases[i].says, "done early 0");
	}
}

static const struct {
	const char *says;
	const char *in;
	const char *status;
} bad[] = {
	{"no host", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
	{"both lengths",
	 "POST /sink HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
	 "HTTP/1.1 400 "},
	{"another version", "GET / HTTP/2.0\r\n" HOST "\r\n", "HTTP/1.1 505 "},
	{"not HTTP", "\x16\x03\x01\x02", "HTTP/1.1 400 "},
	{"a second request that is none", "GET /hello HTTP/1.1\r\n" HOST "\r\nrubbish\r\n\r\n",
	 "HTTP/1.1 200 "},
};

static void test_bad(void)
{
	static char got[65536];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int fd = dial();

		say(fd, bad[i].in);
		EXPECT_EQ(bad[i].says, hear(fd, got, sizeof got, NULL), 0);
		EXPECT(bad[i].says, strncmp(got, bad[i].status, strlen(bad[i].status)) == 0);
		EXPECT(bad[i].says, strstr(got, "Connection: close\r\n") != NULL);
		EXPECT(bad[i].says, strstr(got, "{\"code\":") != NULL);
		(void)close(fd);
	}
}

static void test_broken_bodies(void)
{
	static char got[65536];
	int fd = dial();

	say(fd, "POST /sink HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\naXX");
	EXPECT_EQ("malformed chunk", hear(fd, got, sizeof got, NULL), 0);
	EXPECT("is told", strncmp(got, "HTTP/1.1 400 ", 13) == 0);
	expect_event("to the owner too", "aborted sink 1");
	(void)close(fd);
	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nXX");
	EXPECT_EQ("after the head only a cut is possible", hear(fd, got, sizeof got, NULL),
		  ECONNRESET);
	expect_event("aborted", "aborted echo 1");
	(void)close(fd);
	for (size_t i = 0; i < 2; i++) {
		fd = dial();
		say(fd, i ? "GET /cut HTTP/1.1\r\n" HOST "\r\n"
			  : "GET /short HTTP/1.1\r\n" HOST "\r\n");
		EXPECT_EQ("what is not whole is cut", hear(fd, got, sizeof got, NULL), ECONNRESET);
		expect_event("cut", i ? "aborted cut 0" : "aborted short 0");
		(void)close(fd);
	}
}

static void test_gone(void)
{
	static char got[1024];
	int fd = dial();

	say(fd, "GET /late HTTP/1.1\r\n" HOST "\r\n");
	(void)close(fd);
	expect_event("while the owner works", "aborted late 0");
	fd = dial();
	say(fd, "POST /sink HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
	(void)close(fd);
	expect_event("in the middle of a body", "aborted sink 3");
	fd = dial();
	say(fd, "GET /late HTTP/1.1\r\n" HOST "\r\n");
	(void)shutdown(fd, SHUT_WR);
	expect_event("half-closed", "aborted late 0");
	(void)close(fd);
	fd = dial();
	say(fd, "POST /slow HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
	(void)hear(fd, got, sizeof got, "\r\n3");
	expect_event("control", "done slow 3");
	(void)close(fd);
}

/* A reset while the server may not read: the window is full. */
static void test_gone_while_full(void)
{
	static char body[HTTP_WINDOW];
	struct linger hard = {.l_onoff = 1};
	int fd = dial();

	say(fd, "POST /stuck HTTP/1.1\r\n" HOST "Content-Length: 99999999\r\n\r\n");
	EXPECT_EQ("a window", send(fd, body, sizeof body, MSG_NOSIGNAL), (ssize_t)sizeof body);
	expect_event("is taken", "full stuck 262144");
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	(void)close(fd);
	expect_event("gone", "aborted stuck 262144");
}

static size_t rss_kib(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss;
}

#if TEST_HAS_ASAN
#define GROWTH_MAX_KIB SIZE_MAX
#else
#define GROWTH_MAX_KIB 8192u
#endif

static uint64_t hear_all(int fd)
{
	static char p[65536];
	uint64_t sum = 0;
	ssize_t got;

	while ((got = recv(fd, p, sizeof p, 0)) > 0)
		sum += (uint64_t)got;
	return sum;
}

static void test_bulk(void)
{
	static const char body[65536];
	static char got[1024];
	size_t before = rss_kib();
	int fd = dial();

	say(fd, "GET /sized HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	(void)hear(fd, got, 2, NULL); /* the first byte */
	EXPECT("bulk down", hear_all(fd) >= BULK);
	expect_event("down", "done sized 0");
	(void)close(fd);
	fd = dial();
	say(fd, "GET /bulk HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	EXPECT("bulk down, chunked", hear_all(fd) > BULK);
	expect_event("down", "done bulk 0");
	(void)close(fd);
	for (size_t k = 0; k < 2; k++) {
		fd = dial();
		(void)snprintf(got, sizeof got,
			       "POST /%s HTTP/1.1\r\n" HOST
			       "Content-Length: %u\r\nConnection: close\r\n\r\n",
			       k ? "slow" : "sink", BULK);
		say(fd, got);
		for (size_t n = 0; n < BULK; n += sizeof body)
			if (send(fd, body, sizeof body, MSG_NOSIGNAL) != (ssize_t)sizeof body)
				printf("short send\n");
		EXPECT_EQ("up", hear(fd, got, sizeof got, NULL), 0);
		EXPECT("all of it", strstr(got, "\r\n\r\n67108864") != NULL);
		expect_event("up", k ? "done slow 67108864" : "done sink 67108864");
		(void)close(fd);
	}
	fd = dial();
	say(fd, "GET /big HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	EXPECT("an answer longer than the queue", hear_all(fd) > HTTP_QUEUE * 4);
	(void)close(fd);
	EXPECT("memory is flat", rss_kib() - before <= GROWTH_MAX_KIB);
}

/* A client that reads nothing holds one queue, and its owner is told to wait. */
static void test_unread(void)
{
	int fd = dial();

	say(fd, "GET /bulk HTTP/1.1\r\n" HOST "\r\n");
	(void)shutdown(fd, SHUT_RD);
	(void)close(fd);
	expect_event("not read", "aborted bulk 0");
}

/* The 413 reaches a client that goes on sending for a while. */
static void test_early_while_sending(void)
{
	static const char body[65536];
	static char got[1024];
	int fd = dial();

	say(fd, "POST /early HTTP/1.1\r\n" HOST "Content-Length: 8000000\r\n\r\n");
	expect_event("answered at once", "done early 0");
	for (size_t n = 0; n < 64; n++)
		EXPECT_EQ("sends", send(fd, body, sizeof body, MSG_NOSIGNAL), (ssize_t)sizeof body);
	EXPECT_EQ("reads", hear(fd, got, sizeof got, NULL), 0);
	EXPECT("the answer", strstr(got, "too long") != NULL);
	(void)close(fd);
}

/* Opens HTTP_CONNECTIONS_MAX connections and says `text` on each. */
static void crowd(int fd[HTTP_CONNECTIONS_MAX], const char *text)
{
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		fd[i] = dial();
		say(fd[i], text);
	}
}

static void test_cap(void)
{
	struct rlimit l = {.rlim_cur = 2 * HTTP_CONNECTIONS_MAX + 100,
			   .rlim_max = 2 * HTTP_CONNECTIONS_MAX + 100};
	static int fd[HTTP_CONNECTIONS_MAX];
	static char got[1024];
	int more;

	if (setrlimit(RLIMIT_NOFILE, &l) < 0) {
		printf("connection cap: skipped: no room for %u descriptors\n",
		       (unsigned)l.rlim_max);
		return;
	}
	crowd(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	(void)hear(fd[HTTP_CONNECTIONS_MAX - 1], got, sizeof got, "hello"); /* all were served */
	more = dial();
	say(more, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	EXPECT_EQ("one more is served", hear(more, got, sizeof got, "hello"), 0);
	EXPECT_EQ("the oldest made room", hear(fd[0], got, sizeof got, NULL), 0);
	EXPECT("after its answer", strstr(got, "hello") != NULL);
	(void)close(more);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		(void)close(fd[i]);
	crowd(fd, "GET /hello HTTP/1.1\r\n" HOST "X-");
	more = dial();
	say(more, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	EXPECT_EQ("a crowd with half a head each makes room", hear(more, got, sizeof got, "hello"),
		  0);
	(void)close(more);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		(void)close(fd[i]);
	crowd(fd, "GET /late HTTP/1.1\r\n" HOST "\r\n");
	more = dial();
	say(more, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	(void)close(fd[7]);
	EXPECT_EQ("when none is idle, the next waits for an end",
		  hear(more, got, sizeof got, "hello"), 0);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		if (i != 7)
			(void)close(fd[i]);
		expect_event("cut", "aborted late 0");
	}
	(void)close(more);
}

static void test_deadlines(void)
{
	static char got[1024];
	int fd = dial();

	EXPECT_EQ("silence is closed", hear(fd, got, sizeof got, NULL), 0);
	EXPECT_STR("without a word", got, "");
	(void)close(fd);
	fd = dial();
	say(fd, "GET / HT");
	EXPECT_EQ("half a head", hear(fd, got, sizeof got, NULL), 0);
	EXPECT("is told", strncmp(got, "HTTP/1.1 408 ", 13) == 0);
	(void)close(fd);
	fd = dial();
	say(fd, "POST /sink HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
	EXPECT_EQ("half a body", hear(fd, got, sizeof got, NULL), 0);
	EXPECT("is told", strncmp(got, "HTTP/1.1 408 ", 13) == 0);
	expect_event("to both", "aborted sink 3");
	(void)close(fd);
	fd = dial();
	say(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	EXPECT_EQ("idle", hear(fd, got, sizeof got, NULL), 0);
	(void)close(fd);
	fd = dial();
	say(fd, "GET /bulk HTTP/1.1\r\n" HOST "\r\n");
	expect_event("a client that does not read", "aborted bulk 0");
	(void)close(fd);
	fd = dial();
	say(fd, "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	EXPECT_EQ("a client that does not close", hear(fd, got, sizeof got, NULL), 0);
	{
		struct pollfd p = {.fd = fd, .events = POLLRDHUP};

		EXPECT_EQ("is closed", poll(&p, 1, DEADLINE_MS), 1);
	}
	(void)close(fd);
}

/* A client of somebody else's, as a process; its output must be `want`. */
static void test_program(const char *says, const char *const *argv, const char *want)
{
	static char got[65536];
	size_t n = 0;
	ssize_t r;
	int out[2];
	int status = 0;
	pid_t pid;

	if (access(argv[0], X_OK) < 0) {
		printf("%s: skipped: no %s\n", says, argv[0]);
		return;
	}
	CHECK(pipe(out) == 0);
	pid = fork();
	if (pid == 0) {
		union {
			const char *const *in;
			char *const *out;
		} a = {.in = argv};

		(void)dup2(out[1], 1);
		(void)close(out[0]);
		(void)close(out[1]);
		(void)execv(argv[0], a.out);
		_exit(127);
	}
	(void)close(out[1]);
	while (n < sizeof got - 1 && (r = read(out[0], got + n, sizeof got - 1 - n)) > 0)
		n += (size_t)r;
	got[n] = '\0';
	(void)close(out[0]);
	(void)waitpid(pid, &status, 0);
	EXPECT_EQ(says, status, 0);
	EXPECT_STR(says, got, want);
}

static void test_others(void)
{
	static const char *const node =
		"const h=require('http');const p=+process.argv[1];const a=new "
		"h.Agent({keepAlive:true,maxSockets:1});"
		"const q=(m,u,b,c)=>{const "
		"r=h.request({port:p,host:'127.0.0.1',method:m,path:u,agent:a},s=>{let n=0;"
		"s.on('data',d=>n+=d.length);s.on('end',()=>{console.log(m,u,s.statusCode,n);c&&c()"
		"})});"
		"if(b)r.write(b);r.end()};"
		"q('GET','/hello',0,()=>q('POST','/echo',Buffer.alloc(3000000),()=>q('HEAD','/"
		"hello',"
		"0,()=>q('GET','/bulk',0,()=>a.destroy()))));";
	char url[64];
	char number[8];

	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u/echo", port);
	(void)snprintf(number, sizeof number, "%u", port);
	test_program("curl",
		     (const char *const[]){"/usr/bin/curl", "-s", "-d", "some text", "-w",
					   " %{http_code} %{num_connects}", url, "--next", "-s",
					   "-H", "Transfer-Encoding: chunked", "-H",
					   "Expect: 100-continue", "-d", "more", "-w",
					   " %{http_code} %{num_connects}", url, NULL},
		     "some text 200 1more 200 0");
	expect_event("curl", "done echo 9");
	expect_event("curl", "done echo 4");
	test_program("node", (const char *const[]){"/usr/bin/node", "-e", node, number, NULL},
		     "GET /hello 200 5\nPOST /echo 200 3000000\nHEAD /hello 200 0\n"
		     "GET /bulk 200 67108864\n");
	if (access("/usr/bin/node", X_OK) == 0) {
		expect_event("node", "done echo 3000000");
		expect_event("node", "done bulk 0");
	}
}

static void server_start(pthread_t *thread, uint64_t wait)
{
	int fd = -1;

	loop = loop_new();
	CHECK(sock_tcp_listen("127.0.0.1", 0, &fd, &port, NULL) == 0);
	server = http_server_new(loop, fd, &server_ops, NULL);
	for (int w = WAIT_IDLE; wait && w < CONN_WAITS; w++)
		http_server_set_wait(server, (enum conn_wait)w, wait);
	CHECK(pthread_create(thread, NULL, server_run, NULL) == 0);
}

/* The server is freed by one of its own callbacks. */
static void server_stop(pthread_t thread)
{
	static char got[16];
	int waiting = dial();
	int fd = dial();

	say(waiting, "GET /late HTTP/1.1\r\n" HOST "\r\n");
	say(fd, "GET /quit HTTP/1.1\r\n" HOST "\r\n");
	EXPECT_EQ("who waits is cut", hear(waiting, got, sizeof got, NULL), ECONNRESET);
	expect_event("and its owner told", "aborted late 0");
	(void)pthread_join(thread, NULL);
	loop_free(loop);
	(void)close(fd);
	(void)close(waiting);
}

int main(void)
{
	pthread_t thread;

	(void)signal(SIGPIPE, SIG_IGN);
	CHECK(pipe(event_fd) == 0);
	server_start(&thread, 0);
	test_cases();
	test_dripped();
	test_bad();
	test_broken_bodies();
	test_gone();
	test_gone_while_full();
	test_bulk();
	test_unread();
	test_early_while_sending();
	test_others();
	test_cap();
	server_stop(thread);
	server_start(&thread, 100);
	test_deadlines();
	server_stop(thread);
	return test_done();
}
