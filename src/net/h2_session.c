/* A session's life and its descriptor. All work is done in turns: a turn is started by readiness or
 * by the kick timer, reads at most IN_MAX bytes, feeds them to nghttp2, writes what nghttp2 has to
 * send in as few calls as possible, and then tells streams what left and what closed.
 *
 * A character device (a virtio port in the guest) differs from a socket: while nobody holds the
 * other end, poll says readable and hung up, read() gives 0 and write() EAGAIN, and all that may be
 * true for a moment while the other end is already sending. So on a port an event that moved no
 * byte only makes the session rest for a moment; the owner learns from elsewhere when the other end
 * is new. */
#include "net/h2_internal.h"

#include "base/alloc.h"
#include "net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define IN_MAX      (256u * 1024) /* read in one turn */
#define OUT_MAX     (128u * 1024) /* framed ahead: more would delay short answers */
#define OUT_FRAME   (32u * 1024)  /* above any one frame */
#define ROUNDS_MAX  8             /* send and tell, in one turn */
#define CONTROL_MAX 4096u         /* frames (not DATA) waiting to be sent: then we stop reading */
#define REST_MAX_MS 64u
#define STALL_MS    60000u /* without a byte being taken */

/* One loop, one thread, and turns do not nest: all sessions read into the same room. */
static uint8_t in_room[IN_MAX];

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

void h2_kick(struct h2 *h)
{
	h->is_dirty = true;
	if (!h->is_busy && !h->is_over && !h->is_freed)
		timer_set(h->kick, 0);
}

/* --- input --- */

/* DATA of a hostile peer that reached no stream, beyond what we caused by resets. */
static bool has_too_much_dead_data(const struct h2 *h)
{
	return h->filter.data_bytes - h->data_taken > h->dead_data_allow;
}

static int feed_some(struct h2 *h, const uint8_t *p, size_t n)
{
	ssize_t r = nghttp2_session_mem_recv(h->ng, p, n);

	h->is_dirty = true;
	if (h->is_freed)
		return -ECANCELED;
	if (r == NGHTTP2_ERR_NOMEM)
		return -ENOMEM;
	if (r < 0 || (size_t)r != n)
		return -EPROTO;
	return 0;
}

/* Takes all of p, or keeps the rest for later when the peer is too fast. */
static int feed(struct h2 *h, const uint8_t *p, size_t n)
{
	size_t used = n;
	int verdict = 0;
	int r;

	h->is_throttled = false;
	if (h->flags & H2_HOSTILE_PEER)
		verdict = h2_prefilter_step(&h->filter, p, n, loop_now_ns(h->loop), &used);
	if (verdict == -EPROTO)
		return verdict;
	r = used ? feed_some(h, p, used) : 0;
	if (r < 0)
		return r;
	if ((h->flags & H2_HOSTILE_PEER) && has_too_much_dead_data(h))
		return -EPROTO;
	h->is_throttled = verdict == -EAGAIN;
	return h->is_throttled ? buf_append(&h->held, p + used, n - used) : 0;
}

static int feed_held(struct h2 *h)
{
	struct buf mine = h->held;
	int r;

	buf_init(&h->held, larger(mine.max, buf_len(&mine)));
	r = feed(h, buf_data(&mine), buf_len(&mine));
	buf_done(&mine);
	return r;
}

static bool may_read(const struct h2 *h)
{
	return !h->is_throttled && buf_len(&h->held) == 0 &&
	       nghttp2_session_get_outbound_queue_size(h->ng) <= CONTROL_MAX;
}

/* Drains the descriptor: a port gives no more than one of its buffers at a time. */
static int read_all(struct h2 *h, size_t *ret_n)
{
	size_t n = 0;
	int err = 0;

	while (n < sizeof in_room) {
		ssize_t got = read(h->fd, in_room + n, sizeof in_room - n);

		if (got > 0) {
			n += (size_t)got;
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			err = h->is_port ? 0 : -ENODATA;
		else if (errno != EAGAIN)
			err = -errno;
		break;
	}
	*ret_n = n;
	return err;
}

static int session_read(struct h2 *h, bool *ret_moved)
{
	size_t n = 0;
	int r = 0;
	int err;

	if (buf_len(&h->held))
		r = feed_held(h);
	if (r < 0 || !may_read(h))
		return r;
	err = read_all(h, &n);
	*ret_moved = n > 0;
	if (n)
		r = feed(h, in_room, n);
	return r < 0 ? r : err;
}

/* --- output --- */

static int fill(struct h2 *h)
{
	const uint8_t *p;

	h->is_dirty = false;
	while (buf_len(&h->out) < OUT_MAX) {
		ssize_t n = nghttp2_session_mem_send(h->ng, &p);

		if (n < 0)
			return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
		if (n == 0)
			return 0;
		if (buf_append(&h->out, p, (size_t)n) < 0)
			return -ENOMEM;
	}
	h->is_dirty = true;
	return 0;
}

static int session_write(struct h2 *h, bool *ret_moved)
{
	ssize_t n;
	int r = 0;

	if (h->is_blocked)
		return 0;
	if (buf_len(&h->out) == 0)
		r = fill(h);
	if (r < 0 || buf_len(&h->out) == 0)
		return r;
	n = write(h->fd, buf_data(&h->out), buf_len(&h->out));
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n <= 0) {
		h->is_blocked = true;
		if (!timer_is_set(h->stall))
			timer_set(h->stall, STALL_MS);
		return 0;
	}
	*ret_moved = true;
	timer_clear(h->stall);
	buf_consume(&h->out, (size_t)n);
	h->is_blocked = buf_len(&h->out) > 0;
	if (h->is_blocked)
		timer_set(h->stall, STALL_MS);
	return 0;
}

