/* The owner's side of an exchange: heads are checked, bodies are queued and framed. Nothing is
 * written here and no callback is called: the connection's turn does both. */
#include "net/http_internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "net/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DATE_SIZE   40
#define REFUSAL_MAX 512

/* RFC 9110 §5.6.7, without a locale. */
static void date_print(char dst[DATE_SIZE])
{
	static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t now = time(NULL);
	struct tm t;

	(void)gmtime_r(&now, &t);
	(void)snprintf(dst, DATE_SIZE, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday],
		       t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min,
		       t.tm_sec);
}

/* Fields that say how the message is framed are ours alone. */
static bool is_framing(const char *name)
{
	static const char *const names[] = {"connection",
					    "content-length",
					    "transfer-encoding",
					    "keep-alive",
					    "upgrade",
					    "trailer",
					    "te",
					    "date"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(name, names[i]))
			return true;
	return false;
}

static bool fields_valid(const struct http_field *h, size_t n)
{
	size_t left = HTTP_HEAD_ROOM - 1024;

	for (size_t i = 0; i < n; i++) {
		size_t name_n = strlen(h[i].name);
		size_t value_n = strlen(h[i].value);

		if (!http1_name_valid(h[i].name, name_n) ||
		    !http1_value_valid(h[i].value, value_n) || is_framing(h[i].name) ||
		    name_n > left || value_n + 4 > left - name_n)
			return false;
		left -= name_n + value_n + 4;
	}
	return true;
}

static bool method_is(const struct http1_request *r, const char *name)
{
	return r->method.n == strlen(name) && memcmp(r->method.p, name, r->method.n) == 0;
}

static enum answer_body body_of(const struct http1_request *r, unsigned status, uint64_t length)
{
	if (status == 204 || status == 304 || method_is(r, "HEAD"))
		return ANSWER_NONE;
	if (length != HTTP_CHUNKED)
		return ANSWER_LENGTH;
	return r->minor >= 1 ? ANSWER_CHUNKED : ANSWER_CLOSE;
}

/* May the connection go on after an answer that is ready now? `is_whole`: nothing follows it. */
static bool can_keep(const struct http_exchange *x, bool is_whole)
{
	const struct http1_request *r = &x->request;

	if (!r->keep_alive || x->answer == ANSWER_CLOSE)
		return false;
	if (x->has_body_end || r->body == HTTP1_BODY_NONE)
		return true;
	if (x->wants_continue) /* whether the body comes now, nobody knows */
		return false;
	return !is_whole || (r->body == HTTP1_BODY_LENGTH && x->left <= HTTP_SKIP_WORTH);
}

static void head_print(struct http_exchange *x, unsigned status, const struct http_field *h,
		       size_t n, uint64_t length)
{
	struct buf *out = &x->conn->out;
	char date[DATE_SIZE];
	int r;

	date_print(date);
	r = buf_printf(out, "HTTP/1.1 %u %s\r\nDate: %s\r\n", status, http1_status_text(status),
		       date);
	for (size_t i = 0; i < n && r == 0; i++)
		r = buf_printf(out, "%s: %s\r\n", h[i].name, h[i].value);
	if (r == 0 && status != 204 && status != 304) {
		if (length != HTTP_CHUNKED)
			r = buf_printf(out, "Content-Length: %" PRIu64 "\r\n", length);
		else if (x->request.minor >= 1)
			r = buf_printf(out, "Transfer-Encoding: chunked\r\n");
	}
	if (r == 0 && !x->keeps)
		r = buf_printf(out, "Connection: close\r\n");
	else if (r == 0 && x->request.minor == 0)
		r = buf_printf(out, "Connection: keep-alive\r\n");
	if (r == 0)
		r = buf_append(out, "\r\n", 2);
	if (r < 0)
		x->is_cut = true; /* no memory: fields_valid() saw to the room */
}

static int respond(struct http_exchange *x, unsigned status, const struct http_field *h, size_t n,
		   uint64_t length, bool is_whole)
{
	if (x->is_cut || x->conn->is_dead)
		return -EPIPE;
	if (x->has_head)
		return -EALREADY;
	if (status < 200 || status > 599 || !fields_valid(h, n))
		return -EINVAL;
	x->has_head = true;
	x->answer = body_of(&x->request, status, length);
	x->answer_left = length;
	x->keeps = can_keep(x, is_whole);
	head_print(x, status, h, n, length);
	http_conn_kick(x->conn);
	return 0;
}

