/* Records that mark where a session begins, found in a stream of anything; see wake.h. Pure.
 * Nothing here distinguishes a true record from bytes that look like one: the nonce does. */
#include "wire/wake.h"

#include "base/rd.h"
#include "base/wr.h"

#include <string.h>

#define MAGIC_SIZE 8

static const uint8_t wake_magic[MAGIC_SIZE] = {'S', 'P', 'A', 'C', 'E', 'W', 'K', '1'};
static const uint8_t preface_magic[MAGIC_SIZE] = {'S', 'P', 'A', 'C', 'E', 'P', 'F', '1'};
static_assert(MAGIC_SIZE + 8 + WAKE_NONCE == WAKE_SIZE, "wake record");
static_assert(MAGIC_SIZE + WAKE_NONCE == PREFACE_SIZE, "preface");

void wake_print(uint8_t dst[WAKE_SIZE], const struct wake *w)
{
	struct wr out = wr_of(dst, WAKE_SIZE);

	wr_bytes(&out, wake_magic, MAGIC_SIZE);
	wr_be64(&out, w->generation);
	wr_bytes(&out, w->nonce, WAKE_NONCE);
}

void preface_print(uint8_t dst[PREFACE_SIZE], const uint8_t nonce[WAKE_NONCE])
{
	struct wr out = wr_of(dst, PREFACE_SIZE);

	wr_bytes(&out, preface_magic, MAGIC_SIZE);
	wr_bytes(&out, nonce, WAKE_NONCE);
}

void wake_scan_init(struct wake_scan *s)
{
	*s = (struct wake_scan){0};
}

/* Invariant of a scan: got[0..n) begins like a wake. Drops bytes from the front until that is so,
 * so a record that began inside another (one that was cut off, say) is still found. */
static void wake_realign(struct wake_scan *s)
{
	while (s->n > 0 && memcmp(s->got, wake_magic, size_min(s->n, MAGIC_SIZE)) != 0) {
		s->n--;
		memmove(s->got, s->got + 1, s->n);
	}
}

bool wake_scan_step(struct wake_scan *s, const uint8_t *p, size_t n, size_t *ret_used,
		    struct wake *ret)
{
	struct rd in;

	for (size_t i = 0; i < n; i++) {
		s->got[s->n++] = p[i];
		if (s->n <= MAGIC_SIZE)
			wake_realign(s);
		if (s->n < WAKE_SIZE)
			continue;
		in = rd_of(s->got + MAGIC_SIZE, WAKE_SIZE - MAGIC_SIZE);
		ret->generation = rd_be64(&in);
		memcpy(ret->nonce, in.p, WAKE_NONCE);
		s->n--;
		memmove(s->got, s->got + 1, s->n);
		wake_realign(s);
		*ret_used = i + 1;
		return true;
	}
	*ret_used = n;
	return false;
}

void preface_scan_init(struct preface_scan *s, const uint8_t nonce[WAKE_NONCE])
{
	*s = (struct preface_scan){0};
	preface_print(s->want, nonce);
}

/* Is the end of (want[0..n), b) of length k the beginning of want? */
static bool preface_overlaps(const struct preface_scan *s, uint8_t b, size_t k)
{
	return s->want[k - 1] == b && memcmp(s->want, s->want + (s->n - (k - 1)), k - 1) == 0;
}

bool preface_scan_step(struct preface_scan *s, const uint8_t *p, size_t n, size_t *ret_used)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = s->n + 1;

		while (k > 0 && !preface_overlaps(s, p[i], k))
			k--;
		s->n = k;
		if (k == PREFACE_SIZE) {
			s->n = 0;
			*ret_used = i + 1;
			return true;
		}
	}
	*ret_used = n;
	return false;
}
