/* space up, space down: the node on this machine. */
#include "base/alloc.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/build.h"
#include "cli/cli.h"
#include "cli/exitcode.h"
#include "cli/node.h"
#include "cli/place.h"
#include "cli/term.h"
#include "engine/accel.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LISTEN_DEFAULT "127.0.0.1:7722"
#define TEMPLATE_FIRST "base"

static bool template_exists(const struct cli *c)
{
	AUTO(str_drop) char *path = xasprintf("%s/templates/" TEMPLATE_FIRST ".json", c->data);

	return access(path, F_OK) == 0;
}

static int template_prepare(struct cli *c, struct fail *f)
{
	struct build b = {.cli = c, .name = TEMPLATE_FIRST};
	int r;

	if (template_exists(c))
		return 0;
	term_note("making the template '" TEMPLATE_FIRST "' from this machine's package mirror; "
		  "this is done once and takes some minutes");
	r = build_template(&b, f);
	if (r == -EINTR)
		f->code = -EINTR;
	return r;
}

/* What the node says of itself; NULL when it says nothing. */
static json_t *node_report(const struct cli *c)
{
	struct api_answer answer = {0};
	struct api *a = NULL;
	struct fail f = {0};
	json_t *j = NULL;

	if (api_open(c, &a, &f) == 0 &&
	    api_call(a, "GET", "/node", NULL, API_TIMEOUT_MS, &answer, &f) == 0)
		j = json_incref(answer.json);
	api_answer_done(&answer);
	api_close(a);
	return j;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void line(const char *name, const char *text)
{
	(void)printf("  %-10s ", name);
	term_cell(text, 0);
	(void)printf("\n");
}

static void tell_text(const struct cli *c, const char *url, const json_t *node, bool was_there)
{
	AUTO(str_drop) char *key = xasprintf("%s/state/api-key (`space env` prints it)", c->data);

	(void)printf("%s\n", was_there ? "The node is running already." : "The node is running.");
	line("API", url);
	line("API key", key);
	line("isolation", text_of(node, "isolation"));
	line("network", "none: a sandbox reaches nothing outside");
	line("data", c->data);
	(void)printf("Try: space run python3 -c 'print(6*7)'    Stop: space down\n");
	(void)fflush(stdout);
	if (*text_of(node, "accelWhy"))
		term_note("no KVM here: %s", text_of(node, "accelWhy"));
	if (!json_is_true(json_object_get(node, "limits")))
		term_note("sandboxes run without limits on memory, CPU and processes: %s",
			  text_of(node, "limitsWhy"));
}

/* "127.0.0.1:0" is any port there. */
static bool is_at(const char *url, const char *listen)
{
	const char *host = url + (str_starts(url, "http://") ? strlen("http://") : 0);
	const char *colon = strrchr(listen, ':');

	if (colon && strcmp(colon, ":0") == 0)
		return strncmp(host, listen, (size_t)(colon - listen) + 1) == 0;
	return strcmp(host, listen) == 0;
}

/* Whether the node that is there is the one that was asked for. */
static int check_asked(const struct cli *c, const char *url, const json_t *node, struct fail *f)
{
	const char *listen = option_value(&c->options, "listen");
	const char *accel = option_value(&c->options, "accel");
	json_t *max = json_object_get(json_object_get(node, "sandboxes"), "max");
	uint64_t want_max;

	if (option_u64(&c->options, "max-sandboxes", 1, UINT32_MAX,
		       (uint64_t)json_integer_value(max), &want_max, f) < 0)
		return -EINVAL;
	if (listen && !is_at(url, listen))
		return fail_set(f, -EEXIST,
				"the node runs already, at %s: `space down`, then --listen %s", url,
				listen);
	if (accel && strcmp(accel, "auto") != 0 && strcmp(accel, text_of(node, "accel")) != 0)
		return fail_set(f, -EEXIST,
				"the node runs already, with %s: `space down`, then --accel %s",
				text_of(node, "accel"), accel);
	if (want_max != (uint64_t)json_integer_value(max))
		return fail_set(f, -EEXIST,
				"the node runs already, for %lld sandboxes: `space down`, then "
				"--max-sandboxes %" PRIu64,
				(long long)json_integer_value(max), want_max);
	return 0;
}

static int tell(struct cli *c, bool was_there, struct fail *f)
{
	AUTO(str_drop) char *url = NULL;
	AUTO(json_drop) json_t *node = NULL;

	if (node_endpoint(c, &url, f) < 0)
		return term_fail(f);
	node = node_report(c);
	if (!node)
		return term_error("the node does not say what it is: look at '%s/node.log'",
				  c->data);
	if (was_there && check_asked(c, url, node, f) < 0)
		return term_fail(f);
	if (!c->is_json) {
		tell_text(c, url, node, was_there);
		return 0;
	}
	(void)json_object_set_new(node, "url", json_string(url));
	(void)json_object_set_new(node, "data", json_string(c->data));
	(void)json_object_set_new(node, "network", json_string("none"));
	(void)json_dumpf(node, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)printf("\n");
	return 0;
}

/* Until a signal comes or the node ends. */
static int foreground(struct cli *c, struct node *n, struct fail *f)
{
	while (!node_signal())
		if (pidfd_wait_end(n->jailer, -1) == 0)
			return term_error("the node has ended: '%s/node.log' says why", c->data);
	term_note("stopping");
	return node_stop(c, n, f) < 0 ? term_fail(f) : 0;
}

/* KVM is tried here, where the rights are: /dev/kvm is often open to root and a group only, and
 * spaced has neither. Fills four of args. */
static int choose_accel(const struct cli *c, struct accel_report *r, const char **args,
			struct fail *f)
{
	const char *accel = option_value(&c->options, "accel");

	args[0] = "--accel";
	args[1] = accel;
	args[2] = "--accel-why";
	args[3] = r->why;
	if (accel && (strcmp(accel, "kvm") == 0 || strcmp(accel, "tcg") == 0))
		return 0;
	if (accel && strcmp(accel, "auto") != 0)
		return fail_set(f, -EINVAL, "option '--accel' is '%.64s': want kvm, tcg or auto",
				accel);
	accel_probe(r);
	args[1] = accel_name(r->accel);
	return 0;
}

static int start(struct cli *c, struct node *n, struct fail *f)
{
	const char *listen = option_value(&c->options, "listen");
	const char *max = option_value(&c->options, "max-sandboxes");
	const char *args[9] = {"--listen", listen ? listen : LISTEN_DEFAULT};
	struct accel_report accel = {.why = ""};
	size_t n_args = 6;
	int r;

	if (choose_accel(c, &accel, args + 2, f) < 0)
		return -EINVAL;
	if (max) {
		args[n_args++] = "--max-sandboxes";
		args[n_args++] = max;
	}
	if ((r = place_check(c, f)) < 0 || (r = place_check_listen(args[1], f)) < 0 ||
	    (r = place_make_data(c, f)) < 0 || (r = template_prepare(c, f)) < 0)
		return r;
	(void)node_signal();
	r = node_start(c, args, n, f);
	return r < 0 ? r : node_wait_ready(c, n, f);
}

static int run_up(struct cli *c)
{
	AUTO(node_drop) struct node n = NODE_NONE;
	bool stays = option_is_set(&c->options, "foreground");
	struct fail f = {0};
	int r = node_find(c, &n, &f);

	if (r == 0 && stays)
		return term_error("a node runs already on '%s': `space down` ends it", c->data);
	if (r == 0)
		return tell(c, true, &f);
	if (r != -ECONNREFUSED)
		return term_fail(&f);
	r = start(c, &n, &f);
	if (r == -EINTR)
		return EXIT_SIGNAL + (node_signal() ? node_signal() : 2);
	if (r < 0)
		return term_fail(&f);
	r = tell(c, false, &f);
	(void)fflush(stdout);
	return r == 0 && stays ? foreground(c, &n, &f) : r;
}

static int run_down(struct cli *c)
{
	AUTO(node_drop) struct node n = NODE_NONE;
	struct fail f = {0};
	int r = node_find(c, &n, &f);

	if (r == -ECONNREFUSED) {
		term_note("%s: nothing to stop", f.text);
		return 0;
	}
	if (r == 0)
		r = node_stop(c, &n, &f);
	if (r < 0)
		return term_fail(&f);
	term_note("the node is stopped; templates stay in '%s'", c->data);
	return 0;
}

static const struct option_def up_options[] = {
	{'l', "listen", "HOST:PORT", "where the API is (else " LISTEN_DEFAULT "; port 0: any)"},
	{0, "accel", "WHICH", "kvm, tcg (emulated), or auto: what works here (else auto)"},
	{0, "max-sandboxes", "N", "how many may run at once"},
	{'f', "foreground", NULL, "stay, and end the node on Ctrl-C"},
};

const struct command cmd_up = {
	.name = "up",
	.args = "",
	.summary = "start the node on this machine",
	.details = "Checks what the machine needs, makes the template '" TEMPLATE_FIRST
		   "' on the first run, starts the node.",
	.example = "space up --listen 127.0.0.1:0",
	.options = up_options,
	.n_options = ARRAY_LEN(up_options),
	.max_operands = 0,
	.run = run_up,
};

const struct command cmd_down = {
	.name = "down",
	.args = "",
	.summary = "remove all sandboxes and stop the node",
	.example = "space down",
	.max_operands = 0,
	.run = run_down,
};
