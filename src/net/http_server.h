/* The public side of spaced: HTTP/1.1 on stream sockets, parsed by wire/http1 (strict).
 *
 * One exchange at a time on a connection (pipelined bytes wait). Full duplex: an answer may begin,
 * and end, before the request's body did. Bodies in both directions are streamed with explicit
 * back-pressure, like net/h2.h: body bytes are charged until http_consume(); http_write() queues at
 * most HTTP_QUEUE bytes and on_drain says what left. Malformed requests are answered here
 * (400, 411, 413, 414, 431, 501, 505) in the platform's form {"code":N,"message":"..."} and the
 * connection is closed; the callbacks never see them. Every wait has a deadline (head 30 s,
 * body progress 300 s, idle keep-alive 75 s, write progress 300 s).
 *
 * A client that closes its sending side while an exchange is open counts as gone, and is noticed
 * also while nothing is read. An answer that ends before a long body did closes the connection, but
 * lingers so that the client can read it. At HTTP_CONNECTIONS_MAX the connection that is idle
 * longest makes room, else the oldest that has no whole request; when all have one, newcomers wait
 * unaccepted. */
#ifndef SPACE_NET_HTTP_SERVER_H
#define SPACE_NET_HTTP_SERVER_H

#include "base/defs.h"
#include "wire/http1.h"

struct loop;
struct http_server;
struct http_exchange;

#define HTTP_QUEUE           (256u * 1024)
#define HTTP_WINDOW          (256u * 1024)
#define HTTP_CONNECTIONS_MAX 4096

struct http_server_ops {
	/* A request's head is complete; r is borrowed until on_close. Must answer sooner or
	 * later. */
	void (*on_request)(void *arg, struct http_exchange *x, const struct http1_request *r);
};
struct http_exchange_ops {
	void (*on_data)(struct http_exchange *x, const uint8_t *p, size_t n); /* request body */
	void (*on_end)(struct http_exchange *x);                              /* body complete */
	void (*on_drain)(struct http_exchange *x, size_t n);
	/* Last, once: is_aborted = the client went away, broke the protocol, or http_abort(). */
	void (*on_close)(struct http_exchange *x, bool is_aborted);
};

/* Takes a listening descriptor. */
struct http_server *http_server_new(struct loop *l, int fd, const struct http_server_ops *ops,
				    void *arg);
void http_server_free(struct http_server *s); /* stops accepting and aborts what is open */

/* In on_request: how the exchange goes on. Without ops the body is discarded and only
 * http_respond_full() is used. */
void http_exchange_set(struct http_exchange *x, const struct http_exchange_ops *ops, void *arg);
void *http_exchange_arg(const struct http_exchange *x);
const struct http1_request *http_exchange_request(const struct http_exchange *x);

struct http_field {
	const char *name; /* any case, kept */
	const char *value;
};
/* length: the body's bytes; HTTP_CHUNKED: unknown, chunked (close-delimited for an HTTP/1.0
 * client). Date and Connection are added here. -EALREADY when the head was sent, -EINVAL for a
 * status or field that cannot be sent (framing and Date are ours), -EPIPE when it was cut. */
#define HTTP_CHUNKED UINT64_MAX
int http_respond(struct http_exchange *x, unsigned status, const struct http_field *h, size_t n_h,
		 uint64_t length);
size_t http_room(const struct http_exchange *x);
int http_write(struct http_exchange *x, const void *p, size_t n); /* all, or -ENOBUFS */
void http_finish(struct http_exchange *x); /* a body shorter than its length is cut, not ended */
void http_consume(struct http_exchange *x, size_t n);
/* A whole answer at once (any size), and the exchange is done. body may be NULL with n 0. */
void http_respond_full(struct http_exchange *x, unsigned status, const char *content_type,
		       const void *body, size_t n);
/* Cut the connection (RST): no final chunk, so the client sees that the answer is not whole. */
void http_abort(struct http_exchange *x);
bool http_head_sent(const struct http_exchange *x);

#endif
