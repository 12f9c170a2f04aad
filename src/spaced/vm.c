/* See vm.h.
 *
 * state     waits for                        deadline            leaves to
 * JAIL      KEEPER_HELLO                     VM_HELLO_MS         START, ENDING
 * ADOPT     KEEPER_HELLO of an old keeper    VM_HELLO_MS         START, UP, ENDING
 * START     VM_STATE VM_READY                VM_START_MS/_BOOT   UP, ENDING
 * UP        the end, or vm_save()            none                SAVING, ENDING
 * SAVING    VM_SAVED                         VM_SAVE_MS          SAVED_ENDING, ENDING
 * ENDING    the jailer's word                VM_KILL_MS, again   SAVED, SWEEPING
 * SAVED     vm_sweep()                       none                SWEEPING
 * SWEEPING  the pool: folder removed         none                freed
 *
 * ENDING always ends by JAIL_KILL: the keeper is process 1 of its namespace, so nothing outlives
 * it. */
#include "spaced/vm.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/sock.h"
#include "spaced/jailer.h"
#include "store/qcow2.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define VM_HELLO_MS   15000
#define VM_START_MS   30000
#define VM_BOOT_MS    180000
#define VM_SAVE_MS    60000
#define VM_KILL_MS    5000
#define VM_KILL_TRIES 6
#define LOG_TAIL      1200

#define MIB            ((uint64_t)1024 * 1024)
#define JAIL_EXTRA_MIB 384u /* QEMU's own, the keeper, space-daemon, page tables, page cache */
#define JAIL_PIDS_MAX  256u
#define LAYER_EXTRA    (64 * MIB) /* a full disk's layer: the tables of qcow2, and room */
#define CPU_EXTRA      500u       /* permille of a core, for what is not a vCPU */

enum state { JAIL, ADOPT, START, UP, SAVING, ENDING, SAVED, SWEEPING, STATES };

static const char *const state_names[] = {"jail",   "adopt",  "start", "up",
					  "saving", "ending", "saved", "sweeping"};
static_assert(ARRAY_LEN(state_names) == STATES, "a name for every state");

struct vm {
	struct jail jail; /* first: the jailer's callbacks come with it */
	struct node *n;
	enum state state;
	struct vm_plan plan; /* fds until the keeper has them */
	struct msgsock *keeper;
	struct timer *timer;
	int dir;
	int pidfd;
	bool is_told;    /* on_down was called, or vm_end() */
	bool is_saved;   /* VM_SAVED came */
	bool has_fallen; /* it ended by itself */
	unsigned kills;
	const struct vm_ops *ops;
	void *arg;
};

static void end(struct vm *v);

void vm_plan_init(struct vm_plan *p, bool is_boot)
{
	*p = (struct vm_plan){.is_boot = is_boot};
	for (size_t i = 0; i < ARRAY_LEN(p->fd); i++)
		p->fd[i] = -1;
}

void vm_plan_done(struct vm_plan *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->fd); i++)
		fd_drop(&p->fd[i]);
	explicit_bzero(p->spec.token, sizeof p->spec.token);
}

static void free_vm(struct vm *v)
{
	msgsock_free(v->keeper);
	timer_free(v->timer);
	vm_plan_done(&v->plan);
	fd_drop(&v->pidfd);
	fd_drop(&v->dir);
	free(v);
}

/* --- the end --- */

struct sweep {
	struct vm *v;
	int run;
	struct fail f;
	int err;
	char log[LOG_TAIL + 1]; /* the end of keeper.log */
};

/* What the keeper and its children said last: with the folder it would be lost. */
static void read_tail(struct sweep *s)
{
	AUTO(fd_drop) int fd = -1;
	struct stat st;
	struct fail f;
	ssize_t n;

	if (file_open(s->v->dir, "keeper.log", O_RDONLY, 0, &fd, &f) < 0 || fstat(fd, &st) < 0)
		return;
	n = pread(fd, s->log, LOG_TAIL, st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0);
	s->log[n > 0 ? n : 0] = '\0';
}

static void sweep_work(void *arg)
{
	struct sweep *s = arg;

	if (s->v->has_fallen)
		read_tail(s);
	s->err = dir_remove(s->run, s->v->jail.node.id, &s->f);
}

static void sweep_done(void *arg)
{
	struct sweep *s = arg;
	struct vm *v = s->v;

	if (s->err < 0)
		log_error("cannot remove a sandbox's files", "sandbox=%s why=%s", v->jail.node.id,
			  s->f.text);
	if (s->log[0])
		log_warn("the last words of a jail", "sandbox=%s log=%s", v->jail.node.id, s->log);
	free(s);
	v->ops->on_gone(v->arg);
	free_vm(v);
}

