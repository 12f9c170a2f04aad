/* See keeper.h.
 *
 *   state    waits for                                            leaves to
 *   NONE     VM_BOOT or VM_RESTORE                                STARTING
 *   STARTING the engine's on_running                              RUNNING
 *   RUNNING  space-daemon's session with the guest                READY
 *   READY    VM_SAVE, or a child's end                            SAVING, RUNNING (daemon died)
 *   SAVING   the device state written, then the VMM's end         STOPPED
 *   STOPPED  nothing: the record is written, the loop stops
 *
 * Every wait but NONE's and READY's has a deadline (struct keeper_times), and whatever fails
 * leads to STOPPED. The channels' host ends stay open here (dup'ed into space-daemon), so that
 * the VMM never sees a hang-up when space-daemon is started anew. */
#include "keeper/keeper.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/engine.h"
#include "keeper/caplog.h"
#include "keeper/children.h"
#include "keeper/mediator.h"
#include "keeper/record.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define LOG_FD 2

/* For a loaded host that emulates. spaced waits longer than each of these. */
const struct keeper_times keeper_times_usual = {
	.boot_ms = 120000,
	.restore_ms = 20000,
	.save_ms = 30000,
	.end_ms = 2000,
	.engine = {.start_ms = 20000, .load_ms = 20000, .save_ms = 20000},
};

struct keeper {
	struct loop *loop;
	const struct jail_paths *paths;
	const struct keeper_times *times;
	struct watch *listen;
	struct msgsock *spaced;
	struct timer *deadline;
	const char *late; /* what the deadline's passing means */
	const struct engine_ops *ops;
	struct engine *engine;
	struct vm_spec spec;
	enum vm_state state;
	bool is_boot;
	bool is_saved;
	bool has_session; /* space-daemon with the guest */
	bool is_ending;   /* the guest ended or the monitor hung up: the VMM has end_ms to follow */
	int ram;          /* for a spaced that comes after */
	int state_fd;     /* while saving */
	int channel[CHANNELS]; /* host ends */
	pid_t vmm;
	struct mediator *mediator;
	struct caplog *console;
	struct caplog *vmm_log;
	int console_file;
};

static_assert((int)PORT_CONTROL == (int)CHANNEL_CONTROL &&
		      (int)PORT_EGRESS == (int)CHANNEL_EGRESS &&
		      (int)PORT_WAKE == (int)CHANNEL_WAKE && (int)PORT_CONSOLE == (int)CHANNELS,
	      "space-daemon's channels are the VM's first ports");

static void tell(struct keeper *k, uint32_t wait_status, const char *text)
{
	struct vm_event e = {.state = k->state, .wait_status = wait_status};
	uint8_t body[MSG_BODY_MAX];
	struct wr w = wr_of(body, sizeof body);

	if (!k->spaced)
		return;
	(void)snprintf(e.text, sizeof e.text, "%s", text);
	vm_event_print(&w, &e);
	if (msgsock_send(k->spaced, MSG_VM_STATE, 0, body, wr_len(&w), NULL, 0) < 0)
		log_warn("spaced does not listen, going on", "state=%s", vm_state_name(k->state));
}

static void turn(struct keeper *k, enum vm_state state)
{
	k->state = state;
	tell(k, 0, "");
}

static void stop(struct keeper *k, int wait_status, const char *why)
{
	char text[sizeof((struct vm_event *)0)->text];

	if (k->state == VM_STOPPED)
		return;
	/* The VMM's words may be in it. */
	(void)str_escape(text, sizeof text, why, strlen(why), "");
	log_info("stopped", "sandbox=%s why=\"%s\"", k->spec.id, text);
	k->state = VM_STOPPED;
	timer_clear(k->deadline);
	record_write(KEEPER_FD_EXIT, k->spec.id, text, wait_status);
	/* Before the sync: clients whose streams are cut ask spaced at once. */
	tell(k, (uint32_t)wait_status, text);
	record_sync(KEEPER_FD_EXIT);
	loop_stop(k->loop);
}

void keeper_stop(struct keeper *k, const char *why)
{
	stop(k, 0, why);
}

