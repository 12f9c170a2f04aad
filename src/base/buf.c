/* The bounded byte queue; see buf.h. Storage grows by doubling up to the limit, and a large one is
 * given back as soon as it is empty, so that an idle connection costs little. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 512u
#define BUF_KEEP  (16u * 1024) /* an empty buffer holds at most this */

void buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

/* Makes n (<= room) bytes behind the content writable. */
static int buf_reserve(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : size_min(BUF_FIRST, b->max);
	uint8_t *p;

	if (b->cap - b->off - b->len >= n)
		return 0;
	if (b->off > 0 && b->cap - b->len >= n) {
		memmove(b->p, b->p + b->off, b->len);
		b->off = 0;
		return 0;
	}
	while (cap - b->len < n) /* ends: n <= max - len, and cap stops at max */
		cap = cap > b->max / 2 ? b->max : cap * 2;
	p = malloc(cap);
	if (!p)
		return -ENOMEM;
	if (b->len > 0)
		memcpy(p, b->p + b->off, b->len);
	free(b->p);
	b->p = p;
	b->off = 0;
	b->cap = cap;
	return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int r;

	if (n > buf_room(b))
		return -ENOBUFS;
	if (n == 0)
		return 0;
	r = buf_reserve(b, n);
	if (r < 0)
		return r;
	memcpy(b->p + b->off + b->len, p, n);
	b->len += n;
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	char small[512];
	char *text = NULL;
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n < sizeof small)
		return buf_append(b, small, (size_t)n);
	if ((size_t)n > buf_room(b))
		return -ENOBUFS;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	r = buf_append(b, text, (size_t)n);
	free(text);
	return r;
}

uint8_t *buf_space(struct buf *b, size_t want, size_t *ret_n)
{
	size_t n = size_min(want, buf_room(b));

	if (n == 0 || buf_reserve(b, n) < 0)
		return NULL;
	*ret_n = n;
	return b->p + b->off + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->off - b->len && n <= buf_room(b));
	b->len += n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	b->off += n;
	b->len -= n;
	if (b->len > 0)
		return;
	b->off = 0;
	if (b->cap > BUF_KEEP) {
		free(b->p);
		b->p = NULL;
		b->cap = 0;
	}
}

void buf_clear(struct buf *b)
{
	buf_consume(b, b->len);
}
