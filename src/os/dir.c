/* Files below a directory descriptor. Names are resolved beneath it and no symbolic link is
 * followed, so whoever may write in the folder cannot lead us out of it. file_replace() is the one
 * way in which a durable file changes. Trusts the kernel's openat2 (Linux 5.6), nothing else. */
#include "os/dir.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DIR_ENTRIES_MAX 65536u
#define DIR_DEPTH_MAX   64u /* of a tree that dir_remove() takes down */
#define RESOLVE_RETRIES 32  /* openat2 gives EAGAIN while somebody renames */

static int open_beneath(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve,
	};

	for (int i = 0;; i++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);

		if (fd >= 0)
			return (int)fd;
		if (errno != EINTR && (errno != EAGAIN || i >= RESOLVE_RETRIES))
			return -errno;
	}
}

int dir_open(int dirfd, const char *path, int *ret_fd, struct fail *f)
{
	int fd = open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, 0);

	if (fd < 0)
		return fail_errno(f, fd, "cannot open folder '%s'", path);
	*ret_fd = fd;
	return 0;
}

int file_open(int dirfd, const char *path, int flags, mode_t mode, int *ret_fd, struct fail *f)
{
	int fd = open_beneath(dirfd, path, flags, mode, 0);

	if (fd < 0)
		return fail_errno(f, fd, "cannot open '%s'", path);
	*ret_fd = fd;
	return 0;
}

/* The directory that holds the last component of path, and that component. */
static int open_parent(int dirfd, const char *path, int *ret_fd, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	char parent[PATH_MAX] = ".";
	int fd;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	if (slash != NULL) {
		size_t n = (size_t)(slash - path);

		if (n == 0)
			return -EXDEV; /* absolute: what openat2 says to it */
		if (n >= sizeof parent)
			return -ENAMETOOLONG;
		memcpy(parent, path, n);
		parent[n] = '\0';
	}
	fd = open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0, 0);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	*ret_name = name;
	return 0;
}

int dir_make(int dirfd, const char *path, mode_t mode, struct fail *f)
{
	char part[PATH_MAX];
	size_t n = 0;

	if (path[0] == '/' || path[0] == '\0')
		return fail_set(f, -EINVAL, "bad folder name '%s'", path);
	if (str_copy(part, sizeof part, path) < 0)
		return fail_set(f, -ENAMETOOLONG, "folder name '%s' is too long", path);
	while (path[n] != '\0') {
		AUTO(fd_drop) int parent = -1;
		const char *name;
		int err;

		n += strcspn(path + n, "/");
		part[n] = '\0';
		err = open_parent(dirfd, part, &parent, &name);
		if (err == 0 && mkdirat(parent, name, mode) < 0 && errno != EEXIST)
			err = -errno;
		if (err < 0)
			return fail_errno(f, err, "cannot make folder '%s'", path);
		part[n] = path[n];
		n += strspn(path + n, "/");
	}
	return 0;
}

int file_slurp(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int err = file_open(dirfd, path, O_RDONLY, 0, &fd, f);

	if (err < 0)
		return err;
	err = fd_slurp(fd, max, ret, ret_n);
	return err < 0 ? fail_errno(f, err, "cannot read '%s'", path) : 0;
}

static int write_durable(int fd, mode_t mode, const void *p, size_t n)
{
	int err = fd_write_all(fd, p, n);

	if (err < 0)
		return err;
	/* The umask has had its say at open; the mode asked for is the mode given. */
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int file_replace(int dirfd, const char *path, mode_t mode, const void *p, size_t n, struct fail *f)
{
	AUTO(fd_drop) int parent = -1;
	AUTO(fd_drop) int fd = -1;
	const char *name;
	char tmp[32];
	uint64_t salt;
	int err = open_parent(dirfd, path, &parent, &name);

	if (err < 0)
		return fail_errno(f, err, "cannot replace '%s'", path);
	if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
		return fail_errno(f, -errno, "cannot get random bytes");
	(void)snprintf(tmp, sizeof tmp, ".tmp-%016" PRIx64, salt);
	fd = open_beneath(parent, tmp, O_WRONLY | O_CREAT | O_EXCL, 0600, 0);
	if (fd < 0)
		return fail_errno(f, fd, "cannot write beside '%s'", path);
	err = write_durable(fd, mode, p, n);
	if (err == 0 && renameat(parent, tmp, parent, name) < 0)
		err = -errno;
	if (err < 0) {
		(void)unlinkat(parent, tmp, 0); /* best effort: the name is swept at start too */
		return fail_errno(f, err, "cannot replace '%s'", path);
	}
	return fsync(parent) < 0 ? fail_errno(f, -errno, "cannot sync the folder of '%s'", path)
				 : 0;
}

static int remove_entry(int dirfd, const char *name, unsigned depth);

/* Takes fd. Mount points inside are not entered: what is mounted there is not ours. */
static int remove_entries(int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int err = 0;

	if (d == NULL) {
		err = -errno;
		(void)close(fd);
		return err;
	}
	while (err == 0) {
		const struct dirent *e;

		errno = 0;
		e = readdir(d);
		if (e == NULL) {
			err = -errno;
			break;
		}
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			err = remove_entry(dirfd(d), e->d_name, depth + 1);
	}
	(void)closedir(d);
	return err;
}

static int remove_entry(int dirfd, const char *name, unsigned depth)
{
	int fd;
	int err;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth >= DIR_DEPTH_MAX)
		return -ELOOP;
	fd = open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_XDEV);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = remove_entries(fd, depth);
	if (err < 0)
		return err;
	return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int dir_remove(int dirfd, const char *path, struct fail *f)
{
	AUTO(fd_drop) int parent = -1;
	const char *name;
	int err = open_parent(dirfd, path, &parent, &name);

	if (err == -ENOENT)
		return 0;
	if (err == 0)
		err = remove_entry(parent, name, 0);
	return err < 0 ? fail_errno(f, err, "cannot remove '%s'", path) : 0;
}

bool dir_exists(int dirfd, const char *path)
{
	AUTO(fd_drop) int fd = open_beneath(dirfd, path, O_PATH | O_DIRECTORY, 0, 0);

	return fd >= 0;
}

static void names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static int name_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *d, char ***ret_names, size_t *ret_n)
{
	char **names = NULL;
	size_t n = 0;

	for (;;) {
		const struct dirent *e;

		errno = 0;
		e = readdir(d);
		if (e == NULL && errno == 0)
			break;
		if (e == NULL || n >= DIR_ENTRIES_MAX) {
			int err = e == NULL ? -errno : -EFBIG;

			names_free(names, n);
			return err;
		}
		if (e->d_name[0] == '.')
			continue;
		names = xrealloc(names, n + 1, sizeof *names);
		names[n++] = xstrdup(e->d_name);
	}
	if (n > 1)
		qsort(names, n, sizeof *names, name_order);
	*ret_names = names;
	*ret_n = n;
	return 0;
}

int dir_list(int dirfd, const char *path, char ***ret_names, size_t *ret_n, struct fail *f)
{
	int fd = open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0, 0);
	DIR *d;
	int err;

	if (fd < 0)
		return fail_errno(f, fd, "cannot open folder '%s'", path);
	d = fdopendir(fd);
	if (d == NULL) {
		err = -errno;
		(void)close(fd);
		return fail_errno(f, err, "cannot read folder '%s'", path);
	}
	err = read_names(d, ret_names, ret_n);
	(void)closedir(d);
	return err < 0 ? fail_errno(f, err, "cannot read folder '%s'", path) : 0;
}
