/* The listening socket and its connections. At HTTP_CONNECTIONS_MAX the connection that has been
 * idle longest makes room, else the oldest that has no exchange: a crowd that never finishes its
 * heads keeps nobody out. While all have exchanges, nothing is accepted and newcomers wait in the
 * kernel's backlog. */
#include "net/http_internal.h"

#include "base/alloc.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define ACCEPTS_A_TURN 64u
#define PAUSE_MS       100u

/* A client that vanished without a word, also while we read nothing: gone after about two
 * minutes. */
#define PROBE_IDLE_S     60
#define PROBE_INTERVAL_S 20
#define PROBE_COUNT      3

struct http_server {
	struct loop *loop;
	int fd;
	const struct http_server_ops *ops;
	void *arg;
	struct watch *watch;
	struct timer *pause;
	size_t n_conns;
	struct http_conn *first; /* newest */
	struct http_conn *last;
	uint64_t wait_ms[CONN_WAITS];
	bool is_freed;
};

/* BODY and WRITE: without progress. What an owner waits for is its own. */
static const uint64_t waits_ms[] = {
	[WAIT_OWNER] = 0,     [WAIT_IDLE] = 75000,   [WAIT_HEAD] = 30000,
	[WAIT_BODY] = 300000, [WAIT_WRITE] = 300000, [WAIT_LINGER] = 5000,
};
static_assert(ARRAY_LEN(waits_ms) == CONN_WAITS, "a deadline for every wait");

struct loop *http_server_loop(const struct http_server *s)
{
	return s->loop;
}

uint64_t http_server_wait_ms(const struct http_server *s, enum conn_wait wait)
{
	return s->wait_ms[wait];
}

void http_server_set_wait(struct http_server *s, enum conn_wait wait, uint64_t ms)
{
	s->wait_ms[wait] = ms;
}

void http_server_request(struct http_server *s, struct http_exchange *x)
{
	s->ops->on_request(s->arg, x, &x->request);
}

void http_server_forget(struct http_server *s, struct http_conn *c)
{
	if (c->next)
		c->next->prev = c->prev;
	else
		s->last = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		s->first = c->next;
	s->n_conns--;
	if (!s->is_freed) /* whatever was lacking, there is more of it now */
		watch_set(s->watch, WATCH_READ);
}

/* Connections are listed by age: the oldest of a kind. */
static bool evict(struct http_server *s, bool (*may_go)(const struct http_conn *c))
{
	for (struct http_conn *c = s->last; c; c = c->prev)
		if (may_go(c)) {
			http_conn_close(c, false);
			return true;
		}
	return false;
}

static bool make_room(struct http_server *s)
{
	return s->n_conns < HTTP_CONNECTIONS_MAX || evict(s, http_conn_is_idle) ||
	       evict(s, http_conn_is_loitering);
}

static void conn_add(struct http_server *s, int fd)
{
	struct http_conn *c = http_conn_new(s, fd);

	c->next = s->first;
	if (c->next)
		c->next->prev = c;
	else
		s->last = c;
	s->first = c;
	s->n_conns++;
}

/* Fails on unix sockets, which need none of it. */
static void socket_options(int fd)
{
	int on = 1, idle = PROBE_IDLE_S, interval = PROBE_INTERVAL_S, count = PROBE_COUNT;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* Until a connection ends, or one has become idle, or the kernel has room again. */
static void accept_pause(struct http_server *s)
{
	watch_set(s->watch, 0);
	timer_set(s->pause, PAUSE_MS);
}

static void on_listen(void *arg, int events)
{
	struct http_server *s = arg;

	(void)events;
	for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
		int fd = -1;
		int r;

		if (!make_room(s)) {
			accept_pause(s);
			return;
		}
		r = sock_accept(s->fd, &fd);
		if (r == -EAGAIN)
			return;
		if (r < 0) {
			accept_pause(s);
			return;
		}
		socket_options(fd);
		conn_add(s, fd);
	}
}

static void on_pause_end(void *arg)
{
	struct http_server *s = arg;

	watch_set(s->watch, WATCH_READ);
}

struct http_server *http_server_new(struct loop *l, int fd, const struct http_server_ops *ops,
				    void *arg)
{
	struct http_server *s = xcalloc(1, sizeof *s);

	*s = (struct http_server){.loop = l, .fd = fd, .ops = ops, .arg = arg};
	memcpy(s->wait_ms, waits_ms, sizeof waits_ms);
	s->pause = timer_new(l, on_pause_end, s);
	s->watch = watch_new(l, fd, on_listen, s);
	watch_set(s->watch, WATCH_READ);
	return s;
}

void http_server_free(struct http_server *s)
{
	if (!s || s->is_freed)
		return;
	s->is_freed = true;
	watch_free(s->watch);
	timer_free(s->pause);
	fd_drop(&s->fd);
	while (s->first)
		http_conn_close(s->first, true);
	free(s);
}
