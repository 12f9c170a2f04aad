/* Failures keep their code and cut their text; a log line cannot be forged. */
#include "base/fail.h"
#include "base/log.h"
#include "base/test.h"

#include <errno.h>
#include <unistd.h>

static void texts(void)
{
	char big[FAIL_TEXT_MAX * 2];
	struct fail f = {0};

	CHECK(fail_set(&f, -EINVAL, "bad '%s'", "x") == -EINVAL && f.code == -EINVAL);
	EXPECT_STR("set", f.text, "bad 'x'");
	CHECK(fail_prefix(&f, "restoring '%s'", "web-7") == -EINVAL);
	EXPECT_STR("prefix", f.text, "restoring 'web-7': bad 'x'");
	CHECK(fail_set(&f, -EIO, "again: %s", f.text) == -EIO);
	EXPECT_STR("its own text as argument", f.text, "again: restoring 'web-7': bad 'x'");
	CHECK(fail_errno(&f, -ENOENT, "cannot open '%s'", "a") == -ENOENT);
	EXPECT_STR("errno", f.text, "cannot open 'a': No such file or directory");
	CHECK(fail_errno(&f, -99999, "odd") == -99999);
	EXPECT_STR("unknown errno", f.text, "odd: unknown error");
	memset(big, 'x', sizeof big);
	big[sizeof big - 1] = '\0';
	CHECK(fail_set(&f, -EIO, "%s", big) == -EIO && strlen(f.text) == FAIL_TEXT_MAX - 1);
	CHECK(fail_prefix(&f, "more") == -EIO && strlen(f.text) == FAIL_TEXT_MAX - 1);
	CHECK(fail_set(NULL, -EIO, "x") == -EIO && fail_errno(NULL, -EPERM, "x") == -EPERM);
	CHECK(fail_prefix(NULL, "x") < 0);
}

static size_t logged(int fd, char *dst, size_t size)
{
	ssize_t n = read(fd, dst, size - 1);

	dst[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void lines(void)
{
	static char big[LOG_LINE_MAX * 2];
	char got[LOG_LINE_MAX * 2];
	int fd[2];
	size_t n;

	if (!EXPECT("pipe", pipe(fd) == 0))
		return;
	log_init("spaced", LOG_INFO, fd[1]);
	log_info("vm stopped", "sandbox=%s cause=%s", "i1", "a\nforged error");
	n = logged(fd[0], got, sizeof got);
	CHECK(n > 24 && got[4] == '-' && got[23] == 'Z');
	EXPECT_STR("one line", got + 24,
		   " info spaced: vm stopped sandbox=i1 cause=a\\x0aforged error\n");
	memset(big, '\n', sizeof big);
	big[sizeof big - 1] = '\0';
	log_debug("not shown", "%s", "x");
	log_error("flood", "%s", big);
	n = logged(fd[0], got, sizeof got);
	CHECK(n > LOG_LINE_MAX - 8 && n <= LOG_LINE_MAX);
	CHECK(got[n - 1] == '\n' && !memchr(got, '\n', n - 1) && !strstr(got, "not shown"));
	log_init("test", LOG_INFO, STDERR_FILENO);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	texts();
	lines();
	return test_done();
}
