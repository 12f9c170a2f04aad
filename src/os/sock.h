/* Sockets: unix ones by directory descriptor and name (paths can be longer than sun_path), and
 * loopback TCP. All returned descriptors are CLOEXEC and non-blocking. */
#ifndef SPACE_OS_SOCK_H
#define SPACE_OS_SOCK_H

#include "base/fail.h"

/* type: SOCK_STREAM or SOCK_SEQPACKET. Mode 0600. Removes a stale socket file of that name first.
 */
int sock_unix_listen(int dirfd, const char *name, int type, int *ret_fd, struct fail *f);
int sock_unix_connect(int dirfd, const char *name, int type, int *ret_fd, struct fail *f);
int sock_pair(int type, int ret[2]);
/* host: an IPv4 or IPv6 literal. port 0: any free one; *ret_port says which. */
int sock_tcp_listen(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port,
		    struct fail *f);
int sock_accept(int fd, int *ret_fd); /* -EAGAIN when there is none */

#endif
