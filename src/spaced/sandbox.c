/* One sandbox from the request that wants it to the last trace of it (docs/architecture.md).
 *
 * state    waits for                                 deadline       leaves to
 * VARIANT  the template's variant                    VARIANT_MS     QUEUED, ENDING
 * QUEUED   one of `cores` start slots                QUEUE_MS       START, ENDING
 * START    its vm: the guest can be asked            the vm's own   INIT, ENDING
 * INIT     204 of /space/init                        INIT_MS        RECORD, ENDING
 * RECORD   the record that was put at the beginning  RECORD_MS      RUNNING, ENDING
 * RUNNING  its end                                   rec.end_ns     ENDING
 * ENDING   its vm: no process, no file               the vm's own   FORGET
 * FORGET   the record's removal                      none           freed
 *
 * The record is written while the VM starts, as DB_STARTING; the client is answered when both are
 * there; the change to DB_RUNNING is confirmed afterwards. A restart in between finds DB_STARTING
 * and repeats /space/init, which is harmless, so neither order of a crash loses or doubles
 * anything. */
#include "spaced/sandbox.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"
#include "spaced/admit.h"
#include "spaced/ask.h"
#include "spaced/identity.h"
#include "spaced/ids.h"
#include "spaced/route.h"
#include "spaced/sandboxes.h"
#include "spaced/vm.h"

#include <errno.h>
#include <inttypes.h>

#define VARIANT_MS   300000
#define QUEUE_MS     60000
#define INIT_MS      15000
#define RECORD_MS    30000
#define TIMER_MAX_MS ((uint64_t)24 * 3600 * 1000) /* then look at the clock again */

static const char *const state_names[] = {"variant", "queued",  "start",  "init",
					  "record",  "running", "ending", "forget"};
static_assert(ARRAY_LEN(state_names) == SANDBOX_STATES, "a name for every state");

static const struct refusal refused_stopping = {503, 0, "the node is stopping"};
static const struct refusal refused_queue = {
	429, 2, "too many sandboxes are being created at this moment, try again shortly"};
static const struct refusal refused_record = {500, 0, "the sandbox could not be recorded"};
static const struct refusal failed_variant = {
	503, 0, "the template could not be prepared on this node; its node.log says why"};
static const struct refusal failed_start = {
	503, 0, "the sandbox could not be started; the node's log says why"};
static const struct refusal failed_late = {503, 0, "the sandbox did not start in time"};

/* --- the end --- */

static void free_sandbox(struct sandbox *s)
{
	struct node *n = s->n;
	void (*created)(void *, struct sandbox *, const struct refusal *) = s->created;
	void (*ended)(void *) = s->ended;
	void *created_arg = s->created_arg, *ended_arg = s->ended_arg;
	const struct refusal *refusal = s->refusal;

	idmap_remove(&n->sandboxes->map, &s->node);
	route_done(s);
	db_disown(n->db, s);
	timer_free(s->timer);
	json_decref(s->metadata);
	json_decref(s->env);
	db_sandbox_done(&s->rec);
	free(s);
	if (created)
		created(created_arg, NULL, refusal);
	if (ended)
		ended(ended_arg);
	if (n->is_stopping)
		node_stop(n, NULL);
}

static void on_forgotten(void *arg, int err)
{
	(void)err; /* the db logged it; the next start drops a record without a keeper */
	free_sandbox(arg);
}

static void forget(struct sandbox *s)
{
	struct db_ended e = {.started_ns = s->rec.started_ns, .ended_ns = clock_real_ns()};
	bool was_created = !s->refusal;
	int r;

	s->state = SANDBOX_FORGET;
	slot_leave(s);
	memcpy(e.id, s->node.id, sizeof e.id);
	memcpy(e.template_name, s->rec.template_name, sizeof e.template_name);
	memcpy(e.cause, s->cause, sizeof e.cause);
	log_info("sandbox ended", "sandbox=%s cause=%s ran_ms=%" PRIu64, s->node.id, s->cause,
		 (clock_mono_ns() - s->began_ns) / NS_PER_MS);
	db_disown(s->n->db, s);
	if (was_created) {
		sandboxes_remember(s->n, &e);
		r = db_end_sandbox(s->n->db, &e, on_forgotten, s);
	} else {
		r = db_forget_sandbox(s->n->db, s->node.id, on_forgotten, s);
	}
	if (r < 0)
		free_sandbox(s);
}

static void finish(struct sandbox *s, const char *cause)
{
	if (s->state >= SANDBOX_ENDING)
		return;
	/* It may hold a keeper's words. */
	(void)str_escape(s->cause, sizeof s->cause, cause, strlen(cause), "");
	if (s->state == SANDBOX_QUEUED)
		slot_unwait(s);
	s->state = SANDBOX_ENDING;
	timer_clear(s->timer);
	variants_cancel(&s->want);
	variant_release(s->variant);
	s->variant = NULL;
	ask_free(s->ask);
	s->ask = NULL;
	route_cut(s);
	if (s->vm)
		vm_end(s->vm);
	else
		forget(s);
}

