/* See msgsock.h. The table of wire/msg.h is asked on both sides, so that a mistake of ours shows
 * where it is made and an attack shows where it arrives. */
#include "net/msgsock.h"

#include "base/alloc.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/seqpacket.h"

#include <errno.h>
#include <fcntl.h>

#define PACKET_MAX  (MSG_HEAD + MSG_BODY_MAX)
#define MSGS_A_TURN 32u

struct packet {
	struct packet *next;
	uint8_t *p;
	size_t n;
	int fd[MSG_FDS_MAX];
	size_t n_fds;
};

struct msgsock {
	struct loop *loop;
	int fd;
	enum msg_peer self;
	enum msg_peer peer;
	const struct msgsock_ops *ops;
	void *arg;
	struct watch *watch;
	struct timer *choke; /* set when a message found the queue full */
	struct packet *first;
	struct packet **last;
	size_t n_queued;
	unsigned busy;
	bool is_over;
	bool is_freed;
};

static void packet_free(struct packet *q)
{
	for (size_t i = 0; i < q->n_fds; i++)
		fd_drop(&q->fd[i]);
	free(q->p);
	free(q);
}

static void release(struct msgsock *s)
{
	struct packet *q;

	if (!s->is_freed || s->busy)
		return;
	while ((q = s->first)) {
		s->first = q->next;
		packet_free(q);
	}
	fd_drop(&s->fd);
	free(s);
}

/* What the peer may not send has one name, wherever it was noticed. */
static int end_code(int err)
{
	if (err == -EPIPE)
		return 0;
	return err == -EBADMSG || err == -EMSGSIZE ? -EPROTO : err;
}

static void over(struct msgsock *s, int err)
{
	if (s->is_over || s->is_freed)
		return;
	s->is_over = true;
	watch_set(s->watch, 0);
	timer_clear(s->choke);
	s->ops->on_end(s->arg, end_code(err));
}

static void interest_update(struct msgsock *s)
{
	if (!s->is_over && !s->is_freed)
		watch_set(s->watch, s->first ? WATCH_READ | WATCH_WRITE : WATCH_READ);
}

static int deliver(struct msgsock *s, const uint8_t *p, size_t n, int *fds, size_t n_fds)
{
	struct msg m = {.body = rd_of(p, n), .n_fds = n_fds};
	int r = msg_head_parse(&m.body, &m.type, &m.seq);

	for (size_t i = 0; i < ARRAY_LEN(m.fd); i++)
		m.fd[i] = i < n_fds ? fds[i] : -1;
	if (!r)
		r = msg_allowed(m.type, s->peer, s->self, rd_left(&m.body), n_fds);
	if (!r)
		s->ops->on_msg(s->arg, &m);
	for (size_t i = 0; i < n_fds; i++)
		fd_drop(&m.fd[i]); /* those the owner did not take */
	return r;
}

static void receive(struct msgsock *s)
{
	uint8_t packet[PACKET_MAX + 1]; /* one more, so that an over-long packet shows */
	int fds[MSG_FDS_MAX];
	size_t n_fds;
	size_t n;
	int r = 0;

	for (unsigned i = 0; i < MSGS_A_TURN && !s->is_over && !s->is_freed && !r; i++) {
		r = seqpacket_recv(s->fd, packet, sizeof packet, &n, fds, MSG_FDS_MAX, &n_fds);
		if (!r)
			r = deliver(s, packet, n, fds, n_fds);
	}
	if (r && r != -EAGAIN)
		over(s, r);
}

static void send_queued(struct msgsock *s)
{
	struct packet *q;
	int r;

	while (!s->is_over && !s->is_freed && (q = s->first)) {
		r = seqpacket_send(s->fd, q->p, q->n, q->fd, q->n_fds);
		if (r == -EAGAIN)
			return;
		s->first = q->next;
		if (!s->first)
			s->last = &s->first;
		s->n_queued--;
		packet_free(q);
		/* When the peer has gone, its last messages may still be unread: receive() ends
		 * it. */
		if (r && r != -EPIPE)
			over(s, r);
	}
}

static void on_watch(void *arg, int events)
{
	struct msgsock *s = arg;

	s->busy++;
	if (events & WATCH_READ)
		receive(s);
	if (events & WATCH_WRITE)
		send_queued(s);
	interest_update(s);
	s->busy--;
	release(s);
}

static void on_choke(void *arg)
{
	struct msgsock *s = arg;

	s->busy++;
	over(s, -EPROTO);
	s->busy--;
	release(s);
}

struct msgsock *msgsock_new(struct loop *l, int fd, enum msg_peer self, enum msg_peer peer,
			    const struct msgsock_ops *ops, void *arg)
{
	struct msgsock *s = xcalloc(1, sizeof *s);

	s->loop = l;
	s->fd = fd;
	s->self = self;
	s->peer = peer;
	s->ops = ops;
	s->arg = arg;
	s->last = &s->first;
	(void)fd_set_nonblock(fd, true); /* a socket of ours: cannot fail */
	s->choke = timer_new(l, on_choke, s);
	s->watch = watch_new(l, fd, on_watch, s);
	interest_update(s);
	return s;
}

void msgsock_free(struct msgsock *s)
{
	if (!s || s->is_freed)
		return;
	s->is_freed = true;
	watch_free(s->watch);
	timer_free(s->choke);
	release(s);
}

/* Takes what could not be sent now. The descriptors are dup'ed: the caller keeps its own. */
static int enqueue(struct msgsock *s, const uint8_t *p, size_t n, const int *fds, size_t n_fds)
{
	struct packet *q;

	if (s->n_queued >= MSGSOCK_QUEUE) {
		timer_set(s->choke, 0); /* a peer that takes nothing is as good as gone */
		return -ENOBUFS;
	}
	q = xcalloc(1, sizeof *q);
	for (; q->n_fds < n_fds; q->n_fds++) {
		int dup_fd = fcntl(fds[q->n_fds], F_DUPFD_CLOEXEC, 0);

		if (dup_fd < 0) {
			int err = -errno;

			packet_free(q);
			return err;
		}
		q->fd[q->n_fds] = dup_fd;
	}
	q->p = xcalloc(1, n);
	memcpy(q->p, p, n);
	q->n = n;
	*s->last = q;
	s->last = &q->next;
	s->n_queued++;
	interest_update(s);
	return 0;
}

int msgsock_send(struct msgsock *s, enum msg_type type, uint32_t seq, const void *body, size_t n,
		 const int *fds, size_t n_fds)
{
	uint8_t packet[PACKET_MAX];
	struct wr w = wr_of(packet, sizeof packet);
	int r = msg_allowed(type, s->self, s->peer, n, n_fds);

	if (r)
		return r;
	if (s->is_over || s->is_freed)
		return -EPIPE;
	msg_head_print(&w, type, seq);
	wr_bytes(&w, body, n);
	if (w.bad)
		return -EPROTO;
	if (!s->first) {
		r = seqpacket_send(s->fd, packet, wr_len(&w), fds, n_fds);
		if (r != -EAGAIN)
			return r;
	}
	return enqueue(s, packet, wr_len(&w), fds, n_fds);
}
