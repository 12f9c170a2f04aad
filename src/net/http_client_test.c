/* Client and server in one loop, over a unix socket and TCP; a raw socket plays the bad server. */
#include "net/http_client.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/test.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define DEADLINE_MS 20000u
#define BULK        (32u * 1024 * 1024)

static struct loop *loop;
static struct timer *deadline;
static uint16_t port;
static unsigned requests;

/* --- the server --- */

static uint64_t to_send;

static void pump(struct http_exchange *x)
{
	static const uint8_t p[16384];
	size_t n;

	while (to_send && (n = http_room(x)) > 0) {
		n = size_min(size_min(n, sizeof p), (size_t)to_send);
		CHECK(http_write(x, p, n) == 0);
		to_send -= n;
		if (!to_send)
			http_finish(x);
	}
}

struct job {
	struct buf body;
	bool is_bulk;
};

static void on_job_data(struct http_exchange *x, const uint8_t *p, size_t n)
{
	struct job *j = http_exchange_arg(x);

	CHECK(buf_append(&j->body, p, n) == 0);
	http_consume(x, n);
}

static void on_job_end(struct http_exchange *x)
{
	struct job *j = http_exchange_arg(x);
	const struct http1_request *r = http_exchange_request(x);
	const struct http1_str *type = http1_find(r, "content-type");
	AUTO(str_drop) char *text = NULL;

	if (j->is_bulk)
		return;
	text = xasprintf("%.*s %.*s %.*s|%.*s", (int)r->method.n, r->method.p, (int)r->target.n,
			 r->target.p, type ? (int)type->n : 1, type ? type->p : "-",
			 (int)buf_len(&j->body), (const char *)buf_data(&j->body));
	http_respond_full(x, 200, "text/plain", text, strlen(text));
}

static void on_job_drain(struct http_exchange *x, size_t n)
{
	(void)n;
	pump(x);
}

static void on_job_close(struct http_exchange *x, bool is_aborted)
{
	struct job *j = http_exchange_arg(x);

	(void)is_aborted;
	buf_done(&j->body);
	free(j);
}

static const struct http_exchange_ops job_ops = {.on_data = on_job_data,
						 .on_end = on_job_end,
						 .on_drain = on_job_drain,
						 .on_close = on_job_close};

static bool path_is(const struct http1_request *r, const char *path)
{
	return r->target.n == strlen(path) && memcmp(r->target.p, path, r->target.n) == 0;
}

static void on_request(void *arg, struct http_exchange *x, const struct http1_request *r)
{
	static const struct http_field fields[] = {{"X-Next-Token", "abc"},
						   {"X-Two", "1"},
						   {"x-two", "2"},
						   {"X-Empty", ""},
						   {"Location", "/echo"}};
	struct job *j = xcalloc(1, sizeof *j);

	(void)arg;
	requests++;
	buf_init(&j->body, BULK);
	http_exchange_set(x, &job_ops, j);
	if (path_is(r, "/fields")) {
		CHECK(http_respond(x, 302, fields, ARRAY_LEN(fields), 0) == 0);
		http_finish(x);
		j->is_bulk = true;
	}
	if (path_is(r, "/bulk") || path_is(r, "/cut") || path_is(r, "/late"))
		j->is_bulk = true;
	if (path_is(r, "/bulk")) {
		CHECK(http_respond(x, 200, NULL, 0, HTTP_CHUNKED) == 0);
		to_send = BULK;
		pump(x);
	}
	if (path_is(r, "/cut")) {
		CHECK(http_respond(x, 200, NULL, 0, HTTP_CHUNKED) == 0);
		CHECK(http_write(x, "part", 4) == 0);
		http_abort(x);
	}
}

static const struct http_server_ops server_ops = {.on_request = on_request};

/* --- the client --- */

struct want {
	struct http_client *client;
	struct http_call *call;
	struct buf body;
	uint64_t got;
	size_t held, held_max;
	unsigned status, heads, ends;
	int err;
	bool is_slow, free_in_data, cancel_in_data, keep_body;
	struct timer *timer;
};