static void deadline_set(struct keeper *k, uint32_t ms, const char *late)
{
	k->late = late;
	timer_set(k->deadline, ms);
}

static void on_deadline(void *arg)
{
	struct keeper *k = arg;

	stop(k, 0, k->late);
}

/* The VMM is about to end by itself: its status says more, and waiting for it is bounded. */
static void ending(struct keeper *k)
{
	k->is_ending = true;
	deadline_set(k, k->times->end_ms, "the VM monitor hung up");
}

/* Both halves of READY, in whichever order they are heard. */
static void settle(struct keeper *k)
{
	if (k->state != VM_RUNNING || !k->has_session || k->is_ending)
		return;
	timer_clear(k->deadline);
	turn(k, VM_READY);
}

/* --- space-daemon --- */

static void on_ready(void *arg)
{
	struct keeper *k = arg;

	k->has_session = true;
	settle(k);
}

static void on_again(void *arg)
{
	struct keeper *k = arg;

	k->has_session = false;
	if (k->state != VM_READY)
		return;
	deadline_set(k, k->times->restore_ms,
		     "the guest did not answer a new space-daemon in time");
	turn(k, VM_RUNNING);
}

static void on_mediator_failed(void *arg, int wait_status, const struct fail *why)
{
	stop(arg, wait_status, why->text);
}

static const struct mediator_ops mediator_ops = {
	.on_ready = on_ready,
	.on_again = on_again,
	.on_failed = on_mediator_failed,
};

static int mediator_begin(struct keeper *k, struct fail *f)
{
	struct mediator_plan p = {
		.paths = k->paths,
		.spec = &k->spec,
		.client_listen = KEEPER_FD_CLIENT,
		.platform_listen = KEEPER_FD_PLATFORM,
		.log_file = LOG_FD,
	};

	memcpy(p.channel, k->channel, sizeof p.channel);
	return mediator_new(k->loop, &p, &mediator_ops, k, &k->mediator, f);
}

/* --- the engine --- */

static void on_running(void *arg)
{
	struct keeper *k = arg;

	if (k->state != VM_STARTING)
		return;
	turn(k, VM_RUNNING);
	settle(k);
}

static void on_saved(void *arg)
{
	struct keeper *k = arg;

	k->is_saved = true;
	fd_drop(&k->state_fd);
}

/* At once: the VMM closes the channels only after its disks, so spaced hears why before the
 * clients whose streams are cut can ask. What the guest flushed is durable by then, and a VMM
 * that lies about it ends itself. */
static void on_guest_end(void *arg, const char *how)
{
	stop(arg, 0, how);
}

static void on_failed(void *arg, const struct fail *why)
{
	struct keeper *k = arg;

	if (k->vmm > 0 && why->code == -EPIPE)
		ending(k);
	else
		stop(k, 0, why->text);
}

static const struct engine_events engine_events = {
	.on_running = on_running,
	.on_saved = on_saved,
	.on_guest_end = on_guest_end,
	.on_failed = on_failed,
};

