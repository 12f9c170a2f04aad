/* File descriptors: ownership, whole reads and writes, flags, sparse copies. Owns nothing between
 * calls; never moves the file offset of a descriptor it was given to copy from or to. */
#include "os/fd.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define COPY_CHUNK  (256u * 1024)
#define COPY_BLOCK  4096u
#define SLURP_FIRST 4096u

void fd_drop(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* the descriptor is gone either way on Linux */
	*fd = -1;
	errno = saved;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static int flag_set(int fd, int get, int set, int flag, bool on)
{
	int old = fcntl(fd, get);
	int new;

	if (old < 0)
		return -errno;
	new = on ? old | flag : old & ~flag;
	if (new != old && fcntl(fd, set, new) < 0)
		return -errno;
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return flag_set(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return flag_set(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int fd_reopen(int fd, int flags)
{
	char path[64];
	int got;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	got = open(path, flags | O_CLOEXEC);
	return got < 0 ? -errno : got;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int fd_read_full(int fd, void *p, size_t n)
{
	uint8_t *at = p;

	while (n > 0) {
		ssize_t done = read(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -ENODATA;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

static ssize_t pread_some(int fd, void *p, size_t n, uint64_t at)
{
	for (;;) {
		ssize_t done = pread(fd, p, n, (off_t)at);

		if (done >= 0)
			return done;
		if (errno != EINTR)
			return -errno;
	}
}

static int pwrite_all(int fd, const uint8_t *p, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

int fd_slurp(int fd, size_t max, char **ret, size_t *ret_n)
{
	AUTO(str_drop) char *p = NULL;
	size_t cap = 0;
	size_t used = 0;

	for (;;) {
		ssize_t got;

		if (used == cap) {
			if (used > max)
				return -EFBIG;
			/* One byte past max, so that a file of exactly max is told from a longer
			 * one. */
			cap = cap == 0 ? size_min(SLURP_FIRST, max + 1)
				       : size_min(cap > max / 2 ? max + 1 : cap * 2, max + 1);
			p = xrealloc(p, cap + 1, 1);
		}
		got = pread_some(fd, p + used, cap - used, used);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		used += (size_t)got;
		if (used > max)
			return -EFBIG;
	}
	p[used] = '\0';
	*ret = p;
	p = NULL;
	*ret_n = used;
	return 0;
}

static bool block_is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Writes the blocks of p that are not zero, runs of them at once. */
static int write_sparse(int to, const uint8_t *p, size_t n, uint64_t at)
{
	size_t i = 0;

	while (i < n) {
		size_t run = i;
		int err;

		while (run < n && !block_is_zero(p + run, size_min(COPY_BLOCK, n - run)))
			run += size_min(COPY_BLOCK, n - run);
		err = pwrite_all(to, p + i, run - i, at + i);
		if (err < 0)
			return err;
		i = run;
		while (i < n && block_is_zero(p + i, size_min(COPY_BLOCK, n - i)))
			i += size_min(COPY_BLOCK, n - i);
	}
	return 0;
}

/* Where data begins at or after `at`; n when there is none, `at` when the file cannot tell. */
static uint64_t next_data(int seek_fd, uint64_t at, uint64_t n)
{
	off_t found;

	if (seek_fd < 0)
		return at;
	found = lseek(seek_fd, (off_t)at, SEEK_DATA);
	if (found < 0)
		return errno == ENXIO ? n : at;
	return u64_min((uint64_t)found & ~(uint64_t)(COPY_BLOCK - 1), n);
}

/* Where the next data is asked of another open file, so that the caller's offset stays. */
static int copy_source(int from, bool is_sparse, uint64_t n, int *ret_seek)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < n)
		return -ENODATA;
	*ret_seek = is_sparse && S_ISREG(st.st_mode) ? fd_reopen(from, O_RDONLY) : -1;
	return 0;
}

int fd_copy(int to, int from, uint64_t n, bool is_sparse)
{
	AUTO(mem_drop) uint8_t *chunk = try_alloc(COPY_CHUNK);
	AUTO(fd_drop) int seek = -1;
	uint64_t at = 0;
	int err;

	if (chunk == NULL)
		return -ENOMEM;
	err = copy_source(from, is_sparse, n, &seek);
	if (err < 0)
		return err;
	while (at < n && (at = next_data(seek, at, n)) < n) {
		ssize_t got = pread_some(from, chunk, (size_t)u64_min(COPY_CHUNK, n - at), at);

		if (got <= 0)
			return got < 0 ? (int)got : -ENODATA;
		err = is_sparse ? write_sparse(to, chunk, (size_t)got, at)
				: pwrite_all(to, chunk, (size_t)got, at);
		if (err < 0)
			return err;
		at += (uint64_t)got;
	}
	if (is_sparse) {
		struct stat st;

		if (fstat(to, &st) < 0)
			return -errno;
		if ((uint64_t)st.st_size < n && ftruncate(to, (off_t)n) < 0)
			return -errno;
	}
	return 0;
}