int http_respond(struct http_exchange *x, unsigned status, const struct http_field *h, size_t n_h,
		 uint64_t length)
{
	return respond(x, status, h, n_h, length, false);
}

static bool takes_body(const struct http_exchange *x)
{
	return x->has_head && !x->is_finished && !x->is_cut && !x->conn->is_dead;
}

size_t http_room(const struct http_exchange *x)
{
	if (!takes_body(x))
		return 0;
	if (x->answer == ANSWER_LENGTH)
		return (size_t)u64_min(buf_room(&x->body), x->answer_left);
	return x->answer == ANSWER_NONE ? HTTP_QUEUE : buf_room(&x->body);
}

int http_write(struct http_exchange *x, const void *p, size_t n)
{
	int r;

	if (!takes_body(x))
		return -EPIPE;
	if (n > http_room(x))
		return -ENOBUFS;
	if (x->answer == ANSWER_NONE) { /* HEAD, 204, 304: as if it had left */
		x->drained += n;
		http_conn_kick(x->conn);
		return 0;
	}
	r = buf_append(&x->body, p, n);
	if (r < 0)
		return r;
	if (x->answer == ANSWER_LENGTH)
		x->answer_left -= n;
	http_conn_kick(x->conn);
	return 0;
}

void http_finish(struct http_exchange *x)
{
	if (x->is_finished || x->is_cut)
		return;
	if (!x->has_head || (x->answer == ANSWER_LENGTH && x->answer_left > 0)) {
		http_abort(x); /* shorter than promised: the client must see it */
		return;
	}
	x->is_finished = true;
	http_conn_kick(x->conn);
}

void http_respond_full(struct http_exchange *x, unsigned status, const char *content_type,
		       const void *body, size_t n)
{
	struct http_field type = {.name = "Content-Type", .value = content_type};
	int r;

	x->body.max = n > HTTP_QUEUE ? n : HTTP_QUEUE;
	r = respond(x, status, &type, content_type ? 1 : 0, n, true);
	if (r == 0 && n > 0)
		r = x->answer == ANSWER_NONE ? 0 : http_write(x, body, n);
	if (r < 0)
		http_abort(x);
	else
		http_finish(x);
}

void http_consume(struct http_exchange *x, size_t n)
{
	assert(n <= x->held);
	x->held -= n;
	http_conn_kick(x->conn);
}

void http_abort(struct http_exchange *x)
{
	x->is_cut = true;
	http_conn_kick(x->conn);
}

bool http_head_sent(const struct http_exchange *x)
{
	return x->has_head;
}

void http_exchange_set(struct http_exchange *x, const struct http_exchange_ops *ops, void *arg)
{
	x->ops = ops;
	x->arg = arg;
}

void *http_exchange_arg(const struct http_exchange *x)
{
	return x->arg;
}

const struct http1_request *http_exchange_request(const struct http_exchange *x)
{
	return &x->request;
}

/* --- onto the wire --- */

void http_answer_fill(struct http_exchange *x, struct buf *out)
{
	size_t n = size_min(buf_len(&x->body), HTTP_PIECE);
	bool is_chunked = x->answer == ANSWER_CHUNKED;
	int r = 0;

	if (!x->has_head || x->has_last)
		return;
	if (n > 0) {
		if (is_chunked)
			r = buf_printf(out, "%zx\r\n", n);
		if (r == 0)
			r = buf_append(out, buf_data(&x->body), n);
		if (r == 0 && is_chunked)
			r = buf_append(out, "\r\n", 2);
		buf_consume(&x->body, n);
		x->drained += n;
	}
	if (r == 0 && x->is_finished && buf_len(&x->body) == 0) {
		x->has_last = true;
		if (is_chunked)
			r = buf_append(out, "0\r\n\r\n", 5);
	}
	if (r < 0)
		x->is_cut = true; /* no memory */
}

void http_answer_refuse(struct buf *out, unsigned status, const char *why)
{
	char body[REFUSAL_MAX];
	char date[DATE_SIZE];
	int n = snprintf(body, sizeof body, "{\"code\":%u,\"message\":\"%s\"}", status, why);

	assert(n > 0 && (size_t)n < sizeof body); /* the sentences are ours */
	date_print(date);
	(void)buf_printf(out, /* fails for want of memory: then the connection just closes */
			 "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: application/json\r\n"
			 "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
			 status, http1_status_text(status), date, n, body);
}
