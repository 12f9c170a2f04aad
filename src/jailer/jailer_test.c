/* The jailer as a whole, with stand-ins for spaced and space-keeper: this very program, copied
 * under their names. The stand-in of spaced goes through phases, one a start, kept in state/phase;
 * the jailer restarts it between them. Its output reaches the test through the jailer.
 *
 * Needs bubblewrap and user namespaces; as root it checks uids too. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/jail.h"
#include "os/pidfd.h"
#include "os/seqpacket.h"
#include "os/sock.h"
#include "os/spawn.h"
#include "proc.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEADLINE_MS  20000
#define JAILER_FD    3
#define ID_A         "i000000000000000000a"
#define ID_B         "i000000000000000000b"
#define ID_C         "i000000000000000000c"
#define MEMORY_LEAST (32u * 1024 * 1024)
#define FILE_LEAST   (4u * 1024 * 1024)

/* --- stand-in of space-keeper --- */

/* Answers everyone who connects with its pidfd, and has a child that would stay behind. */
static _Noreturn void keeper_main(void)
{
	int own = -1;

	(void)pidfd_of(getpid(), &own);
	if (fork() == 0)
		for (;;)
			(void)pause();
	for (;;) {
		struct pollfd p = {.fd = KEEPER_FD_SOCK, .events = POLLIN};
		int fd;

		if (poll(&p, 1, -1) == 1 && sock_accept(KEEPER_FD_SOCK, &fd) == 0) {
			(void)seqpacket_send(fd, "up", 2, &own, 1);
			(void)close(fd);
		}
	}
}

/* --- stand-in of spaced --- */

struct answer {
	enum msg_type type;
	uint32_t seq;
	char id[SANDBOX_ID_SIZE];
	uint32_t value;
	struct jail_hello hello;
};

static void ask(enum msg_type type, uint32_t seq, const struct wr *body, const int *fds, size_t n)
{
	uint8_t packet[1024];
	struct wr w = wr_of(packet, sizeof packet);

	msg_head_print(&w, type, seq);
	wr_bytes(&w, body->start, wr_len(body));
	EXPECT_EQ(msg_name(type), seqpacket_send(JAILER_FD, packet, wr_len(&w), fds, n), 0);
}

static struct answer hear(void)
{
	struct pollfd p = {.fd = JAILER_FD, .events = POLLIN};
	struct answer a = {0};
	uint8_t packet[1024];
	size_t n_fds;
	size_t n;
	int fd;
	struct rd in;

	if (poll(&p, 1, DEADLINE_MS) != 1 ||
	    seqpacket_recv(JAILER_FD, packet, sizeof packet, &n, &fd, 1, &n_fds) < 0)
		return a;
	in = rd_of(packet, n);
	if (msg_head_parse(&in, &a.type, &a.seq) < 0)
		return (struct answer){0};
	if (a.type == MSG_JAIL_HELLO) {
		EXPECT_EQ("hello", jail_hello_parse(&a.hello, in), 0);
	} else {
		rd_str(&in, a.id, sizeof a.id);
		a.value = rd_be32(&in);
	}
	return a;
}

static void expect(const char *says, enum msg_type type, uint32_t seq, const char *id)
{
	struct answer a = hear();

	EXPECT_STR(says, msg_name(a.type), msg_name(type));
	EXPECT_EQ(says, a.seq, seq);
	EXPECT_STR(says, a.id, id);
}

static void expect_failed(const char *says, uint32_t seq, uint32_t err)
{
	struct answer a = hear();

	EXPECT_STR(says, msg_name(a.type), msg_name(MSG_JAIL_FAILED));
	EXPECT_EQ(says, a.seq, seq);
	EXPECT_EQ(says, a.value, err);
}

static void start(int data, const struct jail_start *q, uint32_t seq)
{
	static const char *const names[] = {"keeper.sock", "daemon.sock", "platform.sock"};
	AUTO(str_drop) char *path = xasprintf("run/%s", q->id);
	AUTO(fd_drop) int dir = -1;
	struct fail f = {0};
	uint8_t bytes[256];
	struct wr w = wr_of(bytes, sizeof bytes);
	int fds[JAIL_FDS];

	EXPECT_EQ(f.text, dir_make(data, path, 0700, &f) | dir_open(data, path, &dir, &f), 0);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(f.text, sock_unix_listen(dir, names[i], SOCK_SEQPACKET, &fds[i], &f), 0);
	EXPECT_EQ(f.text, file_open(dir, "exit", O_RDWR | O_CREAT, 0600, &fds[JAIL_FD_EXIT], &f),
		  0);
	EXPECT_EQ(f.text,
		  file_open(dir, "log", O_RDWR | O_CREAT | O_APPEND, 0600, &fds[JAIL_FD_LOG], &f),
		  0);
	jail_start_print(&w, q);
	ask(MSG_JAIL_START, seq, &w, fds, JAIL_FDS);
	for (int i = 0; i < JAIL_FDS; i++)
		(void)close(fds[i]);
}

