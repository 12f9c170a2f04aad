/* See exchange.h.
 *
 * state   waits for                                      leaves to
 * WAIT    a session with the guest; early body is kept   OPEN, or REFUSED after wait_ms
 * OPEN    either side                                    CLOSED, or REFUSED (no valid answer head)
 * REFUSED the client taking our own answer               CLOSED
 *
 * A byte is given back to the window it came through when the other side took it, so the buffers
 * are never larger than one window a direction, whatever the guest or the client does. */
#include "daemon/exchange.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "daemon/reply.h"
#include "daemon/rules.h"
#include "net/loop.h"

#include <string.h>

struct exchange {
	struct loop *loop;
	const struct exchange_owner *owner;
	void *arg;
	struct h2_stream *client; /* NULL when closed */
	struct h2_stream *guest;  /* NULL before it is opened and when closed */
	size_t up_held;   /* of the request: taken from the client, not given back to its window */
	size_t down_held; /* of the answer: the same, from the guest */
	bool has_request_end; /* the client sent its whole body */
	bool has_answer_head; /* passed on, or our own was sent */
	bool has_answer_end;  /* or it was cut */
	bool is_cut;          /* the guest's side failed: nothing more goes there */
	/* WAIT */
	struct exchange_list *list;
	struct exchange *next;
	struct exchange **link;
	struct timer *deadline;
	struct h2_message head; /* points into head_text */
	char *head_text;
	struct buf early;
};

void exchange_list_init(struct exchange_list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

struct exchange *exchange_list_first(const struct exchange_list *l)
{
	return l->first;
}

static void list_push(struct exchange_list *l, struct exchange *x)
{
	x->list = l;
	x->link = l->end;
	*l->end = x;
	l->end = &x->next;
}

/* Leaves WAIT; the head and the early body stay until they are used or dropped. */
static void exchange_unwait(struct exchange *x)
{
	if (!x->list)
		return;
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	else
		x->list->end = x->link;
	x->list = NULL;
	x->next = NULL;
	timer_free(x->deadline);
	x->deadline = NULL;
	x->owner->on_unwait(x->arg);
}

static void wait_drop(struct exchange *x)
{
	exchange_unwait(x);
	buf_done(&x->early);
	mem_drop(&x->head_text);
}

static void exchange_settle(struct exchange *x)
{
	if (x->client || x->guest)
		return;
	wait_drop(x);
	x->owner->on_count(x->arg, -1);
	free(x);
}

/* Nothing more goes to the guest: the rest of the client's body is read over. */
static void up_release(struct exchange *x)
{
	size_t n = x->up_held;

	x->up_held = 0;
	if (n && x->client)
		h2_consume(x->client, n);
}

/* The guest's side is over without a whole answer. */
static void exchange_fail(struct exchange *x, unsigned status, const char *message)
{
	wait_drop(x);
	up_release(x);
	x->is_cut = true;
	if (!x->client || x->has_answer_end)
		return;
	x->has_answer_end = true;
	if (x->has_answer_head) {
		h2_reset(x->client, H2_INTERNAL_ERROR); /* cut, never finished */
		return;
	}
	x->has_answer_head = true;
	reply_write(x->client, status, message);
}

/* --- the guest's stream --- */

static void guest_on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct exchange *x = h2_stream_arg(s);
	struct h2_message out;

	if (!x->client || x->has_answer_end)
		return;
	if (x->has_answer_head || answer_rewrite(&out, m) < 0) {
		log_warn("guest answered with a bad head", "fields=%zu", m->n);
		h2_reset(s, H2_PROTOCOL_ERROR);
		exchange_fail(x, 502, "the sandbox gave an answer that is not valid");
		return;
	}
	x->has_answer_head = true;
	if (h2_respond(x->client, &out, false) < 0)
		h2_reset(x->client, H2_INTERNAL_ERROR);
}

static void guest_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct exchange *x = h2_stream_arg(s);

	if (!x->client || x->has_answer_end) {
		h2_consume(s, n);
		return;
	}
	x->down_held += n;
	if (h2_write(x->client, p, n) < 0) {
		log_warn("guest sent past its window", "bytes=%zu", n);
		h2_reset(s, H2_PROTOCOL_ERROR);
		exchange_fail(x, 502, "the sandbox gave an answer that is not valid");
	}
}

static void guest_on_end(struct h2_stream *s)
{
	struct exchange *x = h2_stream_arg(s);

	if (!x->client || x->has_answer_end)
		return;
	x->has_answer_end = true;
	h2_finish(x->client);
}

