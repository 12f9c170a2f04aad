/* Dates: known instants, what is refused, and the round trip. */
#include "base/clock.h"
#include "base/test.h"

#include <errno.h>

static const struct {
	const char *says;
	const char *in;
	int want;
	uint64_t ns;
} cases[] = {
	{"epoch", "1970-01-01T00:00:00Z", 0, 0},
	{"a day in 2026", "2026-12-01T00:52:48.123456789Z", 0, 1796086368123456789},
	{"leap day", "2024-02-29T12:00:00Z", 0, 1709208000000000000},
	{"2000 is a leap year", "2000-03-01T00:00:00Z", 0, 951868800000000000},
	{"2100 is none", "2100-03-01T00:00:00Z", 0, 4107542400000000000},
	{"one digit of fraction", "1970-01-01T00:00:00.5Z", 0, 500000000},
	{"east of Greenwich", "1970-01-01T02:00:00+02:00", 0, 0},
	{"west of it", "1969-12-31T22:30:00-01:30", -EINVAL, 0},
	{"west of it, representable", "1970-01-01T00:00:00-01:30", 0, 5400000000000},
	{"before the epoch by its offset", "1970-01-01T00:00:00+00:01", -EINVAL, 0},
	{"no leap day", "2023-02-29T12:00:00Z", -EINVAL, 0},
	{"month 13", "2023-13-01T12:00:00Z", -EINVAL, 0},
	{"month 0", "2023-00-01T12:00:00Z", -EINVAL, 0},
	{"day 0", "2023-01-00T12:00:00Z", -EINVAL, 0},
	{"hour 24", "2023-01-01T24:00:00Z", -EINVAL, 0},
	{"second 60", "2023-01-01T23:59:60Z", -EINVAL, 0},
	{"no zone", "2023-01-01T12:00:00", -EINVAL, 0},
	{"no fraction digits", "2023-01-01T12:00:00.Z", -EINVAL, 0},
	{"ten fraction digits", "2023-01-01T12:00:00.1234567890Z", -EINVAL, 0},
	{"lower case", "2023-01-01t12:00:00z", -EINVAL, 0},
	{"blank for T", "2023-01-01 12:00:00Z", -EINVAL, 0},
	{"text after", "2023-01-01T12:00:00Zx", -EINVAL, 0},
	{"zone of 24 hours", "2023-01-01T12:00:00+24:00", -EINVAL, 0},
	{"short zone", "2023-01-01T12:00:00+01", -EINVAL, 0},
	{"last year", "2553-12-31T23:59:59Z", 0, 18429292799000000000u},
	{"one past it", "2554-01-01T00:00:00Z", -EINVAL, 0},
	{"empty", "", -EINVAL, 0},
};

int main(void)
{
	char text[RFC3339_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t ns = 0;

		EXPECT_EQ(cases[i].says, rfc3339_parse(cases[i].in, &ns), cases[i].want);
		EXPECT(cases[i].says, ns == cases[i].ns);
	}
	for (uint64_t at = 0; at < 18429292799000000000u - 300000000000000007u;
	     at += 299999990000000007u) {
		uint64_t back = 1;

		rfc3339_print(text, at);
		EXPECT_EQ(text, rfc3339_parse(text, &back), 0);
		EXPECT(text, back == at);
	}
	rfc3339_print(text, UINT64_MAX);
	EXPECT_STR("the end of time", text, "2554-07-21T23:34:33.709551615Z");
	CHECK(clock_mono_ns() <= clock_mono_ns());
	CHECK(clock_real_ns() > 1700000000 * NS_PER_S);
	return test_done();
}
