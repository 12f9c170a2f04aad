/* http1-dump: says as one JSON object how wire/http1 reads the bytes on its standard input, request
 * after request as on one connection. Texts are hex, since they need not be UTF-8.
 *
 *   {"requests":[{"method":..,"target":..,"fields":[[name,value],..],"body":..},..],"end":E}
 *
 * E: "done" (nothing left over), "close" (no more after this one), "more" (cut off), or the
 * status. */
#include "base/buf.h"
#include "base/str.h"
#include "wire/http1.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define INPUT_MAX (1024u * 1024)

static void print_hex(const char *p, size_t n)
{
	char two[3];

	(void)putchar('"');
	for (size_t i = 0; i < n; i++) {
		hex_encode(two, (const uint8_t *)p + i, 1);
		(void)fputs(two, stdout);
	}
	(void)putchar('"');
}

static void print_head(const struct http1_request *r)
{
	(void)fputs("{\"method\":", stdout);
	print_hex(r->method.p, r->method.n);
	(void)fputs(",\"target\":", stdout);
	print_hex(r->target.p, r->target.n);
	(void)fputs(",\"fields\":[", stdout);
	for (size_t i = 0; i < r->n_fields; i++) {
		(void)fputs(i ? ",[" : "[", stdout);
		print_hex(r->field[i].name.p, r->field[i].name.n);
		(void)putchar(',');
		print_hex(r->field[i].value.p, r->field[i].value.n);
		(void)putchar(']');
	}
	(void)fputs("],\"body\":", stdout);
}

/* Appends the body to b and consumes it from in. 0, -EAGAIN, -EBADMSG. */
static int read_body(const struct http1_request *r, struct buf *in, struct buf *b)
{
	struct http1_chunked c;
	int e = 0;

	if (r->body == HTTP1_BODY_NONE)
		return 0;
	if (r->body == HTTP1_BODY_LENGTH) {
		if (r->length > buf_len(in))
			return -EAGAIN;
		e = buf_append(b, buf_data(in), (size_t)r->length);
		buf_consume(in, (size_t)r->length);
		return e;
	}
	http1_chunked_init(&c);
	while (e == 0) {
		const uint8_t *d;
		size_t d_n, used;

		if (buf_len(in) == 0)
			return -EAGAIN;
		e = http1_chunked_step(&c, buf_data(in), buf_len(in), &used, &d, &d_n);
		if (e >= 0 && buf_append(b, d, d_n) < 0)
			return -EBADMSG;
		buf_consume(in, used);
	}
	return e < 0 ? e : 0;
}

/* One request. 0: go on; else *end says why not. */
static int dump_one(struct buf *in, bool is_first, char end[16])
{
	static struct http1_request r;
	const char *why;
	unsigned status = 400;
	size_t used = 0;
	struct buf body;
	int e = http1_request_parse(&r, buf_data(in), buf_len(in), &used, &status, &why);

	if (e == 0) {
		(void)fputs(is_first ? "" : ",", stdout);
		print_head(&r);
		buf_consume(in, used);
		buf_init(&body, INPUT_MAX);
		e = read_body(&r, in, &body);
		print_hex((const char *)buf_data(&body), buf_len(&body));
		(void)putchar('}');
		buf_done(&body);
	}
	if (e == -EAGAIN)
		(void)snprintf(end, 16, "more");
	else if (e < 0)
		(void)snprintf(end, 16, "%u", status);
	else if (buf_len(in) == 0)
		(void)snprintf(end, 16, "done");
	else if (!r.keep_alive)
		(void)snprintf(end, 16, "close");
	else
		return 0;
	return -1;
}

int main(void)
{
	char end[16] = "more";
	bool is_first = true;
	struct buf in;
	ssize_t n;

	buf_init(&in, INPUT_MAX);
	do {
		size_t room = 0;
		uint8_t *p = buf_space(&in, 65536, &room);

		n = p ? read(STDIN_FILENO, p, room) : 0;
		if (n > 0)
			buf_commit(&in, (size_t)n);
	} while (n > 0);
	(void)fputs("{\"requests\":[", stdout);
	while (dump_one(&in, is_first, end) == 0)
		is_first = false;
	printf("],\"end\":\"%s\"}\n", end);
	buf_done(&in);
	return n < 0;
}
