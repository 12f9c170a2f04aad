/* Sockets by folder and name, loopback TCP, packets with descriptors. */
#include "os/sock.h"

#include "os/seqpacket.h"
#include "os/test_tmp.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void test_unix(const struct test_tmp *t)
{
	static const struct {
		const char *says;
		const char *name;
		int want;
	} bad[] = {
		{"empty", "", -EINVAL},
		{"dots", "..", -EINVAL},
		{"a path", "a/b", -EINVAL},
		{"too long for an address",
		 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		 "nnnnnnnnnnn"
		 "nnnnnnnn",
		 -ENAMETOOLONG},
	};
	AUTO(fd_drop) int listener = -1;
	AUTO(fd_drop) int again = -1;
	AUTO(fd_drop) int client = -1;
	AUTO(fd_drop) int server = -1;
	struct stat st;
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		EXPECT_EQ(bad[i].says, sock_unix_listen(t->fd, bad[i].name, SOCK_STREAM, &fd, NULL),
			  bad[i].want);
	EXPECT_EQ("listen", sock_unix_listen(t->fd, "s", SOCK_STREAM, &listener, NULL), 0);
	EXPECT_EQ("stat", fstatat(t->fd, "s", &st, 0), 0);
	EXPECT_EQ("for its owner only", st.st_mode & 07777, 0600);
	EXPECT_EQ("nobody yet", sock_accept(listener, &fd), -EAGAIN);
	EXPECT_EQ("connect", sock_unix_connect(t->fd, "s", SOCK_STREAM, &client, NULL), 0);
	EXPECT_EQ("accept", sock_accept(listener, &server), 0);
	EXPECT("non-blocking", (fcntl(server, F_GETFL) & O_NONBLOCK) != 0);
	EXPECT("close-on-exec", (fcntl(server, F_GETFD) & FD_CLOEXEC) != 0);
	EXPECT_EQ("the same name anew", sock_unix_listen(t->fd, "s", SOCK_SEQPACKET, &again, NULL),
		  0);
	EXPECT_EQ("file", file_replace(t->fd, "f", 0600, "x", 1, NULL), 0);
	EXPECT_EQ("a file is not removed", sock_unix_listen(t->fd, "f", SOCK_STREAM, &fd, NULL),
		  -EADDRINUSE);
	EXPECT_EQ("nobody listens", sock_unix_connect(t->fd, "none", SOCK_STREAM, &fd, NULL),
		  -ENOENT);
}

static void test_tcp(void)
{
	static const char *const bad[] = {"",           "localhost",  "127.1",
					  "0x7f.0.0.1", "127.0.0.1 ", "::1%lo"};
	AUTO(fd_drop) int listener = -1;
	uint16_t port = 0;
	uint16_t same;
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		EXPECT_EQ(bad[i], sock_tcp_listen(bad[i], 0, &fd, &same, NULL), -EINVAL);
	EXPECT_EQ("any port", sock_tcp_listen("127.0.0.1", 0, &listener, &port, NULL), 0);
	EXPECT("it is told", port != 0);
	EXPECT_EQ("taken", sock_tcp_listen("127.0.0.1", port, &fd, &same, NULL), -EADDRINUSE);
}

static size_t open_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_packets(void)
{
	int pair[2];
	int given[4] = {0, 1, 2, 0};
	int got[4];
	uint8_t bytes[16];
	size_t n_fds = 0;
	size_t n = 0;
	size_t before;

	EXPECT_EQ("pair", sock_pair(SOCK_SEQPACKET, pair), 0);
	before = open_fds();
	EXPECT_EQ("none there", seqpacket_recv(pair[1], bytes, 16, &n, got, 4, &n_fds), -EAGAIN);
	EXPECT_EQ("send", seqpacket_send(pair[0], "0123456789abcdef", 16, given, 4), 0);
	EXPECT_EQ("at both limits", seqpacket_recv(pair[1], bytes, 16, &n, got, 4, &n_fds), 0);
	EXPECT("whole", n == 16 && n_fds == 4 && memcmp(bytes, "0123456789abcdef", 16) == 0);
	for (size_t i = 0; i < n_fds; i++) {
		EXPECT("close-on-exec", (fcntl(got[i], F_GETFD) & FD_CLOEXEC) != 0);
		(void)close(got[i]);
	}
	EXPECT_EQ("send", seqpacket_send(pair[0], "0123456789abcdefg", 17, given, 1), 0);
	EXPECT_EQ("a byte too long", seqpacket_recv(pair[1], bytes, 16, &n, got, 4, &n_fds),
		  -EMSGSIZE);
	EXPECT_EQ("send", seqpacket_send(pair[0], "x", 1, given, 4), 0);
	EXPECT_EQ("a descriptor too many", seqpacket_recv(pair[1], bytes, 16, &n, got, 3, &n_fds),
		  -EMSGSIZE);
	EXPECT_EQ("nothing stays open", open_fds(), before);
	(void)close(pair[0]);
	EXPECT_EQ("the end", seqpacket_recv(pair[1], bytes, 16, &n, got, 4, &n_fds), -EPIPE);
	EXPECT_EQ("sending after it", seqpacket_send(pair[1], "x", 1, NULL, 0), -EPIPE);
	(void)close(pair[1]);
}

int main(void)
{
	struct test_tmp t;

	test_tmp_make(&t);
	test_unix(&t);
	test_tcp();
	test_packets();
	test_tmp_drop(&t);
	return test_done();
}
