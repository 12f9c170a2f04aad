/* See variants.h. One variant is made at a time.
 *
 * state    waits for                                    leaves to
 * ABSENT   its turn                                     LOADING
 * LOADING  the pool: files read and checked             READY, BOOTING (none there or damaged)
 * BOOTING  vm on_up                                     IDENTITY, FAILED
 * IDENTITY 204 of /space/init                           WARMING, FAILED
 * WARMING  the warming programs' ends, best effort      SAVING, FAILED
 * SAVING   vm on_saved                                  STORING, FAILED
 * STORING  the pool: files written and synced           LEAVING
 * LEAVING  vm on_gone                                   READY, ABSENT (failed)
 * READY    nobody                                       ABSENT (evicted) */
#include "spaced/variants.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "spaced/ask.h"
#include "spaced/identity.h"
#include "spaced/ids.h"
#include "store/variant.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define MIB      ((uint64_t)1024 * 1024)
#define INIT_MS  15000
#define WARM_MS  60000
#define WHY_SIZE 512

enum state { ABSENT, LOADING, BOOTING, IDENTITY, WARMING, SAVING, STORING, LEAVING, READY };

struct variant {
	char id[VARIANT_ID_SIZE];
	struct variant_key key;
	char template_name[TEMPLATE_NAME_MAX + 1];
	char template_id[TEMPLATE_NAME_MAX + 1];
	uint32_t disk_mib;
	enum state state;
	struct variant_files files;
	struct vm *vm;
	struct ask *ask;
	unsigned warmed;
	bool is_stored;
	int work_err;
	struct fail work_fail;
	struct want *wants;
	unsigned holds;
	uint64_t used_ns;
	uint64_t began_ns;
	char why[WHY_SIZE];
	struct variants *all;
	struct variant *next;
};

struct variants {
	struct node *n;
	struct variant *first;
	struct variant *making; /* the one in hand */
	struct timer *turn;     /* to begin the next, and to tell those whose variant is ready */
	bool is_stopping;
};

static void fell(struct variant *v, const char *why);

/* --- who waits --- */

static void tell(struct variant *v, bool is_ready)
{
	while (v->wants) {
		struct want *w = v->wants;

		v->wants = w->next;
		w->of = NULL;
		w->done(w->arg, is_ready ? v : NULL, v->why);
	}
}

void variants_cancel(struct want *w)
{
	struct want **p;

	if (!w->of)
		return;
	for (p = &w->of->wants; *p != w; p = &(*p)->next)
		;
	*p = w->next;
	w->of = NULL;
}

/* --- what is kept --- */

static void evict(struct variants *vs)
{
	struct variant *oldest = NULL;
	unsigned ready = 0;

	for (struct variant *v = vs->first; v; v = v->next) {
		if (v->state != READY)
			continue;
		ready++;
		if (!v->wants && !v->holds && (!oldest || v->used_ns < oldest->used_ns))
			oldest = v;
	}
	if (ready < VARIANTS_KEPT_MAX || !oldest)
		return;
	variant_files_done(&oldest->files);
	oldest->state = ABSENT;
}

static void settle(struct variant *v, bool is_ready)
{
	struct variants *vs = v->all;

	v->state = is_ready ? READY : ABSENT;
	if (is_ready)
		log_info("variant ready", "template=%s variant=%.12s ms=%" PRIu64, v->template_name,
			 v->id, (clock_mono_ns() - v->began_ns) / NS_PER_MS);
	else
		variant_files_done(&v->files);
	vs->making = NULL;
	tell(v, is_ready);
	timer_set(vs->turn, 0);
}

/* --- storing --- */

static void store_work(void *arg)
{
	struct variant *v = arg;
	struct node *n = v->all->n;
	char run_id[SANDBOX_ID_SIZE];

	memcpy(run_id, vm_id(v->vm), sizeof run_id);
	v->work_err = variant_save(&n->data, v->id, &v->key, v->files.ram, v->files.devices, run_id,
				   &v->work_fail);
	if (v->work_err < 0)
		return;
	fd_drop(&v->files.devices);
	v->work_err = variant_load_rest(&n->data, v->id, &v->files, &v->work_fail);
}

