/* The command line's own frame: what every command gets, and the table of commands that drives
 * help and parsing. */
#ifndef SPACE_CLI_CLI_H
#define SPACE_CLI_CLI_H

#include "cli/options.h"

struct cli {
	char *data;    /* the data folder, absolute; may not exist */
	char *prefix;  /* where we are installed: PREFIX of PREFIX/bin/space */
	char *libexec; /* PREFIX/libexec/space */
	bool is_json;
	struct options options;
	int n_operands;
	char *const *operands; /* NULL-terminated */
};

struct command {
	const char *name; /* "run", "template build" */
	const char *args; /* of the usage line */
	const char *summary;
	const char *details; /* more for its --help, or NULL */
	const char *example;
	const struct option_def *options;
	size_t n_options;
	int min_operands;
	int max_operands;          /* -1: any number */
	bool is_raw;               /* what it prints is not ours: it knows no --json */
	int (*run)(struct cli *c); /* returns the exit status */
};

extern const struct command cmd_up, cmd_down, cmd_run, cmd_exec, cmd_ps, cmd_kill, cmd_logs;
extern const struct command cmd_template_build, cmd_template_ls;
extern const struct command cmd_bench_create, cmd_bench_exec, cmd_env, cmd_version;

#endif
