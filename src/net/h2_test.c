/* Two sessions over a socketpair in one loop. What each test does is in its two ends: what the
 * server does with a request is chosen by its path, what the client does by struct run. */
#include "net/h2.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define DEADLINE_MS 20000u
#define BULK        (64u * 1024 * 1024)

struct end;
struct run {
	struct loop *loop;
	struct timer *deadline;
	struct end *end[2]; /* client, server */
	bool is_late;
};
enum { CLIENT, SERVER };

struct end {
	struct run *run;
	struct h2 *h2;
	int fd;
	unsigned ended;
	int end_err;
	unsigned requests, opened, closed, answered;
	uint32_t last_code;
	bool free_in_data, free_in_close, free_in_request, free_in_drain, free_in_end;
	bool stop_when_closed;
};

/* One stream's end. */
struct side {
	struct end *end;
	struct h2_stream *s;
	uint64_t to_send; /* pattern bytes still to be queued */
	uint64_t sent;
	uint64_t got;
	uint64_t held;
	uint64_t held_max;
	uint64_t drained;
	bool is_slow;  /* consumes only by timer */
	bool is_stuck; /* never consumes */
	bool is_echo;
	bool has_end;
	bool is_bad;
	bool respond_at_end;
	uint64_t reset_at; /* after that many bytes */
	struct timer *timer;
	unsigned closes;
	char status[8];
	struct side *next;
};

static struct side *sides;

static struct side *side_new(struct end *e)
{
	struct side *d = xcalloc(1, sizeof *d);

	d->end = e;
	d->next = sides;
	sides = d;
	return d;
}

static void sides_free(void)
{
	while (sides) {
		struct side *d = sides;

		sides = d->next;
		timer_free(d->timer);
		free(d);
	}
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8));
}

static void pump(struct side *d)
{
	static uint8_t p[16384];
	size_t n;

	while (d->s && d->to_send && (n = h2_room(d->s)) > 0) {
		n = size_min(n, (size_t)u64_min(d->to_send, sizeof p));
		for (size_t i = 0; i < n; i++)
			p[i] = pattern(d->sent + i);
		if (h2_write(d->s, p, n) < 0) {
			d->is_bad = true;
			return;
		}
		d->sent += n;
		d->to_send -= n;
		if (!d->to_send)
			h2_finish(d->s);
	}
}

static void end_free(struct end *e)
{
	h2_free(e->h2);
	e->h2 = NULL;
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct side *d = h2_stream_arg(s);

	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(d->got + i))
			d->is_bad = true;
	d->got += n;
	d->held += n;
	if (d->held > d->held_max)
		d->held_max = d->held;
	if (d->end->free_in_data) {
		end_free(d->end);
		return;
	}
	if (d->is_echo && h2_write(s, p, n) < 0)
		d->is_bad = true;
	if (d->reset_at && d->got >= d->reset_at) {
		h2_reset(s, H2_CANCEL);
		return;
	}
	if (d->is_echo || d->is_stuck)
		return;
	if (!d->is_slow) {
		h2_consume(s, n);
		d->held -= n;
	} else if (!timer_is_set(d->timer)) {
		timer_set(d->timer, 1);
	}
}

static void on_slow(void *arg)
{
	struct side *d = arg;
	size_t n = (size_t)d->held;

	d->held = 0;
	if (d->s)
		h2_consume(d->s, n);
}

static void answer(struct side *d)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":status", "200");
	(void)h2_add(&m, "x-test", "yes");
	if (h2_respond(d->s, &m, false) < 0)
		d->is_bad = true;
	if (!EXPECT_EQ("an answer has one head", h2_respond(d->s, &m, false), -EALREADY))
		d->is_bad = true;
}

static void on_end(struct h2_stream *s)
{
	struct side *d = h2_stream_arg(s);

	if (d->has_end)
		d->is_bad = true;
	d->has_end = true;
	if (d->is_echo)
		h2_finish(s);
	if (d->respond_at_end) {
		answer(d);
		h2_finish(s);
	}
}