static void store_done(void *arg)
{
	struct variant *v = arg;

	v->is_stored = v->work_err == 0;
	if (!v->is_stored)
		(void)str_copy(v->why, sizeof v->why, v->work_fail.text); /* both are as long */
	v->state = LEAVING;
	vm_sweep(v->vm);
}

static void on_saved(void *arg)
{
	struct variant *v = arg;

	v->state = STORING;
	loop_work(v->all->n->loop, store_work, store_done, v);
}

/* --- warming --- */

/* What most agents do first: the pages that these touch are in the image, no clone pays again. */
static const char *const warm_bodies[] = {
	"{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"true\"]},\"stdin\":false}",
	"{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"id; echo; sleep 0\"]},"
	"\"stdin\":false}",
	"{\"process\":{\"cmd\":\"/usr/bin/"
	"python3\",\"args\":[\"-c\",\"print(6*7)\"]},\"stdin\":false}",
};

static void save(struct variant *v)
{
	struct fail f = {0};
	int r;

	v->state = SAVING;
	r = memfd_make("devices", 0, &v->files.devices, &f);
	if (r == 0 && (r = vm_save(v->vm, v->files.devices)) < 0)
		(void)fail_errno(&f, r, "cannot ask for the save");
	if (r < 0)
		fell(v, f.text);
}

static void warm_next(struct variant *v);

static void on_warmed(void *arg, const struct ask_answer *a)
{
	struct variant *v = arg;

	v->ask = NULL;
	if (a->err < 0 || a->status != 200)
		log_warn("a warming program did not run, going on",
			 "template=%s program=%u status=%u", v->template_name, v->warmed,
			 a->status);
	v->warmed++;
	warm_next(v);
}

static void warm_next(struct variant *v)
{
	const char *json;
	uint8_t body[512];
	struct wr w = wr_of(body, sizeof body);
	struct ask_spec spec = {.dir = vm_dir(v->vm),
				.socket = "daemon.sock",
				.path = "/process.Process/Start",
				.authority = "envd",
				.content_type = "application/connect+json",
				.body = body,
				.deadline_ms = WARM_MS};

	if (v->warmed >= ARRAY_LEN(warm_bodies)) {
		save(v);
		return;
	}
	v->state = WARMING;
	json = warm_bodies[v->warmed];
	wr_u8(&w, 0); /* a Connect envelope: flags, length, message */
	wr_be32(&w, (uint32_t)strlen(json));
	wr_bytes(&w, json, strlen(json));
	assert(!w.bad);
	spec.n = wr_len(&w);
	v->ask = ask_start(v->all->n->loop, &spec, on_warmed, v);
}

static void on_identity(void *arg, const struct ask_answer *a)
{
	struct variant *v = arg;

	v->ask = NULL;
	if (a->err == 0 && a->status == 204)
		warm_next(v);
	else
		fell(v, "the guest did not take its identity");
}

static void on_up(void *arg)
{
	struct variant *v = arg;
	struct identity who = {.id = vm_id(v->vm),
			       .template_id = v->template_id,
			       .hostname = "template",
			       .generation = 0};

	v->state = IDENTITY;
	v->ask = identity_send(v->all->n->loop, vm_dir(v->vm), &who, INIT_MS, on_identity, v);
}

/* --- booting --- */

static void fell(struct variant *v, const char *why)
{
	log_error("variant could not be made", "template=%s why=%s", v->template_name, why);
	if (v->why != why)
		(void)snprintf(v->why, sizeof v->why, "%s", why); /* cut is fine: a log line */
	ask_free(v->ask);
	v->ask = NULL;
	v->is_stored = false;
	if (!v->vm) {
		settle(v, false);
		return;
	}
	v->state = LEAVING;
	vm_end(v->vm);
}

static void on_down(void *arg, const char *cause)
{
	fell(arg, cause);
}

static void on_gone(void *arg)
{
	struct variant *v = arg;

	v->vm = NULL;
	settle(v, v->is_stored);
}

