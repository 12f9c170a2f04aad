/* space run, space exec: a command in a sandbox of its own, or in one that is there. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec.h"
#include "cli/exitcode.h"
#include "cli/session.h"
#include "cli/term.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MAX_S 604800u /* a week */
#define KEEP_S        3600u

#define MS(ns) ((double)(ns) / (double)NS_PER_MS)

/* -e NAME=VALUE, or -e NAME for our own variable of that name. */
static json_t *env_of(const struct options *o, struct fail *f)
{
	AUTO(json_drop) json_t *env = json_object();

	for (size_t i = 0; i < o->n; i++) {
		const char *text = o->given[i].value;
		const char *value;
		AUTO(str_drop) char *name = NULL;

		if (strcmp(o->given[i].name, "env") != 0)
			continue;
		name = xstrndup(text, strcspn(text, "="));
		value = text[strlen(name)] ? text + strlen(name) + 1 : getenv(name);
		if (!*name) {
			(void)fail_set(f, -EINVAL, "'%.64s' is no variable: want NAME=VALUE", text);
			return NULL;
		}
		if (value && json_object_set_new(env, name, json_string(value)) < 0) {
			(void)fail_set(f, -EINVAL, "variable '%.64s' is not valid UTF-8", name);
			return NULL;
		}
	}
	return json_incref(env);
}

/* Our stdin, unless it is closed or holds nothing by nature. */
static int stdin_fd(void)
{
	char target[32];
	ssize_t n;

	if (fcntl(STDIN_FILENO, F_GETFD) < 0)
		return -1;
	n = readlink("/proc/self/fd/0", target, sizeof target - 1);
	if (n > 0) {
		target[n] = 0;
		if (strcmp(target, "/dev/null") == 0)
			return -1;
	}
	return STDIN_FILENO;
}

static int exec_spec_of(struct cli *c, struct exec_spec *s, json_t **ret_env, struct fail *f)
{
	uint64_t timeout_s;

	if (option_u64(&c->options, "timeout", 1, TIMEOUT_MAX_S, 0, &timeout_s, f) < 0)
		return -EINVAL;
	*ret_env = env_of(&c->options, f);
	if (!*ret_env)
		return -EINVAL;
	s->env = *ret_env;
	s->user = option_value(&c->options, "user");
	s->cwd = option_value(&c->options, "workdir");
	s->timeout_ms = (unsigned)(timeout_s * 1000);
	s->in_fd = stdin_fd();
	s->out_fd = STDOUT_FILENO;
	s->err_fd = STDERR_FILENO;
	return 0;
}

static void tell_times(const struct session *s, const struct exec_result *r)
{
	term_note("created in %.0f ms, first output after %.0f ms, command took %.0f ms",
		  MS(session_create_ns(s)), MS(r->first_output_ns), MS(r->total_ns));
}

/* Its own failure must not hide the command's status. */
static int run_end(struct cli *c, struct session *s, int code)
{
	AUTO(str_drop) char *id = xstrdup(session_id(s));
	struct fail f = {0};
	int signo = session_signal(s);

	if (signo && code < EXIT_SIGNAL)
		code = EXIT_SIGNAL + signo;
	if (option_is_set(&c->options, "keep") && !signo) {
		session_keep(s);
		term_note("sandbox %s is kept for %u minutes; `space kill %s` removes it", id,
			  KEEP_S / 60, id);
		return code;
	}
	if (session_remove(s, &f) < 0) {
		(void)term_error("cannot remove sandbox %s: %s; it ends by itself within %u s, or "
				 "try `space kill %s`",
				 id, f.text, SESSION_LEASE_S, id);
		return EXIT_OURS;
	}
	return code;
}

static int run_in(struct cli *c, struct api *a, struct exec_spec *e, struct fail *f)
{
	const char *template = option_value(&c->options, "template");
	struct exec_result result = {.exit_code = EXIT_OURS};
	struct session *s;
	struct session_spec spec = {
		.template = template ? template : "base",
		.name = option_value(&c->options, "name"),
		.lease_s = option_is_set(&c->options, "keep") ? KEEP_S : SESSION_LEASE_S,
	};
	int r = session_create(a, &spec, &s, f);

	if (r < 0)
		return r == -EINTR ? EXIT_SIGNAL + spec.signo : term_fail(f);
	e->sandbox = session_id(s);
	e->token = session_token(s);
	r = exec_run(a, e, &result, f);
	if (r < 0 && !result.signo)
		(void)term_fail(f);
	if (option_is_set(&c->options, "timing"))
		tell_times(s, &result);
	return run_end(c, s, result.exit_code);
}

