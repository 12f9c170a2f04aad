/* space ps, space kill, space logs: what there is, its end, and what it said. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/exitcode.h"
#include "cli/term.h"
#include "os/fd.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGE_SIZE 24
#define LOG_MAX  (16u * 1024 * 1024)

/* --- ps --- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* "12 s", "5 min", "3 h", "2 d" */
static void span_print(char dst[AGE_SIZE], uint64_t ns)
{
	uint64_t s = ns / NS_PER_S;

	if (s < 120)
		(void)snprintf(dst, AGE_SIZE, "%" PRIu64 " s", s);
	else if (s < 7200)
		(void)snprintf(dst, AGE_SIZE, "%" PRIu64 " min", s / 60);
	else if (s < 172800)
		(void)snprintf(dst, AGE_SIZE, "%" PRIu64 " h", s / 3600);
	else
		(void)snprintf(dst, AGE_SIZE, "%" PRIu64 " d", s / 86400);
}

static void time_cell(const char *rfc3339, bool is_future)
{
	uint64_t now_ns = clock_real_ns();
	uint64_t t_ns;
	char text[AGE_SIZE] = "-";

	if (rfc3339_parse(rfc3339, &t_ns) == 0)
		span_print(text, is_future ? (t_ns > now_ns ? t_ns - now_ns : 0)
					   : (now_ns > t_ns ? now_ns - t_ns : 0));
	(void)printf(" %-8s", text);
}

static void row_print(const json_t *o)
{
	const char *alias = text_of(o, "alias");

	term_cell(text_of(o, "sandboxID"), 21);
	term_cell(text_of(json_object_get(o, "metadata"), "name"), 16);
	(void)printf(" ");
	term_cell(*alias ? alias : text_of(o, "templateID"), 14);
	(void)printf(" ");
	term_cell(text_of(o, "state"), 8);
	time_cell(text_of(o, "startedAt"), false);
	time_cell(text_of(o, "endAt"), true);
	(void)printf(" %5lld %5lld MiB\n",
		     (long long)json_integer_value(json_object_get(o, "cpuCount")),
		     (long long)json_integer_value(json_object_get(o, "memoryMB")));
}

static void ended_print(const json_t *o)
{
	term_cell(text_of(o, "sandboxID"), 21);
	term_cell("", 16);
	(void)printf(" ");
	term_cell(text_of(o, "alias"), 14);
	(void)printf(" ");
	term_cell("ended", 8);
	time_cell(text_of(o, "endedAt"), false);
	(void)printf(" ");
	term_cell(text_of(o, "cause"), 0);
	(void)printf("\n");
}

static void list_print(const json_t *list, const json_t *ended)
{
	size_t i;
	json_t *o;

	(void)printf("%s%-21s%-16s %-14s %-8s %-8s %-8s %5s %9s%s\n", term_bold(), "SANDBOX",
		     "NAME", "TEMPLATE", "STATE", "AGE", "ENDS IN", "VCPUS", "MEMORY",
		     term_plain());
	json_array_foreach (list, i, o) {
		row_print(o);
	}
	json_array_foreach (ended, i, o) {
		ended_print(o);
	}
}

static void json_line(const json_t *j)
{
	(void)json_dumpf(j, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)printf("\n");
}

static int ps(struct cli *c, struct api *a, struct fail *f)
{
	AUTO(json_drop) json_t *list = NULL;
	struct api_answer ended = {0};
	bool is_all = option_is_set(&c->options, "all");
	int r = api_list(a, is_all ? "?state=running,paused" : "?state=running", &list, f);

	if (r == 0 && is_all)
		r = api_call(a, "GET", "/node/ended", NULL, API_TIMEOUT_MS, &ended, f);
	if (r < 0) {
		api_answer_done(&ended);
		return term_fail(f);
	}
	if (c->is_json) {
		size_t i;
		json_t *o;

		json_array_foreach (ended.json, i, o) {
			(void)json_object_set_new(o, "state", json_string("ended"));
		}
		(void)json_array_extend(list, ended.json);
		json_line(list);
	} else {
		list_print(list, ended.json);
	}
	api_answer_done(&ended);
	return 0;
}

static int with_api(struct cli *c, int (*run)(struct cli *c, struct api *a, struct fail *f))
{
	struct api *a = NULL;
	struct fail f = {0};
	int r;

	if (api_open(c, &a, &f) < 0)
		return term_fail(&f);
	r = run(c, a, &f);
	api_close(a);
	return r;
}