static int vmm_launch(void *arg, const char *const *tail, const int *fds, size_t n, struct fail *f)
{
	struct keeper *k = arg;
	int log[2];
	int r;

	if (pipe2(log, O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot make the VMM's log");
	k->vmm_log = caplog_new(k->loop, log[0], LOG_FD);
	r = child_start_vmm(k->paths, k->spec.accel == ACCEL_KVM, tail, fds, n, log[1], &k->vmm, f);
	fd_drop(&log[1]);
	return r;
}

static void vmm_ended(struct keeper *k, int wait_status)
{
	char status[CHILD_STATUS_SIZE];
	char why[256];

	k->vmm = -1;
	if (k->is_saved) {
		if (k->spaced)
			(void)msgsock_send(k->spaced, MSG_VM_SAVED, 0, NULL, 0, NULL, 0);
		stop(k, wait_status, "saved");
		return;
	}
	child_status_print(status, sizeof status, wait_status);
	(void)snprintf(why, sizeof why, "the virtual machine ended: %s", status);
	stop(k, wait_status, why);
}

/* Makes the four channels: our ends stay here, the VM's go into the plan. */
static int ports_make(struct keeper *k, int vm_end[ENGINE_PORTS], struct fail *f)
{
	int pair[2];
	int r;

	for (size_t i = 0; i < ENGINE_PORTS; i++) {
		if ((r = sock_pair(SOCK_STREAM, pair)) < 0)
			return fail_errno(f, r, "cannot make the VM's channels");
		vm_end[i] = pair[1];
		if (i == PORT_CONSOLE)
			k->console = caplog_new(k->loop, pair[0], k->console_file);
		else
			k->channel[i] = pair[0];
	}
	return 0;
}

static int engine_begin(struct keeper *k, struct engine_plan *p, struct fail *f)
{
	int r = ports_make(k, p->port, f);

	if (!r)
		r = k->ops->start(k->loop, p, vmm_launch, &engine_events, k, &k->engine, f);
	for (size_t i = 0; i < ENGINE_PORTS; i++)
		fd_drop(&p->port[i]);
	return r ? r : mediator_begin(k, f);
}

/* --- spaced --- */

static_assert((int)BOOT_FD_RAM == (int)RESTORE_FD_RAM &&
		      (int)BOOT_FD_LAYER == (int)RESTORE_FD_LAYER &&
		      (int)BOOT_FD_CONSOLE == (int)RESTORE_FD_CONSOLE,
	      "what both have stands in one place");

static int plan_fill(struct engine_plan *p, struct keeper *k, const int *fd, bool is_boot)
{
	*p = (struct engine_plan){.spec = &k->spec,
				  .times = k->times->engine,
				  .is_boot = is_boot,
				  .port = {-1, -1, -1, -1},
				  .template_layer = -1,
				  .state = -1,
				  .kernel = -1,
				  .initrd = -1};
	p->ram = fd[BOOT_FD_RAM];
	p->base = fd[is_boot ? (int)BOOT_FD_BASE : (int)RESTORE_FD_BASE];
	p->layer = fd[BOOT_FD_LAYER];
	if (is_boot) {
		p->kernel = fd[BOOT_FD_KERNEL];
		p->initrd = fd[BOOT_FD_INITRD];
	} else {
		p->state = fd[RESTORE_FD_STATE];
		p->template_layer = fd[RESTORE_FD_TEMPLATE_LAYER];
	}
	k->ram = fcntl(p->ram, F_DUPFD_CLOEXEC, 0);
	return k->ram < 0 ? -errno : 0;
}

static void vm_begin(struct keeper *k, struct msg *m, bool is_boot)
{
	struct engine_plan p;
	struct fail f = {0};
	int r;

	if (k->state != VM_NONE || vm_spec_parse(&k->spec, m->body) < 0) {
		stop(k, 0, "spaced asked for a VM in a way that cannot be");
		return;
	}
	log_info("starting", "sandbox=%s how=%s memory_mib=%u vcpus=%u accel=%s", k->spec.id,
		 is_boot ? "boot" : "restore", k->spec.memory_mib, k->spec.vcpus,
		 accel_name(k->spec.accel));
	k->is_boot = is_boot;
	k->console_file = fd_take(&m->fd[BOOT_FD_CONSOLE]);
	turn(k, VM_STARTING);
	deadline_set(k, is_boot ? k->times->boot_ms : k->times->restore_ms,
		     "the guest did not answer in time");
	r = plan_fill(&p, k, m->fd, is_boot);
	if (!r)
		r = engine_begin(k, &p, &f);
	if (r)
		stop(k, 0, *f.text ? f.text : "the VM could not be started");
}

static void vm_save(struct keeper *k, struct msg *m)
{
	struct fail f = {0};

	if (k->state != VM_READY || !k->is_boot) {
		stop(k, 0, "spaced asked to save a VM in a way that cannot be");
		return;
	}
	k->state_fd = fd_take(&m->fd[0]);
	turn(k, VM_SAVING);
	deadline_set(k, k->times->save_ms, "the VM could not be saved in time");
	if (k->ops->save(k->engine, k->state_fd, &f) < 0)
		stop(k, 0, f.text);
}

static void on_spaced_msg(void *arg, struct msg *m)
{
	struct keeper *k = arg;

	switch ((unsigned)m->type) {
	case MSG_VM_BOOT:
		vm_begin(k, m, true);
		return;
	case MSG_VM_RESTORE:
		vm_begin(k, m, false);
		return;
	case MSG_VM_SAVE:
		vm_save(k, m);
		return;
	default: /* MSG_VM_STOP: the table lets nothing else through */
		stop(k, 0, "ended by the platform");
	}
}

static void on_spaced_end(void *arg, int err)
{
	struct keeper *k = arg;

	log_info("spaced went away", "errno=%d", -err);
	msgsock_free(k->spaced);
	k->spaced = NULL; /* the sandbox goes on */
}

static const struct msgsock_ops spaced_ops = {.on_msg = on_spaced_msg, .on_end = on_spaced_end};

static int hello_send(struct keeper *k)
{
	struct keeper_hello h = {.state = k->state,
				 .has_vm = k->ram >= 0,
				 .daemon_starts = mediator_starts(k->mediator)};
	AUTO(fd_drop) int self = -1;
	uint8_t body[MSG_BODY_MAX];
	struct wr w = wr_of(body, sizeof body);
	int fds[2];
	int r = pidfd_of(getpid(), &self);

	if (r < 0)
		return r;
	memcpy(h.id, k->spec.id, sizeof h.id);
	memcpy(h.variant, k->spec.variant, sizeof h.variant);
	keeper_hello_print(&w, &h);
	fds[0] = self;
	fds[1] = k->ram;
	return msgsock_send(k->spaced, MSG_KEEPER_HELLO, 0, body, wr_len(&w), fds,
			    h.has_vm ? 2 : 1);
}

static void on_listen(void *arg, int events)
{
	struct keeper *k = arg;
	int fd;

	(void)events;
	while (sock_accept(KEEPER_FD_SOCK, &fd) == 0) {
		msgsock_free(k->spaced); /* the newer one is spaced; the old one is dead or dying */
		k->spaced = msgsock_new(k->loop, fd, PEER_KEEPER, PEER_SPACED, &spaced_ops, k);
		if (hello_send(k) < 0)
			log_warn("cannot greet spaced, going on", "sandbox=%s", k->spec.id);
	}
}

struct keeper *keeper_new(struct loop *l, const struct jail_paths *paths,
			  const struct keeper_times *times)
{
	struct keeper *k = xcalloc(1, sizeof *k);

	k->loop = l;
	k->paths = paths;
	k->times = times;
	k->ops = &engine_qemu;
	k->ram = -1;
	k->state_fd = -1;
	k->console_file = -1;
	k->vmm = -1;
	for (size_t i = 0; i < ARRAY_LEN(k->channel); i++)
		k->channel[i] = -1;
	k->deadline = timer_new(l, on_deadline, k);
	k->listen = watch_new(l, KEEPER_FD_SOCK, on_listen, k);
	watch_set(k->listen, WATCH_READ);
	return k;
}

void keeper_free(struct keeper *k)
{
	k->ops->free(k->engine);
	mediator_free(k->mediator);
	msgsock_free(k->spaced);
	caplog_free(k->console);
	caplog_free(k->vmm_log);
	watch_free(k->listen);
	timer_free(k->deadline);
	for (size_t i = 0; i < ARRAY_LEN(k->channel); i++)
		fd_drop(&k->channel[i]);
	fd_drop(&k->ram);
	fd_drop(&k->state_fd);
	fd_drop(&k->console_file);
	explicit_bzero(&k->spec, sizeof k->spec);
	free(k);
}

void keeper_reaped(struct keeper *k, pid_t pid, int wait_status)
{
	bool is_ending = k->is_ending || k->state == VM_SAVING || k->state == VM_STOPPED;

	if (pid == k->vmm)
		vmm_ended(k, wait_status);
	else
		(void)mediator_reaped(k->mediator, pid, wait_status, is_ending);
}
