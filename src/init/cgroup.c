/* cgroup v2 of the guest: see cgroup.h. */
#include "init/cgroup.h"

#include "base/alloc.h"
#include "init/boot.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define MIB             (1024u * 1024)
#define RESERVE_MIN     (16 * MIB) /* of RAM that user code never gets: the kernel and init */
#define RESERVE_MAX     (256 * MIB)
#define PIDS_PER_MIB    4
#define PIDS_MIN        512
#define PIDS_MAX        32000 /* below the kernel's default pid_max of 32768 */
#define INIT_CPU_WEIGHT "10000"
#define LEFT_MAX        4096 /* leaves that are tried again; more are left to whoever filled them */
#define NAME_TRIES      16   /* root in the guest may have made groups of our names */

static int write_at(int dir, const char *path, const char *text, struct fail *f)
{
	AUTO(fd_drop) int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return fail_errno(f, -errno, "cannot write '%s' to cgroup file '%s'", text, path);
	return 0;
}

static int write_u64(int dir, const char *path, uint64_t v, struct fail *f)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, v);
	return write_at(dir, path, text, f);
}

static int make_groups(int root, struct fail *f)
{
	static const char *const names[] = {"space-init", "user"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (mkdirat(root, names[i], 0755) != 0 && errno != EEXIST)
			return fail_errno(f, -errno, "cannot make cgroup '%s'", names[i]);
	return write_at(root, "cgroup.subtree_control", "+cpu +memory +pids", f);
}

int cgroups_init(struct cgroups *c, uint64_t ram_bytes, uint64_t protect_bytes, struct fail *f)
{
	AUTO(fd_drop) int root = open(CGROUPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t reserve = ram_bytes / 16;
	uint64_t pids = ram_bytes / MIB * PIDS_PER_MIB;
	int err;

	reserve = reserve < RESERVE_MIN ? RESERVE_MIN : u64_min(reserve, RESERVE_MAX);
	pids = pids < PIDS_MIN ? PIDS_MIN : u64_min(pids, PIDS_MAX);
	*c = (struct cgroups){.user = -1, .spare.fd = -1, .pids_leaf = pids / 4 * 3};
	if (root < 0)
		return fail_errno(f, -errno, "cannot open the cgroups");
	err = make_groups(root, f);
	if (!err)
		err = write_at(root, "space-init/cpu.weight", INIT_CPU_WEIGHT, f);
	if (!err)
		err = write_u64(root, "space-init/memory.min", protect_bytes, f);
	if (!err)
		err = write_at(root, "space-init/cgroup.procs", "0", f);
	if (!err)
		err = write_u64(root, "user/memory.max",
				ram_bytes - u64_min(reserve, ram_bytes / 2), f);
	if (!err)
		err = write_u64(root, "user/pids.max", pids, f);
	if (err)
		return err;
	c->user = openat(root, "user", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->user < 0 ? fail_errno(f, -errno, "cannot open cgroup 'user'") : 0;
}

int cgroups_open_user(struct cgroups *c, struct fail *f)
{
	return write_at(c->user, "cgroup.subtree_control", "+cpu +pids", f);
}

static int leaf_make(struct cgroups *c, struct leaf *ret, struct fail *f)
{
	struct leaf l = {.fd = -1};
	int err = -EEXIST;

	for (unsigned i = 0; i < NAME_TRIES && err == -EEXIST; i++) {
		(void)snprintf(l.name, sizeof l.name, "%" PRIu64, ++c->next);
		err = mkdirat(c->user, l.name, 0755) == 0 ? 0 : -errno;
	}
	if (err)
		return fail_errno(f, err, "cannot make cgroup '%s'", l.name);
	l.fd = openat(c->user, l.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = l.fd < 0 ? fail_errno(f, -errno, "cannot open cgroup '%s'", l.name)
		       : write_u64(l.fd, "pids.max", c->pids_leaf, f);
	if (err) {
		fd_drop(&l.fd);
		(void)unlinkat(c->user, l.name, AT_REMOVEDIR); /* best effort: it is empty */
		return err;
	}
	*ret = l;
	return 0;
}

int leaf_take(struct cgroups *c, struct leaf *ret, struct fail *f)
{
	if (c->spare.fd < 0)
		return leaf_make(c, ret, f);
	*ret = c->spare;
	c->spare = (struct leaf){.fd = -1};
	return 0;
}

void cgroups_prepare(struct cgroups *c)
{
	if (c->spare.fd < 0)
		(void)leaf_make(c, &c->spare,
				NULL); /* best effort: leaf_take() tries again and says why */
}

void leaf_give(struct cgroups *c, struct leaf *l)
{
	fd_drop(&l->fd);
	if (l->name[0] && unlinkat(c->user, l->name, AT_REMOVEDIR) != 0 && errno == EBUSY &&
	    c->n_left < LEFT_MAX) {
		c->left = xrealloc(c->left, c->n_left + 1, sizeof *c->left);
		memcpy(c->left[c->n_left++], l->name, LEAF_NAME_SIZE);
	}
	l->name[0] = 0;
}

bool cgroups_sweep(struct cgroups *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_left; i++)
		if (unlinkat(c->user, c->left[i], AT_REMOVEDIR) != 0 && errno == EBUSY)
			memmove(c->left[n++], c->left[i], LEAF_NAME_SIZE);
	c->n_left = n;
	return n > 0;
}
