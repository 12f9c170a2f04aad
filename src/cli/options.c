/* See options.h. */
#include "cli/options.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct tables {
	const struct option_def *own;
	size_t n_own;
	const struct option_def *common;
	size_t n_common;
};

static const struct option_def *def_at(const struct tables *t, size_t i)
{
	return i < t->n_own ? &t->own[i] : &t->common[i - t->n_own];
}

static const struct option_def *find_letter(const struct tables *t, char c)
{
	for (size_t i = 0; i < t->n_own + t->n_common; i++)
		if (def_at(t, i)->letter == c)
			return def_at(t, i);
	return NULL;
}

static const struct option_def *find_name(const struct tables *t, const char *name, size_t n)
{
	for (size_t i = 0; i < t->n_own + t->n_common; i++) {
		const struct option_def *d = def_at(t, i);

		if (strlen(d->name) == n && memcmp(d->name, name, n) == 0)
			return d;
	}
	return NULL;
}

static int given_add(struct options *o, const struct option_def *d, const char *value,
		     struct fail *f)
{
	if (o->n == OPTIONS_MAX)
		return fail_set(f, -EINVAL, "more than %d options", OPTIONS_MAX);
	o->given[o->n++] = (struct option_given){.name = d->name, .value = value};
	return 0;
}

/* text: behind the two dashes; next: the following argument or NULL. *ret_used: 1: it was taken. */
static int parse_long(struct options *o, const struct tables *t, const char *text, const char *next,
		      int *ret_used, struct fail *f)
{
	size_t n = strcspn(text, "=");
	const struct option_def *d = find_name(t, text, n);

	if (!d)
		return fail_set(f, -EINVAL, "unknown option '--%.*s'", (int)size_min(n, 64), text);
	if (!d->arg) {
		if (text[n])
			return fail_set(f, -EINVAL, "option '--%s' takes no value", d->name);
		return given_add(o, d, NULL, f);
	}
	if (text[n])
		return given_add(o, d, text + n + 1, f);
	if (!next)
		return fail_set(f, -EINVAL, "option '--%s' needs a value: %s", d->name, d->arg);
	*ret_used = 1;
	return given_add(o, d, next, f);
}

static int parse_short(struct options *o, const struct tables *t, const char *text,
		       const char *next, int *ret_used, struct fail *f)
{
	for (const char *p = text; *p; p++) {
		const struct option_def *d = find_letter(t, *p);
		int r;

		if (!d)
			return fail_set(f, -EINVAL, "unknown option '-%c'", *p);
		if (d->arg && p[1])
			return given_add(o, d, p + 1, f);
		if (d->arg) {
			if (!next)
				return fail_set(f, -EINVAL, "option '-%c' needs a value: %s", *p,
						d->arg);
			*ret_used = 1;
			return given_add(o, d, next, f);
		}
		r = given_add(o, d, NULL, f);
		if (r < 0)
			return r;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, const struct option_def *own,
		  size_t n_own, const struct option_def *common, size_t n_common, struct fail *f)
{
	struct tables t = {own, n_own, common, n_common};
	int i = 0;

	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		int used = 0;
		int r;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][1] == '-')
			r = parse_long(o, &t, argv[i] + 2, next, &used, f);
		else
			r = parse_short(o, &t, argv[i] + 1, next, &used, f);
		if (r < 0)
			return r;
		i += used;
	}
	o->first_operand = i;
	return 0;
}

const char *option_value(const struct options *o, const char *name)
{
	for (size_t i = o->n; i > 0; i--)
		if (strcmp(o->given[i - 1].name, name) == 0)
			return o->given[i - 1].value;
	return NULL;
}

bool option_is_set(const struct options *o, const char *name)
{
	for (size_t i = 0; i < o->n; i++)
		if (strcmp(o->given[i].name, name) == 0)
			return true;
	return false;
}

int option_u64(const struct options *o, const char *name, uint64_t min, uint64_t max,
	       uint64_t otherwise, uint64_t *ret, struct fail *f)
{
	const char *text = option_value(o, name);
	uint64_t v;

	if (!text) {
		*ret = otherwise;
		return 0;
	}
	if (str_u64(text, max, &v) < 0 || v < min)
		return fail_set(f, -EINVAL,
				"option '--%s' is '%.64s': want a whole number from %" PRIu64
				" to %" PRIu64,
				name, text, min, max);
	*ret = v;
	return 0;
}
