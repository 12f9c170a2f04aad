/* See relay.h. This file is the listening sockets and the sum of all exchanges; one exchange is
 * exchange.c. */
#include "daemon/relay.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/exchange.h"
#include "daemon/reply.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"
#include "wire/msg.h"

#include <errno.h>
#include <string.h>

struct front {
	struct relay *relay;
	enum side side;
	int fd; /* listening, borrowed */
	struct watch *watch;
	size_t connections;
	size_t exchanges;
};

/* One connection of a client: an HTTP/2 session of which we are the server. */
struct conn {
	struct front *front;
	struct h2 *h2;
	int fd;
	struct conn *next;
	struct conn *prev;
};

struct relay {
	struct loop *loop;
	struct h2 *control; /* borrowed; NULL while there is no session */
	struct front front[2];
	struct conn *conns;
	struct exchange_list waiting;
	size_t waiting_n;
	unsigned wait_ms;
	char token[TOKEN_SIZE];
};

static void conn_free(struct conn *c)
{
	struct front *f = c->front;

	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		f->relay->conns = c->next;
	h2_free(c->h2);
	fd_drop(&c->fd);
	free(c);
	f->connections--;
	watch_set(f->watch, WATCH_READ);
}

static void on_conn_end(struct h2 *h, int err)
{
	if (err)
		log_debug("client connection broke", "errno=%d", -err);
	conn_free(h2_arg(h));
}

static void exchange_count(void *arg, int change)
{
	struct front *f = arg;

	f->exchanges += (size_t)change;
}

/* An exchange left the waiting list, by whatever way. */
static void exchange_unwait(void *arg)
{
	struct front *f = arg;

	f->relay->waiting_n--;
}

static const struct exchange_owner exchange_owner = {
	.on_count = exchange_count,
	.on_unwait = exchange_unwait,
};

static void request_take(struct front *f, struct h2_stream *s, const struct h2_message *m)
{
	struct relay *r = f->relay;
	struct h2_message out;
	struct exchange *x;

	if (request_rewrite(&out, m) < 0) {
		reply_send(s, 431, "the request's header fields are malformed or too large");
		return;
	}
	if (!r->control && r->waiting_n >= RELAY_WAITING_MAX) {
		reply_send(s, 503, "too many requests wait for this sandbox");
		return;
	}
	x = exchange_new(r->loop, s, &exchange_owner, f);
	if (r->control) {
		exchange_open(x, r->control, &out);
		return;
	}
	r->waiting_n++;
	exchange_wait(x, &r->waiting, &out, r->wait_ms);
}

static void on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct conn *c = h2_arg(h);
	struct front *f = c->front;
	size_t max = f->side == SIDE_CLIENT ? RELAY_STREAMS_MAX : RELAY_PLATFORM_MAX;
	struct verdict v = request_judge(m, f->side, f->relay->token);

	if (v.code != RULES_CODE_OK)
		reply_send(s, v.code, v.message);
	else if (f->exchanges >= max)
		reply_send(s, 429, "too many requests to this sandbox at once");
	else
		request_take(f, s, m);
}

static const struct h2_ops conn_ops = {.on_request = on_request, .on_end = on_conn_end};

static void conn_new(struct front *f, int fd)
{
	struct conn *c = xcalloc(1, sizeof *c);

	c->front = f;
	c->fd = fd;
	c->next = f->relay->conns;
	if (c->next)
		c->next->prev = c;
	f->relay->conns = c;
	f->connections++;
	c->h2 = h2_new(f->relay->loop, fd, H2_SERVER, &conn_ops, c, NULL, 0);
}

static void on_listen(void *arg, int events)
{
	struct front *f = arg;
	int fd;
	int r;

	(void)events;
	while (f->connections < RELAY_CONNECTIONS_MAX) {
		r = sock_accept(f->fd, &fd);
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			log_warn("cannot accept a connection, ignoring", "errno=%d", -r);
			return;
		}
		conn_new(f, fd);
	}
	watch_set(f->watch, 0); /* the next waits until one of these ends */
}

struct relay *relay_new(struct loop *l, const char *token, unsigned wait_ms)
{
	struct relay *r = xcalloc(1, sizeof *r);

	r->loop = l;
	r->wait_ms = wait_ms;
	(void)str_copy(r->token, sizeof r->token, token);
	exchange_list_init(&r->waiting);
	return r;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	while (r->conns)
		conn_free(r->conns);
	for (size_t i = 0; i < ARRAY_LEN(r->front); i++)
		watch_free(r->front[i].watch);
	free(r);
}

void relay_listen(struct relay *r, enum side side, int fd)
{
	struct front *f = &r->front[side];

	f->relay = r;
	f->side = side;
	f->fd = fd;
	f->watch = watch_new(r->loop, fd, on_listen, f);
	watch_set(f->watch, WATCH_READ);
}

void relay_guest_found(struct relay *r, struct h2 *control)
{
	struct exchange *x;

	r->control = control;
	while ((x = exchange_list_first(&r->waiting)))
		exchange_resume(x, control);
}

void relay_guest_lost(struct relay *r)
{
	r->control = NULL;
}

size_t relay_exchanges(const struct relay *r)
{
	return r->front[SIDE_CLIENT].exchanges + r->front[SIDE_PLATFORM].exchanges;
}
