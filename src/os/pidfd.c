/* Processes by descriptor. Owns nothing. */
#include "os/pidfd.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define FDINFO_MAX 4096

int pidfd_of(pid_t pid, int *ret_fd)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

int pidfd_signal(int pidfd, int signo)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) < 0 ? -errno : 0;
}

int pidfd_pid(int pidfd, pid_t *ret_pid)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(fd_drop) int fd = -1;
	char path[64];
	const char *at;
	uint64_t pid;
	size_t n;
	int err;

	(void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fd_slurp(fd, FDINFO_MAX, &text, &n);
	if (err < 0)
		return err;
	at = strstr(text, "\nPid:\t");
	if (at == NULL)
		return -EINVAL;
	at += strlen("\nPid:\t");
	if (str_starts(at, "-1"))
		return -ESRCH;
	err = str_u64_n(at, strcspn(at, "\n"), PID_MAX, &pid);
	if (err < 0)
		return err;
	if (pid == 0)
		return -EXDEV;
	*ret_pid = (pid_t)pid;
	return 0;
}

int pidfd_wait_end(int pidfd, int timeout_ms)
{
	uint64_t until = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	for (;;) {
		struct pollfd p = {.fd = pidfd, .events = POLLIN};
		uint64_t now = clock_mono_ns();
		int left = now >= until ? 0 : (int)((until - now + NS_PER_MS - 1) / NS_PER_MS);
		int got = poll(&p, 1, left);

		if (got > 0)
			return (p.revents & POLLIN) != 0 ? 0 : -EINVAL;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0 && left == 0)
			return -ETIMEDOUT;
	}
}
