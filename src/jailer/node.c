/* Preparation, before spaced exists: nobody hostile has spoken yet, but the data folder may hold
 * what an earlier spaced left, so nothing in it is followed and only what belonged to that spaced
 * is handed to the new one. */
#include "node.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "mounts.h"
#include "os/dir.h"
#include "os/fd.h"
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

#define SPACED_USER   "space"
#define MAP_TEXT_MAX  65536
#define OWN_DEPTH_MAX 8 /* of state/, variants/ and run/ */
/* Where the namespace maps only 16 bits: between people's and systemd's. */
#define UID_LOW_FIRST 20000u
#define UID_LOW_LAST  56000u

/* --- uids --- */

bool uid_map_has(const char *text, uint32_t first, uint32_t count)
{
	const char *at = text;

	while (*at != '\0') {
		uint64_t v[3] = {0};
		bool is_good = true;

		for (size_t i = 0; i < 3; i++) {
			size_t n;

			at += strspn(at, " ");
			n = strcspn(at, " \n");
			is_good = is_good && str_u64_n(at, n, UINT32_MAX, &v[i]) == 0;
			at += n;
		}
		at += strcspn(at, "\n");
		at += strspn(at, "\n");
		if (is_good && first >= v[0] && first - v[0] < v[2] &&
		    count <= v[2] - (first - v[0]))
			return true;
	}
	return false;
}

static bool maps_have(uint32_t first)
{
	static const char *const maps[] = {"/proc/self/uid_map", "/proc/self/gid_map"};

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		AUTO(str_drop) char *text = NULL;
		AUTO(fd_drop) int fd = open(maps[i], O_RDONLY | O_CLOEXEC);
		size_t n;

		if (fd < 0 || fd_slurp(fd, MAP_TEXT_MAX, &text, &n) < 0 ||
		    !uid_map_has(text, first, NODE_UIDS))
			return false;
	}
	return true;
}

static bool has_owner(uint32_t first)
{
	const struct passwd *p;
	const struct group *g;
	bool found = false;

	setpwent();
	while (!found && (p = getpwent()) != NULL)
		found = p->pw_uid >= first && p->pw_uid - first < NODE_UIDS;
	endpwent();
	setgrent();
	while (!found && (g = getgrent()) != NULL)
		found = g->gr_gid >= first && g->gr_gid - first < NODE_UIDS;
	endgrent();
	return found;
}

static bool range_fits(uint32_t first)
{
	return first > 0 && maps_have(first) && !has_owner(first);
}

/* Nodes of one host, each with a data folder of its own, get ranges of their own: the one that the
 * folder has already, else one by the folder's inode number. */
static uint32_t own_range(const char *data)
{
	AUTO(str_drop) char *state = xasprintf("%s/state", data);
	uint32_t range = 0;
	struct stat st;

	if (lstat(state, &st) == 0 && st.st_uid >= NODE_UID_FIRST &&
	    (st.st_uid - NODE_UID_FIRST) / NODE_UIDS < NODE_RANGES &&
	    (st.st_uid - NODE_UID_FIRST) % NODE_UIDS == 0)
		return st.st_uid;
	if (stat(data, &st) == 0)
		range = (uint32_t)(st.st_ino % NODE_RANGES);
	return NODE_UID_FIRST + range * NODE_UIDS;
}

static int choose_range(const struct node_request *r, struct node *n, struct fail *f)
{
	if (r->has_uid_first) {
		if (!range_fits(r->uid_first))
			return fail_set(f, -EINVAL, "user ids from %u on are not free to use here",
					r->uid_first);
		n->uid_first = r->uid_first;
		return 0;
	}
	n->uid_first = own_range(r->data);
	if (range_fits(n->uid_first))
		return 0;
	for (uint32_t first = UID_LOW_LAST; first >= UID_LOW_FIRST; first -= NODE_UIDS)
		if (range_fits(first)) {
			n->uid_first = first;
			return 0;
		}
	return fail_set(f, -EUSERS, "no %u user ids are free on this host", NODE_UIDS);
}

static void mark_used(void *arg, pid_t pid, const struct proc_status *s)
{
	struct node *n = arg;

	(void)pid;
	for (size_t i = 0; i < ARRAY_LEN(s->uid); i++)
		if (s->uid[i] >= n->uid_first && s->uid[i] - n->uid_first < NODE_UIDS)
			n->used[s->uid[i] - n->uid_first] = true;
}

int node_uid_take(struct node *n, uid_t *ret)
{
	if (!n->is_root) {
		*ret = geteuid();
		return 0;
	}
	for (uint32_t i = 0; i < NODE_UIDS; i++) {
		uint32_t at = n->next;

		n->next = (n->next + 1) % NODE_UIDS;
		if (!n->used[at]) {
			n->used[at] = true;
			*ret = n->uid_first + at;
			return 0;
		}
	}
	return -EUSERS;
}

void node_uid_give(struct node *n, uid_t uid)
{
	if (n->is_root && node_uid_is_ours(n, uid))
		n->used[uid - n->uid_first] = false;
}

