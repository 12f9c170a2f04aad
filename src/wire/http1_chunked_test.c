/* Chunked bodies: what is accepted, every refused form, limits, and every way to cut the bytes. */
#include "base/test.h"
#include "wire/http1.h"

#include <errno.h>

static const struct {
	const char *says;
	const char *in;
	int want; /* 1 whole, 0 more is needed, -EBADMSG */
	const char *data;
	const char *rest; /* what follows the body */
} cases[] = {
	{"empty body", "0\r\n\r\n", 1, "", ""},
	{"one chunk", "3\r\nabc\r\n0\r\n\r\n", 1, "abc", ""},
	{"two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 1, "abcde", ""},
	{"the next request", "0\r\n\r\nGET /", 1, "", "GET /"},
	{"hex of both cases", "0a\r\n0123456789\r\n00B\r\n0123456789a\r\n0\r\n\r\n", 1,
	 "01234567890123456789a", ""},
	{"data that looks like an end", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", 1, "0\r\n\r\n", ""},
	{"extension", "1;a\r\nx\r\n0;b=c;d=\"e;\\\"\"\r\n\r\n", 1, "x", ""},
	{"trailers", "0\r\nX-Sum: 1\r\nHost: b\r\n\r\n", 1, "", ""},
	{"empty trailer value", "0\r\nX:\r\n\r\n", 1, "", ""},
	{"nothing", "", 0, "", ""},
	{"in a size", "1", 0, "", ""},
	{"in data", "5\r\nabc", 0, "abc", ""},
	{"before the last CRLF", "0\r\n", 0, "", ""},
	{"in a trailer", "0\r\nX: 1\r\n", 0, "", ""},
	{"largest size", "7fffffffffffffff\r\na", 0, "a", ""},

	{"2^63", "8000000000000000\r\n", -EBADMSG, "", ""},
	{"2^64 + 1", "10000000000000001\r\n", -EBADMSG, "", ""},
	{"no digit", "\r\n", -EBADMSG, "", ""},
	{"no digit in the second size", "1\r\nx\r\n\r\n", -EBADMSG, "x", ""},
	{"second size is an extension only", "1\r\nx\r\n;a\r\n", -EBADMSG, "x", ""},
	{"extension without size", ";a\r\n", -EBADMSG, "", ""},
	{"0x", "0x1\r\n", -EBADMSG, "", ""},
	{"plus", "+1\r\n", -EBADMSG, "", ""},
	{"minus", "-1\r\n", -EBADMSG, "", ""},
	{"blank before", " 1\r\n", -EBADMSG, "", ""},
	{"blank after", "1 \r\n", -EBADMSG, "", ""},
	{"tab after", "1\t\r\n", -EBADMSG, "", ""},
	{"bare LF after the size", "1\nx\r\n0\r\n\r\n", -EBADMSG, "", ""},
	{"CR without LF after the size", "1\rx", -EBADMSG, "", ""},
	{"bare LF after data", "1\r\nx\n0\r\n\r\n", -EBADMSG, "x", ""},
	{"no CRLF after data", "1\r\nxy", -EBADMSG, "x", ""},
	{"CR without LF after data", "1\r\nx\ry", -EBADMSG, "x", ""},
	{"extension without name", "1;\r\nx\r\n0\r\n\r\n", -EBADMSG, "", ""},
	{"extension without second name", "1;a;\r\n", -EBADMSG, "", ""},
	{"blank in an extension", "1; a\r\n", -EBADMSG, "", ""},
	{"extension without value", "1;a=\r\n", -EBADMSG, "", ""},
	{"text after a quoted value", "1;a=\"b\"c\r\n", -EBADMSG, "", ""},
	{"LF in an extension", "1;a\nx\r\n0\r\n\r\n", -EBADMSG, "", ""},
	{"LF in a quoted value", "1;a=\"\n\"\r\n", -EBADMSG, "", ""},
	{"CR in a quoted value", "1;a=\"\r\n\"\r\n", -EBADMSG, "", ""},
	{"control in a quoted value", "1;a=\"\\\1\"\r\n", -EBADMSG, "", ""},
	{"bare LF at the end", "0\r\n\n", -EBADMSG, "", ""},
	{"CR without LF at the end", "0\r\n\rx", -EBADMSG, "", ""},
	{"trailer with LF", "0\r\nX: 1\n\r\n", -EBADMSG, "", ""},
	{"trailer with a control", "0\r\nX: \1\r\n\r\n", -EBADMSG, "", ""},
	{"trailer without colon", "0\r\nX\r\n\r\n", -EBADMSG, "", ""},
	{"trailer without name", "0\r\n: 1\r\n\r\n", -EBADMSG, "", ""},
	{"folded trailer", "0\r\nX: 1\r\n 2\r\n\r\n", -EBADMSG, "", ""},
	{"blank before the colon", "0\r\nX : 1\r\n\r\n", -EBADMSG, "", ""},
};

/* Feeds p in pieces of `piece` bytes; collects the body; *ret_used: bytes taken in all. */
static int feed(const uint8_t *p, size_t n, size_t piece, char *data, size_t *ret_data_n,
		size_t *ret_used)
{
	struct http1_chunked c;
	size_t at = 0;
	size_t out = 0;
	int r = 0;

	http1_chunked_init(&c);
	while (at < n && r == 0) {
		size_t end = size_min(at + piece, n);

		while (at < end && r == 0) {
			const uint8_t *d;
			size_t d_n, used;

			r = http1_chunked_step(&c, p + at, end - at, &used, &d, &d_n);
			memcpy(data + out, d, d_n);
			out += d_n;
			at += used;
		}
	}
	*ret_data_n = out;
	*ret_used = at;
	return r;
}

static void table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint8_t *in = (const uint8_t *)cases[i].in;
		size_t len = strlen(cases[i].in);

		for (size_t piece = 1; piece <= len + 1; piece++) {
			char data[64];
			size_t n, used;

			EXPECT_EQ(cases[i].says, feed(in, len, piece, data, &n, &used),
				  cases[i].want);
			EXPECT(cases[i].says,
			       n == strlen(cases[i].data) && memcmp(data, cases[i].data, n) == 0);
			if (cases[i].want == 1)
				EXPECT_EQ(cases[i].says, len - used, strlen(cases[i].rest));
		}
	}
}

