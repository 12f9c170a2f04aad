/* HTTP calls from a program that trusts its user and nobody else (libcurl in the loop): the command
 * line to its node, over TCP, TLS or a unix socket. Any number of calls at once.
 *
 * Never: a redirect followed, a proxy from the environment, a scheme but http and https, a cookie,
 * a file. The body of a request is given whole; that of an answer streams: bytes given to on_data
 * stay charged until http_call_consume(), and at HTTP_CALL_WINDOW the socket is read no further.
 *
 * Callbacks run from the loop, never from inside an http_call_* function. A callback may free its
 * own call, any other call, and (on_end of the last one) the client. */
#ifndef SPACE_NET_HTTP_CLIENT_H
#define SPACE_NET_HTTP_CLIENT_H

#include "base/fail.h"

struct loop;
struct http_client;
struct http_call;

#define HTTP_CALL_WINDOW     (256u * 1024)
#define HTTP_CALL_HEAD_MAX   (64u * 1024) /* status line and fields of an answer, bytes */
#define HTTP_CALL_CONNECT_MS 10000u

/* url: "http://host:port" or "https://host", without a path. sock: NULL, or the path of a unix
 * socket to connect to instead of the URL's host (may be /proc/self/fd/N/name). Both are copied.
 * -EINVAL: not such a URL; -ENAMETOOLONG: the socket's path. */
int http_client_new(struct loop *l, const char *url, const char *sock, struct http_client **ret,
		    struct fail *f);
void http_client_free(struct http_client *c); /* frees the calls too, without a callback */

struct http_call_field {
	const char *name;
	const char *value;
};
struct http_call_spec {
	const char *method;
	const char *path; /* target in origin form: "/sandboxes?limit=3" */
	const struct http_call_field *fields;
	size_t n_fields;
	const void *body; /* copied; NULL: none */
	size_t body_n;
	unsigned timeout_ms; /* of the whole call; 0: none (a stream) */
};
struct http_call_ops {
	/* The answer's head is complete (1xx heads are not told): http_call_field() may be
	 * asked. */
	void (*on_head)(void *arg, unsigned status);
	void (*on_data)(void *arg, const uint8_t *p, size_t n);
	/* Last, once, also after http_call_cancel(); then the call must be freed (allowed here).
	 * 0: the answer is whole. -ECANCELED; -ECONNREFUSED (nobody there), -EHOSTUNREACH (no such
	 * host), -ETIMEDOUT, -ECONNRESET (cut), -EPROTO (not HTTP, or over a limit), -EKEYREJECTED
	 * (TLS: not who it should be). */
	void (*on_end)(void *arg, int err);
};

/* NULL: the spec cannot be a request (a method or field that is none, a path without its slash). */
struct http_call *http_call_start(struct http_client *c, const struct http_call_spec *s,
				  const struct http_call_ops *ops, void *arg);
void http_call_consume(struct http_call *k, size_t n);
void http_call_cancel(struct http_call *k); /* on_end(-ECANCELED) follows, later */
void http_call_free(struct http_call *k);   /* no callback any more; NULL is fine */

/* A field of the answer's head, any case; NULL: none, or more than one. Borrowed until the call
 * ends. */
const char *http_call_field(const struct http_call *k, const char *name);

#endif
