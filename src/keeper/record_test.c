/* The exit record: one line of JSON, whole, whatever stood there before, whatever the reason is. */
#include "keeper/record.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "os/test_tmp.h"
#include "wire/json.h"

static const struct {
	const char *says;
	const char *why;
	int status;
} cases[] = {
	{"long", "a reason that is longer than the one after it, so that it would show through", 9},
	{"short", "x", 0},
	{"quotes and controls", "he said \"no\"\n\t\x1b[2J\\", 256},
	{"UTF-8", "gr\xc3\xbc\xc3\x9f", -1},
};

static void expect_record(int fd, size_t i)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(json_drop) json_t *j = NULL;
	struct fail f = {0};
	const char *value = "";
	int64_t status = -2;
	uint64_t at = 0;
	size_t n = 0;

	CHECK(fd_slurp(fd, 4096, &text, &n) == 0);
	EXPECT(cases[i].says, n > 0 && strchr(text, '\n') == text + n - 1);
	if (!EXPECT_EQ(cases[i].says, json_parse(&j, text, n, 4096, &f), 0))
		return;
	CHECK(json_get_str(j, "why", JSON_REQUIRED, 0, 1024, &value, &f) == 0);
	EXPECT_STR(cases[i].says, value, cases[i].why);
	CHECK(json_get_i64(j, "waitStatus", JSON_REQUIRED, -1, 65535, &status, &f) == 0);
	EXPECT_EQ(cases[i].says, status, cases[i].status);
	CHECK(json_get_str(j, "at", JSON_REQUIRED, 0, RFC3339_SIZE, &value, &f) == 0);
	EXPECT_EQ("a time", rfc3339_parse(value, &at), 0);
	EXPECT("of now", clock_real_ns() - at < 60 * NS_PER_S);
}

int main(void)
{
	struct test_tmp tmp;
	int fd = -1;

	test_tmp_make(&tmp);
	CHECK(file_open(tmp.fd, "exit", O_RDWR | O_CREAT, 0600, &fd, NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		record_write(fd, "i0123456789abcdefghi", cases[i].why, cases[i].status);
		expect_record(fd, i);
	}
	fd_drop(&fd);
	test_tmp_drop(&tmp);
	return test_done();
}
