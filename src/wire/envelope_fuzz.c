/* Envelopes. Properties: every chunking gives what a plain reading of the whole gives; no byte is
 * lost. The first byte of the input chooses the chunking. */
#include "base/buf.h"
#include "base/fuzz.h"
#include "base/rd.h"
#include "wire/envelope.h"

#include <string.h>

#define PAYLOAD_MAX 64u

/* The trace of a reading: for each whole envelope its flags and payload; last, how it ended. */
static void plain(struct buf *out, const uint8_t *p, size_t n)
{
	struct rd in = rd_of(p, n);
	char end = '.';
	bool is_over = false;

	while (rd_left(&in) > 0 && end == '.') {
		uint8_t flags = rd_u8(&in);
		uint32_t len = rd_be32(&in);
		struct rd payload = rd_block(&in, size_min(len, rd_left(&in)));

		if (is_over ||
		    (!in.bad && ((flags != 0 && flags != ENVELOPE_END) || len > PAYLOAD_MAX)))
			end = '?';
		else if (in.bad)
			end = '~';
		else
			assert(buf_append(out, payload.p, rd_left(&payload)) == 0);
		if (end == '.' && rd_left(&payload) < len)
			end = '~';
		if (end == '.')
			assert(buf_append(out, flags ? "!" : ".", 1) == 0);
		is_over = flags == ENVELOPE_END;
	}
	assert(buf_append(out, &end, 1) == 0);
}

static void stepwise(struct buf *out, const uint8_t *p, size_t n, size_t piece)
{
	enum envelope_step s = ENVELOPE_MORE;
	struct envelope e;
	size_t at = 0;

	envelope_init(&e, PAYLOAD_MAX);
	while (at < n && s != ENVELOPE_BROKEN) {
		size_t end = at + size_min(piece, n - at);

		do {
			const uint8_t *d;
			size_t d_n, used;

			s = envelope_step(&e, p + at, end - at, &used, &d, &d_n);
			assert(used <= end - at && d_n <= used);
			assert(e.left <= PAYLOAD_MAX || s == ENVELOPE_BROKEN);
			assert((s == ENVELOPE_PAYLOAD) == (d_n > 0));
			assert(s != ENVELOPE_MORE || at + used == end);
			assert(buf_append(out, d, d_n) == 0);
			if (s == ENVELOPE_WHOLE)
				assert(buf_append(out, e.flags ? "!" : ".", 1) == 0);
			at += used;
		} while (s == ENVELOPE_PAYLOAD || s == ENVELOPE_WHOLE);
	}
	assert(buf_append(out,
			  s == ENVELOPE_BROKEN      ? "?"
			  : envelope_is_between(&e) ? "."
						    : "~",
			  1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf want, got;
	size_t piece = size > 0 ? data[0] % 16 + 1u : 1;

	if (size > 0) {
		data++;
		size--;
	}
	buf_init(&want, 2 * size + 8);
	buf_init(&got, 2 * size + 8);
	plain(&want, data, size);
	stepwise(&got, data, size, piece);
	assert(buf_len(&want) == buf_len(&got));
	assert(memcmp(buf_data(&want), buf_data(&got), buf_len(&got)) == 0);
	buf_done(&want);
	buf_done(&got);
	return 0;
}
