/* What clients are shown: E2B's objects and our own, as JSON. Each result is the caller's. */
#ifndef SPACE_SPACED_VIEW_H
#define SPACE_SPACED_VIEW_H

#include "base/fail.h"
#include "spaced/query.h"
#include "spaced/sandbox.h"

#define ENVD_VERSION   "0.6.13" /* the protocol that we speak; clients choose by it */
#define CLIENT_ID      "space"
#define PAGE_BYTES_MAX (128u * 1024) /* a page ends there, or at its limit */

struct http_exchange;

json_t *view_sandbox(const struct sandbox *s); /* of create and connect: holds the access token */
json_t *view_detail(const struct sandbox *s);
/* One page; token is set when there is more. */
json_t *view_list(struct node *n, const struct list_query *q, char token[LIST_TOKEN_SIZE]);
json_t *view_templates(struct node *n, struct fail *f); /* NULL: f */
json_t *view_node(struct node *n);
json_t *view_ended(struct node *n);

/* 200 with X-Next-Token. */
void answer_page(struct http_exchange *x, const json_t *page, const char *token);

#endif
