/* One small request to a space-daemon: a body out, a status and a bounded answer back, by a
 * deadline. For /space/init and for warming a template; clients' requests go through route.c. */
#ifndef SPACE_SPACED_ASK_H
#define SPACE_SPACED_ASK_H

#include "base/defs.h"

#define ASK_BODY_MAX   (200u * 1024) /* fits one H2_STREAM_QUEUE */
#define ASK_ANSWER_MAX (16u * 1024)  /* kept; what is longer is read over */

struct ask;
struct loop;

struct ask_spec {
	int dir; /* the folder of the socket */
	const char *socket;
	const char *path;
	const char *authority;
	const char *content_type;
	const char *token; /* X-Access-Token, or NULL */
	const void *body;  /* copied */
	size_t n;
	uint64_t deadline_ms;
};
struct ask_answer {
	int err; /* 0: status is an answer that came whole */
	unsigned status;
	const uint8_t *p;
	size_t n;
};

/* done comes exactly once, later, unless ask_free() came first. Frees itself after it. */
struct ask *ask_start(struct loop *l, const struct ask_spec *spec,
		      void (*done)(void *arg, const struct ask_answer *a), void *arg);
void ask_free(struct ask *a); /* NULL is fine */

#endif
