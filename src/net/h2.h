/* HTTP/2 over any stream socket or character device (nghttp2). Used on the sandbox channel
 * (space-daemon is the client, space-init the server), between spaced (client) and space-daemon
 * (server), and later on the egress side.
 *
 * Flow control is explicit in both directions:
 *   in:  bytes given to on_data stay charged to the peer's window until h2_consume(). A stream
 *        that is never consumed stalls only itself, at H2_STREAM_WINDOW bytes.
 *   out: h2_write() queues at most H2_STREAM_QUEUE bytes a stream (h2_room() says how many more);
 *        on_drain reports what left the queue.
 * So a relay that consumes on A what drained on B holds one window a stream and never more.
 *
 * Callbacks run from the loop, never from inside an h2_* call, except that h2_free() closes the
 * open streams before it returns. on_close is the last callback of a stream and comes exactly once,
 * also when the session ends; afterwards the pointer is dead. */
#ifndef SPACE_NET_H2_H
#define SPACE_NET_H2_H

#include "base/defs.h"

struct loop;
struct h2;
struct h2_stream;

#define H2_STREAM_WINDOW     (256u * 1024)
#define H2_CONNECTION_WINDOW (16u * 1024 * 1024)
#define H2_STREAM_QUEUE      (256u * 1024)
#define H2_HEADERS_MAX       64           /* fields of one message */
#define H2_HEADER_LIST_MAX   (48u * 1024) /* names + values of one message, bytes */
#define H2_STREAMS_MAX       512          /* concurrent, either way */

/* RFC 9113 §7 */
enum h2_code {
	H2_NO_ERROR = 0,
	H2_PROTOCOL_ERROR = 1,
	H2_INTERNAL_ERROR = 2,
	H2_REFUSED_STREAM = 7,
	H2_CANCEL = 8,
	H2_ENHANCE_YOUR_CALM = 11,
};

/* Names are lower case, NUL-terminated; pseudo headers (":method") come first. Values have no NUL,
 * CR or LF. In callbacks they are borrowed until the callback returns; in calls they are copied. */
struct h2_header {
	const char *name;
	const char *value;
};
struct h2_message {
	size_t n;
	struct h2_header h[H2_HEADERS_MAX];
};
const char *h2_get(const struct h2_message *m, const char *name);      /* first value, or NULL */
int h2_add(struct h2_message *m, const char *name, const char *value); /* -ENOBUFS; borrows both */

struct h2_stream_ops {
	/* The head of the answer (client) is complete. Not called for a server's streams. */
	void (*on_head)(struct h2_stream *s, const struct h2_message *m);
	void (*on_data)(struct h2_stream *s, const uint8_t *p, size_t n);
	void (*on_end)(struct h2_stream *s); /* the peer sent END_STREAM */
	void (*on_drain)(struct h2_stream *s,
			 size_t n); /* n queued bytes were framed out; may be NULL */
	void (*on_close)(struct h2_stream *s, uint32_t code);
};

struct h2_ops {
	/* Server: a request's head is complete. Must call h2_accept() (or h2_reset()) before it
	 * returns. */
	void (*on_request)(struct h2 *h, struct h2_stream *s, const struct h2_message *m);
	/* The session is over: err 0 = the peer closed, else a negative errno. Every stream has had
	 * its on_close. The session must be freed with h2_free() (allowed here). */
	void (*on_end)(struct h2 *h, int err);
};

enum h2_flags {
	H2_SERVER = 1,
	/* The peer is a guest, or a program that a guest may have captured: the frame prefilter is
	 * on (types DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE only; small
	 * frames are throttled by not reading; DATA on dead streams is counted; abuse ends the
	 * session with -EPROTO). */
	H2_HOSTILE_PEER = 2,
};

/* `fd` is borrowed, non-blocking, and must outlive the session. `early` bytes (may be NULL) were
 * already read from fd and are treated as the first input. */
struct h2 *h2_new(struct loop *l, int fd, unsigned flags, const struct h2_ops *ops, void *arg,
		  const void *early, size_t early_n);
void h2_free(struct h2 *h); /* streams get on_close(H2_CANCEL); no on_end */
void *h2_arg(const struct h2 *h);
size_t h2_streams(const struct h2 *h);
void h2_goaway(struct h2 *h); /* no new streams from the peer; open ones go on */

/* Client: opens a stream. `is_end`: no body follows. NULL when the session is over or full. */
struct h2_stream *h2_request(struct h2 *h, const struct h2_message *m, bool is_end,
			     const struct h2_stream_ops *ops, void *arg);

/* Server: takes the stream of on_request. */
void h2_accept(struct h2_stream *s, const struct h2_stream_ops *ops, void *arg);
/* Once. A HEAD is answered by its head alone: what is written behind it drains and goes nowhere. */
int h2_respond(struct h2_stream *s, const struct h2_message *m, bool is_end);

void *h2_stream_arg(const struct h2_stream *s);
struct h2 *h2_stream_session(const struct h2_stream *s);
size_t h2_room(const struct h2_stream *s);                  /* bytes h2_write takes now */
int h2_write(struct h2_stream *s, const void *p, size_t n); /* all, or -ENOBUFS */
void h2_finish(struct h2_stream *s);                        /* END_STREAM after the queue */
void h2_consume(struct h2_stream *s, size_t n);             /* gives n bytes of window back */
void h2_reset(struct h2_stream *s, uint32_t code);          /* on_close follows, later */

#endif
