/* Both ends in one loop, and raw packets where a peer misbehaves. After each case as many
 * descriptors are open as before. */
#include "net/msgsock.h"

#include "base/alloc.h"
#include "base/test.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/seqpacket.h"
#include "os/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define DEADLINE_MS 10000u

static struct loop *loop;
static struct timer *deadline;

struct side {
	struct msgsock *sock;
	unsigned msgs, ends;
	uint32_t last_seq;
	bool is_in_order;
	int err;
	int kept; /* a descriptor taken from a message */
	bool takes, frees, stops_at_msg;
	enum msg_type type;
	size_t n_fds;
};

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void on_msg(void *arg, struct msg *m)
{
	struct side *s = arg;

	s->is_in_order = s->is_in_order && m->seq == s->msgs;
	s->msgs++;
	s->type = m->type;
	s->n_fds = m->n_fds;
	if (s->takes && m->n_fds > 0) {
		s->kept = m->fd[0];
		m->fd[0] = -1;
	}
	if (s->frees) {
		msgsock_free(s->sock);
		s->sock = NULL;
	}
	if (s->stops_at_msg || s->frees)
		loop_stop(loop);
}

static void on_end(void *arg, int err)
{
	struct side *s = arg;

	s->ends++;
	s->err = err;
	msgsock_free(s->sock);
	s->sock = NULL;
	loop_stop(loop);
}

static const struct msgsock_ops ops = {.on_msg = on_msg, .on_end = on_end};

static void on_late(void *arg)
{
	(void)arg;
	EXPECT("in time", false);
	loop_stop(loop);
}

static void run(void)
{
	timer_set(deadline, DEADLINE_MS);
	loop_run(loop);
	timer_clear(deadline);
}

static void side_start(struct side *s, int fd, enum msg_peer self, enum msg_peer peer)
{
	*s = (struct side){.kept = -1, .is_in_order = true};
	s->sock = msgsock_new(loop, fd, self, peer, &ops, s);
}

static void side_end(struct side *s)
{
	msgsock_free(s->sock);
	s->sock = NULL;
	fd_drop(&s->kept);
}

static void test_send(void)
{
	struct side spaced, keeper;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[MSG_FDS_MAX];
	struct stat a, b;
	int fd[2];

	for (size_t i = 0; i < MSG_FDS_MAX; i++)
		fds[i] = null;
	CHECK(sock_pair(SOCK_SEQPACKET, fd) == 0);
	side_start(&spaced, fd[0], PEER_SPACED, PEER_KEEPER);
	side_start(&keeper, fd[1], PEER_KEEPER, PEER_SPACED);
	EXPECT_EQ("not ours to say", msgsock_send(spaced.sock, MSG_VM_SAVED, 0, NULL, 0, NULL, 0),
		  -EPROTO);
	EXPECT_EQ("to another peer", msgsock_send(spaced.sock, MSG_JAIL_QUIT, 0, NULL, 0, NULL, 0),
		  -EPROTO);
	EXPECT_EQ("a body too long", msgsock_send(spaced.sock, MSG_VM_STOP, 0, "x", 1, NULL, 0),
		  -EPROTO);
	EXPECT_EQ("too few descriptors", msgsock_send(spaced.sock, MSG_VM_SAVE, 0, NULL, 0, fds, 0),
		  -EPROTO);
	EXPECT_EQ("too many", msgsock_send(spaced.sock, MSG_VM_SAVE, 0, NULL, 0, fds, 2), -EPROTO);
	EXPECT_EQ("right", msgsock_send(spaced.sock, MSG_VM_SAVE, 0, NULL, 0, fds, 1), 0);
	keeper.takes = keeper.stops_at_msg = true;
	run();
	EXPECT_EQ("it arrived", keeper.type, MSG_VM_SAVE);
	EXPECT_EQ("with a descriptor", keeper.n_fds, 1);
	EXPECT("of the same file", keeper.kept != null && fstat(keeper.kept, &a) == 0 &&
					   fstat(null, &b) == 0 && a.st_rdev == b.st_rdev);
	EXPECT_EQ("that is closed on exec", fcntl(keeper.kept, F_GETFD), FD_CLOEXEC);
	fd_drop(&keeper.kept);
	keeper.takes = false;
	keeper.is_in_order = true;
	EXPECT_EQ("one that nobody takes",
		  msgsock_send(spaced.sock, MSG_VM_SAVE, 1, NULL, 0, fds, 1), 0);
	run();
	EXPECT("order", keeper.is_in_order);
	EXPECT_EQ("last words", msgsock_send(spaced.sock, MSG_VM_STOP, 2, NULL, 0, NULL, 0), 0);
	keeper.stops_at_msg = false;
	side_end(&spaced);
	run();
	EXPECT_EQ("are heard before the end", keeper.msgs, 3);
	EXPECT_EQ("which is one", keeper.ends, 1);
	EXPECT_EQ("and a plain close", keeper.err, 0);
	side_end(&keeper);
	fd_drop(&null);
}

