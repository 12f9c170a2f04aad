/* See api.h. This file knows the node's place and the API's forms; how a call travels is call.c. */
#include "cli/api.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/api_impl.h"
#include "cli/cli.h"
#include "net/loop.h"
#include "os/dir.h"
#include "os/fd.h"
#include "wire/json.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define KEY_MAX       128
#define SANDBOXES_MAX 100000u /* that a list may have */

/* --- where the node is --- */

static int open_remote(struct api *a, const char *url, struct fail *f)
{
	const char *key = getenv("SPACE_API_KEY");

	if (!key || !*key)
		return fail_set(f, -EINVAL, "SPACE_URL is set, but SPACE_API_KEY is not");
	a->url = xstrdup(url);
	a->place = xstrdup(url);
	a->key = xstrdup(key);
	while (*a->url && a->url[strlen(a->url) - 1] == '/')
		a->url[strlen(a->url) - 1] = 0;
	return 0;
}

static int open_local(struct api *a, const struct cli *c, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/state", c->data);
	size_t n;

	a->state = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (a->state < 0 && errno == EACCES)
		return fail_set(f, -EACCES, "the data folder '%s' is another user's", c->data);
	if (a->state < 0)
		return fail_set(f, -ECONNREFUSED, "no node runs on '%s': start one with `space up`",
				c->data);
	/* Beneath a descriptor, because a path to it may be longer than a socket's name can be. */
	a->sock = xasprintf("/proc/self/fd/%d/api.sock", a->state);
	a->url = xstrdup("http://localhost");
	a->place = xstrdup(c->data);
	if (file_slurp(a->state, "api-key", KEY_MAX, &a->key, &n, NULL) == 0)
		a->key[strcspn(a->key, "\r\n")] = 0;
	return 0;
}

int api_open(const struct cli *c, struct api **ret, struct fail *f)
{
	const char *url = getenv("SPACE_URL");
	struct api *a = xcalloc(1, sizeof *a);
	int r;

	a->state = -1;
	r = url && *url ? open_remote(a, url, f) : open_local(a, c, f);
	if (r == 0) {
		a->loop = loop_new();
		r = calls_init(a, f);
	}
	if (r < 0)
		api_close(a);
	else
		*ret = a;
	return r;
}

void api_close(struct api *a)
{
	if (!a)
		return;
	if (a->loop) {
		calls_done(a);
		loop_free(a->loop);
	}
	fd_drop(&a->state);
	free(a->url);
	free(a->place);
	free(a->sock);
	free(a->key);
	free(a);
}

struct loop *api_loop(const struct api *a)
{
	return a->loop;
}

const char *api_key(const struct api *a)
{
	return a->key;
}

/* --- one call --- */

struct waited {
	struct api *api;
	struct call *call;
	struct buf body;
	unsigned status;
	int err;
	bool is_over;
	bool is_long; /* more than an answer may have */
};

static void on_head(void *arg, unsigned status)
{
	struct waited *w = arg;

	w->status = status;
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct waited *w = arg;

	if (buf_append(&w->body, p, n) < 0)
		w->is_long = true;
	call_consume(w->call, n);
}

static void on_end(void *arg, int err)
{
	struct waited *w = arg;

	w->err = err;
	w->is_over = true;
	loop_stop(w->api->loop);
}

static const struct call_ops waited_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end};

static int refused(const struct waited *w, const json_t *j, struct fail *f)
{
	const char *message = json_string_value(json_object_get(j, "message"));
	int code = w->status == 404                       ? -ENOENT
		   : w->status == 401                     ? -EACCES
		   : w->status == 429 || w->status == 503 ? -EBUSY
							  : -EREMOTEIO;

	if (message)
		return fail_set(f, code, "%s", message);
	return fail_set(f, code, "the node answered with status %u", w->status);
}

static int unreachable(const struct api *a, int err, struct fail *f)
{
	if (err == -ECONNREFUSED)
		return fail_set(f, -ECONNREFUSED, "no node runs on '%s': start one %s", a->place,
				a->place[0] == '/' ? "with `space up`"
						   : "there, or unset SPACE_URL");
	if (err == -ETIMEDOUT)
		return fail_set(f, err, "the node does not answer in time");
	return fail_errno(f, err, "cannot speak with the node");
}

static int answer_take(struct waited *w, struct api_answer *ret, struct fail *f)
{
	AUTO(json_drop) json_t *j = NULL;

	if (w->err < 0)
		return unreachable(w->api, w->err, f);
	if (w->is_long)
		return fail_set(f, -EMSGSIZE, "the node's answer is too long");
	if (buf_len(&w->body)) {
		json_error_t where;

		j = json_loadb((const char *)buf_data(&w->body), buf_len(&w->body),
			       JSON_REJECT_DUPLICATES, &where);
		if (!j && w->status < 400)
			return fail_set(f, -EBADMSG, "the node's answer cannot be read");
	}
	if (w->status >= 400)
		return refused(w, j, f);
	ret->status = w->status;
	ret->json = json_incref(j);
	return 0;
}

void api_answer_done(struct api_answer *r)
{
	json_decref(r->json);
	*r = (struct api_answer){0};
}

