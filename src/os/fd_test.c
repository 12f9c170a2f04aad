/* Descriptors: whole reads, limits, flags, sparse copies. */
#include "os/fd.h"

#include "base/alloc.h"
#include "os/test_tmp.h"

#include <errno.h>
#include <sys/stat.h>

static int filled(const struct test_tmp *t, const char *name, const char *text)
{
	int fd = -1;

	EXPECT_EQ(name, file_open(t->fd, name, O_RDWR | O_CREAT | O_EXCL, 0600, &fd, NULL), 0);
	EXPECT_EQ(name, fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

static void test_slurp(const struct test_tmp *t)
{
	static const struct {
		const char *says;
		size_t max;
		int want;
	} cases[] = {
		{"one below its size", 9, -EFBIG},
		{"exactly its size", 10, 0},
		{"more", 4096, 0},
		{"nothing allowed", 0, -EFBIG},
	};
	AUTO(fd_drop) int fd = filled(t, "ten", "0123456789");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop) char *text = NULL;
		size_t n = 0;

		EXPECT_EQ(cases[i].says, fd_slurp(fd, cases[i].max, &text, &n), cases[i].want);
		if (cases[i].want == 0) {
			EXPECT_STR(cases[i].says, text, "0123456789");
			EXPECT_EQ(cases[i].says, n, 10);
		}
	}
	EXPECT_EQ("the offset stays", lseek(fd, 0, SEEK_CUR), 10);
}

static void test_slurp_large(const struct test_tmp *t)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *big = xcalloc(1, 100001);
	size_t n = 0;

	memset(big, 'x', 100000);
	AUTO(fd_drop) int fd = filled(t, "big", big);

	EXPECT_EQ("one below", fd_slurp(fd, 99999, &text, &n), -EFBIG);
	EXPECT_EQ("at it", fd_slurp(fd, 100000, &text, &n), 0);
	EXPECT_STR("whole", text, big);
}

static void test_read_full(const struct test_tmp *t)
{
	AUTO(fd_drop) int fd = filled(t, "four", "abcd");
	char bytes[8];

	EXPECT_EQ("seek", lseek(fd, 0, SEEK_SET), 0);
	EXPECT_EQ("all of it", fd_read_full(fd, bytes, 4), 0);
	EXPECT_EQ("seek", lseek(fd, 0, SEEK_SET), 0);
	EXPECT_EQ("one more", fd_read_full(fd, bytes, 5), -ENODATA);
}

static void test_flags(void)
{
	int ends[2];

	EXPECT_EQ("pipe", pipe(ends), 0);
	EXPECT_EQ("cloexec on", fd_set_cloexec(ends[0], true), 0);
	EXPECT("it is", (fcntl(ends[0], F_GETFD) & FD_CLOEXEC) != 0);
	EXPECT_EQ("cloexec off", fd_set_cloexec(ends[0], false), 0);
	EXPECT("it is not", (fcntl(ends[0], F_GETFD) & FD_CLOEXEC) == 0);
	EXPECT_EQ("nonblock on", fd_set_nonblock(ends[1], true), 0);
	EXPECT("it is", (fcntl(ends[1], F_GETFL) & O_NONBLOCK) != 0);
	fd_drop(&ends[0]);
	EXPECT_EQ("dropped is empty", ends[0], -1);
	fd_drop(&ends[0]);
	fd_drop(&ends[1]);
	EXPECT_EQ("a closed one", fd_set_cloexec(1000, true), -EBADF);
}

static void test_copy(const struct test_tmp *t)
{
	AUTO(fd_drop) int from = filled(t, "from", "");
	AUTO(fd_drop) int dense = filled(t, "dense", "");
	AUTO(fd_drop) int sparse = filled(t, "sparse", "");
	AUTO(str_drop) char *a = NULL;
	AUTO(str_drop) char *b = NULL;
	const uint64_t size = 3 * 1024 * 1024 + 5;
	struct stat st;
	size_t n;

	/* data at the start, behind a hole, zeros that are written, and an end off the block */
	EXPECT_EQ("start", pwrite(from, "head", 4, 0), 4);
	EXPECT_EQ("middle", pwrite(from, "middle", 6, 1024 * 1024 + 17), 6);
	EXPECT_EQ("zeros", pwrite(from, "\0\0\0\0", 4, 2 * 1024 * 1024), 4);
	EXPECT_EQ("size", ftruncate(from, (off_t)size), 0);
	EXPECT_EQ("past the end", fd_copy(dense, from, size + 1, false), -ENODATA);
	EXPECT_EQ("dense", fd_copy(dense, from, size, false), 0);
	EXPECT_EQ("sparse", fd_copy(sparse, from, size, true), 0);
	EXPECT_EQ("stat", fstat(sparse, &st), 0);
	EXPECT_EQ("its size", st.st_size, (off_t)size);
	EXPECT("its holes", st.st_blocks <= 64);
	EXPECT_EQ("read", fd_slurp(dense, size, &a, &n), 0);
	EXPECT_EQ("read", fd_slurp(sparse, size, &b, &n), 0);
	EXPECT("the same bytes",
	       memcmp(a, b, size) == 0 && memcmp(b + 1024 * 1024 + 17, "middle", 6) == 0);
	EXPECT_EQ("the offset stays", lseek(from, 0, SEEK_CUR), 0);
}

int main(void)
{
	struct test_tmp t;

	test_tmp_make(&t);
	test_slurp(&t);
	test_slurp_large(&t);
	test_read_full(&t);
	test_flags();
	test_copy(&t);
	test_tmp_drop(&t);
	return test_done();
}
