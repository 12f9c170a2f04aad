/* The keeper from spaced's side, with honest and captured children (test_peer.c) where the jails
 * would be. Whatever a child does, the keeper says in time why the sandbox ended, writes it into
 * the exit record first, and ends. Argument: the peer program. */
#include "keeper/keeper.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "keeper/caplog.h"
#include "keeper/test_spaced.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "os/test_tmp.h"
#include "wire/json.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MEMORY_MIB 128
#define LONG_MS    30000 /* never reached but by a bug */
#define SHORT_MS   150
#define HIGH_FD    64

static const char *peer_path;

enum then { NOTHING, SAVE, STOP, TERM, BOOT_AGAIN };
enum shorten { NONE, BOOT, START, LOAD, STATE, QUIT, END };

struct scenario {
	const char *says;
	const char *vmm;
	const char *daemon;
	bool is_boot;
	enum then then; /* at READY */
	enum shorten shorten;
	const char *want; /* how what was heard ends */
};

/* A keeper under test, and spaced's side of it. */
struct node {
	struct test_tmp tmp;
	pid_t keeper;
	struct test_spaced spaced;
	int console;
	int log;
	int record;
	int state;
};

/* --- the keeper's process --- */

static struct keeper_times times_of(enum shorten s)
{
	struct keeper_times t = {LONG_MS, LONG_MS, LONG_MS, LONG_MS, {LONG_MS, LONG_MS, LONG_MS}};

	switch (s) {
	case NONE:
		break;
	case BOOT:
		t.boot_ms = t.restore_ms = SHORT_MS;
		break;
	case START:
		t.engine.start_ms = SHORT_MS;
		break;
	case LOAD:
		t.engine.load_ms = SHORT_MS;
		break;
	case STATE:
		t.engine.save_ms = SHORT_MS;
		break;
	case QUIT:
		t.save_ms = SHORT_MS;
		break;
	case END:
		t.end_ms = SHORT_MS;
	}
	return t;
}

static _Noreturn void keeper_child(const struct scenario *c, const int fds[KEEPER_FD_EXIT + 1])
{
	struct keeper_times times = times_of(c->shorten);
	struct jail_paths paths = {
		.libexec = xasprintf("/play/%s", c->daemon),
		.bwrap = xstrdup(peer_path),
		.qemu = xasprintf("/play/%s/qemu", c->vmm),
	};
	int high[KEEPER_FD_EXIT + 1];

	for (int i = 2; i <= KEEPER_FD_EXIT; i++)
		high[i] = fcntl(fds[i], F_DUPFD, HIGH_FD);
	for (int i = 2; i <= KEEPER_FD_EXIT; i++)
		(void)dup2(high[i], i);
	(void)syscall(SYS_close_range, KEEPER_FD_EXIT + 1, ~0U, 0);
	for (int i = KEEPER_FD_SOCK; i <= KEEPER_FD_EXIT; i++)
		(void)fd_set_cloexec(i, true);
	log_init("keeper-test", LOG_INFO, STDERR_FILENO);
	keeper_run(&paths, &times);
	jail_paths_done(&paths);
	exit(0);
}

static int file_make(struct node *n, const char *name, int flags)
{
	int fd = -1;

	CHECK(file_open(n->tmp.fd, name, O_RDWR | O_CREAT | flags, 0600, &fd, NULL) == 0);
	return fd;
}

static void node_start(struct node *n, const struct scenario *c)
{
	int fds[KEEPER_FD_EXIT + 1] = {-1, -1, -1, -1, -1, -1, -1};

	*n = (struct node){.keeper = -1, .state = -1};
	test_tmp_make(&n->tmp);
	n->console = file_make(n, "console.log", 0);
	n->log = file_make(n, "keeper.log", O_APPEND);
	n->record = file_make(n, "exit", 0);
	n->spaced = (struct test_spaced){.fd = -1, .record = n->record};
	CHECK(sock_unix_listen(n->tmp.fd, "keeper.sock", SOCK_SEQPACKET, &fds[KEEPER_FD_SOCK],
			       NULL) == 0);
	CHECK(sock_unix_listen(n->tmp.fd, "c", SOCK_STREAM, &fds[KEEPER_FD_CLIENT], NULL) == 0);
	CHECK(sock_unix_listen(n->tmp.fd, "p", SOCK_STREAM, &fds[KEEPER_FD_PLATFORM], NULL) == 0);
	fds[2] = n->log;
	fds[KEEPER_FD_EXIT] = n->record;
	(void)fflush(stdout);
	n->keeper = fork();
	if (n->keeper == 0)
		keeper_child(c, fds);
	for (int i = KEEPER_FD_SOCK; i <= KEEPER_FD_PLATFORM; i++)
		fd_drop(&fds[i]);
}

