/* What the files of net/h2 share. Not for anyone else: nghttp2's types stay below net/h2.h. */
#ifndef SPACE_NET_H2_IMPL_H
#define SPACE_NET_H2_IMPL_H

#include "base/buf.h"
#include "net/h2.h"
#include "net/h2_prefilter.h"

#include <nghttp2/nghttp2.h>

/* The head of one message while its fields come in: texts in one arena, found again by offset,
 * because the arena moves while it grows. */
struct h2_head {
	struct buf text;
	uint32_t name[H2_HEADERS_MAX];
	uint32_t value[H2_HEADERS_MAX];
	size_t n;
};

struct h2_stream {
	struct h2 *h;
	struct h2_stream *next;
	struct h2_stream *prev;
	struct h2_stream *next_drained;
	int32_t id;
	const struct h2_stream_ops *ops; /* NULL: nobody took it yet, or it is being reset */
	void *arg;
	struct h2_head *head; /* while it is being received */
	struct buf queue;     /* body bytes to send */
	size_t drained;       /* bytes that left the queue since the last on_drain */
	size_t held;          /* bytes given to on_data and not consumed yet */
	bool is_drained_listed;
	bool has_head; /* the message's head was delivered */
	bool is_finished;
	bool is_deferred; /* the data provider waits for h2_write() or h2_finish() */
	bool has_responded;
	bool is_reset; /* by us: what still comes in is dropped */
};

struct h2 {
	struct loop *loop;
	int fd;
	unsigned flags;
	const struct h2_ops *ops;
	void *arg;
	nghttp2_session *ng;
	struct watch *watch;
	struct timer *retry; /* a write that must be tried again, or input that was throttled */
	struct buf out;      /* frames not written yet */
	struct buf stash;    /* input not looked at yet: early bytes, or throttled */
	size_t list_bytes;   /* of the header list that is coming in */
	struct h2_stream *streams;
	size_t n_streams;
	struct h2_stream *drained;
	struct h2_stream **drained_last;
	struct h2_prefilter filter;
	unsigned busy;         /* depth of calls that use `ng` or this object */
	bool is_flush_pending; /* a loop_later() holds the pointer */
	bool is_over;          /* no more I/O */
	bool is_throttled;     /* the stash waits for `retry` */
	bool is_freed;         /* memory goes when busy and the flush are done */
};

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
/* Tells the owner, if there is one, and frees it. */
void h2_stream_end(struct h2_stream *s, uint32_t code);
void h2_stream_listed(struct h2_stream *s, size_t drained);

/* Asks for a flush in the next turn: frames are never written inside a caller's call. */
void h2_flush_later(struct h2 *h);

void h2_callbacks_fill(nghttp2_session_callbacks *cb);

/* Limits are checked while it grows: -ENOBUFS over H2_HEADERS_MAX or H2_HEADER_LIST_MAX. */
int h2_head_add(struct h2_head *hd, const uint8_t *name, size_t name_n, const uint8_t *value,
		size_t value_n);
void h2_head_message(const struct h2_head *hd, struct h2_message *ret);
void h2_head_free(struct h2_head *hd);

#endif
