/* See view.h. All required fields of E2B's specification are always there: clients that are
 * generated from it fail on a missing one. */
#include "spaced/view.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/http_server.h"
#include "spaced/answer.h"

#include <string.h>

static const char *const isolation[ACCELS] = {
	[ACCEL_TCG] = "emulated (the jail is the boundary)",
	[ACCEL_KVM] = "kvm",
};

static void set_time(json_t *o, const char *key, uint64_t real_ns)
{
	char text[RFC3339_SIZE];

	rfc3339_print(text, real_ns);
	(void)json_object_set_new(o, key,
				  json_string(text)); /* out of memory: the field is missing */
}

json_t *view_sandbox(const struct sandbox *s)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:n, s:n}", "templateID",
			      s->rec.template_id, "sandboxID", s->node.id, "clientID", CLIENT_ID,
			      "envdVersion", ENVD_VERSION, "alias", s->rec.template_name, "domain",
			      "trafficAccessToken");

	if (o && s->rec.token[0])
		(void)json_object_set_new(o, "envdAccessToken", json_string(s->rec.token));
	return o;
}

static json_t *view_listed(const struct sandbox *s)
{
	json_t *o = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:O}", "templateID",
		s->rec.template_id, "sandboxID", s->node.id, "clientID", CLIENT_ID, "envdVersion",
		ENVD_VERSION, "alias", s->rec.template_name, "cpuCount", (json_int_t)s->rec.vcpus,
		"memoryMB", (json_int_t)s->rec.memory_mib, "diskSizeMB",
		(json_int_t)s->rec.disk_mib, "state", "running", "metadata", s->metadata);

	if (o) {
		set_time(o, "startedAt", s->rec.started_ns);
		set_time(o, "endAt", s->rec.end_ns);
	}
	return o;
}

json_t *view_detail(const struct sandbox *s)
{
	json_t *o = view_listed(s);
	json_t *more = json_pack("{s:n, s:n, s:{s:b, s:s}}", "domain", "allowInternetAccess",
				 "lifecycle", "autoResume", false, "onTimeout", "kill");

	if (o && more)
		(void)json_object_update(o, more);
	json_decref(more);
	if (o && s->rec.token[0])
		(void)json_object_set_new(o, "envdAccessToken", json_string(s->rec.token));
	return o;
}

/* --- lists --- */

static bool metadata_fits(const struct sandbox *s, const struct list_query *q)
{
	for (size_t i = 0; i < q->n_filters; i++) {
		const char *v = json_string_value(json_object_get(s->metadata, q->filter[i].key));

		if (!v || strcmp(v, q->filter[i].value) != 0)
			return false;
	}
	return true;
}

static int by_start(const struct sandbox *a, uint64_t started_ns, const char *id)
{
	if (a->rec.started_ns != started_ns)
		return a->rec.started_ns < started_ns ? -1 : 1;
	return strcmp(a->node.id, id);
}

static bool fits(const struct sandbox *s, const struct list_query *q)
{
	if (!q->running || s->rec.started_ns < q->started_after_ns)
		return false;
	if (q->template_name && strcmp(q->template_name, s->rec.template_name) != 0 &&
	    strcmp(q->template_name, s->rec.template_id) != 0)
		return false;
	if (q->has_after) {
		int at = by_start(s, q->after_started_ns, q->after_id);

		if (q->ascending ? at <= 0 : at >= 0)
			return false;
	}
	return metadata_fits(s, q);
}

static int oldest_first(const void *a, const void *b)
{
	const struct sandbox *x = *(struct sandbox *const *)a, *y = *(struct sandbox *const *)b;

	return by_start(x, y->rec.started_ns, y->node.id);
}

static int newest_first(const void *a, const void *b)
{
	return oldest_first(b, a);
}

