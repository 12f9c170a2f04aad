/* space: the command line of the platform. Speaks HTTP with spaced as any client does; only `up`,
 * `down` and `template build` start or end anything on this machine.
 *
 * Trusts the person; what the platform or a guest answers is escaped before a terminal sees it,
 * except a command's own stdout and stderr. Exit status: the command's, or 125 when it is ours. */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/cli.h"
#include "cli/exitcode.h"
#include "cli/term.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
	&cmd_up,          &cmd_down,         &cmd_run,        &cmd_exec,
	&cmd_ps,          &cmd_kill,         &cmd_logs,       &cmd_template_build,
	&cmd_template_ls, &cmd_bench_create, &cmd_bench_exec, &cmd_env,
	&cmd_version,
};

static const struct option_def common_options[] = {
	{'h', "help", NULL, "this text"},
	{0, "json", NULL, "answer as JSON (all but run, exec, logs)"},
	{0, "data", "DIR", "the data folder (else $SPACE_DATA, else the usual place)"},
};

static const char *const environment =
	"Environment:\n"
	"  SPACE_DATA      the data folder\n"
	"  SPACE_URL       another node's address (else this machine's node)\n"
	"  SPACE_API_KEY   its key\n"
	"  NO_COLOR        no colours\n";

static void print_options(const struct option_def *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char left[64];
		char letter[4] = "   ";

		if (d[i].letter)
			(void)snprintf(letter, sizeof letter, "-%c,", d[i].letter);
		(void)snprintf(left, sizeof left, "%s --%s%s%s", letter, d[i].name,
			       d[i].arg ? " " : "", d[i].arg ? d[i].arg : "");
		(void)printf("  %-26s %s\n", left, d[i].help);
	}
}

static int help_all(void)
{
	(void)printf("space: run code in microVMs of your own\n\n"
		     "Usage: space [OPTIONS] COMMAND [ARGS...]\n\nCommands:\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		(void)printf("  %-16s %s\n", commands[i]->name, commands[i]->summary);
	(void)printf("\nOptions of every command:\n");
	print_options(common_options, ARRAY_LEN(common_options));
	(void)printf("\n%s\nExample:\n  space up && space run python3 -c 'print(6*7)'\n\n"
		     "`space COMMAND --help` says more.\n",
		     environment);
	return 0;
}

static int help_command(const struct command *cmd)
{
	(void)printf("space %s: %s\n\nUsage: space %s [OPTIONS]%s%s\n", cmd->name, cmd->summary,
		     cmd->name, *cmd->args ? " " : "", cmd->args);
	if (cmd->details)
		(void)printf("\n%s\n", cmd->details);
	(void)printf("\nOptions:\n");
	print_options(cmd->options, cmd->n_options);
	for (size_t i = 0; i < ARRAY_LEN(common_options); i++)
		if (!cmd->is_raw || strcmp(common_options[i].name, "json") != 0)
			print_options(&common_options[i], 1);
	(void)printf("\nExample:\n  %s\n", cmd->example);
	return 0;
}

/* "template", "build" is one name; *ret_words says how many arguments it took. */
static const struct command *command_find(int argc, char **argv, int *ret_words)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const char *name = commands[i]->name;
		const char *space = strchr(name, ' ');
		size_t n = space ? (size_t)(space - name) : strlen(name);

		if (strlen(argv[0]) != n || memcmp(argv[0], name, n) != 0)
			continue;
		*ret_words = space ? 2 : 1;
		if (!space || (argc > 1 && strcmp(argv[1], space + 1) == 0))
			return commands[i];
	}
	return NULL;
}

static bool is_group(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		size_t n = strlen(word);

		if (strncmp(commands[i]->name, word, n) == 0 && commands[i]->name[n] == ' ')
			return true;
	}
	return false;
}

static int unknown_command(int argc, char **argv)
{
	if (!is_group(argv[0]))
		return term_error("unknown command '%s': `space --help` lists them", argv[0]);
	if (argc > 1 && argv[1][0] != '-')
		return term_error("unknown command '%s %s': `space --help` lists them", argv[0],
				  argv[1]);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		size_t n = strlen(argv[0]);

		if (strncmp(commands[i]->name, argv[0], n) == 0 && commands[i]->name[n] == ' ')
			(void)printf("  %-16s %s\n", commands[i]->name, commands[i]->summary);
	}
	return argc > 1 ? 0 : EXIT_OURS;
}