static void on_head(void *arg, unsigned status)
{
	struct want *w = arg;

	w->heads++;
	w->status = status;
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct want *w = arg;

	w->got += n;
	w->held += n;
	if (w->held > w->held_max)
		w->held_max = w->held;
	if (w->keep_body)
		CHECK(buf_append(&w->body, p, n) == 0);
	if (w->free_in_data) {
		http_call_free(w->call);
		w->call = NULL;
		loop_stop(loop);
		return;
	}
	if (w->cancel_in_data)
		http_call_cancel(w->call);
	if (w->is_slow && !timer_is_set(w->timer))
		timer_set(w->timer, 1);
	if (!w->is_slow) {
		w->held -= n;
		http_call_consume(w->call, n);
	}
}

static void on_slow(void *arg)
{
	struct want *w = arg;
	size_t n = w->held;

	w->held = 0;
	if (w->call)
		http_call_consume(w->call, n);
}

static void on_end(void *arg, int err)
{
	struct want *w = arg;

	w->ends++;
	w->err = err;
	loop_stop(loop);
}

static const struct http_call_ops call_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end};

static void on_late(void *arg)
{
	(void)arg;
	EXPECT("in time", false);
	loop_stop(loop);
}

static void want_start(struct want *w, struct http_client *c, const char *method, const char *path,
		       const char *body, unsigned timeout_ms)
{
	const struct http_call_field fields[] = {{"X-API-Key", "e2b_0"}, {"X-Nothing", ""}};

	w->client = c;
	buf_init(&w->body, 65536);
	w->timer = timer_new(loop, on_slow, w);
	w->call = http_call_start(c,
				  &(struct http_call_spec){.method = method,
							   .path = path,
							   .fields = fields,
							   .n_fields = 2,
							   .body = body,
							   .body_n = body ? strlen(body) : 0,
							   .timeout_ms = timeout_ms},
				  &call_ops, w);
	EXPECT("started", w->call != NULL);
	EXPECT_EQ("nothing is told before it returned", w->ends + w->heads, 0);
}

static void want_wait(void)
{
	timer_set(deadline, DEADLINE_MS);
	loop_run(loop);
	timer_clear(deadline);
}

static void want_end(struct want *w)
{
	http_call_free(w->call);
	timer_free(w->timer);
	buf_done(&w->body);
	*w = (struct want){0};
}

static const struct {
	const char *method;
	const char *path;
	const char *body;
	const char *want;
} echoes[] = {
	{"GET", "/a?b=c%20d", NULL, "GET /a?b=c%20d -|"},
	{"POST", "/x", "{\"a\":1}", "POST /x -|{\"a\":1}"},
	{"POST", "/x", NULL, "POST /x -|"},
	{"DELETE", "/x", NULL, "DELETE /x -|"},
	{"PATCH", "/x/../y", "z", "PATCH /x/../y -|z"},
};

static void test_echo(struct http_client *c)
{
	for (size_t i = 0; i < ARRAY_LEN(echoes); i++) {
		struct want w = {.keep_body = true};

		want_start(&w, c, echoes[i].method, echoes[i].path, echoes[i].body, 10000);
		want_wait();
		EXPECT_EQ(echoes[i].want, w.err, 0);
		EXPECT_EQ(echoes[i].want, w.status, 200);
		(void)buf_append(&w.body, "", 1);
		EXPECT_STR("sent as it is", (const char *)buf_data(&w.body), echoes[i].want);
		want_end(&w);
	}
}

static void test_fields(struct http_client *c)
{
	struct want w = {0};
	unsigned before = requests;

	want_start(&w, c, "GET", "/fields", NULL, 10000);
	want_wait();
	EXPECT_EQ("a redirect is an answer", w.status, 302);
	EXPECT_EQ("and not followed", requests - before, 1);
	EXPECT_STR("a field", http_call_field(w.call, "x-next-token"), "abc");
	EXPECT_STR("an empty one", http_call_field(w.call, "X-EMPTY"), "");
	EXPECT("two of a name", http_call_field(w.call, "x-two") == NULL);
	EXPECT("none", http_call_field(w.call, "x-three") == NULL);
	want_end(&w);
}

static void test_streams(struct http_client *c)
{
	struct want slow = {.is_slow = true};
	struct want w = {0};

	want_start(&slow, c, "GET", "/bulk", NULL, 0);
	want_start(&w, c, "GET", "/quick", NULL, 0);
	while (w.ends + slow.ends < 2)
		want_wait();
	EXPECT_EQ("bulk", slow.err, 0);
	EXPECT_EQ("all of it", slow.got, BULK);
	EXPECT("within the window", slow.held_max <= HTTP_CALL_WINDOW);
	EXPECT("which was used", slow.held_max > HTTP_CALL_WINDOW / 4);
	EXPECT_EQ("beside it", w.err, 0);
	want_end(&slow);
	want_end(&w);
}

