/* Any query is refused or understood within its limits; what is understood is the same when asked
 * twice, and a token that we print is one that we read. */
#include "base/fuzz.h"
#include "spaced/query.h"

#include <string.h>

static void check_token(const struct list_query *q)
{
	char token[LIST_TOKEN_SIZE];
	char text[LIST_TOKEN_SIZE + 16] = "nextToken=";
	struct list_query again = {.limit = 0};
	struct fail f = {0};

	if (!q->has_after || strpbrk(q->after_id, "%+&=") || strlen(q->after_id) > 20)
		return;
	for (const char *c = q->after_id; *c; c++)
		if (*c < 0x21 || *c > 0x7e)
			return;
	list_token_print(token, q->after_started_ns, q->after_id);
	memcpy(text + strlen(text), token, strlen(token) + 1);
	assert(list_query_parse(text, strlen(text), &again, &f) == 0);
	assert(again.has_after && again.after_started_ns == q->after_started_ns);
	assert(strcmp(again.after_id, q->after_id) == 0);
	list_query_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct list_query q = {.limit = 0};
	struct list_query again = {.limit = 0};
	struct fail f = {0};

	if (list_query_parse((const char *)p, n, &q, &f) < 0) {
		assert(f.code < 0 && f.text[0]);
		assert(q.n_filters == 0 && !q.template_name && q.limit == 0);
		return 0;
	}
	assert(q.limit >= 1 && q.limit <= LIST_LIMIT_MAX);
	assert(q.n_filters <= QUERY_FILTERS_MAX);
	assert(list_query_parse((const char *)p, n, &again, &f) == 0);
	assert(again.n_filters == q.n_filters && again.limit == q.limit);
	for (size_t i = 0; i < q.n_filters; i++) {
		assert(strcmp(q.filter[i].key, again.filter[i].key) == 0);
		assert(strcmp(q.filter[i].value, again.filter[i].value) == 0);
	}
	check_token(&q);
	list_query_done(&again);
	list_query_done(&q);
	return 0;
}
