/* See input.h.
 *
 * state   waits for                         leaves to
 * READ    our stdin to be readable          SEND, CLOSE (its end)
 * SEND    the answer of SendInput           READ, DONE (the command takes no more)
 * CLOSE   the answer of CloseStdin          DONE
 * DONE    nothing */
#include "cli/input.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/exec.h"
#include "cli/sink.h"
#include "net/loop.h"

#include <errno.h>
#include <string.h>

#define PIECE_MAX (256u * 1024) /* stdin bytes of one SendInput */

enum input_state { INPUT_READ, INPUT_SEND, INPUT_CLOSE, INPUT_DONE };

struct input {
	struct api *api;
	const struct exec_spec *spec;
	int64_t pid;
	enum input_state state;
	unsigned status;
	struct call *call;
	struct watch *watch; /* one of these two, as the descriptor is */
	struct timer *turn;
};

static void read_next(struct input *i)
{
	i->state = INPUT_READ;
	if (i->watch)
		watch_set(i->watch, WATCH_READ);
	else
		timer_set(i->turn, 0);
}

static void on_head(void *arg, unsigned status)
{
	struct input *i = arg;

	i->status = status;
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct input *i = arg;

	(void)p;
	call_consume(i->call, n);
}

static void on_end(void *arg, int err)
{
	struct input *i = arg;

	i->call = NULL;
	if (i->state == INPUT_SEND && err == 0 && i->status == 200)
		read_next(i);
	else
		i->state = INPUT_DONE; /* it ended, or closed its stdin: the stream tells */
}

static const struct call_ops input_ops = {.on_head = on_head, .on_data = on_data, .on_end = on_end};

static void input_call(struct input *i, const char *path, const char *body)
{
	i->status = 0;
	i->call = exec_call(i->api, i->spec, path, "application/json", body, strlen(body),
			    &input_ops, i);
}

static void piece_send(struct input *i, const uint8_t *p, size_t n)
{
	AUTO(str_drop) char *text = xcalloc(1, base64_len(n) + 1);
	AUTO(str_drop) char *body = NULL;

	base64_encode(text, p, n);
	body = xasprintf("{\"process\":{\"pid\":%lld},\"input\":{\"stdin\":\"%s\"}}",
			 (long long)i->pid, text);
	i->state = INPUT_SEND;
	input_call(i, "/process.Process/SendInput", body);
}

static void end_send(struct input *i)
{
	AUTO(str_drop) char *body = xasprintf("{\"process\":{\"pid\":%lld}}", (long long)i->pid);

	i->state = INPUT_CLOSE;
	input_call(i, "/process.Process/CloseStdin", body);
}

static void input_read(struct input *i)
{
	AUTO(mem_drop) uint8_t *piece = xcalloc(1, PIECE_MAX);
	ssize_t n = read(i->spec->in_fd, piece, PIECE_MAX);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (i->watch)
		watch_set(i->watch, 0);
	if (n > 0)
		piece_send(i, piece, (size_t)n);
	else
		end_send(i);
}

static void on_readable(void *arg, int events)
{
	(void)events;
	input_read(arg);
}

static void on_turn(void *arg)
{
	input_read(arg);
}

struct input *input_start(struct api *a, const struct exec_spec *spec, int64_t pid)
{
	struct input *i = xcalloc(1, sizeof *i);

	i->api = a;
	i->spec = spec;
	i->pid = pid;
	if (fd_can_wait(spec->in_fd))
		i->watch = watch_new(api_loop(a), spec->in_fd, on_readable, i);
	else
		i->turn = timer_new(api_loop(a), on_turn, i);
	read_next(i);
	return i;
}

void input_free(struct input *i)
{
	if (!i)
		return;
	watch_free(i->watch);
	timer_free(i->turn);
	if (i->call)
		call_abandon(i->call);
	free(i);
}
