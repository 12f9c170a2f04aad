/* Mounts, before anybody else runs. What is bound here are the two folders of our command line and
 * fixed names below them; nobody hostile has had a word in either yet. */
#include "mounts.h"

#include "base/alloc.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RUN_DIR     "/run/space"
#define RUN_DATA    RUN_DIR "/data"
#define RUN_LIBEXEC RUN_DIR "/libexec"

const char *const mounts_read_only[] = {"images", "kernels", "initrds", NULL};

/* mount_setattr and not a remount: the flags that are there already stay (Linux 5.12). */
static int bind_to(const char *from, const char *to, uint64_t attributes, struct fail *f)
{
	struct mount_attr a = {.attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

	if (mount(from, to, NULL, MS_BIND, NULL) < 0 ||
	    syscall(SYS_mount_setattr, AT_FDCWD, to, 0, &a, sizeof a) < 0)
		return fail_errno(f, -errno, "cannot mount '%s' on '%s'", from, to);
	return 0;
}

static int bind_read_only(const char *data, struct fail *f)
{
	int err = 0;

	for (size_t i = 0; err == 0 && mounts_read_only[i] != NULL; i++) {
		AUTO(str_drop) char *path = xasprintf("%s/%s", data, mounts_read_only[i]);

		err = bind_to(path, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, f);
	}
	return err;
}

static int own_namespace(struct fail *f)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fail_errno(f, -errno, "cannot make a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fail_errno(f, -errno, "cannot keep our mounts to ourselves");
	return 0;
}

/* --- as root --- */

static int make_folder(const char *path, struct fail *f)
{
	if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
		return fail_errno(f, -errno, "cannot make '%s'", path);
	return 0;
}

static int prepare_as_root(char **data, char **libexec, struct fail *f)
{
	static const char *const folders[] = {RUN_DIR, RUN_DATA, RUN_LIBEXEC};
	int err = own_namespace(f);

	for (size_t i = 0; err == 0 && i < ARRAY_LEN(folders); i++)
		err = make_folder(folders[i], f);
	if (err == 0)
		err = bind_to(*data, RUN_DATA, MOUNT_ATTR_NOEXEC, f);
	if (err == 0)
		err = bind_to(*libexec, RUN_LIBEXEC, MOUNT_ATTR_RDONLY, f);
	if (err == 0)
		err = bind_read_only(RUN_DATA, f);
	if (err < 0)
		return err;
	str_drop(data);
	str_drop(libexec);
	*data = xstrdup(RUN_DATA);
	*libexec = xstrdup(RUN_LIBEXEC);
	return 0;
}

/* --- without root --- */

static int put(const char *path, const char *text)
{
	AUTO(fd_drop) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* A user namespace in which we are who we are, and nobody else is anybody. */
static int prepare_as_user(const char *data, struct fail *f)
{
	AUTO(str_drop) char *uids = xasprintf("%u %u 1\n", geteuid(), geteuid());
	AUTO(str_drop) char *gids = xasprintf("%u %u 1\n", getegid(), getegid());
	int err;

	if (unshare(CLONE_NEWUSER) < 0)
		return fail_errno(f, -errno, "cannot make a user namespace");
	err = put("/proc/self/uid_map", uids);
	if (err == 0)
		err = put("/proc/self/setgroups", "deny");
	if (err == 0)
		err = put("/proc/self/gid_map", gids);
	if (err < 0)
		return fail_errno(f, err, "cannot map our user into a namespace");
	err = own_namespace(f);
	return err == 0 ? bind_read_only(data, f) : err;
}

/* Tried in a child first: a host that lets us make the namespace and nothing in it (AppArmor's
 * restriction) would leave us worse off than before. */
static bool works_as_user(const char *data)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(prepare_as_user(data, NULL) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int mounts_prepare(bool is_root, char **data, char **libexec, struct fail *f)
{
	if (is_root)
		return prepare_as_root(data, libexec, f);
	if (!works_as_user(*data))
		return fail_set(f, -EOPNOTSUPP, "this host allows no mounts in a user namespace");
	return prepare_as_user(*data, f);
}
