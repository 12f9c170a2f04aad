/* Looks at the frames of a hostile peer before nghttp2 does: which types, how long, how many. What
 * nghttp2 1.52 does not bound by itself is bounded here. Pure: the clock is an argument.
 *
 *   ends the session: a type that our own programs never send (PRIORITY, PUSH_PROMISE,
 *                     CONTINUATION, unknown ones), a frame over PREFILTER_FRAME_MAX, too many
 *                     PING, SETTINGS, WINDOW_UPDATE or RST_STREAM
 *   throttles:        small frames over PREFILTER_SMALL_RATE a second; the caller stops reading
 * A large DATA frame costs nothing: flow control bounds it, and the caller counts what reached no
 * stream against data_bytes. */
#ifndef SPACE_NET_H2_PREFILTER_H
#define SPACE_NET_H2_PREFILTER_H

#include "base/defs.h"

#define PREFILTER_FRAME_MAX   16384u /* RFC 9113 §6.5.2: what we never raise */
#define PREFILTER_SMALL       1024u  /* DATA from this length on is free */
#define PREFILTER_FIELDS      64u    /* bytes of HEADERS that cost one token more */
#define PREFILTER_SMALL_BURST 8000u
#define PREFILTER_SMALL_RATE  8000u /* a second */

/* Tokens are time: a bucket fills by the time that passes and a frame costs a second / rate. */
struct bucket {
	uint64_t credit_ns;
	uint64_t cost_ns;
	uint64_t cap_ns;
};

enum prefilter_bucket {
	BUCKET_SMALL,
	BUCKET_RESET,
	BUCKET_SETTINGS,
	BUCKET_PING,
	BUCKET_WINDOW,
	PREFILTER_BUCKETS
};

#define FRAME_HEAD 9
struct h2_prefilter {
	size_t magic_left; /* of a client's connection preface */
	size_t head_n;
	uint8_t head[FRAME_HEAD];
	uint32_t left; /* of the payload of the frame in hand */
	bool is_data;  /* of that frame */
	uint64_t at_ns;
	struct bucket bucket[PREFILTER_BUCKETS];
	uint64_t data_bytes; /* payload of DATA let through */
};

void h2_prefilter_init(struct h2_prefilter *f, bool has_magic, uint64_t now_ns);

/* How much of p may go on: *ret_used. 0: all of it. -EAGAIN: the rest must wait, about
 * PREFILTER_WAIT_MS. -EPROTO: end the session; nothing of p goes on. */
#define PREFILTER_WAIT_MS 5u
int h2_prefilter_step(struct h2_prefilter *f, const uint8_t *p, size_t n, uint64_t now_ns,
		      size_t *ret_used);

#endif
