/* Stands where keeper_test's jails would be: the keeper starts it as bwrap. It finds out from the
 * command line whom it plays, the VMM or space-daemon, and how: the bind's source is
 * /play/<name>/..., which never has to exist. It plays captured ones, too.
 *
 * Descriptors: as the real ones have them (engine/qemu_argv.h, keeper/children.h). */
#include "base/str.h"
#include "engine/engine.h"
#include "engine/qemu_argv.h"
#include "os/fd.h"
#include "os/jail.h"
#include "os/seqpacket.h"
#include "wire/msg.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define PLAY           "/play/"
#define NAME_SIZE      64
#define LINE_SIZE      4096
#define DAEMON_CTL     3
#define DAEMON_CHANNEL 6 /* its other end is the VMM's */
#define FLOOD          (4u * 1024 * 1024)

struct peer {
	char play[NAME_SIZE];
	char text[LINE_SIZE];
	size_t n;
	int state; /* what came with add-fd */
};

static void say(const char *text)
{
	if (fd_write_all(QEMU_FD_QMP, text, strlen(text)) < 0)
		_exit(0); /* the keeper is gone */
}

/* Does nothing more, until the other end of fd is gone: the keeper's death may come before
 * prctl() asked to hear of it. */
static _Noreturn void rest(int fd)
{
	struct pollfd p = {.fd = fd};

	while (poll(&p, 1, -1) < 0 || !(p.revents & POLLHUP))
		;
	_exit(0);
}

static bool plays(const struct peer *p, const char *what)
{
	return !strcmp(p->play, what);
}

static void flood(int fd)
{
	char block[4096];

	memset(block, 'x', sizeof block);
	block[sizeof block - 1] = '\n';
	(void)fd_set_nonblock(fd, false);
	for (size_t n = 0; n < FLOOD; n += sizeof block)
		if (fd_write_all(fd, block, sizeof block) < 0)
			return;
}

/* After the first answer: the guest runs. */
static void on_booted(struct peer *p)
{
	static const char reset[] =
		"{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":\"guest-reset\"}}\n";

	if (plays(p, "shuts-down")) {
		say("{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":\"guest-shutdown\"}}\n");
		_exit(0);
	}
	if (plays(p, "claims-reset")) {
		say(reset);
		rest(QEMU_FD_CONSOLE);
	}
	if (plays(p, "exits"))
		_exit(3);
	if (plays(p, "is-killed"))
		(void)raise(SIGKILL);
	if (plays(p, "events"))
		for (;;)
			say("{\"event\":\"NIC_RX_FILTER_CHANGED\"}\n");
	if (plays(p, "long-line"))
		for (;;)
			say("                                                                ");
	if (plays(p, "console"))
		flood(QEMU_FD_CONSOLE);
	if (plays(p, "stderr"))
		flood(STDERR_FILENO);
}

static void on_save(struct peer *p)
{
	if (plays(p, "never-saves"))
		rest(QEMU_FD_CONSOLE);
	if (plays(p, "saves-nothing"))
		return;
	if (plays(p, "dies-saving"))
		_exit(1);
	if (fd_write_all(p->state, "devices", 7) < 0)
		_exit(4);
}

static void on_command(struct peer *p, const char *name, const char *id)
{
	char answer[128];
	int digits = (int)strspn(id, "0123456789");

	if (!strcmp(name, "xen-save-devices-state"))
		on_save(p);
	if (!strcmp(name, "migrate-incoming") && plays(p, "bad-state")) {
		(void)fprintf(stderr, "qemu: cannot load state\n");
		_exit(1);
	}
	(void)snprintf(answer, sizeof answer, "{\"return\": {}, \"id\": %.*s}\r\n", digits, id);
	say(answer);
	if (!strcmp(name, "qmp_capabilities"))
		on_booted(p);
	else if (!strcmp(name, "migrate-incoming") && !plays(p, "never-runs"))
		say("{\"event\": \"RESUME\"}\r\n");
	else if (!strcmp(name, "quit") && !plays(p, "never-quits"))
		_exit(0);
}

static void on_line(struct peer *p, char *line)
{
	char *name = strstr(line, "\"execute\":\"");
	char *id = strstr(line, "\"id\":");

	if (!name || !id)
		_exit(5);
	name += strlen("\"execute\":\"");
	name[strcspn(name, "\"")] = '\0';
	on_command(p, name, id + strlen("\"id\":"));
}

static void receive(struct peer *p)
{
	int fds[2];
	size_t n_fds;
	size_t n;

	if (seqpacket_recv(QEMU_FD_QMP, p->text + p->n, sizeof p->text - 1 - p->n, &n, fds,
			   ARRAY_LEN(fds), &n_fds) < 0)
		_exit(0);
	for (size_t i = 0; i < n_fds; i++)
		p->state = fds[i];
	p->n += n;
	p->text[p->n] = '\0';
}

static _Noreturn void play_vmm(struct peer *p)
{
	(void)fd_set_nonblock(QEMU_FD_QMP, false);
	if (plays(p, "silent"))
		rest(QEMU_FD_CONSOLE);
	if (plays(p, "hangs-up")) {
		(void)close(QEMU_FD_QMP);
		rest(QEMU_FD_CONSOLE);
	}
	if (plays(p, "babbles"))
		say("\033[2J this is not QMP\n");
	say("{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n");
	for (;;) {
		char *end;

		receive(p);
		while ((end = strchr(p->text, '\n'))) {
			*end = '\0';
			on_line(p, p->text);
			p->n -= (size_t)(end + 1 - p->text);
			memmove(p->text, end + 1, p->n + 1);
		}
	}
}

static _Noreturn void play_daemon(struct peer *p)
{
	uint8_t packet[MSG_HEAD + MSG_BODY_MAX];
	struct wr w = wr_of(packet, sizeof packet);
	size_t n_fds;
	size_t n;

	(void)fd_set_nonblock(DAEMON_CTL, false);
	if (plays(p, "dies"))
		_exit(2);
	if (seqpacket_recv(DAEMON_CTL, packet, sizeof packet, &n, NULL, 0, &n_fds) < 0)
		_exit(3);
	if (plays(p, "mute"))
		rest(DAEMON_CHANNEL);
	msg_head_print(&w, plays(p, "lies") ? MSG_VM_STOP : MSG_DAEMON_READY, 0);
	(void)seqpacket_send(DAEMON_CTL, packet, wr_len(&w), NULL, 0);
	if (plays(p, "ready-then-dies"))
		_exit(1);
	rest(DAEMON_CHANNEL);
}

int main(int argc, char **argv)
{
	struct peer p = {.state = -1};
	bool is_daemon = false;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* as --die-with-parent does */
	for (int i = 1; i + 1 < argc; i++) {
		bool is_vmm = !strcmp(argv[i + 1], JAIL_QEMU);

		if (!str_starts(argv[i], PLAY) || (!is_vmm && strcmp(argv[i + 1], JAIL_DAEMON)))
			continue;
		is_daemon = !is_vmm;
		(void)snprintf(p.play, sizeof p.play, "%s", argv[i] + strlen(PLAY));
		p.play[strcspn(p.play, "/")] = '\0';
	}
	if (!*p.play)
		return 6;
	if (is_daemon)
		play_daemon(&p);
	play_vmm(&p);
}
