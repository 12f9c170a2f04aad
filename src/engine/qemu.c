/* QEMU behind engine.h.
 *
 *   state    waits for                               leaves to
 *   SETUP    QMP's first answer                      boot: RUNNING; restore: LOADING
 *   LOADING  the incoming state, then event RESUME   RUNNING
 *   RUNNING  save(), or the guest's end              SAVING
 *   SAVING   stop, device state, in that order       SAVED
 *   SAVED    nothing: QEMU was told to quit, and its owner waits for that
 *   FAILED   nothing                                                                     */
#include "engine/engine.h"

#include "base/alloc.h"
#include "base/str.h"
#include "engine/qemu_argv.h"
#include "engine/qmp.h"
#include "engine/tsc.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define STATE_FDSET 900

enum state { SETUP, LOADING, RUNNING, SAVING, SAVED, FAILED };

struct engine {
	struct loop *loop;
	struct qmp *qmp;
	const struct engine_events *events;
	void *arg;
	enum state state;
	bool is_boot;
	struct engine_times times;
	struct timer *timer;
	int state_file; /* memfd of our own that QEMU reads or writes the device state in */
	int state_to;   /* borrowed: where it goes */
};

static void failed(struct engine *e, const struct fail *why)
{
	if (e->state == FAILED || e->state == SAVED)
		return;
	e->state = FAILED;
	timer_clear(e->timer);
	e->events->on_failed(e->arg, why);
}

static void on_qmp_end(void *arg, const struct fail *why)
{
	failed(arg, why);
}

static void running(struct engine *e)
{
	e->state = RUNNING;
	timer_clear(e->timer);
	fd_drop(&e->state_file);
	e->events->on_running(e->arg);
}

static void on_guest_end(struct engine *e, const char *name, const json_t *data)
{
	const char *reason = json_string_value(json_object_get(data, "reason"));

	if (!strcmp(name, "GUEST_PANICKED"))
		e->events->on_guest_end(e->arg, "the guest's kernel panicked");
	else if (reason && !strcmp(reason, "guest-reset"))
		e->events->on_guest_end(e->arg, "the guest restarted");
	else if (reason && str_starts(reason, "host-"))
		e->events->on_guest_end(e->arg, "the virtual machine was told to end");
	else
		e->events->on_guest_end(e->arg, "the guest shut down");
}

static void on_event(void *arg, const char *name, const json_t *data)
{
	struct engine *e = arg;

	if (!strcmp(name, "RESUME") && e->state == LOADING)
		running(e);
	else if ((!strcmp(name, "SHUTDOWN") || !strcmp(name, "GUEST_PANICKED")) &&
		 (e->state == RUNNING || e->state == LOADING))
		on_guest_end(e, name, data);
}

static const struct qmp_ops qmp_ops = {.on_event = on_event, .on_end = on_qmp_end};

static void on_capabilities(void *arg, int r, const json_t *ret, const struct fail *f)
{
	struct engine *e = arg;

	(void)ret;
	if (r) {
		failed(e, f);
	} else if (e->is_boot) {
		running(e);
	} else {
		e->state = LOADING;
		timer_set(e->timer, e->times.load_ms);
	}
}

static void on_load_deadline(void *arg)
{
	struct fail f = {0};

	(void)fail_set(&f, -ETIMEDOUT, "the saved state did not load in time");
	failed(arg, &f);
}

/* A copy: a descriptor's offset is shared with whoever else loads that file, and what QEMU reads
 * shall not change under it. */
static int state_copy(struct engine *e, int from, struct fail *f)
{
	struct stat st;
	int r;

	if (fstat(from, &st) < 0 || st.st_size <= 0 || st.st_size > ENGINE_STATE_MAX)
		return fail_set(f, -EINVAL, "the device state is empty or too large");
	if ((r = memfd_make("devices", 0, &e->state_file, f)) < 0)
		return r;
	if ((r = fd_copy(e->state_file, from, (uint64_t)st.st_size, false)) < 0)
		return fail_errno(f, r, "cannot read the device state");
	return 0;
}

static int load_ask(struct engine *e)
{
	int r = qmp_command(e->qmp, "getfd", json_pack("{s:s}", "fdname", "state"), e->state_file,
			    e->times.load_ms, NULL, NULL);

	if (r)
		return r;
	return qmp_command(e->qmp, "migrate-incoming", json_pack("{s:s}", "uri", "fd:state"), -1,
			   e->times.load_ms, NULL, NULL);
}

static int begin(struct engine *e, struct fail *f)
{
	int r = qmp_command(e->qmp, "qmp_capabilities", NULL, -1, e->times.start_ms,
			    on_capabilities, e);

	if (!r && !e->is_boot)
		r = load_ask(e);
	return r ? fail_errno(f, r, "cannot give the VM its first commands") : 0;
}

