/* A message socket in the loop: SOCK_SEQPACKET, one struct msg a packet, file descriptors by
 * SCM_RIGHTS. The table in wire/msg.h says what each side may send; anything outside it ends the
 * connection (-EPROTO), as does a queue over MSGSOCK_QUEUE. Sending never blocks. */
#ifndef SPACE_NET_MSGSOCK_H
#define SPACE_NET_MSGSOCK_H

#include "base/defs.h"
#include "wire/msg.h"

struct loop;
struct msgsock;

#define MSGSOCK_QUEUE 64 /* messages waiting to be sent */

struct msgsock_ops {
	/* m is valid until the callback returns. fds in m->fd[] belong to the callback's owner once
	 * it takes them (set the slot to -1); those left are closed. */
	void (*on_msg)(void *arg, struct msg *m);
	/* Once; err 0 = peer closed. The socket is already unwatched; call msgsock_free(). */
	void (*on_end)(void *arg, int err);
};

/* Takes fd (closed by _free). `self` and `peer` are checked against the table. */
struct msgsock *msgsock_new(struct loop *l, int fd, enum msg_peer self, enum msg_peer peer,
			    const struct msgsock_ops *ops, void *arg);
void msgsock_free(struct msgsock *s);

/* Borrows body and fds (fds are duplicated by the kernel when sent; if the packet must be queued
 * they are dup'ed). 0, -EPROTO (not allowed by the table), -EPIPE, -ENOBUFS (the queue is full:
 * on_end follows, later). */
int msgsock_send(struct msgsock *s, enum msg_type type, uint32_t seq, const void *body, size_t n,
		 const int *fds, size_t n_fds);

#endif
