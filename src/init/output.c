/* Pipes into the ring: see output.h. A pipe that may not be read has its watch switched off; that
 * is all the back-pressure there is, the kernel's pipe does the rest. */
#include "init/output.h"

#include "init/limits.h"
#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>
#include <sys/ioctl.h>

/* Reading goes on only when this much fits, so that a slow reader does not cause many small
 * reads. */
#define ROOM_MIN 4096u

static_assert(ROOM_MIN < RING_MAX / 4, "room comes long before the reader has caught up");

static uint8_t chunk[PIPE_READ];

void output_init(struct output *o, struct budget *rings, void (*on_done)(void *arg), void *arg)
{
	*o = (struct output){.on_done = on_done, .arg = arg};
	ring_init(&o->ring, rings);
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++)
		o->pipe[i] = (struct output_pipe){.o = o, .fd = -1, .left = SIZE_MAX};
}

static void pipe_shut(struct output_pipe *p)
{
	watch_free(p->watch);
	p->watch = NULL;
	fd_drop(&p->fd);
}

void output_done(struct output *o)
{
	assert(!o->readers);
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++)
		pipe_shut(&o->pipe[i]);
	ring_done(&o->ring);
}

/* How much may be read now without taking bytes from a reader that has not seen them. */
static size_t room(const struct output *o)
{
	size_t n = RING_MAX;

	if (o->is_dropping)
		return n;
	for (const struct reader *r = o->readers; r; r = r->next)
		n = size_min(n, ring_room(&o->ring, &r->cursor));
	return n;
}

static bool may_read(const struct output_pipe *p)
{
	size_t n = room(p->o);

	/* An empty ring may be smaller than ROOM_MIN when the budget is short. */
	return p->left > 0 && (n >= ROOM_MIN || (n > 0 && p->o->ring.cap <= ROOM_MIN));
}

static void output_interest(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++)
		if (o->pipe[i].watch)
			watch_set(o->pipe[i].watch, may_read(&o->pipe[i]) ? WATCH_READ : 0);
}

static void pipe_take(struct output_pipe *p, const uint8_t *data, size_t n)
{
	struct output *o = p->o;

	if (p->left != SIZE_MAX)
		p->left -= n;
	if (!o->is_dropping)
		ring_write(&o->ring, p->tag, data, n);
}

static void pipe_on_event(void *arg, int events)
{
	struct output_pipe *p = arg;
	struct output *o = p->o;
	size_t want = size_min(size_min(sizeof chunk, room(o)), p->left);
	ssize_t n;

	(void)events;
	if (!may_read(p)) { /* reported before the interest went */
		watch_set(p->watch, 0);
		return;
	}
	n = read(p->fd, chunk, want);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) /* the end; EIO is a terminal's */
		pipe_shut(p);
	else
		pipe_take(p, chunk, (size_t)n);
	output_interest(o);
	if (!o->is_dropping)
		output_notify(o);
	if (output_is_done(o))
		o->on_done(o->arg); /* the last word: it may free o */
}

void output_add(struct output *o, struct loop *l, int fd, enum ring_tag tag)
{
	struct output_pipe *p = o->pipe[0].fd < 0 ? &o->pipe[0] : &o->pipe[1];

	assert(p->fd < 0);
	p->fd = fd;
	p->tag = tag;
	p->watch = watch_new(l, fd, pipe_on_event, p);
	output_interest(o);
}

void output_attach(struct output *o, struct reader *r)
{
	r->next = o->readers;
	o->readers = r;
	o->n_readers++;
	output_interest(o);
}

void output_detach(struct output *o, struct reader *r)
{
	struct reader **at = &o->readers;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->next = NULL;
	o->n_readers--;
	output_interest(o);
}

void output_moved(struct output *o)
{
	output_interest(o);
}

void output_notify(struct output *o)
{
	for (struct reader *r = o->readers, *next; r; r = next) {
		next = r->next;
		r->on_change(r->arg);
	}
}

void output_close_soon(struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++) {
		struct output_pipe *p = &o->pipe[i];
		int n = 0;

		if (p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) != 0)
			n = 0;
		p->left = n > 0 ? (size_t)n : 0;
	}
	output_interest(o);
}

bool output_is_done(const struct output *o)
{
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++)
		if (o->pipe[i].fd >= 0 && o->pipe[i].left > 0)
			return false;
	return true;
}

bool output_is_shut(const struct output *o)
{
	return o->pipe[0].fd < 0 && o->pipe[1].fd < 0;
}

void output_drop(struct output *o)
{
	o->is_dropping = true;
	for (size_t i = 0; i < ARRAY_LEN(o->pipe); i++)
		o->pipe[i].left = SIZE_MAX;
	output_interest(o);
}
