/* One call of the control plane: who asks, which call, the body, the answer.
 *
 * A call object lives as long as its exchange. What it waits for (a creation, an end, a durable
 * record) calls back with the call as arg; when the client goes away first, the wait is given up
 * (call_drop_wait), so that no callback finds a dead exchange. */
#include "spaced/api.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"
#include "spaced/answer.h"
#include "spaced/params.h"
#include "spaced/query.h"
#include "spaced/route.h"
#include "spaced/sandbox.h"
#include "spaced/view.h"
#include "spaced/vm.h"

#include <errno.h>

#define API_KEY_HEADER "x-api-key"
#define API_KEY_MAX    256u
#define CONSOLE_MAX    (64u * 1024)

struct call {
	struct node *n;
	struct http_exchange *x;
	enum api_call which;
	bool is_local;
	bool is_answered;
	char id[SANDBOX_ID_SIZE];
	const char *query; /* of the request, borrowed as long as the exchange lives */
	size_t query_n;
	struct buf body;
	struct sandbox *creating; /* waits for it */
	struct sandbox *ending;
	struct sandbox *extending;
	unsigned status; /* of the answer once the record is durable */
};

static void call_free(struct call *c)
{
	buf_done(&c->body);
	free(c);
}

static void done_error(struct call *c, unsigned status, const char *message)
{
	c->is_answered = true;
	answer_error(c->x, status, message);
}

static void done_json(struct call *c, unsigned status, json_t *o)
{
	c->is_answered = true;
	answer_json(c->x, status, o);
	json_decref(o);
}

static void done_not_found(struct call *c)
{
	done_error(c, 404, "the sandbox was not found");
}

/* --- sandboxes --- */

static void on_created(void *arg, struct sandbox *s, const struct refusal *r)
{
	struct call *c = arg;

	c->creating = NULL;
	if (s) {
		done_json(c, 201, view_sandbox(s));
		return;
	}
	c->is_answered = true;
	answer_refusal(c->x, r->status, r->retry_after_s, r->message);
}

static void refuse_template(struct call *c, const char *name, int err, const struct fail *f)
{
	AUTO(str_drop) char *message = xasprintf("template '%s' not found", name);

	if (err == -ENOENT) {
		done_error(c, 404, message);
		return;
	}
	log_error("a template cannot be read", "template=%s why=%s", name, f->text);
	done_error(c, 500, "the template is damaged on this node; its node.log says why");
}

static void do_create(struct call *c)
{
	AUTO(new_sandbox_done) struct new_sandbox want = {.secure = false};
	AUTO(template_done) struct template t = {.memory_mib = 0};
	enum api_version v = c->which == API_CREATE_V1 ? API_V1 : API_V2;
	const struct refusal *refusal;
	struct sandbox *s = NULL;
	struct fail f = {0};
	int r = new_sandbox_parse(buf_data(&c->body), buf_len(&c->body), v, c->n->cfg.max_hours,
				  &want, &f);

	if (r < 0) {
		done_error(c, r == -EOPNOTSUPP ? 501 : 400, f.text);
		return;
	}
	r = template_find(&c->n->data, want.template_name, &t, &f);
	if (r < 0) {
		refuse_template(c, want.template_name, r, &f);
		return;
	}
	refusal = sandbox_create(c->n, &want, &t, on_created, c, &s);
	if (!refusal) {
		c->creating = s;
		return;
	}
	c->is_answered = true;
	answer_refusal(c->x, refusal->status, refusal->retry_after_s, refusal->message);
}

static void on_killed(void *arg)
{
	struct call *c = arg;

	c->ending = NULL;
	c->is_answered = true;
	answer_empty(c->x, 204);
}

static void do_kill(struct call *c, struct sandbox *s)
{
	c->ending = s;
	sandbox_end(s, "it was killed by request", on_killed, c);
}

static void on_extended(void *arg, int err)
{
	struct call *c = arg;
	struct sandbox *s = sandbox_find(c->n, c->id);

	c->extending = NULL;
	if (!s)
		done_not_found(c);
	else if (err < 0)
		done_error(c, 500, "the new time could not be recorded");
	else if (c->which == API_TIMEOUT) {
		c->is_answered = true;
		answer_empty(c->x, 204);
	} else {
		done_json(c, 200, view_sandbox(s));
	}
}

