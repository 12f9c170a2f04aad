/* See query.h. `metadata` is encoded three times by the clients: the query's own escapes, then a
 * form whose keys and values are escaped, then each of those once more (encodeURIComponent of the
 * key before it went into the form). */
#include "spaced/query.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int decode(char *dst, const char *p, size_t n, bool plus_is_blank)
{
	char *out = dst;

	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (c == '%') {
			int hi = n - i > 2 ? hex_value(p[i + 1]) : -1;
			int lo = n - i > 2 ? hex_value(p[i + 2]) : -1;

			if (hi < 0 || lo < 0 || (hi == 0 && lo == 0))
				return -EINVAL;
			c = (char)(hi * 16 + lo);
			i += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		} else if (c == '\0') {
			return -EINVAL;
		}
		*out++ = c;
	}
	*out = '\0';
	return 0;
}

int url_decode(char *dst, const char *p, size_t n)
{
	return decode(dst, p, n, true);
}

/* One "key=value" of a form, and where the next begins. */
struct pair {
	const char *key;
	size_t key_n;
	const char *value;
	size_t value_n;
};

static bool pair_next(const char **p, const char *end, struct pair *ret)
{
	while (*p < end) {
		const char *stop = memchr(*p, '&', (size_t)(end - *p));
		const char *start = *p;
		const char *eq;

		if (!stop)
			stop = end;
		*p = stop < end ? stop + 1 : end;
		if (stop == start)
			continue;
		eq = memchr(start, '=', (size_t)(stop - start));
		if (!eq)
			eq = stop;
		*ret = (struct pair){start, (size_t)(eq - start), eq < stop ? eq + 1 : stop,
				     eq < stop ? (size_t)(stop - eq - 1) : 0};
		return true;
	}
	return false;
}

static char *decode_new(const char *p, size_t n)
{
	char *s = xcalloc(1, n + 1);

	if (url_decode(s, p, n) < 0)
		str_drop(&s);
	return s;
}

int query_get(const char *query, size_t n, const char *name, char **ret)
{
	const char *p = query, *end = query + n;
	AUTO(str_drop) char *found = NULL;
	struct pair pair;
	unsigned count = 0;

	while (pair_next(&p, end, &pair)) {
		AUTO(str_drop) char *key = NULL;

		if (++count > QUERY_PAIRS_MAX || !(key = decode_new(pair.key, pair.key_n)))
			return -EINVAL;
		if (strcmp(key, name) != 0)
			continue;
		if (found || !(found = decode_new(pair.value, pair.value_n)))
			return -EINVAL;
	}
	*ret = found;
	found = NULL;
	return 0;
}

/* Decoded as a form field, then once more. */
static char *decode_twice(const char *p, size_t n)
{
	AUTO(str_drop) char *once = decode_new(p, n);
	char *twice;

	if (!once)
		return NULL;
	twice = xcalloc(1, strlen(once) + 1);
	if (decode(twice, once, strlen(once), false) < 0)
		str_drop(&twice);
	return twice;
}

static int filters_parse(const char *form, struct list_query *q, struct fail *f)
{
	const char *p = form, *end = form + strlen(form);
	struct pair pair;

	while (pair_next(&p, end, &pair)) {
		struct list_filter *l = &q->filter[q->n_filters];

		if (q->n_filters >= QUERY_FILTERS_MAX)
			return fail_set(f, -EINVAL, "'metadata' holds more than %u pairs",
					QUERY_FILTERS_MAX);
		q->n_filters++;
		l->key = decode_twice(pair.key, pair.key_n);
		l->value = decode_twice(pair.value, pair.value_n);
		if (!l->key || !l->value)
			return fail_set(f, -EINVAL, "'metadata' is not encoded properly");
	}
	return 0;
}

static int states_parse(const char *text, struct list_query *q, struct fail *f)
{
	q->running = q->paused = false;
	while (*text) {
		size_t n = strcspn(text, ",");

		if (n == 7 && strncmp(text, "running", 7) == 0)
			q->running = true;
		else if (n == 6 && strncmp(text, "paused", 6) == 0)
			q->paused = true;
		else
			return fail_set(f, -EINVAL, "'state' must be a list of running and paused");
		text += n + (text[n] == ',');
	}
	return 0;
}

static int limit_parse(const char *text, struct list_query *q, struct fail *f)
{
	uint64_t v = 0;

	if (str_u64(text, LIST_LIMIT_MAX, &v) < 0 || v < 1)
		return fail_set(f, -EINVAL, "'limit' must be a number from 1 to %u",
				LIST_LIMIT_MAX);
	q->limit = (uint32_t)v;
	return 0;
}

void list_token_print(char ret[LIST_TOKEN_SIZE], uint64_t started_ns, const char *id)
{
	(void)snprintf(ret, LIST_TOKEN_SIZE, "%" PRIu64 "-%s", started_ns,
		       id); /* fits: 20 + 1 + 20 */
}

static int token_parse(const char *text, struct list_query *q, struct fail *f)
{
	size_t n = strcspn(text, "-");

	if (text[n] != '-' || str_u64_n(text, n, UINT64_MAX, &q->after_started_ns) < 0 ||
	    str_copy(q->after_id, sizeof q->after_id, text + n + 1) < 0)
		return fail_set(f, -EINVAL, "'nextToken' is not one that was given out");
	q->has_after = true;
	return 0;
}

static int order_parse(const char *text, struct list_query *q, struct fail *f)
{
	if (strcmp(text, "asc") != 0 && strcmp(text, "desc") != 0)
		return fail_set(f, -EINVAL, "'order' must be asc or desc");
	q->ascending = text[0] == 'a';
	return 0;
}

static int started_after_parse(const char *text, struct list_query *q, struct fail *f)
{
	if (rfc3339_parse(text, &q->started_after_ns) < 0)
		return fail_set(f, -EINVAL, "'startedAfter' is not a time");
	return 0;
}

static int template_parse_name(const char *text, struct list_query *q, struct fail *f)
{
	(void)f;
	q->template_name = xstrdup(text);
	return 0;
}

static const struct {
	const char *name;
	int (*parse)(const char *text, struct list_query *q, struct fail *f);
} fields[] = {
	{"metadata", filters_parse},
	{"state", states_parse},
	{"limit", limit_parse},
	{"nextToken", token_parse},
	{"order", order_parse},
	{"startedAfter", started_after_parse},
	{"template", template_parse_name},
};

void list_query_done(struct list_query *q)
{
	for (size_t i = 0; i < q->n_filters; i++) {
		str_drop(&q->filter[i].key);
		str_drop(&q->filter[i].value);
	}
	q->n_filters = 0;
	str_drop(&q->template_name);
}

int list_query_parse(const char *query, size_t n, struct list_query *ret, struct fail *f)
{
	struct list_query q = {.running = true, .paused = true, .limit = LIST_LIMIT_MAX};
	int r = n > QUERY_MAX ? fail_set(f, -EINVAL, "the query is too long") : 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fields); i++) {
		AUTO(str_drop) char *text = NULL;

		if (query_get(query, n, fields[i].name, &text) < 0)
			r = fail_set(f, -EINVAL, "'%s' is given twice or not encoded properly",
				     fields[i].name);
		else if (text)
			r = fields[i].parse(text, &q, f);
	}
	if (r < 0) {
		list_query_done(&q);
		return r;
	}
	*ret = q;
	return 0;
}
