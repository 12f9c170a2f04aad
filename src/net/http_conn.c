/* One connection of a client.
 *
 * state   waits for                                               leaves to
 * HEAD    a whole request head                                    BUSY; LINGER when refused
 * BUSY    the owner's answer, the request's body, the client      HEAD, SKIP, LINGER once the
 *                                                                 answer left; closed when cut
 * SKIP    the short rest of a body that nobody wants any more     HEAD
 * LINGER  the client's end: an answer that ended the connection   closed
 *         may still be on its way, and a reset would destroy it
 *
 * Every wait has a deadline, WAIT_OWNER excepted (what the owner waits for is its own). Gone means:
 * the client closed its sending side while an exchange is open. A client that only half-closes is
 * not told apart from one that left, so its exchange is aborted too. */
#include "net/http_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define READ_MAX     (64u * 1024)
#define READ_HEAD    (8u * 1024) /* a head, at a time: idle connections hold no more */
#define ROUNDS_MAX   8u          /* framing and telling, in one turn */
#define REQUESTS_MAX 16u         /* pipelined, in one turn */
#define FRESH_MS     1000u
#define LINGER_BYTES (16u * 1024 * 1024)

static void conn_free(struct http_conn *c)
{
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

/* --- exchanges --- */

static void exchange_begin(struct http_conn *c, const struct http1_request *r, size_t head_n)
{
	struct http_exchange *x = xcalloc(1, sizeof *x);
	size_t more = buf_len(&c->in) - head_n;

	x->conn = c;
	x->request = *r;
	x->head = c->in; /* with its storage, so that what r borrows stays where it is */
	buf_init(&c->in, x->head.max);
	if (buf_append(&c->in, buf_data(&x->head) + head_n, more) < 0)
		x->is_cut = true;
	x->left = r->body == HTTP1_BODY_LENGTH ? r->length : 0;
	x->wants_continue = r->expects_continue;
	http1_chunked_init(&x->chunked);
	buf_init(&x->body, HTTP_QUEUE);
	c->x = x;
	c->state = CONN_BUSY;
	c->parsed_n = 0;
	c->requests++;
}

/* The owner hears of it last. */
static void exchange_end(struct http_conn *c, bool is_aborted)
{
	struct http_exchange *x = c->x;

	c->x = NULL;
	if (x->ops)
		x->ops->on_close(x, is_aborted);
	buf_done(&x->head);
	buf_done(&x->body);
	free(x);
}

void http_conn_close(struct http_conn *c, bool is_hard)
{
	struct linger hard = {.l_onoff = 1, .l_linger = 0};

	if (c->is_dead)
		return;
	c->is_dead = true;
	http_server_forget(c->server, c);
	watch_free(c->watch);
	timer_free(c->kick);
	timer_free(c->deadline);
	if (is_hard) /* best effort: without it a cut is a plain close */
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	(void)close(c->fd);
	if (c->x)
		exchange_end(c, true);
	if (!c->is_busy)
		conn_free(c);
}

void http_conn_kick(struct http_conn *c)
{
	if (!c->is_busy && !c->is_dead)
		timer_set(c->kick, 0);
}

/* A new connection is not: its first request may just not have been read. */
bool http_conn_is_idle(const struct http_conn *c)
{
	uint64_t quiet_ns = loop_now_ns(http_server_loop(c->server)) - c->wait_ns;

	if (c->state != CONN_HEAD || buf_len(&c->in) > 0 || buf_len(&c->out) > 0)
		return false;
	return c->requests > 0 || quiet_ns >= FRESH_MS * NS_PER_MS;
}

bool http_conn_is_loitering(const struct http_conn *c)
{
	uint64_t quiet_ns = loop_now_ns(http_server_loop(c->server)) - c->wait_ns;

	return c->state != CONN_BUSY && quiet_ns >= FRESH_MS * NS_PER_MS;
}

static void linger_begin(struct http_conn *c)
{
	c->state = CONN_LINGER;
	c->skip_left = LINGER_BYTES;
	buf_clear(&c->in);
}

/* Ends the exchange, if there is one, with an answer of our own where that is still possible. */
static void conn_refuse(struct http_conn *c, unsigned status, const char *why)
{
	bool is_answered = c->x && c->x->has_head;

	if (c->x)
		exchange_end(c, true);
	if (c->is_dead)
		return;
	if (is_answered) {
		http_conn_close(c, true);
		return;
	}
	http_answer_refuse(&c->out, status, why);
	linger_begin(c);
}

/* --- input --- */

/* A head is parsed from its start each time; one that drips in byte by byte must not cost a parse a
 * byte. Only a line's end can complete it, and there are few lines. */
static bool is_worth_parsing(const struct http_conn *c)
{
	size_t n = buf_len(&c->in);

	return c->parsed_n == 0 || n >= HTTP1_HEAD_MAX ||
	       memchr(buf_data(&c->in) + c->parsed_n, '\n', n - c->parsed_n);
}

static void request_tell(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	http_server_request(c->server, x);
	if (c->is_dead)
		return;
	if (!x->ops && !x->has_head)
		http_respond_full(x, 500, NULL, NULL, 0);
	if (x->wants_continue && x->ops && !x->has_head) {
		x->wants_continue = false;
		if (buf_printf(&c->out, "HTTP/1.1 100 Continue\r\n\r\n") < 0)
			x->is_cut = true; /* no memory: `out` was empty */
	}
}

static void head_step(struct http_conn *c)
{
	struct http1_request r;
	unsigned status = 0;
	const char *why = "";
	size_t used = 0;
	int err;

	if (buf_len(&c->in) == 0 || !is_worth_parsing(c))
		return;
	err = http1_request_parse(&r, buf_data(&c->in), buf_len(&c->in), &used, &status, &why);
	c->parsed_n = buf_len(&c->in);
	if (err == -EAGAIN)
		return;
	if (err < 0) {
		conn_refuse(c, status, why);
		return;
	}
	exchange_begin(c, &r, used);
	request_tell(c);
}

/* The next piece of the body in p: *ret_data within it. 1: that was the last. */
static int body_next(struct http_exchange *x, const uint8_t *p, size_t n, size_t *ret_used,
		     const uint8_t **ret_data, size_t *ret_n)
{
	switch (x->request.body) {
	case HTTP1_BODY_CHUNKED:
		return http1_chunked_step(&x->chunked, p, n, ret_used, ret_data, ret_n);
	case HTTP1_BODY_LENGTH:
		*ret_n = *ret_used = (size_t)u64_min(n, x->left);
		*ret_data = p;
		x->left -= *ret_used;
		return x->left == 0;
	case HTTP1_BODY_NONE:
		break;
	}
	*ret_n = *ret_used = 0;
	return 1;
}

static bool body_is_wanted(const struct http_exchange *x)
{
	return x->ops && !x->is_finished && !x->is_cut;
}

/* One piece to the owner. False: nothing more to do now. */
static bool body_step(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	size_t n = size_min(buf_len(&c->in), HTTP_WINDOW - x->held);
	const uint8_t *data = NULL;
	size_t data_n = 0;
	size_t used = 0;
	int r;

	if (x->has_body_end || (n == 0 && (x->request.body == HTTP1_BODY_CHUNKED || x->left > 0)))
		return false;
	r = body_next(x, buf_data(&c->in), n, &used, &data, &data_n);
	if (r < 0) {
		conn_refuse(c, 400, "the request's chunked body is malformed");
		return false;
	}
	if (data_n > 0 && body_is_wanted(x)) {
		x->held += data_n;
		x->ops->on_data(x, data, data_n);
		if (c->is_dead)
			return false;
	}
	buf_consume(&c->in, used);
	if (r == 0)
		return used > 0;
	x->has_body_end = true;
	if (body_is_wanted(x))
		x->ops->on_end(x);
	return false;
}

static void skip_step(struct http_conn *c)
{
	size_t n = (size_t)u64_min(buf_len(&c->in), c->skip_left);

	buf_consume(&c->in, n);
	c->skip_left -= n;
	if (c->skip_left == 0)
		c->state = CONN_HEAD;
}

/* What the bytes that are here lead to. A pipelined request waits until the answer before it
 * left. */
static void input_step(struct http_conn *c)
{
	if (c->state == CONN_SKIP)
		skip_step(c);
	if (c->state == CONN_HEAD && buf_len(&c->out) == 0)
		head_step(c);
	while (!c->is_dead && c->state == CONN_BUSY && body_step(c))
		;
}

/* How many bytes may be read now. */
static size_t read_room(const struct http_conn *c)
{
	size_t in = buf_len(&c->in);

	switch (c->state) {
	case CONN_HEAD:
		return in < HTTP1_HEAD_MAX ? size_min(HTTP1_HEAD_MAX - in, READ_HEAD) : 0;
	case CONN_BUSY:
		if (c->x->has_body_end || in + c->x->held >= HTTP_WINDOW)
			return 0;
		return size_min(HTTP_WINDOW - c->x->held - in, READ_MAX);
	case CONN_SKIP:
		return READ_MAX;
	case CONN_LINGER:
		return (size_t)u64_min(c->skip_left, READ_MAX);
	case CONN_STATES:
		break;
	}
	return 0;
}

/* 0, or -errno; -ENODATA: the client's end. */
static int conn_read(struct http_conn *c)
{
	size_t n = read_room(c);
	uint8_t *p = n > 0 ? buf_space(&c->in, n, &n) : NULL;
	ssize_t got;

	if (!p)
		return 0;
	got = read(c->fd, p, n);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got == 0)
		return -ENODATA;
	buf_commit(&c->in, (size_t)got);
	c->has_progress = true;
	if (c->state == CONN_LINGER) {
		c->skip_left -= u64_min(c->skip_left, (uint64_t)got);
		buf_clear(&c->in);
	}
	return 0;
}

