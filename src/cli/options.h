/* Command line options, as people know them: -x, -xVALUE, -x VALUE, --name, --name=VALUE,
 * --name VALUE, several flags behind one dash, "--" ends. Options also end at the first operand, so
 * that `space run ls -l` gives -l to ls. Pure: nothing is printed and nothing is owned. */
#ifndef SPACE_CLI_OPTIONS_H
#define SPACE_CLI_OPTIONS_H

#include "base/fail.h"

#define OPTIONS_MAX 256 /* options given in one command line */

struct option_def {
	char letter;      /* 0: none */
	const char *name; /* without the dashes */
	const char *arg;  /* how the help calls its value; NULL: a flag */
	const char *help;
};

struct option_given {
	const char *name;  /* option_def.name */
	const char *value; /* borrowed from argv; NULL for a flag */
};

struct options {
	size_t n;
	struct option_given given[OPTIONS_MAX];
	int first_operand; /* index into argv */
};

/* Reads argv[0..argc). The definitions are two tables, so that commands share the common ones.
 * -EINVAL with a sentence that names the option. Adds to what *o holds. */
int options_parse(struct options *o, int argc, char *const *argv, const struct option_def *own,
		  size_t n_own, const struct option_def *common, size_t n_common, struct fail *f);

bool option_is_set(const struct options *o, const char *name);
const char *option_value(const struct options *o, const char *name); /* the last; NULL: not given */

/* A whole number in min..max; `otherwise` when it was not given. -EINVAL with a sentence. */
int option_u64(const struct options *o, const char *name, uint64_t min, uint64_t max,
	       uint64_t otherwise, uint64_t *ret, struct fail *f);

#endif