static void test_free_inside(void)
{
	struct side spaced, keeper;
	int fd[2];

	CHECK(sock_pair(SOCK_SEQPACKET, fd) == 0);
	side_start(&spaced, fd[0], PEER_SPACED, PEER_KEEPER);
	side_start(&keeper, fd[1], PEER_KEEPER, PEER_SPACED);
	keeper.frees = true;
	CHECK(msgsock_send(spaced.sock, MSG_VM_STOP, 0, NULL, 0, NULL, 0) == 0);
	CHECK(msgsock_send(spaced.sock, MSG_VM_STOP, 1, NULL, 0, NULL, 0) == 0);
	run();
	EXPECT_EQ("freed at the first", keeper.msgs, 1);
	if (!spaced.ends)
		run();
	EXPECT_EQ("the other end hears it", spaced.ends, 1);
	EXPECT_EQ("nothing after the end", keeper.ends, 0);
	side_end(&spaced);
	side_end(&keeper);
}

/* Fills the kernel's queue, then ours. */
static void test_queue(void)
{
	struct side spaced, keeper;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint32_t sent = 0;
	int fd[2];
	int r = 0;

	CHECK(sock_pair(SOCK_SEQPACKET, fd) == 0);
	side_start(&spaced, fd[0], PEER_SPACED, PEER_KEEPER);
	side_start(&keeper, fd[1], PEER_KEEPER, PEER_SPACED);
	while (sent < 100000 && spaced.ends == 0) {
		r = msgsock_send(spaced.sock, MSG_VM_SAVE, sent, NULL, 0, &null, 1);
		if (r < 0)
			break;
		sent++;
	}
	EXPECT_EQ("at last both are full", r, -ENOBUFS);
	EXPECT_EQ("that is told later", spaced.ends, 0);
	run();
	if (!spaced.ends)
		run();
	EXPECT_EQ("as an end", spaced.err, -EPROTO);
	side_end(&spaced);
	side_end(&keeper);

	CHECK(sock_pair(SOCK_SEQPACKET, fd) == 0);
	side_start(&spaced, fd[0], PEER_SPACED, PEER_KEEPER);
	for (uint32_t i = 0; i < sent; i++)
		EXPECT_EQ("one less fits",
			  msgsock_send(spaced.sock, MSG_VM_SAVE, i, NULL, 0, &null, 1), 0);
	fd_drop(&null); /* what is queued has its own */
	side_start(&keeper, fd[1], PEER_KEEPER, PEER_SPACED);
	keeper.stops_at_msg = true;
	while (keeper.msgs < sent && !keeper.ends)
		run();
	EXPECT_EQ("all arrive", keeper.msgs, sent);
	EXPECT("in order", keeper.is_in_order);
	EXPECT_EQ("and nothing ended", spaced.ends + keeper.ends, 0);
	side_end(&spaced);
	side_end(&keeper);
}

#define BE16(v) (uint8_t)((v) >> 8), (uint8_t)(v)

