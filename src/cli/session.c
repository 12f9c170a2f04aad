/* See session.h. */
#include "cli/session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/signals.h"
#include "cli/term.h"
#include "net/loop.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RENEW_MS  (SESSION_LEASE_S * 1000 / 3)
#define SLOW_MS   1500u /* then a person wants to know what is going on */
#define TOKEN_MAX 256
#define PATH_MAX_ 128

struct session {
	struct api *api;
	char id[API_ID_SIZE];
	char token[TOKEN_MAX];
	uint64_t create_ns;
	int signo;
	struct signals signals;
	struct timer *renew;
	struct call *renewing;
};

static void on_signal(void *arg, int signo)
{
	struct session *s = arg;

	if (!s->signo)
		s->signo = signo;
}

static void on_head(void *arg, unsigned status)
{
	(void)arg, (void)status;
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct session *s = arg;

	(void)p;
	call_consume(s->renewing, n);
}

/* A renewal that failed is tried again in time; a sandbox that is gone is seen by its user. */
static void on_end(void *arg, int err)
{
	struct session *s = arg;

	(void)err;
	s->renewing = NULL;
	timer_set(s->renew, RENEW_MS);
}

static const struct call_ops renew_ops = {.on_head = on_head, .on_data = on_data, .on_end = on_end};

static void on_renew(void *arg)
{
	struct session *s = arg;
	char path[PATH_MAX_];
	char body[32];
	struct api_header h[] = {{"Content-Type", "application/json"},
				 {"X-API-Key", api_key(s->api)}};
	int n = snprintf(body, sizeof body, "{\"timeout\":%u}", SESSION_LEASE_S);

	(void)snprintf(path, sizeof path, "/sandboxes/%s/timeout", s->id);
	s->renewing = call_start(s->api,
				 &(struct call_spec){
					 .method = "POST",
					 .path = path,
					 .headers = h,
					 .n_headers = api_key(s->api) ? 2 : 1,
					 .body = body,
					 .body_n = (size_t)n,
					 .timeout_ms = RENEW_MS / 2,
				 },
				 &renew_ops, s);
}

static void session_free(struct session *s)
{
	timer_free(s->renew);
	if (s->renewing)
		call_abandon(s->renewing);
	signals_done(&s->signals);
	explicit_bzero(s->token, sizeof s->token);
	free(s);
}

/* What the answer of a create must hold. */
static int created_parse(struct session *s, const json_t *j, struct fail *f)
{
	const char *id = NULL;
	const char *token = "";

	if (!j || json_get_str(j, "sandboxID", JSON_REQUIRED, 1, sizeof s->id - 1, &id, f) < 0 ||
	    json_get_str(j, "envdAccessToken", JSON_OPTIONAL, 0, TOKEN_MAX - 1, &token, f) < 0)
		return fail_set(f, -EBADMSG, "the node's answer is not one to a create");
	if (!api_id_valid(id))
		return fail_set(f, -EBADMSG, "the node named a sandbox that cannot be");
	(void)str_copy(s->id, sizeof s->id, id);
	(void)str_copy(s->token, sizeof s->token, token);
	return 0;
}

static json_t *create_body(const struct session_spec *p)
{
	AUTO(json_drop) json_t *meta = p->name ? json_pack("{s:s}", "name", p->name) : NULL;

	return json_pack("{s:s,s:i,s:O*,s:O*}", "templateID", p->template, "timeout",
			 (int)p->lease_s, "envVars", p->env, "metadata", meta);
}

static void on_slow(void *arg)
{
	const struct session_spec *p = arg;

	if (term_is_live())
		term_progress(
			"waiting for a sandbox of '%s'; the first one of a template takes some "
			"seconds",
			p->template);
}

static int create(struct session *s, struct session_spec *p, struct fail *f)
{
	AUTO(json_drop) json_t *body = create_body(p);
	struct timer *slow = timer_new(api_loop(s->api), on_slow, p);
	struct api_answer answer = {0};
	uint64_t began_ns = clock_mono_ns();
	int r;

	if (body) {
		timer_set(slow, SLOW_MS);
		r = api_call(s->api, "POST", "/v2/sandboxes", body, API_CREATE_TIMEOUT_MS, &answer,
			     f);
		term_progress_end();
	} else {
		r = fail_set(f, -EINVAL, "a name or variable is not valid UTF-8");
	}
	timer_free(slow);
	s->create_ns = clock_mono_ns() - began_ns;
	if (r == 0)
		r = created_parse(s, answer.json, f);
	api_answer_done(&answer);
	return r;
}

int session_create(struct api *a, struct session_spec *p, struct session **ret, struct fail *f)
{
	struct session *s = xcalloc(1, sizeof *s);
	int r;

	s->api = a;
	signals_watch(&s->signals, api_loop(a), on_signal, s);
	r = create(s, p, f);
	if (r < 0) {
		session_free(s);
		return r;
	}
	if (s->signo) {
		p->signo = s->signo;
		r = session_remove(s, f);
		return r < 0 ? r : fail_set(f, -EINTR, "stopped by a signal");
	}
	s->renew = timer_new(api_loop(a), on_renew, s);
	if (p->lease_s == SESSION_LEASE_S)
		timer_set(s->renew, RENEW_MS);
	*ret = s;
	return 0;
}

const char *session_id(const struct session *s)
{
	return s->id;
}

const char *session_token(const struct session *s)
{
	return s->token;
}

uint64_t session_create_ns(const struct session *s)
{
	return s->create_ns;
}

int session_signal(const struct session *s)
{
	return s->signo;
}

void session_keep(struct session *s)
{
	session_free(s);
}

int session_remove(struct session *s, struct fail *f)
{
	int r = api_kill(s->api, s->id, f);

	if (r == -ENOENT)
		r = 0; /* it is gone already */
	session_free(s);
	return r;
}
