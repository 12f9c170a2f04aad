/* A keeper in its outer jail, with a real QEMU, space-daemon and guest: boots a template, saves it,
 * restores it from a sealed memfd several times, and says how long that took. As root the jail has
 * a uid of its own, else the caller's.
 *
 * Arguments: space-keeper, space-daemon. $SPACE_TEST_DATA/seed: a data folder with the template
 * 'base'; skips without it, or without user namespaces. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/test.h"
#include "keeper/test_spaced.h"
#include "os/fd.h"
#include "os/jail.h"
#include "os/memfd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "os/spawn.h"
#include "os/test_tmp.h"
#include "store/qcow2.h"
#include "wire/json.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define JAIL_UID    0x53500ffeu /* in the jailer's range, which it fills from the other end */
#define MEMORY_MIB  256
#define DISK_BYTES  ((uint64_t)4 << 30)
#define DEADLINE_MS 180000 /* emulated, on a loaded machine */
#define RESTORES    3
#define JSON_MAX    65536

struct world {
	struct test_tmp tmp; /* programs, sockets, files */
	struct jail_paths paths;
	int kernel;
	int initrd;
	int base;
	int ram;
	int state;
	int template_layer;
};

struct jail {
	pid_t pid; /* the outer bwrap */
	uint64_t start_ns;
	struct test_spaced spaced;
	int console;
	int log;
	int record;
};

static bool can_unshare(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* --- what the sandboxes are made of --- */

static int program_copy(const struct world *w, const char *from, const char *name)
{
	AUTO(fd_drop) int in = open(from, O_RDONLY | O_CLOEXEC);
	AUTO(fd_drop) int out = -1;
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0 ||
	    file_open(w->tmp.fd, name, O_WRONLY | O_CREAT, 0755, &out, NULL) < 0 ||
	    fchmod(out, 0755) < 0)
		return -1;
	return fd_copy(out, in, (uint64_t)st.st_size, false);
}

static int part_open(int seed, const json_t *template, const char *key, const char *suffix)
{
	struct fail f = {0};
	const char *path = "";
	AUTO(str_drop) char *whole = NULL;
	int fd = -1;

	if (json_get_str(template, key, JSON_REQUIRED, 1, 512, &path, &f) < 0)
		return -1;
	whole = xasprintf("%s%s", path, suffix);
	return file_open(seed, whole, O_RDONLY, 0, &fd, &f) < 0 ? -1 : fd;
}

/* False: there is no template. */
static bool template_open(struct world *w)
{
	const char *data = getenv("SPACE_TEST_DATA");
	AUTO(str_drop) char *path = xasprintf("%s/seed", data ? data : "/nonexistent");
	AUTO(fd_drop) int seed = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(str_drop) char *text = NULL;
	AUTO(json_drop) json_t *j = NULL;
	struct fail f = {0};
	size_t n;

	if (seed < 0 || file_slurp(seed, "templates/base.json", JSON_MAX, &text, &n, &f) < 0 ||
	    json_parse(&j, text, n, JSON_MAX, &f) < 0)
		return false;
	w->kernel = part_open(seed, j, "kernel", "/vmlinuz");
	w->initrd = part_open(seed, j, "initrd", "");
	w->base = part_open(seed, j, "image", "");
	return w->kernel >= 0 && w->initrd >= 0 && w->base >= 0;
}

static int layer_make(const struct world *w, const char *name)
{
	int fd = -1;

	CHECK(file_open(w->tmp.fd, name, O_RDWR | O_CREAT | O_TRUNC, 0600, &fd, NULL) == 0);
	CHECK(qcow2_empty_write(fd, DISK_BYTES) == 0);
	return fd;
}

/* --- one jail --- */

static int file_make(const struct world *w, const char *name, int flags)
{
	int fd = -1;

	CHECK(file_open(w->tmp.fd, name, O_RDWR | O_CREAT | O_TRUNC | flags, 0600, &fd, NULL) == 0);
	return fd;
}