static void on_drain(struct h2_stream *s, size_t n)
{
	struct side *d = h2_stream_arg(s);

	d->drained += n;
	if (d->end->free_in_drain) {
		end_free(d->end);
		return;
	}
	if (d->is_echo) {
		h2_consume(s, n);
		d->held -= n;
	}
	pump(d);
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	struct side *d = h2_stream_arg(s);
	struct end *e = d->end;

	d->closes++;
	d->s = NULL;
	e->closed++;
	e->last_code = code;
	h2_reset(s, H2_CANCEL); /* a late call on a closed stream does nothing */
	h2_consume(s, 1);
	if (h2_write(s, "x", 1) != -EPIPE || h2_room(s) != 0)
		d->is_bad = true;
	if (e->free_in_close)
		end_free(e);
	if (e->stop_when_closed && e->closed == e->opened)
		loop_stop(e->run->loop);
}

static void on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct side *d = h2_stream_arg(s);
	const char *status = h2_get(m, ":status");

	d->end->answered++;
	(void)str_copy(d->status, sizeof d->status, status ? status : "");
}

static const struct h2_stream_ops stream_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_close = on_close,
};

static void on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct end *e = h2_arg(h);
	struct side *d = side_new(e);
	const char *path = h2_get(m, ":path");

	d->s = s;
	e->requests++;
	if (e->free_in_request) {
		end_free(e);
		return;
	}
	if (strcmp(path, "/ignore") == 0)
		return; /* not accepted */
	e->opened++;
	h2_accept(s, &stream_ops, d);
	if (strcmp(path, "/refuse") == 0) {
		h2_reset(s, H2_REFUSED_STREAM);
		return;
	}
	d->is_stuck = strcmp(path, "/stuck") == 0;
	d->is_echo = strcmp(path, "/echo") == 0;
	d->respond_at_end = strcmp(path, "/sink") == 0;
	if (strcmp(path, "/slow") == 0) {
		d->is_slow = true;
		d->respond_at_end = true;
		d->timer = timer_new(e->run->loop, on_slow, d);
	}
	if (strcmp(path, "/reset-at") == 0)
		d->reset_at = 100000;
	if (d->is_echo || strcmp(path, "/bulk") == 0)
		answer(d);
	if (strcmp(path, "/bulk") == 0) {
		d->to_send = BULK;
		pump(d);
	}
}

static void on_session_end(struct h2 *h, int err)
{
	struct end *e = h2_arg(h);

	e->ended++;
	e->end_err = err;
	EXPECT_EQ("all streams were closed before the end", e->closed, e->opened);
	if (e->free_in_end)
		end_free(e);
	loop_stop(e->run->loop);
}

static const struct h2_ops session_ops = {.on_request = on_request, .on_end = on_session_end};

static void on_late(void *arg)
{
	struct run *r = arg;

	r->is_late = true;
	loop_stop(r->loop);
}

static void run_start(struct run *r)
{
	int fd[2];

	*r = (struct run){.loop = loop_new()};
	r->deadline = timer_new(r->loop, on_late, r);
	CHECK(sock_pair(SOCK_STREAM, fd) == 0);
	for (size_t i = 0; i < 2; i++) {
		struct end *e = r->end[i] = xcalloc(1, sizeof *e);

		e->run = r;
		e->fd = fd[i];
		e->h2 = h2_new(r->loop, fd[i], i == SERVER ? H2_SERVER : H2_HOSTILE_PEER,
			       &session_ops, e, NULL, 0);
	}
	r->end[CLIENT]->stop_when_closed = true;
}

static void run_on(struct run *r)
{
	timer_set(r->deadline, DEADLINE_MS);
	loop_run(r->loop);
	EXPECT("in time", !r->is_late);
}

static void run_end(struct run *r)
{
	for (size_t i = 0; i < 2; i++) {
		struct end *e = r->end[i];

		h2_free(e->h2);
		fd_drop(&e->fd);
		EXPECT_EQ("every stream closed", e->closed, e->opened);
	}
	for (struct side *d = sides; d; d = d->next) {
		EXPECT("bytes and order", !d->is_bad);
		EXPECT("on_close at most once", d->closes <= 1);
		EXPECT("within the window", d->held_max <= H2_STREAM_WINDOW);
	}
	sides_free();
	timer_free(r->deadline);
	loop_free(r->loop);
	for (size_t i = 0; i < 2; i++)
		free(r->end[i]);
}

