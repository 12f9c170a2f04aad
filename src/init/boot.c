/* Early boot: see boot.h. */
#include "init/boot.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "os/dir.h"
#include "os/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MODULES_LIST_MAX 4096
#define DEVICE_WAIT_MS   10000 /* emulated hosts under load are slow */
#define DEVICE_POLL_MS   5
#define DISK             "/dev/vda"
#define PORTS            "/sys/class/virtio-ports"

static void sleep_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)nanosleep(&t, NULL);
}

static int mount_on(const char *type, const char *where, unsigned long flags, const char *options,
		    struct fail *f)
{
	if (mkdir(where, 0755) != 0 && errno != EEXIST)
		return fail_errno(f, -errno, "cannot make '%s'", where);
	if (mount(type, where, type, flags, options) != 0)
		return fail_errno(f, -errno, "cannot mount %s on '%s'", type, where);
	return 0;
}

void boot_devices(void)
{
	umask(022);
	(void)mkdir("/dev", 0755); /* best effort, both: whatever needs them says what is missing */
	(void)mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=755");
}

int boot_console(uint64_t wait_ms)
{
	uint64_t deadline = clock_mono_ns() + wait_ms * NS_PER_MS;

	for (;;) {
		/* Non-blocking: a terminal that someone stopped must not stop init. */
		int fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0 || clock_mono_ns() >= deadline)
			return fd;
		sleep_ms(DEVICE_POLL_MS);
	}
}

void boot_last_words(const char *text)
{
	AUTO(fd_drop) int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)dprintf(fd, "<2>space-init: %s\n",
			      text); /* critical: shown with "quiet" too */
}

int boot_mounts(struct fail *f)
{
	const unsigned long quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int err = mount_on("proc", "/proc", quiet, NULL, f);

	if (!err)
		err = mount_on("sysfs", "/sys", quiet, NULL, f);
	if (!err)
		/* nsdelegate: in its own cgroup namespace user code cannot raise /user's limits. */
		err = mount_on("cgroup2", CGROUPS, quiet, "nsdelegate", f);
	return err;
}

static void sysctl_write(const char *path, const char *value)
{
	AUTO(fd_drop) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, value,
			     strlen(value)); /* best effort: a kernel without it is fine */
}

void boot_settings(void)
{
	sysctl_write("/proc/sys/kernel/panic", "-1"); /* a dead init ends the machine at once */
	sysctl_write("/proc/sys/kernel/printk_devkmsg", "off");
}

/* The dummy module makes an interface when it is loaded; the egress part makes its own later. */
static const char *module_options(const char *name)
{
	return strcmp(name, "dummy") == 0 ? "numdummies=0" : "";
}

static int module_load(const char *name, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("/modules/%s.ko", name);
	AUTO(fd_drop) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return fail_errno(f, -errno, "cannot open module '%s'", name);
	if (syscall(SYS_finit_module, fd, module_options(name), 0) != 0 && errno != EEXIST)
		return fail_errno(f, -errno, "cannot load module '%s'", name);
	(void)unlink(path); /* best effort: gives the memory back */
	return 0;
}

static bool module_name_valid(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

int boot_modules(struct fail *f)
{
	AUTO(str_drop) char *list = NULL;
	size_t n = 0;
	int err = file_slurp(AT_FDCWD, "modules.list", MODULES_LIST_MAX, &list, &n, f);

	for (char *line = list, *end; !err && line && *line; line = end) {
		size_t len;

		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = 0;
		len = strlen(line);
		if (len > 3 && strcmp(line + len - 3, ".ko") == 0)
			line[len - 3] = 0;
		if (*line && !module_name_valid(line))
			err = fail_set(f, -EBADMSG, "'/modules.list' has a bad line");
		else if (*line)
			err = module_load(line, f);
	}
	return err;
}

int boot_network(struct fail *f)
{
	AUTO(fd_drop) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {.ifr_name = "lo"};

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) != 0)
		return fail_errno(f, -errno, "cannot read the flags of 'lo'");
	r.ifr_flags |= IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &r) != 0)
		return fail_errno(f, -errno, "cannot bring 'lo' up");
	return 0;
}

int boot_disk(struct fail *f)
{
	uint64_t deadline = clock_mono_ns() + DEVICE_WAIT_MS * NS_PER_MS;

	while (access(DISK, F_OK) != 0) {
		if (clock_mono_ns() > deadline)
			return fail_set(f, -ENODEV, "there is no disk '%s'", DISK);
		sleep_ms(DEVICE_POLL_MS);
	}
	if (mkdir(SYSROOT, 0755) != 0 && errno != EEXIST)
		return fail_errno(f, -errno, "cannot make '%s'", SYSROOT);
	/* Reading must not write, and no thread writes tables that the image has as holes. */
	if (mount(DISK, SYSROOT, "ext4", MS_NOATIME, "discard,noinit_itable") != 0)
		return fail_errno(f, -errno, "cannot mount '%s' (ext4)", DISK);
	return 0;
}

/* The device node of the port of that name: /dev/<name of its entry in sysfs>. */
static int port_find(const char *name, char **ret_path)
{
	DIR *d = opendir(PORTS);
	struct dirent *e;
	int err = -ENOENT;

	while (err && d && (e = readdir(d))) {
		AUTO(str_drop) char *path = xasprintf(PORTS "/%s/name", e->d_name);
		AUTO(fd_drop) int fd = open(path, O_RDONLY | O_CLOEXEC);
		char got[64];
		ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);

		if (n <= 0)
			continue;
		got[n] = 0;
		got[strcspn(got, "\n")] = 0;
		if (strcmp(got, name) != 0)
			continue;
		*ret_path = xasprintf("/dev/%s", e->d_name);
		err = 0;
	}
	if (d)
		(void)closedir(d);
	return err;
}

int boot_port(const char *name, int *ret_fd, struct fail *f)
{
	uint64_t deadline = clock_mono_ns() + DEVICE_WAIT_MS * NS_PER_MS;
	AUTO(str_drop) char *path = NULL;
	int fd;

	while (port_find(name, &path) != 0) {
		if (clock_mono_ns() > deadline)
			return fail_set(f, -ENODEV, "there is no port '%s'", name);
		sleep_ms(DEVICE_POLL_MS);
	}
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot open port '%s'", name);
	*ret_fd = fd;
	return 0;
}
