/* HTTP/2 sessions: reading, writing, beginning and end. Streams are h2_stream.c, what comes in is
 * h2_callbacks.c, the judge of a hostile peer's frames is h2_prefilter.c.
 *
 * All frames to send are gathered and written once a turn (h2_flush_later), so a burst of calls is
 * one write. The object may be freed by any of its own callbacks: `busy` counts the calls on the
 * stack that still use it, and the last one out frees the memory. */
#include "net/h2_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"

#include <errno.h>

#define READ_SIZE    (256u * 1024)
#define READS_A_TURN 4u
#define OUT_FULL     (256u * 1024) /* no more frames are made above this */
#define OUT_MAX      (OUT_FULL + 2 * (H2_FRAME_MAX + H2_FRAME_HEAD) + H2_HEADER_LIST_MAX)
#define STASH_MAX    (2 * READ_SIZE)
#define RETRY_MS     5u

static void h2_release(struct h2 *h)
{
	if (!h->is_freed || h->busy || h->is_flush_pending)
		return;
	nghttp2_session_del(h->ng);
	buf_done(&h->out);
	buf_done(&h->stash);
	free(h);
}

static void enter(struct h2 *h)
{
	h->busy++;
}

static void leave(struct h2 *h)
{
	h->busy--;
	h2_release(h);
}

/* The session is over: every stream, then its owner, hears of it. */
static void over(struct h2 *h, int err)
{
	if (h->is_over || h->is_freed)
		return;
	h->is_over = true;
	watch_set(h->watch, 0);
	timer_clear(h->retry);
	while (h->streams && !h->is_freed)
		h2_stream_end(h->streams, err ? H2_INTERNAL_ERROR : H2_CANCEL);
	if (!h->is_freed)
		h->ops->on_end(h, err);
}

static bool is_open(const struct h2 *h)
{
	return !h->is_over && !h->is_freed;
}

static bool is_live(void *arg, uint32_t id)
{
	struct h2 *h = arg;

	return nghttp2_session_get_stream_user_data(h->ng, (int32_t)id) != NULL;
}

/* Gives input to nghttp2. Returns how much was taken; less than n only when throttled or over. */
static size_t feed(struct h2 *h, const uint8_t *p, size_t n)
{
	uint64_t now = clock_mono_ns();
	size_t used = 0;
	size_t piece = n;

	while (used < n && is_open(h)) {
		if (h->flags & H2_HOSTILE_PEER) {
			switch (h2_prefilter_step(&h->filter, p + used, n - used, now, is_live, h,
						  &piece)) {
			case H2_PASS:
				break;
			case H2_THROTTLE:
				h->is_throttled = true;
				return used;
			case H2_BROKEN:
				over(h, -EPROTO);
				return used;
			}
		}
		if (nghttp2_session_mem_recv(h->ng, p + used, piece) != (ssize_t)piece) {
			over(h, -EPROTO);
			return used;
		}
		used += piece;
	}
	return used;
}

static void interest_update(struct h2 *h)
{
	int events = 0;

	if (!is_open(h))
		return;
	if (!h->is_throttled && !buf_len(&h->stash))
		events |= WATCH_READ;
	if (buf_len(&h->out) && !timer_is_set(h->retry))
		events |= WATCH_WRITE;
	watch_set(h->watch, events);
}

/* What could not be looked at when it came. */
static void stash_feed(struct h2 *h)
{
	size_t used;

	h->is_throttled = false;
	if (!buf_len(&h->stash))
		return;
	used = feed(h, buf_data(&h->stash), buf_len(&h->stash));
	if (is_open(h))
		buf_consume(&h->stash, used);
	if (h->is_throttled && is_open(h))
		timer_set(h->retry, RETRY_MS);
}

static void read_some(struct h2 *h)
{
	static uint8_t in[READ_SIZE];
	ssize_t n;
	size_t used;

	for (unsigned i = 0; i < READS_A_TURN && is_open(h) && !h->is_throttled; i++) {
		n = read(h->fd, in, sizeof in);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			over(h, n ? -errno : 0);
			return;
		}
		used = feed(h, in, (size_t)n);
		if (h->is_throttled && is_open(h)) {
			(void)buf_append(&h->stash, in + used, (size_t)n - used); /* was empty */
			timer_set(h->retry, RETRY_MS);
		}
		if ((size_t)n < sizeof in)
			return;
	}
}

/* Fills `out` with frames; false when there are none to make. */
static bool frames_gather(struct h2 *h)
{
	const uint8_t *p;
	ssize_t n;

	while (is_open(h) && buf_len(&h->out) < OUT_FULL) {
		n = nghttp2_session_mem_send(h->ng, &p);
		if (n < 0 || (n > 0 && buf_append(&h->out, p, (size_t)n) < 0)) {
			over(h, -EPROTO);
			return false;
		}
		if (n == 0)
			break;
	}
	return is_open(h) && buf_len(&h->out);
}

