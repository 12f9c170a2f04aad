/* An environment: an ordered list of NAME=value, each name once. Setting a name again replaces its
 * value, so merging is setting in order. The pointers are an envp for execve(2). */
#ifndef SPACE_INIT_ENV_H
#define SPACE_INIT_ENV_H

#include "base/defs.h"

struct env {
	char **v; /* NULL-terminated once anything was set, else NULL */
	size_t n;
	size_t bytes; /* of all strings with their NULs */
};

void env_done(struct env *e); /* leaves an empty one */

/* 0; -EINVAL (the name is empty or has '='), -E2BIG (ENVS_MAX names, EXEC_MAX bytes). */
int env_set(struct env *e, const char *name, const char *value);
int env_merge(struct env *e, const struct env *more);
const char *env_get(const struct env *e, const char *name); /* NULL: not set */

#endif