/* The keeper ends by itself, or the test has failed. */
static void node_end(struct node *n)
{
	AUTO(fd_drop) int pidfd = -1;
	int status = -1;

	CHECK(pidfd_of(n->keeper, &pidfd) == 0);
	EXPECT_EQ("the keeper ends", pidfd_wait_end(pidfd, LONG_MS), 0);
	(void)kill(n->keeper, SIGKILL);
	EXPECT_EQ("it is reaped", waitpid(n->keeper, &status, 0), n->keeper);
	EXPECT_EQ("it ended well", status, 0);
	EXPECT_STR("what spaced hears keeps to the contract", n->spaced.wrong, NULL);
	fd_drop(&n->spaced.fd);
	fd_drop(&n->console);
	fd_drop(&n->log);
	fd_drop(&n->record);
	fd_drop(&n->state);
	test_tmp_drop(&n->tmp);
}

/* --- spaced's side --- */

static void begin(struct node *n, bool is_boot)
{
	static const struct vm_spec spec = {
		.id = TEST_SANDBOX, .memory_mib = MEMORY_MIB, .vcpus = 1};
	AUTO(fd_drop) int ram = -1;
	AUTO(fd_drop) int any = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO(fd_drop) int devices = -1;
	int fds[VM_BOOT_FDS];

	CHECK(memfd_make("ram", (uint64_t)MEMORY_MIB << 20, &ram, NULL) == 0);
	CHECK(memfd_make("devices", 7, &devices, NULL) == 0);
	for (size_t i = 0; i < VM_BOOT_FDS; i++)
		fds[i] = any;
	fds[BOOT_FD_RAM] = ram;
	fds[BOOT_FD_CONSOLE] = n->console;
	if (!is_boot) {
		CHECK(memfd_seal(ram, NULL) == 0);
		fds[RESTORE_FD_STATE] = devices;
	}
	test_spaced_begin(&n->spaced, &spec, is_boot, fds);
}

static void act(struct node *n, enum then then)
{
	switch (then) {
	case NOTHING:
		return;
	case SAVE:
		CHECK(memfd_make("out", 0, &n->state, NULL) == 0);
		test_spaced_say(&n->spaced, MSG_VM_SAVE, NULL, 0, &n->state, 1);
		return;
	case STOP:
		test_spaced_say(&n->spaced, MSG_VM_STOP, NULL, 0, NULL, 0);
		return;
	case TERM:
		CHECK(kill(n->keeper, SIGTERM) == 0);
		return;
	case BOOT_AGAIN:
		begin(n, true);
	}
}

static void expect_record(struct node *n, const struct scenario *c)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(json_drop) json_t *j = NULL;
	struct fail f = {0};
	const char *why = "";
	size_t size = 0;

	EXPECT(c->says, n->spaced.has_seen_record);
	CHECK(fd_slurp(n->record, 4096, &text, &size) == 0);
	EXPECT("one line", size > 0 && strchr(text, '\n') == text + size - 1);
	if (!EXPECT_EQ(c->says, json_parse(&j, text, size, 4096, &f), 0))
		return;
	EXPECT_EQ(c->says, json_get_str(j, "why", JSON_REQUIRED, 1, 1024, &why, &f), 0);
	EXPECT("the record says the same", strstr(c->want, why) != NULL);
}

/* --- cases --- */