static void jail_spawn(const struct world *w, struct jail *j, const int *fds, size_t n)
{
	AUTO(jail_argv_done) struct jail_argv argv = {0};
	union {
		char *const *in;
		const char *const *out;
	} args;
	struct spawn_spec spec = {.fds = fds,
				  .n_fds = n,
				  .new_session = true,
				  .no_new_privs = true,
				  .has_ids = geteuid() == 0,
				  .uid = JAIL_UID,
				  .gid = JAIL_UID};
	struct fail f = {0};

	jail_argv_keeper(&w->paths, false, -1, NULL, &argv);
	args.in = argv.argv;
	spec.argv = args.out;
	j->start_ns = clock_mono_ns();
	EXPECT_EQ("the jail starts", spawn(&spec, &j->pid, NULL, &f), 0);
}

static void jail_start(const struct world *w, struct jail *j)
{
	int fds[KEEPER_FD_EXIT + 1] = {-1, -1, -1, -1, -1, -1, -1};

	*j = (struct jail){.pid = -1};
	j->console = file_make(w, "console.log", 0);
	j->log = file_make(w, "keeper.log", O_APPEND);
	j->record = file_make(w, "exit", 0);
	CHECK(sock_unix_listen(w->tmp.fd, "keeper.sock", SOCK_SEQPACKET, &fds[KEEPER_FD_SOCK],
			       NULL) == 0);
	CHECK(sock_unix_listen(w->tmp.fd, "c", SOCK_STREAM, &fds[KEEPER_FD_CLIENT], NULL) == 0);
	CHECK(sock_unix_listen(w->tmp.fd, "p", SOCK_STREAM, &fds[KEEPER_FD_PLATFORM], NULL) == 0);
	fds[STDERR_FILENO] = j->log;
	fds[KEEPER_FD_EXIT] = j->record;
	j->spaced = (struct test_spaced){.fd = -1, .record = j->record};
	test_spaced_connect(&j->spaced, w->tmp.fd);
	jail_spawn(w, j, fds, ARRAY_LEN(fds));
	for (int i = KEEPER_FD_SOCK; i <= KEEPER_FD_PLATFORM; i++)
		fd_drop(&fds[i]);
}

/* Milliseconds from the jail's start until that state was heard; 0: it did not come. */
static unsigned until(struct jail *j, enum vm_state state)
{
	while (j->spaced.state != state && j->spaced.state != VM_STOPPED)
		if (!test_spaced_listen(&j->spaced, DEADLINE_MS))
			return 0;
	return j->spaced.state == state ? (unsigned)((clock_mono_ns() - j->start_ns) / NS_PER_MS)
					: 0;
}

static void log_show(const char *name, int fd)
{
	AUTO(str_drop) char *text = NULL;
	size_t n;

	if (fd_slurp(fd, JSON_MAX * 32, &text, &n) == 0 && n)
		printf("--- %s\n%s---\n", name, text);
}

/* The end of an orderly sandbox. */
static void jail_end(struct jail *j, const char *want)
{
	unsigned failed = test_failed;
	int status = -1;

	(void)until(j, VM_STOPPED);
	EXPECT_STR("what spaced heard", j->spaced.heard, want);
	EXPECT_STR("all within the contract", j->spaced.wrong, NULL);
	EXPECT("the exit record was first", j->spaced.has_seen_record);
	EXPECT("the keeper closes", !test_spaced_listen(&j->spaced, DEADLINE_MS));
	if (j->pid > 0) {
		EXPECT_EQ("the jail ends", waitpid(j->pid, &status, 0), j->pid);
		EXPECT_EQ("well", status, 0);
	}
	if (test_failed != failed) {
		log_show("keeper.log", j->log);
		log_show("console.log", j->console);
	}
	fd_drop(&j->spaced.fd);
	fd_drop(&j->console);
	fd_drop(&j->log);
	fd_drop(&j->record);
}

/* Closed for good, as a template's layer is: QEMU takes it in exactly this access mode. */
static void template_close(struct world *w)
{
	fd_drop(&w->template_layer);
	CHECK(file_open(w->tmp.fd, "template.qcow2", O_RDONLY, 0, &w->template_layer, NULL) == 0);
}

/* --- the test --- */

static const struct vm_spec spec = {
	.id = TEST_SANDBOX, .accel = ACCEL_TCG, .memory_mib = MEMORY_MIB, .vcpus = 1};