static void test_cuts(struct http_client *c)
{
	struct want w = {0};
	struct want other = {0};

	want_start(&w, c, "GET", "/cut", NULL, 10000);
	want_wait();
	EXPECT_EQ("a cut answer", w.err, -ECONNRESET);
	want_end(&w);
	want_start(&w, c, "GET", "/late", NULL, 50);
	want_wait();
	EXPECT_EQ("no answer", w.err, -ETIMEDOUT);
	EXPECT_EQ("without a head", w.heads, 0);
	want_end(&w);
	want_start(&w, c, "GET", "/late", NULL, 0);
	http_call_cancel(w.call);
	EXPECT_EQ("cancel tells later", w.ends, 0);
	want_wait();
	EXPECT_EQ("cancelled", w.err, -ECANCELED);
	want_end(&w);
	w.cancel_in_data = true;
	want_start(&w, c, "GET", "/bulk", NULL, 0);
	want_wait();
	EXPECT_EQ("cancelled in a callback", w.err, -ECANCELED);
	want_end(&w);
	w.free_in_data = true;
	want_start(&w, c, "GET", "/bulk", NULL, 0);
	want_wait();
	EXPECT_EQ("freed in a callback", w.ends, 0);
	want_end(&w);
	want_start(&w, c, "GET", "/late", NULL, 0);
	want_start(&other, c, "GET", "/quick", NULL, 0);
	http_call_free(w.call);
	w.call = NULL;
	want_wait();
	EXPECT_EQ("freed at once", w.ends, 0);
	EXPECT_EQ("the other goes on", other.err, 0);
	want_end(&other);
	want_end(&w);
}

