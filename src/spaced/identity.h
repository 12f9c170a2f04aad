/* Who a guest is: the body of POST /space/init, and sending it. A restored guest is the twin of
 * all others of its variant until it has taken this. */
#ifndef SPACE_SPACED_IDENTITY_H
#define SPACE_SPACED_IDENTITY_H

#include "spaced/ask.h"

#include <jansson.h>

#define IDENTITY_ENTROPY 64

struct identity {
	const char *id;
	const char *template_id;
	const char *hostname;
	uint64_t generation;
	json_t *env; /* borrowed; NULL: none */
};

/* The same with a given clock and randomness: what identity_send() sends. NULL: too long. */
char *identity_print(const struct identity *who, uint64_t realtime_ns,
		     const uint8_t entropy[IDENTITY_ENTROPY], const char *machine_id,
		     const char *boot_id, size_t *ret_n);

/* dir: the folder of platform.sock. done as ask_start's: 204 is the good answer. */
struct ask *identity_send(struct loop *l, int dir, const struct identity *who, uint64_t deadline_ms,
			  void (*done)(void *arg, const struct ask_answer *a), void *arg);

#endif
