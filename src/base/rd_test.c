/* The reader and the writer: every width, the end, sticky failure, strings. */
#include "base/rd.h"
#include "base/test.h"
#include "base/wr.h"

static void numbers(void)
{
	uint8_t b[15];
	struct wr w = wr_of(b, sizeof b);
	struct rd r = rd_of(b, sizeof b);

	wr_u8(&w, 0x81);
	wr_be16(&w, 0x8203);
	wr_be32(&w, 0x84050607);
	wr_be64(&w, 0x88090a0b0c0d0e0f);
	CHECK(!w.bad && wr_len(&w) == 15);
	CHECK(rd_u8(&r) == 0x81);
	CHECK(rd_be16(&r) == 0x8203);
	CHECK(rd_be32(&r) == 0x84050607);
	CHECK(!rd_end(&r));
	CHECK(rd_be64(&r) == 0x88090a0b0c0d0e0f);
	CHECK(rd_end(&r));
	CHECK(rd_u8(&r) == 0 && r.bad && !rd_end(&r));
}

static void sticky(void)
{
	const uint8_t b[] = {1, 2, 3};
	struct rd r = rd_of(b, sizeof b);
	struct rd part;

	CHECK(rd_be32(&r) == 0 && r.bad);
	CHECK(rd_u8(&r) == 0); /* although a byte is there */
	CHECK(rd_left(&r) == 3);
	r = rd_of(b, sizeof b);
	part = rd_block(&r, 2);
	CHECK(rd_be16(&part) == 0x0102 && rd_end(&part) && rd_left(&r) == 1);
	part = rd_block(&r, SIZE_MAX);
	CHECK(part.bad && r.bad && rd_left(&part) == 0);
	r = rd_of(NULL, 0);
	CHECK(rd_end(&r));
}

static void strings(void)
{
	static const struct {
		const char *says;
		const char *in;
		size_t n;
		bool bad;
		const char *want;
	} cases[] = {
		{"empty", "\0\0", 2, false, ""},
		{"fits exactly", "\0\3abc", 5, false, "abc"},
		{"one too long", "\0\4abcd", 6, true, ""},
		{"longer than the bytes", "\0\3ab", 4, true, ""},
		{"NUL inside", "\0\3a\0c", 5, true, ""},
		{"no length", "\0", 1, true, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rd r = rd_of(cases[i].in, cases[i].n);
		char dst[4] = "zzz";

		rd_str(&r, dst, sizeof dst);
		EXPECT_EQ(cases[i].says, r.bad, cases[i].bad);
		EXPECT_STR(cases[i].says, dst, cases[i].want);
	}
}

static void writer_full(void)
{
	static char big[UINT16_MAX + 2];
	static uint8_t room[UINT16_MAX + 8];
	uint8_t b[4];
	struct wr w = wr_of(b, sizeof b);

	wr_str(&w, "ab");
	CHECK(!w.bad && wr_len(&w) == 4);
	w = wr_of(b, sizeof b);
	wr_str(&w, "abc");
	CHECK(w.bad && wr_len(&w) == 0);
	wr_u8(&w, 1);
	CHECK(w.bad && wr_len(&w) == 0);
	memset(big, 'x', UINT16_MAX);
	w = wr_of(room, sizeof room);
	wr_str(&w, big);
	CHECK(!w.bad && wr_len(&w) == UINT16_MAX + 2);
	big[UINT16_MAX] = 'x';
	w = wr_of(room, sizeof room);
	wr_str(&w, big);
	CHECK(w.bad);
}

int main(void)
{
	numbers();
	sticky();
	strings();
	writer_full();
	return test_done();
}
