/* The empty image by its bytes, and by what qemu-img says of it where that is installed. */
#include "store/qcow2.h"

#include "base/alloc.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define QEMU_IMG "/usr/bin/qemu-img"

static const struct {
	const char *says;
	uint64_t size_bytes;
	int want;
	size_t bytes;
} cases[] = {
	{"one sector", 512, 0, 3 * 65536 + 8},
	{"less than a sector", 511, -EINVAL, 0},
	{"nothing", 0, -EINVAL, 0},
	{"not whole sectors", 4096 + 1, -EINVAL, 0},
	{"what one entry maps", (uint64_t)512 << 20, 0, 3 * 65536 + 8},
	{"one sector more", ((uint64_t)512 << 20) + 512, 0, 3 * 65536 + 16},
	{"the stock template's", (uint64_t)4 << 30, 0, 3 * 65536 + 64},
	{"the largest", QCOW2_SIZE_MAX, 0, QCOW2_EMPTY_MAX},
	{"one sector past it", QCOW2_SIZE_MAX + 512, -EINVAL, 0},
};

static int run(char *const argv[])
{
	pid_t pid = fork();
	int st = 0;

	if (pid == 0) {
		int out = open("/dev/null", O_WRONLY);

		(void)dup2(out, 1);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &st, 0) == pid && WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

static void check_file(const char *says, uint64_t size_bytes, const uint8_t *want, size_t n)
{
	char path[] = "/tmp/space-qcow2-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *got = xcalloc(1, QCOW2_EMPTY_MAX);
	struct stat st;
	char *check[] = {(char[]){QEMU_IMG},
			 (char[]){"check"},
			 (char[]){"-q"},
			 (char[]){"-f"},
			 (char[]){"qcow2"},
			 path,
			 NULL};

	EXPECT_EQ(says, qcow2_empty_write(fd, size_bytes), 0);
	EXPECT_EQ(says, pread(fd, got, QCOW2_EMPTY_MAX, 0), n);
	EXPECT(says, memcmp(got, want, n) == 0);
	EXPECT(says, fstat(fd, &st) == 0 && st.st_blocks * 512 <= 3 * 4096);
	if (access(QEMU_IMG, X_OK) == 0)
		EXPECT_EQ(says, run(check), 0);
	(void)close(fd);
	(void)unlink(path);
	free(got);
}

int main(void)
{
	uint8_t *got = xcalloc(1, QCOW2_EMPTY_MAX);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = 0;

		EXPECT_EQ(cases[i].says, qcow2_empty_print(got, cases[i].size_bytes, &n),
			  cases[i].want);
		EXPECT_EQ(cases[i].says, n, cases[i].bytes);
		if (cases[i].want == 0)
			check_file(cases[i].says, cases[i].size_bytes, got, n);
	}
	free(got);
	return test_done();
}
