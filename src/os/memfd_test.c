/* Sealed memory: nobody changes it any more, private mappings go on. */
#include "os/memfd.h"

#include "os/test_tmp.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SIZE 65536

static void test_seal(void)
{
	AUTO(fd_drop) int fd = -1;
	uint8_t *p;

	EXPECT_EQ("make", memfd_make("t", SIZE, &fd, NULL), 0);
	EXPECT("not sealed yet", !memfd_is_sealed(fd));
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[0] = 'x';
	EXPECT_EQ("while somebody may write", memfd_seal(fd, NULL), -EBUSY);
	(void)munmap(p, SIZE);
	EXPECT_EQ("seal", memfd_seal(fd, NULL), 0);
	EXPECT("sealed", memfd_is_sealed(fd));
	EXPECT("no write", write(fd, "y", 1) < 0 && errno == EPERM);
	EXPECT("no size", ftruncate(fd, 0) < 0 && ftruncate(fd, 2 * SIZE) < 0);
	EXPECT("no hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);
	EXPECT("no shared mapping",
	       mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	EXPECT("a private one", p != MAP_FAILED && p[0] == 'x');
	p[0] = 'z';
	(void)munmap(p, SIZE);
	EXPECT("is private", pread(fd, &(char){0}, 1, 0) == 1);
}

static void test_load(const struct test_tmp *t)
{
	AUTO(fd_drop) int file = -1;
	AUTO(fd_drop) int fd = -1;
	char bytes[4] = {0};
	struct stat st;
	int none = -1;

	EXPECT_EQ("file", file_open(t->fd, "ram", O_RDWR | O_CREAT, 0600, &file, NULL), 0);
	EXPECT_EQ("size", ftruncate(file, SIZE), 0);
	EXPECT_EQ("bytes", pwrite(file, "ram!", 4, 40000), 4);
	EXPECT_EQ("shorter than asked", memfd_load("t", file, SIZE + 1, &none, NULL), -ENODATA);
	EXPECT_EQ("nothing was set", none, -1);
	EXPECT_EQ("load", memfd_load("t", file, SIZE, &fd, NULL), 0);
	EXPECT("the bytes", pread(fd, bytes, 4, 40000) == 4 && memcmp(bytes, "ram!", 4) == 0);
	EXPECT_EQ("stat", fstat(fd, &st), 0);
	EXPECT("size and holes", st.st_size == SIZE && st.st_blocks <= 8);
}

int main(void)
{
	struct test_tmp t;

	test_tmp_make(&t);
	test_seal();
	test_load(&t);
	test_tmp_drop(&t);
	return test_done();
}
