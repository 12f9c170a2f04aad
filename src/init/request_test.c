/* request.c: what process.Process requests may say, and the fields of the head. */
#include "init/request.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "init/limits.h"

#include <errno.h>
#include <signal.h>

static const struct {
	const char *says;
	const char *in;
	int want;
} start_cases[] = {
	{"the least", "{\"process\":{\"cmd\":\"ls\"}}", 0},
	{"as the SDK sends it",
	 "{\"process\":{\"cmd\":\"/bin/"
	 "bash\",\"args\":[\"-l\",\"-c\",\"ls\"],\"envs\":{},\"cwd\":\"/tmp\"},"
	 "\"stdin\":false}",
	 0},
	{"unknown fields are ignored", "{\"process\":{\"cmd\":\"ls\",\"x\":{}},\"y\":[[]]}", 0},
	{"nulls are absent",
	 "{\"process\":{\"cmd\":\"ls\",\"args\":null,\"cwd\":null},\"pty\":null}", 0},
	{"no process", "{}", -EINVAL},
	{"no cmd", "{\"process\":{}}", -EINVAL},
	{"empty cmd", "{\"process\":{\"cmd\":\"\"}}", -EINVAL},
	{"NUL in cmd", "{\"process\":{\"cmd\":\"a\\u0000b\"}}", -EINVAL},
	{"cmd is a number", "{\"process\":{\"cmd\":1}}", -EINVAL},
	{"args is an object", "{\"process\":{\"cmd\":\"ls\",\"args\":{}}}", -EINVAL},
	{"an arg is a number", "{\"process\":{\"cmd\":\"ls\",\"args\":[1]}}", -EINVAL},
	{"env name with =", "{\"process\":{\"cmd\":\"ls\",\"envs\":{\"A=\":\"\"}}}", -EINVAL},
	{"env name empty", "{\"process\":{\"cmd\":\"ls\",\"envs\":{\"\":\"\"}}}", -EINVAL},
	{"cmd twice", "{\"process\":{\"cmd\":\"ls\",\"cmd\":\"rm\"}}", -EINVAL},
	{"stdin is a string", "{\"process\":{\"cmd\":\"ls\"},\"stdin\":\"no\"}", -EINVAL},
	{"a terminal",
	 "{\"process\":{\"cmd\":\"ls\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":65535}}}", 0},
	{"a terminal too large",
	 "{\"process\":{\"cmd\":\"ls\"},\"pty\":{\"size\":{\"cols\":65536}}}", -EINVAL},
	{"negative rows", "{\"process\":{\"cmd\":\"ls\"},\"pty\":{\"size\":{\"rows\":-1}}}",
	 -EINVAL},
	{"cut", "{\"process\":{\"cmd\":\"ls\"}", -EINVAL},
	{"broken UTF-8", "{\"process\":{\"cmd\":\"\xff\"}}", -EINVAL},
};

static const struct {
	const char *says;
	const char *in;
	int want;
	int signo;
} signal_cases[] = {
	{"by name", "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}", 0, SIGKILL},
	{"by number", "{\"process\":{\"tag\":\"t\"},\"signal\":15}", 0, SIGTERM},
	{"another", "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGHUP\"}", -EINVAL, 0},
	{"none", "{\"process\":{\"pid\":7}}", -EINVAL, 0},
	{"pid 0", "{\"process\":{\"pid\":0},\"signal\":9}", -EINVAL, 0},
	{"pid -1", "{\"process\":{\"pid\":-1},\"signal\":9}", -EINVAL, 0},
	{"pid past 31 bits", "{\"process\":{\"pid\":2147483648},\"signal\":9}", -EINVAL, 0},
	{"pid and tag", "{\"process\":{\"pid\":1,\"tag\":\"t\"},\"signal\":9}", -EINVAL, 0},
	{"neither", "{\"process\":{},\"signal\":9}", -EINVAL, 0},
};