/* --- the turn --- */

static void session_destroy(struct h2 *h)
{
	nghttp2_session_del(h->ng);
	h2_head_done(&h->head);
	buf_done(&h->out);
	buf_done(&h->held);
	free(h);
}

/* Every stream that is left is told; callbacks may free the session meanwhile. */
static void streams_cut(struct h2 *h, uint32_t code)
{
	while (h->streams) {
		struct h2_stream *s = h->streams;

		if (!s->is_closed)
			s->code = code;
		s->is_closed = true;
		h2_stream_end(s);
	}
	h->tell_first = NULL;
	h->tell_last = &h->tell_first;
}

static void session_over(struct h2 *h, int err)
{
	h->is_over = true;
	timer_clear(h->kick);
	timer_clear(h->stall);
	watch_free(h->watch);
	h->watch = NULL;
	streams_cut(h, H2_INTERNAL_ERROR);
	if (!h->is_freed)
		h->ops->on_end(h, err);
}

/* Interest is computed from the state, here and nowhere else. */
static void session_arm(struct h2 *h)
{
	int events = 0;

	if (h->is_resting) {
		h->rest_ms = h->rest_ms ? (unsigned)size_min(h->rest_ms * 2, REST_MAX_MS) : 1;
		timer_set(h->kick, h->rest_ms);
	} else {
		events |= may_read(h) ? WATCH_READ : 0;
		events |= h->is_blocked ? WATCH_WRITE : 0;
		if (h->is_dirty && !h->is_blocked)
			timer_set(h->kick, 0);
		else if (h->is_throttled)
			timer_set(h->kick, PREFILTER_WAIT_MS);
	}
	watch_set(h->watch, events);
}

static int send_and_tell(struct h2 *h, bool *ret_moved)
{
	for (size_t i = 0; i < ROUNDS_MAX; i++) {
		int r = session_write(h, ret_moved);

		if (r < 0)
			return r;
		h2_streams_tell(h);
		if (h->is_freed)
			return -ECANCELED;
		if (h->is_blocked || !h->is_dirty)
			break;
	}
	return 0;
}

static bool has_ended(const struct h2 *h)
{
	return !nghttp2_session_want_read(h->ng) && !nghttp2_session_want_write(h->ng) &&
	       buf_len(&h->out) == 0;
}

static int session_work(struct h2 *h, int events)
{
	bool has_read = false;
	bool has_written = false;
	int r = session_read(h, &has_read);
	int sent;

	if (r == -ECANCELED)
		return r;
	if (events & WATCH_WRITE)
		h->is_blocked = false;
	sent = send_and_tell(h,
			     &has_written); /* also after an error: it may explain it to the peer */
	if (sent == -ECANCELED || r < 0)
		return sent == -ECANCELED ? sent : r;
	h->is_resting = h->is_port && events && !has_read && !has_written;
	if (has_read || has_written)
		h->rest_ms = 0;
	return sent;
}

static void session_turn(struct h2 *h, int events)
{
	int r;

	h->is_busy = true;
	h->is_resting = false;
	r = session_work(h, events);
	if (!h->is_freed && r == 0 && has_ended(h))
		r = h->goaway_err ? h->goaway_err : -ENODATA;
	if (!h->is_freed && r < 0)
		session_over(h, r == -ENODATA ? h->goaway_err : r);
	else if (!h->is_freed)
		session_arm(h);
	h->is_busy = false;
	if (h->is_freed)
		session_destroy(h);
}

static void on_ready(void *arg, int events)
{
	session_turn(arg, events);
}

static void on_kick(void *arg)
{
	struct h2 *h = arg;

	session_turn(h, h->is_resting ? WATCH_READ | WATCH_WRITE : 0);
}

static void on_stall(void *arg)
{
	struct h2 *h = arg;

	h->is_busy = true;
	session_over(h, -ETIMEDOUT);
	h->is_busy = false;
	if (h->is_freed)
		session_destroy(h);
}

/* --- life --- */

struct h2 *h2_new(struct loop *l, int fd, unsigned flags, const struct h2_ops *ops, void *arg,
		  const void *early, size_t early_n)
{
	struct h2 *h = xcalloc(1, sizeof *h);
	socklen_t n = sizeof(int);
	int type;

	*h = (struct h2){.loop = l, .fd = fd, .flags = flags, .ops = ops, .arg = arg};
	h->is_port = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0;
	h->tell_last = &h->tell_first;
	h->dead_data_allow = H2_DEAD_DATA_ALLOW;
	h2_head_init(&h->head);
	buf_init(&h->out, OUT_MAX + OUT_FRAME);
	buf_init(&h->held, larger(IN_MAX, early_n));
	h2_prefilter_init(&h->filter, flags & H2_SERVER, loop_now_ns(l));
	if (buf_append(&h->held, early, early_n) < 0 || h2_events_session(h, &h->ng) < 0)
		abort(); /* out of memory for a few KiB */
	h->kick = timer_new(l, on_kick, h);
	h->stall = timer_new(l, on_stall, h);
	h->watch = watch_new(l, fd, on_ready, h);
	h2_kick(h);
	return h;
}

void h2_free(struct h2 *h)
{
	if (!h || h->is_freed)
		return;
	h->is_freed = true;
	watch_free(h->watch);
	timer_free(h->kick);
	timer_free(h->stall);
	streams_cut(h, H2_CANCEL);
	if (!h->is_busy)
		session_destroy(h);
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
	if (h->is_over || h->is_freed)
		return;
	(void)nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(h->ng),
				    NGHTTP2_NO_ERROR, NULL, 0);
	h2_kick(h);
}
