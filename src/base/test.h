/* What a unit test needs: count, print only failures, and one last line `N passed, N failed`.
 *
 *   static const struct { const char *says; const char *in; int want; } cases[] = { ... };
 *
 *   int main(void)
 *   {
 *           for (size_t i = 0; i < ARRAY_LEN(cases); i++)
 *                   EXPECT_EQ(cases[i].says, thing_parse(cases[i].in), cases[i].want);
 *           return test_done();
 *   }
 */
#ifndef SPACE_BASE_TEST_H
#define SPACE_BASE_TEST_H

#include "base/defs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AddressSanitizer keeps what was freed, so sizes of memory say little. gcc and clang each tell of
 * it in their own way. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_HAS_ASAN 1
#elif defined(__has_feature)
#define TEST_HAS_ASAN __has_feature(address_sanitizer)
#else
#define TEST_HAS_ASAN 0
#endif

static unsigned test_passed;
static unsigned test_failed;

static inline bool test_count(bool is_good)
{
	if (is_good)
		test_passed++;
	else
		test_failed++;
	return is_good;
}

static inline bool test_expect(const char *at, const char *says, const char *what, bool is_good)
{
	if (!test_count(is_good))
		printf("%s: %s: not so: %s\n", at, says, what);
	return is_good;
}

static inline bool test_expect_eq(const char *at, const char *says, intmax_t got, intmax_t want)
{
	if (!test_count(got == want))
		printf("%s: %s: got %" PRIdMAX ", want %" PRIdMAX "\n", at, says, got, want);
	return got == want;
}

static inline bool test_expect_str(const char *at, const char *says, const char *got,
				   const char *want)
{
	bool is_good = got && want ? strcmp(got, want) == 0 : got == want;

	if (!test_count(is_good))
		printf("%s: %s: got '%s', want '%s'\n", at, says, got ? got : "(null)",
		       want ? want : "(null)");
	return is_good;
}

/* The last line, and the exit status. A test that counted nothing has failed. */
static inline int test_done(void)
{
	printf("%u passed, %u failed\n", test_passed, test_failed);
	return test_failed || !test_passed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A reason not to run here; Meson shows it as skipped. */
static inline int test_skip(const char *why)
{
	printf("skipped: %s\n", why);
	return 77;
}

#define TEST_STR_(x) #x
#define TEST_STR(x)  TEST_STR_(x)
#define TEST_AT      __FILE__ ":" TEST_STR(__LINE__)

#define CHECK(cond)        test_expect(TEST_AT, __func__, #cond, (cond))
#define EXPECT(says, cond) test_expect(TEST_AT, (says), #cond, (cond))
#define EXPECT_EQ(says, got, want)                                                                 \
	test_expect_eq(TEST_AT, (says), (intmax_t)(got), (intmax_t)(want))
#define EXPECT_STR(says, got, want) test_expect_str(TEST_AT, (says), (got), (want))

#endif
