/* Chunked bodies. Properties: two chunkings give one result; every byte is accounted for; what came
 * out, sent as one chunk, comes out again. The first byte of the input chooses the chunking. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fuzz.h"
#include "wire/http1.h"

#include <errno.h>
#include <string.h>

struct outcome {
	struct buf body;
	size_t used;
	int result;
};

static void decode(struct outcome *o, const uint8_t *p, size_t n, size_t piece)
{
	struct http1_chunked c;

	buf_init(&o->body, n);
	o->used = 0;
	o->result = 0;
	http1_chunked_init(&c);
	while (o->used < n && o->result == 0) {
		const uint8_t *at = p + o->used;
		size_t left = size_min(piece, n - o->used);
		const uint8_t *d;
		size_t d_n, used;

		o->result = http1_chunked_step(&c, at, left, &used, &d, &d_n);
		assert(used > 0 && used <= left && d_n <= used && d >= at && d + d_n <= at + used);
		assert(c.left <= INT64_MAX);
		assert(buf_append(&o->body, d, d_n) == 0);
		o->used += used;
	}
	assert(o->result != 0 || o->used == n);
}

static void again(const struct buf *body)
{
	struct outcome o;
	struct buf b;
	size_t n = buf_len(body);

	buf_init(&b, n + 64);
	if (n > 0)
		assert(buf_printf(&b, "%zx\r\n", n) == 0 &&
		       buf_append(&b, buf_data(body), n) == 0 && buf_append(&b, "\r\n", 2) == 0);
	assert(buf_append(&b, "0\r\n\r\n", 5) == 0);
	decode(&o, buf_data(&b), buf_len(&b), SIZE_MAX);
	assert(o.result == 1 && o.used == buf_len(&b) && buf_len(&o.body) == n);
	assert(memcmp(buf_data(&o.body), buf_data(body), n) == 0);
	buf_done(&o.body);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, parts;
	size_t piece = size > 0 ? data[0] % 16 + 1u : 1;

	if (size > 0) {
		data++;
		size--;
	}
	decode(&whole, data, size, SIZE_MAX);
	decode(&parts, data, size, piece);
	assert(whole.result == parts.result && whole.used == parts.used);
	assert(buf_len(&whole.body) == buf_len(&parts.body));
	assert(memcmp(buf_data(&whole.body), buf_data(&parts.body), buf_len(&whole.body)) == 0);
	again(&whole.body);
	buf_done(&whole.body);
	buf_done(&parts.body);
	return 0;
}