static const struct {
	const char *says;
	const char *in;
	int want;
	const char *data;
	bool is_pty;
} input_cases[] = {
	{"stdin", "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"aGk=\"}}", 0, "hi", false},
	{"a terminal", "{\"process\":{\"pid\":7},\"input\":{\"pty\":\"aGk=\"}}", 0, "hi", true},
	{"nothing in it", "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"\"}}", 0, "", false},
	{"both", "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"\",\"pty\":\"\"}}", -EINVAL, NULL,
	 false},
	{"neither", "{\"process\":{\"pid\":7},\"input\":{}}", -EINVAL, NULL, false},
	{"no base64", "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"a\"}}", -EINVAL, NULL,
	 false},
	{"no process", "{\"input\":{\"stdin\":\"aGk=\"}}", -EINVAL, NULL, false},
};

static const struct {
	const char *says;
	const char *authorization;
	const char *timeout;
	const char *keepalive;
	const char *after;
	int want;
	const char *user;
} head_cases[] = {
	{"nothing", NULL, NULL, NULL, NULL, 0, NULL},
	{"as the SDK sends it", "Basic cm9vdDo=", "60000", "50", NULL, 0, "root"},
	{"a password is ignored", "Basic cm9vdDp4", NULL, NULL, NULL, 0, "root"},
	{"no name: the default", "Basic Og==", NULL, NULL, NULL, 0, NULL},
	{"another scheme", "Bearer abc", NULL, NULL, NULL, -EINVAL, NULL},
	{"no base64", "Basic *", NULL, NULL, NULL, -EINVAL, NULL},
	{"NUL in the name", "Basic YQBiOg==", NULL, NULL, NULL, -EINVAL, NULL},
	{"ten digits", NULL, "9999999999", NULL, NULL, 0, NULL},
	{"eleven", NULL, "10000000000", NULL, NULL, -EINVAL, NULL},
	{"a negative time", NULL, "-1", NULL, NULL, -EINVAL, NULL},
	{"keep-alive of a day", NULL, NULL, "86400", NULL, 0, NULL},
	{"of a second more", NULL, NULL, "86401", NULL, -EINVAL, NULL},
	{"of nothing", NULL, NULL, "0", NULL, -EINVAL, NULL},
	{"after", NULL, NULL, NULL, "9223372036854775807", 0, NULL},
	{"after past 63 bits", NULL, NULL, NULL, "9223372036854775808", -EINVAL, NULL},
};

static int start(const char *text, struct start_request *ret)
{
	struct fail f = {0};
	int err = start_request_parse(ret, text, strlen(text), &f);

	if (err)
		EXPECT("says why", f.text[0] != 0);
	return err == -E2BIG ? -EINVAL : err;
}

static void start_fields(void)
{
	AUTO(start_request_done) struct start_request q = {0};

	CHECK(start("{\"process\":{\"cmd\":\"a\",\"args\":[\"b\",\"\"],\"envs\":{\"C\":\"d\"},"
		    "\"cwd\":\"~\"},"
		    "\"tag\":\"t\",\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}",
		    &q) == 0);
	EXPECT_STR("cmd", q.cmd, "a");
	EXPECT_EQ("args", q.n_args, 2);
	EXPECT_STR("an empty one", q.args[1], "");
	EXPECT("ends with NULL", !q.args[2]);
	EXPECT_STR("envs", env_get(&q.envs, "C"), "d");
	EXPECT_STR("cwd", q.cwd, "~");
	EXPECT_STR("tag", q.tag, "t");
	EXPECT("stdin is there by default", q.has_stdin);
	EXPECT("terminal", q.has_pty && q.cols == 80 && q.rows == 24);
	EXPECT_EQ("bytes", q.bytes, 2 + 2 + 2 + 1 + 4);
}

/* A request with one argument of n bytes, or with n empty ones. */
static char *with_args(size_t n, bool is_one)
{
	size_t size = 3 * n + 64;
	char *text = xcalloc(size, 1);
	size_t at = (size_t)snprintf(text, size, "{\"process\":{\"cmd\":\"c\",\"args\":[%s",
				     is_one ? "\"" : "");

	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, size - at, is_one ? "x" : i ? ",\"\"" : "\"\"");
	(void)snprintf(text + at, size - at, "%s]}}", is_one ? "\"" : "");
	return text;
}