/* --- output --- */

static int conn_write(struct http_conn *c)
{
	ssize_t n;

	if (c->x && buf_len(&c->out) < HTTP_PIECE)
		http_answer_fill(c->x, &c->out);
	if (c->is_blocked || buf_len(&c->out) == 0)
		return 0;
	n = write(c->fd, buf_data(&c->out), buf_len(&c->out));
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n > 0) {
		buf_consume(&c->out, (size_t)n);
		c->has_progress = true;
	}
	c->is_blocked = buf_len(&c->out) > 0;
	return 0;
}

/* The answer is whole and has left. */
static void answer_left(struct http_conn *c)
{
	bool keeps = c->x->keeps;
	bool is_short = c->x->request.body == HTTP1_BODY_LENGTH && c->x->left <= HTTP_SKIP_WORTH;
	bool has_body_end = c->x->has_body_end;
	uint64_t rest = c->x->left;

	exchange_end(c, false);
	if (c->is_dead)
		return;
	if (keeps && has_body_end) {
		c->state = CONN_HEAD;
	} else if (keeps && is_short) {
		c->state = CONN_SKIP;
		c->skip_left = rest;
	} else {
		linger_begin(c);
	}
}

static void drain_tell(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	size_t n = x->drained;

	x->drained = 0;
	if (n > 0 && x->ops && x->ops->on_drain && !x->is_cut)
		x->ops->on_drain(x, n);
}

