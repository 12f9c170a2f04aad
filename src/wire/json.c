/* JSON from outside, bounded and named; see json.h. Pure but for memory: jansson allocates what it
 * reads, which the size limit bounds. */
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void json_drop(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}

/* jansson recurses up to 2048 levels and takes up to 90 times the text's size in memory; we judge
 * both before it starts. Exact on whatever prefix is JSON, and jansson reads no further than
 * that. */
static int shape_check(const char *p, size_t n, struct fail *f)
{
	bool in_string = false;
	unsigned depth = 0;
	unsigned marks = 0;

	for (size_t i = 0; i < n; i++) {
		if (in_string) {
			if (p[i] == '\\')
				i++;
			else if (p[i] == '"')
				in_string = false;
			continue;
		}
		in_string = p[i] == '"';
		if (p[i] == '{' || p[i] == '[')
			depth++;
		if ((p[i] == '}' || p[i] == ']') && depth > 0)
			depth--;
		if (p[i] == '{' || p[i] == '[' || p[i] == ',' || p[i] == ':')
			marks++;
		if (depth > JSON_DEPTH_MAX)
			return fail_set(f, -EINVAL, "JSON is nested deeper than %d levels",
					JSON_DEPTH_MAX);
		if (marks > JSON_MARKS_MAX)
			return fail_set(f, -EINVAL, "JSON has too many values");
	}
	return 0;
}

int json_parse(json_t **ret, const void *p, size_t n, size_t max_bytes, struct fail *f)
{
	json_error_t error;
	json_t *j;

	if (n > size_min(max_bytes, JSON_BYTES_MAX))
		return fail_set(f, -E2BIG, "JSON is longer than %zu bytes",
				size_min(max_bytes, JSON_BYTES_MAX));
	if (n == 0)
		return fail_set(f, -EINVAL, "JSON is empty");
	if (shape_check(p, n, f) < 0)
		return -EINVAL;
	j = json_loadb(p, n, JSON_REJECT_DUPLICATES, &error);
	if (!j)
		return fail_set(f, -EINVAL, "malformed JSON at line %d, column %d", error.line,
				error.column);
	if (!json_is_object(j)) {
		json_decref(j);
		return fail_set(f, -EINVAL, "JSON is not an object");
	}
	*ret = j;
	return 0;
}

/* 1: *ret is the field; 0: absent or null, and may be; -EINVAL. */
static int field_get(const json_t *o, const char *key, enum json_need need, json_t **ret,
		     struct fail *f)
{
	json_t *v = json_object_get(o, key);

	if (v && !json_is_null(v)) {
		*ret = v;
		return 1;
	}
	return need == JSON_OPTIONAL ? 0 : fail_set(f, -EINVAL, "'%s' is missing", key);
}

static int length_check(const char *key, size_t n, size_t min, size_t max, struct fail *f)
{
	if (n < min || n > max)
		return fail_set(f, -EINVAL, "'%s' must have %zu to %zu bytes", key, min, max);
	return 0;
}

int json_get_str(const json_t *o, const char *key, enum json_need need, size_t min, size_t max,
		 const char **ret, struct fail *f)
{
	json_t *v = NULL;
	int r = field_get(o, key, need, &v, f);

	if (r <= 0)
		return r;
	if (!json_is_string(v))
		return fail_set(f, -EINVAL, "'%s' must be a string", key);
	r = length_check(key, json_string_length(v), min, max, f);
	if (r == 0)
		*ret = json_string_value(v);
	return r;
}

int json_get_i64(const json_t *o, const char *key, enum json_need need, int64_t min, int64_t max,
		 int64_t *ret, struct fail *f)
{
	json_t *v = NULL;
	int r = field_get(o, key, need, &v, f);

	if (r <= 0)
		return r;
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return fail_set(f, -EINVAL, "'%s' must be an integer from %" PRId64 " to %" PRId64,
				key, min, max);
	*ret = json_integer_value(v);
	return 0;
}

