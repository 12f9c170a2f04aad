/* See params.h. Two sentences about the timeout are what clients' tests compare: keep them. */
#include "spaced/params.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>

#define HOUR_S     3600u
#define MOUNTS_MAX 64u

static const struct json_limits metadata_limits = {.count = METADATA_COUNT_MAX,
						   .key = METADATA_KEY_MAX,
						   .value = METADATA_VALUE_MAX,
						   .total = METADATA_TOTAL_MAX};
static const struct json_limits env_limits = {
	.count = ENV_COUNT_MAX, .key = ENV_KEY_MAX, .value = ENV_VALUE_MAX, .total = ENV_TOTAL_MAX};

void new_sandbox_done(struct new_sandbox *n)
{
	json_decref(n->metadata);
	json_decref(n->env);
	*n = (struct new_sandbox){.metadata = NULL};
}

static int get_timeout(const json_t *o, uint32_t min_s, uint32_t max_hours, uint32_t *ret,
		       struct fail *f)
{
	int64_t v = *ret;
	int r = json_get_i64(o, "timeout", JSON_OPTIONAL, INT64_MIN, INT64_MAX, &v, f);

	if (r < 0)
		return fail_set(f, -EINVAL, "'timeout' must be a number of whole seconds");
	if (v < (int64_t)min_s)
		return fail_set(f, -EINVAL,
				min_s ? "Timeout must be greater than 0"
				      : "Timeout cannot be negative");
	if (v > (int64_t)max_hours * HOUR_S)
		return fail_set(f, -EINVAL, "Timeout cannot be greater than %u hours", max_hours);
	*ret = (uint32_t)v;
	return 0;
}

/* A variable's name goes into an environment block: no '=', no control characters. */
static bool env_name_valid(const char *name)
{
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (*c == '=' || *c <= 0x20 || *c == 0x7f)
			return false;
	return true;
}

static int get_env(const json_t *o, json_t **ret, struct fail *f)
{
	AUTO(str_drop) char *text = NULL;
	json_t *env = NULL;
	const char *key;
	json_t *v;
	size_t n;
	int r = json_get_str_map(o, "envVars", JSON_OPTIONAL, env_limits, &env, f);

	if (r < 0)
		return r;
	if (!env) {
		*ret = json_object();
		return 0;
	}
	json_object_foreach (env, key, v)
		if (!env_name_valid(key))
			return fail_set(
				f, -EINVAL,
				"'envVars' holds a name with '=', a blank or a control character");
	text = json_print(env, ENV_PRINTED_MAX, &n);
	if (!text)
		return fail_set(f, -EINVAL, "'envVars' must have at most %u bytes as JSON",
				ENV_PRINTED_MAX);
	*ret = json_incref(env);
	return 0;
}

static int get_metadata(const json_t *o, json_t **ret, struct fail *f)
{
	json_t *m = NULL;
	int r = json_get_str_map(o, "metadata", JSON_OPTIONAL, metadata_limits, &m, f);

	if (r == 0)
		*ret = m ? json_incref(m) : json_object();
	return r;
}

/* What changes the meaning of a sandbox must not be dropped in silence. */
static int refuse_unsupported(const json_t *o, struct fail *f)
{
	bool auto_pause = false, pause_memory = true, resume = false;
	json_t *auto_resume = NULL, *mounts = NULL;
	int r;

	if ((r = json_get_bool(o, "autoPause", JSON_OPTIONAL, &auto_pause, f)) < 0 ||
	    (r = json_get_bool(o, "autoPauseMemory", JSON_OPTIONAL, &pause_memory, f)) < 0 ||
	    (r = json_get_object(o, "autoResume", JSON_OPTIONAL, &auto_resume, f)) < 0 ||
	    (r = json_get_array(o, "volumeMounts", JSON_OPTIONAL, MOUNTS_MAX, &mounts, f)) < 0)
		return r;
	if (auto_resume &&
	    (r = json_get_bool(auto_resume, "enabled", JSON_OPTIONAL, &resume, f)) < 0)
		return r;
	if (!pause_memory && !auto_pause)
		return fail_set(f, -EINVAL, "'autoPauseMemory' false needs 'autoPause' true");
	if (!pause_memory && resume)
		return fail_set(f, -EINVAL, "'autoPauseMemory' false cannot go with 'autoResume'");
	if (auto_pause || resume)
		return fail_set(f, -EOPNOTSUPP,
				"'autoPause' and 'autoResume' are not available yet");
	if (mounts && json_array_size(mounts))
		return fail_set(f, -EOPNOTSUPP, "'volumeMounts' are not available yet");
	return 0;
}

static int read_new(const json_t *o, enum api_version v, uint32_t max_hours, struct new_sandbox *n,
		    struct fail *f)
{
	const char *name = NULL;
	int r;

	n->timeout_s = v == API_V1 ? TIMEOUT_DEFAULT_V1_S : TIMEOUT_DEFAULT_S;
	if ((r = json_get_str(o, "templateID", JSON_REQUIRED, 1, PARAMS_TEMPLATE_MAX, &name, f)) <
		    0 ||
	    (r = get_timeout(o, 1, max_hours, &n->timeout_s, f)) < 0 ||
	    (r = json_get_bool(o, "secure", JSON_OPTIONAL, &n->secure, f)) < 0 ||
	    (r = refuse_unsupported(o, f)) < 0 || (r = get_metadata(o, &n->metadata, f)) < 0 ||
	    (r = get_env(o, &n->env, f)) < 0)
		return r;
	if (v == API_V2)
		n->secure = true;
	return str_copy(n->template_name, sizeof n->template_name, name);
}

int new_sandbox_parse(const void *body, size_t n, enum api_version v, uint32_t max_hours,
		      struct new_sandbox *ret, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	struct new_sandbox s = {.secure = false};
	int r = json_parse(&o, body, n, PARAMS_BODY_MAX, f);

	if (r == 0)
		r = read_new(o, v, max_hours, &s, f);
	if (r < 0) {
		new_sandbox_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

int timeout_parse(const void *body, size_t n, uint32_t max_hours, uint32_t *ret_s, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	uint32_t s = 0;
	int r = json_parse(&o, body, n, PARAMS_BODY_MAX, f);

	if (r < 0)
		return r;
	if (!json_object_get(o, "timeout"))
		return fail_set(f, -EINVAL, "'timeout' is missing");
	r = get_timeout(o, 0, max_hours, &s, f);
	if (r == 0)
		*ret_s = s;
	return r;
}

int connect_parse(const void *body, size_t n, enum api_version v, uint32_t max_hours,
		  uint32_t *ret_s, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	uint32_t s = TIMEOUT_DEFAULT_S;
	bool memory = true;
	int r = 0;

	if (n == 0 && v == API_V2) {
		*ret_s = s;
		return 0;
	}
	if ((r = json_parse(&o, body, n, PARAMS_BODY_MAX, f)) < 0)
		return r;
	if (v == API_V1 && !json_object_get(o, "timeout"))
		return fail_set(f, -EINVAL, "'timeout' is missing");
	if ((r = get_timeout(o, 1, max_hours, &s, f)) < 0 ||
	    (r = json_get_bool(o, "memory", JSON_OPTIONAL, &memory, f)) < 0)
		return r;
	*ret_s = s;
	return 0;
}
