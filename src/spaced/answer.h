/* Answers of the API: JSON, errors always {"code":N,"message":"..."}. */
#ifndef SPACE_SPACED_ANSWER_H
#define SPACE_SPACED_ANSWER_H

#include "wire/json.h"

struct http_exchange;

#define ANSWER_MAX (8u * 1024 * 1024)

void answer_json(struct http_exchange *x, unsigned status, const json_t *o); /* borrows o */
void answer_error(struct http_exchange *x, unsigned status, const char *message);
/* With Retry-After: whole seconds, else clients do not try again. */
void answer_refusal(struct http_exchange *x, unsigned status, unsigned retry_after_s,
		    const char *message);
void answer_empty(struct http_exchange *x, unsigned status);
void answer_text(struct http_exchange *x, const char *text, size_t n);

#endif