int json_get_bool(const json_t *o, const char *key, enum json_need need, bool *ret, struct fail *f)
{
	json_t *v = NULL;
	int r = field_get(o, key, need, &v, f);

	if (r <= 0)
		return r;
	if (!json_is_boolean(v))
		return fail_set(f, -EINVAL, "'%s' must be true or false", key);
	*ret = json_is_true(v);
	return 0;
}

int json_get_object(const json_t *o, const char *key, enum json_need need, json_t **ret,
		    struct fail *f)
{
	json_t *v = NULL;
	int r = field_get(o, key, need, &v, f);

	if (r <= 0)
		return r;
	if (!json_is_object(v))
		return fail_set(f, -EINVAL, "'%s' must be an object", key);
	*ret = v;
	return 0;
}

int json_get_array(const json_t *o, const char *key, enum json_need need, size_t max_count,
		   json_t **ret, struct fail *f)
{
	json_t *v = NULL;
	int r = field_get(o, key, need, &v, f);

	if (r <= 0)
		return r;
	if (!json_is_array(v))
		return fail_set(f, -EINVAL, "'%s' must be a list", key);
	if (json_array_size(v) > max_count)
		return fail_set(f, -EINVAL, "'%s' must have at most %zu entries", key, max_count);
	*ret = v;
	return 0;
}

/* Adds n to *total, which stays <= max. */
static bool total_fits(size_t *total, size_t n, size_t max)
{
	if (n > max - *total)
		return false;
	*total += n;
	return true;
}

static int total_fail(const char *key, const struct json_limits *max, struct fail *f)
{
	return fail_set(f, -EINVAL, "'%s' must have at most %zu bytes in all", key, max->total);
}

static int map_entry_check(const char *key, const char *name, const json_t *v,
			   const struct json_limits *max, size_t *total, struct fail *f)
{
	size_t n = strlen(name);

	if (n == 0 || n > max->key)
		return fail_set(f, -EINVAL, "keys of '%s' must have 1 to %zu bytes", key, max->key);
	if (!json_is_string(v))
		return fail_set(f, -EINVAL, "values of '%s' must be strings", key);
	if (json_string_length(v) > max->value)
		return fail_set(f, -EINVAL, "values of '%s' must have at most %zu bytes", key,
				max->value);
	if (!total_fits(total, n, max->total) ||
	    !total_fits(total, json_string_length(v), max->total))
		return total_fail(key, max, f);
	return 0;
}

int json_get_str_map(const json_t *o, const char *key, enum json_need need, struct json_limits max,
		     json_t **ret, struct fail *f)
{
	json_t *map = NULL;
	json_t *v;
	const char *name;
	size_t total = 0;
	int r = json_get_object(o, key, need, &map, f);

	if (r < 0 || !map)
		return r;
	if (json_object_size(map) > max.count)
		return fail_set(f, -EINVAL, "'%s' must have at most %zu entries", key, max.count);
	json_object_foreach (map, name, v) {
		r = map_entry_check(key, name, v, &max, &total, f);
		if (r < 0)
			return r;
	}
	*ret = map;
	return 0;
}

int json_get_str_list(const json_t *o, const char *key, enum json_need need, struct json_limits max,
		      json_t **ret, struct fail *f)
{
	json_t *list = NULL;
	json_t *v;
	size_t total = 0;
	size_t i;
	int r = json_get_array(o, key, need, max.count, &list, f);

	if (r < 0 || !list)
		return r;
	json_array_foreach (list, i, v) {
		if (!json_is_string(v))
			return fail_set(f, -EINVAL, "entries of '%s' must be strings", key);
		if (json_string_length(v) > max.value)
			return fail_set(f, -EINVAL, "entries of '%s' must have at most %zu bytes",
					key, max.value);
		if (!total_fits(&total, json_string_length(v), max.total))
			return total_fail(key, &max, f);
	}
	*ret = list;
	return 0;
}

char *json_print(const json_t *j, size_t max_bytes, size_t *ret_n)
{
	size_t n = json_dumpb(j, NULL, 0, JSON_COMPACT);
	char *text;

	if (n == 0 || n > max_bytes)
		return NULL;
	text = malloc(n + 1);
	if (!text || json_dumpb(j, text, n, JSON_COMPACT) != n) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_n = n;
	return text;
}
