/* The attempts. Each is written so that success means harm: reaching a file, a process, a socket or
 * a kernel interface that its place must not have. None changes anything on the host that runs it
 * outside a jail. */
#include "attempts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PID_SCAN 4096

static int answer(long rc)
{
	return rc < 0 ? -errno : 0;
}

/* --- files --- */

static int read_passwd(const struct targets *t)
{
	(void)t;
	return answer(open("/etc/passwd", O_RDONLY));
}

static int read_by_proc_root(const struct targets *t)
{
	(void)t;
	return answer(open("/proc/1/root/etc/passwd", O_RDONLY));
}

static int read_by_cwd(const struct targets *t)
{
	(void)t;
	return answer(open("../../../../etc/passwd", O_RDONLY));
}

static int list_homes(const struct targets *t)
{
	static const char *const at[] = {"/home", "/root", "/var", "/run", "/sys", "/boot"};
	int err = -ENOENT;

	(void)t;
	for (size_t i = 0; err < 0 && i < ARRAY_LEN(at); i++)
		err = answer(open(at[i], O_RDONLY | O_DIRECTORY));
	return err;
}

static int read_own_library(const struct targets *t)
{
	(void)t;
	return answer(open("/usr/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY));
}

static int create_file(const struct targets *t)
{
	static const char *const at[] = {"/", "/tmp", "/usr/bin", "/dev", "/dev/shm", "/proc", "."};
	int err = -ENOENT;

	(void)t;
	for (size_t i = 0; err < 0 && i < ARRAY_LEN(at); i++) {
		char path[64];

		(void)snprintf(path, sizeof path, "%s/space-redteam-was-here", at[i]);
		err = answer(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
		if (err == 0)
			(void)unlink(path);
	}
	return err;
}

static int create_tmpfile(const struct targets *t)
{
	static const char *const at[] = {"/", "/tmp", "/dev", "/dev/shm"};
	int err = -ENOENT;

	(void)t;
	for (size_t i = 0; err < 0 && i < ARRAY_LEN(at); i++)
		err = answer(open(at[i], O_RDWR | O_TMPFILE, 0600));
	return err;
}

static int make_folder(const struct targets *t)
{
	(void)t;
	if (mkdir("/tmp/space-redteam", 0700) < 0 && mkdir("/space-redteam", 0700) < 0)
		return -errno;
	(void)rmdir("/tmp/space-redteam");
	return 0;
}

static int write_own_program(const struct targets *t)
{
	(void)t;
	/* The program's copy is not being run when opened by another name, so ETXTBSY is no shield.
	 */
	return answer(open("/usr/bin/qemu-system-x86_64", O_WRONLY)) == 0
		       ? 0
		       : answer(open("/usr/lib/x86_64-linux-gnu/libc.so.6", O_WRONLY));
}

static int open_device(const struct targets *t)
{
	static const char *const at[] = {"/dev/mem",  "/dev/kmsg",    "/dev/vda",        "/dev/sda",
					 "/dev/fuse", "/dev/net/tun", "/dev/vhost-vsock"};
	int err = -ENOENT;

	(void)t;
	for (size_t i = 0; err < 0 && i < ARRAY_LEN(at); i++)
		err = answer(open(at[i], O_RDWR));
	return err;
}

static int make_device(const struct targets *t)
{
	(void)t;
	if (mknod("/tmp/space-redteam-dev", S_IFBLK | 0600, 0x0100) < 0)
		return -errno;
	(void)unlink("/tmp/space-redteam-dev");
	return 0;
}

static int write_sysctl(const struct targets *t)
{
	(void)t;
	return answer(open("/proc/sys/kernel/core_pattern", O_WRONLY));
}

static int open_by_handle(const struct targets *t)
{
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} handle = {.h = {.handle_bytes = 128}};
	int mount_id;

	(void)t;
	return answer(name_to_handle_at(AT_FDCWD, "/", &handle.h, &mount_id, 0));
}

/* A descriptor that was given read-only is opened anew for writing. */
static int reopen_for_writing(const struct targets *t)
{
	int fd;

	(void)t;
	for (fd = 3; fd < 64; fd++) {
		char path[64];
		struct stat st;

		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
			continue;
		(void)fchmod(fd, 0666);
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		return answer(open(path, O_RDWR));
	}
	return -ENOENT;
}

/* --- processes --- */

/* Anybody but ourselves, our parent (process 1 of the jail is the attacker) and our siblings. */
static int signal_somebody(const struct targets *t)
{
	int err = -ESRCH;

	if (kill(t->host_pid, 0) == 0 && t->host_pid != getpid() && getppid() != 1)
		return 0;
	for (pid_t pid = 1; pid < PID_SCAN; pid++)
		if (pid != getpid() && pid != getppid() && kill(pid, 0) == 0)
			err = 0;
	return err;
}

static int see_somebody(const struct targets *t)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	int err = -ESRCH;

	(void)t;
	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		char own[16];
		char parent[16];

		(void)snprintf(own, sizeof own, "%d", getpid());
		(void)snprintf(parent, sizeof parent, "%d", getppid());
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && strcmp(e->d_name, own) != 0 &&
		    strcmp(e->d_name, parent) != 0)
			err = 0;
	}
	(void)closedir(d);
	return err;
}