static int run_ps(struct cli *c)
{
	return with_api(c, ps);
}

/* --- kill --- */

static int kill_one(struct cli *c, struct api *a, const char *name)
{
	char id[API_ID_SIZE];
	struct fail f = {0};

	if (api_resolve(a, name, id, &f) < 0 || api_kill(a, id, &f) < 0)
		return term_fail(&f);
	if (!c->is_json)
		(void)printf("%s\n", id);
	return 0;
}

static int kill_all(struct cli *c, struct api *a, struct fail *f)
{
	int r = 0;

	(void)f;
	for (int i = 0; i < c->n_operands; i++) {
		int one = kill_one(c, a, c->operands[i]);

		r = one ? one : r;
	}
	return r;
}

static int run_kill(struct cli *c)
{
	return with_api(c, kill_all);
}

/* --- logs --- */

/* Text of the platform or a guest, made harmless. */
static void text_print(const char *text, size_t n)
{
	size_t max = 4 * n + 1; /* a byte becomes four at most */
	AUTO(str_drop) char *safe = xcalloc(1, max);

	str_escape(safe, max, text, n, "\n\t");
	(void)fputs(safe, stdout);
	if (n && text[n - 1] != '\n')
		(void)printf("\n");
}

/* The keeper's own log; the API does not give it away, the data folder's owner may read it. */
static int keeper_log(const struct cli *c, const char *id, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/run/%s/keeper.log", c->data, id);
	AUTO(fd_drop) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO(str_drop) char *text = NULL;
	size_t n;
	int r;

	if (getenv("SPACE_URL"))
		return fail_set(f, -EOPNOTSUPP,
				"a node elsewhere shows only the console: give --console");
	if (fd < 0 && errno == ENOENT)
		return fail_set(f, -ENOENT,
				"sandbox %s has ended, and its log with it; '%s/node.log' has what "
				"the node logged of it",
				id, c->data);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot open '%s'", path);
	r = fd_slurp(fd, LOG_MAX, &text, &n);
	if (r < 0)
		return fail_errno(f, r, "cannot read '%s'", path);
	text_print(text, n);
	return 0;
}

static int console_log(struct api *a, const char *id, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("/sandboxes/%s/console", id);
	AUTO(str_drop) char *text = NULL;
	size_t n;
	int r = api_text(a, path, &text, &n, f);

	if (r == 0 && n == 0)
		term_note("its kernel has written nothing since the sandbox was created");
	else if (r == 0)
		text_print(text, n);
	return r;
}

static int logs(struct cli *c, struct api *a, struct fail *f)
{
	char id[API_ID_SIZE];
	int r = api_resolve(a, c->operands[0], id, f);

	if (r == 0 && option_is_set(&c->options, "console"))
		r = console_log(a, id, f);
	else if (r == 0)
		r = keeper_log(c, id, f);
	return r < 0 ? term_fail(f) : 0;
}

static int run_logs(struct cli *c)
{
	return with_api(c, logs);
}

static const struct option_def ps_options[] = {
	{'a', "all", NULL, "also those that do not run now"},
};

const struct command cmd_ps = {
	.name = "ps",
	.args = "",
	.summary = "list sandboxes",
	.example = "space ps",
	.options = ps_options,
	.n_options = ARRAY_LEN(ps_options),
	.max_operands = 0,
	.run = run_ps,
};

const struct command cmd_kill = {
	.name = "kill",
	.args = "SANDBOX...",
	.summary = "end and remove sandboxes",
	.details = "A sandbox is named by its id, the beginning of it, or its name.",
	.example = "space kill i3f web-7",
	.min_operands = 1,
	.max_operands = -1,
	.run = run_kill,
};

static const struct option_def logs_options[] = {
	{0, "console", NULL, "what the guest's kernel wrote"},
};

const struct command cmd_logs = {
	.name = "logs",
	.args = "SANDBOX",
	.summary = "what the platform logged of a sandbox",
	.details = "As long as the sandbox runs; '<data folder>/node.log' has the node's own log.",
	.example = "space logs --console i3f",
	.options = logs_options,
	.n_options = ARRAY_LEN(logs_options),
	.min_operands = 1,
	.max_operands = 1,
	.is_raw = true,
	.run = run_logs,
};
