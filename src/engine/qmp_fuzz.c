/* What a captured monitor may send. Properties, for any bytes after which it hangs up: every
 * command is answered exactly once, the end is told exactly once and last, an event has a name; and
 * how the bytes were cut makes no difference.
 *
 * Input: one byte that says how long a piece is, then what the monitor says. */
#include "engine/qmp.h"

#include "base/fuzz.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMMANDS    3
#define DEADLINE_MS 60000 /* not reached: the peer hangs up */
#define INPUT_MAX   (32u * 1024)

struct play {
	struct loop *loop;
	struct qmp *q;
	int peer;
	const uint8_t *p;
	size_t n;
	size_t piece;
	unsigned answers;
	unsigned ends;
	uint64_t trace; /* a hash of all callbacks in order */
};

static void trace(struct play *t, const void *p, size_t n)
{
	const uint8_t *c = p;

	for (size_t i = 0; i < n; i++)
		t->trace = (t->trace ^ c[i]) * 0x100000001b3; /* FNV-1a */
}

static void on_event(void *arg, const char *name, const json_t *data)
{
	struct play *t = arg;

	(void)data;
	assert(name && !t->ends);
	trace(t, name, strlen(name));
}

static void on_end(void *arg, const struct fail *why)
{
	struct play *t = arg;

	assert(why->code == -EPIPE || why->code == -EPROTO || why->code == -EREMOTEIO);
	assert(t->answers == COMMANDS - 1);
	t->ends++;
	trace(t, why->text, strlen(why->text));
	loop_stop(t->loop);
}

static const struct qmp_ops ops = {.on_event = on_event, .on_end = on_end};

static void on_done(void *arg, int r, const json_t *ret, const struct fail *f)
{
	struct play *t = arg;

	assert(!t->ends);
	assert((r == 0) == (ret != NULL) && (r == 0) == (f->code == 0));
	assert(r == 0 || r == -EREMOTEIO || r == -EPIPE);
	t->answers++;
	trace(t, &r, sizeof r);
}

/* One piece a turn of the loop, then the end. */
static void say_next(void *arg)
{
	struct play *t = arg;
	size_t n = size_min(t->n, t->piece);

	if (t->ends)
		return;
	if (!n) {
		(void)shutdown(t->peer, SHUT_WR);
		return;
	}
	n = (size_t)send(t->peer, t->p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	assert(n > 0 && n <= t->piece);
	t->p += n;
	t->n -= n;
	loop_later(t->loop, say_next, t);
}

static uint64_t run(const uint8_t *p, size_t n, size_t piece)
{
	struct play t = {.p = p, .n = n, .piece = piece, .loop = loop_new()};
	int pair[2];
	int r = sock_pair(SOCK_STREAM, pair);

	assert(r == 0);
	t.peer = pair[1];
	t.q = qmp_new(t.loop, pair[0], &ops, &t);
	/* The last has no callback: its refusal is the end. */
	for (int i = 0; i < COMMANDS && !r; i++)
		r = qmp_command(t.q, "x", NULL, -1, DEADLINE_MS, i < COMMANDS - 1 ? on_done : NULL,
				&t);
	assert(r == 0);
	loop_later(t.loop, say_next, &t);
	loop_run(t.loop);
	assert(t.ends == 1 && t.answers == COMMANDS - 1);
	qmp_free(t.q);
	loop_free(t.loop);
	(void)close(t.peer);
	return t.trace;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole;
	uint64_t pieces;

	if (size < 1 || size > INPUT_MAX)
		return 0;
	whole = run(data + 1, size - 1, INPUT_MAX);
	pieces = run(data + 1, size - 1, (size_t)data[0] + 1);
	assert(whole == pieces);
	return 0;
}
