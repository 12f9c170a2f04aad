/* The prefilter, whole against in pieces, against a plain walk over the frames. The input: one byte
 * that chooses the chunking, one for each bucket's tokens, the stream. */
#include "base/clock.h"
#include "base/fuzz.h"
#include "net/h2_prefilter.h"

#include <errno.h>
#include <string.h>

#define START_NS (1000 * NS_PER_S)

struct outcome {
	bool is_refused;
	unsigned waits;
	struct h2_prefilter f;
};

static void start(struct h2_prefilter *f, const uint8_t tokens[PREFILTER_BUCKETS])
{
	h2_prefilter_init(f, tokens[0] & 0x80, START_NS);
	for (size_t i = 0; i < PREFILTER_BUCKETS; i++)
		f->bucket[i].credit_ns =
			u64_min(f->bucket[i].cap_ns, f->bucket[i].cost_ns * (tokens[i] & 0x0f));
}

/* A second passes at each wait, so that it always ends. */
static struct outcome run(const uint8_t *tokens, const uint8_t *p, size_t n, size_t piece)
{
	struct outcome o = {0};
	uint64_t now_ns = START_NS;
	size_t at = 0;

	start(&o.f, tokens);
	while (at < n) {
		size_t some = size_min(piece, n - at);
		size_t used = SIZE_MAX;
		int r = h2_prefilter_step(&o.f, p + at, some, now_ns, &used);

		for (size_t i = 0; i < PREFILTER_BUCKETS; i++)
			assert(o.f.bucket[i].credit_ns <= o.f.bucket[i].cap_ns);
		assert(o.f.left <= PREFILTER_FRAME_MAX && o.f.head_n < FRAME_HEAD);
		if (r == -EPROTO) {
			o.is_refused = true;
			return o;
		}
		assert(r == 0 ? used == some : r == -EAGAIN && used < some);
		at += used;
		if (r == -EAGAIN) {
			o.waits++;
			now_ns += NS_PER_S;
		}
	}
	return o;
}

/* Whether every whole head in the stream is of a type and length that may pass; *ret_data: payload
 * of DATA. */
static bool walk(const uint8_t *p, size_t n, bool has_magic, uint64_t *ret_data)
{
	size_t at = has_magic ? size_min(24, n) : 0;

	*ret_data = 0;
	while (n - at >= FRAME_HEAD) {
		size_t length = (size_t)p[at] << 16 | (size_t)p[at + 1] << 8 | p[at + 2];
		uint8_t type = p[at + 3];

		if (length > PREFILTER_FRAME_MAX || type == 2 || type == 5 || type > 8)
			return false;
		at += FRAME_HEAD;
		length = size_min(length, n - at);
		*ret_data += type == 0 ? length : 0;
		at += length;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data + 1 + PREFILTER_BUCKETS;
	struct outcome whole, pieces;
	uint64_t data_bytes;
	size_t n;
	bool is_plain;

	if (size < 1 + PREFILTER_BUCKETS)
		return 0;
	n = size - 1 - PREFILTER_BUCKETS;
	whole = run(data + 1, p, n, n ? n : 1);
	pieces = run(data + 1, p, n, data[0] % 64 + 1u);
	is_plain = walk(p, n, data[1] & 0x80, &data_bytes);
	assert(whole.is_refused == pieces.is_refused);
	assert(is_plain || whole.is_refused);
	if (whole.is_refused)
		return 0;
	assert(whole.waits == pieces.waits);
	assert(whole.f.data_bytes == data_bytes && pieces.f.data_bytes == data_bytes);
	assert(whole.f.left == pieces.f.left && whole.f.head_n == pieces.f.head_n);
	for (size_t i = 0; i < PREFILTER_BUCKETS; i++)
		assert(whole.f.bucket[i].credit_ns == pieces.f.bucket[i].credit_ns);
	return 0;
}
