/* The prefilter's table: what passes, what ends a session, what is slowed down; and that it does
 * not matter in which pieces bytes arrive. */
#include "net/h2_prefilter.h"

#include "base/clock.h"
#include "base/test.h"

#include <errno.h>

#define START_NS (1000 * NS_PER_S)

struct frame {
	uint32_t length;
	uint8_t type;
};

static size_t frame_print(uint8_t *p, struct frame f)
{
	memset(p, 0, FRAME_HEAD + f.length);
	p[0] = (uint8_t)(f.length >> 16);
	p[1] = (uint8_t)(f.length >> 8);
	p[2] = (uint8_t)f.length;
	p[3] = f.type;
	return FRAME_HEAD + f.length;
}

static uint8_t room[FRAME_HEAD + 0x20000];

/* Sends n such frames at one moment; the result of the last, and how many went through. */
static int send_frames(struct h2_prefilter *f, struct frame frame, size_t n, uint64_t now_ns,
		       size_t *ret_passed)
{
	size_t size = frame_print(room, frame);
	size_t used = 0;

	*ret_passed = 0;
	for (size_t i = 0; i < n; i++) {
		int r = h2_prefilter_step(f, room, size, now_ns, &used);

		if (r < 0)
			return r;
		EXPECT_EQ("all of it", used, size);
		++*ret_passed;
	}
	return 0;
}

static const struct {
	const char *says;
	struct frame frame;
	size_t n;
	int want;
	size_t passed;
} cases[] = {
	{"DATA", {0, 0}, 1, 0, 1},
	{"HEADERS", {100, 1}, 1, 0, 1},
	{"PRIORITY", {5, 2}, 1, -EPROTO, 0},
	{"PUSH_PROMISE", {4, 5}, 1, -EPROTO, 0},
	{"CONTINUATION", {1, 9}, 1, -EPROTO, 0},
	{"an unknown type", {0, 10}, 1, -EPROTO, 0},
	{"the last type", {0, 255}, 1, -EPROTO, 0},
	{"the longest frame", {PREFILTER_FRAME_MAX, 0}, 1, 0, 1},
	{"one byte more", {PREFILTER_FRAME_MAX + 1, 0}, 1, -EPROTO, 0},
	{"large DATA is free", {PREFILTER_SMALL, 0}, 100000, 0, 100000},
	{"small DATA up to the burst",
	 {PREFILTER_SMALL - 1, 0},
	 PREFILTER_SMALL_BURST,
	 0,
	 PREFILTER_SMALL_BURST},
	{"one more waits",
	 {PREFILTER_SMALL - 1, 0},
	 PREFILTER_SMALL_BURST + 1,
	 -EAGAIN,
	 PREFILTER_SMALL_BURST},
	{"HEADERS cost by their length",
	 {64 * 99, 1},
	 PREFILTER_SMALL_BURST / 100,
	 0,
	 PREFILTER_SMALL_BURST / 100},
	{"and wait too",
	 {64 * 99, 1},
	 PREFILTER_SMALL_BURST / 100 + 1,
	 -EAGAIN,
	 PREFILTER_SMALL_BURST / 100},
	{"PING up to its burst", {8, 6}, 100, 0, 100},
	{"one more ends it", {8, 6}, 101, -EPROTO, 100},
	{"SETTINGS", {0, 4}, 32, 0, 32},
	{"one more", {0, 4}, 33, -EPROTO, 32},
	{"WINDOW_UPDATE", {4, 8}, 4000, 0, 4000},
	{"one more", {4, 8}, 4001, -EPROTO, 4000},
	{"RST_STREAM", {4, 3}, 2000, 0, 2000},
	{"one more", {4, 3}, 2001, -EPROTO, 2000},
};

static void test_cases(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct h2_prefilter f;
		size_t passed;

		h2_prefilter_init(&f, false, START_NS);
		EXPECT_EQ(cases[i].says,
			  send_frames(&f, cases[i].frame, cases[i].n, START_NS, &passed),
			  cases[i].want);
		EXPECT_EQ(cases[i].says, passed, cases[i].passed);
	}
}

static void test_refill(void)
{
	const struct frame small = {0, 0};
	struct h2_prefilter f;
	size_t passed;
	size_t used = 99;

	h2_prefilter_init(&f, false, START_NS);
	(void)send_frames(&f, small, PREFILTER_SMALL_BURST, START_NS, &passed);
	EXPECT_EQ("dry", h2_prefilter_step(&f, room, FRAME_HEAD, START_NS, &used), -EAGAIN);
	EXPECT_EQ("the head's last byte waits", used, FRAME_HEAD - 1);
	EXPECT_EQ("still", h2_prefilter_step(&f, room + used, 1, START_NS, &used), -EAGAIN);
	EXPECT_EQ("nothing more", used, 0);
	EXPECT_EQ("later it goes on",
		  h2_prefilter_step(&f, room + FRAME_HEAD - 1, 1,
				    START_NS + NS_PER_S / PREFILTER_SMALL_RATE, &used),
		  0);
	EXPECT_EQ("a second brings a second's worth",
		  send_frames(&f, small, PREFILTER_SMALL_RATE + 1, START_NS + NS_PER_S, &passed),
		  -EAGAIN);
	EXPECT_EQ("and no more", passed, PREFILTER_SMALL_RATE - 1); /* one went before */
	h2_prefilter_init(&f, false, START_NS);
	EXPECT_EQ("a clock that goes back gives nothing",
		  send_frames(&f, small, PREFILTER_SMALL_BURST + 1, 0, &passed), -EAGAIN);
	h2_prefilter_init(&f, false, START_NS);
	EXPECT_EQ("nor does one that leaps, beyond the burst",
		  send_frames(&f, small, PREFILTER_SMALL_BURST + 1, UINT64_MAX, &passed), -EAGAIN);
}

static void test_magic(void)
{
	struct h2_prefilter f;
	uint8_t p[24 + FRAME_HEAD];
	size_t used;

	memset(p, 0xff, 24);
	(void)frame_print(p + 24, (struct frame){0, 4});
	h2_prefilter_init(&f, true, START_NS);
	EXPECT_EQ("a client's preface is not frames",
		  h2_prefilter_step(&f, p, sizeof p, START_NS, &used), 0);
	h2_prefilter_init(&f, false, START_NS);
	EXPECT_EQ("a server has none", h2_prefilter_step(&f, p, sizeof p, START_NS, &used),
		  -EPROTO);
}

static void test_data_count(void)
{
	struct h2_prefilter f;
	size_t size = frame_print(room, (struct frame){5000, 0});
	size_t used;

	h2_prefilter_init(&f, false, START_NS);
	EXPECT_EQ("half a frame", h2_prefilter_step(&f, room, 1000, START_NS, &used), 0);
	EXPECT_EQ("payload only", f.data_bytes, 1000 - FRAME_HEAD);
	EXPECT_EQ("the rest", h2_prefilter_step(&f, room + 1000, size - 1000, START_NS, &used), 0);
	EXPECT_EQ("exactly", f.data_bytes, 5000);
	size = frame_print(room, (struct frame){5000, 1});
	EXPECT_EQ("HEADERS", h2_prefilter_step(&f, room, size, START_NS, &used), 0);
	EXPECT_EQ("are not counted", f.data_bytes, 5000);
}

int main(void)
{
	test_cases();
	test_refill();
	test_magic();
	test_data_count();
	return test_done();
}
