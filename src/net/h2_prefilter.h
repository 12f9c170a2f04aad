/* Judges HTTP/2 frames of a hostile peer by their 9-byte heads, before nghttp2 sees them
 * (RFC 9113 §4.1). Pure: the caller gives the time.
 *
 * nghttp2 bounds PING, SETTINGS, CONTINUATION and rapid resets, but not floods of WINDOW_UPDATE,
 * PRIORITY, unknown types, small DATA, or DATA on streams that are gone. Here only the types of a
 * plain exchange pass; control frames over their rate and dead DATA over its budget end the
 * session; other small frames over their rate are slowed down by not reading on. */
#ifndef SPACE_NET_H2_PREFILTER_H
#define SPACE_NET_H2_PREFILTER_H

#include "base/defs.h"

#define H2_FRAME_HEAD    9
#define H2_FRAME_MAX     16384u
#define H2_SMALL_FRAME   512u /* payload bytes below which a frame costs a token */
#define H2_SMALL_BURST   8000u
#define H2_SMALL_PER_S   8000u
#define H2_CONTROL_BURST 6000u
#define H2_CONTROL_PER_S 4000u
#define H2_DEAD_BURST    (64ull * 1024 * 1024) /* bytes of DATA for streams that are gone */
#define H2_DEAD_PER_S    (8ull * 1024 * 1024)

struct h2_bucket {
	uint64_t tokens;
	uint64_t last_ns;
};

struct h2_prefilter {
	uint8_t head[H2_FRAME_HEAD];
	size_t head_n;
	uint32_t left;  /* payload bytes of the current frame still to come */
	uint32_t magic; /* bytes of the client's connection preface still to come */
	struct h2_bucket small;
	struct h2_bucket control;
	struct h2_bucket dead;
};

enum h2_verdict {
	H2_PASS,     /* give *ret_n bytes to nghttp2 */
	H2_THROTTLE, /* read no more for now; ask again later with the same bytes */
	H2_BROKEN,   /* end the session */
};

void h2_prefilter_init(struct h2_prefilter *f, bool peer_is_client, uint64_t now_ns);

/* Looks at the next piece of p: at most one frame, or the part of it that is there. is_live(arg, id)
 * says whether a stream exists. */
enum h2_verdict h2_prefilter_step(struct h2_prefilter *f, const uint8_t *p, size_t n,
				  uint64_t now_ns, bool (*is_live)(void *arg, uint32_t id),
				  void *arg, size_t *ret_n);

#endif
