/* See sink.h. A descriptor that says "writable" takes PIPE_BUF bytes without blocking (POSIX,
 * pipes; Linux terminals and sockets too), so that much is written after each such event. */
#include "cli/sink.h"

#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>

bool fd_can_wait(int fd)
{
	AUTO(fd_drop) int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = {.events = EPOLLIN};

	return ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0;
}

static size_t drop_all(struct sink *s, int err)
{
	size_t n = buf_len(&s->queue);

	s->err = err;
	buf_clear(&s->queue);
	return n;
}

static size_t write_some(struct sink *s)
{
	size_t want = buf_len(&s->queue);
	ssize_t n;

	if (s->can_wait)
		want = size_min(want, PIPE_BUF);
	n = write(s->fd, buf_data(&s->queue), want);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : drop_all(s, -errno);
	buf_consume(&s->queue, (size_t)n);
	return (size_t)n;
}

static bool takes_more(const struct sink *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};

	return !sink_is_empty(s) && (!s->can_wait || poll(&p, 1, 0) == 1);
}

static void sink_turn(struct sink *s)
{
	size_t sum = 0;
	size_t n;

	while (takes_more(s) && (n = write_some(s)) > 0)
		sum += n;
	if (s->can_wait && sink_is_empty(s))
		watch_set(s->watch, 0);
	if (sum)
		s->on_drain(s->arg, sum);
}

static void on_writable(void *arg, int events)
{
	(void)events;
	sink_turn(arg);
}

static void on_turn(void *arg)
{
	sink_turn(arg);
}

void sink_init(struct sink *s, struct loop *l, int fd, size_t max_bytes,
	       void (*on_drain)(void *arg, size_t n), void *arg)
{
	*s = (struct sink){.fd = fd, .on_drain = on_drain, .arg = arg};
	buf_init(&s->queue, max_bytes);
	s->can_wait = fd_can_wait(fd);
	if (s->can_wait)
		s->watch = watch_new(l, fd, on_writable, s);
	else
		s->turn = timer_new(l, on_turn, s);
}

void sink_done(struct sink *s)
{
	watch_free(s->watch);
	timer_free(s->turn);
	buf_done(&s->queue);
}

int sink_write(struct sink *s, const void *p, size_t n)
{
	if (buf_append(&s->queue, p, n) < 0)
		return -ENOBUFS;
	if (s->can_wait)
		watch_set(s->watch, WATCH_WRITE);
	else
		timer_set(s->turn, 0);
	return 0;
}