/* Writes `out`; false when the transport takes no more now. */
static bool out_write(struct h2 *h, bool was_ready)
{
	ssize_t n;

	while (buf_len(&h->out)) {
		n = write(h->fd, buf_data(&h->out), buf_len(&h->out));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			/* A virtio port may be "writable" and yet refuse while its host side is
			 * not known to be connected: ask again a little later, without spinning. */
			if (was_ready)
				timer_set(h->retry, RETRY_MS);
			return false;
		}
		if (n < 0) {
			over(h, -errno);
			return false;
		}
		buf_consume(&h->out, (size_t)n);
		was_ready = false;
	}
	return true;
}

static void drains_tell(struct h2 *h)
{
	struct h2_stream *s;
	size_t n;

	while (is_open(h) && (s = h->drained)) {
		h->drained = s->next_drained;
		if (!h->drained)
			h->drained_last = &h->drained;
		s->is_drained_listed = false;
		n = s->drained;
		s->drained = 0;
		if (s->ops && !s->is_reset)
			s->ops->on_drain(s, n);
	}
}

static void flush(struct h2 *h, bool was_ready)
{
	while (is_open(h) && out_write(h, was_ready) && frames_gather(h))
		was_ready = false;
	drains_tell(h);
	if (is_open(h) && !buf_len(&h->out) && !nghttp2_session_want_read(h->ng) &&
	    !nghttp2_session_want_write(h->ng))
		over(h, 0);
	interest_update(h);
}

static void on_flush(void *arg)
{
	struct h2 *h = arg;

	h->is_flush_pending = false;
	enter(h);
	if (is_open(h) && !h->is_throttled)
		stash_feed(h);
	if (is_open(h))
		flush(h, false);
	leave(h);
}

void h2_flush_later(struct h2 *h)
{
	if (h->is_flush_pending || !is_open(h))
		return;
	h->is_flush_pending = true;
	loop_later(h->loop, on_flush, h);
}

static void on_retry(void *arg)
{
	struct h2 *h = arg;

	enter(h);
	stash_feed(h);
	if (is_open(h))
		flush(h, true);
	leave(h);
}

static void on_watch(void *arg, int events)
{
	struct h2 *h = arg;

	enter(h);
	if (events & WATCH_READ)
		read_some(h);
	if (is_open(h))
		flush(h, events & WATCH_WRITE);
	leave(h);
}

static void session_make(struct h2 *h)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEADER_LIST_MAX},
		{h->flags & H2_SERVER ? NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL
				      : NGHTTP2_SETTINGS_ENABLE_PUSH,
		 h->flags & H2_SERVER ? 1 : 0},
	};
	nghttp2_session_callbacks *cb;
	nghttp2_option *o;
	int r;

	/* These fail for want of memory only. */
	r = nghttp2_session_callbacks_new(&cb);
	assert(!r);
	r = nghttp2_option_new(&o);
	assert(!r);
	h2_callbacks_fill(cb);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_send_header_block_length(o, 2 * H2_HEADER_LIST_MAX);
	r = h->flags & H2_SERVER ? nghttp2_session_server_new2(&h->ng, cb, h, o)
				 : nghttp2_session_client_new2(&h->ng, cb, h, o);
	assert(!r);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
	r = nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
	assert(!r);
	r = nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0,
						  H2_CONNECTION_WINDOW);
	assert(!r);
}

struct h2 *h2_new(struct loop *l, int fd, unsigned flags, const struct h2_ops *ops, void *arg,
		  const void *early, size_t early_n)
{
	struct h2 *h = xcalloc(1, sizeof *h);

	assert(early_n <= STASH_MAX);
	h->loop = l;
	h->fd = fd;
	h->flags = flags;
	h->ops = ops;
	h->arg = arg;
	h->drained_last = &h->drained;
	buf_init(&h->out, OUT_MAX);
	buf_init(&h->stash, STASH_MAX);
	h2_prefilter_init(&h->filter, flags & H2_SERVER, clock_mono_ns());
	session_make(h);
	h->watch = watch_new(l, fd, on_watch, h);
	h->retry = timer_new(l, on_retry, h);
	if (early_n)
		(void)buf_append(&h->stash, early, early_n);
	interest_update(h);
	h2_flush_later(h);
	return h;
}

void h2_free(struct h2 *h)
{
	if (!h || h->is_freed)
		return;
	h->is_over = true;
	watch_free(h->watch);
	timer_free(h->retry);
	h->watch = NULL;
	h->retry = NULL;
	h->is_freed = true;
	enter(h);
	while (h->streams)
		h2_stream_end(h->streams, H2_CANCEL);
	leave(h);
}

void *h2_arg(const struct h2 *h)
{
	return h->arg;
}

size_t h2_streams(const struct h2 *h)
{
	return h->n_streams;
}

void h2_goaway(struct h2 *h)
{
	(void)nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(h->ng),
				    NGHTTP2_NO_ERROR, NULL, 0);
	h2_flush_later(h);
}
