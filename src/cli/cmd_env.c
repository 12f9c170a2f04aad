/* space env, space version. */
#include "base/alloc.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/node.h"
#include "cli/term.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Only what needs no quoting in a shell, whatever wrote the files. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		      (*s >= '0' && *s <= '9') || strchr("_.:/-[]", *s)))
			return false;
	return true;
}

static int print_env(struct cli *c, const char *url, const char *key)
{
	if (!is_plain(url) || !is_plain(key))
		return term_error("the node's address or key is malformed: stop and start it");
	if (c->is_json) {
		(void)printf("{\"E2B_API_KEY\":\"%s\",\"E2B_API_URL\":\"%s\",\"E2B_SANDBOX_URL\":"
			     "\"%s\"}\n",
			     key, url, url);
		return 0;
	}
	(void)printf("export E2B_API_KEY=%s\nexport E2B_API_URL=%s\nexport E2B_SANDBOX_URL=%s\n",
		     key, url, url);
	return 0;
}

/* What is printed stays right for a node that comes back to its port, so this ends nothing. */
static void note_stopped(const struct cli *c)
{
	AUTO(node_drop) struct node n = NODE_NONE;
	struct fail f = {0};

	if (node_find(c, &n, &f) == -ECONNREFUSED)
		term_note("%s now: start it with `space up`", f.text);
}

static int run_env(struct cli *c)
{
	AUTO(str_drop) char *local = NULL;
	const char *url = getenv("SPACE_URL");
	struct api *a = NULL;
	struct fail f = {0};
	int r;

	if (url && *url) {
		const char *key = getenv("SPACE_API_KEY");

		return print_env(c, url, key ? key : "");
	}
	if (node_endpoint(c, &local, &f) < 0 || api_open(c, &a, &f) < 0)
		return term_fail(&f);
	note_stopped(c);
	if (api_key(a))
		r = print_env(c, local, api_key(a));
	else
		r = term_error("cannot read '%s/state/api-key'", c->data);
	api_close(a);
	return r;
}

static int run_version(struct cli *c)
{
	if (c->is_json)
		(void)printf("{\"version\":\"%s\"}\n", SPACE_VERSION);
	else
		(void)printf("space %s\n", SPACE_VERSION);
	return 0;
}

const struct command cmd_env = {
	.name = "env",
	.args = "",
	.summary = "print the environment that points an E2B SDK here",
	.example = "eval \"$(space env)\" && node agent.mjs",
	.max_operands = 0,
	.run = run_env,
};

const struct command cmd_version = {
	.name = "version",
	.args = "",
	.summary = "print the version",
	.example = "space version",
	.max_operands = 0,
	.run = run_version,
};