void vm_sweep(struct vm *v)
{
	struct sweep *s = xcalloc(1, sizeof *s);

	v->state = SWEEPING;
	timer_clear(v->timer);
	s->v = v;
	s->run = v->n->data.run;
	loop_work(v->n->loop, sweep_work, sweep_done, s);
}

/* The jailer says that nothing of it runs. */
static void on_jail_end(struct jail *jail, const char *why)
{
	struct vm *v = (struct vm *)jail; /* the jail is its first member */

	timer_clear(v->timer);
	msgsock_free(v->keeper);
	v->keeper = NULL;
	if (*why && !v->is_told)
		log_warn("jail ended", "sandbox=%s why=%s", jail->node.id, why);
	if (!v->is_told && !v->is_saved) {
		v->is_told = true;
		v->state = ENDING;
		v->ops->on_down(v->arg,
				*why ? "its jail could not be started" : "its keeper ended");
	}
	if (v->is_saved && !v->is_told) {
		v->state = SAVED;
		v->ops->on_saved(v->arg);
		return;
	}
	vm_sweep(v);
}

static void kill_jail(struct vm *v)
{
	v->kills++;
	timer_set(v->timer, VM_KILL_MS);
	if (jailer_kill(v->n->jailer, &v->jail, v->pidfd) < 0)
		log_error("cannot ask the jailer for an end", "sandbox=%s", v->jail.node.id);
}

static void end(struct vm *v)
{
	if (v->state >= ENDING)
		return;
	v->state = ENDING;
	vm_plan_done(&v->plan);
	kill_jail(v);
}

void vm_end(struct vm *v)
{
	v->is_told = true;
	if (v->state == SAVED)
		vm_sweep(v);
	else
		end(v);
}

static void fall(struct vm *v, const char *cause)
{
	log_info("vm ends", "sandbox=%s state=%s cause=%s", v->jail.node.id, state_names[v->state],
		 cause);
	v->has_fallen = true;
	end(v);
	if (!v->is_told && !v->is_saved) {
		v->is_told = true;
		v->ops->on_down(v->arg, cause);
	}
}

static const char *const late[STATES] = {
	[JAIL] = "its keeper did not answer in time", [ADOPT] = "it ended while spaced was away",
	[START] = "its guest did not answer in time", [UP] = "",
	[SAVING] = "it could not be saved in time",
};

static void on_timer(void *arg)
{
	struct vm *v = arg;

	if (v->state != ENDING) {
		fall(v, late[v->state]);
		return;
	}
	if (v->kills < VM_KILL_TRIES) {
		kill_jail(v);
		return;
	}
	/* Its folder stays, so the next start finds and ends it. */
	log_error("a jail does not end", "sandbox=%s", v->jail.node.id);
	timer_set(v->timer, VM_KILL_MS);
}

/* --- the keeper's words --- */

static int send_spec(struct vm *v)
{
	uint8_t body[MSG_BODY_MAX];
	struct wr w = wr_of(body, sizeof body);
	int r;

	vm_spec_print(&w, &v->plan.spec);
	assert(!w.bad);
	r = msgsock_send(v->keeper, v->plan.is_boot ? MSG_VM_BOOT : MSG_VM_RESTORE, 1, body,
			 wr_len(&w), v->plan.fd, ARRAY_LEN(v->plan.fd));
	explicit_bzero(body, sizeof body);
	vm_plan_done(&v->plan);
	v->state = START;
	timer_set(v->timer, v->plan.is_boot ? VM_BOOT_MS : VM_START_MS);
	return r;
}

static void come_up(struct vm *v)
{
	v->state = UP;
	timer_clear(v->timer);
	v->ops->on_up(v->arg);
}

static int on_adopted(struct vm *v, const struct keeper_hello *h)
{
	if (!h->has_vm || h->state == VM_NONE || h->state == VM_STOPPED || h->state == VM_SAVING)
		return -ESRCH;
	(void)str_copy(v->plan.spec.variant, sizeof v->plan.spec.variant,
		       h->variant); /* same size */
	v->state = START;
	timer_set(v->timer, VM_START_MS);
	if (h->state == VM_READY)
		come_up(v);
	return 0;
}