/* Asks and runs the loop until it is over; w->body holds the answer. */
static void ask(struct waited *w, const char *method, const char *path, const char *text,
		unsigned timeout_ms)
{
	struct api *a = w->api;
	struct api_header h[2];
	struct call_spec spec = {.method = method,
				 .path = path,
				 .headers = h,
				 .body = text,
				 .body_n = text ? strlen(text) : 0,
				 .timeout_ms = timeout_ms};

	if (text)
		h[spec.n_headers++] = (struct api_header){"Content-Type", "application/json"};
	if (a->key)
		h[spec.n_headers++] = (struct api_header){"X-API-Key", a->key};
	buf_init(&w->body, API_ANSWER_MAX);
	w->call = call_start(a, &spec, &waited_ops, w);
	while (!w->is_over)
		loop_run(a->loop);
}

int api_call(struct api *a, const char *method, const char *path, const json_t *body,
	     unsigned timeout_ms, struct api_answer *ret, struct fail *f)
{
	AUTO(str_drop) char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct waited w = {.api = a};
	int r;

	ask(&w, method, path, text, timeout_ms);
	r = answer_take(&w, ret, f);
	(void)snprintf(ret->next_token, sizeof ret->next_token, "%s", a->next_token);
	buf_done(&w.body);
	return r;
}

int api_text(struct api *a, const char *path, char **ret, size_t *ret_n, struct fail *f)
{
	struct waited w = {.api = a};
	struct api_answer answer = {0};
	int r = 0;

	ask(&w, "GET", path, NULL, API_TIMEOUT_MS);
	if (w.err < 0 || w.is_long || w.status >= 400)
		r = answer_take(&w, &answer, f);
	if (r == 0) {
		*ret_n = buf_len(&w.body);
		*ret = *ret_n ? xstrndup((const char *)buf_data(&w.body), *ret_n) : xstrdup("");
	}
	api_answer_done(&answer);
	buf_done(&w.body);
	return r;
}

/* --- sandboxes --- */

bool api_id_valid(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && n < API_ID_SIZE && id[n] == 0;
}

/* One page onto the list. */
static int list_page(struct api *a, const char *path, json_t *list, char token[256], struct fail *f)
{
	struct api_answer answer = {0};
	int r = api_call(a, "GET", path, NULL, API_TIMEOUT_MS, &answer, f);

	if (r == 0 && (!json_is_array(answer.json) || json_array_extend(list, answer.json) < 0))
		r = fail_set(f, -EBADMSG, "the node's list cannot be read");
	if (r == 0)
		(void)str_copy(token, 256, answer.next_token);
	api_answer_done(&answer);
	return r;
}

static bool token_plain(const char *s)
{
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")] ==
	       0;
}

int api_list(struct api *a, const char *query, json_t **ret, struct fail *f)
{
	AUTO(json_drop) json_t *list = json_array();
	char token[256] = "";

	do {
		AUTO(str_drop)
		char *path = xasprintf("/v2/sandboxes%s&limit=100%s%s", query,
				       *token ? "&nextToken=" : "", token);
		int r = list_page(a, path, list, token, f);

		if (r < 0)
			return r;
		if (!token_plain(token) || json_array_size(list) > SANDBOXES_MAX)
			return fail_set(f, -EBADMSG, "the node's list cannot be read");
	} while (*token);
	*ret = json_incref(list);
	return 0;
}

/* Whether `name` means this one. *ret_whole: it is the whole id or name. */
static bool is_meant(const json_t *o, const char *name, const char **ret_id, bool *ret_whole)
{
	const char *id = json_string_value(json_object_get(o, "sandboxID"));
	const char *own =
		json_string_value(json_object_get(json_object_get(o, "metadata"), "name"));

	if (!id || !api_id_valid(id))
		return false;
	*ret_id = id;
	*ret_whole = strcmp(id, name) == 0 || (own && strcmp(own, name) == 0);
	return *ret_whole || str_starts(id, name);
}

int api_resolve(struct api *a, const char *name, char ret[API_ID_SIZE], struct fail *f)
{
	AUTO(json_drop) json_t *list = NULL;
	size_t n = 0;
	size_t n_whole = 0;
	size_t i;
	json_t *o;
	int r;

	if (!*name)
		return fail_set(f, -EINVAL, "a sandbox's name is not empty");
	if (sandbox_id_valid(name)) /* whole: no need to ask which one it means */
		return str_copy(ret, API_ID_SIZE, name);
	r = api_list(a, "?state=running,paused", &list, f);
	if (r < 0)
		return r;
	json_array_foreach (list, i, o) {
		const char *id;
		bool is_whole;

		if (!is_meant(o, name, &id, &is_whole) || (n_whole && !is_whole))
			continue;
		n = is_whole && !n_whole ? 1 : n + 1;
		n_whole += is_whole;
		(void)str_copy(ret, API_ID_SIZE, id);
	}
	if (n == 0)
		return fail_set(f, -ENOENT, "there is no sandbox '%.64s': `space ps -a` lists them",
				name);
	if (n > 1)
		return fail_set(f, -EEXIST,
				"'%.64s' means %zu sandboxes: give more of the id that `space ps` "
				"shows",
				name, n);
	return 0;
}

int api_kill(struct api *a, const char *id, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("/sandboxes/%s", id);
	struct api_answer answer = {0};
	int r = api_call(a, "DELETE", path, NULL, API_TIMEOUT_MS, &answer, f);

	api_answer_done(&answer);
	return r;
}
