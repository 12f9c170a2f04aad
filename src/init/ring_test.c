/* ring.c against a plain model: everything ever written in one array, with its tags. */
#include "init/ring.h"

#include "base/alloc.h"
#include "base/test.h"
#include "init/limits.h"

#define MODEL_MAX (4u * 1024 * 1024)
#define STEPS_MAX 60000u

static struct {
	uint8_t *byte;
	uint8_t *tag;
	size_t n;
} model;

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % n;
}

static void write_both(struct ring *r, enum ring_tag tag, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		model.byte[model.n + i] = (uint8_t)random_below(256);
		model.tag[model.n + i] = (uint8_t)tag;
	}
	ring_write(r, tag, model.byte + model.n, n);
	model.n += n;
}

/* Reads up to `max` bytes; false on the first that differs from the model. */
static bool read_same(const struct ring *r, struct ring_cursor *c, size_t max)
{
	while (max) {
		enum ring_tag tag;
		const uint8_t *p;
		size_t n = size_min(ring_peek(r, c, &tag, &p), max);

		if (n == 0)
			return c->seq == r->next_seq;
		for (size_t i = 0; i < n; i++)
			if (p[i] != model.byte[c->seq + i] || model.tag[c->seq + i] != tag)
				return false;
		ring_skip(c, n);
		max -= n;
	}
	return true;
}

static void reset(struct ring *r, struct budget *b, size_t budget_bytes)
{
	model.n = 0;
	budget_init(b, budget_bytes);
	ring_init(r, b);
}

/* A reader that is always given room loses nothing; others jump to the oldest byte. */
static void random_walk(size_t budget_bytes, uint32_t write_max)
{
	struct budget b;
	struct ring r;
	struct ring_cursor kept = {0};
	struct ring_cursor late = {0};
	bool is_same = true;
	bool was_gapless = true;

	reset(&r, &b, budget_bytes);
	for (unsigned i = 0; i < STEPS_MAX && model.n < MODEL_MAX - write_max && is_same; i++) {
		size_t n = size_min(1 + random_below(write_max), ring_room(&r, &kept));
		uint64_t seq = kept.seq;

		if (n)
			write_both(&r, (enum ring_tag)random_below(2), n);
		was_gapless = was_gapless && kept.seq == seq && r.first_seq <= kept.seq;
		is_same = read_same(&r, &kept, random_below(2 * write_max + 2));
		if (random_below(64) == 0)
			is_same = is_same && read_same(&r, &late, random_below(write_max) + 1);
		if (random_below(512) == 0)
			late = ring_newest(&r);
		if (random_below(128) == 0)
			late = ring_seek(
				&r, r.first_seq +
					    random_below((uint32_t)(r.next_seq - r.first_seq) + 1));
	}
	EXPECT("every byte and tag as written", is_same);
	EXPECT("the protected reader lost nothing", was_gapless);
	EXPECT("the store stays below RING_MAX", r.cap <= RING_MAX);
	ring_trim(&r);
	late = ring_seek(&r, 0);
	EXPECT("the same after trimming", read_same(&r, &late, SIZE_MAX));
	ring_done(&r);
	EXPECT_EQ("the budget is whole again", b.used, 0);
}

static void positions(void)
{
	struct budget b;
	struct ring r;
	struct ring_cursor c;
	enum ring_tag tag;
	const uint8_t *p;

	reset(&r, &b, RING_MAX);
	c = ring_newest(&r);
	EXPECT_EQ("nothing yet", ring_peek(&r, &c, &tag, &p), 0);
	ring_write(&r, RING_STDOUT, "abc", 3);
	EXPECT_EQ("all of it", ring_peek(&r, &c, &tag, &p), 3);
	c = ring_newest(&r);
	ring_write(&r, RING_STDOUT, "def", 3);
	EXPECT_EQ("the newest cursor sees a record that grows", ring_peek(&r, &c, &tag, &p), 3);
	EXPECT("from there on", memcmp(p, "def", 3) == 0);
	c = ring_seek(&r, 5);
	EXPECT_EQ("into a record", ring_peek(&r, &c, &tag, &p), 1);
	c = ring_seek(&r, 77);
	EXPECT_EQ("past the end: the end", c.seq, 6);
	EXPECT_EQ("empty ring, full room", ring_room(&r, &c), RING_MAX - 4);
	ring_done(&r);
}

static void one_past(void)
{
	struct budget b;
	struct ring r;
	AUTO(mem_drop) uint8_t *big = xcalloc(RING_MAX + 1, 1);

	reset(&r, &b, RING_MAX);
	ring_write(&r, RING_STDERR, big, RING_MAX - 4);
	EXPECT_EQ("a full store", r.first_seq, 0);
	ring_write(&r, RING_STDERR, "x", 1);
	EXPECT_EQ("one byte more: the oldest is gone", r.first_seq, 1);
	ring_write(&r, RING_STDERR, big, RING_MAX + 1);
	EXPECT_EQ("more than the store: its end", r.first_seq, r.next_seq - (RING_MAX - 4));
	ring_done(&r);

	reset(&r, &b, 0);
	ring_write(&r, RING_STDOUT, big, RING_MAX);
	EXPECT("no budget: a small store all the same", r.next_seq - r.first_seq > 4000);
	ring_done(&r);
}

int main(void)
{
	model.byte = xcalloc(MODEL_MAX, 1);
	model.tag = xcalloc(MODEL_MAX, 1);
	positions();
	one_past();
	random_walk(RING_MAX, 3);
	random_walk(RING_MAX, 40);
	random_walk(RING_MAX, 5000);
	random_walk(RING_MAX, 400000);
	random_walk(20000, 300);
	random_walk(0, 9000);
	mem_drop(&model.byte);
	mem_drop(&model.tag);
	return test_done();
}