static const struct vm_ops making_ops = {
	.on_up = on_up, .on_saved = on_saved, .on_down = on_down, .on_gone = on_gone};

static int open_boot_files(struct variant *v, struct vm_plan *p, struct fail *f)
{
	AUTO(str_drop) char *kernel = xasprintf("%s/vmlinuz", v->key.kernel);
	int root = v->all->n->data.root;
	int r;

	if ((r = memfd_make("ram", v->key.memory_mib * MIB, &v->files.ram, f)) < 0 ||
	    (r = file_open(root, kernel, O_RDONLY, 0, &p->fd[BOOT_FD_KERNEL], f)) < 0 ||
	    (r = file_open(root, v->key.initrd, O_RDONLY, 0, &p->fd[BOOT_FD_INITRD], f)) < 0 ||
	    (r = file_open(root, v->key.image, O_RDONLY, 0, &p->fd[BOOT_FD_BASE], f)) < 0)
		return r;
	p->fd[BOOT_FD_RAM] = fcntl(v->files.ram, F_DUPFD_CLOEXEC, 3);
	return p->fd[BOOT_FD_RAM] < 0 ? fail_errno(f, -errno, "cannot share the memory") : 0;
}

static void boot(struct variant *v)
{
	AUTO(vm_plan_done) struct vm_plan p;
	struct fail f = {0};
	int r;

	vm_plan_init(&p, true);
	v->state = BOOTING;
	v->warmed = 0;
	id_make(p.spec.id);
	p.spec.accel = v->key.accel;
	p.spec.memory_mib = v->key.memory_mib;
	p.spec.vcpus = v->key.vcpus;
	p.disk_bytes = v->disk_mib * MIB;
	log_info("making a variant", "template=%s memory_mib=%u vcpus=%u accel=%s",
		 v->template_name, v->key.memory_mib, v->key.vcpus, accel_name(v->key.accel));
	r = open_boot_files(v, &p, &f);
	if (r == 0)
		r = vm_start(v->all->n, &p, &making_ops, v, &v->vm, &f);
	if (r < 0)
		fell(v, f.text);
}

/* --- loading --- */

static void load_work(void *arg)
{
	struct variant *v = arg;
	struct node *n = v->all->n;
	struct fail ignored;

	v->work_fail = (struct fail){0};
	v->work_err = variant_load(&n->data, v->id, &v->files, &v->work_fail);
	if (v->work_err == -EBADMSG)
		(void)variant_remove(&n->data, v->id, &ignored); /* the save removes it again */
}

static void load_done(void *arg)
{
	struct variant *v = arg;

	if (v->work_err == 0) {
		settle(v, true);
		return;
	}
	if (v->work_err != -ENOENT)
		log_warn("a variant cannot be used, making it anew", "variant=%.12s why=%s", v->id,
			 v->work_fail.text);
	if (v->all->is_stopping)
		fell(v, "the node is stopping");
	else if (v->work_err == -ENOENT || v->work_err == -EBADMSG)
		boot(v);
	else
		fell(v, v->work_fail.text);
}

/* One thing a turn: tell those whose variant is there, or begin the next. */
static void on_turn(void *arg)
{
	struct variants *vs = arg;

	for (struct variant *v = vs->first; v; v = v->next)
		if (v->state == READY && v->wants)
			tell(v, true);
	if (vs->making)
		return;
	for (struct variant *v = vs->first; v; v = v->next) {
		if (v->state != ABSENT || !v->wants)
			continue;
		evict(vs);
		vs->making = v;
		v->state = LOADING;
		v->began_ns = clock_mono_ns();
		v->why[0] = '\0';
		loop_work(vs->n->loop, load_work, load_done, v);
		return;
	}
}

/* --- the outside --- */

static void key_of(const struct config *c, const struct template *t, struct variant_key *k)
{
	*k = (struct variant_key){
		.memory_mib = t->memory_mib, .vcpus = t->vcpus, .accel = c->accel};
	memcpy(k->image, t->image, sizeof k->image);
	memcpy(k->kernel, t->kernel, sizeof k->kernel);
	memcpy(k->initrd, t->initrd, sizeof k->initrd);
	memcpy(k->engine, c->engine, sizeof k->engine);
}