static void ask_kill(const char *id, uint32_t seq, int pidfd)
{
	uint8_t bytes[64];
	struct wr w = wr_of(bytes, sizeof bytes);

	wr_str(&w, id);
	ask(MSG_JAIL_KILL, seq, &w, &pidfd, pidfd >= 0);
}

/* Whether a keeper answers on its socket; its pidfd when ret is not NULL. */
static bool is_up(int data, const char *id, int *ret)
{
	AUTO(str_drop) char *path = xasprintf("run/%s", id);
	AUTO(fd_drop) int pidfd = -1;
	AUTO(fd_drop) int dir = -1;
	AUTO(fd_drop) int fd = -1;
	struct pollfd p = {.events = POLLIN};
	size_t n_fds = 0;
	char text[8];
	size_t n;

	if (dir_open(data, path, &dir, NULL) < 0 ||
	    sock_unix_connect(dir, "keeper.sock", SOCK_SEQPACKET, &fd, NULL) < 0)
		return false;
	p.fd = fd;
	if (poll(&p, 1, DEADLINE_MS) != 1 ||
	    seqpacket_recv(fd, text, sizeof text, &n, &pidfd, 1, &n_fds) < 0 || n_fds != 1)
		return false;
	if (ret != NULL)
		*ret = fd_take(&pidfd);
	return true;
}

