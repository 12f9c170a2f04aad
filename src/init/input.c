/* The stdin queue: see input.h. on_done is called from the loop or from input_shut(). */
#include "init/input.h"

#include "base/alloc.h"
#include "init/budget.h"
#include "init/limits.h"
#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>

struct input_item {
	struct input_item *next;
	uint8_t *data;
	size_t n;
	size_t off;
	void (*on_done)(void *arg, int err);
	void *arg;
};

void input_init(struct input *in, struct budget *b)
{
	*in = (struct input){.fd = -1, .budget = b};
}

static void input_pop(struct input *in, int err)
{
	struct input_item *i = in->first;

	in->first = i->next;
	if (!in->first)
		in->last = NULL;
	in->n--;
	budget_give(in->budget, i->n);
	if (i->on_done)
		i->on_done(i->arg, err);
	mem_drop(&i->data);
	free(i);
}

void input_shut(struct input *in)
{
	watch_free(in->watch);
	in->watch = NULL;
	fd_drop(&in->fd);
	while (in->first)
		input_pop(in, -EPIPE);
}

/* 0: all is written; -EAGAIN: the pipe is full; else it is broken. */
static int input_write(struct input *in)
{
	while (in->first) {
		struct input_item *i = in->first;
		ssize_t n = i->off == i->n ? 0 : write(in->fd, i->data + i->off, i->n - i->off);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		i->off += (size_t)n;
		if (i->off == i->n)
			input_pop(in, 0);
	}
	return 0;
}

static void input_on_event(void *arg, int events)
{
	struct input *in = arg;
	int err = input_write(in);

	(void)events;
	if (err == -EAGAIN)
		return;
	if (err || in->is_closing)
		input_shut(in);
	else
		watch_set(in->watch, 0);
}

void input_open(struct input *in, struct loop *l, int fd)
{
	in->fd = fd;
	in->watch = watch_new(l, fd, input_on_event, in);
}

int input_push(struct input *in, uint8_t *data, size_t n, void (*on_done)(void *arg, int err),
	       void *arg, struct input_item **ret)
{
	AUTO(mem_drop) uint8_t *owned = data;
	struct input_item *i;

	if (in->fd < 0 || in->is_closing)
		return -EPIPE;
	if (in->n == STDIN_QUEUE || !budget_take(in->budget, n))
		return -ENOBUFS;
	i = xcalloc(1, sizeof *i);
	*i = (struct input_item){.data = owned, .n = n, .on_done = on_done, .arg = arg};
	owned = NULL;
	if (in->last)
		in->last->next = i;
	else
		in->first = i;
	in->last = i;
	in->n++;
	watch_set(in->watch, WATCH_WRITE);
	*ret = i;
	return 0;
}

void input_forget(struct input_item *item)
{
	item->on_done = NULL;
}

int input_close(struct input *in)
{
	if (in->fd < 0 || in->is_closing)
		return -EPIPE;
	in->is_closing = true;
	watch_set(in->watch, WATCH_WRITE);
	return 0;
}
