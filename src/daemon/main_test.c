/* The program itself, confined as it always is, with a keeper, clients and a guest made here: what
 * it needs of the kernel it still may, and it ends when it should. argv[1]: space-daemon. */
#include "base/alloc.h"
#include "base/test.h"
#include "daemon/test_peers.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "os/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PATIENCE_S 30u
#define SANDBOX    "i0123456789abcdefghi"

struct world {
	struct loop *loop;
	struct timer *deadline;
	char dir[32];
	int dirfd;
	int listening[2];
	int client_fd;
	struct h2 *client;
	struct msgsock *keeper;
	struct fake fake;
	bool is_ready;
	pid_t pid;
	int pidfd;
	struct watch *exit_watch;
	bool has_ended;
};

static void on_deadline(void *arg)
{
	(void)arg;
	printf("hangs\n");
	exit(EXIT_FAILURE);
}

static void on_msg(void *arg, struct msg *m)
{
	struct world *w = arg;

	w->is_ready = m->type == MSG_DAEMON_READY;
	loop_stop(w->loop);
}

static void on_keeper_end(void *arg, int err)
{
	struct world *w = arg;

	(void)err;
	loop_stop(w->loop);
}

static const struct msgsock_ops keeper_ops = {.on_msg = on_msg, .on_end = on_keeper_end};

static void on_client_end(struct h2 *h, int err)
{
	struct world *w = h2_arg(h);

	(void)err;
	w->client = NULL;
	h2_free(h);
}

static const struct h2_ops client_ops = {.on_end = on_client_end};

static void on_exit_seen(void *arg, int events)
{
	struct world *w = arg;

	(void)events;
	w->has_ended = true;
	loop_stop(w->loop);
}

static void start(struct world *w, const char *program, int *ret_keeper)
{
	static const char *const names[] = {"daemon.sock", "platform.sock"};
	const char *argv[] = {program, NULL};
	int theirs[GUEST_PORTS];
	int ours[GUEST_PORTS];
	int keeper[2];
	struct fail f = {0};

	(void)snprintf(w->dir, sizeof w->dir, "/tmp/daemon.XXXXXX");
	if (!mkdtemp(w->dir) || (w->dirfd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sock_unix_listen(w->dirfd, names[i], SOCK_STREAM, &w->listening[i], &f) < 0)
			exit(EXIT_FAILURE);
	for (size_t i = 0; i < GUEST_PORTS; i++) {
		int pair[2];

		if (sock_pair(SOCK_STREAM, pair) < 0)
			exit(EXIT_FAILURE);
		ours[i] = pair[0];
		theirs[i] = pair[1];
	}
	if (sock_pair(SOCK_SEQPACKET, keeper) < 0)
		exit(EXIT_FAILURE);
	const int fds[] = {-1,
			   STDERR_FILENO,
			   STDERR_FILENO,
			   keeper[1],
			   w->listening[0],
			   w->listening[1],
			   theirs[PORT_CONTROL],
			   theirs[PORT_EGRESS],
			   theirs[PORT_WAKE]};
	const struct spawn_spec spec = {.argv = argv, .fds = fds, .n_fds = ARRAY_LEN(fds)};

	if (spawn(&spec, &w->pid, &w->pidfd, &f) < 0) {
		printf("%s\n", f.text);
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < GUEST_PORTS; i++)
		(void)close(theirs[i]);
	(void)close(keeper[1]);
	fake_start(&w->fake, w->loop, ours);
	*ret_keeper = keeper[0];
}

static void open_world(struct world *w, const char *program)
{
	uint8_t body[MSG_BODY_MAX];
	struct wr config = wr_of(body, sizeof body);
	struct fail f = {0};
	int keeper;

	*w = (struct world){.loop = loop_new()};
	w->deadline = timer_new(w->loop, on_deadline, NULL);
	timer_set(w->deadline, PATIENCE_S * 1000);
	start(w, program, &keeper);
	w->exit_watch = watch_new(w->loop, w->pidfd, on_exit_seen, w);
	watch_set(w->exit_watch, WATCH_READ);
	w->keeper = msgsock_new(w->loop, keeper, PEER_KEEPER, PEER_DAEMON, &keeper_ops, w);
	wr_str(&config, SANDBOX);
	wr_str(&config, PEER_TOKEN);
	EXPECT_EQ("configured",
		  msgsock_send(w->keeper, MSG_DAEMON_CONFIG, 0, body, wr_len(&config), NULL, 0), 0);
	if (sock_unix_connect(w->dirfd, "daemon.sock", SOCK_STREAM, &w->client_fd, &f) < 0)
		exit(EXIT_FAILURE);
	w->client = h2_new(w->loop, w->client_fd, 0, &client_ops, w, NULL, 0);
}

static void on_last_turn(void *arg)
{
	loop_stop(arg);
}

/* Waits for its end first. */
static void close_world(struct world *w, const char *says)
{
	struct fail f = {0};
	int status = -1;

	while (!w->has_ended)
		loop_run(w->loop);
	(void)waitpid(w->pid, &status, 0);
	EXPECT_EQ(says, status, 0);
	h2_free(w->client);
	fake_stop(&w->fake);
	watch_free(w->exit_watch);
	msgsock_free(w->keeper);
	timer_free(w->deadline);
	loop_later(w->loop, on_last_turn, w->loop);
	loop_run(w->loop);
	for (size_t i = 0; i < GUEST_PORTS; i++)
		fd_drop(&w->fake.fd[i]);
	fd_drop(&w->client_fd);
	fd_drop(&w->listening[0]);
	fd_drop(&w->listening[1]);
	fd_drop(&w->pidfd);
	(void)dir_remove(w->dirfd, "daemon.sock", &f);
	(void)dir_remove(w->dirfd, "platform.sock", &f);
	fd_drop(&w->dirfd);
	(void)rmdir(w->dir);
	loop_free(w->loop);
}

static void test_work(const char *program)
{
	struct asked echo = {0};
	struct asked refused = {0};
	struct world w;

	open_world(&w, program);
	while (!w.is_ready && !w.has_ended)
		loop_run(w.loop);
	EXPECT("it reports the session", w.is_ready);
	asked_start(&echo, w.loop, w.client, "POST", "/echo", PEER_BULK);
	asked_start(&refused, w.loop, w.client, "POST", "/init", 0);
	while (!(echo.is_closed && refused.is_closed) && !w.has_ended)
		loop_run(w.loop);
	EXPECT_EQ("it relays", echo.got, PEER_BULK);
	EXPECT_STR("it refuses", refused.status, "404");
	msgsock_free(w.keeper);
	w.keeper = NULL;
	close_world(&w, "it ends with its keeper");
}

static void test_qemu_gone(const char *program)
{
	struct asked held = {0};
	struct world w;

	open_world(&w, program);
	while (!w.is_ready && !w.has_ended)
		loop_run(w.loop);
	asked_start(&held, w.loop, w.client, "GET", "/hold", 0);
	while (!w.fake.held && !w.has_ended)
		loop_run(w.loop);
	fake_stop(&w.fake);
	for (size_t i = 0; i < GUEST_PORTS; i++) {
		w.fake.watch[i] = NULL;
		fd_drop(&w.fake.fd[i]);
	}
	while (!held.is_closed)
		loop_run(w.loop);
	EXPECT("an open request is not finished well", strcmp(held.status, "200") != 0);
	close_world(&w, "it ends with QEMU");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return EXIT_FAILURE;
	(void)signal(SIGPIPE, SIG_IGN);
	test_work(argv[1]);
	test_qemu_gone(argv[1]);
	return test_done();
}
