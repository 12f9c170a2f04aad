/* See h2_prefilter.h. */
#include "net/h2_prefilter.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define CLIENT_MAGIC 24 /* RFC 9113 §3.4 */

enum frame_type {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS = 4,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW_UPDATE = 8,
};

/* Burst and rate a second. Our own peer sends a WINDOW_UPDATE for every 128 KiB it took, a
 * RST_STREAM for a stream at most, one SETTINGS and its acknowledgement, and no PING. */
static const struct {
	uint64_t burst;
	uint64_t rate;
} limits[] = {
	[BUCKET_SMALL] = {PREFILTER_SMALL_BURST, PREFILTER_SMALL_RATE},
	[BUCKET_RESET] = {2000, 1000},
	[BUCKET_SETTINGS] = {32, 1},
	[BUCKET_PING] = {100, 10},
	[BUCKET_WINDOW] = {4000, 4000},
};
static_assert(ARRAY_LEN(limits) == PREFILTER_BUCKETS, "limits for every bucket");

void h2_prefilter_init(struct h2_prefilter *f, bool has_magic, uint64_t now_ns)
{
	*f = (struct h2_prefilter){.magic_left = has_magic ? CLIENT_MAGIC : 0, .at_ns = now_ns};
	for (size_t i = 0; i < PREFILTER_BUCKETS; i++) {
		f->bucket[i].cost_ns = NS_PER_S / limits[i].rate;
		f->bucket[i].cap_ns = f->bucket[i].cost_ns * limits[i].burst;
		f->bucket[i].credit_ns = f->bucket[i].cap_ns;
	}
}

static void refill(struct h2_prefilter *f, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > f->at_ns ? now_ns - f->at_ns : 0;

	f->at_ns += passed_ns;
	for (size_t i = 0; i < PREFILTER_BUCKETS; i++) {
		struct bucket *b = &f->bucket[i];

		b->credit_ns += u64_min(passed_ns, b->cap_ns - b->credit_ns);
	}
}

static bool bucket_take(struct bucket *b, uint64_t tokens)
{
	if (b->credit_ns < b->cost_ns * tokens)
		return false;
	b->credit_ns -= b->cost_ns * tokens;
	return true;
}

/* What a frame costs of BUCKET_SMALL. A byte of HEADERS can stand for a whole field. */
static uint64_t frame_cost(uint8_t type, uint32_t length)
{
	if (type == FRAME_HEADERS)
		return 1 + length / PREFILTER_FIELDS;
	return type == FRAME_DATA && length >= PREFILTER_SMALL ? 0 : 1;
}

/* The bucket whose end is the session's, or PREFILTER_BUCKETS; -EPROTO: no such frame is
 * allowed. */
static int type_bucket(uint8_t type)
{
	switch (type) {
	case FRAME_DATA:
	case FRAME_HEADERS:
	case FRAME_GOAWAY:
		return PREFILTER_BUCKETS;
	case FRAME_RST_STREAM:
		return BUCKET_RESET;
	case FRAME_SETTINGS:
		return BUCKET_SETTINGS;
	case FRAME_PING:
		return BUCKET_PING;
	case FRAME_WINDOW_UPDATE:
		return BUCKET_WINDOW;
	default:
		return -EPROTO;
	}
}

/* Judges the frame whose head is complete. */
static int frame_judge(struct h2_prefilter *f)
{
	uint32_t length = (uint32_t)f->head[0] << 16 | (uint32_t)f->head[1] << 8 | f->head[2];
	uint8_t type = f->head[3];
	int bucket = type_bucket(type);

	if (bucket < 0 || length > PREFILTER_FRAME_MAX)
		return -EPROTO;
	if (!bucket_take(&f->bucket[BUCKET_SMALL], frame_cost(type, length)))
		return -EAGAIN;
	if (bucket < PREFILTER_BUCKETS && !bucket_take(&f->bucket[bucket], 1))
		return -EPROTO;
	f->left = length;
	f->is_data = type == FRAME_DATA;
	return 0;
}

int h2_prefilter_step(struct h2_prefilter *f, const uint8_t *p, size_t n, uint64_t now_ns,
		      size_t *ret_used)
{
	size_t at = size_min(n, f->magic_left);

	f->magic_left -= at;
	refill(f, now_ns);
	while (at < n) {
		size_t skip = size_min(n - at, f->left);
		int r;

		at += skip;
		f->left -= (uint32_t)skip;
		f->data_bytes += f->is_data ? skip : 0;
		if (at == n)
			break;
		f->head[f->head_n++] = p[at++];
		if (f->head_n < FRAME_HEAD)
			continue;
		r = frame_judge(f);
		if (r < 0) { /* the head's last byte is held back, and the frame with it */
			f->head_n--;
			*ret_used = at - 1;
			return r;
		}
		f->head_n = 0;
	}
	*ret_used = n;
	return 0;
}
