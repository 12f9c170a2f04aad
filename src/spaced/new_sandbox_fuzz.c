/* Any body is refused with a sentence, or understood within the limits that are promised. */
#include "base/fuzz.h"
#include "spaced/params.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define HOURS 24u

static void check(const struct new_sandbox *s)
{
	size_t len = strlen(s->template_name);
	char *env;
	size_t n = 0;

	assert(len >= 1 && len <= PARAMS_TEMPLATE_MAX);
	assert(s->timeout_s >= 1 && s->timeout_s <= HOURS * 3600);
	assert(json_is_object(s->metadata) && json_object_size(s->metadata) <= METADATA_COUNT_MAX);
	assert(json_is_object(s->env) && json_object_size(s->env) <= ENV_COUNT_MAX);
	env = json_print(s->env, ENV_PRINTED_MAX, &n);
	assert(env && utf8_valid((const uint8_t *)env, n));
	free(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	for (int v = API_V1; v <= API_V2; v++) {
		struct new_sandbox s = {.secure = false};
		struct fail f = {0};
		uint32_t seconds = 0;

		if (new_sandbox_parse(p, n, (enum api_version)v, HOURS, &s, &f) == 0) {
			check(&s);
			assert(v == API_V1 || s.secure);
		} else {
			assert(f.code < 0 && f.text[0] && !s.metadata && !s.env);
		}
		new_sandbox_done(&s);
		if (connect_parse(p, n, (enum api_version)v, HOURS, &seconds, &f) == 0)
			assert(seconds >= 1 && seconds <= HOURS * 3600);
		if (timeout_parse(p, n, HOURS, &seconds, &f) == 0)
			assert(seconds <= HOURS * 3600);
	}
	return 0;
}
