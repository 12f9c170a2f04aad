/* The platform's HTTP API as the commands use it: where the node is, its key, one call at a time
 * or several in the loop. Answers are hostile: bounded, parsed strictly, escaped by the printer.
 *
 * The node: $SPACE_URL with $SPACE_API_KEY, else the owner-only socket DATA/state/api.sock. */
#ifndef SPACE_CLI_API_H
#define SPACE_CLI_API_H

#include "base/fail.h"

#include <jansson.h>

struct api;
struct call;
struct cli;
struct loop;

#define API_TIMEOUT_MS        60000u
#define API_CREATE_TIMEOUT_MS 180000u /* the first use of a size boots a variant */
#define API_ANSWER_MAX        (4u * 1024 * 1024)
#define API_HEADERS_MAX       8

int api_open(const struct cli *c, struct api **ret, struct fail *f);
void api_close(struct api *a); /* NULL is fine */
struct loop *api_loop(const struct api *a);
const char *api_key(const struct api *a); /* NULL: not known here */

/* --- one call, waited for: the loop runs until its answer is there --- */

struct api_answer {
	unsigned status;
	json_t *json;         /* NULL: no body */
	char next_token[256]; /* X-Next-Token, or "" */
};
void api_answer_done(struct api_answer *r);

/* `body` may be NULL. An answer of 400 and above is a failure: its message, and -ENOENT for 404,
 * -EACCES 401, -EBUSY 429 and 503, -EREMOTEIO others. -ECONNREFUSED: no node there. */
int api_call(struct api *a, const char *method, const char *path, const json_t *body,
	     unsigned timeout_ms, struct api_answer *ret, struct fail *f);

/* A GET whose answer is text, at most API_ANSWER_MAX bytes of it. *ret has a NUL at its end; the
 * caller frees it. */
int api_text(struct api *a, const char *path, char **ret, size_t *ret_n, struct fail *f);

/* --- calls in the loop --- */

struct api_header {
	const char *name;
	const char *value;
};
struct call_spec {
	const char *method;
	const char *path;
	const struct api_header *headers;
	size_t n_headers;
	const void *body; /* copied */
	size_t body_n;
	unsigned timeout_ms; /* of the whole call; 0: none */
};
struct call_ops {
	void (*on_head)(void *arg, unsigned status);
	void (*on_data)(void *arg, const uint8_t *p, size_t n); /* held until call_consume() */
	/* Last, once, also after call_cancel(). 0: the answer is whole, else a negative errno. */
	void (*on_end)(void *arg, int err);
};
struct call *call_start(struct api *a, const struct call_spec *s, const struct call_ops *ops,
			void *arg);
void call_consume(struct call *c, size_t n);
void call_cancel(struct call *c);
void call_abandon(struct call *c); /* cancels, and no callback runs any more */

/* --- sandboxes --- */

/* A whole id, or a prefix that only one sandbox has. *ret: 64 bytes. -ENOENT, -EEXIST (several). */
#define API_ID_SIZE 64
bool api_id_valid(const char *id); /* fit to stand in a path */
int api_resolve(struct api *a, const char *id, char ret[API_ID_SIZE], struct fail *f);
/* All that the API lists. *ret is an array. */
int api_list(struct api *a, const char *query, json_t **ret, struct fail *f);
int api_kill(struct api *a, const char *id, struct fail *f);

#endif