static const struct scenario cases[] = {
	{"boot, stop", "honest", "honest", true, STOP, NONE,
	 "hello starting running ready stopped: ended by the platform"},
	{"restore, stop", "honest", "honest", false, STOP, NONE,
	 "hello starting running ready stopped: ended by the platform"},
	{"boot, save", "honest", "honest", true, SAVE, NONE,
	 "hello starting running ready saving saved stopped: saved"},
	{"a signal", "honest", "honest", false, TERM, NONE,
	 "hello starting running ready stopped: ended by a signal"},
	{"the guest shuts down", "shuts-down", "mute", true, NOTHING, NONE,
	 "hello starting running stopped: the guest shut down"},
	{"a VMM that claims a reset and goes on", "claims-reset", "mute", true, NOTHING, NONE,
	 "hello starting running stopped: the guest restarted"},
	{"the VMM exits", "exits", "mute", true, NOTHING, NONE,
	 "stopped: the virtual machine ended: exit status 3"},
	{"the VMM is killed", "is-killed", "mute", true, NOTHING, NONE,
	 "stopped: the virtual machine ended: killed by signal 9"},
	{"a flood of events", "events", "mute", true, NOTHING, NONE,
	 "stopped: the VM monitor sent too many events"},
	{"a line without end", "long-line", "mute", true, NOTHING, NONE,
	 "stopped: the VM monitor sent a line that is too long"},
	{"a silent VMM", "silent", "mute", true, NOTHING, START,
	 "hello starting stopped: the VM monitor did not answer 'qmp_capabilities' in time"},
	{"a silent VMM, restore", "silent", "mute", false, NOTHING, START,
	 "hello starting stopped: the VM monitor did not answer 'qmp_capabilities' in time"},
	{"a VMM that hangs up and stays", "hangs-up", "mute", true, NOTHING, END,
	 "hello starting stopped: the VM monitor hung up"},
	{"a VMM that babbles", "babbles", "mute", true, NOTHING, NONE,
	 "hello starting stopped: the VM monitor sent broken JSON"},
	{"a state that does not load", "bad-state", "mute", false, NOTHING, NONE,
	 "hello starting stopped: the virtual machine ended: exit status 1"},
	{"a state that never runs", "never-runs", "mute", false, NOTHING, LOAD,
	 "hello starting stopped: the saved state did not load in time"},
	{"a save without an answer", "never-saves", "honest", true, SAVE, STATE,
	 "stopped: the VM monitor did not answer 'xen-save-devices-state' in time"},
	{"a save of nothing", "saves-nothing", "honest", true, SAVE, NONE,
	 "ready saving stopped: the device state is empty or too large"},
	{"death while saving", "dies-saving", "honest", true, SAVE, NONE,
	 "ready saving stopped: the virtual machine ended: exit status 1"},
	{"a saved VMM that stays", "never-quits", "honest", true, SAVE, QUIT,
	 "ready saving stopped: the VM could not be saved in time"},
	{"a restored VM is not saved", "honest", "honest", false, SAVE, NONE,
	 "ready stopped: spaced asked to save a VM in a way that cannot be"},
	{"a second VM", "honest", "honest", true, BOOT_AGAIN, NONE,
	 "ready stopped: spaced asked for a VM in a way that cannot be"},
	{"a guest that never answers", "honest", "mute", true, NOTHING, BOOT,
	 "stopped: the guest did not answer in time"},
	{"space-daemon dies at once, always", "honest", "dies", true, NOTHING, NONE,
	 "stopped: space-daemon died 5 times in a minute"},
	{"space-daemon dies with a session, always", "honest", "ready-then-dies", true, NOTHING,
	 NONE, "stopped: space-daemon died 5 times in a minute"},
	{"space-daemon says what it may not", "honest", "lies", true, NOTHING, NONE,
	 "stopped: space-daemon died 5 times in a minute"},
	{"a flood on the console", "console", "honest", true, STOP, NONE,
	 "ready stopped: ended by the platform"},
	{"a flood of errors", "stderr", "honest", true, STOP, NONE,
	 "ready stopped: ended by the platform"},
};

