/* The output ring: see ring.h. Records lie one behind the other in a circular store:
 *
 *   be32: tag in the top 4 bits, length in the others, then the bytes
 *
 * Storage offsets count up for ever (64 bits) and are taken modulo `cap`; a record may wrap around
 * the end. A write to the same stream as the last record makes that record longer. */
#include "init/ring.h"

#include "base/alloc.h"
#include "init/limits.h"

#define HEAD    4
#define LEN_MAX 0x0fffffffu

/* Every ring may have this much whatever the budget says, so that no process ever stalls for
 * good. */
#define RING_MIN 4096u

static_assert(RING_MAX <= LEN_MAX, "a record's length fits its head");

void ring_init(struct ring *r, struct budget *b)
{
	*r = (struct ring){.budget = b};
}

static size_t charge(size_t cap)
{
	return cap > RING_MIN ? cap : 0;
}

/* The size the store can have when `want` bytes are asked for. */
static size_t reachable(const struct ring *r, size_t want)
{
	size_t left = r->budget->max - r->budget->used + charge(r->cap);
	size_t cap = r->cap ? r->cap : RING_MIN;

	while (cap < want && cap < RING_MAX && charge(size_min(2 * cap, RING_MAX)) <= left)
		cap = size_min(2 * cap, RING_MAX);
	return cap;
}

void ring_done(struct ring *r)
{
	if (r->budget)
		budget_give(r->budget, charge(r->cap));
	mem_drop(&r->p);
	*r = (struct ring){0};
}

static void copy_in(struct ring *r, uint64_t at, const uint8_t *p, size_t n)
{
	size_t i = (size_t)(at % r->cap);
	size_t k = size_min(n, r->cap - i);

	memcpy(r->p + i, p, k);
	if (n > k)
		memcpy(r->p, p + k, n - k);
}

static void head_write(struct ring *r, uint64_t at, enum ring_tag tag, size_t len)
{
	uint32_t v = (uint32_t)tag << 28 | (uint32_t)len;
	uint8_t h[HEAD] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	copy_in(r, at, h, HEAD);
}

static size_t head_read(const struct ring *r, uint64_t at, enum ring_tag *ret_tag)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < HEAD; i++)
		v = v << 8 | r->p[(at + i) % r->cap];
	*ret_tag = (enum ring_tag)(v >> 28);
	return v & LEN_MAX;
}

/* Moves what is stored to a store of `cap` bytes, which holds it. Offsets keep their meaning. */
static void ring_resize(struct ring *r, size_t cap)
{
	struct ring to = *r;

	budget_give(r->budget, charge(r->cap));
	if (!budget_take(r->budget, charge(cap)))
		abort(); /* reachable() asked, or it became smaller */
	to.p = cap ? xcalloc(cap, 1) : NULL;
	to.cap = cap;
	for (uint64_t at = r->first; at < r->next;) {
		size_t i = (size_t)(at % r->cap);
		size_t n = (size_t)u64_min(r->next - at, r->cap - i);

		copy_in(&to, at, r->p + i, n);
		at += n;
	}
	mem_drop(&r->p);
	*r = to;
}

void ring_trim(struct ring *r)
{
	size_t used = (size_t)(r->next - r->first);

	if (used < r->cap / 2)
		ring_resize(r, used);
}

/* Makes room for n more bytes of storage by dropping whole records, then part of the oldest. */
static void ring_drop(struct ring *r, size_t n)
{
	while (r->next - r->first + n > r->cap && r->first < r->next) {
		enum ring_tag tag;
		size_t len = head_read(r, r->first, &tag);
		size_t over = (size_t)(r->next - r->first) + n - r->cap;

		if (over < len) {
			/* The record loses its first bytes: its head moves up to what stays. */
			r->first += over;
			r->first_seq += over;
			if (r->last < r->first)
				r->last = r->first;
			head_write(r, r->first, tag, len - over);
			return;
		}
		r->first += HEAD + len;
		r->first_seq += len;
	}
}