static int feed_text(const char *text, size_t n)
{
	char data[2 * HTTP1_CHUNK_LINE_MAX];
	size_t d, used;

	return feed((const uint8_t *)text, n, 1000, data, &d, &used);
}

static void limits(void)
{
	static char in[HTTP1_TRAILER_MAX + 64];
	size_t n;

	n = (size_t)snprintf(in, sizeof in, "%0*d\r\n\r\n", HTTP1_CHUNK_LINE_MAX, 0);
	EXPECT_EQ("size line at the limit", feed_text(in, n), 1);
	n = (size_t)snprintf(in, sizeof in, "%0*d\r\n\r\n", HTTP1_CHUNK_LINE_MAX + 1, 0);
	EXPECT_EQ("size line one past", feed_text(in, n), -EBADMSG);
	n = (size_t)snprintf(in, sizeof in, "0;%0*d\r\n\r\n", HTTP1_CHUNK_LINE_MAX - 2, 0);
	EXPECT_EQ("extension at the limit", feed_text(in, n), 1);
	n = (size_t)snprintf(in, sizeof in, "0;%0*d\r\n\r\n", HTTP1_CHUNK_LINE_MAX - 1, 0);
	EXPECT_EQ("extension one past", feed_text(in, n), -EBADMSG);
	n = 0;
	for (size_t i = 0; i <= HTTP1_CHUNK_LINE_MAX; i++)
		n += (size_t)snprintf(in + n, sizeof in - n, "1\r\nx\r\n");
	EXPECT_EQ("many short size lines", feed_text(in, n), 0);
	n = (size_t)snprintf(in, sizeof in, "0\r\nX:%0*d\r\n\r\n", HTTP1_TRAILER_MAX - 4, 0);
	EXPECT_EQ("trailers at the limit", feed_text(in, n), 1);
	n = (size_t)snprintf(in, sizeof in, "0\r\nX:%0*d\r\n\r\n", HTTP1_TRAILER_MAX - 3, 0);
	EXPECT_EQ("trailers one past", feed_text(in, n), -EBADMSG);
}

/* The end and a failure are for good, and nothing more is taken. */
static void final(void)
{
	const uint8_t *d;
	struct http1_chunked c;
	size_t used, n;

	http1_chunked_init(&c);
	CHECK(http1_chunked_step(&c, (const uint8_t *)"0\r\n\r\n", 5, &used, &d, &n) == 1);
	CHECK(http1_chunked_step(&c, (const uint8_t *)"0\r\n\r\n", 5, &used, &d, &n) == 1);
	CHECK(used == 0 && n == 0);
	http1_chunked_init(&c);
	CHECK(http1_chunked_step(&c, (const uint8_t *)"x", 1, &used, &d, &n) == -EBADMSG);
	CHECK(http1_chunked_step(&c, (const uint8_t *)"0", 1, &used, &d, &n) == -EBADMSG);
}

int main(void)
{
	table();
	limits();
	final();
	return test_done();
}
