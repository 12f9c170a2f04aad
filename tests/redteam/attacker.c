/* The program that stands in QEMU's and in space-daemon's place. Arguments: role, then the targets.
 * Descriptor 3 takes its report, 4 is a socket to the stand-in of the keeper (one byte "ready", one
 * byte back when the other attacker is ready too), 5 a file given read-only, 6 a sealed memfd.
 *
 * Report, a line each: "fds 0 1 2 ...", then "<place> <attempt> <result>". */
#include "attempts.h"

#include "base/str.h"
#include "os/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#define REPORT  3
#define SYNC    4
#define SEALED  6
#define FD_SCAN 1024

static void report(const char *text, int n)
{
	if (n < 0 || write(REPORT, text, (size_t)n) != n)
		_exit(125);
}

static void report_fds(void)
{
	char line[512];
	int n = snprintf(line, sizeof line, "fds");

	for (int fd = 0; fd < FD_SCAN; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && n < 400)
			n += snprintf(line + n, sizeof line - (size_t)n, " %d", fd);
	n += snprintf(line + n, sizeof line - (size_t)n, "\n");
	report(line, n);
}

static void confine(void)
{
	struct fail f = {0};

	if (confine_enter(CONFINE_DAEMON, &f) < 0) {
		(void)fprintf(stderr, "%s\n", f.text);
		_exit(0); /* shows as a success of the attempt: the test fails */
	}
}

static void try_all(unsigned place, const struct targets *t, void (*prepare)(void))
{
	for (size_t i = 0; i < n_attempts; i++) {
		char line[128];

		report(line, snprintf(line, sizeof line, "%u %zu %d\n", place, i,
				      attempt_run(&attempts[i], t, prepare)));
	}
}

/* The template's memory must not change, whatever its holder does. */
static void try_sealed(void)
{
	char line[64];
	bool is_kept =
		write(SEALED, "x", 1) < 0 && ftruncate(SEALED, 0) < 0 &&
		fallocate(SEALED, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0 &&
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, SEALED, 0) == MAP_FAILED;

	report(line, snprintf(line, sizeof line, "sealed %d\n", is_kept));
}

static int number(const char *text)
{
	uint64_t v = 0;

	if (str_u64(text, INT32_MAX, &v) < 0)
		_exit(125);
	return (int)v;
}

static void exchange(void)
{
	char byte = 'r';

	if (write(SYNC, &byte, 1) != 1 || read(SYNC, &byte, 1) != 1)
		_exit(125);
}

int main(int argc, char **argv)
{
	bool is_qemu = argc > 1 && strcmp(argv[1], "qemu") == 0;
	struct targets t = {0};

	if (argc != 6)
		return 125;
	t.peer = is_qemu ? "space-redteam-daemon" : "space-redteam-qemu";
	t.host = argv[2];
	t.tcp_port = (uint16_t)number(argv[3]);
	t.shm_id = number(argv[4]);
	t.host_pid = number(argv[5]);
	report_fds();
	if (abstract_listen(is_qemu ? "space-redteam-qemu" : "space-redteam-daemon") < 0)
		return 125;
	exchange();
	try_sealed();
	try_all(is_qemu ? IN_QEMU : IN_DAEMON, &t, NULL);
	if (!is_qemu)
		try_all(IN_CONFINED, &t, confine);
	exchange(); /* both stay until both are done: the other could still be there to be seen */
	return 0;
}
