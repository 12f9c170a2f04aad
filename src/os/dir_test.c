/* Names beneath a folder: nothing leads out, replacing is whole, removing is thorough. */
#include "os/dir.h"

#include "base/alloc.h"
#include "os/test_tmp.h"

#include <errno.h>
#include <sys/stat.h>

static void test_beneath(const struct test_tmp *t)
{
	static const struct {
		const char *says;
		const char *path;
		int want;
	} cases[] = {
		{"a file", "a/b/file", 0},
		{"dots that stay inside", "a/../a/b/file", 0},
		{"out by dots", "../etc/passwd", -EXDEV},
		{"out by more dots", "a/../../etc/passwd", -EXDEV},
		{"absolute", "/etc/passwd", -EXDEV},
		{"a link out", "out", -ELOOP},
		{"a link in the middle", "outdir/passwd", -ELOOP},
		{"a link that stays inside", "in", -ELOOP},
		{"not there", "a/none", -ENOENT},
		{"empty", "", -ENOENT},
	};

	EXPECT_EQ("folders", dir_make(t->fd, "a/b", 0700, NULL), 0);
	EXPECT_EQ("file", file_replace(t->fd, "a/b/file", 0600, "x", 1, NULL), 0);
	EXPECT_EQ("link", symlinkat("/etc/passwd", t->fd, "out"), 0);
	EXPECT_EQ("link", symlinkat("/etc", t->fd, "outdir"), 0);
	EXPECT_EQ("link", symlinkat("a/b/file", t->fd, "in"), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(fd_drop) int fd = -1;

		EXPECT_EQ(cases[i].says, file_open(t->fd, cases[i].path, O_RDONLY, 0, &fd, NULL),
			  cases[i].want);
	}
}

static void test_make(const struct test_tmp *t)
{
	static const struct {
		const char *says;
		const char *path;
		int want;
	} cases[] = {
		{"new", "m/n/o", 0},
		{"again", "m/n/o", 0},
		{"slashes", "m//p/", 0},
		{"absolute", "/m", -EINVAL},
		{"empty", "", -EINVAL},
		{"dots", "m/..", -EINVAL},
		{"through a link", "outdir/x", -ENOTDIR},
		{"over a file", "a/b/file/x", -ENOTDIR},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		EXPECT_EQ(cases[i].says, dir_make(t->fd, cases[i].path, 0700, NULL), cases[i].want);
	EXPECT("made", dir_exists(t->fd, "m/n/o") && dir_exists(t->fd, "m/p"));
	EXPECT("not made", !dir_exists(t->fd, "m/q") && !dir_exists(t->fd, "a/b/file"));
}

static void test_replace(const struct test_tmp *t)
{
	AUTO(str_drop) char *text = NULL;
	char **names = NULL;
	struct stat st;
	size_t n = 0;

	EXPECT_EQ("first", file_replace(t->fd, "r", 0640, "old", 3, NULL), 0);
	EXPECT_EQ("second", file_replace(t->fd, "r", 0640, "newer", 5, NULL), 0);
	EXPECT_EQ("read", file_slurp(t->fd, "r", 5, &text, &n, NULL), 0);
	EXPECT_STR("content", text, "newer");
	EXPECT_EQ("stat", fstatat(t->fd, "r", &st, 0), 0);
	EXPECT_EQ("mode", st.st_mode & 07777, 0640);
	EXPECT_EQ("a link is replaced, not followed",
		  file_replace(t->fd, "out", 0600, "y", 1, NULL), 0);
	EXPECT_EQ("stat", fstatat(t->fd, "out", &st, AT_SYMLINK_NOFOLLOW), 0);
	EXPECT("a file now", S_ISREG(st.st_mode));
	EXPECT_EQ("over a folder", file_replace(t->fd, "a", 0600, "y", 1, NULL), -EISDIR);
	EXPECT_EQ("no folder", file_replace(t->fd, "none/x", 0600, "y", 1, NULL), -ENOENT);
	EXPECT_EQ("hidden", mkdirat(t->fd, ".hidden", 0700), 0);
	EXPECT_EQ("list", dir_list(t->fd, ".", &names, &n, NULL), 0);
	EXPECT("sorted, without dots",
	       n == 6 && strcmp(names[0], "a") == 0 && strcmp(names[5], "r") == 0);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static void test_remove(const struct test_tmp *t)
{
	AUTO(str_drop) char *deep = xstrdup("d");

	EXPECT_EQ("missing", dir_remove(t->fd, "none", NULL), 0);
	EXPECT_EQ("missing parent", dir_remove(t->fd, "none/x", NULL), 0);
	EXPECT_EQ("a link, not its target", dir_remove(t->fd, "outdir", NULL), 0);
	EXPECT("the target stays", access("/etc/passwd", F_OK) == 0);
	EXPECT_EQ("dots", dir_remove(t->fd, "..", NULL), -EINVAL);
	EXPECT_EQ("a tree", dir_remove(t->fd, "a", NULL), 0);
	EXPECT("gone", !dir_exists(t->fd, "a"));
	/* 64 levels below the first go, 65 are refused */
	for (int i = 0; i < 64; i++) {
		char *longer = xasprintf("%s/d", deep);

		free(deep);
		deep = longer;
	}
	EXPECT_EQ("as deep as may be", dir_make(t->fd, deep, 0700, NULL), 0);
	EXPECT_EQ("goes", dir_remove(t->fd, "d", NULL), -ELOOP);
	EXPECT_EQ("from one below it does", dir_remove(t->fd, "d/d", NULL), 0);
	EXPECT_EQ("and then the rest", dir_remove(t->fd, "d", NULL), 0);
}

int main(void)
{
	struct test_tmp t;

	test_tmp_make(&t);
	test_beneath(&t);
	test_make(&t);
	test_replace(&t);
	test_remove(&t);
	test_tmp_drop(&t);
	return test_done();
}
