/* A reader over bytes we do not trust. It cannot run past its end and failure is sticky: read
 * straight down, check `bad` (or rd_end()) once. It borrows the bytes; it owns nothing. */
#ifndef SPACE_BASE_RD_H
#define SPACE_BASE_RD_H

#include "base/defs.h"

struct rd {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

struct rd rd_of(const void *p, size_t n);
size_t rd_left(const struct rd *r);
uint8_t rd_u8(struct rd *r); /* 0 and bad past the end, as all of these */
uint16_t rd_be16(struct rd *r);
uint32_t rd_be32(struct rd *r);
uint64_t rd_be64(struct rd *r);
struct rd rd_block(struct rd *r, size_t n); /* a sub-reader over the next n bytes */
bool rd_end(const struct rd *r);            /* not bad, and nothing left */

/* A string field: be16 length, then bytes without NUL. Copies it with a NUL into dst.
 * Too long for dst, or a NUL inside: bad, and dst is "". */
void rd_str(struct rd *r, char *dst, size_t dst_size);

#endif
