/* One packet of a SOCK_SEQPACKET socket at a time, with the descriptors that travel beside it.
 * Bytes only: what they mean is wire/msg.h's, what is allowed its table's. Works on blocking and
 * non-blocking sockets. */
#ifndef SPACE_OS_SEQPACKET_H
#define SPACE_OS_SEQPACKET_H

#include "base/defs.h"

#define SEQPACKET_FDS_MAX 16

/* Borrows p and fds. 0, or -EAGAIN (would block), -EPIPE (peer gone), another errno. Never raises
 * SIGPIPE. */
int seqpacket_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds);

/* Receives one packet: 0; -EAGAIN (none there); -EPIPE (peer closed, or an empty packet, which
 * nobody of ours sends); -EMSGSIZE (longer than max bytes or more than max_fds descriptors; the
 * packet is gone and its descriptors are closed). Received descriptors are CLOEXEC and the
 * caller's. max_fds <= SEQPACKET_FDS_MAX. */
int seqpacket_recv(int fd, void *p, size_t max, size_t *ret_n, int *fds, size_t max_fds,
		   size_t *ret_n_fds);

#endif