static void give_up(struct sandbox *s, const struct refusal *r, const char *cause)
{
	if (s->state < SANDBOX_RUNNING) {
		s->refusal = r;
		log_error("sandbox could not be created", "sandbox=%s state=%s why=%s", s->node.id,
			  state_names[s->state], cause);
	}
	finish(s, cause);
}

void sandbox_end(struct sandbox *s, const char *cause, void (*ended)(void *arg), void *arg)
{
	s->ended = ended;
	s->ended_arg = arg;
	finish(s, cause);
}

void sandbox_abandon(struct sandbox *s)
{
	s->created = NULL;
	if (s->state < SANDBOX_RUNNING)
		give_up(s, &failed_start, "the client went away");
}

/* --- the life --- */

static void arm_end(struct sandbox *s)
{
	uint64_t now = clock_real_ns();
	uint64_t left_ms = s->rec.end_ns > now ? (s->rec.end_ns - now) / NS_PER_MS + 1 : 0;

	timer_set(s->timer, u64_min(left_ms, TIMER_MAX_MS));
}

static void on_timer(void *arg)
{
	struct sandbox *s = arg;

	if (s->state != SANDBOX_RUNNING)
		give_up(s, &failed_late, "it did not start in time");
	else if (clock_real_ns() >= s->rec.end_ns)
		finish(s, "its time is over");
	else
		arm_end(s);
}

int sandbox_set_end(struct sandbox *s, uint64_t end_ns, db_done *done, void *arg)
{
	int r = db_set_end(s->n->db, s->node.id, end_ns, done, arg);

	if (r == 0) {
		s->rec.end_ns = end_ns;
		arm_end(s);
	}
	return r;
}

static void run(struct sandbox *s)
{
	void (*created)(void *, struct sandbox *, const struct refusal *) = s->created;

	s->state = SANDBOX_RUNNING;
	slot_leave(s);
	s->rec.state = DB_RUNNING;
	(void)db_put_sandbox(s->n->db, &s->rec, NULL, NULL); /* a restart repeats INIT otherwise */
	arm_end(s);
	log_info(s->is_adopted ? "sandbox taken over" : "sandbox running",
		 "sandbox=%s template=%s ms=%" PRIu64, s->node.id, s->rec.template_name,
		 (clock_mono_ns() - s->began_ns) / NS_PER_MS);
	s->created = NULL;
	if (created)
		created(s->created_arg, s, NULL);
}

/* --- the beginning, backwards --- */

static void on_recorded(void *arg, int err)
{
	struct sandbox *s = arg;

	s->is_recorded = err == 0;
	if (err < 0)
		give_up(s, &refused_record, "it could not be recorded");
	else if (s->state == SANDBOX_RECORD)
		run(s);
}

static void on_identity(void *arg, const struct ask_answer *a)
{
	struct sandbox *s = arg;

	s->ask = NULL;
	if (a->err < 0 || a->status != 204) {
		log_warn("the guest did not take its identity", "sandbox=%s status=%u answer=%.*s",
			 s->node.id, a->status, (int)a->n, (const char *)a->p);
		give_up(s, &failed_start, "its guest did not take its identity");
		return;
	}
	if (s->is_recorded) {
		run(s);
		return;
	}
	s->state = SANDBOX_RECORD;
	timer_set(s->timer, RECORD_MS);
}

static void on_up(void *arg)
{
	struct sandbox *s = arg;
	struct identity who = {.id = s->node.id,
			       .template_id = s->rec.template_id,
			       .hostname = s->node.id,
			       .generation = 1,
			       .env = s->env};

	if (s->state == SANDBOX_RUNNING)
		return; /* an adopted one */
	s->state = SANDBOX_INIT;
	timer_clear(s->timer);
	s->ask = identity_send(s->n->loop, vm_dir(s->vm), &who, INIT_MS, on_identity, s);
}

static void on_down(void *arg, const char *cause)
{
	give_up(arg, &failed_start, cause);
}

static void on_gone(void *arg)
{
	struct sandbox *s = arg;

	s->vm = NULL;
	forget(s);
}

static const struct vm_ops vm_ops = {.on_up = on_up, .on_down = on_down, .on_gone = on_gone};

static void start_vm(struct sandbox *s)
{
	AUTO(vm_plan_done) struct vm_plan p;
	struct fail f = {0};
	int r;

	vm_plan_init(&p, false);
	s->state = SANDBOX_START;
	timer_clear(s->timer);
	memcpy(p.spec.id, s->node.id, sizeof p.spec.id);
	memcpy(p.spec.token, s->rec.token, sizeof p.spec.token);
	r = variant_plan(s->n, s->variant, &p, &f);
	variant_release(s->variant);
	s->variant = NULL;
	if (r == 0)
		r = vm_start(s->n, &p, &vm_ops, s, &s->vm, &f);
	if (r < 0)
		give_up(s, &failed_start, f.text);
}