/* Lengthens the newest record if it is of the same stream. */
static bool ring_extend(struct ring *r, enum ring_tag tag, const uint8_t *p, size_t n)
{
	enum ring_tag last_tag;
	size_t len;

	if (r->first == r->next)
		return false;
	(void)head_read(r, r->last, &last_tag);
	if (last_tag != tag)
		return false;
	ring_drop(r, n);
	if (r->first == r->next)
		return false;
	len = head_read(r, r->last, &last_tag);
	head_write(r, r->last, tag, len + n);
	copy_in(r, r->next, p, n);
	r->next += n;
	r->next_seq += n;
	return true;
}

static void ring_append(struct ring *r, enum ring_tag tag, const uint8_t *p, size_t n)
{
	ring_drop(r, HEAD + n);
	head_write(r, r->next, tag, n);
	r->last = r->next;
	copy_in(r, r->next + HEAD, p, n);
	r->next += HEAD + n;
	r->next_seq += n;
}

void ring_write(struct ring *r, enum ring_tag tag, const void *p, size_t n)
{
	const uint8_t *b = p;
	size_t want = (size_t)(r->next - r->first) + HEAD + n;

	if (n == 0)
		return;
	if (want > r->cap) {
		size_t cap = reachable(r, want);

		if (cap > r->cap)
			ring_resize(r, cap);
	}
	if (HEAD + n > r->cap) { /* only the end of it fits */
		size_t cut = HEAD + n - r->cap;

		r->first = r->next;
		r->next_seq += cut;
		r->first_seq = r->next_seq;
		b += cut;
		n -= cut;
	}
	if (!ring_extend(r, tag, b, n))
		ring_append(r, tag, b, n);
}

struct ring_cursor ring_newest(const struct ring *r)
{
	struct ring_cursor c = {.seq = r->next_seq, .at = r->next};
	enum ring_tag tag;

	if (r->first != r->next) { /* the end of the newest record, which may become longer */
		c.at = r->last;
		c.inside = head_read(r, r->last, &tag);
	}
	return c;
}

struct ring_cursor ring_seek(const struct ring *r, uint64_t seq)
{
	struct ring_cursor c = {.seq = r->first_seq, .at = r->first};

	if (seq >= r->next_seq)
		return ring_newest(r);
	while (c.seq < seq) {
		enum ring_tag tag;
		const uint8_t *p;
		size_t n = ring_peek(r, &c, &tag, &p);

		ring_skip(&c, (size_t)u64_min(n, seq - c.seq));
	}
	return c;
}

size_t ring_peek(const struct ring *r, struct ring_cursor *c, enum ring_tag *ret_tag,
		 const uint8_t **ret_p)
{
	size_t len;
	size_t i;

	if (c->seq < r->first_seq)
		*c = (struct ring_cursor){.seq = r->first_seq, .at = r->first};
	if (c->seq == r->next_seq)
		return 0;
	/* A record that lost its first bytes moved its head: this is the oldest one. */
	if (c->at < r->first) {
		c->inside = (size_t)(c->seq - r->first_seq);
		c->at = r->first;
	}
	len = head_read(r, c->at, ret_tag);
	if (c->inside == len) { /* read to its end, and it did not grow since */
		c->at += HEAD + len;
		c->inside = 0;
		len = head_read(r, c->at, ret_tag);
	}
	i = (size_t)((c->at + HEAD + c->inside) % r->cap);
	*ret_p = r->p + i;
	return size_min(len - c->inside, r->cap - i);
}

void ring_skip(struct ring_cursor *c, size_t n)
{
	c->inside += n;
	c->seq += n;
}

size_t ring_room(const struct ring *r, const struct ring_cursor *c)
{
	size_t cap = reachable(r, RING_MAX);
	uint64_t from = c->at + c->inside; /* its head would move up to here */
	size_t held =
		c->seq == r->next_seq ? 0 : (size_t)(r->next - (from < r->first ? r->first : from));

	return held + HEAD >= cap ? 0 : cap - HEAD - held;
}