static int on_hello(struct vm *v, struct msg *m)
{
	struct keeper_hello h = {.has_vm = false};
	int r = keeper_hello_parse(&h, m->body);

	if (r < 0)
		return r;
	if ((v->state != JAIL && v->state != ADOPT) || m->n_fds < 1)
		return -EPROTO;
	/* A keeper without a VM has not been told its id yet. */
	if (h.state != VM_NONE && (v->state == JAIL || strcmp(h.id, v->jail.node.id) != 0))
		return -EPROTO;
	/* The RAM that it offers is not taken: a captured keeper could hand us another. */
	v->pidfd = fd_take(&m->fd[0]);
	if (v->is_told) { /* vm_bury() */
		end(v);
		return 0;
	}
	return v->state == JAIL ? send_spec(v) : on_adopted(v, &h);
}

static int on_state(struct vm *v, struct rd in)
{
	struct vm_event e = {.state = VM_NONE};
	int r = vm_event_parse(&e, in);

	if (r < 0)
		return r;
	log_debug("vm state", "sandbox=%s state=%s", v->jail.node.id, vm_state_name(e.state));
	if (e.state == VM_READY && v->state == START)
		come_up(v);
	else if (e.state == VM_STOPPED && v->state != SAVING)
		fall(v, e.text[0] ? e.text : "its virtual machine ended");
	return 0;
}

static void on_msg(void *arg, struct msg *m)
{
	struct vm *v = arg;
	int r = -EPROTO;

	if (v->state >= ENDING)
		return;
	if (m->type == MSG_KEEPER_HELLO) {
		r = on_hello(v, m);
	} else if (m->type == MSG_VM_STATE) {
		r = on_state(v, m->body);
	} else if (m->type == MSG_VM_SAVED && v->state == SAVING) {
		v->is_saved = true;
		end(v);
		r = 0;
	}
	if (r == -ESRCH)
		fall(v, "its virtual machine is not there any more");
	else if (r < 0)
		fall(v, "its keeper broke the protocol");
}

static void on_keeper_end(void *arg, int err)
{
	struct vm *v = arg;

	if (v->state >= ENDING)
		return;
	fall(v, err == -EPROTO ? "its keeper broke the protocol" : "its keeper ended");
}

static const struct msgsock_ops keeper_ops = {.on_msg = on_msg, .on_end = on_keeper_end};

int vm_save(struct vm *v, int state_fd)
{
	int r;

	if (v->state != UP)
		return -ESRCH;
	r = msgsock_send(v->keeper, MSG_VM_SAVE, 2, NULL, 0, &state_fd, 1);
	if (r == 0) {
		v->state = SAVING;
		timer_set(v->timer, VM_SAVE_MS);
	}
	return r;
}

/* --- the beginning --- */

static struct vm *new_vm(struct node *n, const char *id, enum state state, const struct vm_ops *ops,
			 void *arg)
{
	struct vm *v = xcalloc(1, sizeof *v);

	static_assert(offsetof(struct vm, jail) == 0, "a vm is found by its jail");
	memcpy(v->jail.node.id, id, SANDBOX_ID_SIZE);
	v->jail.on_end = on_jail_end;
	v->n = n;
	v->state = state;
	v->ops = ops;
	v->arg = arg;
	v->dir = v->pidfd = -1;
	vm_plan_init(&v->plan, false);
	v->timer = timer_new(n->loop, on_timer, v);
	return v;
}

static int make_layer(int dir, uint64_t bytes, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int r = file_open(dir, "layer.qcow2", O_RDWR | O_CREAT | O_EXCL, 0600, &fd, f);

	if (r < 0)
		return r;
	if ((r = qcow2_empty_write(fd, bytes)) < 0)
		return fail_errno(f, r, "cannot write an empty disk layer");
	*ret_fd = fd_take(&fd);
	return 0;
}

/* Sockets and files that the jail gets by descriptor; it has no path to any of them. */
static int make_files(struct vm *v, int jail_fds[JAIL_FDS], struct fail *f)
{
	static const int log_flags = O_RDWR | O_CREAT | O_APPEND; /* the keeper cuts it */
	int *layer = &v->plan.fd[RESTORE_FD_LAYER];
	int *console = &v->plan.fd[RESTORE_FD_CONSOLE];
	int r;

	static_assert((int)BOOT_FD_LAYER == (int)RESTORE_FD_LAYER &&
			      (int)BOOT_FD_CONSOLE == (int)RESTORE_FD_CONSOLE,
		      "the same places for both");

	if ((r = dir_make(v->n->data.run, v->jail.node.id, 0700, f)) < 0 ||
	    (r = dir_open(v->n->data.run, v->jail.node.id, &v->dir, f)) < 0 ||
	    (r = make_layer(v->dir, v->plan.disk_bytes, layer, f)) < 0 ||
	    (r = file_open(v->dir, "console.log", O_RDWR | O_CREAT, 0600, console, f)) < 0 ||
	    (r = sock_unix_listen(v->dir, "keeper.sock", SOCK_SEQPACKET,
				  &jail_fds[JAIL_FD_KEEPER_SOCK], f)) < 0 ||
	    (r = sock_unix_listen(v->dir, "daemon.sock", SOCK_STREAM,
				  &jail_fds[JAIL_FD_CLIENT_SOCK], f)) < 0 ||
	    (r = sock_unix_listen(v->dir, "platform.sock", SOCK_STREAM,
				  &jail_fds[JAIL_FD_PLATFORM_SOCK], f)) < 0 ||
	    (r = file_open(v->dir, "exit", O_RDWR | O_CREAT, 0600, &jail_fds[JAIL_FD_EXIT], f)) < 0)
		return r;
	return file_open(v->dir, "keeper.log", log_flags, 0600, &jail_fds[JAIL_FD_LOG], f);
}