static void test_boot(struct world *w)
{
	struct jail j;
	int fds[VM_BOOT_FDS];
	unsigned ready_ms;

	jail_start(w, &j);
	fds[BOOT_FD_RAM] = w->ram;
	fds[BOOT_FD_KERNEL] = w->kernel;
	fds[BOOT_FD_INITRD] = w->initrd;
	fds[BOOT_FD_BASE] = w->base;
	fds[BOOT_FD_LAYER] = w->template_layer;
	fds[BOOT_FD_CONSOLE] = j.console;
	test_spaced_begin(&j.spaced, &spec, true, fds);
	ready_ms = until(&j, VM_READY);
	if (EXPECT("the guest answers", ready_ms > 0))
		test_spaced_say(&j.spaced, MSG_VM_SAVE, NULL, 0, &w->state, 1);
	jail_end(&j, "hello starting running ready saving saved stopped: saved");
	printf("boot: %u ms from the jail's start to the guest's answer\n", ready_ms);
}

static void test_restore(struct world *w)
{
	AUTO(fd_drop) int layer = layer_make(w, "layer.qcow2");
	struct jail j;
	int fds[VM_RESTORE_FDS];
	unsigned running_ms;
	unsigned ready_ms;

	jail_start(w, &j);
	fds[RESTORE_FD_RAM] = w->ram;
	fds[RESTORE_FD_STATE] = w->state;
	fds[RESTORE_FD_BASE] = w->base;
	fds[RESTORE_FD_TEMPLATE_LAYER] = w->template_layer;
	fds[RESTORE_FD_LAYER] = layer;
	fds[RESTORE_FD_CONSOLE] = j.console;
	test_spaced_begin(&j.spaced, &spec, false, fds);
	running_ms = until(&j, VM_RUNNING);
	ready_ms = until(&j, VM_READY);
	if (EXPECT("the restored guest answers", ready_ms > 0))
		test_spaced_say(&j.spaced, MSG_VM_STOP, NULL, 0, NULL, 0);
	jail_end(&j, "hello starting running ready stopped: ended by the platform");
	printf("restore: %u ms from the jail's start until the guest runs, %u until it answers\n",
	       running_ms, ready_ms);
}

static void world_done(struct world *w)
{
	jail_paths_done(&w->paths);
	fd_drop(&w->kernel);
	fd_drop(&w->initrd);
	fd_drop(&w->base);
	fd_drop(&w->ram);
	fd_drop(&w->state);
	fd_drop(&w->template_layer);
	test_tmp_drop(&w->tmp);
}

static void test_all(struct world *w, char **programs)
{
	struct fail f = {0};

	CHECK(fchmod(w->tmp.fd, 0755) == 0);
	CHECK(program_copy(w, programs[0], "space-keeper") == 0);
	CHECK(program_copy(w, programs[1], "space-daemon") == 0);
	if (!EXPECT_EQ("the jail's parts", jail_paths_probe(w->tmp.path, NULL, &w->paths, &f), 0))
		return;
	CHECK(memfd_make("ram", (uint64_t)MEMORY_MIB << 20, &w->ram, &f) == 0);
	CHECK(memfd_make("state", 0, &w->state, &f) == 0);
	w->template_layer = layer_make(w, "template.qcow2");
	test_boot(w);
	template_close(w);
	if (!EXPECT_EQ("RAM can be sealed: nobody maps it", memfd_seal(w->ram, &f), 0))
		return;
	for (int i = 0; i < RESTORES; i++)
		test_restore(w);
}

int main(int argc, char **argv)
{
	struct world w = {.kernel = -1,
			  .initrd = -1,
			  .base = -1,
			  .ram = -1,
			  .state = -1,
			  .template_layer = -1};

	if (argc != 3)
		return test_skip("the programs are not named");
	if (!can_unshare())
		return test_skip("user namespaces are not allowed here");
	if (!template_open(&w))
		return test_skip("there is no template 'base': make test builds it");
	(void)signal(SIGPIPE, SIG_IGN);
	test_tmp_make(&w.tmp);
	test_all(&w, argv + 1);
	world_done(&w);
	return test_done();
}
