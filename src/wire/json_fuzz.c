/* JSON. Properties: what is accepted is within depth, holds no NUL and reads the same after being
 * printed; getters give values within the limits or leave the output alone. */
#include "base/fuzz.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 65536u

static void tree_check(json_t *j, unsigned depth)
{
	const char *name;
	json_t *v;
	size_t i;

	assert(depth <= JSON_DEPTH_MAX);
	if (json_is_string(j))
		assert(strlen(json_string_value(j)) == json_string_length(j));
	json_array_foreach (j, i, v)
		tree_check(v, depth + 1);
	json_object_foreach (j, name, v)
		tree_check(v, depth + 1);
}

static void getters(const json_t *j)
{
	static const struct json_limits max = {.count = 4, .key = 4, .value = 4, .total = 16};
	const char *s = "";
	int64_t i = 5;
	bool b = false;
	json_t *v = NULL;
	struct fail f = {0};
	int r = json_get_str(j, "s", JSON_OPTIONAL, 0, 8, &s, &f);

	assert(strlen(s) <= 8 && (r == 0) == (f.code == 0));
	r = json_get_i64(j, "i", JSON_REQUIRED, 1, 10, &i, &f);
	assert(i >= 1 && i <= 10 && (r == 0 || (r == -EINVAL && f.text[0])));
	r = json_get_bool(j, "b", JSON_OPTIONAL, &b, &f);
	assert(r == 0 || r == -EINVAL);
	r = json_get_str_map(j, "m", JSON_REQUIRED, max, &v, &f);
	assert((r == 0) == (v != NULL) && (!v || json_object_size(v) <= max.count));
	v = NULL;
	r = json_get_str_list(j, "l", JSON_REQUIRED, max, &v, &f);
	assert((r == 0) == (v != NULL) && (!v || json_array_size(v) <= max.count));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_drop) json_t *j = NULL;
	AUTO(json_drop) json_t *again = NULL;
	struct fail f = {0};
	size_t n = 0;
	char *text;
	int r = json_parse(&j, data, size, BYTES_MAX, &f);

	assert((r == 0) == (j != NULL) && r == f.code);
	if (r < 0)
		return 0;
	tree_check(j, 0);
	getters(j);
	text = json_print(j, SIZE_MAX, &n);
	assert(text && strlen(text) == n);
	assert(json_parse(&again, text, n, JSON_BYTES_MAX, &f) == 0 && json_equal(j, again));
	free(text);
	return 0;
}
