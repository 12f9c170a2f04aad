/* The query of a sandbox list (E2B's encoding). Pure. A failure's text is fit for the client. */
#ifndef SPACE_SPACED_QUERY_H
#define SPACE_SPACED_QUERY_H

#include "base/fail.h"

#define QUERY_MAX         (16u * 1024)
#define QUERY_PAIRS_MAX   64u
#define QUERY_FILTERS_MAX 64u
#define LIST_LIMIT_MAX    100u
#define LIST_TOKEN_MAX    256u

/* Undoes %XX, and '+' as a blank. -EINVAL: a broken escape or a NUL. dst needs n + 1 bytes. */
int url_decode(char *dst, const char *p, size_t n);

/* The value of the only parameter of that name, decoded once; *ret NULL: absent. Caller frees.
 * -EINVAL: given twice, or broken. */
int query_get(const char *query, size_t n, const char *name, char **ret);

struct list_filter {
	char *key;
	char *value;
};
struct list_query {
	size_t n_filters; /* all of them must hold */
	struct list_filter filter[QUERY_FILTERS_MAX];
	bool running; /* which states */
	bool paused;
	uint32_t limit;
	/* Where the page before ended: its last entry's start and id; has_after false: the first
	 * page. */
	bool has_after;
	uint64_t after_started_ns;
	char after_id[32];
	bool ascending;
	char *template_name; /* or NULL */
	uint64_t started_after_ns;
};
void list_query_done(struct list_query *q);

/* query: what stands after '?', may be empty. */
int list_query_parse(const char *query, size_t n, struct list_query *ret, struct fail *f);

#define LIST_TOKEN_SIZE 64
void list_token_print(char ret[LIST_TOKEN_SIZE], uint64_t started_ns, const char *id);

#endif