static void guest_on_drain(struct h2_stream *s, size_t n)
{
	struct exchange *x = h2_stream_arg(s);

	n = size_min(n, x->up_held);
	x->up_held -= n;
	if (n && x->client)
		h2_consume(x->client, n);
}

static void guest_on_close(struct h2_stream *s, uint32_t code)
{
	struct exchange *x = h2_stream_arg(s);

	(void)code;
	x->guest = NULL;
	exchange_fail(x, 502, "the sandbox ended the request without an answer");
	exchange_settle(x);
}

static const struct h2_stream_ops guest_ops = {
	.on_head = guest_on_head,
	.on_data = guest_on_data,
	.on_end = guest_on_end,
	.on_drain = guest_on_drain,
	.on_close = guest_on_close,
};

/* --- the client's stream --- */

static void client_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct exchange *x = h2_stream_arg(s);
	int r = 0;

	if (x->is_cut) {
		h2_consume(s, n);
		return;
	}
	x->up_held += n;
	r = x->guest ? h2_write(x->guest, p, n) : buf_append(&x->early, p, n);
	if (r < 0) /* more than its window: nghttp2 should have refused it */
		h2_reset(s, H2_PROTOCOL_ERROR);
}

static void client_on_end(struct h2_stream *s)
{
	struct exchange *x = h2_stream_arg(s);

	x->has_request_end = true;
	if (x->guest && !x->is_cut)
		h2_finish(x->guest);
}

static void client_on_drain(struct h2_stream *s, size_t n)
{
	struct exchange *x = h2_stream_arg(s);

	n = size_min(n, x->down_held); /* an answer of our own drains too */
	x->down_held -= n;
	if (n && x->guest)
		h2_consume(x->guest, n);
}

static void client_on_close(struct h2_stream *s, uint32_t code)
{
	struct exchange *x = h2_stream_arg(s);

	(void)code;
	x->client = NULL;
	wait_drop(x);
	if (x->guest)
		h2_reset(x->guest, H2_CANCEL);
	exchange_settle(x);
}

static const struct h2_stream_ops client_ops = {
	.on_data = client_on_data,
	.on_end = client_on_end,
	.on_drain = client_on_drain,
	.on_close = client_on_close,
};

/* --- life --- */

struct exchange *exchange_new(struct loop *l, struct h2_stream *client,
			      const struct exchange_owner *owner, void *arg)
{
	struct exchange *x = xcalloc(1, sizeof *x);

	x->loop = l;
	x->client = client;
	x->owner = owner;
	x->arg = arg;
	h2_accept(client, &client_ops, x);
	owner->on_count(arg, 1);
	return x;
}

void exchange_open(struct exchange *x, struct h2 *control, const struct h2_message *m)
{
	x->guest = h2_request(control, m, false, &guest_ops, x);
	if (!x->guest)
		exchange_fail(x, 503, "this sandbox takes no more requests now");
}

static void on_deadline(void *arg)
{
	exchange_fail(arg, 502, "the sandbox does not answer");
}

static void head_copy(struct exchange *x, const struct h2_message *m)
{
	size_t n = 0;
	char *p;

	for (size_t i = 0; i < m->n; i++)
		n += strlen(m->h[i].name) + strlen(m->h[i].value) + 2;
	p = x->head_text = xcalloc(1, n); /* n <= RULES_HEAD_MAX and the NULs */
	x->head.n = m->n;
	for (size_t i = 0; i < m->n; i++) {
		size_t name_n = strlen(m->h[i].name) + 1;
		size_t value_n = strlen(m->h[i].value) + 1;

		x->head.h[i] = (struct h2_header){.name = p, .value = p + name_n};
		memcpy(p, m->h[i].name, name_n);
		memcpy(p + name_n, m->h[i].value, value_n);
		p += name_n + value_n;
	}
}

void exchange_wait(struct exchange *x, struct exchange_list *l, const struct h2_message *m,
		   unsigned wait_ms)
{
	head_copy(x, m);
	buf_init(&x->early, H2_STREAM_WINDOW);
	list_push(l, x);
	x->deadline = timer_new(x->loop, on_deadline, x);
	timer_set(x->deadline, wait_ms);
}

void exchange_resume(struct exchange *x, struct h2 *control)
{
	exchange_unwait(x);
	exchange_open(x, control, &x->head);
	if (x->guest) {
		if (buf_len(&x->early) &&
		    h2_write(x->guest, buf_data(&x->early), buf_len(&x->early)) < 0)
			h2_reset(x->guest, H2_INTERNAL_ERROR);
		if (x->has_request_end)
			h2_finish(x->guest);
	}
	wait_drop(x);
}
