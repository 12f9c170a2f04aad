/* space template build NAME, space template ls. Building is the work of the template's own script,
 * PREFIX/share/space/templates/NAME/build --data DIR --libexec DIR [--force]: it tells on stderr
 * how far it is ("step N/M text"), ends with 0 when the template is there and fresh, and undoes
 * what is half done when it gets a signal. */
#include "base/alloc.h"
#include "base/str.h"
#include "cli/build.h"
#include "cli/cli.h"
#include "cli/exitcode.h"
#include "cli/place.h"
#include "cli/term.h"
#include "os/fd.h"
#include "store/template.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int run_build(struct cli *c)
{
	struct fail f = {0};
	struct build b = {
		.cli = c,
		.name = c->operands[0],
		.is_forced = option_is_set(&c->options, "force"),
	};
	int r;

	if (place_make_data(c, &f) < 0)
		return term_fail(&f);
	r = build_template(&b, &f);
	if (r == -EINTR)
		return EXIT_SIGNAL + b.signo;
	if (r < 0)
		return term_fail(&f);
	if (!c->is_json)
		term_note("template '%s' is ready", b.name);
	else
		(void)printf("{\"name\":\"%s\"}\n", b.name);
	return 0;
}

static void print_template(const struct template *t, bool is_json, bool is_first)
{
	char size[48];

	if (is_json) { /* name and id are of a plain alphabet */
		(void)printf("%s{\"name\":\"%s\",\"id\":\"%s\",\"memoryMB\":%" PRIu32
			     ",\"cpuCount\":%" PRIu32 ",\"diskSizeMB\":%" PRIu32 "}",
			     is_first ? "" : ",", t->name, t->id, t->memory_mib, t->vcpus,
			     t->disk_mib);
		return;
	}
	(void)snprintf(size, sizeof size, "%" PRIu32 " MiB", t->memory_mib);
	term_cell(t->name, 20);
	(void)printf(" %-12.12s %9s %5" PRIu32 " %6" PRIu32 " MiB\n", t->id, size, t->vcpus,
		     t->disk_mib);
}

static int run_ls(struct cli *c)
{
	AUTO(fd_drop) int root = open(c->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct data d = DATA_NONE;
	struct template *list = NULL;
	struct fail f = {0};
	size_t n = 0;
	size_t bad = 0;

	d.root = root;
	if (root < 0 && errno != ENOENT)
		return term_error("cannot open '%s': %s", c->data, strerror(errno));
	if (root >= 0 && template_list(&d, &list, &n, &bad, &f) < 0)
		return term_fail(&f);
	if (c->is_json)
		(void)printf("[");
	else
		(void)printf("%s%-20s %-12s %9s %5s %10s%s\n", term_bold(), "NAME", "ID", "MEMORY",
			     "VCPUS", "DISK", term_plain());
	for (size_t i = 0; i < n; i++) {
		print_template(&list[i], c->is_json, i == 0);
		template_done(&list[i]);
	}
	if (c->is_json)
		(void)printf("]\n");
	free(list);
	if (bad)
		term_note("%zu template files cannot be read: build those templates anew", bad);
	return 0;
}

static const struct option_def build_options[] = {
	{'f', "force", NULL, "build it although it is fresh"},
};

const struct command cmd_template_build = {
	.name = "template build",
	.args = "NAME",
	.summary = "make a stock template on this machine",
	.details = "Takes packages from this machine's own apt sources. Done already and nothing\n"
		   "changed: takes a moment.",
	.example = "space template build base",
	.options = build_options,
	.n_options = ARRAY_LEN(build_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = run_build,
};

const struct command cmd_template_ls = {
	.name = "template ls",
	.args = "",
	.summary = "list templates",
	.example = "space template ls",
	.max_operands = 0,
	.run = run_ls,
};