static int output_step(struct http_conn *c)
{
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		int r = conn_write(c);

		if (r < 0)
			return r;
		if (!c->x)
			return 0;
		drain_tell(c);
		if (c->is_dead)
			return 0;
		if (c->x->is_cut)
			return -ECANCELED;
		if (c->x->has_last && buf_len(&c->out) == 0) {
			answer_left(c);
			return 0;
		}
		if (c->is_blocked || (buf_len(&c->x->body) == 0 && !c->x->is_finished))
			return 0;
	}
	return 0;
}

/* --- the turn --- */

static enum conn_wait wait_of(const struct http_conn *c)
{
	if (buf_len(&c->out) > 0)
		return WAIT_WRITE;
	switch (c->state) {
	case CONN_HEAD:
		return c->requests > 0 && buf_len(&c->in) == 0 ? WAIT_IDLE : WAIT_HEAD;
	case CONN_BUSY:
		return read_room(c) > 0 ? WAIT_BODY : WAIT_OWNER;
	case CONN_SKIP:
		return WAIT_BODY;
	case CONN_LINGER:
	case CONN_STATES:
		break;
	}
	return WAIT_LINGER;
}

static void deadline_arm(struct http_conn *c)
{
	enum conn_wait wait = wait_of(c);
	bool restarts = c->has_progress && (wait == WAIT_BODY || wait == WAIT_WRITE);

	c->has_progress = false;
	if (wait != c->wait || restarts)
		c->wait_ns = loop_now_ns(http_server_loop(c->server));
	if (wait == WAIT_OWNER)
		timer_clear(c->deadline);
	else if (wait != c->wait || !timer_is_set(c->deadline))
		/* progress is looked at when it fires */
		timer_set(c->deadline, http_server_wait_ms(c->server, wait));
	c->wait = wait;
}

