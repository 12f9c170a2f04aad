/* The output ring against everything ever written. Each step is three bytes: what, and how much.
 * Properties: a reader sees exactly the bytes and streams at its sequence numbers; one that is
 * given room loses nothing; the budget adds up. */
#include "base/fuzz.h"

#include "init/limits.h"
#include "init/ring.h"

#define MODEL_MAX  (4u * 1024 * 1024)
#define BUDGET_MAX 100000u

static uint8_t model[MODEL_MAX];
static uint8_t tags[MODEL_MAX];
static size_t model_n;

static void write_both(struct ring *r, enum ring_tag tag, size_t n)
{
	n = size_min(n, MODEL_MAX - model_n);
	for (size_t i = 0; i < n; i++) {
		model[model_n + i] = (uint8_t)((model_n + i) * 2654435761u >> 13);
		tags[model_n + i] = (uint8_t)tag;
	}
	ring_write(r, tag, model + model_n, n);
	model_n += n;
}

static void read_same(const struct ring *r, struct ring_cursor *c, size_t max)
{
	while (max) {
		enum ring_tag tag;
		const uint8_t *p;
		size_t n = size_min(ring_peek(r, c, &tag, &p), max);

		assert(n || c->seq == model_n);
		if (n == 0)
			return;
		assert(memcmp(p, model + c->seq, n) == 0);
		assert(tags[c->seq] == tag && tags[c->seq + n - 1] == tag);
		ring_skip(c, n);
		max -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget b;
	struct ring r;
	struct ring_cursor kept = {0};
	struct ring_cursor other = {0};

	model_n = 0;
	budget_init(&b, size % 2 ? BUDGET_MAX : RING_MAX);
	ring_init(&r, &b);
	for (; size >= 3; data += 3, size -= 3) {
		size_t n = (size_t)(data[1] << 8 | data[2]) * (1u + (data[0] >> 6));
		bool was_overtaken = kept.seq < r.first_seq;

		switch (data[0] % 8) {
		case 0:
		case 1:
		case 2: /* within what the first reader has not seen */
			write_both(&r, (enum ring_tag)(data[0] % 3),
				   size_min(n, ring_room(&r, &kept)));
			assert(was_overtaken || r.first_seq <= kept.seq);
			break;
		case 3: /* over it */
			write_both(&r, RING_STDERR, n);
			break;
		case 4:
			read_same(&r, &kept, n);
			break;
		case 5:
			read_same(&r, &other, n);
			break;
		case 6:
			other = data[1] & 1 ? ring_newest(&r) : ring_seek(&r, n);
			break;
		default:
			ring_trim(&r);
			break;
		}
		assert(r.next_seq == model_n && r.first_seq <= r.next_seq && r.cap <= RING_MAX);
	}
	ring_done(&r);
	assert(b.used == 0);
	return 0;
}
