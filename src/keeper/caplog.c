/* See caplog.h. */
#include "keeper/caplog.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>
#include <sys/stat.h>

#define COPY_SIZE   4096u
#define LAST_COPIES 64u /* by caplog_free */
#define PAUSE_MS    100u

struct caplog {
	int from;
	int to;
	struct watch *watch;
	struct timer *pause;
	uint64_t tokens; /* bytes that may be read */
	uint64_t last_ns;
};

static void tokens_refill(struct caplog *c)
{
	uint64_t now = clock_mono_ns();
	uint64_t gain = (now - c->last_ns) / 1000 * CAPLOG_PER_S / 1000000;

	if (!gain)
		return;
	c->last_ns = now;
	c->tokens = u64_min(CAPLOG_BURST, c->tokens + gain);
}

/* Keeps the newest half. A file that cannot be read back is emptied. */
static void halve(int fd, uint64_t size)
{
	AUTO(mem_drop) uint8_t *half = xcalloc(1, CAPLOG_FILE_MAX / 2);
	ssize_t n = pread(fd, half, CAPLOG_FILE_MAX / 2, (off_t)(size - CAPLOG_FILE_MAX / 2));

	if (ftruncate(fd, 0) < 0)
		return;
	if (n > 0 && pwrite(fd, half, (size_t)n, 0) < 0)
		return; /* the host's disk is full: the log is shorter */
}

static void keep(struct caplog *c, const uint8_t *p, size_t n)
{
	struct stat st;

	if (fstat(c->to, &st) < 0)
		return;
	if ((uint64_t)st.st_size + n > CAPLOG_FILE_MAX) {
		halve(c->to, (uint64_t)st.st_size);
		if (fstat(c->to, &st) < 0)
			return;
	}
	if (pwrite(c->to, p, n, st.st_size) < 0)
		return; /* as above */
}

/* Needs a token. False at the end of input. */
static bool copy_some(struct caplog *c)
{
	uint8_t p[COPY_SIZE];
	ssize_t n = read(c->from, p, (size_t)u64_min(sizeof p, c->tokens));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	c->tokens -= (uint64_t)n;
	keep(c, p, (size_t)n);
	return true;
}

static void on_pause_over(void *arg)
{
	struct caplog *c = arg;

	watch_set(c->watch, WATCH_READ);
}

static void on_watch(void *arg, int events)
{
	struct caplog *c = arg;

	(void)events;
	tokens_refill(c);
	if (c->tokens && !copy_some(c)) {
		watch_set(c->watch, 0);
	} else if (!c->tokens) {
		watch_set(c->watch, 0);
		timer_set(c->pause, PAUSE_MS);
	}
}

struct caplog *caplog_new(struct loop *l, int from, int to)
{
	struct caplog *c = xcalloc(1, sizeof *c);

	c->from = from;
	c->to = to;
	c->tokens = CAPLOG_BURST;
	c->last_ns = clock_mono_ns();
	(void)fd_set_nonblock(from, true); /* a pipe or socket of ours: cannot fail */
	c->watch = watch_new(l, from, on_watch, c);
	c->pause = timer_new(l, on_pause_over, c);
	watch_set(c->watch, WATCH_READ);
	return c;
}

void caplog_free(struct caplog *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < LAST_COPIES && c->tokens; i++) {
		if (!copy_some(c))
			break;
	}
	watch_free(c->watch);
	timer_free(c->pause);
	fd_drop(&c->from);
	free(c);
}