/* /proc/PID/limits is open to all. */
static bool has_file_limit(int pidfd, uint64_t bytes)
{
	AUTO(str_drop)
	char *want = xasprintf("%-26s%-21llu%-21llu", "Max file size", (unsigned long long)bytes,
			       (unsigned long long)bytes);
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *path = NULL;
	AUTO(fd_drop) int fd = -1;
	pid_t pid = 0;
	size_t n;

	if (pidfd_pid(pidfd, &pid) < 0)
		return false;
	path = xasprintf("/proc/%d/limits", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && fd_slurp(fd, 16384, &text, &n) == 0 && strstr(text, want) != NULL;
}

struct count {
	uid_t uid;
	unsigned n;
};

static void count_uid(void *arg, pid_t pid, const struct proc_status *s)
{
	struct count *c = arg;

	(void)pid;
	c->n += s->uid[0] == c->uid;
}

static unsigned processes_of(uid_t uid)
{
	struct count c = {.uid = uid};

	(void)proc_each(count_uid, &c);
	return c.n;
}

static void phase_starts(int data, const struct jail_hello *h)
{
	struct jail_start q = {.id = ID_A,
			       .memory_max_bytes = MEMORY_LEAST,
			       .file_max_bytes = FILE_LEAST,
			       .pids_max = 16};
	AUTO(fd_drop) int keeper = -1;
	struct answer a;
	struct answer b;

	start(data, &q, 1);
	a = hear();
	EXPECT_STR("the smallest limits start", msg_name(a.type), msg_name(MSG_JAIL_STARTED));
	EXPECT("its keeper answers", is_up(data, ID_A, &keeper));
	EXPECT("no file of it grows without end", has_file_limit(keeper, FILE_LEAST));
	start(data, &q, 2);
	expect_failed("a second one of that id", 2, EEXIST);
	q = (struct jail_start){.id = ID_B, .cpu_max_permille = 50};
	start(data, &q, 3);
	b = hear();
	EXPECT_STR("another starts", msg_name(b.type), msg_name(MSG_JAIL_STARTED));
	if (h->is_root)
		EXPECT("with a uid of its own", a.value != b.value && a.value != geteuid());
	else
		EXPECT("with our uid", a.value == geteuid());
	ask_kill(ID_A, 4, -1);
	expect("it is gone", MSG_JAIL_GONE, 4, ID_A);
	EXPECT("its keeper too", !is_up(data, ID_A, NULL));
	if (h->is_root)
		EXPECT_EQ("and all that had its uid", processes_of(a.value), 0);
	EXPECT("the other one lives", is_up(data, ID_B, NULL));
}

/* Whoever gets a descriptor of an image, and has its owner's uid, still cannot write to it. */
static void expect_read_only(int data)
{
	AUTO(fd_drop) int image = -1;
	int again = -1;

	EXPECT_EQ("an image opens", file_open(data, "images/x", O_RDONLY, 0, &image, NULL), 0);
	again = fd_reopen(image, O_RDWR);
	EXPECT("not for writing", again == -EROFS || again == -EACCES);
	EXPECT("nor is its mode changed", fchmod(image, 0666) < 0);
	EXPECT("nor is one made",
	       file_open(data, "images/y", O_WRONLY | O_CREAT, 0600, &again, NULL) < 0);
}

static void phase_refusals(int data)
{
	struct jail_start q = {.id = ID_C, .memory_max_bytes = MEMORY_LEAST - 1};
	AUTO(fd_drop) int own = -1;

	start(data, &q, 10);
	expect_failed("memory one below the least", 10, ERANGE);
	q = (struct jail_start){.id = ID_C, .file_max_bytes = FILE_LEAST - 1};
	start(data, &q, 15);
	expect_failed("files one below the least", 15, ERANGE);
	q = (struct jail_start){.id = ID_C, .pids_max = 15};
	start(data, &q, 11);
	expect_failed("pids one below the least", 11, ERANGE);
	q = (struct jail_start){.id = ID_C, .cpu_max_permille = 49};
	start(data, &q, 12);
	expect_failed("cpu one below the least", 12, ERANGE);
	ask_kill(ID_C, 13, -1);
	expect_failed("nobody of that id", 13, ESRCH);
	EXPECT_EQ("own pidfd", pidfd_of(getpid(), &own), 0);
	ask_kill(ID_C, 14, own);
	expect_failed("a pidfd of no keeper", 14, EPERM);
}

/* An earlier jailer's sandbox is ended by its pidfd; after JAIL_QUIT the last one may still end. */
static void phase_adopts(int data, const struct jail_hello *h)
{
	struct wr none = wr_of(NULL, 0);
	AUTO(fd_drop) int keeper = -1;
	AUTO(fd_drop) int other = -1;
	AUTO(fd_drop) int own = -1;

	/* What a captured keeper could hand over for its own. */
	EXPECT_EQ("own pidfd", pidfd_of(getpid(), &own), 0);
	ask_kill(ID_A, 38, own);
	if (h->has_limits)
		expect("a keeper that lies about itself is ended by its cgroup", MSG_JAIL_GONE, 38,
		       ID_A);
	else
		expect_failed("without limits only a keeper's pidfd counts", 38, EPERM);
	if (!h->has_limits && is_up(data, ID_A, &other)) {
		ask_kill(ID_A, 39, other);
		expect("so it is ended by that", MSG_JAIL_GONE, 39, ID_A);
		fd_drop(&other);
	}

	EXPECT("a keeper outlives its jailer", is_up(data, ID_C, &keeper));
	ask_kill(ID_C, 40, keeper);
	expect("an earlier jailer's is gone", MSG_JAIL_GONE, 40, ID_C);
	EXPECT("really", !is_up(data, ID_C, NULL));
	start(data, &(struct jail_start){.id = ID_B}, 41);
	expect("one for the end", MSG_JAIL_STARTED, 41, ID_B);
	EXPECT("which answers", is_up(data, ID_B, &other));
	ask_kill(ID_C, 44, other);
	expect_failed("one keeper under two names", 44, EPERM);
	ask(MSG_JAIL_QUIT, 42, &none, NULL, 0);
	ask_kill(ID_B, 43, -1);
	expect("which ends after quit", MSG_JAIL_GONE, 43, ID_B);
}

static void phase_done(int data, char phase)
{
	char next = (char)(phase + 1);

	EXPECT_EQ("phase", file_replace(data, "state/phase", 0600, &next, 1, NULL), 0);
	(void)printf("phase %c: %u passed, %u failed\n", phase, test_passed, test_failed);
	(void)fflush(stdout);
}

static int spaced_main(const char *path)
{
	AUTO(fd_drop) int data = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(str_drop) char *phase = NULL;
	struct answer a = hear();
	size_t n;

	EXPECT_STR("first comes", msg_name(a.type), msg_name(MSG_JAIL_HELLO));
	if (file_slurp(data, "state/phase", 1, &phase, &n, NULL) < 0)
		phase = xstrdup("1");
	switch (phase[0]) {
	case '1':
		phase_starts(data, &a.hello);
		phase_done(data, '1');
		return raise(SIGKILL);
	case '2':
		EXPECT("a sandbox outlives spaced", is_up(data, ID_B, NULL));
		expect_read_only(data);
		phase_refusals(data);
		ask_kill(ID_B, 20, -1);
		expect("one of an earlier spaced is gone", MSG_JAIL_GONE, 20, ID_B);
		phase_done(data, '2');
		(void)seqpacket_send(JAILER_FD, "noise", 5, NULL, 0);
		return pause(); /* the jailer ends us */
	case '3':
		start(data, &(struct jail_start){.id = ID_C}, 30);
		expect("a third starts", MSG_JAIL_STARTED, 30, ID_C);
		EXPECT("and answers", is_up(data, ID_C, NULL));
		start(data, &(struct jail_start){.id = ID_A}, 31);
		expect("a fourth too", MSG_JAIL_STARTED, 31, ID_A);
		EXPECT("and answers", is_up(data, ID_A, NULL));
		phase_done(data, '3');
		(void)printf("kill the jailer\n");
		(void)fflush(stdout);
		(void)hear(); /* end of file */
		return 0;
	case '4':
		phase_adopts(data, &a.hello);
		phase_done(data, '4');
		return 0;
	default:
		return 3;
	}
}

/* --- the test --- */

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

	if (in < 0 || out < 0 || fstat(in, &st) < 0 || fchmod(out, 0755) < 0)
		return -errno;
	return fd_copy(out, in, (uint64_t)st.st_size, false);
}