static int run_run(struct cli *c)
{
	AUTO(json_drop) json_t *env = NULL;
	struct exec_spec e = {.argv = c->operands};
	struct api *a = NULL;
	struct fail f = {0};
	int r;

	if (exec_spec_of(c, &e, &env, &f) < 0 || api_open(c, &a, &f) < 0)
		return term_fail(&f);
	r = run_in(c, a, &e, &f);
	api_close(a);
	return r;
}

/* The token of a sandbox that is there. Asking for it changes nothing of the sandbox. */
static int sandbox_token(struct api *a, const char *id, char **ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("/sandboxes/%s", id);
	struct api_answer answer = {0};
	const char *token;
	int r = api_call(a, "GET", path, NULL, API_TIMEOUT_MS, &answer, f);

	if (r == 0) {
		token = json_string_value(json_object_get(answer.json, "envdAccessToken"));
		*ret = xstrdup(token ? token : "");
	}
	api_answer_done(&answer);
	return r;
}

static int exec_in(struct cli *c, struct api *a, struct exec_spec *e, struct fail *f)
{
	AUTO(str_drop) char *token = NULL;
	char id[API_ID_SIZE];
	struct exec_result result;
	int r;

	if (api_resolve(a, c->operands[0], id, f) < 0 || sandbox_token(a, id, &token, f) < 0)
		return term_fail(f);
	e->sandbox = id;
	e->token = token;
	e->argv = c->operands + 1;
	r = exec_run(a, e, &result, f);
	if (r < 0 && !result.signo)
		(void)term_fail(f);
	return result.exit_code;
}

static int run_exec(struct cli *c)
{
	AUTO(json_drop) json_t *env = NULL;
	struct exec_spec e = {0};
	struct api *a = NULL;
	struct fail f = {0};
	int r;

	if (exec_spec_of(c, &e, &env, &f) < 0 || api_open(c, &a, &f) < 0)
		return term_fail(&f);
	r = exec_in(c, a, &e, &f);
	api_close(a);
	return r;
}

#define EXEC_OPTIONS                                                                               \
	{'e', "env", "K=V", "a variable of the command; K alone: ours of that name"},              \
		{'u', "user", "USER", "who runs it (else 'user')"},                                \
		{'w', "workdir", "DIR", "where it runs (else the user's home)"},                   \
	{                                                                                          \
		0, "timeout", "S", "end the command after S seconds (exit status 124)"             \
	}

static const struct option_def run_options[] = {
	EXEC_OPTIONS,
	{'t', "template", "T", "what the sandbox is made of (else 'base')"},
	{'k', "keep", NULL, "do not remove the sandbox afterwards; it ends after an hour"},
	{'n', "name", "NAME", "how `space ps` calls it"},
	{'v', "timing", NULL, "say how long things took"},
};

static const struct option_def exec_options[] = {EXEC_OPTIONS};

static const char exit_details[] =
	"Options end at the command. stdin, stdout and stderr are the command's. Exit status:\n"
	"the command's; 126 or 127 when it cannot start; 128+n after signal n; 125 when it is our\n"
	"fault. Ctrl-C ends the command with SIGTERM, two seconds later or at a second one with\n"
	"SIGKILL.";

const struct command cmd_run = {
	.name = "run",
	.args = "COMMAND [ARGS...]",
	.summary = "run a command in a new sandbox, then remove the sandbox",
	.details = exit_details,
	.example = "space run python3 -c 'print(6*7)'",
	.options = run_options,
	.n_options = ARRAY_LEN(run_options),
	.min_operands = 1,
	.max_operands = -1,
	.is_raw = true,
	.run = run_run,
};

const struct command cmd_exec = {
	.name = "exec",
	.args = "SANDBOX COMMAND [ARGS...]",
	.summary = "run a command in a sandbox that is there",
	.details = exit_details,
	.example = "space exec i3f ls -l /tmp",
	.options = exec_options,
	.n_options = ARRAY_LEN(exec_options),
	.min_operands = 2,
	.max_operands = -1,
	.is_raw = true,
	.run = run_exec,
};