static struct variant *find_or_add(struct variants *vs, const struct template *t)
{
	struct variant_key key;
	char id[VARIANT_ID_SIZE];
	struct variant *v;

	key_of(&vs->n->cfg, t, &key);
	variant_id(&key, id);
	for (v = vs->first; v; v = v->next)
		if (strcmp(v->id, id) == 0)
			return v;
	v = xcalloc(1, sizeof *v);
	memcpy(v->id, id, sizeof v->id);
	memcpy(v->template_name, t->name, sizeof v->template_name);
	memcpy(v->template_id, t->id, sizeof v->template_id);
	v->key = key;
	v->disk_mib = t->disk_mib;
	v->files = VARIANT_FILES_NONE;
	v->all = vs;
	v->next = vs->first;
	vs->first = v;
	return v;
}

void variants_get(struct variants *vs, const struct template *t, struct want *w)
{
	struct variant *v = find_or_add(vs, t);

	w->of = v;
	w->next = v->wants;
	v->wants = w;
	v->used_ns = clock_mono_ns();
	timer_set(vs->turn, 0);
}

void variant_hold(struct variant *v)
{
	v->holds++;
}

void variant_release(struct variant *v)
{
	if (v)
		v->holds--;
}

const char *variant_name(const struct variant *v)
{
	return v->id;
}

int variant_plan(struct node *n, struct variant *v, struct vm_plan *ret, struct fail *f)
{
	assert(v->state == READY);
	(void)str_copy(ret->spec.variant, sizeof ret->spec.variant, v->id); /* same size */
	ret->spec.accel = v->key.accel;
	ret->spec.memory_mib = v->key.memory_mib;
	ret->spec.vcpus = v->key.vcpus;
	ret->disk_bytes = v->disk_mib * MIB;
	ret->fd[RESTORE_FD_RAM] = fcntl(v->files.ram, F_DUPFD_CLOEXEC, 3);
	if (ret->fd[RESTORE_FD_RAM] < 0)
		return fail_errno(f, -errno, "cannot share the memory");
	/* Each jail gets descriptors of its own: offsets and flags of a shared one would be
	 * shared too. */
	ret->fd[RESTORE_FD_STATE] = fd_reopen(v->files.devices, O_RDONLY | O_CLOEXEC);
	ret->fd[RESTORE_FD_TEMPLATE_LAYER] = fd_reopen(v->files.layer, O_RDONLY | O_CLOEXEC);
	if (ret->fd[RESTORE_FD_STATE] < 0 || ret->fd[RESTORE_FD_TEMPLATE_LAYER] < 0)
		return fail_set(f, -EMFILE, "cannot share the device state and the disk layer");
	return file_open(n->data.root, v->key.image, O_RDONLY, 0, &ret->fd[RESTORE_FD_BASE], f);
}

struct variants *variants_new(struct node *n)
{
	struct variants *vs = xcalloc(1, sizeof *vs);
	struct fail f = {0};

	vs->n = n;
	vs->turn = timer_new(n->loop, on_turn, vs);
	if (variant_sweep(&n->data, n->cfg.engine, &f) < 0)
		log_warn("cannot remove half-made variants, going on", "why=%s", f.text);
	return vs;
}

void variants_stop(struct variants *vs)
{
	struct variant *v = vs->making;

	vs->is_stopping = true;
	/* What the pool has in hand ends by itself. */
	if (v && v->vm && v->state != STORING && v->state != LEAVING)
		fell(v, "the node is stopping");
}

bool variants_busy(const struct variants *vs)
{
	return vs->making != NULL;
}

void variants_free(struct variants *vs)
{
	struct variant *v = vs ? vs->first : NULL;

	while (v) {
		struct variant *next = v->next;

		variant_files_done(&v->files);
		free(v);
		v = next;
	}
	if (vs)
		timer_free(vs->turn);
	free(vs);
}