static const struct {
	const char *says;
	uint8_t p[16];
	size_t n; /* further bytes are zero */
	size_t n_fds;
	int want; /* 1: taken */
} raws[] = {
	{"right", {BE16(MSG_VM_STOP), BE16(MSG_VERSION), 0, 0, 0, 0}, 8, 0, 1},
	{"short", {BE16(MSG_VM_STOP), BE16(MSG_VERSION), 0, 0, 0}, 7, 0, -EPROTO},
	{"one byte too long", {BE16(MSG_VM_STOP), BE16(MSG_VERSION)}, 9, 0, -EPROTO},
	{"another version", {BE16(MSG_VM_STOP), BE16(MSG_VERSION + 1)}, 8, 0, -EPROTONOSUPPORT},
	{"no type", {BE16(MSG_NONE), BE16(MSG_VERSION)}, 8, 0, -EPROTO},
	{"a type past the last", {BE16(MSG_TYPES), BE16(MSG_VERSION)}, 8, 0, -EPROTO},
	{"the wrong direction", {BE16(MSG_VM_SAVED), BE16(MSG_VERSION)}, 8, 0, -EPROTO},
	{"a descriptor too many", {BE16(MSG_VM_STOP), BE16(MSG_VERSION)}, 8, 1, -EPROTO},
	{"with its descriptor", {BE16(MSG_VM_SAVE), BE16(MSG_VERSION)}, 8, 1, 1},
	{"without", {BE16(MSG_VM_SAVE), BE16(MSG_VERSION)}, 8, 0, -EPROTO},
	{"more descriptors than any has", {BE16(MSG_VM_SAVE), BE16(MSG_VERSION)}, 8, 9, -EPROTO},
	{"as many as a packet takes", {BE16(MSG_VM_SAVE), BE16(MSG_VERSION)}, 8, 16, -EPROTO},
	{"the longest packet",
	 {BE16(MSG_VM_BOOT), BE16(MSG_VERSION)},
	 MSG_HEAD + MSG_BODY_MAX,
	 0,
	 -EPROTO},
	{"one more",
	 {BE16(MSG_VM_BOOT), BE16(MSG_VERSION)},
	 MSG_HEAD + MSG_BODY_MAX + 1,
	 0,
	 -EPROTO},
	{"far more", {BE16(MSG_VM_BOOT), BE16(MSG_VERSION)}, 60000, 6, -EPROTO},
};

static void test_raw(void)
{
	static uint8_t p[65536];

	for (size_t i = 0; i < ARRAY_LEN(raws); i++) {
		size_t before = open_fds();
		struct side keeper;
		int fds[SEQPACKET_FDS_MAX];
		int fd[2];

		CHECK(sock_pair(SOCK_SEQPACKET, fd) == 0);
		for (size_t k = 0; k < ARRAY_LEN(fds); k++)
			fds[k] = fd[0];
		side_start(&keeper, fd[1], PEER_KEEPER, PEER_SPACED);
		keeper.stops_at_msg = true;
		memcpy(p, raws[i].p, sizeof raws[i].p);
		EXPECT_EQ("sent", seqpacket_send(fd[0], p, raws[i].n, fds, raws[i].n_fds), 0);
		run();
		EXPECT_EQ(raws[i].says, keeper.msgs, raws[i].want == 1);
		EXPECT_EQ(raws[i].says, keeper.err, raws[i].want == 1 ? 0 : raws[i].want);
		side_end(&keeper);
		fd_drop(&fd[0]);
		EXPECT_EQ(raws[i].says, open_fds(), before);
	}
}

int main(void)
{
	size_t before;

	loop = loop_new();
	deadline = timer_new(loop, on_late, NULL);
	before = open_fds();
	test_send();
	test_free_inside();
	test_queue();
	test_raw();
	EXPECT_EQ("no descriptor is lost", open_fds(), before);
	timer_free(deadline);
	loop_free(loop);
	return test_done();
}
