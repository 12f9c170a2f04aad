/* See test_spaced.h. */
#include "keeper/test_spaced.h"

#include "os/fd.h"
#include "os/pidfd.h"
#include "os/seqpacket.h"
#include "os/sock.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The first thing that was not as it must be; the test's counts are its own file's. */
static void need(struct test_spaced *s, bool is_so, const char *what)
{
	if (!is_so && !s->wrong)
		s->wrong = what;
}

void test_spaced_connect(struct test_spaced *s, int dirfd)
{
	fd_drop(&s->fd);
	need(s, sock_unix_connect(dirfd, "keeper.sock", SOCK_SEQPACKET, &s->fd, NULL) == 0,
	     "connect");
}

void test_spaced_say(struct test_spaced *s, enum msg_type type, const void *body, size_t size,
		     const int *fds, size_t n_fds)
{
	uint8_t packet[MSG_HEAD + MSG_BODY_MAX];
	struct wr w = wr_of(packet, sizeof packet);

	msg_head_print(&w, type, 1);
	wr_bytes(&w, body, size);
	assert(!w.bad);
	need(s, seqpacket_send(s->fd, packet, wr_len(&w), fds, n_fds) == 0, msg_name(type));
}

void test_spaced_begin(struct test_spaced *s, const struct vm_spec *spec, bool is_boot,
		       const int fds[VM_BOOT_FDS])
{
	uint8_t body[MSG_BODY_MAX];
	struct wr w = wr_of(body, sizeof body);

	static_assert((int)VM_BOOT_FDS == (int)VM_RESTORE_FDS, "as many for both");
	vm_spec_print(&w, spec);
	test_spaced_say(s, is_boot ? MSG_VM_BOOT : MSG_VM_RESTORE, body, wr_len(&w), fds,
			VM_BOOT_FDS);
}

static void hear(struct test_spaced *s, const char *what, const char *text)
{
	size_t len = strlen(s->heard);

	(void)snprintf(s->heard + len, sizeof s->heard - len, "%s%s%s%s", len ? " " : "", what,
		       *text ? ": " : "", text);
}

static void on_state(struct test_spaced *s, struct rd in)
{
	struct vm_event e = {.state = VM_NONE};
	struct stat st;

	need(s, vm_event_parse(&e, in) == 0, "an event that cannot be read");
	if (e.state == VM_STOPPED)
		s->has_seen_record = fstat(s->record, &st) == 0 && st.st_size > 0;
	s->state = e.state;
	hear(s, vm_state_name(e.state), e.text);
}

static void on_hello(struct test_spaced *s, struct rd in, const int *fds, size_t n_fds)
{
	struct stat st;

	need(s, keeper_hello_parse(&s->hello, in) == 0, "a hello that cannot be read");
	need(s, n_fds == (s->hello.has_vm ? 2 : 1), "a pidfd, and RAM with a VM");
	need(s, pidfd_pid(fds[0], &s->keeper) == 0, "a pidfd");
	s->ram_bytes = n_fds == 2 && fstat(fds[1], &st) == 0 ? (uint64_t)st.st_size : 0;
	hear(s, "hello", "");
}

static void on_packet(struct test_spaced *s, struct rd in, const int *fds, size_t n_fds)
{
	enum msg_type type = MSG_NONE;
	uint32_t seq;

	need(s, msg_head_parse(&in, &type, &seq) == 0, "a message without a head");
	need(s, msg_allowed(type, PEER_KEEPER, PEER_SPACED, rd_left(&in), n_fds) == 0,
	     "a message outside the table");
	if (type == MSG_VM_STATE) {
		on_state(s, in);
	} else if (type == MSG_VM_SAVED) {
		hear(s, "saved", "");
	} else if (type == MSG_KEEPER_HELLO) {
		on_hello(s, in, fds, n_fds);
	}
}

bool test_spaced_listen(struct test_spaced *s, int timeout_ms)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	uint8_t packet[MSG_HEAD + MSG_BODY_MAX];
	int fds[2] = {-1, -1};
	size_t n_fds = 0;
	size_t size;

	if (poll(&p, 1, timeout_ms) != 1) {
		need(s, false, "nothing was heard in time");
		return false;
	}
	if (seqpacket_recv(s->fd, packet, sizeof packet, &size, fds, 2, &n_fds) < 0)
		return false;
	on_packet(s, rd_of(packet, size), fds, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		fd_drop(&fds[i]);
	return true;
}
