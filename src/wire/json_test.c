/* JSON from outside: what is refused before and by the parser, and what the getters say. */
#include "base/test.h"
#include "wire/json.h"

#include <errno.h>

static const struct {
	const char *says;
	const char *in;
	int want;
} texts[] = {
	{"empty object", "{}", 0},
	{"blanks around", " \t\r\n{ } \n", 0},
	{"nested", "{\"a\":[{\"b\":null}]}", 0},
	{"brackets in a string do not nest", "{\"a\":\"[[[[{{{\\\"[[\"}", 0},
	{"nothing", "", -EINVAL},
	{"list", "[]", -EINVAL},
	{"number", "1", -EINVAL},
	{"text after", "{} x", -EINVAL},
	{"two objects", "{}{}", -EINVAL},
	{"cut off", "{\"a\":", -EINVAL},
	{"duplicate key", "{\"a\":1,\"a\":1}", -EINVAL},
	{"duplicate key by escape", "{\"a\":1,\"\\u0061\":1}", -EINVAL},
	{"duplicate key inside", "{\"o\":{\"a\":1,\"a\":2}}", -EINVAL},
	{"NUL in a string", "{\"a\":\"\\u0000\"}", -EINVAL},
	{"NUL in a key", "{\"\\u0000\":1}", -EINVAL},
	{"raw control", "{\"a\":\"\n\"}", -EINVAL},
	{"broken UTF-8", "{\"a\":\"\xff\"}", -EINVAL},
	{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", -EINVAL},
	{"lone surrogate", "{\"a\":\"\\ud800\"}", -EINVAL},
	{"NaN", "{\"a\":NaN}", -EINVAL},
	{"Infinity", "{\"a\":Infinity}", -EINVAL},
	{"real too large", "{\"a\":1e999}", -EINVAL},
	{"integer past 2^63", "{\"a\":9223372036854775808}", -EINVAL},
	{"leading zero", "{\"a\":01}", -EINVAL},
	{"trailing comma", "{\"a\":1,}", -EINVAL},
	{"comment", "{}/**/", -EINVAL},
	{"single quotes", "{'a':1}", -EINVAL},
	{"byte order mark", "\xef\xbb\xbf{}", -EINVAL},
};

static int parse(const char *text, json_t **ret, struct fail *f)
{
	return json_parse(ret, text, strlen(text), JSON_BYTES_MAX, f);
}

static void table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO(json_drop) json_t *j = NULL;
		struct fail f = {0};

		EXPECT_EQ(texts[i].says, parse(texts[i].in, &j, &f), texts[i].want);
		EXPECT(texts[i].says, (j != NULL) == (texts[i].want == 0));
		EXPECT(texts[i].says, f.code == texts[i].want);
	}
}

static void limits(void)
{
	char in[8 * JSON_DEPTH_MAX] = "";
	AUTO(json_drop) json_t *at = NULL;
	AUTO(json_drop) json_t *past = NULL;
	AUTO(json_drop) json_t *sized = NULL;
	size_t n = 5;

	memcpy(in, "{\"a\":", 5);
	memset(in + n, '[', JSON_DEPTH_MAX - 1);
	n += JSON_DEPTH_MAX - 1;
	memset(in + n, ']', JSON_DEPTH_MAX - 1);
	n += JSON_DEPTH_MAX - 1;
	in[n] = '}';
	EXPECT_EQ("depth at the limit", parse(in, &at, NULL), 0);
	n = 5;
	memset(in + n, '[', JSON_DEPTH_MAX);
	n += JSON_DEPTH_MAX;
	memset(in + n, ']', JSON_DEPTH_MAX);
	n += JSON_DEPTH_MAX;
	in[n] = '}';
	EXPECT_EQ("depth one past", parse(in, &past, NULL), -EINVAL);
	EXPECT_EQ("size at the limit", json_parse(&sized, "{  }", 4, 4, NULL), 0);
	EXPECT_EQ("size one past", json_parse(&past, "{   }", 5, 4, NULL), -E2BIG);
}

/* {"a":[1,1,...]}: three marks and one a comma. */
static void many_values(void)
{
	static char in[2 * JSON_MARKS_MAX + 16] = "{\"a\":[1";
	AUTO(json_drop) json_t *at = NULL;
	AUTO(json_drop) json_t *past = NULL;
	struct fail f = {0};
	size_t n = 7;

	for (size_t i = 0; i < JSON_MARKS_MAX - 3; i++, n += 2)
		memcpy(in + n, ",1", 2);
	memcpy(in + n, "]}", 2);
	EXPECT_EQ("values at the limit", json_parse(&at, in, n + 2, JSON_BYTES_MAX, &f), 0);
	memcpy(in + n, ",1]}", 4);
	EXPECT_EQ("values one past", json_parse(&past, in, n + 4, JSON_BYTES_MAX, &f), -EINVAL);
	EXPECT_STR("says", f.text, "JSON has too many values");
}

static const char object[] = "{\"s\":\"abc\",\"i\":10,\"r\":1.0,\"t\":true,\"n\":null,\"l\":["
			     "\"ab\",\"c\"],\"m\":{\"k\":\"abc\","
			     "\"lm\":\"\"},\"mixed\":{\"k\":1},\"ml\":[1],\"e\":{\"\":\"x\"}}";