static void conn_arm(struct http_conn *c)
{
	int events = read_room(c) > 0 ? WATCH_READ : 0;

	if (c->is_blocked)
		events |= WATCH_WRITE;
	if (c->state == CONN_BUSY)
		events |= WATCH_GONE;
	watch_set(c->watch, events);
	deadline_arm(c);
}

/* Something can be done without waiting for the client or the owner. */
static bool has_more(const struct http_conn *c)
{
	if (c->is_blocked)
		return false;
	if (c->state == CONN_BUSY && (buf_len(&c->x->body) > 0 || c->x->is_finished))
		return true;
	return c->has_more || buf_len(&c->out) > 0;
}

static int conn_work(struct http_conn *c, int events)
{
	int r = 0;

	if (events & WATCH_WRITE)
		c->is_blocked = false;
	if ((events & WATCH_GONE) && c->state == CONN_BUSY)
		return -ECONNRESET;
	if (events & WATCH_READ)
		r = conn_read(c);
	for (unsigned i = 0; i < REQUESTS_MAX && r == 0; i++) {
		enum conn_state state = c->state;
		unsigned requests = c->requests;

		input_step(c);
		if (!c->is_dead)
			r = output_step(c);
		if (c->is_dead || (c->state == state && c->requests == requests))
			return r;
	}
	c->has_more = true;
	return r;
}

static void linger_step(struct http_conn *c)
{
	if (buf_len(&c->out) > 0)
		return;
	if (!c->is_shut)
		(void)shutdown(c->fd, SHUT_WR); /* fails when the client is gone: read() tells */
	c->is_shut = true;
	if (c->skip_left == 0)
		http_conn_close(c, false);
}

static void conn_turn(struct http_conn *c, int events)
{
	int r;

	c->is_busy = true;
	c->has_more = false;
	r = conn_work(c, events);
	if (!c->is_dead && r < 0)
		http_conn_close(c, c->x != NULL);
	if (!c->is_dead && c->state == CONN_LINGER)
		linger_step(c);
	if (!c->is_dead) {
		conn_arm(c);
		if (has_more(c))
			timer_set(c->kick, 0);
	}
	c->is_busy = false;
	if (c->is_dead)
		conn_free(c);
}

static void on_ready(void *arg, int events)
{
	conn_turn(arg, events);
}

static void on_kick(void *arg)
{
	conn_turn(arg, 0);
}

static void on_deadline(void *arg)
{
	struct http_conn *c = arg;
	uint64_t max_ms = http_server_wait_ms(c->server, c->wait);
	uint64_t passed_ms = (loop_now_ns(http_server_loop(c->server)) - c->wait_ns) / NS_PER_MS;

	if (passed_ms < max_ms) {
		timer_set(c->deadline, max_ms - passed_ms);
		return;
	}
	c->is_busy = true;
	if (c->wait == WAIT_HEAD && buf_len(&c->in) > 0)
		conn_refuse(c, 408, "the request's head did not come in time");
	else if (c->wait == WAIT_BODY && c->x && !c->x->has_head)
		conn_refuse(c, 408, "the request's body did not come in time");
	else
		http_conn_close(c, c->x != NULL);
	if (!c->is_dead)
		timer_set(c->kick, 0);
	c->is_busy = false;
	if (c->is_dead)
		conn_free(c);
}

struct http_conn *http_conn_new(struct http_server *s, int fd)
{
	struct http_conn *c = xcalloc(1, sizeof *c);
	struct loop *l = http_server_loop(s);

	c->server = s;
	c->fd = fd;
	c->wait = CONN_WAITS;
	buf_init(&c->in, HTTP_WINDOW);
	buf_init(&c->out, HTTP_OUT_MAX);
	c->kick = timer_new(l, on_kick, c);
	c->deadline = timer_new(l, on_deadline, c);
	c->watch = watch_new(l, fd, on_ready, c);
	conn_arm(c);
	return c;
}
