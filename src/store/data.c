/* See data.h. Everything below the folder is reached by descriptor, except state.db. */
#include "store/data.h"

#include "base/alloc.h"
#include "os/dir.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static int own_dir(int root, const char *name, mode_t mode, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int r = dir_make(root, name, mode, f);

	if (r < 0 || (r = dir_open(root, name, &fd, f)) < 0)
		return r;
	/* A folder made by hand or by an older umask is narrowed, never widened. */
	if (fchmod(fd, mode) < 0)
		return fail_errno(f, -errno, "cannot set the mode of '%s'", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int lock_take(int state, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int r = file_open(state, "lock", O_RDWR | O_CREAT, 0600, &fd, f);

	if (r < 0)
		return r;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fail_set(f, -EBUSY, "another spaced uses this data folder")
			       : fail_errno(f, -errno, "cannot lock the data folder");
	*ret_fd = fd_take(&fd);
	return 0;
}

int data_open(const char *path, struct data *ret, struct fail *f)
{
	struct data d = DATA_NONE;
	int r;

	d.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.root < 0)
		return fail_errno(f, -errno, "cannot open the data folder '%s'", path);
	d.path = xstrdup(path);
	if ((r = own_dir(d.root, "state", 0700, &d.state, f)) < 0 ||
	    (r = lock_take(d.state, &d.lock, f)) < 0 ||
	    (r = own_dir(d.root, "variants", 0700, &d.variants, f)) < 0 ||
	    (r = own_dir(d.root, "run", 0700, &d.run, f)) < 0) {
		data_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void data_done(struct data *d)
{
	fd_drop(&d->lock);
	fd_drop(&d->run);
	fd_drop(&d->variants);
	fd_drop(&d->state);
	fd_drop(&d->root);
	str_drop(&d->path);
}
