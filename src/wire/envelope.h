/* The envelopes of the Connect protocol's streams: 1 flag byte, be32 length, payload. The last one
 * of an answer has ENVELOPE_END. Pure; compressed envelopes are refused, we never offer any. */
#ifndef SPACE_WIRE_ENVELOPE_H
#define SPACE_WIRE_ENVELOPE_H

#include "base/defs.h"

#define ENVELOPE_HEAD        5
#define ENVELOPE_PAYLOAD_MAX (4u * 1024 * 1024) /* the usual limit of a reader */
#define ENVELOPE_END         0x02

/* The head of a payload of n bytes. */
void envelope_head_print(uint8_t dst[ENVELOPE_HEAD], uint8_t flags, uint32_t n);

/* Reads a stream of envelopes without holding a payload: slices are given as they come. */
struct envelope {
	uint8_t head[ENVELOPE_HEAD];
	size_t head_n;
	uint32_t max;
	uint32_t left; /* of the payload */
	uint8_t flags; /* of the envelope in hand; valid once head_n == ENVELOPE_HEAD */
	bool is_over;  /* the end envelope is complete: not a byte may follow */
	bool is_bad;
};

enum envelope_step {
	ENVELOPE_MORE,    /* all of p was read, the envelope is not whole */
	ENVELOPE_PAYLOAD, /* *ret_data, *ret_data_n (> 0): a slice of p, more may follow */
	ENVELOPE_WHOLE,   /* the envelope is complete, its flags are e->flags */
	ENVELOPE_BROKEN,  /* unknown flags, over max, or bytes after the end: for good */
};

void envelope_init(struct envelope *e, uint32_t max_payload_bytes);
/* Consumes *ret_used bytes from p. Call again with the rest (also with n == 0, for an envelope may
 * be empty) until ENVELOPE_MORE. */
enum envelope_step envelope_step(struct envelope *e, const uint8_t *p, size_t n, size_t *ret_used,
				 const uint8_t **ret_data, size_t *ret_data_n);
/* Between two envelopes: the only place where a stream may end. */
bool envelope_is_between(const struct envelope *e);

/* A body that must be exactly one envelope without flags (the request of a server stream): its
 * payload, borrowed. -EBADMSG, -EMSGSIZE (payload over max). */
int envelope_single(const uint8_t *p, size_t n, uint32_t max, const uint8_t **ret, size_t *ret_n);

#endif