static void start_limits(void)
{
	/* cmd "c", cwd "" and the argument's own NUL */
	const size_t most = EXEC_MAX - 2 - 1 - 1;

	for (size_t more = 0; more < 2; more++) {
		AUTO(start_request_done) struct start_request many = {0};
		AUTO(start_request_done) struct start_request large = {0};
		AUTO(str_drop) char *many_text = with_args(ARGS_MAX + more, false);
		AUTO(str_drop) char *large_text = with_args(most + more, true);

		EXPECT_EQ("ARGS_MAX arguments, and one more", start(many_text, &many),
			  more ? -EINVAL : 0);
		EXPECT_EQ("EXEC_MAX bytes, and one more", start(large_text, &large),
			  more ? -EINVAL : 0);
	}
	for (size_t n = TAG_SIZE - 1; n <= TAG_SIZE; n++) {
		AUTO(start_request_done) struct start_request q = {0};
		AUTO(str_drop) char *tag = xcalloc(n + 1, 1);
		AUTO(str_drop) char *text = NULL;

		memset(tag, 't', n);
		text = xasprintf("{\"process\":{\"cmd\":\"c\"},\"tag\":\"%s\"}", tag);
		EXPECT_EQ("a tag at the limit, and past it", start(text, &q),
			  n == TAG_SIZE ? -EINVAL : 0);
	}
}

static void user_limits(void)
{
	for (size_t n = USER_SIZE - 1; n <= USER_SIZE; n++) {
		AUTO(head_options_done) struct head_options o = {0};
		uint8_t plain[USER_SIZE + 1];
		char text[6 + (USER_SIZE + 3) / 3 * 4 + 1] = "Basic ";
		struct fail f = {0};

		memset(plain, 'u', n);
		plain[n] = ':';
		base64_encode(text + 6, plain, n + 1);
		EXPECT_EQ("a user's name at the limit, and past it",
			  head_options_parse(&o, text, NULL, NULL, NULL, &f),
			  n == USER_SIZE ? -EINVAL : 0);
	}
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(start_cases); i++) {
		AUTO(start_request_done) struct start_request q = {0};

		EXPECT_EQ(start_cases[i].says, start(start_cases[i].in, &q), start_cases[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(signal_cases); i++) {
		AUTO(signal_request_done) struct signal_request q = {0};
		const char *in = signal_cases[i].in;
		struct fail f = {0};

		EXPECT_EQ(signal_cases[i].says, signal_request_parse(&q, in, strlen(in), &f),
			  signal_cases[i].want);
		EXPECT_EQ(signal_cases[i].says, q.signo, signal_cases[i].signo);
	}
	for (size_t i = 0; i < ARRAY_LEN(input_cases); i++) {
		AUTO(input_request_done) struct input_request q = {0};
		const char *in = input_cases[i].in;
		const char *data = input_cases[i].data;
		struct fail f = {0};

		EXPECT_EQ(input_cases[i].says, input_request_parse(&q, in, strlen(in), &f),
			  input_cases[i].want);
		EXPECT(input_cases[i].says, q.is_pty == input_cases[i].is_pty);
		EXPECT(input_cases[i].says,
		       !data || (q.n == strlen(data) && !memcmp(q.data, data, q.n)));
	}
	for (size_t i = 0; i < ARRAY_LEN(head_cases); i++) {
		AUTO(head_options_done) struct head_options o = {0};
		struct fail f = {0};

		EXPECT_EQ(head_cases[i].says,
			  head_options_parse(&o, head_cases[i].authorization, head_cases[i].timeout,
					     head_cases[i].keepalive, head_cases[i].after, &f),
			  head_cases[i].want);
		EXPECT_STR(head_cases[i].says, o.user, head_cases[i].user);
	}
	start_fields();
	start_limits();
	user_limits();
	return test_done();
}