static void test_refused(void)
{
	static const struct http_call_field bad = {"X", "a\r\nY: b"};
	static const struct http_call_spec specs[] = {
		{.method = "GET", .path = "x"},
		{.method = "G T", .path = "/"},
		{.method = "GET", .path = "/a b"},
		{.method = "GET", .path = "/a#b"},
		{.method = "GET", .path = "/a\r\n"},
		{.method = "GET", .path = "/", .fields = &bad, .n_fields = 1},
	};
	static const char *const urls[] = {
		"ftp://a",    "http://a/",  "http://a/b",  "http://u:p@a",
		"http://a?b", "http://a#b", "file:///etc", "a",
		"",           "http://",
	};
	struct http_client *c = NULL;
	char path[200];

	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		EXPECT_EQ(urls[i], http_client_new(loop, urls[i], NULL, &c, NULL), -EINVAL);
	memset(path, 'a', sizeof path);
	path[108] = '\0';
	EXPECT_EQ("a path too long", http_client_new(loop, "http://a", path, &c, NULL),
		  -ENAMETOOLONG);
	path[107] = '\0';
	EXPECT_EQ("the longest", http_client_new(loop, "http://a", path, &c, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(specs); i++)
		EXPECT("a request that is none", !http_call_start(c, &specs[i], &call_ops, NULL));
	http_client_free(c);
}

/* A server that says `answer` to whatever comes. */
static const struct {
	const char *says;
	const char *answer;
	int want;
} bad_servers[] = {
	{"not HTTP", "hello\r\n\r\n", -EPROTO},
	{"closes at once", "", -ECONNRESET},
	{"a short body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", -ECONNRESET},
	{"a chunk cut off", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	 -ECONNRESET},
	{"not a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", -ECONNRESET},
	{"a field without a name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", -EPROTO},
	{"a control character", "HTTP/1.1 200 OK\r\nX: a\033b\r\nContent-Length: 0\r\n\r\n",
	 -EPROTO},
	{"control: fine",
	 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0},
};

static void answer_with(int fd, const char *text)
{
	int got = -1;
	char p[4096];
	struct timer *t;

	while (sock_accept(fd, &got) < 0 && loop) { /* the connect is under way */
		t = timer_new(loop, (void (*)(void *))loop_stop, loop);
		timer_set(t, 1);
		loop_run(loop);
		timer_free(t);
	}
	while (read(got, p, sizeof p) < 0) {
		t = timer_new(loop, (void (*)(void *))loop_stop, loop);
		timer_set(t, 1);
		loop_run(loop);
		timer_free(t);
	}
	(void)!write(got, text, strlen(text));
	(void)close(got);
}

static void test_bad_servers(void)
{
	uint16_t bad_port = 0;
	int fd = -1;
	char url[64];
	struct http_client *c = NULL;
	struct want w = {0};

	CHECK(sock_tcp_listen("127.0.0.1", 0, &fd, &bad_port, NULL) == 0);
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u", bad_port);
	for (size_t i = 0; i < ARRAY_LEN(bad_servers); i++) {
		CHECK(http_client_new(loop, url, NULL, &c, NULL) == 0);
		want_start(&w, c, "GET", "/", NULL, 10000);
		answer_with(fd, bad_servers[i].answer);
		if (!w.ends)
			want_wait();
		EXPECT_EQ(bad_servers[i].says, w.err, bad_servers[i].want);
		want_end(&w);
		http_client_free(c);
	}
	(void)close(fd);
	CHECK(http_client_new(loop, url, NULL, &c, NULL) == 0);
	want_start(&w, c, "GET", "/", NULL, 10000);
	want_wait();
	EXPECT_EQ("nobody there", w.err, -ECONNREFUSED);
	want_end(&w);
	http_client_free(c);
}

/* A head of exactly n bytes. */
static int head_of(size_t n)
{
	static char text[HTTP_CALL_HEAD_MAX + 100];
	static const char start[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
	uint16_t bad_port = 0;
	size_t at = sizeof start - 1;
	int fd = -1;
	int err;
	char url[64];
	struct http_client *c = NULL;
	struct want w = {0};

	memcpy(text, start, at);
	while (n - at - 2 > 0) {
		size_t line = n - at - 2 > 2000 ? 1000 : n - at - 2;

		memset(text + at, 'a', line);
		memcpy(text + at, "X: ", 3);
		memcpy(text + at + line - 2, "\r\n", 2);
		at += line;
	}
	memcpy(text + at, "\r\n", 3);
	CHECK(strlen(text) == n);
	CHECK(sock_tcp_listen("127.0.0.1", 0, &fd, &bad_port, NULL) == 0);
	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u", bad_port);
	CHECK(http_client_new(loop, url, NULL, &c, NULL) == 0);
	want_start(&w, c, "GET", "/", NULL, 10000);
	answer_with(fd, text);
	if (!w.ends)
		want_wait();
	err = w.err;
	want_end(&w);
	http_client_free(c);
	(void)close(fd);
	return err;
}

int main(void)
{
	char dir[] = "/tmp/http_client_test.XXXXXX";
	struct http_server *tcp, *local;
	struct http_client *c = NULL;
	char text[64];
	int dirfd;
	int fd = -1;

	(void)setenv("http_proxy", "http://127.0.0.1:1", 1);
	(void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	loop = loop_new();
	deadline = timer_new(loop, on_late, NULL);
	CHECK(mkdtemp(dir) != NULL);
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(sock_tcp_listen("127.0.0.1", 0, &fd, &port, NULL) == 0);
	tcp = http_server_new(loop, fd, &server_ops, NULL);
	CHECK(sock_unix_listen(dirfd, "api.sock", SOCK_STREAM, &fd, NULL) == 0);
	local = http_server_new(loop, fd, &server_ops, NULL);

	(void)snprintf(text, sizeof text, "http://127.0.0.1:%u", port);
	CHECK(http_client_new(loop, text, NULL, &c, NULL) == 0);
	test_echo(c);
	test_fields(c);
	test_streams(c);
	test_cuts(c);
	http_client_free(c);
	(void)snprintf(text, sizeof text, "/proc/self/fd/%d/api.sock", dirfd);
	CHECK(http_client_new(loop, "http://localhost", text, &c, NULL) == 0);
	test_echo(c);
	test_streams(c);
	test_cuts(c);
	http_client_free(c);
	test_refused();
	test_bad_servers();
	EXPECT_EQ("the longest head", head_of(HTTP_CALL_HEAD_MAX), 0);
	EXPECT_EQ("one byte more", head_of(HTTP_CALL_HEAD_MAX + 1), -EPROTO);

	http_server_free(tcp);
	http_server_free(local);
	timer_free(deadline);
	loop_free(loop);
	(void)unlinkat(dirfd, "api.sock", 0);
	(void)close(dirfd);
	(void)rmdir(dir);
	return test_done();
}