static int connect_keeper(struct vm *v, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int r = sock_unix_connect(v->dir, "keeper.sock", SOCK_SEQPACKET, &fd, f);

	if (r < 0)
		return r;
	v->keeper = msgsock_new(v->n->loop, fd_take(&fd), PEER_SPACED, PEER_KEEPER, &keeper_ops, v);
	return 0;
}

static int ask_for_jail(struct vm *v, const int jail_fds[JAIL_FDS], struct fail *f)
{
	const struct vm_spec *s = &v->plan.spec;
	struct jail_start q = {.memory_max_bytes = (s->memory_mib + JAIL_EXTRA_MIB) * MIB,
			       .file_max_bytes =
				       v->plan.disk_bytes + v->plan.disk_bytes / 8 + LAYER_EXTRA,
			       .pids_max = JAIL_PIDS_MAX,
			       .cpu_max_permille = s->vcpus * 1000 + CPU_EXTRA,
			       .kvm = s->accel == ACCEL_KVM};
	int r;

	memcpy(q.id, v->jail.node.id, sizeof q.id);
	r = jailer_start(v->n->jailer, &v->jail, &q, jail_fds);
	return r < 0 ? fail_errno(f, r, "cannot ask the jailer for a jail") : 0;
}

int vm_start(struct node *n, struct vm_plan *plan, const struct vm_ops *ops, void *arg,
	     struct vm **ret, struct fail *f)
{
	struct vm *v = new_vm(n, plan->spec.id, JAIL, ops, arg);
	int jail_fds[JAIL_FDS] = {-1, -1, -1, -1, -1};
	struct fail ignored;
	int r;

	v->plan = *plan;
	vm_plan_init(plan, plan->is_boot);
	if ((r = make_files(v, jail_fds, f)) == 0 && (r = connect_keeper(v, f)) == 0)
		r = ask_for_jail(v, jail_fds, f);
	for (size_t i = 0; i < JAIL_FDS; i++)
		fd_drop(&jail_fds[i]);
	if (r < 0) {
		(void)dir_remove(n->data.run, v->jail.node.id,
				 &ignored); /* else the next start does */
		free_vm(v);
		return r;
	}
	timer_set(v->timer, VM_HELLO_MS);
	*ret = v;
	return 0;
}

struct vm *vm_adopt(struct node *n, const char *id, const struct vm_ops *ops, void *arg)
{
	struct vm *v = new_vm(n, id, ADOPT, ops, arg);
	struct fail f = {0};

	jailer_adopt(n->jailer, &v->jail);
	if (dir_open(n->data.run, id, &v->dir, &f) < 0 || connect_keeper(v, &f) < 0)
		timer_set(v->timer, 0); /* not before we return */
	else
		timer_set(v->timer, VM_HELLO_MS);
	return v;
}

struct vm *vm_bury(struct node *n, const char *id, const struct vm_ops *ops, void *arg)
{
	struct vm *v = vm_adopt(n, id, ops, arg);

	/* The keeper's pidfd is worth a short wait: without limits only it names the jail. */
	v->is_told = true;
	return v;
}

const char *vm_id(const struct vm *v)
{
	return v->jail.node.id;
}

int vm_dir(const struct vm *v)
{
	return v->dir;
}

const char *vm_variant(const struct vm *v)
{
	return v->plan.spec.variant;
}

int vm_console(const struct vm *v, size_t max, char **ret, size_t *ret_n)
{
	AUTO(fd_drop) int fd = -1;
	struct stat st;
	struct fail f;
	ssize_t n;
	int r = file_open(v->dir, "console.log", O_RDONLY, 0, &fd, &f);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = xcalloc(1, max + 1);
	n = pread(fd, *ret, max, st.st_size > (off_t)max ? st.st_size - (off_t)max : 0);
	*ret_n = n > 0 ? (size_t)n : 0;
	return 0;
}