static int pidfd_of_host(const struct targets *t)
{
	return answer(syscall(SYS_pidfd_open, t->host_pid, 0));
}

static int read_memory(const struct targets *t)
{
	char bytes[8];
	struct iovec v = {bytes, sizeof bytes};
	long rc = process_vm_readv(t->host_pid, &v, 1, &v, 1, 0);

	/* Outside, the same address holds the same bytes: one program, forked. */
	return answer(rc);
}

static int trace_host(const struct targets *t)
{
	return answer(ptrace(PTRACE_SEIZE, t->host_pid, NULL, NULL));
}

static int trace_jail(const struct targets *t)
{
	(void)t;
	return answer(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}

static int start_process(const struct targets *t)
{
	pid_t pid = fork();

	(void)t;
	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : -ECHILD;
}

static int run_program(const char *path, char *const argv[])
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		char *const env[] = {NULL};

		(void)dup2(open("/dev/null", O_WRONLY),
			   STDOUT_FILENO); /* the report's is another */
		(void)execve(path, argv, env);
		_exit(errno);
	}
	if (waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static int run_shell(const struct targets *t)
{
	char name[] = "sh", c[] = "-c", what[] = ":";
	char *const argv[] = {name, c, what, NULL};

	(void)t;
	return run_program("/bin/sh", argv);
}

static int run_bwrap(const struct targets *t)
{
	char name[] = "bwrap", c[] = "--version";
	char *const argv[] = {name, c, NULL};

	(void)t;
	return run_program("/usr/bin/bwrap", argv);
}

static int run_self(const struct targets *t)
{
	char *const argv[] = {NULL};
	char *const env[] = {NULL};

	(void)t;
	return answer(execve("/usr/bin/space-daemon", argv, env));
}

static int become_root(const struct targets *t)
{
	(void)t;
	return getuid() == 0 ? 0 : answer(setuid(0));
}

static int make_executable(const struct targets *t)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)t;
	return p == MAP_FAILED ? -errno : answer(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

/* --- sockets --- */

static int tcp_to_host(const struct targets *t)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(t->tcp_port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -errno : answer(connect(fd, (const struct sockaddr *)&a, sizeof a));
}

static int make_inet(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_INET, SOCK_STREAM, 0));
}

static int make_inet6(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_INET6, SOCK_DGRAM, 0));
}

static int make_packet(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_PACKET, SOCK_RAW, 0));
}

