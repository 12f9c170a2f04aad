/* Puts attackers in the place of QEMU and of space-daemon, in the jails of os/jail.c and the role
 * of os/confine.c, and asserts that everything is refused and that they hold exactly the
 * descriptors they were given. As root the jail runs as a uid of its own, else as the caller's.
 *
 * Arguments: the attacker and the stand-in of the keeper. Needs user namespaces; skips without. */
#include "attempts.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/jail.h"
#include "os/memfd.h"
#include "os/sock.h"
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define JAIL_UID    0x53500fffu /* the last of the jailer's range */
#define REPORT_MAX  65536
#define DEADLINE_MS 60000
#define PLACES      3

static const char *const place_name[PLACES] = {"qemu", "daemon", "confined"};

struct world {
	char dir[64]; /* a folder of programs, open to the jail's uid */
	char host_socket[64];
	struct targets targets;
	int shm_id;
	struct jail_paths paths;
	int report[2]; /* of QEMU's and space-daemon's place */
	pid_t jail;
};

static bool can_unshare(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int copy_program(const char *from, const char *dir, const char *name)
{
	AUTO(str_drop) char *to = xasprintf("%s/%s", dir, name);
	AUTO(fd_drop) int in = open(from, O_RDONLY | O_CLOEXEC);
	AUTO(fd_drop) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		return -errno;
	if (fchmod(out, 0755) < 0)
		return -errno;
	return fd_copy(out, in, (uint64_t)st.st_size, false);
}

static int make_world(struct world *w, const char *attacker, const char *keeper, struct fail *f)
{
	AUTO(str_drop) char *qemu = NULL;
	uint16_t port;
	int err;
	int fd;

	(void)snprintf(w->dir, sizeof w->dir, "/tmp/space-redteam-XXXXXX");
	if (mkdtemp(w->dir) == NULL || chmod(w->dir, 0755) < 0)
		return fail_errno(f, -errno, "cannot make a folder");
	err = copy_program(keeper, w->dir, "space-keeper");
	if (err == 0)
		err = copy_program(attacker, w->dir, "space-daemon");
	if (err == 0)
		err = copy_program(attacker, w->dir, "qemu");
	if (err < 0)
		return fail_errno(f, err, "cannot copy the programs");
	qemu = xasprintf("%s/qemu", w->dir);
	err = jail_paths_probe(w->dir, qemu, &w->paths, f);
	if (err < 0)
		return err;
	(void)snprintf(w->host_socket, sizeof w->host_socket, "space-redteam-host-%d", getpid());
	if (abstract_listen(w->host_socket) < 0)
		return fail_errno(f, -errno, "cannot listen on an abstract socket");
	err = sock_tcp_listen("127.0.0.1", 0, &fd, &port, f);
	if (err < 0)
		return err;
	w->shm_id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
	if (w->shm_id < 0)
		return fail_errno(f, -errno, "cannot make shared memory");
	w->targets = (struct targets){"", w->host_socket, port, w->shm_id, getpid()};
	return 0;
}

static void end_world(struct world *w)
{
	AUTO(fd_drop) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fail f;

	jail_paths_done(&w->paths);
	(void)shmctl(w->shm_id, IPC_RMID, NULL);
	(void)dir_remove(tmp, w->dir + strlen("/tmp/"), &f);
}

/* What stands for a template's image: read by everybody, changed by nobody. */
static int open_image(const struct world *w)
{
	AUTO(str_drop) char *path = xasprintf("%s/image", w->dir);
	AUTO(fd_drop) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	return fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

static int start_jail(struct world *w, struct fail *f)
{
	AUTO(jail_argv_done) struct jail_argv argv = {0};
	AUTO(fd_drop) int file = -1;
	AUTO(fd_drop) int sealed = -1;
	AUTO(str_drop) char *port = xasprintf("%u", w->targets.tcp_port);
	AUTO(str_drop) char *shm = xasprintf("%d", w->targets.shm_id);
	AUTO(str_drop) char *pid = xasprintf("%d", w->targets.host_pid);
	const char *const tail[] = {w->host_socket, port, shm, pid, NULL};
	int ends[2][2];
	union {
		char *const *in;
		const char *const *out;
	} args;
	int err = memfd_make("redteam", 65536, &sealed, f);

	if (err == 0)
		err = memfd_seal(sealed, f);
	if (err < 0)
		return err;
	file = open_image(w);
	if (file < 0 || pipe2(ends[0], O_CLOEXEC) < 0 || pipe2(ends[1], O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot prepare descriptors");
	jail_argv_keeper(&w->paths, false, -1, tail, &argv);
	args.in = argv.argv;
	const int map[] = {-1, -1, STDERR_FILENO, ends[0][1], ends[1][1], file, sealed};
	const struct spawn_spec spec = {.argv = args.out,
					.fds = map,
					.n_fds = ARRAY_LEN(map),
					.no_new_privs = true,
					.has_ids = geteuid() == 0,
					.uid = JAIL_UID,
					.gid = JAIL_UID};

	err = spawn(&spec, &w->jail, NULL, f);
	for (int i = 0; i < 2; i++) {
		(void)close(ends[i][1]);
		w->report[i] = ends[i][0];
	}
	return err;
}

/* A NUL-terminated text; what came before the deadline. */
static char *read_report(int fd)
{
	char *text = xcalloc(1, REPORT_MAX + 1);
	size_t n = 0;

	while (n < REPORT_MAX) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&p, 1, DEADLINE_MS) <= 0)
			break;
		got = read(fd, text + n, REPORT_MAX - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return text;
}

struct results {
	bool is_known[PLACES][128];
	int result[PLACES][128];
	unsigned fds_seen;
	unsigned sealed_seen;
};

static void take_line(struct results *r, const char *line)
{
	unsigned place;
	size_t i;
	int result;

	if (str_starts(line, "fds")) {
		r->fds_seen++;
		EXPECT_STR("descriptors are the given ones", line, "fds 0 1 2 3 4 5 6");
	} else if (str_starts(line, "sealed")) {
		r->sealed_seen++;
		EXPECT_STR("sealed memory stays as it is", line, "sealed 1");
	} else if (sscanf(line, "%u %zu %d", &place, &i, &result) == 3 && i < n_attempts) {
		unsigned p = place == IN_QEMU ? 0 : place == IN_DAEMON ? 1 : 2;

		r->is_known[p][i] = true;
		r->result[p][i] = result;
	}
}

static void take_report(struct results *r, char *text)
{
	char *line = text;

	while (*line != '\0') {
		size_t n = strcspn(line, "\n");
		bool is_last = line[n] == '\0';

		line[n] = '\0';
		take_line(r, line);
		line += n + (is_last ? 0 : 1);
	}
}

static const char *result_text(int result, char *dst, size_t n)
{
	if (result == 0)
		return "SUCCEEDS";
	if (result <= KILLED)
		(void)snprintf(dst, n, "killed (%s)", sigabbrev_np(KILLED - result));
	else
		(void)snprintf(dst, n, "%s", strerrorname_np(-result));
	return dst;
}

static void judge(const struct results *r)
{
	printf("%-42s", "attempt");
	for (size_t p = 0; p < PLACES; p++)
		printf(" %-15s", place_name[p]);
	printf("\n");
	for (size_t i = 0; i < n_attempts; i++) {
		printf("%-42s", attempts[i].name);
		for (size_t p = 0; p < PLACES; p++) {
			char text[32];

			printf(" %-15s", r->is_known[p][i]
						 ? result_text(r->result[p][i], text, sizeof text)
						 : "MISSING");
		}
		printf("\n");
	}
	for (size_t i = 0; i < n_attempts; i++)
		for (size_t p = 0; p < PLACES; p++) {
			AUTO(str_drop)
			char *says = xasprintf("%s (%s)", attempts[i].name, place_name[p]);

			EXPECT(says, r->is_known[p][i]);
			if ((attempts[i].refused_in & (1u << p)) == 0)
				continue;
			if ((attempts[i].control & NEEDS_OWN_UID) != 0 && geteuid() != 0)
				continue; /* without root the sandbox owns its user's files */
			EXPECT(says, r->result[p][i] != 0);
		}
}

/* An attempt that fails for everybody would prove nothing. */
static void judge_controls(const struct targets *t)
{
	for (size_t i = 0; i < n_attempts; i++)
		if ((attempts[i].control & OUTSIDE) != 0)
			EXPECT_EQ(attempts[i].name, attempt_run(&attempts[i], t, NULL), 0);
}

int main(int argc, char **argv)
{
	static struct results r;
	struct world w = {.report = {-1, -1}, .shm_id = -1};
	struct fail f = {0};
	int status = -1;

	if (argc != 3)
		return 2;
	if (!can_unshare())
		return test_skip("no user namespaces here");
	if (access(JAIL_BWRAP, X_OK) < 0)
		return test_skip("bubblewrap is not installed");
	if (make_world(&w, argv[1], argv[2], &f) < 0 || start_jail(&w, &f) < 0) {
		printf("%s\n", f.text);
		end_world(&w);
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		AUTO(str_drop) char *text = read_report(w.report[i]);

		take_report(&r, text);
	}
	EXPECT("the jail ends", waitpid(w.jail, &status, 0) == w.jail);
	EXPECT_EQ("and ends well", status, 0);
	EXPECT_EQ("both told their descriptors", r.fds_seen, 2);
	EXPECT_EQ("both tried the sealed memory", r.sealed_seen, 2);
	judge(&r);
	judge_controls(&w.targets);
	end_world(&w);
	return test_done();
}