static struct side *request_by(struct run *r, const char *method, const char *path,
			       uint64_t to_send)
{
	struct side *d = side_new(r->end[CLIENT]);
	struct h2_message m = {0};

	(void)h2_add(&m, ":method", method);
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "envd");
	(void)h2_add(&m, ":path", path);
	d->to_send = to_send;
	d->s = h2_request(r->end[CLIENT]->h2, &m, to_send == 0, &stream_ops, d);
	if (d->s)
		r->end[CLIENT]->opened++;
	pump(d);
	return d;
}

static struct side *request(struct run *r, const char *path, uint64_t to_send)
{
	return request_by(r, "POST", path, to_send);
}

/* AddressSanitizer keeps what was freed. */
#if TEST_HAS_ASAN
#define GROWTH_MAX_KIB SIZE_MAX
#else
#define GROWTH_MAX_KIB 8192u
#endif

static size_t rss_kib(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss;
}

static void test_bulk(void)
{
	static const char *const paths[] = {"/bulk", "/sink", "/echo", "/slow"};
	size_t before = rss_kib();

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct run r;
		struct side *d;

		run_start(&r);
		d = request(&r, paths[i], i == 0 ? 0 : BULK);
		run_on(&r);
		EXPECT_STR(paths[i], d->status, "200");
		EXPECT("ended", d->has_end);
		EXPECT_EQ("closed clean", r.end[CLIENT]->last_code, H2_NO_ERROR);
		EXPECT_EQ("sent", d->sent, i == 0 ? 0 : BULK);
		EXPECT_EQ("drained", d->drained, d->sent);
		EXPECT_EQ("got", d->got, i == 0 || i == 2 ? BULK : 0);
		run_end(&r);
	}
	EXPECT("memory is flat", rss_kib() - before <= GROWTH_MAX_KIB);
}

static void test_parallel(void)
{
	struct run r;
	struct side *stuck;

	run_start(&r);
	stuck = request(&r, "/stuck", BULK);
	for (size_t i = 0; i < 200; i++)
		(void)request(&r, "/echo", 100000 + i);
	r.end[CLIENT]->opened--; /* the stuck one does not count */
	run_on(&r);
	EXPECT_EQ("answered", r.end[CLIENT]->answered, 200);
	EXPECT("a stalled stream stops only itself", stuck->drained <= H2_STREAM_WINDOW);
	r.end[CLIENT]->opened++;
	EXPECT_EQ("one is open", h2_streams(r.end[CLIENT]->h2), 1);
	run_end(&r);
}

static void test_reset(void)
{
	struct run r;
	struct side *d;

	run_start(&r);
	(void)request(&r, "/ignore", 0);
	run_on(&r);
	EXPECT_EQ("not accepted", r.end[CLIENT]->last_code, H2_INTERNAL_ERROR);
	(void)request(&r, "/refuse", 0);
	run_on(&r);
	EXPECT_EQ("refused", r.end[CLIENT]->last_code, H2_REFUSED_STREAM);
	d = request(&r, "/reset-at", BULK);
	run_on(&r);
	EXPECT_EQ("by the server, while it is sent to", r.end[CLIENT]->last_code, H2_CANCEL);
	EXPECT("and sending stopped", d->drained < 2 * H2_STREAM_WINDOW);
	d = request(&r, "/bulk", 0);
	d->reset_at = 100000;
	run_on(&r);
	EXPECT("by the client", d->got < 2 * H2_STREAM_WINDOW && !d->has_end);
	d = request(&r, "/bulk", 0);
	h2_reset(d->s, H2_CANCEL);
	EXPECT_EQ("on_close comes later", d->closes, 0);
	run_on(&r);
	EXPECT_EQ("before it was sent", d->closes, 1);
	(void)request(&r, "/echo", 1000);
	run_on(&r);
	EXPECT_EQ("the session lives on", r.end[CLIENT]->last_code, H2_NO_ERROR);
	run_end(&r);
}