static void extend(struct call *c, struct sandbox *s, uint64_t end_ns)
{
	if (sandbox_set_end(s, end_ns, on_extended, c) < 0)
		done_error(c, 503, "too many changes wait to be recorded, try again");
	else
		c->extending = s;
}

static void do_timeout(struct call *c, struct sandbox *s)
{
	uint32_t seconds = 0;
	struct fail f = {0};

	if (timeout_parse(buf_data(&c->body), buf_len(&c->body), c->n->cfg.max_hours, &seconds,
			  &f) < 0)
		done_error(c, 400, f.text);
	else
		extend(c, s, clock_real_ns() + seconds * NS_PER_S);
}

static void do_connect(struct call *c, struct sandbox *s)
{
	enum api_version v = c->which == API_CONNECT_V1 ? API_V1 : API_V2;
	uint32_t seconds = 0;
	struct fail f = {0};
	uint64_t end_ns;

	if (connect_parse(buf_data(&c->body), buf_len(&c->body), v, c->n->cfg.max_hours, &seconds,
			  &f) < 0) {
		done_error(c, 400, f.text);
		return;
	}
	end_ns = clock_real_ns() + seconds * NS_PER_S;
	if (end_ns > s->rec.end_ns) /* it is only ever extended */
		extend(c, s, end_ns);
	else
		done_json(c, 200, view_sandbox(s));
}

static void do_console(struct call *c, struct sandbox *s)
{
	AUTO(str_drop) char *text = NULL;
	size_t n = 0;

	if (vm_console(s->vm, CONSOLE_MAX, &text, &n) < 0) {
		done_error(c, 500, "the console's log cannot be read");
		return;
	}
	c->is_answered = true;
	answer_text(c->x, text, n);
}

static void do_list(struct call *c)
{
	struct list_query q = {.limit = 0};
	struct fail f = {0};
	char token[LIST_TOKEN_SIZE] = "";
	json_t *page;

	if (list_query_parse(c->query, c->query_n, &q, &f) < 0) {
		done_error(c, 400, f.text);
		return;
	}
	if (c->which == API_LIST_V1) {
		q.limit = UINT32_MAX;
		q.has_after = false;
		q.running = true;
	}
	page = view_list(c->n, &q, token);
	list_query_done(&q);
	c->is_answered = true;
	if (token[0])
		answer_page(c->x, page, token);
	else
		answer_json(c->x, 200, page);
	json_decref(page);
}

/* --- the node --- */

static void do_templates(struct call *c)
{
	struct fail f = {0};
	json_t *all = view_templates(c->n, &f);

	if (all) {
		done_json(c, 200, all);
		return;
	}
	log_error("templates cannot be listed", "why=%s", f.text);
	done_error(c, 500, "the templates cannot be listed; the node's log says why");
}

static void stop_later(void *arg)
{
	node_stop(arg, "shutdown was asked for");
}

static void do_shutdown(struct call *c)
{
	if (!c->is_local) {
		done_error(c, 403,
			   "only the owner of the node can shut it down, by its local socket");
		return;
	}
	c->is_answered = true;
	answer_empty(c->x, 204);
	loop_later(c->n->loop, stop_later, c->n);
}

static void do_health(struct call *c)
{
	c->is_answered = true;
	answer_empty(c->x, c->n->is_stopping ? 503 : 204);
}

/* --- dispatch --- */

static void with_sandbox(struct call *c, void (*act)(struct call *c, struct sandbox *s))
{
	struct sandbox *s = c->id[0] ? sandbox_find(c->n, c->id) : NULL;

	if (s)
		act(c, s);
	else
		done_not_found(c);
}

static void do_get(struct call *c, struct sandbox *s)
{
	done_json(c, 200, view_detail(s));
}

