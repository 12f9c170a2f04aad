/* Stands for space-keeper: enters its role, starts both attackers in the inner jails with the
 * builders that space-keeper uses, lets them run side by side. Descriptors: 3 and 4 the reports of
 * QEMU's and of space-daemon's stand-in, 5 the read-only file, 6 the sealed memfd. */
#include "os/confine.h"
#include "os/fd.h"
#include "os/jail.h"
#include "os/sock.h"
#include "os/spawn.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define TARGETS 4
#define INFO_FD 7

enum inner { QEMU, DAEMON, INNERS };

static int start(enum inner which, const struct jail_paths *p, char **targets, int *ret_sync,
		 struct fail *f)
{
	AUTO(jail_argv_done) struct jail_argv argv = {0};
	AUTO(fd_drop) int theirs = -1;
	AUTO(fd_drop) int info = -1;
	AUTO(fd_drop) int info_end = -1;
	const char *tail[TARGETS + 2] = {which == QEMU ? "qemu" : "daemon"};
	char text[JAIL_INFO_MAX];
	union {
		char *const *in;
		const char *const *out;
	} args;
	size_t n = 0;
	ssize_t got;
	pid_t inner;
	pid_t pid;
	int ends[2];

	for (size_t i = 0; i < TARGETS; i++)
		tail[i + 1] = targets[i];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	*ret_sync = ends[0];
	theirs = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	info = ends[0];
	info_end = ends[1];
	if (which == QEMU)
		jail_argv_qemu(p, false, INFO_FD, tail, &argv);
	else
		jail_argv_daemon(p, INFO_FD, tail, &argv);
	args.in = argv.argv;
	const int map[] = {-1, -1, 2, 3 + (int)which, theirs, 5, 6, info_end};
	const struct spawn_spec spec = {.argv = args.out, .fds = map, .n_fds = ARRAY_LEN(map)};

	if (spawn(&spec, &pid, NULL, f) < 0)
		return -1;
	fd_drop(&info_end);
	while (n < sizeof text && (got = read(info, text + n, sizeof text - n)) > 0)
		n += (size_t)got;
	return jail_info_parse(text, n, &inner);
}

int main(int argc, char **argv)
{
	struct jail_paths paths;
	struct fail f = {0};
	int sync[INNERS] = {-1, -1};
	int status = 0;
	char byte;

	if (argc != TARGETS + 1 || confine_enter(CONFINE_KEEPER, &f) < 0 ||
	    jail_paths_probe(JAIL_LIBEXEC, NULL, &paths, &f) < 0) {
		(void)fprintf(stderr, "stand-in of the keeper: %s\n", f.text);
		return 125;
	}
	for (int i = 0; i < INNERS; i++)
		if (start((enum inner)i, &paths, argv + 1, &sync[i], &f) < 0) {
			(void)fprintf(stderr, "stand-in of the keeper: inner jail %d: %s\n", i,
				      f.text);
			return 125;
		}
	/* Twice: both ready, both done. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < INNERS; i++)
			if (read(sync[i], &byte, 1) != 1)
				return 125;
		for (int i = 0; i < INNERS; i++)
			if (write(sync[i], "g", 1) != 1)
				return 125;
	}
	for (int i = 0; i < INNERS; i++)
		if (wait(&status) < 0 || status != 0)
			return 125;
	return 0;
}
