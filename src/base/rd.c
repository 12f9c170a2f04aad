/* The reader of bytes we do not trust; see rd.h. Asks "does it fit in what is left", always. */
#include "base/rd.h"

#include <string.h>

struct rd rd_of(const void *p, size_t n)
{
	static const uint8_t nothing[1];
	const uint8_t *b = p ? p : nothing;

	assert(p || n == 0);
	return (struct rd){.p = b, .end = b + n};
}

size_t rd_left(const struct rd *r)
{
	return (size_t)(r->end - r->p);
}

static const uint8_t *rd_take(struct rd *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || rd_left(r) < n) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	return p;
}

static uint64_t rd_be(struct rd *r, size_t n)
{
	const uint8_t *p = rd_take(r, n);
	uint64_t v = 0;

	for (size_t i = 0; p && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

uint8_t rd_u8(struct rd *r)
{
	return (uint8_t)rd_be(r, 1);
}

uint16_t rd_be16(struct rd *r)
{
	return (uint16_t)rd_be(r, 2);
}

uint32_t rd_be32(struct rd *r)
{
	return (uint32_t)rd_be(r, 4);
}

uint64_t rd_be64(struct rd *r)
{
	return rd_be(r, 8);
}

struct rd rd_block(struct rd *r, size_t n)
{
	const uint8_t *p = rd_take(r, n);

	if (!p)
		return (struct rd){.p = r->p, .end = r->p, .bad = true};
	return (struct rd){.p = p, .end = p + n};
}

bool rd_end(const struct rd *r)
{
	return !r->bad && r->p == r->end;
}

void rd_str(struct rd *r, char *dst, size_t dst_size)
{
	size_t n = rd_be16(r);
	const uint8_t *p = rd_take(r, n);

	assert(dst_size > 0);
	dst[0] = '\0';
	if (!p)
		return;
	if (n > dst_size - 1 || memchr(p, 0, n)) {
		r->bad = true;
		return;
	}
	memcpy(dst, p, n);
	dst[n] = '\0';
}
