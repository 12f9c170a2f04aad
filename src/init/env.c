/* The environment list: see env.h. Linear on purpose: ENVS_MAX is small. */
#include "init/env.h"

#include "base/alloc.h"
#include "init/limits.h"

#include <errno.h>

void env_done(struct env *e)
{
	for (size_t i = 0; i < e->n; i++)
		mem_drop(&e->v[i]);
	mem_drop(&e->v);
	*e = (struct env){0};
}

static char **env_slot(const struct env *e, const char *name, size_t n)
{
	for (size_t i = 0; i < e->n; i++)
		if (strncmp(e->v[i], name, n) == 0 && e->v[i][n] == '=')
			return &e->v[i];
	return NULL;
}

int env_set(struct env *e, const char *name, const char *value)
{
	size_t name_n = strlen(name);
	size_t bytes = name_n + 1 + strlen(value) + 1;
	char **slot;
	size_t old;

	if (name_n == 0 || strchr(name, '='))
		return -EINVAL;
	slot = env_slot(e, name, name_n);
	old = slot ? strlen(*slot) + 1 : 0;
	if (bytes > EXEC_MAX - (e->bytes - old) || (!slot && e->n == ENVS_MAX))
		return -E2BIG;
	if (!slot) {
		e->v = xrealloc(e->v, e->n + 2, sizeof *e->v);
		slot = &e->v[e->n++];
		*slot = NULL;
		e->v[e->n] = NULL;
	}
	mem_drop(slot);
	*slot = xasprintf("%s=%s", name, value);
	e->bytes += bytes - old;
	return 0;
}

int env_merge(struct env *e, const struct env *more)
{
	for (size_t i = 0; i < more->n; i++) {
		const char *eq = strchr(more->v[i], '=');
		AUTO(str_drop) char *name = xstrndup(more->v[i], (size_t)(eq - more->v[i]));
		int err = env_set(e, name, eq + 1);

		if (err)
			return err;
	}
	return 0;
}

const char *env_get(const struct env *e, const char *name)
{
	size_t n = strlen(name);
	char **slot = env_slot(e, name, n);

	return slot ? *slot + n + 1 : NULL;
}
