/* space bench create, space bench exec: how long things take here, measured through the public API
 * as any client sees them. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/exec.h"
#include "cli/exitcode.h"
#include "cli/host.h"
#include "cli/session.h"
#include "cli/stats.h"
#include "cli/term.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RUNS_MAX      10000u
#define RUNS_CREATE   20u
#define RUNS_EXEC     100u
#define SERIES_MAX    3
#define ISOLATION_MAX 256

/* One thing that is measured in every run. */
struct series {
	const char *name;
	uint64_t *sample;
	size_t n;
};
struct bench {
	struct cli *cli;
	struct api *api;
	const char *name;
	size_t runs;
	size_t n_series;
	struct series series[SERIES_MAX];
};

static void series_add(struct series *s, uint64_t ns)
{
	s->sample[s->n++] = ns;
}

/* The first run may make a template's variant or fill caches: it is forgotten. */
static void series_forget(struct bench *b)
{
	for (size_t i = 0; i < b->n_series; i++)
		b->series[i].n = 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

static void isolation_of(struct api *a, char dst[ISOLATION_MAX])
{
	struct api_answer answer = {0};
	struct fail f = {0};
	const char *text = NULL;

	if (api_call(a, "GET", "/node", NULL, API_TIMEOUT_MS, &answer, &f) == 0)
		text = json_string_value(json_object_get(answer.json, "isolation"));
	if (!text || str_copy(dst, ISOLATION_MAX, text) < 0)
		(void)str_copy(dst, ISOLATION_MAX, "unknown");
	api_answer_done(&answer);
}

static const char *noise_of(const struct host *h)
{
	return h->load > (double)h->cores / 2
		       ? "the machine is busy with other work: figures are too high"
		       : "the machine is otherwise quiet";
}

static void report_json(struct bench *b, const struct host *h, const char *isolation)
{
	json_t *series = json_object();
	json_t *j;

	for (size_t i = 0; i < b->n_series; i++) {
		struct stats s;

		stats_of(b->series[i].sample, b->series[i].n, &s);
		(void)json_object_set_new(series, b->series[i].name,
					  json_pack("{s:f,s:f,s:f,s:f,s:f}", "min", ms(s.min_ns),
						    "p50", ms(s.p50_ns), "p95", ms(s.p95_ns), "p99",
						    ms(s.p99_ns), "max", ms(s.max_ns)));
	}
	j = json_pack("{s:s,s:I,s:s,s:{s:s,s:s,s:I,s:f},s:s,s:o}", "bench", b->name, "runs",
		      (json_int_t)b->series[0].n, "isolation", isolation, "host", "cpu", h->cpu,
		      "kernel", h->kernel, "cores", (json_int_t)h->cores, "load", h->load, "noise",
		      noise_of(h), "ms", series);
	if (j)
		(void)json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	(void)printf("\n");
	json_decref(j);
}

static void report_table(struct bench *b, const struct host *h, const char *isolation)
{
	(void)printf("%s%-24s %9s %9s %9s %9s %9s%s\n", term_bold(), "milliseconds", "min", "p50",
		     "p95", "p99", "max", term_plain());
	for (size_t i = 0; i < b->n_series; i++) {
		struct stats s;

		stats_of(b->series[i].sample, b->series[i].n, &s);
		(void)printf("%-24s %9.1f %9.1f %9.1f %9.1f %9.1f\n", b->series[i].name,
			     ms(s.min_ns), ms(s.p50_ns), ms(s.p95_ns), ms(s.p99_ns), ms(s.max_ns));
	}
	(void)printf("%zu runs one after another, and one before them; %ld cores, %s, %s; load "
		     "%.1f: %s\nisolation: ",
		     b->series[0].n, h->cores, h->cpu, h->kernel, h->load, noise_of(h));
	term_cell(isolation, 0);
	(void)printf("\n");
}

static void progress(const struct bench *b, size_t i)
{
	if (term_is_live())
		term_progress("%s: %zu of %zu", b->name, i + 1, b->runs);
}

/* --- create --- */

static int exec_quietly(struct bench *b, const struct session *s, char *const *argv,
			struct exec_result *ret, struct fail *f)
{
	struct exec_spec e = {
		.sandbox = session_id(s),
		.token = session_token(s),
		.argv = argv,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	int r = exec_run(b->api, &e, ret, f);

	if (r < 0)
		return r;
	if (ret->signo)
		return fail_set(f, -EINTR, "stopped by a signal");
	if (ret->exit_code != 0)
		return fail_set(f, -EREMOTEIO, "the command ended with status %d", ret->exit_code);
	return 0;
}

static int session_start(struct bench *b, struct session **ret, int *ret_signo, struct fail *f)
{
	const char *template = option_value(&b->cli->options, "template");
	struct session_spec spec = {
		.template = template ? template : "base",
		.lease_s = SESSION_LEASE_S,
	};
	int r = session_create(b->api, &spec, ret, f);

	*ret_signo = spec.signo;
	return r;
}

static int create_once(struct bench *b, int *ret_signo, struct fail *f)
{
	static char sh[] = "sh", option[] = "-c", command[] = "echo hi";
	char *const argv[] = {sh, option, command, NULL};
	struct exec_result result = {0};
	struct session *s;
	struct fail why = {0};
	uint64_t create_ns;
	int r = session_start(b, &s, ret_signo, f);
	int removed;

	if (r < 0)
		return r;
	r = exec_quietly(b, s, argv, &result, f);
	create_ns = session_create_ns(s);
	*ret_signo = session_signal(s);
	removed = session_remove(s, &why);
	if (r < 0)
		return r;
	if (removed < 0)
		return fail_set(f, removed, "%s", why.text);
	series_add(&b->series[0], create_ns);
	series_add(&b->series[1], result.first_output_ns);
	series_add(&b->series[2], create_ns + result.first_output_ns);
	return 0;
}

static int bench_create(struct bench *b, int *ret_signo, struct fail *f)
{
	int r = create_once(b, ret_signo, f);

	series_forget(b);
	for (size_t i = 0; i < b->runs && r == 0 && !*ret_signo; i++) {
		progress(b, i);
		r = create_once(b, ret_signo, f);
	}
	return r;
}

/* --- exec --- */

static int bench_exec(struct bench *b, int *ret_signo, struct fail *f)
{
	static char command[] = "true";
	char *const argv[] = {command, NULL};
	struct exec_result result;
	struct session *s;
	struct fail why = {0};
	int r = session_start(b, &s, ret_signo, f);
	int removed;

	if (r < 0)
		return r;
	r = exec_quietly(b, s, argv, &result, f);
	for (size_t i = 0; i < b->runs && r == 0 && !session_signal(s); i++) {
		progress(b, i);
		r = exec_quietly(b, s, argv, &result, f);
		if (r == 0)
			series_add(&b->series[0], result.total_ns);
	}
	*ret_signo = session_signal(s);
	removed = session_remove(s, &why);
	return r == 0 && removed < 0 ? fail_set(f, removed, "%s", why.text) : r;
}

/* --- both --- */

static int bench(struct bench *b, int (*run)(struct bench *b, int *ret_signo, struct fail *f))
{
	char isolation[ISOLATION_MAX];
	struct fail f = {0};
	struct host h;
	int signo = 0;
	int r;

	host_look(&h); /* before our own work counts */
	isolation_of(b->api, isolation);
	r = run(b, &signo, &f);
	term_progress_end();
	if (b->series[0].n && b->cli->is_json)
		report_json(b, &h, isolation);
	else if (b->series[0].n)
		report_table(b, &h, isolation);
	if (signo)
		return EXIT_SIGNAL + signo;
	return r < 0 ? term_fail(&f) : 0;
}

static int bench_open(struct cli *c, struct bench *b, size_t runs_usual, struct fail *f)
{
	uint64_t runs;

	if (option_u64(&c->options, "runs", 1, RUNS_MAX, runs_usual, &runs, f) < 0 ||
	    api_open(c, &b->api, f) < 0)
		return -EINVAL;
	b->cli = c;
	b->runs = (size_t)runs;
	for (size_t i = 0; i < b->n_series; i++)
		b->series[i].sample = xcalloc(b->runs, sizeof(uint64_t));
	return 0;
}

static void bench_close(struct bench *b)
{
	for (size_t i = 0; i < b->n_series; i++)
		free(b->series[i].sample);
	api_close(b->api);
}

static int run_create(struct cli *c)
{
	struct bench b = {
		.name = "create",
		.n_series = 3,
		.series = {{.name = "create"}, {.name = "first output"}, {.name = "total"}},
	};
	struct fail f = {0};
	int r;

	if (bench_open(c, &b, RUNS_CREATE, &f) < 0)
		return term_fail(&f);
	r = bench(&b, bench_create);
	bench_close(&b);
	return r;
}

static int run_exec(struct cli *c)
{
	struct bench b = {.name = "exec", .n_series = 1, .series = {{.name = "exec true"}}};
	struct fail f = {0};
	int r;

	if (bench_open(c, &b, RUNS_EXEC, &f) < 0)
		return term_fail(&f);
	r = bench(&b, bench_exec);
	bench_close(&b);
	return r;
}

static const struct option_def bench_options[] = {
	{'n', "runs", "N", "how often"},
	{'t', "template", "T", "what the sandboxes are made of (else 'base')"},
};

const struct command cmd_bench_create = {
	.name = "bench create",
	.args = "",
	.summary = "time a create and the first output of a command",
	.details =
		"create: the API's answer; first output: from asking for `sh -c 'echo hi'` to its\n"
		"first byte; total: both.",
	.example = "space bench create -n 50 --json",
	.options = bench_options,
	.n_options = ARRAY_LEN(bench_options),
	.max_operands = 0,
	.run = run_create,
};

const struct command cmd_bench_exec = {
	.name = "bench exec",
	.args = "",
	.summary = "time `true` in a sandbox that is there",
	.example = "space bench exec -n 200",
	.options = bench_options,
	.n_options = ARRAY_LEN(bench_options),
	.max_operands = 0,
	.run = run_exec,
};
