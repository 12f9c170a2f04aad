/* The bounded queue against a plain model, its limit, and what it gives back. */
#include "base/buf.h"
#include "base/test.h"

#include <errno.h>

static void limits(void)
{
	struct buf b;
	size_t n = 0;

	buf_init(&b, 4);
	CHECK(buf_len(&b) == 0 && buf_room(&b) == 4 && buf_data(&b) != NULL);
	CHECK(buf_append(&b, "abcd", 4) == 0);
	CHECK(buf_append(&b, "", 0) == 0);
	CHECK(buf_append(&b, "e", 1) == -ENOBUFS);
	CHECK(buf_space(&b, 1, &n) == NULL);
	CHECK(memcmp(buf_data(&b), "abcd", 4) == 0);
	buf_consume(&b, 3);
	CHECK(buf_append(&b, "efgh", 4) == -ENOBUFS && buf_len(&b) == 1);
	CHECK(buf_append(&b, "efg", 3) == 0);
	CHECK(memcmp(buf_data(&b), "defg", 4) == 0);
	buf_clear(&b);
	CHECK(buf_len(&b) == 0);
	CHECK(buf_printf(&b, "%d", 1234) == 0);
	CHECK(buf_printf(&b, "%d", 5) == -ENOBUFS && buf_len(&b) == 4);
	buf_done(&b);
	CHECK(buf_room(&b) == 0 && buf_append(&b, "a", 1) == -ENOBUFS);
}

static void long_printf(void)
{
	char text[2000];
	struct buf b;

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	buf_init(&b, 2001);
	CHECK(buf_printf(&b, "<%s>", text) == 0 && buf_len(&b) == 2001);
	CHECK(buf_data(&b)[0] == '<' && buf_data(&b)[2000] == '>');
	CHECK(buf_printf(&b, "%s", text) == -ENOBUFS && buf_len(&b) == 2001);
	buf_done(&b);
}

static void space_and_commit(void)
{
	struct buf b;
	size_t n = 0;
	uint8_t *p;

	buf_init(&b, 100);
	p = buf_space(&b, 64, &n);
	CHECK(p != NULL && n == 64);
	memset(p, 'a', 64);
	buf_commit(&b, 10); /* fewer than offered */
	p = buf_space(&b, 1000, &n);
	CHECK(p != NULL && n == 90);
	buf_commit(&b, 90);
	CHECK(buf_room(&b) == 0 && buf_data(&b)[9] == 'a');
	buf_done(&b);
}

static void gives_memory_back(void)
{
	static uint8_t big[64 * 1024];
	struct buf b;

	buf_init(&b, sizeof big);
	CHECK(buf_append(&b, big, sizeof big) == 0 && b.cap == sizeof big);
	buf_consume(&b, sizeof big);
	CHECK(b.cap == 0);
	CHECK(buf_append(&b, big, 100) == 0);
	buf_consume(&b, 100);
	CHECK(b.cap > 0); /* a small one is kept */
	buf_done(&b);
}

/* Appends and consumes in every rhythm: bytes come out in the order they went in. */
static void like_a_queue(void)
{
	uint32_t seed = 1;
	uint8_t in = 0;
	uint8_t out = 0;
	size_t held = 0;
	bool is_good = true;
	struct buf b;

	buf_init(&b, 3000);
	for (int i = 0; i < 20000; i++) {
		uint8_t piece[700];
		size_t n;

		seed = seed * 1664525u + 1013904223u;
		n = seed >> 16 & 511;
		for (size_t k = 0; k < n; k++)
			piece[k] = (uint8_t)(in + k);
		if (buf_append(&b, piece, n) == 0) {
			in = (uint8_t)(in + n);
			held += n;
		} else if (held + n <= 3000) {
			is_good = false;
		}
		n = size_min(seed >> 8 & 511, held);
		for (size_t k = 0; k < n; k++)
			is_good &= buf_data(&b)[k] == (uint8_t)(out + k);
		buf_consume(&b, n);
		out = (uint8_t)(out + n);
		held -= n;
		is_good &= buf_len(&b) == held && b.cap <= 3000;
	}
	CHECK(is_good);
	buf_done(&b);
}

int main(void)
{
	limits();
	long_printf();
	space_and_commit();
	gives_memory_back();
	like_a_queue();
	return test_done();
}