static int make_vsock(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static int make_alg(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static int make_unix(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_netlink(const struct targets *t)
{
	(void)t;
	return answer(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

static socklen_t abstract_addr(struct sockaddr_un *a, const char *name)
{
	int n;

	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int abstract_listen(const char *name)
{
	struct sockaddr_un a;
	socklen_t n = abstract_addr(&a, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, n) < 0 || listen(fd, 8) < 0)
		return -errno;
	return fd;
}

static int abstract_connect(const char *name)
{
	struct sockaddr_un a;
	socklen_t n = abstract_addr(&a, name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd < 0 ? -errno : answer(connect(fd, (const struct sockaddr *)&a, n));
}

static int abstract_to_host(const struct targets *t)
{
	return abstract_connect(t->host);
}

static int abstract_to_peer(const struct targets *t)
{
	return abstract_connect(t->peer);
}

static int shared_memory(const struct targets *t)
{
	return shmat(t->shm_id, NULL, SHM_RDONLY) == (void *)-1 ? -errno : 0;
}

/* --- namespaces, mounts, the kernel's depths --- */

static int new_user_namespace(const struct targets *t)
{
	(void)t;
	return answer(unshare(CLONE_NEWUSER));
}

static int new_mount_namespace(const struct targets *t)
{
	(void)t;
	return answer(unshare(CLONE_NEWNS));
}

static int new_net_namespace(const struct targets *t)
{
	(void)t;
	return answer(unshare(CLONE_NEWNET));
}

static int mount_tmpfs(const struct targets *t)
{
	(void)t;
	return answer(mount("t", "/", "tmpfs", 0, NULL));
}

static int remount_root(const struct targets *t)
{
	(void)t;
	return answer(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int unmount_proc(const struct targets *t)
{
	(void)t;
	return answer(umount2("/proc", MNT_DETACH));
}

static int change_root(const struct targets *t)
{
	(void)t;
	return answer(chroot("/"));
}

static int ring(const struct targets *t)
{
	char params[120] = {0};

	(void)t;
	return answer(syscall(SYS_io_uring_setup, 1, params));
}

static int load_bpf(const struct targets *t)
{
	char attr[120] = {1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1}; /* an array map of one */

	(void)t;
	return answer(syscall(SYS_bpf, 0, attr, sizeof attr));
}

static int add_a_key(const struct targets *t)
{
	(void)t;
	return answer(syscall(SYS_add_key, "user", "space-redteam", "x", 1, -2));
}

static int fault_handler(const struct targets *t)
{
	(void)t;
	return answer(syscall(SYS_userfaultfd, 1)); /* user mode only: needs no privilege */
}

static int perf(const struct targets *t)
{
	char attr[128] = {1, 0, 0, 0, (char)128};

	(void)t;
	return answer(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}

static int kernel_log(const struct targets *t)
{
	(void)t;
	return answer(syscall(SYS_syslog, 10, NULL, 0));
}

static int set_clock(const struct targets *t)
{
	struct timespec now;

	(void)t;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return answer(clock_settime(CLOCK_REALTIME, &now));
}

const struct attempt attempts[] = {
	{"read /etc/passwd", read_passwd, IN_ALL, OUTSIDE},
	{"read /proc/1/root/etc/passwd", read_by_proc_root, IN_ALL, 0},
	{"read ../../etc/passwd", read_by_cwd, IN_ALL, OUTSIDE},
	{"list /home, /root, /var, /run, /sys", list_homes, IN_ALL, OUTSIDE},
	{"read an own library", read_own_library, IN_CONFINED, OUTSIDE},
	{"create a file", create_file, IN_ALL, OUTSIDE},
	{"create a nameless file", create_tmpfile, IN_ALL, OUTSIDE},
	{"make a folder", make_folder, IN_ALL, OUTSIDE},
	{"write a program or library", write_own_program, IN_ALL, 0},
	{"open a host device", open_device, IN_ALL, 0},
	{"make a device", make_device, IN_ALL, 0},
	{"write a sysctl", write_sysctl, IN_ALL, 0},
	{"name a file by handle", open_by_handle, IN_ALL, 0},
	{"open a read-only descriptor for writing", reopen_for_writing, IN_ALL, NEEDS_OWN_UID},
	{"signal another process", signal_somebody, IN_ALL, OUTSIDE},
	{"see another process in /proc", see_somebody, IN_ALL, OUTSIDE},
	{"pidfd of a host process", pidfd_of_host, IN_ALL, OUTSIDE},
	{"read a host process's memory", read_memory, IN_ALL, 0},
	{"trace a host process", trace_host, IN_ALL, 0},
	{"trace process 1 of the jail", trace_jail, IN_ALL, 0},
	{"start a process", start_process, IN_CONFINED, OUTSIDE},
	{"run a shell", run_shell, IN_ALL, OUTSIDE},
	{"run bwrap", run_bwrap, IN_ALL, OUTSIDE},
	{"run own program again", run_self, IN_CONFINED, 0},
	{"become root", become_root, IN_ALL, 0},
	{"make memory executable", make_executable, IN_CONFINED, OUTSIDE},
	{"TCP to the host's loopback", tcp_to_host, IN_ALL, OUTSIDE},
	{"make an IPv4 socket", make_inet, IN_ALL, OUTSIDE},
	{"make an IPv6 socket", make_inet6, IN_ALL, OUTSIDE},
	{"make a packet socket", make_packet, IN_ALL, 0},
	{"make a vsock socket", make_vsock, IN_ALL, 0},
	{"make a crypto socket", make_alg, IN_ALL, 0},
	{"make a unix socket", make_unix, IN_CONFINED, OUTSIDE},
	{"make a netlink socket", make_netlink, IN_CONFINED, OUTSIDE},
	{"reach the host's abstract socket", abstract_to_host, IN_ALL, OUTSIDE},
	{"reach the other jail's abstract socket", abstract_to_peer, IN_ALL, 0},
	{"attach the host's shared memory", shared_memory, IN_ALL, OUTSIDE},
	{"make a user namespace", new_user_namespace, IN_ALL, OUTSIDE},
	{"make a mount namespace", new_mount_namespace, IN_ALL, 0},
	{"make a network namespace", new_net_namespace, IN_ALL, 0},
	{"mount a tmpfs", mount_tmpfs, IN_ALL, 0},
	{"make / writable", remount_root, IN_ALL, 0},
	{"unmount /proc", unmount_proc, IN_ALL, 0},
	{"chroot", change_root, IN_ALL, 0},
	{"io_uring", ring, IN_ALL, 0},
	{"bpf", load_bpf, IN_ALL, 0},
	{"add a key", add_a_key, IN_ALL, 0},
	{"userfaultfd", fault_handler, IN_ALL, 0},
	{"perf", perf, IN_ALL, 0},
	{"read the kernel's log", kernel_log, IN_ALL, 0},
	{"set the clock", set_clock, IN_ALL, 0},
};
const size_t n_attempts = ARRAY_LEN(attempts);

int attempt_run(const struct attempt *a, const struct targets *t, void (*prepare)(void))
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		if (prepare != NULL)
			prepare();
		_exit(-a->try(t));
	}
	if (waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : KILLED - WTERMSIG(status);
}
