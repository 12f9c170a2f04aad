/* HTTP/1.1 message heads and chunked bodies (RFC 9112), strict: one spelling accepted, ambiguity
 * refused. Pure: no clock, no descriptor. What is refused: the table in http1_test.c;
 * and why, where Node would accept it: tests/unit/http1_node/compare.js.
 *
 *   - CRLF only; no bare LF, no obs-fold, no space before the colon, no NUL or control in values
 *   - names and methods are RFC 9110 tokens; Host exactly once (HTTP/1.1), a valid host[:port]
 *   - Content-Length once and digits only; Transfer-Encoding exactly "chunked", once, HTTP/1.1
 * only,
 *     never together with Content-Length
 *   - origin-form target (or "*" for OPTIONS) of visible ASCII without '#'; no CONNECT
 *   - Expect is "100-continue" or absent; Connection is a list of tokens
 *   - chunk extensions and trailers: read over within a limit, never passed on */
#ifndef SPACE_WIRE_HTTP1_H
#define SPACE_WIRE_HTTP1_H

#include "base/defs.h"

#define HTTP1_HEAD_MAX       (64u * 1024) /* request line + fields, bytes */
#define HTTP1_TARGET_MAX     (16u * 1024)
#define HTTP1_FIELDS_MAX     100
#define HTTP1_METHOD_MAX     24
#define HTTP1_HOST_MAX       261  /* a 255 byte name, a colon, a port */
#define HTTP1_CHUNK_LINE_MAX 256  /* size and extensions, without CRLF */
#define HTTP1_TRAILER_MAX    8192 /* all trailers, with their CRLFs */

struct http1_str { /* borrowed from the bytes parsed; not NUL-terminated */
	const char *p;
	size_t n;
};
struct http1_field {
	struct http1_str name;  /* spelling kept */
	struct http1_str value; /* without surrounding blanks */
};
enum http1_body { HTTP1_BODY_NONE, HTTP1_BODY_LENGTH, HTTP1_BODY_CHUNKED };

struct http1_request {
	struct http1_str method;
	struct http1_str target;
	struct http1_str host; /* "" with HTTP/1.0 */
	unsigned minor;        /* HTTP/1.minor */
	bool keep_alive;
	bool expects_continue;
	enum http1_body body;
	uint64_t length; /* HTTP1_BODY_LENGTH */
	size_t n_fields;
	struct http1_field field[HTTP1_FIELDS_MAX];
};

/* Parses a head from the front of p. *ret_used: bytes of the head. Returns 0 (complete),
 * -EAGAIN (need more), or -EBADMSG with *ret_status the answer's status (400, 414, 431, 501, 505)
 * and *ret_why a static sentence. At HTTP1_HEAD_MAX "need more" becomes 431. What a prefix is
 * refused for, the whole is refused for, with the same status: it does not matter how bytes
 * arrive. */
int http1_request_parse(struct http1_request *ret, const void *p, size_t n, size_t *ret_used,
			unsigned *ret_status, const char **ret_why);

/* The only field of that name (ASCII case-insensitive). NULL: none, or more than one. */
const struct http1_str *http1_find(const struct http1_request *r, const char *name);

/* Is it a token / may it be a value: what one of us prints must pass these first. */
bool http1_name_valid(const char *p, size_t n);
bool http1_value_valid(const char *p, size_t n); /* also: no blank at either end */
const char *http1_status_text(unsigned status);  /* "Not Found"; "" when we have no words for it */

/* Decoder of a chunked body: a state machine fed with what came in. */
struct http1_chunked {
	unsigned state;
	uint64_t left;
	uint32_t line_n;
	uint32_t trailer_n;
};
void http1_chunked_init(struct http1_chunked *c);
/* Consumes from p. *ret_used: bytes consumed; *ret_data, *ret_data_n: body bytes within them (a
 * slice of p, at most one a call). Returns 1 at the end of the body, 0 to go on, -EBADMSG. */
int http1_chunked_step(struct http1_chunked *c, const uint8_t *p, size_t n, size_t *ret_used,
		       const uint8_t **ret_data, size_t *ret_data_n);
#endif
