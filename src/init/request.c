/* Reading of process.Process requests: see request.h. */
#include "init/request.h"

#include "base/alloc.h"
#include "base/str.h"
#include "init/limits.h"
#include "wire/json.h"

#include <errno.h>
#include <signal.h>

static int parse_envs(struct start_request *q, const json_t *process, struct fail *f)
{
	const struct json_limits max = {ENVS_MAX, EXEC_MAX, EXEC_MAX, EXEC_MAX};
	json_t *envs = NULL;
	const char *name;
	json_t *value;
	int err = json_get_str_map(process, "envs", JSON_OPTIONAL, max, &envs, f);

	if (err || !envs)
		return err;
	json_object_foreach (envs, name, value) {
		err = env_set(&q->envs, name, json_string_value(value));
		if (err == -EINVAL)
			return fail_set(f, err, "invalid environment variable name");
		if (err)
			return fail_set(f, err, "the environment is over %u bytes", EXEC_MAX);
	}
	return 0;
}

static int parse_args(struct start_request *q, const json_t *process, struct fail *f)
{
	const struct json_limits max = {ARGS_MAX, 0, EXEC_MAX, EXEC_MAX};
	json_t *args = NULL;
	int err = json_get_str_list(process, "args", JSON_OPTIONAL, max, &args, f);

	if (err)
		return err;
	q->n_args = json_array_size(args);
	q->args = xcalloc(q->n_args + 1, sizeof *q->args);
	for (size_t i = 0; i < q->n_args; i++) {
		q->args[i] = xstrdup(json_string_value(json_array_get(args, i)));
		q->bytes += strlen(q->args[i]) + 1;
	}
	return 0;
}

static int parse_size(const json_t *pty, uint16_t *ret_cols, uint16_t *ret_rows, struct fail *f)
{
	json_t *size = NULL;
	int64_t cols = 0;
	int64_t rows = 0;
	int err = json_get_object(pty, "size", JSON_OPTIONAL, &size, f);

	if (!err && size)
		err = json_get_i64(size, "cols", JSON_OPTIONAL, 0, UINT16_MAX, &cols, f);
	if (!err && size)
		err = json_get_i64(size, "rows", JSON_OPTIONAL, 0, UINT16_MAX, &rows, f);
	if (err)
		return err;
	*ret_cols = (uint16_t)cols;
	*ret_rows = (uint16_t)rows;
	return 0;
}

static int parse_process(struct start_request *q, const json_t *process, struct fail *f)
{
	const char *cmd = NULL;
	const char *cwd = "";
	int err = json_get_str(process, "cmd", JSON_REQUIRED, 1, PATH_SIZE - 1, &cmd, f);

	if (!err)
		err = json_get_str(process, "cwd", JSON_OPTIONAL, 0, PATH_SIZE - 1, &cwd, f);
	if (!err)
		err = parse_args(q, process, f);
	if (!err)
		err = parse_envs(q, process, f);
	if (err)
		return err;
	q->cmd = xstrdup(cmd);
	q->cwd = xstrdup(cwd);
	q->bytes += strlen(cmd) + strlen(cwd) + 2 + q->envs.bytes;
	if (q->bytes > EXEC_MAX)
		return fail_set(f, -E2BIG, "cmd, args and envs are over %u bytes", EXEC_MAX);
	return 0;
}

static int parse_start(struct start_request *q, const json_t *o, struct fail *f)
{
	json_t *process = NULL;
	json_t *pty = NULL;
	const char *tag = NULL;
	int err = json_get_object(o, "process", JSON_REQUIRED, &process, f);

	if (!err)
		err = parse_process(q, process, f);
	if (!err)
		err = json_get_object(o, "pty", JSON_OPTIONAL, &pty, f);
	if (!err && pty)
		err = parse_size(pty, &q->cols, &q->rows, f);
	if (!err)
		err = json_get_str(o, "tag", JSON_OPTIONAL, 0, TAG_SIZE - 1, &tag, f);
	if (!err)
		err = json_get_bool(o, "stdin", JSON_OPTIONAL, &q->has_stdin, f);
	if (err)
		return err;
	q->has_pty = pty != NULL;
	q->tag = xstrdup(tag);
	return 0;
}

int start_request_parse(struct start_request *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	/* A client that does not know the field expects stdin to be there. */
	struct start_request q = {.has_stdin = true};
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	if (!err)
		err = parse_start(&q, o, f);
	if (err) {
		start_request_done(&q);
		return err;
	}
	*ret = q;
	return 0;
}

void start_request_done(struct start_request *q)
{
	for (size_t i = 0; i < q->n_args && q->args; i++)
		mem_drop(&q->args[i]);
	mem_drop(&q->args);
	mem_drop(&q->cmd);
	mem_drop(&q->cwd);
	mem_drop(&q->tag);
	env_done(&q->envs);
	*q = (struct start_request){0};
}

static int parse_selector(struct selector *ret, const json_t *o, struct fail *f)
{
	json_t *process = NULL;
	const char *tag = NULL;
	int64_t pid = 0;
	int err = json_get_object(o, "process", JSON_REQUIRED, &process, f);

	if (!err)
		err = json_get_i64(process, "pid", JSON_OPTIONAL, 1, INT32_MAX, &pid, f);
	if (!err)
		err = json_get_str(process, "tag", JSON_OPTIONAL, 0, TAG_SIZE - 1, &tag, f);
	if (err)
		return err;
	if ((pid != 0) == (tag != NULL))
		return fail_set(f, -EINVAL, "process needs either a pid or a tag");
	ret->pid = (pid_t)pid;
	ret->tag = xstrdup(tag);
	return 0;
}

