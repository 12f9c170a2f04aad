/* What the files of h2 share: the session, the stream, and who calls whom.
 *
 *   h2_session.c    life, the descriptor, one turn: read, feed, send, tell
 *   h2_events.c     nghttp2's callbacks: what the peer did
 *   h2_stream.c     what the owner does: requests, answers, bodies, resets
 *   h2_message.c    header lists
 *   h2_prefilter.c  what a hostile peer may send at all
 *
 * Owners' callbacks run only in a turn. From nghttp2's receiving callbacks run on_request, on_head,
 * on_data, on_end; after them, outside nghttp2, on_drain and on_close from the list of streams that
 * have something to tell. A callback may free the session: then it is only marked, and the turn
 * that is on the stack ends it. */
#ifndef SPACE_NET_H2_INTERNAL_H
#define SPACE_NET_H2_INTERNAL_H

#include "base/buf.h"
#include "net/h2.h"
#include "net/h2_prefilter.h"

#include <nghttp2/nghttp2.h>

struct timer;
struct watch;

/* A header list while it arrives. */
struct h2_head {
	size_t n;
	size_t bytes; /* names + values */
	struct buf text;
	struct {
		size_t name;
		size_t value;
	} at[H2_HEADERS_MAX];
};

struct h2 {
	struct loop *loop;
	int fd;
	unsigned flags;
	const struct h2_ops *ops;
	void *arg;
	nghttp2_session *ng;
	struct watch *watch;
	struct timer *kick;  /* the next turn when no readiness brings it */
	struct timer *stall; /* set while bytes wait to be written */
	struct buf out;      /* frames on their way */
	struct buf held;     /* input that waits: early bytes, or a throttled peer's */
	struct h2_head head;
	struct h2_prefilter filter;
	uint64_t data_taken;      /* payload of DATA that reached a stream */
	uint64_t dead_data_allow; /* and how much may not */
	unsigned strikes;         /* messages that were refused */
	unsigned rest_ms;
	struct h2_stream *streams;
	size_t n_streams;
	struct h2_stream *tell_first;
	struct h2_stream **tell_last;
	int goaway_err; /* -EPROTO: one side ended the session for an error */
	bool is_port;   /* a character device: see h2_session.c */
	bool is_dirty;  /* nghttp2 may have something to send */
	bool is_throttled;
	bool is_resting;
	bool is_blocked; /* the descriptor takes no more now */
	bool is_busy;    /* a turn is on the stack */
	bool is_over;
	bool is_freed;
};

struct h2_stream {
	struct h2 *h2;
	int32_t id;
	const struct h2_stream_ops *ops; /* NULL: not accepted */
	void *arg;
	struct buf out;
	size_t drained; /* framed out, not told yet */
	uint32_t code;
	bool has_head;     /* client: the answer's head was seen; server: sent */
	bool has_no_body;  /* server: the request was a HEAD, so the answer is a head */
	bool has_peer_end; /* END_STREAM was seen */
	bool is_finished;  /* END_STREAM goes out behind the queue */
	bool is_deferred;  /* nghttp2 waits for h2_stream_resume() */
	bool is_reset;     /* by us */
	bool is_closed;    /* on_close is due */
	bool is_telling;   /* in the list */
	struct h2_stream *tell_next;
	struct h2_stream *next;
	struct h2_stream *prev;
};

#define H2_DEAD_DATA_ALLOW (1024u * 1024) /* DATA to streams that never were or are long gone */
#define H2_STRIKES_MAX     8u             /* malformed or over-long messages of a hostile peer */

/* h2_session.c */
void h2_kick(struct h2 *h); /* something is to be sent or told */

/* h2_events.c */
int h2_events_session(struct h2 *h, nghttp2_session **ret);

/* h2_stream.c */
struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
void h2_stream_tell(struct h2_stream *s);
void h2_stream_closed(struct h2_stream *s, uint32_t code); /* on_close is due now */
void h2_stream_end(struct h2_stream *s); /* calls on_close if it is owed, and frees */
void h2_streams_tell(struct h2 *h);      /* on_drain and on_close; may free the session */

/* h2_message.c */
void h2_head_init(struct h2_head *h);
void h2_head_done(struct h2_head *h);
void h2_head_reset(struct h2_head *h);
/* -E2BIG over a limit, -EBADMSG for bytes that are no C string. */
int h2_head_add(struct h2_head *h, const uint8_t *name, size_t name_n, const uint8_t *value,
		size_t value_n);
void h2_head_message(const struct h2_head *h, struct h2_message *ret); /* borrows */
/* Checks what is to be sent, and borrows it for nghttp2. -EINVAL, -E2BIG. */
int h2_message_nv(const struct h2_message *m, nghttp2_nv nv[H2_HEADERS_MAX]);

#endif
