/* What the files of the HTTP server share.
 *
 *   http_server.c  the listening socket and the set of connections
 *   http_conn.c    one connection: what it waits for, reading, the request's body
 *   http_answer.c  what the owner does with an exchange, and how it is put on the wire
 *
 * Owners' callbacks run only in a turn of the connection (and from http_server_free()). A callback
 * may end everything: then the connection is only marked dead, and the turn on the stack frees
 * it. */
#ifndef SPACE_NET_HTTP_INTERNAL_H
#define SPACE_NET_HTTP_INTERNAL_H

#include "base/buf.h"
#include "net/http_server.h"

struct timer;
struct watch;

enum conn_state { CONN_HEAD, CONN_BUSY, CONN_SKIP, CONN_LINGER, CONN_STATES };
enum conn_wait { WAIT_OWNER, WAIT_IDLE, WAIT_HEAD, WAIT_BODY, WAIT_WRITE, WAIT_LINGER, CONN_WAITS };

/* How the answer's body is framed. */
enum answer_body { ANSWER_NONE, ANSWER_LENGTH, ANSWER_CHUNKED, ANSWER_CLOSE };

struct http_exchange {
	struct http_conn *conn;
	const struct http_exchange_ops *ops; /* NULL: the body is read over */
	void *arg;
	struct http1_request request;
	struct buf head; /* the bytes that `request` borrows from */

	/* the request's body */
	uint64_t left; /* HTTP1_BODY_LENGTH */
	struct http1_chunked chunked;
	size_t held; /* given to on_data, not consumed */
	bool has_body_end;
	bool wants_continue;

	/* the answer */
	enum answer_body answer;
	uint64_t answer_left; /* ANSWER_LENGTH */
	struct buf body;      /* queued, not framed yet */
	size_t drained;       /* framed, not told yet */
	bool has_head;
	bool is_finished; /* by the owner */
	bool has_last;    /* and all of it is framed */
	bool keeps;       /* the connection may serve another request */
	bool is_cut;      /* http_abort(), or an answer that cannot become whole */
};

struct http_conn {
	struct http_server *server;
	int fd;
	enum conn_state state;
	enum conn_wait wait;
	uint64_t wait_ns; /* since when, or since the last progress */
	struct watch *watch;
	struct timer *kick;
	struct timer *deadline;
	struct buf in;
	struct buf out;
	struct http_exchange *x; /* CONN_BUSY */
	uint64_t skip_left;      /* CONN_SKIP, CONN_LINGER: bytes that are still read over */
	size_t parsed_n;         /* bytes of `in` at the last try to parse a head */
	unsigned requests;
	bool is_blocked;
	bool has_progress;
	bool has_more; /* the turn stopped for fairness */
	bool is_shut;  /* CONN_LINGER: our side is closed */
	bool is_busy;  /* a turn is on the stack */
	bool is_dead;
	struct http_conn *next;
	struct http_conn *prev;
};

/* http_server.c */
struct loop *http_server_loop(const struct http_server *s);
uint64_t http_server_wait_ms(const struct http_server *s, enum conn_wait wait);
void http_server_set_wait(struct http_server *s, enum conn_wait wait, uint64_t ms); /* for tests */
void http_server_request(struct http_server *s, struct http_exchange *x);
void http_server_forget(struct http_server *s, struct http_conn *c);

/* http_conn.c */
struct http_conn *http_conn_new(struct http_server *s, int fd);
void http_conn_close(struct http_conn *c, bool is_hard); /* tells the owner of an open exchange */
bool http_conn_is_idle(const struct http_conn *c);
/* Without an exchange for a while: idle, or with half a head, or at its end. */
bool http_conn_is_loitering(const struct http_conn *c);
void http_conn_kick(struct http_conn *c);

/* http_answer.c */
void http_answer_fill(struct http_exchange *x,
		      struct buf *out); /* moves what is queued to the wire */
/* A whole answer without an exchange: the refusal of a malformed request. */
void http_answer_refuse(struct buf *out, unsigned status, const char *why);

#define HTTP_HEAD_ROOM (80u * 1024) /* our own head: fields of one h2 message and ours */
#define HTTP_PIECE     (64u * 1024) /* framed at once */
#define HTTP_SKIP_WORTH                                                                            \
	(64u * 1024) /* no more of a body than this is read over to keep a connection */
#define HTTP_OUT_MAX (HTTP_HEAD_ROOM + HTTP_PIECE + 32)

#endif