static void scalars(const json_t *j)
{
	struct fail f = {0};
	const char *s = "default";
	int64_t i = 7;
	bool b = false;

	CHECK(json_get_str(j, "s", JSON_REQUIRED, 1, 3, &s, &f) == 0 && strcmp(s, "abc") == 0);
	CHECK(json_get_str(j, "s", JSON_REQUIRED, 1, 2, &s, &f) == -EINVAL);
	EXPECT_STR("says", f.text, "'s' must have 1 to 2 bytes");
	CHECK(json_get_str(j, "s", JSON_REQUIRED, 4, 9, &s, &f) == -EINVAL);
	CHECK(json_get_str(j, "x", JSON_REQUIRED, 0, 9, &s, &f) == -EINVAL);
	EXPECT_STR("says", f.text, "'x' is missing");
	CHECK(json_get_str(j, "n", JSON_REQUIRED, 0, 9, &s, &f) == -EINVAL);
	s = "default";
	CHECK(json_get_str(j, "x", JSON_OPTIONAL, 0, 9, &s, &f) == 0 && strcmp(s, "default") == 0);
	CHECK(json_get_str(j, "n", JSON_OPTIONAL, 0, 9, &s, &f) == 0 && strcmp(s, "default") == 0);
	CHECK(json_get_str(j, "i", JSON_OPTIONAL, 0, 9, &s, &f) == -EINVAL);
	EXPECT_STR("says", f.text, "'i' must be a string");
	CHECK(json_get_i64(j, "i", JSON_REQUIRED, 10, 10, &i, &f) == 0 && i == 10);
	i = 7;
	CHECK(json_get_i64(j, "i", JSON_REQUIRED, 11, 20, &i, &f) == -EINVAL && i == 7);
	EXPECT_STR("says", f.text, "'i' must be an integer from 11 to 20");
	CHECK(json_get_i64(j, "i", JSON_REQUIRED, 0, 9, &i, &f) == -EINVAL);
	CHECK(json_get_i64(j, "r", JSON_REQUIRED, 0, 9, &i, &f) == -EINVAL);
	CHECK(json_get_i64(j, "x", JSON_OPTIONAL, 0, 9, &i, &f) == 0 && i == 7);
	CHECK(json_get_bool(j, "t", JSON_REQUIRED, &b, &f) == 0 && b);
	CHECK(json_get_bool(j, "i", JSON_REQUIRED, &b, &f) == -EINVAL && b);
	EXPECT_STR("says", f.text, "'i' must be true or false");
}

static int map_try(const json_t *j, const char *key, size_t count, size_t k, size_t v, size_t total,
		   json_t **ret)
{
	return json_get_str_map(
		j, key, JSON_OPTIONAL,
		(struct json_limits){.count = count, .key = k, .value = v, .total = total}, ret,
		NULL);
}

static int list_try(const json_t *j, const char *key, size_t count, size_t v, size_t total,
		    json_t **ret)
{
	return json_get_str_list(j, key, JSON_OPTIONAL,
				 (struct json_limits){.count = count, .value = v, .total = total},
				 ret, NULL);
}

static void containers(const json_t *j)
{
	json_t *m = NULL;

	CHECK(map_try(j, "m", 2, 2, 3, 6, &m) == 0 && m && json_object_size(m) == 2);
	CHECK(map_try(j, "m", 1, 2, 3, 6, &m) == -EINVAL);
	CHECK(map_try(j, "m", 2, 1, 3, 6, &m) == -EINVAL);
	CHECK(map_try(j, "m", 2, 2, 2, 6, &m) == -EINVAL);
	CHECK(map_try(j, "m", 2, 2, 3, 5, &m) == -EINVAL);
	CHECK(map_try(j, "mixed", 9, 9, 9, 9, &m) == -EINVAL);
	CHECK(map_try(j, "e", 9, 9, 9, 9, &m) == -EINVAL);
	CHECK(map_try(j, "l", 9, 9, 9, 9, &m) == -EINVAL);
	m = NULL;
	CHECK(map_try(j, "x", 9, 9, 9, 9, &m) == 0 && !m);
	CHECK(list_try(j, "l", 2, 2, 3, &m) == 0 && m && json_array_size(m) == 2);
	CHECK(list_try(j, "l", 1, 2, 3, &m) == -EINVAL);
	CHECK(list_try(j, "l", 2, 1, 3, &m) == -EINVAL);
	CHECK(list_try(j, "l", 2, 2, 2, &m) == -EINVAL);
	CHECK(list_try(j, "ml", 9, 9, 9, &m) == -EINVAL);
	CHECK(list_try(j, "m", 9, 9, 9, &m) == -EINVAL);
	CHECK(json_get_object(j, "l", JSON_REQUIRED, &m, NULL) == -EINVAL);
}

static void prints(const json_t *j)
{
	size_t n = 0;
	char *text = json_print(j, sizeof object - 1, &n);

	EXPECT_STR("prints what was read", text, object);
	EXPECT_EQ("prints what was read", n, sizeof object - 1);
	free(text);
	CHECK(json_print(j, sizeof object - 2, &n) == NULL);
}

int main(void)
{
	AUTO(json_drop) json_t *j = NULL;

	table();
	limits();
	many_values();
	if (!EXPECT("parses", parse(object, &j, NULL) == 0))
		return test_done();
	scalars(j);
	containers(j);
	prints(j);
	return test_done();
}
