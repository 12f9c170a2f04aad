/* See h2_prefilter.h. */
#include "net/h2_prefilter.h"

#include "base/clock.h"

#define MAGIC_SIZE 24u /* "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; nghttp2 checks what it says */

/* RFC 9113 §6 */
enum frame_type {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS = 4,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW_UPDATE = 8,
};

static void bucket_init(struct h2_bucket *b, uint64_t burst, uint64_t now_ns)
{
	b->tokens = burst;
	b->last_ns = now_ns;
}

static bool bucket_take(struct h2_bucket *b, uint64_t cost, uint64_t burst, uint64_t per_s,
			uint64_t now_ns)
{
	uint64_t passed = now_ns > b->last_ns ? now_ns - b->last_ns : 0;
	uint64_t gain = passed >= 8 * NS_PER_S ? burst : passed / 1000 * per_s / 1000000;

	if (gain) { /* else the fraction stays in last_ns */
		b->tokens = gain > burst - b->tokens ? burst : b->tokens + gain;
		b->last_ns = now_ns;
	}
	if (b->tokens < cost)
		return false;
	b->tokens -= cost;
	return true;
}

void h2_prefilter_init(struct h2_prefilter *f, bool peer_is_client, uint64_t now_ns)
{
	*f = (struct h2_prefilter){.magic = peer_is_client ? MAGIC_SIZE : 0};
	bucket_init(&f->small, H2_SMALL_BURST, now_ns);
	bucket_init(&f->control, H2_CONTROL_BURST, now_ns);
	bucket_init(&f->dead, H2_DEAD_BURST, now_ns);
}

static enum h2_verdict judge(struct h2_prefilter *f, const uint8_t *head, uint64_t now_ns,
			     bool (*is_live)(void *arg, uint32_t id), void *arg)
{
	uint32_t n = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
	uint32_t id = ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
		       head[8]) &
		      0x7fffffffu;

	if (n > H2_FRAME_MAX)
		return H2_BROKEN;
	switch (head[3]) {
	case FRAME_DATA:
		if (!is_live(arg, id) &&
		    !bucket_take(&f->dead, H2_FRAME_HEAD + n, H2_DEAD_BURST, H2_DEAD_PER_S, now_ns))
			return H2_BROKEN;
		break;
	case FRAME_HEADERS:
		break;
	case FRAME_RST_STREAM:
	case FRAME_SETTINGS:
	case FRAME_PING:
	case FRAME_GOAWAY:
	case FRAME_WINDOW_UPDATE:
		return bucket_take(&f->control, 1, H2_CONTROL_BURST, H2_CONTROL_PER_S, now_ns)
			       ? H2_PASS
			       : H2_BROKEN;
	default: /* PRIORITY, PUSH_PROMISE, CONTINUATION, unknown: no honest peer of ours sends them */
		return H2_BROKEN;
	}
	if (n < H2_SMALL_FRAME &&
	    !bucket_take(&f->small, 1, H2_SMALL_BURST, H2_SMALL_PER_S, now_ns))
		return H2_THROTTLE;
	return H2_PASS;
}

enum h2_verdict h2_prefilter_step(struct h2_prefilter *f, const uint8_t *p, size_t n,
				  uint64_t now_ns, bool (*is_live)(void *arg, uint32_t id),
				  void *arg, size_t *ret_n)
{
	size_t used = 0;
	enum h2_verdict v;

	if (f->magic) {
		*ret_n = size_min(n, f->magic);
		f->magic -= (uint32_t)*ret_n;
		return H2_PASS;
	}
	if (!f->left) {
		used = size_min(n, H2_FRAME_HEAD - f->head_n);
		memcpy(f->head + f->head_n, p, used);
		if (f->head_n + used < H2_FRAME_HEAD) {
			f->head_n += used;
			*ret_n = used;
			return H2_PASS;
		}
		v = judge(f, f->head, now_ns, is_live, arg);
		if (v != H2_PASS)
			return v; /* head_n is as before: the same bytes may come again */
		f->head_n = 0;
		f->left = (uint32_t)f->head[0] << 16 | (uint32_t)f->head[1] << 8 | f->head[2];
	}
	*ret_n = used + size_min(n - used, f->left);
	f->left -= (uint32_t)(*ret_n - used);
	return H2_PASS;
}