static void expect_heard(const struct scenario *c, const char *heard)
{
	size_t n = strlen(heard);
	size_t want = strlen(c->want);

	EXPECT_STR(c->says, n > want ? heard + (n - want) : heard, c->want);
}

static void run(const struct scenario *c)
{
	uint64_t start = clock_mono_ns();
	struct stat st;
	struct node n;
	bool has_acted = false;

	node_start(&n, c);
	test_spaced_connect(&n.spaced, n.tmp.fd);
	begin(&n, c->is_boot);
	while (test_spaced_listen(&n.spaced, LONG_MS)) {
		if (n.spaced.state == VM_READY && !has_acted)
			act(&n, c->then);
		has_acted = has_acted || n.spaced.state == VM_READY;
	}
	EXPECT("greeted as one without a VM",
	       !n.spaced.hello.has_vm && n.spaced.hello.state == VM_NONE);
	expect_heard(c, n.spaced.heard);
	EXPECT("before any long deadline", clock_mono_ns() - start < LONG_MS / 2 * NS_PER_MS);
	expect_record(&n, c);
	if (c->then == SAVE && strstr(c->want, "saved stopped"))
		EXPECT("the state arrived", fstat(n.state, &st) == 0 && st.st_size == 7);
	EXPECT("the console's log is bounded",
	       fstat(n.console, &st) == 0 && st.st_size <= CAPLOG_FILE_MAX);
	EXPECT("so is the other", fstat(n.log, &st) == 0 && st.st_size <= CAPLOG_FILE_MAX);
	node_end(&n);
}

/* spaced goes away and comes back: the VM goes on, and the new one learns of it. */
static void test_new_spaced(void)
{
	static const struct scenario c = {.says = "spaced comes back",
					  .vmm = "honest",
					  .daemon = "honest",
					  .want = "ended by the platform"};
	struct node n;

	node_start(&n, &c);
	test_spaced_connect(&n.spaced, n.tmp.fd);
	begin(&n, false);
	while (n.spaced.state != VM_READY && test_spaced_listen(&n.spaced, LONG_MS))
		;
	test_spaced_connect(&n.spaced, n.tmp.fd); /* the old one is dropped without a word */
	CHECK(test_spaced_listen(&n.spaced, LONG_MS));
	EXPECT_EQ("it is up", n.spaced.hello.state, VM_READY);
	EXPECT("it has a VM", n.spaced.hello.has_vm);
	EXPECT_EQ("and its memory", n.spaced.ram_bytes, (uint64_t)MEMORY_MIB << 20);
	EXPECT_EQ("it shows itself", n.spaced.keeper, n.keeper);
	EXPECT_STR("its id", n.spaced.hello.id, TEST_SANDBOX);
	EXPECT_EQ("its space-daemon was started once", n.spaced.hello.daemon_starts, 1);
	test_spaced_say(&n.spaced, MSG_VM_STOP, NULL, 0, NULL, 0);
	while (test_spaced_listen(&n.spaced, LONG_MS))
		;
	expect_record(&n, &c);
	node_end(&n);
}

/* What the table does not know ends the connection, not the keeper. */
static void test_bad_message(void)
{
	static const struct scenario c = {
		.vmm = "honest", .daemon = "honest", .want = "ended by a signal"};
	struct node n;

	node_start(&n, &c);
	test_spaced_connect(&n.spaced, n.tmp.fd);
	CHECK(test_spaced_listen(&n.spaced, LONG_MS));
	test_spaced_say(&n.spaced, MSG_JAIL_KILL, TEST_SANDBOX, sizeof TEST_SANDBOX, NULL, 0);
	EXPECT("the connection ends", !test_spaced_listen(&n.spaced, LONG_MS));
	test_spaced_connect(&n.spaced, n.tmp.fd);
	EXPECT("the next one is heard", test_spaced_listen(&n.spaced, LONG_MS));
	CHECK(kill(n.keeper, SIGTERM) == 0);
	node_end(&n);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return test_skip("the peer program is not named");
	peer_path = argv[1];
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		run(&cases[i]);
	test_new_spaced();
	test_bad_message();
	return test_done();
}
