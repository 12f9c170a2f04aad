/* JSON from outside, over jansson: bounded, no duplicate keys, no NUL, and getters whose failures
 * name the field and its range, in words fit for the one who sent it (code -EINVAL). Pure.
 *
 * Getters leave *ret alone when an optional field is absent or null, so set the default first.
 * Unknown fields are ignored, as proto3 JSON and the E2B API want it. Strings borrow from the
 * json_t. */
#ifndef SPACE_WIRE_JSON_H
#define SPACE_WIRE_JSON_H

#include "base/defs.h"
#include "base/fail.h"

#include <jansson.h>

#define JSON_DEPTH_MAX 64 /* arrays and objects within each other */
#define JSON_BYTES_MAX (4u * 1024 * 1024)
#define JSON_MARKS_MAX                                                                             \
	65536 /* brackets opened, commas, colons: an empty object of 3 bytes takes 300 */

enum json_need { JSON_OPTIONAL, JSON_REQUIRED };

void json_drop(json_t **j); /* for AUTO() */

/* One object, UTF-8, nothing after it. *ret is the caller's. -EINVAL, -E2BIG (over max_bytes, which
 * is at most JSON_BYTES_MAX); deeper than JSON_DEPTH_MAX or more
 * than JSON_MARKS_MAX: -EINVAL. */
int json_parse(json_t **ret, const void *p, size_t n, size_t max_bytes, struct fail *f);

/* Length in bytes, min..max. */
int json_get_str(const json_t *o, const char *key, enum json_need need, size_t min, size_t max,
		 const char **ret, struct fail *f);
/* A JSON integer (3.0 is refused). */
int json_get_i64(const json_t *o, const char *key, enum json_need need, int64_t min, int64_t max,
		 int64_t *ret, struct fail *f);
int json_get_bool(const json_t *o, const char *key, enum json_need need, bool *ret, struct fail *f);
int json_get_object(const json_t *o, const char *key, enum json_need need, json_t **ret,
		    struct fail *f);
int json_get_array(const json_t *o, const char *key, enum json_need need, size_t max_count,
		   json_t **ret, struct fail *f);

struct json_limits {
	size_t count; /* entries */
	size_t key;   /* bytes of one key; ignored for lists */
	size_t value; /* bytes of one value */
	size_t total; /* bytes of all keys and values */
};
/* An object whose values are all strings; keys are not empty. Walk it with json_object_foreach. */
int json_get_str_map(const json_t *o, const char *key, enum json_need need, struct json_limits max,
		     json_t **ret, struct fail *f);
/* An array whose items are all strings. */
int json_get_str_list(const json_t *o, const char *key, enum json_need need, struct json_limits max,
		      json_t **ret, struct fail *f);

/* The text of j, compact, for sending; NULL when it does not fit max_bytes. The caller frees it. */
char *json_print(const json_t *j, size_t max_bytes, size_t *ret_n);

#endif
