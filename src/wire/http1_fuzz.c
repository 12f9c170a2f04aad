/* Request heads. Properties: everything points into the head; the bytes after it do not matter; a
 * prefix never gets another verdict than the whole; printing what was read reads the same again. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fuzz.h"
#include "wire/http1.h"

#include <errno.h>
#include <string.h>

static int verdict(struct http1_request *r, const uint8_t *p, size_t n, size_t *ret_used)
{
	const char *why = NULL;
	unsigned status = 0;
	int e = http1_request_parse(r, p, n, ret_used, &status, &why);

	assert(e == 0 || e == -EAGAIN || e == -EBADMSG);
	assert(e != -EBADMSG || (status >= 400 && status < 600 && why));
	return e == -EBADMSG ? (int)status : e;
}

static bool is_inside(struct http1_str s, const uint8_t *p, size_t used)
{
	const char *b = (const char *)p;

	return s.p >= b && s.n <= used && (size_t)(s.p - b) <= used - s.n;
}

static bool is_same(struct http1_str a, struct http1_str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static void inside_check(const struct http1_request *r, const uint8_t *p, size_t used)
{
	assert(used <= HTTP1_HEAD_MAX && r->n_fields <= HTTP1_FIELDS_MAX);
	assert(is_inside(r->method, p, used) && is_inside(r->target, p, used));
	assert(r->host.n == 0 || is_inside(r->host, p, used));
	assert(r->host.n > 0 || r->minor == 0);
	assert(http1_name_valid(r->method.p, r->method.n));
	for (size_t i = 0; i < r->n_fields; i++) {
		assert(is_inside(r->field[i].name, p, used));
		assert(is_inside(r->field[i].value, p, used));
		assert(http1_name_valid(r->field[i].name.p, r->field[i].name.n));
		assert(http1_value_valid(r->field[i].value.p, r->field[i].value.n));
	}
}

static void print(struct buf *b, const struct http1_request *r)
{
	bool is_good = buf_append(b, r->method.p, r->method.n) == 0 && buf_append(b, " ", 1) == 0 &&
		       buf_append(b, r->target.p, r->target.n) == 0 &&
		       buf_printf(b, " HTTP/1.%u\r\n", r->minor) == 0;

	for (size_t i = 0; i < r->n_fields; i++)
		is_good &= buf_append(b, r->field[i].name.p, r->field[i].name.n) == 0 &&
			   buf_append(b, ":", 1) == 0 &&
			   buf_append(b, r->field[i].value.p, r->field[i].value.n) == 0 &&
			   buf_append(b, "\r\n", 2) == 0;
	assert(is_good && buf_append(b, "\r\n", 2) == 0);
}

static void print_check(const struct http1_request *r)
{
	static struct http1_request again;
	struct buf b;
	size_t used = 0;

	buf_init(&b, HTTP1_HEAD_MAX);
	print(&b, r); /* never longer than what was read */
	assert(verdict(&again, buf_data(&b), buf_len(&b), &used) == 0 && used == buf_len(&b));
	assert(is_same(r->method, again.method) && is_same(r->target, again.target));
	assert(is_same(r->host, again.host) && r->minor == again.minor && r->body == again.body);
	assert(r->length == again.length && r->keep_alive == again.keep_alive);
	assert(r->expects_continue == again.expects_continue && r->n_fields == again.n_fields);
	for (size_t i = 0; i < r->n_fields; i++)
		assert(is_same(r->field[i].name, again.field[i].name) &&
		       is_same(r->field[i].value, again.field[i].value));
	buf_done(&b);
}

static void prefix_check(const uint8_t *data, size_t n, int whole)
{
	static struct http1_request r;
	size_t step = n / 64 + 1;

	for (size_t cut = 0; cut < n; cut += step) {
		AUTO(mem_drop) uint8_t *part = xcalloc(1, cut);
		size_t used;
		int e;

		memcpy(part, data, cut);
		e = verdict(&r, part, cut, &used);
		assert(e == -EAGAIN || (whole != 0 && e == whole));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http1_request r;
	size_t used = 0;
	int e = verdict(&r, data, size, &used);

	if (e == 0) {
		inside_check(&r, data, used);
		print_check(&r);
		prefix_check(data, used, 0);
	} else {
		prefix_check(data, size, e);
	}
	return 0;
}