/* Resets must not eat the connection's window. */
static void test_reset_leak(void)
{
	struct run r;

	run_start(&r);
	for (size_t i = 0; i < 300; i++) { /* 300 windows are more than the connection's */
		struct side *d = request(&r, "/bulk", 0);

		d->reset_at = 1;
		run_on(&r);
	}
	(void)request(&r, "/echo", 1000000);
	run_on(&r);
	EXPECT_EQ("a stream still works", r.end[CLIENT]->last_code, H2_NO_ERROR);
	EXPECT_EQ("and the session", r.end[CLIENT]->ended, 0);
	run_end(&r);
}

static void test_death(void)
{
	struct run r;

	run_start(&r);
	for (size_t i = 0; i < 10; i++)
		(void)request(&r, "/stuck", 1000);
	r.end[CLIENT]->stop_when_closed = false;
	r.end[CLIENT]->free_in_end = true;
	while (r.end[SERVER]->requests < 10 && !r.is_late) {
		struct timer *t = timer_new(r.loop, (void (*)(void *))loop_stop, r.loop);

		timer_set(t, 1);
		run_on(&r);
		timer_free(t);
	}
	h2_free(r.end[SERVER]->h2);
	r.end[SERVER]->h2 = NULL;
	EXPECT_EQ("free closes at once", r.end[SERVER]->closed, 10);
	EXPECT_EQ("with this code", r.end[SERVER]->last_code, H2_CANCEL);
	fd_drop(&r.end[SERVER]->fd);
	run_on(&r);
	EXPECT_EQ("the other side hears it once", r.end[CLIENT]->ended, 1);
	EXPECT_EQ("as a close", r.end[CLIENT]->end_err, 0);
	EXPECT("not as success", r.end[CLIENT]->last_code != H2_NO_ERROR);
	run_end(&r);
}

static void test_free_inside(size_t which)
{
	struct run r;
	struct end *e;

	run_start(&r);
	e = r.end[which % 2];
	e->free_in_data = which / 2 == 0;
	e->free_in_close = which / 2 == 1;
	e->free_in_drain = which / 2 == 2;
	e->free_in_request = which / 2 == 3;
	e->free_in_end = true;
	(void)request(&r, "/echo", 300000);
	(void)request(&r, "/echo", 300000);
	timer_set(r.deadline, 50); /* a freed end has nobody to report: a short turn is enough */
	loop_run(r.loop);
	EXPECT("freed", e->h2 == NULL || which == 6);
	run_end(&r);
}

static void test_goaway(void)
{
	struct run r;
	struct side *d;

	run_start(&r);
	r.end[CLIENT]->stop_when_closed = false;
	d = request(&r, "/slow", 2000000);
	while (r.end[SERVER]->requests < 1 && !r.is_late) {
		struct timer *t = timer_new(r.loop, (void (*)(void *))loop_stop, r.loop);

		timer_set(t, 1);
		run_on(&r);
		timer_free(t);
	}
	h2_goaway(r.end[SERVER]->h2);
	while (!r.is_late && (!r.end[CLIENT]->ended || !r.end[SERVER]->ended))
		run_on(&r);
	EXPECT_STR("what is open goes on", d->status, "200");
	EXPECT_EQ("then it ends clean", r.end[CLIENT]->end_err | r.end[SERVER]->end_err, 0);
	d = request(&r, "/echo", 1);
	EXPECT("and takes no more", d->s == NULL);
	run_end(&r);
}

/* A list of n fields and `bytes` names and values in total (the pseudo fields included). */
static bool head_passes(size_t n, size_t bytes)
{
	static char value[H2_HEADER_LIST_MAX + 1];
	static char names[H2_HEADERS_MAX + 1][8];
	struct h2_message m = {0};
	struct side *d;
	struct run r;
	bool is_good;

	run_start(&r);
	memset(value, 'v', sizeof value - 1);
	(void)h2_add(&m, ":method", "GET");
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "a");
	(void)h2_add(&m, ":path", "/sink");
	for (size_t i = m.n; i < n; i++) {
		(void)snprintf(names[i], sizeof names[i], "x%zu", i);
		EXPECT_EQ("add", h2_add(&m, names[i], "y"), i < H2_HEADERS_MAX ? 0 : -ENOBUFS);
	}
	for (size_t i = 0; i < m.n; i++)
		bytes -= strlen(m.h[i].name) + strlen(m.h[i].value);
	value[bytes + 1] = '\0'; /* takes the place of "y" */
	m.h[m.n - 1].value = value;
	d = side_new(r.end[CLIENT]);
	d->s = h2_request(r.end[CLIENT]->h2, &m, true, &stream_ops, d);
	is_good = d->s != NULL;
	if (d->s) {
		r.end[CLIENT]->opened++;
		run_on(&r);
		is_good = strcmp(d->status, "200") == 0;
	}
	run_end(&r);
	return is_good;
}

