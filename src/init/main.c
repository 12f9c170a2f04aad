/* space-init: PID 1 of a guest. Runs from the initramfs for good, mounts the disk for user code and
 * starts, watches and reaps every process; speaks HTTP/2 with its space-daemon on virtio-serial.
 *
 * It holds nothing of worth and nobody trusts it. What it defends is its own life: it answers
 * under a fork bomb and with full memory, whatever a client or a process does. Boot either
 * succeeds whole or says one line on the console and ends the machine.
 *
 *   boot: console, mounts, modules, cgroups, lo, disk, user's namespace; then the loop
 *   loop: wakes and sessions (channel.c), requests (call.c), children (SIGCHLD)        */
#include "base/fail.h"
#include "base/log.h"
#include "init/boot.h"
#include "init/call.h"
#include "init/channel.h"
#include "init/guest.h"
#include "init/platform_rpc.h"
#include "init/process_rpc.h"
#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FILES_MAX     16384 /* of init: at most six a process, and what waits to be dropped */
#define PROTECT_BYTES (48u * 1024 * 1024)
#define MALLOC_LARGE  (64 * 1024)
#define REAP_MAX      256 /* children a turn, so that a fork bomb's end does not starve requests */

static const struct route routes[] = {
	{"GET", "/health", CALL_PLAIN, rpc_health},
	{"POST", "/space/init", CALL_PLAIN, rpc_init},
	{"GET", "/space/stats", CALL_PLAIN, rpc_stats},
	{"POST", "/space/poweroff", CALL_PLAIN, rpc_poweroff},
	{"POST", "/process.Process/Start", CALL_STREAM, rpc_start},
	{"POST", "/process.Process/Connect", CALL_STREAM, rpc_connect},
	{"POST", "/process.Process/List", CALL_UNARY, rpc_list},
	{"POST", "/process.Process/SendInput", CALL_UNARY, rpc_send_input},
	{"POST", "/process.Process/CloseStdin", CALL_UNARY, rpc_close_stdin},
	{"POST", "/process.Process/SendSignal", CALL_UNARY, rpc_send_signal},
	{"POST", "/process.Process/Update", CALL_UNARY, rpc_update},
	{0},
};

static void on_request(void *arg, struct h2_stream *s, const struct h2_message *m)
{
	call_begin(arg, routes, s, m);
}

static void reap(void *arg)
{
	struct guest *g = arg;

	for (unsigned i = 0; i < REAP_MAX; i++) {
		int status = 0;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0)
			return;
		processes_reaped(&g->processes, pid, status);
	}
	loop_later(g->loop, reap, g);
}

static void on_child(void *arg, int signo)
{
	(void)signo;
	reap(arg);
}

/* Ctrl-Alt-Del of the machine. */
static void on_interrupt(void *arg, int signo)
{
	(void)arg;
	log_info("powering off", "cause=signal signo=%d", signo);
	guest_poweroff();
}

/* The kernel gives PID 1 no descriptors when it has no console yet. 0-2 must exist, so that no
 * other descriptor takes their numbers. */
static void open_streams(void)
{
	for (int i = 0; i < 3; i++) {
		AUTO(fd_drop) int null = open("/dev/null", O_RDWR);

		if (null == i)
			(void)fd_take(&null);
		else if (null >= 0)
			(void)dup2(null, i); /* best effort: there is nobody to tell */
	}
}

/* What init says, and what a library says before it aborts, goes to the console. */
static void open_console(void)
{
	AUTO(fd_drop) int console = boot_console(0);

	if (console >= 0)
		(void)dup2(console, 2); /* best effort: it is /dev/null else */
}

static _Noreturn void boot_failed(const struct fail *f)
{
	AUTO(fd_drop) int console = boot_console(CONSOLE_WAIT_MS);

	if (console >= 0 && dup2(console, 2) == 2)
		log_error("boot failed, powering off", "cause=\"%s\"", f->text);
	else
		boot_last_words(f->text);
	guest_poweroff();
}

/* Init must be able to answer when nothing else can run. */
static int harden(struct fail *f)
{
	const struct rlimit files = {FILES_MAX, FILES_MAX};
	AUTO(fd_drop) int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Large blocks are mapped and go back at once; by default glibc learns to keep them. */
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, MALLOC_LARGE);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * MALLOC_LARGE);
	(void)signal(SIGPIPE, SIG_IGN);
	if (oom < 0 || write(oom, "-1000", 5) != 5)
		return fail_errno(f, -errno, "cannot set oom_score_adj");
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		return fail_errno(f, -errno, "cannot lock memory");
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		return fail_errno(f, -errno, "cannot raise the limit of descriptors");
	(void)reboot(RB_DISABLE_CAD); /* Ctrl-Alt-Del becomes SIGINT; best effort */
	return 0;
}

static int boot(struct guest *g, struct fail *f)
{
	int err = boot_mounts(f);

	if (!err)
		err = harden(f);
	if (!err)
		err = boot_modules(f);
	if (!err)
		err = boot_network(f);
	if (!err)
		err = cgroups_init(&g->cgroups, stats_ram_bytes(), PROTECT_BYTES, f);
	if (!err)
		err = boot_disk(f);
	if (!err)
		err = userspace_init(&g->userspace, &g->cgroups, f);
	if (!err)
		err = cgroups_open_user(&g->cgroups, f);
	if (!err)
		boot_settings();
	return err;
}

static int serve(struct guest *g, struct fail *f)
{
	struct channel *channel;

	g->loop = loop_new();
	processes_init(&g->processes, g->loop, &g->cgroups, &g->userspace, stats_ram_bytes());
	(void)sigwatch_new(g->loop, SIGCHLD, on_child, g);
	(void)sigwatch_new(g->loop, SIGINT, on_interrupt, g);
	return channel_new(g->loop, on_request, g, &channel, f);
}

int main(void)
{
	static struct guest guest;
	struct fail f = {0};

	if (getpid() != 1) {
		(void)fprintf(stderr,
			      "space-init is a guest's first process and runs nowhere else\n");
		return 1;
	}
	boot_devices();
	open_streams();
	log_init("space-init", LOG_INFO, 2);
	if (boot(&guest, &f) != 0 || serve(&guest, &f) != 0)
		boot_failed(&f);
	open_console(); /* a virtio console is there since the ports are */
	log_info("ready", "version=%s", SPACE_VERSION);
	loop_run(guest.loop);
	log_error("the loop ended, powering off", "cause=bug");
	guest_poweroff();
}
