/* Clocks, and the one spelling of a date; see clock.h. */
#include "base/clock.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_S    86400u
#define YEAR_MIN 1970u
#define YEAR_MAX 2553u /* the last whole one that 64 bits of nanoseconds hold */

static uint64_t clock_read(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts); /* cannot fail for these two */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return clock_read(CLOCK_REALTIME);
}

static bool is_leap(unsigned year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned month_days(unsigned year, unsigned month) /* month: 1..12 */
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

void rfc3339_print(char dst[RFC3339_SIZE], uint64_t real_ns)
{
	uint64_t s = real_ns / NS_PER_S;
	uint64_t days = s / DAY_S;
	unsigned year = YEAR_MIN;
	unsigned month = 1;
	unsigned of_day = (unsigned)(s % DAY_S);

	for (; days >= 365u + is_leap(year); year++)
		days -= 365u + is_leap(year);
	for (; days >= month_days(year, month); month++)
		days -= month_days(year, month);
	(void)snprintf(dst, RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%09" PRIu64 "Z",
		       year % 10000, month, (unsigned)days % 31 + 1, of_day / 3600,
		       of_day / 60 % 60, of_day % 60, real_ns % NS_PER_S);
}

/* `pattern`: 'd' is a digit, anything else itself. */
static bool shaped(const char *text, const char *pattern)
{
	for (size_t i = 0; pattern[i]; i++)
		if (pattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
			return false;
	return true;
}

static unsigned digits(const char *text, size_t n)
{
	unsigned v = 0;

	for (size_t i = 0; i < n; i++)
		v = v * 10 + (unsigned)(text[i] - '0');
	return v;
}

/* ".123456789" of 1 to 9 digits, or nothing. Returns the characters used, or -EINVAL. */
static int fraction_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t ns = 0;
	int n = 1;

	if (text[0] != '.')
		return 0;
	for (; text[n] >= '0' && text[n] <= '9' && n <= 9; n++)
		ns = ns * 10 + (uint64_t)(text[n] - '0');
	if (n == 1)
		return -EINVAL;
	for (int i = n; i <= 9; i++)
		ns *= 10;
	*ret_ns = ns;
	return n;
}

static int offset_parse(const char *text, int64_t *ret_s)
{
	unsigned h, m;

	if (strcmp(text, "Z") == 0)
		return 0;
	if (strlen(text) != 6 || !(shaped(text, "+dd:dd") || shaped(text, "-dd:dd")))
		return -EINVAL;
	h = digits(text + 1, 2);
	m = digits(text + 4, 2);
	if (h > 23 || m > 59)
		return -EINVAL;
	*ret_s = (int64_t)(h * 3600 + m * 60) * (text[0] == '-' ? -1 : 1);
	return 0;
}

int rfc3339_parse(const char *text, uint64_t *ret_real_ns)
{
	unsigned year, month, day, h, m, s;
	uint64_t days = 0;
	uint64_t ns = 0;
	int64_t offset_s = 0;
	int64_t at_s;
	int n;

	if (!shaped(text, "dddd-dd-ddTdd:dd:dd"))
		return -EINVAL;
	year = digits(text, 4);
	month = digits(text + 5, 2);
	day = digits(text + 8, 2);
	h = digits(text + 11, 2);
	m = digits(text + 14, 2);
	s = digits(text + 17, 2);
	if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12 || day < 1 ||
	    day > month_days(year, month) || h > 23 || m > 59 || s > 59)
		return -EINVAL;
	n = fraction_parse(text + 19, &ns);
	if (n < 0 || offset_parse(text + 19 + n, &offset_s) < 0)
		return -EINVAL;
	for (unsigned y = YEAR_MIN; y < year; y++)
		days += 365u + is_leap(y);
	for (unsigned i = 1; i < month; i++)
		days += month_days(year, i);
	days += day - 1;
	at_s = (int64_t)(days * DAY_S + h * 3600 + m * 60 + s) - offset_s;
	if (at_s < 0)
		return -EINVAL;
	*ret_real_ns = (uint64_t)at_s * NS_PER_S + ns;
	return 0;
}
