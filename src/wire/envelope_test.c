/* Envelopes in every cut, their limits, and the table of codes. */
#include "base/test.h"
#include "wire/connect_code.h"
#include "wire/envelope.h"

#include <errno.h>

#define MAX 5

static const struct {
	const char *says;
	const char *in;
	size_t n;
	const char *
		want; /* payloads with '.' at each end, '!' end envelope, '?' broken, '~' cut off */
} cases[] = {
	{"nothing", "", 0, ""},
	{"one", "\0\0\0\0\3abc", 8, "abc."},
	{"empty payload", "\0\0\0\0\0", 5, "."},
	{"two and the end", "\0\0\0\0\1a\0\0\0\0\2bc\2\0\0\0\2{}", 20, "a.bc.{}!"},
	{"at the limit", "\0\0\0\0\5abcde", 10, "abcde."},
	{"one past it", "\0\0\0\0\6abcdef", 11, "?"},
	{"4 GiB", "\0\xff\xff\xff\xff", 5, "?"},
	{"compressed", "\1\0\0\0\1a", 6, "?"},
	{"unknown flag", "\4\0\0\0\1a", 6, "?"},
	{"end and compressed", "\3\0\0\0\1a", 6, "?"},
	{"a byte after the end", "\2\0\0\0\0x", 6, "!?"},
	{"head cut off", "\0\0\0\0", 4, "~"},
	{"payload cut off", "\0\0\0\0\3ab", 7, "ab~"},
};

static void drive(const uint8_t *p, size_t n, size_t piece, char *out)
{
	enum envelope_step step = ENVELOPE_MORE;
	struct envelope e;
	size_t at = 0;

	envelope_init(&e, MAX);
	while (at < n && step != ENVELOPE_BROKEN) {
		size_t end = size_min(at + piece, n);

		do {
			const uint8_t *d;
			size_t d_n, used;

			step = envelope_step(&e, p + at, end - at, &used, &d, &d_n);
			memcpy(out, d, d_n);
			out += d_n;
			at += used;
			if (step == ENVELOPE_WHOLE)
				*out++ = e.flags == ENVELOPE_END ? '!' : '.';
		} while (step == ENVELOPE_PAYLOAD || step == ENVELOPE_WHOLE);
	}
	if (step == ENVELOPE_BROKEN)
		*out++ = '?';
	else if (!envelope_is_between(&e))
		*out++ = '~';
	*out = '\0';
}

static void table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t piece = 1; piece <= cases[i].n + 1; piece++) {
			char out[32];

			drive((const uint8_t *)cases[i].in, cases[i].n, piece, out);
			EXPECT_STR(cases[i].says, out, cases[i].want);
		}
	}
}

static void single(void)
{
	static const struct {
		const char *says;
		const char *in;
		size_t n;
		int want;
	} one[] = {
		{"good", "\0\0\0\0\3abc", 8, 0},
		{"empty payload", "\0\0\0\0\0", 5, 0},
		{"at the limit", "\0\0\0\0\5abcde", 10, 0},
		{"one past it", "\0\0\0\0\6abcdef", 11, -EMSGSIZE},
		{"end flag", "\2\0\0\0\0", 5, -EBADMSG},
		{"two", "\0\0\0\0\0\0\0\0\0\0", 10, -EBADMSG},
		{"short", "\0\0\0\0\3ab", 7, -EBADMSG},
		{"no head", "\0\0\0\0", 4, -EBADMSG},
		{"nothing", "", 0, -EBADMSG},
	};
	uint8_t head[ENVELOPE_HEAD];
	const uint8_t *p = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(one); i++) {
		EXPECT_EQ(one[i].says,
			  envelope_single((const uint8_t *)one[i].in, one[i].n, MAX, &p, &n),
			  one[i].want);
		if (one[i].want == 0)
			EXPECT(one[i].says,
			       n == one[i].n - 5 && p == (const uint8_t *)one[i].in + 5);
	}
	envelope_head_print(head, ENVELOPE_END, 0x01020304);
	CHECK(memcmp(head, "\2\1\2\3\4", 5) == 0);
}

static void codes(void)
{
	static const struct {
		enum connect_code code;
		const char *name;
		unsigned status;
	} want[] = {
		{CONNECT_CANCELED, "canceled", 499},
		{CONNECT_INVALID_ARGUMENT, "invalid_argument", 400},
		{CONNECT_DEADLINE_EXCEEDED, "deadline_exceeded", 504},
		{CONNECT_NOT_FOUND, "not_found", 404},
		{CONNECT_ALREADY_EXISTS, "already_exists", 409},
		{CONNECT_RESOURCE_EXHAUSTED, "resource_exhausted", 429},
		{CONNECT_UNIMPLEMENTED, "unimplemented", 501},
		{CONNECT_UNAVAILABLE, "unavailable", 503},
		{CONNECT_UNAUTHENTICATED, "unauthenticated", 401},
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		EXPECT_STR(want[i].name, connect_code_name(want[i].code), want[i].name);
		EXPECT_EQ(want[i].name, connect_code_status(want[i].code), want[i].status);
	}
	for (unsigned c = CONNECT_OK + 1; c < CONNECT_CODES; c++) {
		const char *name = connect_code_name((enum connect_code)c);

		EXPECT_EQ(name, connect_code_parse(name), c);
		EXPECT(name, connect_code_status((enum connect_code)c) >= 400);
	}
	CHECK(connect_code_parse("ok") == CONNECT_UNKNOWN);
	CHECK(connect_code_parse("Not_Found") == CONNECT_UNKNOWN);
	EXPECT_STR("out of range", connect_code_name(CONNECT_CODES), "unknown");
	CHECK(connect_code_of_status(404) == CONNECT_UNIMPLEMENTED);
	CHECK(connect_code_of_status(503) == CONNECT_UNAVAILABLE);
	CHECK(connect_code_of_status(418) == CONNECT_UNKNOWN);
}

int main(void)
{
	table();
	single();
	codes();
	return test_done();
}