static void test_heads(void)
{
	struct h2_message m = {0};
	struct run r;

	EXPECT("the most fields", head_passes(H2_HEADERS_MAX, 2000));
	EXPECT("one more is not taken", head_passes(H2_HEADERS_MAX + 1, 2000));
	EXPECT("the most bytes", head_passes(10, H2_HEADER_LIST_MAX));
	EXPECT("one more", !head_passes(10, H2_HEADER_LIST_MAX + 1));
	run_start(&r);
	(void)h2_add(&m, ":method", "GET");
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":path", "/");
	(void)h2_add(&m, "Upper", "x");
	EXPECT("an upper-case name", !h2_request(r.end[CLIENT]->h2, &m, true, &stream_ops, NULL));
	m.h[3] = (struct h2_header){"x", "a\r\nb: c"};
	EXPECT("a line break", !h2_request(r.end[CLIENT]->h2, &m, true, &stream_ops, NULL));
	run_end(&r);
}

static void test_full(void)
{
	struct run r;
	size_t n = 0;

	run_start(&r);
	while (n <= H2_STREAMS_MAX && request(&r, "/echo", 10)->s)
		n++;
	EXPECT_EQ("as many streams as the limit", n, H2_STREAMS_MAX);
	run_on(&r);
	EXPECT_EQ("all answered", r.end[CLIENT]->answered, H2_STREAMS_MAX);
	EXPECT("then there is room again", request(&r, "/echo", 10)->s != NULL);
	run_on(&r);
	run_end(&r);
}

static void test_queue(void)
{
	static uint8_t p[H2_STREAM_QUEUE + 1];
	struct run r;
	struct side *d;

	run_start(&r);
	d = request(&r, "/stuck", 1);
	d->to_send = 0;
	run_end(&r);
	run_start(&r);
	d = request(&r, "/stuck", 0);
	EXPECT_EQ("no body, no room", h2_room(d->s), 0);
	run_end(&r);
	run_start(&r);
	d = side_new(r.end[CLIENT]);
	{
		struct h2_message m = {0};

		(void)h2_add(&m, ":method", "POST");
		(void)h2_add(&m, ":scheme", "http");
		(void)h2_add(&m, ":path", "/stuck");
		d->s = h2_request(r.end[CLIENT]->h2, &m, false, &stream_ops, d);
		r.end[CLIENT]->opened++;
	}
	EXPECT_EQ("one over the queue", h2_write(d->s, p, sizeof p), -ENOBUFS);
	EXPECT_EQ("nothing of it was taken", h2_room(d->s), H2_STREAM_QUEUE);
	EXPECT_EQ("the queue", h2_write(d->s, p, H2_STREAM_QUEUE), 0);
	EXPECT_EQ("is full", h2_room(d->s), 0);
	EXPECT_EQ("of one byte too", h2_write(d->s, p, 1), -ENOBUFS);
	run_end(&r);
}

/* An answer with a body to a HEAD would be an offence against the peer. */
static void test_head(void)
{
	struct run r;
	struct side *d;

	run_start(&r);
	d = request_by(&r, "HEAD", "/bulk", 0);
	run_on(&r);
	EXPECT_STR("a HEAD is answered", d->status, "200");
	EXPECT("and ended", d->has_end);
	EXPECT_EQ("without a body", d->got, 0);
	EXPECT_EQ("and clean", r.end[CLIENT]->last_code, H2_NO_ERROR);
	run_end(&r);
}

int main(void)
{
	test_bulk();
	test_parallel();
	test_reset();
	test_reset_leak();
	test_death();
	for (size_t i = 0; i < 8; i++)
		test_free_inside(i);
	test_goaway();
	test_heads();
	test_head();
	test_full();
	test_queue();
	return test_done();
}