static void dispatch(struct call *c)
{
	switch (c->which) {
	case API_HEALTH:
		do_health(c);
		return;
	case API_NODE:
		done_json(c, 200, view_node(c->n));
		return;
	case API_NODE_ENDED:
		done_json(c, 200, view_ended(c->n));
		return;
	case API_NODE_SHUTDOWN:
		do_shutdown(c);
		return;
	case API_CREATE_V1:
	case API_CREATE_V2:
		do_create(c);
		return;
	case API_LIST_V1:
	case API_LIST_V2:
		do_list(c);
		return;
	case API_GET:
		with_sandbox(c, do_get);
		return;
	case API_KILL:
		with_sandbox(c, do_kill);
		return;
	case API_TIMEOUT:
		with_sandbox(c, do_timeout);
		return;
	case API_CONNECT_V1:
	case API_CONNECT_V2:
		with_sandbox(c, do_connect);
		return;
	case API_CONSOLE:
		with_sandbox(c, do_console);
		return;
	case API_TEMPLATES:
		do_templates(c);
		return;
	case API_METHOD:
		done_error(c, 405, "this method is not allowed here");
		return;
	case API_LATER:
		done_error(c, 501, "this call is not available in this version");
		return;
	case API_NONE:
	case API_CALLS:
		break;
	}
	done_error(c, 404, "there is no such path");
}

/* --- the exchange --- */

static void on_data(struct http_exchange *x, const uint8_t *p, size_t n)
{
	struct call *c = http_exchange_arg(x);

	http_consume(x, n);
	if (!c->is_answered && buf_append(&c->body, p, n) < 0)
		done_error(c, 413, "the request's body is too long");
}

static void on_end(struct http_exchange *x)
{
	struct call *c = http_exchange_arg(x);

	if (!c->is_answered)
		dispatch(c);
}

static void on_drain(struct http_exchange *x, size_t n)
{
	(void)x;
	(void)n;
}

static void on_close(struct http_exchange *x, bool is_aborted)
{
	struct call *c = http_exchange_arg(x);

	(void)is_aborted;
	if (c->creating)
		sandbox_abandon(c->creating);
	if (c->ending)
		c->ending->ended = NULL;
	if (c->extending)
		db_disown(c->n->db, c);
	call_free(c);
}

static const struct http_exchange_ops exchange_ops = {
	.on_data = on_data, .on_end = on_end, .on_drain = on_drain, .on_close = on_close};

/* Every stored hash is compared, so the time tells nothing about which one came near. */
static bool key_is_good(const struct node *n, const struct http1_request *r)
{
	const struct http1_str *key = http1_find(r, API_KEY_HEADER);
	uint8_t hash[DIGEST_SIZE];
	bool found = false;

	if (!key || key->n == 0 || key->n > API_KEY_MAX)
		return false;
	digest_of(hash, key->p, key->n);
	for (size_t i = 0; i < n->n_keys; i++)
		found |= mem_eq_const(hash, n->key[i], DIGEST_SIZE);
	return found;
}

static bool may_ask(const struct api *api, enum api_call which, const struct http1_request *r)
{
	return api->is_local || which == API_HEALTH || key_is_good(api->n, r);
}

static void on_request(void *arg, struct http_exchange *x, const struct http1_request *r)
{
	const struct api *api = arg;
	const char *mark;
	struct call *c;
	size_t path_n;

	if (route_wants(r)) {
		route_request(api->n, x, r);
		return;
	}
	mark = memchr(r->target.p, '?', r->target.n);
	path_n = mark ? (size_t)(mark - r->target.p) : r->target.n;
	c = xcalloc(1, sizeof *c);
	c->n = api->n;
	c->x = x;
	c->is_local = api->is_local;
	c->which = api_find(r->method.p, r->method.n, r->target.p, path_n, c->id);
	c->query = mark ? mark + 1 : "";
	c->query_n = mark ? r->target.n - path_n - 1 : 0;
	buf_init(&c->body, PARAMS_BODY_MAX);
	http_exchange_set(x, &exchange_ops, c);
	if (c->which == API_HEALTH)
		do_health(c); /* who needs no key holds no place by a body that never comes */
	else if (!may_ask(api, c->which, r))
		done_error(c, 401, "the header X-API-KEY does not hold a valid API key");
	else if (r->body == HTTP1_BODY_LENGTH && r->length > PARAMS_BODY_MAX)
		done_error(c, 413, "the request's body is too long");
}

const struct http_server_ops api_server_ops = {.on_request = on_request};