bool node_uid_is_ours(const struct node *n, uid_t uid)
{
	if (!n->is_root)
		return uid == geteuid();
	return uid >= n->uid_first && uid - n->uid_first < NODE_UIDS && uid != n->spaced_uid;
}

static int prepare_uids(const struct node_request *r, struct node *n, struct fail *f)
{
	const struct passwd *p;
	int err = choose_range(r, n, f);

	if (err < 0)
		return err;
	p = getpwnam(SPACED_USER);
	n->spaced_uid = p != NULL && p->pw_uid != 0 ? p->pw_uid : n->uid_first;
	n->spaced_gid = p != NULL && p->pw_uid != 0 ? p->pw_gid : n->uid_first;
	/* Sandboxes of an earlier jailer live on; their uids stay theirs until we end them. */
	err = proc_each(mark_used, n);
	n->used[0] = true; /* spaced's, or nobody's */
	return err < 0 ? fail_errno(f, err, "cannot read /proc") : 0;
}

/* --- the data folder --- */

static int own_tree(int dir, uid_t from, const struct node *n, unsigned depth);

/* One entry that belonged to `from`. A file with a second name may be somebody's elsewhere. */
static int own_entry(int dir, const char *name, uid_t from, const struct node *n, unsigned depth)
{
	AUTO(fd_drop) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode)) {
		AUTO(fd_drop)
		int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		return sub < 0 ? -errno : own_tree(sub, from, n, depth + 1);
	}
	if (st.st_uid != from || st.st_nlink != 1)
		return 0;
	return fchownat(fd, "", n->spaced_uid, n->spaced_gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int own_tree(int dir, uid_t from, const struct node *n, unsigned depth)
{
	AUTO(fd_drop) int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	const struct dirent *e;
	int err = 0;
	DIR *d;

	if (depth > OWN_DEPTH_MAX)
		return -ELOOP;
	if (fchown(dir, n->spaced_uid, n->spaced_gid) < 0 || copy < 0)
		return -errno;
	d = fdopendir(copy);
	if (d == NULL)
		return -errno;
	(void)fd_take(&copy); /* closedir's now */
	while (err == 0 && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			err = own_entry(dir, e->d_name, from, n, depth);
	(void)closedir(d);
	return err;
}

static int prepare_folder(int data, const char *name, const struct node *n, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	struct stat st;
	int err = dir_make(data, name, 0700, f);

	if (err == 0)
		err = dir_open(data, name, &fd, f);
	if (err < 0)
		return err;
	if (fstat(fd, &st) < 0 || fchmod(fd, 0700) < 0)
		return fail_errno(f, -errno, "cannot prepare folder '%s'", name);
	if (!n->is_root || st.st_uid == n->spaced_uid)
		return 0;
	err = own_tree(fd, st.st_uid, n, 0);
	return err < 0 ? fail_errno(f, err, "cannot give folder '%s' to spaced", name) : 0;
}

static int prepare_data(struct node *n, struct fail *f)
{
	static const char *const folders[] = {"state", "variants", "run"};
	AUTO(fd_drop) int data = open(n->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (data < 0 || fstat(data, &st) < 0)
		return fail_errno(f, -errno, "cannot open data folder '%s'", n->data);
	(void)snprintf(n->instance, sizeof n->instance, "%llx-%llx", (unsigned long long)st.st_dev,
		       (unsigned long long)st.st_ino);
	/* spaced reads kernels, images and templates through its group; others see nothing. */
	if (n->is_root && (fchown(data, (uid_t)-1, n->spaced_gid) < 0 ||
			   fchmod(data, (st.st_mode & 0700) | 0050) < 0))
		return fail_errno(f, -errno, "cannot open the data folder to spaced");
	for (size_t i = 0; err == 0 && i < ARRAY_LEN(folders); i++)
		err = prepare_folder(data, folders[i], n, f);
	/* What `space template build` writes: the node reads it, so it must be there to be bound.
	 */
	for (size_t i = 0; err == 0 && mounts_read_only[i] != NULL; i++)
		err = dir_make(data, mounts_read_only[i], 0755, f);
	return err;
}

static int real_folder(const char *path, char **ret, struct fail *f)
{
	*ret = realpath(path, NULL);
	return *ret == NULL ? fail_errno(f, -errno, "cannot find folder '%s'", path) : 0;
}

int node_prepare(const struct node_request *r, struct node *ret, struct fail *f)
{
	int err;

	*ret = (struct node){.is_root = geteuid() == 0,
			     .spaced_uid = geteuid(),
			     .spaced_gid = getegid(),
			     .next = 1};
	err = real_folder(r->data, &ret->data, f);
	if (err == 0)
		err = real_folder(r->libexec, &ret->libexec, f);
	if (err == 0 && ret->is_root)
		err = prepare_uids(r, ret, f);
	if (err == 0)
		err = prepare_data(ret, f);
	if (err == 0)
		err = mounts_prepare(ret->is_root, &ret->data, &ret->libexec, f);
	if (err == -EOPNOTSUPP) {
		log_warn("images are open to our own user's jails, going on", "why=%s", f->text);
		err = 0;
	}
	return err;
}
