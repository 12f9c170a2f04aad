/* See ask.h. Each has its own connection: they are rare, and a unix connect costs microseconds.
 *
 * state    waits for                leaves to
 * ASK      the answer's end         DONE; after deadline_ms with -ETIMEDOUT
 * DONE     the loop's next turn     freed                                          */
#include "spaced/ask.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "net/h2.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <sys/socket.h>

struct ask {
	int fd;
	struct h2 *h2;
	struct h2_stream *stream; /* NULL once closed */
	struct timer *timer;      /* the deadline, then the turn in which done is told */
	struct buf answer;
	uint64_t status;
	bool is_whole;
	bool is_decided;
	int err;
	void (*done)(void *arg, const struct ask_answer *a);
	void *arg;
};

static void decide(struct ask *a, int err)
{
	if (a->is_decided)
		return;
	a->is_decided = true;
	a->err = err;
	timer_set(a->timer, 0);
}

static void on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct ask *a = h2_stream_arg(s);
	const char *status = h2_get(m, ":status");

	if (!status || str_u64(status, 999, &a->status) < 0)
		decide(a, -EBADMSG);
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct ask *a = h2_stream_arg(s);

	(void)buf_append(&a->answer, p,
			 size_min(n, buf_room(&a->answer))); /* the rest is read over */
	h2_consume(s, n);
}

static void on_stream_end(struct h2_stream *s)
{
	struct ask *a = h2_stream_arg(s);

	a->is_whole = true;
}

static void on_drain(struct h2_stream *s, size_t n)
{
	(void)s;
	(void)n;
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	struct ask *a = h2_stream_arg(s);

	(void)code;
	a->stream = NULL;
	decide(a, a->is_whole && a->status ? 0 : -ECONNRESET);
}

static void on_session_end(struct h2 *h, int err)
{
	struct ask *a = h2_arg(h);

	decide(a, err ? err : -ECONNRESET);
}

static void on_timer(void *arg)
{
	struct ask *a = arg;
	struct ask_answer answer;

	if (!a->is_decided)
		a->err = -ETIMEDOUT;
	answer = (struct ask_answer){.err = a->err,
				     .status = (unsigned)a->status,
				     .p = buf_data(&a->answer),
				     .n = buf_len(&a->answer)};
	a->is_decided = true;
	a->done(a->arg, &answer);
	ask_free(a);
}

static const struct h2_stream_ops stream_ops = {.on_head = on_head,
						.on_data = on_data,
						.on_end = on_stream_end,
						.on_drain = on_drain,
						.on_close = on_close};

static int send_request(struct ask *a, const struct ask_spec *s)
{
	struct h2_message m = {.n = 0};

	if (h2_add(&m, ":method", "POST") < 0 || h2_add(&m, ":scheme", "http") < 0 ||
	    h2_add(&m, ":authority", s->authority) < 0 || h2_add(&m, ":path", s->path) < 0 ||
	    h2_add(&m, "content-type", s->content_type) < 0 ||
	    (s->token && h2_add(&m, "x-access-token", s->token) < 0))
		return -ENOBUFS;
	a->stream = h2_request(a->h2, &m, false, &stream_ops, a);
	if (!a->stream)
		return -EPIPE;
	if (h2_write(a->stream, s->body, s->n) < 0)
		return -ENOBUFS;
	h2_finish(a->stream);
	return 0;
}

struct ask *ask_start(struct loop *l, const struct ask_spec *s,
		      void (*done)(void *arg, const struct ask_answer *a), void *arg)
{
	static const struct h2_ops ops = {.on_end = on_session_end};
	struct ask *a = xcalloc(1, sizeof *a);
	struct fail f;
	int r;

	a->fd = -1;
	a->done = done;
	a->arg = arg;
	buf_init(&a->answer, ASK_ANSWER_MAX);
	a->timer = timer_new(l, on_timer, a);
	timer_set(a->timer, s->deadline_ms);
	r = sock_unix_connect(s->dir, s->socket, SOCK_STREAM, &a->fd, &f);
	if (r == 0) {
		a->h2 = h2_new(l, a->fd, H2_HOSTILE_PEER, &ops, a, NULL, 0);
		r = send_request(a, s);
	}
	if (r < 0)
		decide(a, r);
	return a;
}

void ask_free(struct ask *a)
{
	if (!a)
		return;
	a->is_decided = true; /* closing the session must not decide anew */
	if (a->h2)
		h2_free(a->h2);
	timer_free(a->timer);
	fd_drop(&a->fd);
	buf_done(&a->answer);
	free(a);
}
