/* Texts and encodings. Properties: what may reach a terminal is valid UTF-8 without anything
 * active, also when cut; decoding and encoding are each other's inverse; dates and numbers print
 * as read.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fuzz.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void escape_check(const char *text, size_t n)
{
	AUTO(mem_drop) char *dst = xcalloc(1, 4 * n + 1);
	AUTO(mem_drop) char *again = xcalloc(1, 4 * n + 1);
	size_t out = str_escape(dst, 4 * n + 1, text, n, NULL);

	assert(out == strlen(dst) && utf8_valid((const uint8_t *)dst, out));
	for (size_t i = 0; i < out; i++)
		assert((uint8_t)dst[i] >= 0x20 && dst[i] != 0x7f);
	assert(str_escape(again, 4 * n + 1, dst, out, NULL) == out && !memcmp(dst, again, out));
	out = str_escape(again, n / 2 + 1, text, n, NULL);
	assert(out <= n / 2 && utf8_valid((const uint8_t *)again, out) && !memcmp(dst, again, out));
}

static void base64_check(const char *text, size_t n)
{
	AUTO(mem_drop) uint8_t *bytes = xcalloc(3, (n + 3) / 4);
	AUTO(mem_drop) char *back = xcalloc(1, n + 8);
	size_t got = 0;
	size_t bare = n;

	if (base64_decode(bytes, text, n, &got) < 0)
		return;
	while (bare > 0 && text[bare - 1] == '=')
		bare--;
	assert(got == bare * 3 / 4);
	base64_encode(back, bytes, got);
	assert(strlen(back) == base64_len(got) && memcmp(back, text, bare) == 0);
}

static void words_check(const char *text)
{
	uint8_t bytes[64];
	char back[2 * sizeof bytes + 1];
	char date[RFC3339_SIZE];
	uint64_t v = 0;
	uint64_t w = 0;
	size_t n = 0;

	if (hex_decode(bytes, sizeof bytes, text, &n) == 0) {
		hex_encode(back, bytes, n);
		assert(strcmp(back, text) == 0);
	}
	if (rfc3339_parse(text, &v) == 0) {
		rfc3339_print(date, v);
		assert(rfc3339_parse(date, &w) == 0 && v == w);
	}
	if (str_u64(text, UINT64_MAX, &v) == 0) {
		(void)snprintf(back, sizeof back, "%" PRIu64, v);
		while (text[0] == '0' && text[1])
			text++;
		assert(strcmp(back, text) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_drop) char *text = xcalloc(1, size + 1);

	if (size > 0)
		memcpy(text, data, size);
	escape_check(text, size);
	base64_check(text, size);
	words_check(text);
	return 0;
}