void selector_done(struct selector *s)
{
	mem_drop(&s->tag);
	s->pid = 0;
}

int selector_request_parse(struct selector *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	return err ? err : parse_selector(ret, o, f);
}

static int parse_input(struct input_request *q, const json_t *o, struct fail *f)
{
	json_t *input = NULL;
	const char *in = NULL;
	const char *pty = NULL;
	int err = json_get_object(o, "input", JSON_REQUIRED, &input, f);

	if (!err)
		err = json_get_str(input, "stdin", JSON_OPTIONAL, 0, MESSAGE_MAX, &in, f);
	if (!err)
		err = json_get_str(input, "pty", JSON_OPTIONAL, 0, MESSAGE_MAX, &pty, f);
	if (err)
		return err;
	if ((in != NULL) == (pty != NULL))
		return fail_set(f, -EINVAL, "input needs either stdin or pty");
	q->is_pty = pty != NULL;
	in = pty ? pty : in;
	q->data = try_alloc(3 * ((strlen(in) + 3) / 4) + 1);
	if (!q->data)
		return fail_set(f, -ENOMEM, "no memory for the input");
	if (base64_decode(q->data, in, strlen(in), &q->n) != 0)
		return fail_set(f, -EINVAL, "input is not base64");
	return 0;
}

int input_request_parse(struct input_request *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	struct input_request q = {0};
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	if (!err)
		err = parse_selector(&q.process, o, f);
	if (!err)
		err = parse_input(&q, o, f);
	if (err) {
		input_request_done(&q);
		return err;
	}
	*ret = q;
	return 0;
}

void input_request_done(struct input_request *q)
{
	selector_done(&q->process);
	mem_drop(&q->data);
	q->n = 0;
}

/* An enum of proto3 JSON: its name, or its number. */
static int parse_signo(int *ret, const json_t *o, struct fail *f)
{
	static const struct {
		const char *name;
		int signo;
	} known[] = {{"SIGNAL_SIGTERM", SIGTERM}, {"SIGNAL_SIGKILL", SIGKILL}};
	const json_t *v = json_object_get(o, "signal");

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		bool is_name =
			json_is_string(v) && strcmp(json_string_value(v), known[i].name) == 0;

		if (is_name || (json_is_integer(v) && json_integer_value(v) == known[i].signo)) {
			*ret = known[i].signo;
			return 0;
		}
	}
	return fail_set(f, -EINVAL, "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
}

int signal_request_parse(struct signal_request *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	struct signal_request q = {0};
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	if (!err)
		err = parse_selector(&q.process, o, f);
	if (!err)
		err = parse_signo(&q.signo, o, f);
	if (err) {
		signal_request_done(&q);
		return err;
	}
	*ret = q;
	return 0;
}

void signal_request_done(struct signal_request *q)
{
	selector_done(&q->process);
}

int update_request_parse(struct update_request *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	json_t *pty = NULL;
	struct update_request q = {0};
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	if (!err)
		err = parse_selector(&q.process, o, f);
	if (!err)
		err = json_get_object(o, "pty", JSON_OPTIONAL, &pty, f);
	if (!err && pty)
		err = parse_size(pty, &q.cols, &q.rows, f);
	if (err) {
		update_request_done(&q);
		return err;
	}
	q.has_size = pty != NULL;
	*ret = q;
	return 0;
}

void update_request_done(struct update_request *q)
{
	selector_done(&q->process);
}

/* Only the user's name counts; who may call at all was decided before the guest. */
static int parse_basic(struct head_options *o, const char *text, struct fail *f)
{
	uint8_t plain[3 * ((2 * USER_SIZE + 3) / 4)];
	size_t n = 0;
	const uint8_t *colon;

	if (strlen(text) < 6 || memcmp(text, "Basic ", 6) != 0 ||
	    strlen(text + 6) > 2 * USER_SIZE - 4 ||
	    base64_decode(plain, text + 6, strlen(text + 6), &n) != 0)
		return fail_set(f, -EINVAL, "authorization is not Basic with a user name");
	colon = memchr(plain, ':', n);
	n = colon ? (size_t)(colon - plain) : n;
	if (n == 0)
		return 0; /* no name: the default user */
	if (n >= USER_SIZE || memchr(plain, 0, n))
		return fail_set(f, -EINVAL, "authorization is not Basic with a user name");
	o->has_user = true;
	o->user = xstrndup((const char *)plain, n);
	return 0;
}

int head_options_parse(struct head_options *ret, const char *authorization, const char *timeout,
		       const char *keepalive, const char *after, struct fail *f)
{
	struct head_options o = {.keepalive_s = KEEPALIVE_DEFAULT_S};
	uint64_t v = 0;

	if (timeout && str_u64(timeout, TIMEOUT_MAX_MS, &o.timeout_ms) != 0)
		return fail_set(f, -EINVAL, "connect-timeout-ms must be 0..9999999999");
	if (keepalive && (str_u64(keepalive, KEEPALIVE_MAX_S, &v) != 0 || v == 0))
		return fail_set(f, -EINVAL, "keepalive-ping-interval must be 1..%u",
				KEEPALIVE_MAX_S);
	if (keepalive)
		o.keepalive_s = (unsigned)v;
	if (after && str_u64(after, INT64_MAX, &o.after) != 0)
		return fail_set(f, -EINVAL, "space-after must be a sequence number");
	o.has_after = after != NULL;
	if (authorization && parse_basic(&o, authorization, f) != 0)
		return -EINVAL;
	*ret = o;
	return 0;
}

void head_options_done(struct head_options *o)
{
	mem_drop(&o->user);
	o->has_user = false;
}
