/* Numbers, encodings, and what may reach a terminal. */
#include "base/str.h"
#include "base/test.h"

#include <errno.h>

static void numbers(void)
{
	static const struct {
		const char *says;
		const char *in;
		uint64_t max;
		int want;
		uint64_t v;
	} cases[] = {
		{"zero", "0", 10, 0, 0},
		{"at max", "10", 10, 0, 10},
		{"one past max", "11", 10, -ERANGE, 0},
		{"2^64-1", "18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
		{"2^64", "18446744073709551616", UINT64_MAX, -ERANGE, 0},
		{"far past 2^64", "99999999999999999999999999", UINT64_MAX, -ERANGE, 0},
		{"leading zeros", "007", 10, 0, 7},
		{"empty", "", 10, -EINVAL, 0},
		{"plus", "+1", 10, -EINVAL, 0},
		{"minus", "-1", 10, -EINVAL, 0},
		{"blank before", " 1", 10, -EINVAL, 0},
		{"blank after", "1 ", 10, -EINVAL, 0},
		{"hex", "0x1", 10, -EINVAL, 0},
		{"too large and not a number", "99999999999999999999x", UINT64_MAX, -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t v = 77;

		EXPECT_EQ(cases[i].says, str_u64(cases[i].in, cases[i].max, &v), cases[i].want);
		EXPECT(cases[i].says, v == (cases[i].want == 0 ? cases[i].v : 77));
	}
}

static void copies(void)
{
	char dst[4] = "zzz";

	CHECK(str_copy(dst, sizeof dst, "abc") == 0 && strcmp(dst, "abc") == 0);
	CHECK(str_copy(dst, sizeof dst, "abcd") == -ENAMETOOLONG && dst[0] == '\0');
	CHECK(str_starts("abc", "ab") && str_starts("abc", "") && !str_starts("ab", "abc"));
	CHECK(str_eq_nocase("Host", "hOST") && !str_eq_nocase("Host", "Hos"));
	CHECK(!str_eq_nocase("Hos", "Host") && !str_eq_nocase("[", "{"));
	CHECK(mem_eq_const("abc", "abc", 3) && !mem_eq_const("abc", "abd", 3));
	CHECK(mem_eq_const("a", "b", 0));
}

static void utf8(void)
{
	static const struct {
		const char *says;
		const char *in;
		bool want;
	} cases[] = {
		{"ASCII", "abc\n", true},
		{"two, three, four bytes", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true},
		{"last code point", "\xf4\x8f\xbf\xbf", true},
		{"past the last", "\xf4\x90\x80\x80", false},
		{"overlong slash", "\xc0\xaf", false},
		{"overlong in three", "\xe0\x80\xaf", false},
		{"overlong in four", "\xf0\x80\x80\xaf", false},
		{"surrogate", "\xed\xa0\x80", false},
		{"alone continuation", "\x80", false},
		{"cut off", "\xe2\x82", false},
		{"five bytes", "\xf8\x88\x80\x80\x80", false},
		{"ff", "\xff", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		EXPECT_EQ(cases[i].says,
			  utf8_valid((const uint8_t *)cases[i].in, strlen(cases[i].in)),
			  cases[i].want);
	CHECK(utf8_valid((const uint8_t *)"a\0b", 3));
}

static void hex(void)
{
	uint8_t b[2];
	char text[5];
	size_t n = 0;

	hex_encode(text, (const uint8_t *)"\x0f\xa0", 2);
	EXPECT_STR("encode", text, "0fa0");
	CHECK(hex_decode(b, sizeof b, "0fa0", &n) == 0 && n == 2 && b[0] == 15 && b[1] == 160);
	CHECK(hex_decode(b, sizeof b, "", &n) == 0 && n == 0);
	CHECK(hex_decode(b, sizeof b, "0fa", &n) == -EINVAL);
	CHECK(hex_decode(b, sizeof b, "0FA0", &n) == -EINVAL);
	CHECK(hex_decode(b, sizeof b, "0g", &n) == -EINVAL);
	CHECK(hex_decode(b, sizeof b, "0fa0aa", &n) == -ENAMETOOLONG);
}

static void base64(void)
{
	static const struct {
		const char *says;
		const char *text;
		int want;
		const char *bytes;
	} cases[] = {
		{"empty", "", 0, ""},
		{"one byte", "Zg==", 0, "f"},
		{"two bytes", "Zm8=", 0, "fo"},
		{"three bytes", "Zm9v", 0, "foo"},
		{"all digits", "+/+/", 0, "\xfb\xff\xbf"},
		{"no padding, one", "Zg", 0, "f"},
		{"no padding, two", "Zm8", 0, "fo"},
		{"half the padding", "Zg=", -EINVAL, ""},
		{"padding only", "====", -EINVAL, ""},
		{"padding inside", "Zg==Zg==", -EINVAL, ""},
		{"one digit", "Z", -EINVAL, ""},
		{"five digits", "Zm9vZ", -EINVAL, ""},
		{"spare bits", "Zh==", -EINVAL, ""},
		{"spare bits, unpadded", "Zm9", -EINVAL, ""},
		{"URL alphabet", "-_-_", -EINVAL, ""},
		{"line feed", "Zm9v\n", -EINVAL, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t b[16];
		size_t n = 0;
		int r = base64_decode(b, cases[i].text, strlen(cases[i].text), &n);

		EXPECT_EQ(cases[i].says, r, cases[i].want);
		EXPECT(cases[i].says, n == strlen(cases[i].bytes) && !memcmp(b, cases[i].bytes, n));
	}
	for (size_t n = 0; n < 60; n++) {
		uint8_t in[60];
		uint8_t back[64];
		char text[100];
		size_t got = 0;

		for (size_t k = 0; k < n; k++)
			in[k] = (uint8_t)(k * 37 + n);
		base64_encode(text, in, n);
		EXPECT_EQ("length", strlen(text), base64_len(n));
		EXPECT_EQ("round trip", base64_decode(back, text, strlen(text), &got), 0);
		EXPECT("round trip", got == n && memcmp(in, back, n) == 0);
	}
}

static void escape(void)
{
	static const struct {
		const char *says;
		const char *in;
		const char *keep;
		size_t size;
		const char *want;
	} cases[] = {
		{"plain", "abc \\ \xc3\xa9", NULL, 64, "abc \\ \xc3\xa9"},
		{"escape sequence", "\033[2Jx", NULL, 64, "\\x1b[2Jx"},
		{"new line", "a\nb", NULL, 64, "a\\x0ab"},
		{"new line kept", "a\nb\tc\r", "\n\t", 64, "a\nb\tc\\x0d"},
		{"C1 CSI",
		 "\xc2\x9b"
		 "31m",
		 NULL, 64, "\\xc2\\x9b31m"},
		{"8-bit CSI, broken UTF-8",
		 "\x9b"
		 "31m",
		 NULL, 64, "\\x9b31m"},
		{"DEL", "\x7f", NULL, 64, "\\x7f"},
		{"right-to-left override", "\xe2\x80\xae", NULL, 64, "\\xe2\\x80\\xae"},
		{"isolate", "\xe2\x81\xa6", NULL, 64, "\\xe2\\x81\\xa6"},
		{"line separator", "\xe2\x80\xa8", NULL, 64, "\\xe2\\x80\\xa8"},
		{"fits exactly", "abc", NULL, 4, "abc"},
		{"one too long", "abcd", NULL, 4, "abc"},
		{"no half escape", "ab\n", NULL, 6, "ab"},
		{"no half character", "ab\xc3\xa9", NULL, 4, "ab"},
		{"no room", "abc", NULL, 1, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char dst[64];
		size_t n = str_escape(dst, cases[i].size, cases[i].in, strlen(cases[i].in),
				      cases[i].keep);

		EXPECT_STR(cases[i].says, dst, cases[i].want);
		EXPECT_EQ(cases[i].says, n, strlen(cases[i].want));
	}
}

int main(void)
{
	numbers();
	copies();
	utf8();
	hex();
	base64();
	escape();
	return test_done();
}