static char *default_data(void)
{
	const char *xdg = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/space");
	if (xdg && xdg[0] == '/')
		return xasprintf("%s/space", xdg);
	return home && home[0] == '/' ? xasprintf("%s/.local/share/space", home) : NULL;
}

static char *data_folder(const struct options *o)
{
	AUTO(str_drop) char *here = NULL;
	const char *given = option_value(o, "data");

	if (!given)
		given = getenv("SPACE_DATA");
	if (!given || !*given)
		return default_data();
	if (given[0] == '/')
		return xstrdup(given);
	here = getcwd(NULL, 0);
	return here ? xasprintf("%s/%s", here, given) : NULL;
}

/* PREFIX of PREFIX/bin/space. */
static char *own_prefix(void)
{
	AUTO(str_drop) char *path = realpath("/proc/self/exe", NULL);

	if (!path)
		return NULL;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return NULL;
		*slash = 0;
	}
	return xstrdup(path);
}

static int check_operands(const struct command *cmd, const struct cli *c)
{
	if (c->n_operands < cmd->min_operands)
		return term_error("%s: want %s; `space %s --help` has an example", cmd->name,
				  cmd->args, cmd->name);
	if (cmd->max_operands >= 0 && c->n_operands > cmd->max_operands)
		return term_error("%s: too many arguments, from '%s' on", cmd->name,
				  c->operands[cmd->max_operands]);
	return 0;
}

static int run_command(struct cli *c, const struct command *cmd)
{
	int r = check_operands(cmd, c);

	if (r)
		return r;
	c->is_json = option_is_set(&c->options, "json");
	if (c->is_json && cmd->is_raw)
		return term_error("%s: what it prints is no answer of ours: it has no --json",
				  cmd->name);
	c->data = data_folder(&c->options);
	if (!c->data)
		return term_error("no data folder: $HOME is not set; give --data DIR");
	c->prefix = own_prefix();
	if (!c->prefix)
		return term_error("cannot find my own place: /proc is not mounted?");
	c->libexec = xasprintf("%s/libexec/space", c->prefix);
	r = cmd->run(c);
	if (fflush(stdout) != 0 && errno != EPIPE)
		r = term_error("cannot write the answer: %s", strerror(errno));
	return r;
}

/* `space help [COMMAND]`, as people type it elsewhere. */
static int help_asked(int argc, char **argv)
{
	const struct command *cmd;
	int words;

	if (argc == 0)
		return help_all();
	cmd = command_find(argc, argv, &words);
	return cmd ? help_command(cmd) : unknown_command(argc, argv);
}

static int dispatch(struct cli *c, int argc, char **argv)
{
	struct fail f = {0};
	const struct command *cmd;
	int words;

	if (argc == 1 && strcmp(argv[0], "--version") == 0)
		return cmd_version.run(c);
	if (options_parse(&c->options, argc, argv, NULL, 0, common_options,
			  ARRAY_LEN(common_options), &f) < 0)
		return term_error("%s; `space --help` lists them", f.text);
	argc -= c->options.first_operand;
	argv += c->options.first_operand;
	if (argc == 0) {
		(void)help_all();
		return option_is_set(&c->options, "help") ? 0 : EXIT_OURS;
	}
	if (strcmp(argv[0], "help") == 0)
		return help_asked(argc - 1, argv + 1);
	cmd = command_find(argc, argv, &words);
	if (!cmd)
		return unknown_command(argc, argv);
	argc -= words;
	argv += words;
	if (options_parse(&c->options, argc, argv, cmd->options, cmd->n_options, common_options,
			  ARRAY_LEN(common_options), &f) < 0)
		return term_error("%s: %s; `space %s --help` lists them", cmd->name, f.text,
				  cmd->name);
	if (option_is_set(&c->options, "help"))
		return help_command(cmd);
	c->n_operands = argc - c->options.first_operand;
	c->operands = argv + c->options.first_operand;
	return run_command(c, cmd);
}

int main(int argc, char **argv)
{
	struct cli c = {0};
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	term_init();
	r = dispatch(&c, argc - 1, argv + 1);
	free(c.data);
	free(c.prefix);
	free(c.libexec);
	return r;
}
