/* Envelopes of Connect streams; see envelope.h. Pure; holds no payload. */
#include "wire/envelope.h"

#include "base/rd.h"
#include "base/wr.h"

#include <errno.h>
#include <string.h>

void envelope_head_print(uint8_t dst[ENVELOPE_HEAD], uint8_t flags, uint32_t n)
{
	struct wr out = wr_of(dst, ENVELOPE_HEAD);

	wr_u8(&out, flags);
	wr_be32(&out, n);
}

void envelope_init(struct envelope *e, uint32_t max_payload_bytes)
{
	*e = (struct envelope){.max = max_payload_bytes};
}

bool envelope_is_between(const struct envelope *e)
{
	return e->head_n == 0 && !e->is_bad;
}

/* The head is complete: what may it say? */
static bool head_take(struct envelope *e)
{
	struct rd in = rd_of(e->head, ENVELOPE_HEAD);

	e->flags = rd_u8(&in);
	e->left = rd_be32(&in);
	return (e->flags == 0 || e->flags == ENVELOPE_END) && e->left <= e->max;
}

static enum envelope_step broken(struct envelope *e)
{
	e->is_bad = true;
	return ENVELOPE_BROKEN;
}

enum envelope_step envelope_step(struct envelope *e, const uint8_t *p, size_t n, size_t *ret_used,
				 const uint8_t **ret_data, size_t *ret_data_n)
{
	size_t used = 0;

	*ret_used = 0;
	*ret_data = p;
	*ret_data_n = 0;
	if (e->is_bad || (e->is_over && n > 0))
		return broken(e);
	if (e->head_n < ENVELOPE_HEAD) {
		used = size_min(n, ENVELOPE_HEAD - e->head_n);
		if (used > 0)
			memcpy(e->head + e->head_n, p, used);
		e->head_n += used;
		*ret_used = used;
		if (e->head_n < ENVELOPE_HEAD)
			return ENVELOPE_MORE;
		if (!head_take(e))
			return broken(e);
	}
	if (e->left == 0) {
		e->head_n = 0;
		e->is_over = e->flags == ENVELOPE_END;
		return ENVELOPE_WHOLE;
	}
	if (used == n)
		return ENVELOPE_MORE;
	*ret_data = p + used;
	*ret_data_n = size_min(n - used, e->left);
	e->left -= (uint32_t)*ret_data_n;
	*ret_used = used + *ret_data_n;
	return ENVELOPE_PAYLOAD;
}

int envelope_single(const uint8_t *p, size_t n, uint32_t max, const uint8_t **ret, size_t *ret_n)
{
	struct rd in = rd_of(p, n);
	uint8_t flags = rd_u8(&in);
	uint32_t len = rd_be32(&in);

	if (in.bad || flags != 0)
		return -EBADMSG;
	if (len > max)
		return -EMSGSIZE;
	if (rd_left(&in) != len)
		return -EBADMSG;
	*ret = in.p;
	*ret_n = len;
	return 0;
}