static int make_folders(const char *top)
{
	static const char *const programs[] = {"spaced", "space-keeper", "space-daemon"};
	AUTO(str_drop) char *libexec = xasprintf("%s/libexec", top);
	AUTO(str_drop) char *images = xasprintf("%s/data/images", top);
	AUTO(str_drop) char *data = xasprintf("%s/data", top);
	int err = 0;

	if (chmod(top, 0755) < 0 || mkdir(libexec, 0755) < 0 || mkdir(data, 0755) < 0 ||
	    mkdir(images, 0755) < 0 || chmod(images, 0755) < 0 || chmod(libexec, 0755) < 0)
		return -errno;
	err = copy_program("/dev/null", images, "x");
	for (size_t i = 0; err == 0 && i < ARRAY_LEN(programs); i++)
		err = copy_program("/proc/self/exe", libexec, programs[i]);
	return err;
}

/* Copies what the jailer's spaced prints and counts it; ends the jailer when it is asked to. */
static void follow(int fd, pid_t jailer)
{
	FILE *in = fdopen(fd, "r");
	char line[512];

	while (in != NULL && fgets(line, sizeof line, in) != NULL) {
		unsigned passed;
		unsigned failed;
		char phase;

		if (sscanf(line, "phase %c: %u passed, %u failed", &phase, &passed, &failed) == 3) {
			test_passed += passed;
			test_failed += failed;
		} else if (strcmp(line, "kill the jailer\n") == 0) {
			(void)kill(jailer, SIGKILL);
		} else {
			(void)fputs(line, stdout);
		}
	}
	if (in != NULL)
		(void)fclose(in);
}

/* The wait status of the jailer. */
static int run_jailer(const char *program, const char *top)
{
	AUTO(str_drop) char *libexec = xasprintf("%s/libexec", top);
	AUTO(str_drop) char *data = xasprintf("%s/data", top);
	const char *const argv[] = {program, "--libexec", libexec, "--data", data, "--", NULL};
	struct fail f = {0};
	int status = -1;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	const int map[] = {-1, ends[1], STDERR_FILENO};
	const struct spawn_spec spec = {.argv = argv, .fds = map, .n_fds = ARRAY_LEN(map)};

	if (spawn(&spec, &pid, NULL, &f) < 0) {
		(void)printf("%s\n", f.text);
		return -1;
	}
	(void)close(ends[1]);
	follow(ends[0], pid);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	char top[] = "/tmp/space-jailer-XXXXXX";
	AUTO(fd_drop) int tmp = -1;
	int status;

	if (name != NULL && strcmp(name, "/space-keeper") == 0)
		keeper_main();
	if (name != NULL && strcmp(name, "/spaced") == 0 && argc == 5)
		return spaced_main(argv[2]);
	if (argc != 2)
		return 2;
	if (!can_unshare())
		return test_skip("no user namespaces here");
	if (access(JAIL_BWRAP, X_OK) < 0 || access(JAIL_QEMU, X_OK) < 0)
		return test_skip("bubblewrap or QEMU is not installed");
	/* The keeper that outlives its jailer is ours to reap then. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (mkdtemp(top) == NULL || make_folders(top) < 0)
		return 1;
	status = run_jailer(argv[1], top);
	EXPECT("the first jailer was killed", WIFSIGNALED(status));
	status = run_jailer(argv[1], top);
	EXPECT("the second ends well", WIFEXITED(status) && WEXITSTATUS(status) == 0);
	while (wait(&status) > 0) /* returns when nothing of the sandboxes is left */
		;
	EXPECT_EQ("nobody is left", errno, ECHILD);
	tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	EXPECT_EQ("folder", dir_remove(tmp, top + strlen("/tmp/"), NULL), 0);
	return test_done();
}
