/* SOCK_SEQPACKET with SCM_RIGHTS. Whatever does not fit is refused whole, and every descriptor that
 * the kernel installed for it is closed again: a peer cannot fill our table. */
#include "os/seqpacket.h"

#include <errno.h>
#include <sys/socket.h>

union fd_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(SEQPACKET_FDS_MAX * sizeof(int))];
};

int seqpacket_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds)
{
	union {
		const void *in;
		void *out;
	} bytes = {.in = p}; /* iovec is not const, sendmsg only reads */
	struct iovec v = {.iov_base = bytes.out, .iov_len = n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	union fd_control control = {.bytes = {0}};

	if (n_fds > SEQPACKET_FDS_MAX)
		return -EINVAL;
	if (n_fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof *fds);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n_fds * sizeof *fds);
		memcpy(CMSG_DATA(&control.align), fds, n_fds * sizeof *fds);
	}
	for (;;) {
		ssize_t done = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (done >= 0)
			return (size_t)done == n ? 0 : -EIO;
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
}

/* Collects the descriptors of all SCM_RIGHTS blocks. */
static size_t take_fds(struct msghdr *m, int got[SEQPACKET_FDS_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		assert(count <= SEQPACKET_FDS_MAX - n); /* the control buffer holds no more */
		memcpy(got + n, CMSG_DATA(c), count * sizeof(int));
		n += count;
	}
	return n;
}

static ssize_t recv_retry(int fd, struct msghdr *m)
{
	for (;;) {
		ssize_t done = recvmsg(fd, m, MSG_CMSG_CLOEXEC);

		if (done >= 0)
			return done;
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
}

int seqpacket_recv(int fd, void *p, size_t max, size_t *ret_n, int *fds, size_t max_fds,
		   size_t *ret_n_fds)
{
	union fd_control control;
	struct iovec v = {.iov_base = p, .iov_len = max};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof control.bytes};
	int got[SEQPACKET_FDS_MAX];
	ssize_t done = recv_retry(fd, &m);
	size_t n;

	if (done < 0)
		return (int)done;
	n = take_fds(&m, got);
	if (done == 0 || n > max_fds || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		for (size_t i = 0; i < n; i++)
			(void)close(got[i]);
		return done == 0 ? -EPIPE : -EMSGSIZE;
	}
	if (n > 0)
		memcpy(fds, got, n * sizeof *got);
	*ret_n = (size_t)done;
	*ret_n_fds = n;
	return 0;
}
