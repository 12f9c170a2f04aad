/* See sandboxes.h. */
#include "spaced/sandboxes.h"

#include "base/alloc.h"
#include "base/log.h"
#include "os/dir.h"
#include "spaced/vm.h"

#include <errno.h>

/* --- the table --- */

struct sandboxes *sandboxes_new(struct node *n)
{
	struct sandboxes *all = xcalloc(1, sizeof *all);
	struct db_ended *ended = NULL;
	struct fail f = {0};

	all->queue_last = &all->queue;
	if (db_load_ended(n->db, &ended, &all->n_ended, &f) < 0)
		log_warn("cannot read how sandboxes ended, going on", "why=%s", f.text);
	else
		memcpy(all->ended, ended, all->n_ended * sizeof *ended);
	free(ended);
	return all;
}

void sandboxes_free(struct sandboxes *all)
{
	free(all);
}

struct sandbox *sandbox_find(struct node *n, const char *id)
{
	struct sandbox *s = (struct sandbox *)idmap_find(&n->sandboxes->map, id);

	return s && s->state == SANDBOX_RUNNING ? s : NULL;
}

struct sandbox **sandboxes_running(struct node *n, size_t *ret_n)
{
	struct sandbox **all = (struct sandbox **)idmap_all(&n->sandboxes->map);
	size_t kept = 0;

	for (size_t i = 0; i < n->sandboxes->map.n; i++)
		if (all[i]->state == SANDBOX_RUNNING)
			all[kept++] = all[i];
	*ret_n = kept;
	return all;
}

size_t sandboxes_left(const struct node *n)
{
	return n->sandboxes->map.n;
}

void sandboxes_count(struct node *n, struct sandbox_counts *ret)
{
	struct sandbox **all = (struct sandbox **)idmap_all(&n->sandboxes->map);

	*ret = (struct sandbox_counts){.queued = 0};
	for (size_t i = 0; i < n->sandboxes->map.n; i++) {
		enum sandbox_state state = all[i]->state;

		if (state == SANDBOX_RUNNING)
			ret->running++;
		else if (state >= SANDBOX_ENDING)
			ret->ending++;
		else if (state <= SANDBOX_QUEUED)
			ret->queued++;
		else
			ret->starting++;
	}
	free(all);
}

const struct db_ended *sandboxes_ended(struct node *n, size_t *ret_n)
{
	*ret_n = n->sandboxes->n_ended;
	return n->sandboxes->ended;
}

void sandboxes_remember(struct node *n, const struct db_ended *e)
{
	struct sandboxes *all = n->sandboxes;

	if (all->n_ended == DB_ENDED_KEPT)
		memmove(all->ended, all->ended + 1, --all->n_ended * sizeof *e);
	all->ended[all->n_ended++] = *e;
}

/* --- start slots --- */

void slot_unwait(struct sandbox *s)
{
	struct sandboxes *all = s->n->sandboxes;
	struct sandbox **p = &all->queue;

	while (*p && *p != s)
		p = &(*p)->next_queued;
	if (!*p)
		return;
	*p = s->next_queued;
	if (!*p)
		all->queue_last = p;
	all->n_queued--;
}

static void slots_step(struct node *n)
{
	struct sandboxes *all = n->sandboxes;

	while (all->queue && all->in_flight < n->cfg.cores) {
		struct sandbox *s = all->queue;

		slot_unwait(s);
		s->holds_slot = true;
		all->in_flight++;
		s->on_slot(s);
	}
}

void slot_leave(struct sandbox *s)
{
	struct sandboxes *all = s->n->sandboxes;

	if (s->holds_slot) {
		s->holds_slot = false;
		all->in_flight--;
		slots_step(s->n);
	}
}

int slot_wait(struct sandbox *s)
{
	struct sandboxes *all = s->n->sandboxes;

	if (all->n_queued >= QUEUED_MAX)
		return -ENOBUFS;
	s->next_queued = NULL;
	*all->queue_last = s;
	all->queue_last = &s->next_queued;
	all->n_queued++;
	slots_step(s->n);
	return 0;
}

/* --- after a restart --- */

static void on_buried(void *arg)
{
	(void)arg;
}

/* Folders and keepers that no record knows: variants in the making, removals cut short. */
static int bury_strangers(struct node *n, struct fail *f)
{
	static const struct vm_ops ops = {.on_gone = on_buried};
	char **names = NULL;
	size_t n_names = 0;
	int r = dir_list(n->data.root, "run", &names, &n_names, f);

	for (size_t i = 0; r == 0 && i < n_names; i++) {
		if (sandbox_id_valid(names[i]) && !idmap_find(&n->sandboxes->map, names[i])) {
			log_info("removing what no record knows", "sandbox=%s", names[i]);
			(void)vm_bury(n, names[i], &ops, NULL);
		}
	}
	for (size_t i = 0; i < n_names; i++)
		free(names[i]);
	free(names);
	return r;
}

int sandboxes_recover(struct node *n, struct fail *f)
{
	struct db_sandbox *rec = NULL;
	size_t n_rec = 0;
	int r = db_load_sandboxes(n->db, &rec, &n_rec, f);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n_rec; i++) {
		if (sandbox_id_valid(rec[i].id))
			sandbox_take_over(n, &rec[i]);
		db_sandbox_done(&rec[i]);
	}
	free(rec);
	return bury_strangers(n, f);
}
