/* Runs a template's build script and shows how far it is. */
#ifndef SPACE_CLI_BUILD_H
#define SPACE_CLI_BUILD_H

#include "base/fail.h"

struct cli;

struct build {
	const struct cli *cli;
	const char *name;
	bool is_forced;
	int signo; /* which signal ended it, with -EINTR */
};

/* -EINTR: a signal came and the script has ended; -ENOENT: no such stock template; -ECHILD: it
 * failed, and its last lines were shown. */
int build_template(struct build *b, struct fail *f);

#endif
