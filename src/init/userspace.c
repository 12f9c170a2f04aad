/* Makes the mount namespace of user code: see userspace.h. A short-lived child builds it and waits
 * until init has opened what it keeps. */
#include "init/userspace.h"

#include "base/log.h"

#include "base/alloc.h"
#include "init/boot.h"
#include "init/cgroup.h"
#include "os/dir.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OURS "run/space-init" /* in the user's root: the files behind the bind mounts */

/* In order. A source of NULL: no mount, only the folder with its mode. */
static const struct {
	const char *path;
	const char *type;
	unsigned long flags;
	const char *options;
	mode_t mode;
} mounts[] = {
	{"proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0555},
	{"sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0555},
	{"sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 0555},
	{"dev", "devtmpfs", MS_NOSUID, "mode=755", 0755},
	{"dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=620,gid=5,ptmxmode=666", 0755},
	{"dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", 01777},
	{"dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, 01777},
	{"run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=20%", 0755},
	{"run/lock", NULL, 0, NULL, 01777},
	{"tmp", NULL, 0, NULL, 01777}, /* on the disk, so that it is part of every snapshot */
};

static const struct {
	const char *target;
	const char *name;
	bool is_made; /* an empty file is made where the folder exists and the file does not */
} files[IDENTITY_FILES] = {
	[FILE_HOSTNAME] = {"etc/hostname", "hostname", true},
	[FILE_HOSTS] = {"etc/hosts", "hosts", true},
	[FILE_MACHINE_ID] = {"etc/machine-id", "machine-id", true},
	[FILE_BOOT_ID] = {"proc/sys/kernel/random/boot_id", "boot_id", false},
};

static int mount_at(int fd, const char *source, const char *type, unsigned long flags,
		    const char *options)
{
	AUTO(str_drop) char *where = xasprintf("/proc/self/fd/%d", fd);

	return mount(source, where, type, flags, options) == 0 ? 0 : -errno;
}

static int make_mount(int root, size_t i, struct fail *f)
{
	AUTO(fd_drop) int dir = -1;
	bool is_new = mkdirat(root, mounts[i].path, mounts[i].mode) == 0;
	int err = dir_open(root, mounts[i].path, &dir, f);

	if (err)
		return fail_prefix(f, "the root file system");
	if (is_new &&
	    fchmod(dir, mounts[i].mode) != 0) /* mkdir drops the sticky bit's neighbours by umask */
		return fail_errno(f, -errno, "cannot set the mode of '/%s'", mounts[i].path);
	if (!mounts[i].type)
		return 0;
	err = mount_at(dir, mounts[i].type, mounts[i].type, mounts[i].flags, mounts[i].options);
	return err ? fail_errno(f, err, "cannot mount %s on '/%s'", mounts[i].type, mounts[i].path)
		   : 0;
}

static void make_links(int root)
{
	static const char *const links[][2] = {
		{"/proc/self/fd", "dev/fd"},
		{"/proc/self/fd/0", "dev/stdin"},
		{"/proc/self/fd/1", "dev/stdout"},
		{"/proc/self/fd/2", "dev/stderr"},
	};

	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		if (symlinkat(links[i][0], root, links[i][1]) != 0 && errno != EEXIST)
			log_warn("cannot make a link, going on without", "name=/%s", links[i][1]);
	}
}

/* What the file shows until the first /space/init: what it showed before. */
static void copy_text(int to, int from)
{
	char text[4096];
	ssize_t n = pread(from, text, sizeof text, 0);

	if (n > 0)
		(void)!write(to, text, (size_t)n); /* best effort: /space/init writes it anew */
}

/* Puts our own file over one of the user's. A root without a place for it goes without. */
static int bind_file(int root, size_t i, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf(OURS "/%s", files[i].name);
	AUTO(str_drop) char *source = NULL;
	AUTO(fd_drop) int ours = -1;
	AUTO(fd_drop) int target = -1;
	struct stat st;
	int flags = O_RDONLY | O_NONBLOCK | (files[i].is_made ? O_CREAT : 0);
	int err;

	if (file_open(root, files[i].target, flags, 0644, &target, NULL) != 0 ||
	    fstat(target, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	err = file_open(root, path, O_RDWR | O_CREAT | O_EXCL, 0644, &ours, f);
	if (err)
		return err;
	copy_text(ours, target);
	source = xasprintf("/proc/self/fd/%d", ours);
	err = mount_at(target, source, NULL, MS_BIND, NULL);
	return err ? fail_errno(f, err, "cannot mount over '/%s'", files[i].target) : 0;
}

static int build_mounts(int root, struct fail *f)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(mounts) && !err; i++)
		err = make_mount(root, i, f);
	if (err)
		return err;
	make_links(root);
	if (mkdirat(root, OURS, 0755) != 0)
		return fail_errno(f, -errno, "cannot make '/" OURS "'");
	for (size_t i = 0; i < IDENTITY_FILES && !err; i++)
		err = bind_file(root, i, f);
	return err;
}

/* In the child: joins /user, takes new namespaces, builds, and moves the disk onto "/". */
static int build(const struct cgroups *c, struct fail *f)
{
	AUTO(fd_drop) int procs = openat(c->user, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	AUTO(fd_drop) int root = -1;
	int err;

	umask(022);
	if (procs < 0 || write(procs, "0", 1) != 1)
		return fail_errno(f, -errno, "cannot enter cgroup 'user'");
	if (unshare(CLONE_NEWNS | CLONE_NEWCGROUP) != 0)
		return fail_errno(f, -errno, "cannot make namespaces");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return fail_errno(f, -errno, "cannot make mounts private");
	root = open(SYSROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return fail_errno(f, -errno, "cannot open '" SYSROOT "'");
	err = build_mounts(root, f);
	if (err)
		return err;
	if (fchdir(root) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
	    chdir("/") != 0)
		return fail_errno(f, -errno, "cannot move the disk onto '/'");
	return 0;
}

static _Noreturn void child(const struct cgroups *c, int sock)
{
	struct fail f = {0};
	char byte;

	(void)build(c, &f);
	if (fd_write_all(sock, &f, sizeof f) == 0)
		(void)!read(sock, &byte, 1); /* until init has what it wants and closes */
	_exit(0);
}

static int open_of(pid_t pid, const char *what, int flags, int *ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("/proc/%d/%s", (int)pid, what);

	*ret = open(path, flags | O_CLOEXEC);
	return *ret < 0 ? fail_errno(f, -errno, "cannot open '%s'", path) : 0;
}

static int take(struct userspace *u, pid_t pid, struct fail *f)
{
	int err = open_of(pid, "ns/mnt", O_RDONLY, &u->mnt_ns, f);

	if (!err)
		err = open_of(pid, "ns/cgroup", O_RDONLY, &u->cgroup_ns, f);
	if (!err)
		err = open_of(pid, "root", O_PATH | O_DIRECTORY, &u->root, f);
	if (!err)
		err = open_of(pid, "root/dev/pts", O_PATH | O_DIRECTORY, &u->pts, f);
	for (size_t i = 0; i < IDENTITY_FILES && !err; i++) {
		AUTO(str_drop) char *path = xasprintf("root/" OURS "/%s", files[i].name);

		(void)open_of(pid, path, O_RDWR | O_NOFOLLOW, &u->file[i], NULL); /* -1: no place */
	}
	return err;
}

int userspace_init(struct userspace *u, const struct cgroups *c, struct fail *f)
{
	int sock[2];
	struct fail got = {0};
	pid_t pid;
	int err;

	*u = (struct userspace){.mnt_ns = -1, .cgroup_ns = -1, .root = -1, .pts = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) != 0)
		return fail_errno(f, -errno, "cannot make a socket pair");
	pid = fork();
	if (pid == 0) {
		fd_drop(&sock[0]); /* else it would never see init close it */
		child(c, sock[1]);
	}
	fd_drop(&sock[1]);
	err = pid < 0 ? fail_errno(f, -errno, "cannot fork")
		      : fd_read_full(sock[0], &got, sizeof got);
	if (!err && got.code)
		err = fail_set(f, got.code, "%s", got.text);
	else if (pid > 0 && err)
		err = fail_set(f, err, "the builder of the user's root died");
	if (!err)
		err = take(u, pid, f);
	fd_drop(&sock[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (!err && umount2(SYSROOT, MNT_DETACH) != 0)
		err = fail_errno(f, -errno, "cannot let go of '" SYSROOT "'");
	return err;
}