json_t *view_list(struct node *n, const struct list_query *q, char token[LIST_TOKEN_SIZE])
{
	size_t n_all = 0, bytes = 0;
	struct sandbox **all = sandboxes_running(n, &n_all);
	const struct sandbox *last = NULL;
	json_t *page = json_array();

	qsort(all, n_all, sizeof *all, q->ascending ? oldest_first : newest_first);
	for (size_t i = 0; i < n_all; i++) {
		json_t *o;

		if (!fits(all[i], q))
			continue;
		if (last && (json_array_size(page) >= q->limit ||
			     (q->limit <= LIST_LIMIT_MAX && bytes >= PAGE_BYTES_MAX))) {
			list_token_print(token, last->rec.started_ns, last->node.id);
			break;
		}
		last = all[i];
		o = view_listed(last);
		bytes += o ? json_dumpb(o, NULL, 0, JSON_COMPACT) : 0;
		(void)json_array_append_new(page, o);
	}
	free(all);
	return page;
}

void answer_page(struct http_exchange *x, const json_t *page, const char *token)
{
	size_t n = 0;
	AUTO(str_drop) char *text = json_print(page, HTTP_QUEUE, &n);
	struct http_field h[] = {{"Content-Type", "application/json"}, {"X-Next-Token", token}};

	if (!text)
		answer_error(x, 500, "the page could not be written");
	else if (http_respond(x, 200, h, ARRAY_LEN(h), n) == 0 && http_write(x, text, n) == 0)
		http_finish(x);
	else
		http_abort(x);
}

/* --- the node --- */

json_t *view_templates(struct node *n, struct fail *f)
{
	struct template *all = NULL;
	size_t n_all = 0, bad = 0;
	json_t *list;

	if (template_list(&n->data, &all, &n_all, &bad, f) < 0)
		return NULL;
	list = json_array();
	for (size_t i = 0; i < n_all; i++) {
		const struct template *t = &all[i];

		(void)json_array_append_new(
			list, json_pack("{s:s, s:[s], s:[s], s:b, s:I, s:I, s:I, s:s}",
					"templateID", t->id, "aliases", t->name, "names", t->name,
					"public", true, "cpuCount", (json_int_t)t->vcpus,
					"memoryMB", (json_int_t)t->memory_mib, "diskSizeMB",
					(json_int_t)t->disk_mib, "envdVersion", ENVD_VERSION));
		template_done(&all[i]);
	}
	free(all);
	return list;
}

json_t *view_node(struct node *n)
{
	struct sandbox_counts c;

	sandboxes_count(n, &c);
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:b, s:s, s:b, s:{s:I, s:I, s:I, s:I}, s:I, s:I, s:I, s:b}",
		"version", SPACE_VERSION, "isolation", isolation[n->cfg.accel], "accel",
		accel_name(n->cfg.accel), "accelWhy", n->cfg.accel_why, "limits",
		n->jails.has_limits, "limitsWhy", n->jails.limits_why, "ownUids", n->jails.is_root,
		"sandboxes", "running", (json_int_t)c.running, "starting",
		(json_int_t)(c.starting + c.queued), "ending", (json_int_t)c.ending, "max",
		(json_int_t)n->cfg.max_sandboxes, "cores", (json_int_t)n->cfg.cores, "maxHours",
		(json_int_t)n->cfg.max_hours, "uptimeMs",
		(json_int_t)((clock_mono_ns() - n->started_ns) / NS_PER_MS), "stopping",
		n->is_stopping);
}

json_t *view_ended(struct node *n)
{
	size_t n_all = 0;
	const struct db_ended *all = sandboxes_ended(n, &n_all);
	json_t *list = json_array();

	for (size_t i = n_all; i-- > 0;) { /* newest first */
		json_t *o = json_pack("{s:s, s:s, s:s}", "sandboxID", all[i].id, "alias",
				      all[i].template_name, "cause", all[i].cause);

		if (o) {
			set_time(o, "startedAt", all[i].started_ns);
			set_time(o, "endedAt", all[i].ended_ns);
		}
		(void)json_array_append_new(list, o);
	}
	return list;
}
