/* Wake and preface scans, against a plain search in the whole. The input: one byte that chooses the
 * chunking, the preface's nonce, the stream. */
#include "base/fuzz.h"
#include "base/rd.h"
#include "wire/wake.h"

#include <string.h>

static void wakes(const uint8_t *p, size_t n, size_t piece)
{
	static const char magic[8] = {'S', 'P', 'A', 'C', 'E', 'W', 'K', '1'};
	struct wake_scan s;
	struct wake w;
	size_t from = 0; /* where the plain search goes on */
	size_t at = 0;

	wake_scan_init(&s);
	while (at < n) {
		size_t used;
		bool is_found = wake_scan_step(&s, p + at, size_min(piece, n - at), &used, &w);
		const uint8_t *want =
			n - from >= 8 ? memmem(p + from, n - from, magic, sizeof magic) : NULL;

		assert(used <= size_min(piece, n - at) && s.n < WAKE_SIZE);
		at += used;
		if (!is_found) {
			assert(!want || p + at < want + WAKE_SIZE);
			continue;
		}
		assert(want && p + at == want + WAKE_SIZE);
		assert(memcmp(w.nonce, want + 16, WAKE_NONCE) == 0);
		from = (size_t)(want - p) + 1;
	}
}

static void prefaces(const uint8_t nonce[WAKE_NONCE], const uint8_t *p, size_t n, size_t piece)
{
	struct preface_scan s;
	size_t from = 0;
	size_t at = 0;

	preface_scan_init(&s, nonce);
	while (at < n) {
		size_t used;
		bool is_found = preface_scan_step(&s, p + at, size_min(piece, n - at), &used);
		const uint8_t *want = memmem(p + from, n - from, s.want, PREFACE_SIZE);

		assert(used <= size_min(piece, n - at) && s.n < PREFACE_SIZE);
		at += used;
		assert(is_found == (want && p + at >= want + PREFACE_SIZE));
		if (!is_found)
			continue;
		assert(p + at == want + PREFACE_SIZE);
		from = at; /* prefaces do not overlap: after one, the session begins */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece;

	if (size < 1 + WAKE_NONCE)
		return 0;
	piece = data[0] % 40 + 1u;
	wakes(data + 1 + WAKE_NONCE, size - 1 - WAKE_NONCE, piece);
	prefaces(data + 1, data + 1 + WAKE_NONCE, size - 1 - WAKE_NONCE, piece);
	return 0;
}
