/* A byte queue with a limit: appended at the back, consumed from the front. The limit is set at
 * creation and is what makes back-pressure visible: a full buffer refuses, it never grows past
 * it. */
#ifndef SPACE_BASE_BUF_H
#define SPACE_BASE_BUF_H

#include "base/defs.h"

struct buf {
	uint8_t *p;
	size_t off;
	size_t len;
	size_t cap;
	size_t max;
};

void buf_init(struct buf *b, size_t max_bytes); /* allocates nothing yet */
void buf_done(struct buf *b);                   /* leaves an empty buffer with max 0 */

/* Borrowed until the next call that takes a buf. */
static inline const uint8_t *buf_data(const struct buf *b)
{
	return b->p ? b->p + b->off : (const uint8_t *)"";
}
static inline size_t buf_len(const struct buf *b)
{
	return b->len;
}
static inline size_t buf_room(const struct buf *b)
{
	return b->max - b->len;
}

int buf_append(struct buf *b, const void *p, size_t n); /* all, or -ENOBUFS (-ENOMEM) and nothing */
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Room for direct reading: returns space for at least 1 and at most `want` bytes and sets *ret_n,
 * or NULL when full. buf_commit() then adds what was read. */
uint8_t *buf_space(struct buf *b, size_t want, size_t *ret_n);
void buf_commit(struct buf *b, size_t n);

void buf_consume(struct buf *b, size_t n); /* n <= len */
void buf_clear(struct buf *b);

#endif
