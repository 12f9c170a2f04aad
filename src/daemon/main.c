/* space-daemon: the only process that speaks with one sandbox's guest. It checks access tokens and
 * relays HTTP/2 both ways; bodies are opaque to it.
 *
 * Descriptors (from space-keeper): 2 log, 3 messages with the keeper, 4 and 5 listening sockets of
 * clients and of the platform, 6 space.control, 7 space.egress, 8 space.wake.
 * It opens no file, makes no socket and starts no process: confine_enter() takes those rights away
 * before the first byte from outside is read. Trusts the keeper; nobody else.
 *
 * In order: confine; MSG_DAEMON_CONFIG; accept clients and wake the guest; MSG_DAEMON_READY after
 * the first handshake. Ends when the keeper or QEMU is gone. */
#include "base/fail.h"
#include "base/log.h"
#include "daemon/guest.h"
#include "daemon/relay.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/confine.h"
#include "os/fd.h"
#include "wire/wake.h"

#include <signal.h>

enum daemon_fd {
	FD_LOG = 2,
	FD_KEEPER,
	FD_CLIENT,
	FD_PLATFORM,
	FD_CONTROL,
	FD_EGRESS,
	FD_WAKE,
	FD_END
};

struct sandbox {
	struct loop *loop;
	struct msgsock *keeper;
	struct relay *relay; /* NULL before the configuration came */
	struct guest *guest;
	bool was_ready;
	char id[SANDBOX_ID_SIZE];
	int exit_code;
};

static void sandbox_end(struct sandbox *s, int exit_code)
{
	s->exit_code = exit_code;
	loop_stop(s->loop);
}

static void on_up(void *arg, struct h2 *control)
{
	struct sandbox *s = arg;

	relay_guest_found(s->relay, control);
	if (s->was_ready)
		return;
	s->was_ready = true;
	if (msgsock_send(s->keeper, MSG_DAEMON_READY, 0, NULL, 0, NULL, 0) < 0) {
		log_error("cannot report to the keeper", "sandbox=%s", s->id);
		sandbox_end(s, 1);
	}
}

static void on_lost(void *arg)
{
	struct sandbox *s = arg;

	relay_guest_lost(s->relay);
}

static void on_gone(void *arg)
{
	struct sandbox *s = arg;

	log_info("channel closed, ending", "sandbox=%s", s->id);
	sandbox_end(s, 0);
}

static const struct guest_ops guest_ops = {.on_up = on_up, .on_lost = on_lost, .on_gone = on_gone};

static int config_parse(struct sandbox *s, struct rd in, char token[TOKEN_SIZE])
{
	rd_str(&in, s->id, sizeof s->id);
	rd_str(&in, token, TOKEN_SIZE);
	return rd_end(&in) && sandbox_id_valid(s->id) ? 0 : -1;
}

static void on_msg(void *arg, struct msg *m)
{
	static const int ports[GUEST_PORTS] = {FD_CONTROL, FD_EGRESS, FD_WAKE};
	struct sandbox *s = arg;
	char token[TOKEN_SIZE];

	if (m->type != MSG_DAEMON_CONFIG || s->relay || config_parse(s, m->body, token) < 0) {
		log_error("bad message from the keeper", "type=%s", msg_name(m->type));
		sandbox_end(s, 1);
		return;
	}
	log_info("started", "sandbox=%s", s->id);
	s->relay = relay_new(s->loop, token, RELAY_WAIT_MS);
	explicit_bzero(token, sizeof token);
	relay_listen(s->relay, SIDE_CLIENT, FD_CLIENT);
	relay_listen(s->relay, SIDE_PLATFORM, FD_PLATFORM);
	s->guest = guest_new(s->loop, ports, WAKE_RETRY_MS, &guest_ops, s);
}

static void on_keeper_end(void *arg, int err)
{
	struct sandbox *s = arg;

	log_info("keeper is gone, ending", "errno=%d", -err);
	sandbox_end(s, err == 0 ? 0 : 1);
}

static const struct msgsock_ops keeper_ops = {.on_msg = on_msg, .on_end = on_keeper_end};

int main(void)
{
	struct sandbox s = {0};
	struct fail f = {0};

	log_init("space-daemon", LOG_INFO, FD_LOG);
	(void)signal(SIGPIPE, SIG_IGN);
	for (int fd = FD_KEEPER; fd < FD_END; fd++) {
		if (fd_set_nonblock(fd, true) < 0) {
			log_error("a descriptor is missing", "fd=%d", fd);
			return 1;
		}
	}
	s.loop = loop_new();
	if (confine_enter(CONFINE_DAEMON, &f) < 0) {
		log_error("cannot give up rights", "why=%s", f.text);
		return 1;
	}
	s.keeper = msgsock_new(s.loop, FD_KEEPER, PEER_DAEMON, PEER_KEEPER, &keeper_ops, &s);
	loop_run(s.loop);
	guest_free(s.guest);
	relay_free(s.relay);
	msgsock_free(s.keeper);
	loop_free(s.loop);
	return s.exit_code;
}