static void on_variant(void *arg, struct variant *v, const char *why)
{
	struct sandbox *s = arg;

	if (!v) {
		give_up(s, &failed_variant, why);
		return;
	}
	variant_hold(v);
	s->variant = v;
	s->state = SANDBOX_QUEUED;
	timer_set(s->timer, QUEUE_MS);
	if (slot_wait(s) < 0)
		give_up(s, &refused_queue, "too many wait for a start");
}

static struct sandbox *new_sandbox(struct node *n, const char *id)
{
	struct sandbox *s = xcalloc(1, sizeof *s);

	static_assert(offsetof(struct sandbox, node) == 0, "a sandbox is found by its node");
	memcpy(s->node.id, id, SANDBOX_ID_SIZE);
	s->n = n;
	s->began_ns = clock_mono_ns();
	s->timer = timer_new(n->loop, on_timer, s);
	s->on_slot = start_vm;
	s->want = (struct want){.done = on_variant, .arg = s};
	idmap_add(&n->sandboxes->map, &s->node);
	return s;
}

static void fill_record(struct sandbox *s, const struct new_sandbox *want, const struct template *t)
{
	size_t n;

	memcpy(s->rec.id, s->node.id, sizeof s->rec.id);
	memcpy(s->rec.template_name, t->name, sizeof s->rec.template_name);
	memcpy(s->rec.template_id, t->id, sizeof s->rec.template_id);
	if (want->secure)
		token_make(s->rec.token);
	s->rec.state = DB_STARTING;
	s->rec.vcpus = t->vcpus;
	s->rec.memory_mib = t->memory_mib;
	s->rec.disk_mib = t->disk_mib;
	s->rec.started_ns = clock_real_ns();
	s->rec.end_ns = s->rec.started_ns + want->timeout_s * NS_PER_S;
	s->rec.metadata = json_print(s->metadata, JSON_BYTES_MAX, &n);
	s->rec.env = json_print(s->env, JSON_BYTES_MAX, &n);
}

const struct refusal *
sandbox_create(struct node *n, struct new_sandbox *want, const struct template *t,
	       void (*created)(void *arg, struct sandbox *s, const struct refusal *r), void *arg,
	       struct sandbox **ret)
{
	const struct refusal *r = n->is_stopping ? &refused_stopping : admit(n);
	char id[SANDBOX_ID_SIZE];
	struct sandbox *s;

	if (r)
		return r;
	do
		id_make(id);
	while (idmap_find(&n->sandboxes->map, id));
	s = new_sandbox(n, id);
	s->metadata = json_incref(want->metadata);
	s->env = json_deep_copy(t->env);
	(void)json_object_update(s->env, want->env); /* out of memory ends us elsewhere */
	fill_record(s, want, t);
	s->created = created;
	s->created_arg = arg;
	timer_set(s->timer, VARIANT_MS);
	*ret = s;
	if (db_put_sandbox(n->db, &s->rec, on_recorded, s) < 0) {
		s->created = NULL;
		give_up(s, &refused_record, "too many records wait");
		return &refused_record;
	}
	variants_get(n->variants, t, &s->want);
	return NULL;
}

/* --- after a restart --- */

/* DB_RUNNING: served at once, its VM's answer only confirms it. DB_STARTING: nobody was answered,
 * or a moment ago: /space/init is repeated first. */
void sandbox_take_over(struct node *n, struct db_sandbox *rec)
{
	struct sandbox *s = new_sandbox(n, rec->id);
	json_error_t e;

	s->rec = *rec;
	*rec = (struct db_sandbox){.env = NULL};
	s->metadata = json_loads(s->rec.metadata, JSON_REJECT_DUPLICATES, &e);
	s->env = json_loads(s->rec.env, JSON_REJECT_DUPLICATES, &e);
	if (!s->metadata)
		s->metadata = json_object();
	s->is_adopted = true;
	s->is_recorded = true;
	s->state = SANDBOX_START;
	s->vm = vm_adopt(n, s->node.id, &vm_ops, s);
	if (s->rec.state == DB_RUNNING) {
		s->state = SANDBOX_RUNNING;
		arm_end(s);
	}
}

void sandboxes_stop(struct node *n)
{
	struct sandbox **all = (struct sandbox **)idmap_all(&n->sandboxes->map);
	size_t n_all = n->sandboxes->map.n;

	for (size_t i = 0; i < n_all; i++)
		give_up(all[i], &refused_stopping, "the node was stopped");
	free(all);
}
