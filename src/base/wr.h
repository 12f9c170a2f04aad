/* The writer that mirrors rd.h: fills caller's storage, sticky `bad` when it does not fit. */
#ifndef SPACE_BASE_WR_H
#define SPACE_BASE_WR_H

#include "base/defs.h"

struct wr {
	uint8_t *start;
	uint8_t *p;
	uint8_t *end;
	bool bad;
};

struct wr wr_of(void *p, size_t n);
size_t wr_len(const struct wr *w);
void wr_u8(struct wr *w, uint8_t v);
void wr_be16(struct wr *w, uint16_t v);
void wr_be32(struct wr *w, uint32_t v);
void wr_be64(struct wr *w, uint64_t v);
void wr_bytes(struct wr *w, const void *p, size_t n);
void wr_str(struct wr *w, const char *s); /* be16 length + bytes; over 65535 bytes: bad */

#endif
