/* Sockets: unix ones by directory descriptor and name, loopback TCP, pairs. A unix name goes
 * through /proc/self/fd, so a data folder of any depth works and no link in its path is followed
 * after the directory was opened. Every descriptor is CLOEXEC and non-blocking. */
#include "os/sock.h"

#include "base/str.h"
#include "os/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SOCK_BACKLOG 512 /* the kernel cuts it at net.core.somaxconn */

static int unix_addr(struct sockaddr_un *sa, int dirfd, const char *name, struct fail *f)
{
	int n;

	if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return fail_set(f, -EINVAL, "bad socket name '%s'", name);
	memset(sa, 0, sizeof *sa);
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path, sizeof sa->sun_path, "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= sizeof sa->sun_path)
		return fail_set(f, -ENAMETOOLONG, "socket name '%s' is too long", name);
	return 0;
}

/* Only a socket is removed: a file of that name is somebody's, and the bind then fails. */
static int remove_stale(int dirfd, const char *name, struct fail *f)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : fail_errno(f, -errno, "cannot look at socket '%s'", name);
	if (S_ISSOCK(st.st_mode) && unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return fail_errno(f, -errno, "cannot remove old socket '%s'", name);
	return 0;
}

int sock_unix_listen(int dirfd, const char *name, int type, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	struct sockaddr_un sa;
	int err = unix_addr(&sa, dirfd, name, f);

	if (err == 0)
		err = remove_stale(dirfd, name, f);
	if (err < 0)
		return err;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot make socket '%s'", name);
	/* The mode of the unbound socket is what bind() gives the file: no moment with a wider one.
	 */
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof sa) < 0 ||
	    listen(fd, SOCK_BACKLOG) < 0)
		return fail_errno(f, -errno, "cannot listen on socket '%s'", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

int sock_unix_connect(int dirfd, const char *name, int type, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	struct sockaddr_un sa;
	int err = unix_addr(&sa, dirfd, name, f);

	if (err < 0)
		return err;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot make a socket for '%s'", name);
	/* A unix connect is done or refused at once; EAGAIN means that the backlog is full. */
	if (connect(fd, (const struct sockaddr *)&sa, sizeof sa) < 0)
		return fail_errno(f, -errno, "cannot connect to socket '%s'", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

int sock_pair(int type, int ret[2])
{
	return socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0 ? -errno : 0;
}

union tcp_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int tcp_addr_parse(union tcp_addr *a, const char *host, uint16_t port, socklen_t *ret_n)
{
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		*ret_n = sizeof a->v4;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(port);
		*ret_n = sizeof a->v6;
		return 0;
	}
	return -EINVAL;
}

static int tcp_options(int fd, int family)
{
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return -errno;
	/* "::" means IPv6 and nothing else; who wants both listens twice. */
	if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
		return -errno;
	/* Inherited by accepted connections. */
	return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ? -errno : 0;
}

int sock_tcp_listen(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port,
		    struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	union tcp_addr a;
	socklen_t n;
	int err;

	if (tcp_addr_parse(&a, host, port, &n) < 0)
		return fail_set(f, -EINVAL, "'%s' is not an IPv4 or IPv6 address", host);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot make a socket for %s", host);
	err = tcp_options(fd, a.any.sa_family);
	if (err < 0)
		return fail_errno(f, err, "cannot prepare a socket for %s", host);
	if (bind(fd, &a.any, n) < 0 || listen(fd, SOCK_BACKLOG) < 0)
		return fail_errno(f, -errno, "cannot listen on %s port %u", host, port);
	n = sizeof a;
	if (getsockname(fd, &a.any, &n) < 0)
		return fail_errno(f, -errno, "cannot read the port of %s", host);
	*ret_port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	*ret_fd = fd_take(&fd);
	return 0;
}

int sock_accept(int fd, int *ret_fd)
{
	for (;;) {
		int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (got >= 0) {
			*ret_fd = got;
			return 0;
		}
		/* accept(2): errors of the new connection itself are not the listener's. */
		if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO)
			return -errno;
	}
}