static void fds_fill(int fds[QEMU_FD_END], const struct engine_plan *p, int qmp)
{
	for (size_t i = 0; i < QEMU_FD_END; i++)
		fds[i] = -1;
	fds[QEMU_FD_QMP] = qmp;
	fds[QEMU_FD_CONTROL] = p->port[PORT_CONTROL];
	fds[QEMU_FD_EGRESS] = p->port[PORT_EGRESS];
	fds[QEMU_FD_WAKE] = p->port[PORT_WAKE];
	fds[QEMU_FD_CONSOLE] = p->port[PORT_CONSOLE];
	fds[QEMU_FD_RAM] = p->ram;
	fds[QEMU_FD_BASE] = p->base;
	fds[QEMU_FD_LAYER] = p->layer;
	fds[QEMU_FD_TEMPLATE_LAYER] = p->is_boot ? -1 : p->template_layer;
	fds[QEMU_FD_KERNEL] = p->is_boot ? p->kernel : -1;
	fds[QEMU_FD_INITRD] = p->is_boot ? p->initrd : -1;
}

static int check_ram(const struct engine_plan *p, struct fail *f)
{
	struct stat st;

	if (fstat(p->ram, &st) < 0 || (uint64_t)st.st_size != (uint64_t)p->spec->memory_mib << 20)
		return fail_set(f, -EINVAL, "the memory image is not of %u MiB",
				p->spec->memory_mib);
	if (!p->is_boot && !memfd_is_sealed(p->ram))
		return fail_set(f, -EINVAL, "the memory image is not sealed");
	return 0;
}

static void qemu_free(struct engine *e)
{
	if (!e)
		return;
	qmp_free(e->qmp);
	timer_free(e->timer);
	fd_drop(&e->state_file);
	free(e);
}

static struct engine *engine_make(struct loop *l, const struct engine_plan *p,
				  const struct engine_events *events, void *arg)
{
	struct engine *e = xcalloc(1, sizeof *e);

	e->loop = l;
	e->events = events;
	e->arg = arg;
	e->is_boot = p->is_boot;
	e->times = p->times;
	e->state_file = -1;
	e->timer = timer_new(l, on_load_deadline, e);
	return e;
}

/* Starts the VMM and gives the monitor's other end to e->qmp. */
static int vmm_start(struct engine *e, const struct engine_plan *p, engine_launch *launch,
		     struct fail *f)
{
	int fds[QEMU_FD_END];
	int pair[2];
	char **argv;
	int r = sock_pair(SOCK_STREAM, pair);

	if (r < 0)
		return fail_errno(f, r, "cannot make the monitor's socket");
	e->qmp = qmp_new(e->loop, pair[0], &qmp_ops, e);
	fds_fill(fds, p, pair[1]);
	argv = qemu_argv(p, p->is_boot && p->spec->accel == ACCEL_TCG ? tsc_khz() : 0);
	r = launch(e->arg, (const char *const *)argv, fds, QEMU_FD_END, f);
	qemu_argv_free(argv);
	fd_drop(&pair[1]);
	return r;
}

static int qemu_start(struct loop *l, const struct engine_plan *p, engine_launch *launch,
		      const struct engine_events *events, void *arg, struct engine **ret,
		      struct fail *f)
{
	struct engine *e;
	int r = check_ram(p, f);

	if (r)
		return r;
	e = engine_make(l, p, events, arg);
	if (!p->is_boot)
		r = state_copy(e, p->state, f);
	if (!r)
		r = vmm_start(e, p, launch, f);
	if (!r)
		r = begin(e, f);
	if (r) {
		qemu_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

static void on_state_written(void *arg, int r, const json_t *ret, const struct fail *f)
{
	struct engine *e = arg;
	struct fail why = *f;
	struct stat st;

	(void)ret;
	if (!r &&
	    (fstat(e->state_file, &st) < 0 || st.st_size <= 0 || st.st_size > ENGINE_STATE_MAX))
		r = fail_set(&why, -EIO, "the device state is empty or too large");
	if (!r && (r = fd_copy(e->state_to, e->state_file, (uint64_t)st.st_size, false)) < 0)
		(void)fail_errno(&why, r, "cannot write the device state");
	if (r) {
		failed(e, &why);
		return;
	}
	e->state = SAVED;
	(void)qmp_command(e->qmp, "quit", NULL, -1, e->times.save_ms, NULL, NULL);
	e->events->on_saved(e->arg);
}

static int qemu_save(struct engine *e, int state_fd, struct fail *f)
{
	AUTO(fd_drop) int write_end = -1;
	int r;

	if (e->state != RUNNING)
		return fail_set(f, -EINVAL, "the VM does not run");
	if ((r = memfd_make("devices", 0, &e->state_file, f)) < 0)
		return r;
	/* QEMU takes the descriptor only in exactly the access mode it writes with. */
	write_end = fd_reopen(e->state_file, O_WRONLY | O_CLOEXEC);
	if (write_end < 0)
		return fail_errno(f, write_end, "cannot open the device state for writing");
	e->state = SAVING;
	e->state_to = state_fd;
	r = qmp_command(e->qmp, "add-fd", json_pack("{s:i}", "fdset-id", STATE_FDSET), write_end,
			e->times.save_ms, NULL, NULL);
	if (!r)
		r = qmp_command(e->qmp, "stop", NULL, -1, e->times.save_ms, NULL, NULL);
	if (!r)
		r = qmp_command(e->qmp, "xen-save-devices-state",
				json_pack("{s:s, s:b}", "filename", "/dev/fdset/900", "live", 0),
				-1, e->times.save_ms, on_state_written, e);
	return r ? fail_errno(f, r, "cannot ask for the device state") : 0;
}

const struct engine_ops engine_qemu = {
	.name = "qemu",
	.start = qemu_start,
	.save = qemu_save,
	.free = qemu_free,
};
