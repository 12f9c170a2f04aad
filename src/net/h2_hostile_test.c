/* A peer that writes raw frames at full speed. Each attack must end the session, or be slowed down
 * to the rate of the prefilter, in bounded memory; an attack on one stream must cost only that
 * stream. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/test.h"
#include "net/h2.h"
#include "net/h2_internal.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define DEADLINE_MS 20000u
#define SENT_MAX    (64u * 1024 * 1024) /* nothing may take so much */
#define QUIET_MS    30u                 /* the peer takes nothing for so long: it throttles */
#define PIECE       65536u

enum outcome { ENDS, THROTTLES, LIVES };

struct attack;
struct scene {
	struct loop *loop;
	struct h2 *h2;
	int fd[2]; /* ours, the attacker's */
	struct watch *watch;
	struct timer *deadline;
	struct timer *quiet;
	const struct attack *attack;
	uint8_t piece[2 * PIECE];
	size_t piece_n, piece_off;
	uint32_t step; /* of the generator */
	uint64_t sent;
	unsigned requests, closed;
	uint32_t last_code;
	bool is_ended, is_quiet, is_late;
	int err;
	uint64_t began_ns;
};

struct attack {
	const char *says;
	bool is_server;                /* our side */
	void (*make)(struct scene *s); /* appends some frames; none: all was said */
	enum outcome want;
};

/* --- frames --- */

static uint8_t *put_head(struct scene *s, size_t length, uint8_t type, uint8_t flags, uint32_t id)
{
	uint8_t *p = s->piece + s->piece_n;

	assert(s->piece_n + FRAME_HEAD + length <= sizeof s->piece);
	p[0] = (uint8_t)(length >> 16);
	p[1] = (uint8_t)(length >> 8);
	p[2] = (uint8_t)length;
	p[3] = type;
	p[4] = flags;
	p[5] = (uint8_t)(id >> 24);
	p[6] = (uint8_t)(id >> 16);
	p[7] = (uint8_t)(id >> 8);
	p[8] = (uint8_t)id;
	memset(p + FRAME_HEAD, 0, length);
	s->piece_n += FRAME_HEAD + length;
	return p + FRAME_HEAD;
}

static void put(struct scene *s, uint8_t type, uint8_t flags, uint32_t id, const void *payload,
		size_t n)
{
	uint8_t *p = put_head(s, n, type, flags, id);

	if (n)
		memcpy(p, payload, n);
}

/* :method GET, :scheme http, :path /, :authority "a" */
static const uint8_t get_block[] = {0x82, 0x86, 0x84, 0x01, 0x01, 'a'};
#define STATUS_200 0x88

#define END_STREAM  1
#define END_HEADERS 4

static void make_window(struct scene *s)
{
	static const uint8_t one[4] = {0, 0, 0, 1};

	for (size_t i = 0; i < 1000; i++)
		put(s, 8, 0, 0, one, 4);
}

static void make_priority(struct scene *s)
{
	put_head(s, 5, 2, 0, 1);
}

static void make_unknown(struct scene *s)
{
	put_head(s, 5, 77, 0, 0);
}

static void make_ping(struct scene *s)
{
	for (size_t i = 0; i < 1000; i++)
		put_head(s, 8, 6, 0, 0);
}

static void make_settings(struct scene *s)
{
	for (size_t i = 0; i < 1000; i++)
		put_head(s, 0, 4, 0, 0);
}

/* Each list names one 4000 byte field as often as a frame can. */
static void make_bomb(struct scene *s)
{
	size_t n = s->step ? 0 : 6 + 4000;
	uint8_t *p = put_head(s, sizeof get_block + n + 8000, 1, END_HEADERS | END_STREAM,
			      2 * s->step + 1);

	memcpy(p, get_block, sizeof get_block);
	p += sizeof get_block;
	if (n) { /* literal, indexed: name "x", 4000 bytes of value */
		static const uint8_t literal[] = {0x40, 0x01, 'x', 0x7f, 0xa1, 0x1e};

		memcpy(p, literal, sizeof literal);
		memset(p + sizeof literal, 'v', 4000);
		p += n;
	}
	memset(p, 0xbe, 8000); /* the newest of the table */
	s->step++;
}

/* A list that nghttp2 itself refuses, as long as a frame can be: pseudo fields after others. */
static void make_bad_heads(struct scene *s)
{
	uint8_t *p = put_head(s, 16000, 1, END_HEADERS | END_STREAM, 2 * s->step++ + 1);

	memset(p, 0x90, 16000); /* accept-encoding */
	p[1] = 0x82;
}

static void make_past_window(struct scene *s)
{
	if (s->step++ == 0)
		put(s, 1, END_HEADERS, 1, get_block, sizeof get_block);
	for (size_t i = 0; i < 3; i++)
		put_head(s, 16384, 0, 0, 1);
}

static void make_requests(struct scene *s)
{
	for (size_t i = 0; i < 1000; i++)
		put(s, 1, END_HEADERS | END_STREAM, 2 * s->step++ + 1, get_block, sizeof get_block);
}

static void make_continuation(struct scene *s)
{
	put(s, 1, 0, 1, get_block, sizeof get_block);
	put_head(s, 100, 9, 0, 1);
}

static void make_rapid_reset(struct scene *s)
{
	static const uint8_t code[4] = {0, 0, 0, 8};

	for (size_t i = 0; i < 1000; i++, s->step++) {
		put(s, 1, END_HEADERS, 2 * s->step + 1, get_block, sizeof get_block);
		put(s, 3, 0, 2 * s->step + 1, code, 4);
	}
}

static void make_garbage(struct scene *s)
{
	for (size_t i = 0; i < 1000; i++)
		s->piece[s->piece_n++] = (uint8_t)(0xa5 ^ i * 7);
}

static void make_long(struct scene *s)
{
	put_head(s, 16385, 0, 0, 1);
}

/* Empty DATA on an open stream, for ever. */
static void make_empty_data(struct scene *s)
{
	if (s->step++ == 0)
		put(s, 1, END_HEADERS, 1, get_block, sizeof get_block);
	for (size_t i = 0; i < 1000; i++)
		put_head(s, 0, 0, 0, 1);
}

static void make_bad_field(struct scene *s)
{
	static const uint8_t upper[] = {0x82, 0x86, 0x84, 0x01, 0x01, 'a',
					0x00, 0x01, 'X',  0x01, 'y'};

	if (s->step++ == 0)
		put(s, 1, END_HEADERS, 1, upper, sizeof upper);
}

static void make_many_fields(struct scene *s)
{
	uint8_t block[sizeof get_block + 61 * 5];

	if (s->step++ > 0)
		return;
	memcpy(block, get_block, sizeof get_block);
	for (size_t i = 0; i < 61; i++)
		memcpy(block + sizeof get_block + i * 5, "\0\1x\1y", 5);
	put(s, 1, END_HEADERS, 1, block, sizeof block);
}

static void make_goaway(struct scene *s)
{
	for (size_t i = 0; i < 1000; i++)
		put_head(s, 8, 7, 0, 0);
}

/* The same towards a client, which has stream 1 open. */

static void make_idle_answer(struct scene *s)
{
	static const uint8_t block[] = {STATUS_200};

	put(s, 1, END_HEADERS, 9, block, 1);
}

static void make_push(struct scene *s)
{
	put_head(s, 4 + sizeof get_block, 5, END_HEADERS, 1);
}

static void make_answer_flood(struct scene *s)
{
	static const uint8_t block[] = {STATUS_200};

	if (s->step++ == 0)
		put(s, 1, END_HEADERS, 1, block, 1);
	for (size_t i = 0; i < 3; i++)
		put_head(s, 16384, 0, 0, 1);
}

static void make_interim(struct scene *s)
{
	static const uint8_t block[] = {0x08, 0x03, '1', '0', '0'}; /* :status 100 */

	for (size_t i = 0; i < 1000; i++)
		put(s, 1, END_HEADERS, 1, block, sizeof block);
}

static void make_two_heads(struct scene *s)
{
	static const uint8_t block[] = {STATUS_200};

	if (s->step++ > 0)
		return;
	put(s, 1, END_HEADERS, 1, block, 1);
	put(s, 1, END_HEADERS, 1, block, 1);
}

static const struct attack attacks[] = {
	{"WINDOW_UPDATE flood", true, make_window, ENDS},
	{"PRIORITY", true, make_priority, ENDS},
	{"unknown type", true, make_unknown, ENDS},
	{"PING flood", true, make_ping, ENDS},
	{"SETTINGS flood", true, make_settings, ENDS},
	{"HPACK bomb", true, make_bomb, ENDS},
	{"malformed heads", true, make_bad_heads, ENDS},
	{"DATA past the window", true, make_past_window, ENDS},
	{"endless requests", true, make_requests, THROTTLES},
	{"CONTINUATION", true, make_continuation, ENDS},
	{"rapid reset", true, make_rapid_reset, ENDS},
	{"garbage", true, make_garbage, ENDS},
	{"frame too long", true, make_long, ENDS},
	{"empty DATA", true, make_empty_data, THROTTLES},
	{"upper-case name", true, make_bad_field, LIVES},
	{"too many fields", true, make_many_fields, LIVES},
	{"GOAWAY flood", true, make_goaway, ENDS},
	{"an answer to nothing", false, make_idle_answer, ENDS},
	{"a push", false, make_push, ENDS},
	{"an answer past the window", false, make_answer_flood, ENDS},
	{"interim answers for ever", false, make_interim, THROTTLES},
	{"a second head", false, make_two_heads, LIVES},
};

/* --- our side --- */

static void on_head(struct h2_stream *s, const struct h2_message *m)
{
	(void)s, (void)m;
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	(void)s, (void)p, (void)n; /* never consumed */
}

static void on_stream_end(struct h2_stream *s)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":status", "403");
	(void)h2_respond(s, &m, true);
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	struct scene *c = h2_stream_arg(s);

	c->closed++;
	c->last_code = code;
	if (c->attack->want == LIVES)
		loop_stop(c->loop);
}

static const struct h2_stream_ops stream_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_stream_end, .on_close = on_close};

static void on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct scene *c = h2_arg(h);

	(void)m;
	c->requests++;
	h2_accept(s, &stream_ops, c);
}

static void on_session_end(struct h2 *h, int err)
{
	struct scene *c = h2_arg(h);

	(void)h;
	c->is_ended = true;
	c->err = err;
	loop_stop(c->loop);
}

static const struct h2_ops session_ops = {.on_request = on_request, .on_end = on_session_end};

/* --- the attacker's side --- */

static void read_over(int fd)
{
	static char p[65536];

	while (read(fd, p, sizeof p) > 0)
		;
}

static void on_attacker(void *arg, int events)
{
	struct scene *s = arg;
	ssize_t n;

	(void)events;
	read_over(s->fd[1]);
	for (size_t i = 0; i < 16; i++) {
		if (s->piece_off == s->piece_n) {
			s->piece_off = s->piece_n = 0;
			s->attack->make(s);
		}
		if (s->piece_n == 0) {
			watch_set(s->watch, WATCH_READ);
			if (s->attack->want == LIVES && s->attack->is_server && !s->requests)
				timer_set(s->quiet, QUIET_MS);
			return;
		}
		n = send(s->fd[1], s->piece + s->piece_off, s->piece_n - s->piece_off,
			 MSG_NOSIGNAL);
		if (n <= 0)
			return;
		s->piece_off += (size_t)n;
		s->sent += (size_t)n;
		timer_set(s->quiet, QUIET_MS);
	}
	if (s->sent > SENT_MAX)
		loop_stop(s->loop);
}

static void on_quiet(void *arg)
{
	struct scene *s = arg;

	s->is_quiet = true;
	loop_stop(s->loop);
}

static void on_deadline(void *arg)
{
	struct scene *s = arg;

	s->is_late = true;
	loop_stop(s->loop);
}

static size_t rss_kib(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (size_t)u.ru_maxrss;
}

#if TEST_HAS_ASAN
#define GROWTH_MAX_KIB SIZE_MAX
#else
#define GROWTH_MAX_KIB 8192u
#endif

static void scene_judge(struct scene *s)
{
	const char *says = s->attack->says;
	uint64_t ran_ms = (clock_mono_ns() - s->began_ns) / NS_PER_MS;

	EXPECT(says, !s->is_late && s->sent <= SENT_MAX);
	switch (s->attack->want) {
	case ENDS:
		EXPECT(says, s->is_ended);
		EXPECT(says, s->err == -EPROTO || s->attack->make == make_goaway);
		break;
	case THROTTLES:
		EXPECT(says, !s->is_ended);
		/* 15 bytes are the shortest request, 9 an empty frame */
		EXPECT(says, s->sent / 15 < PREFILTER_SMALL_BURST +
						    (ran_ms + 100) * PREFILTER_SMALL_RATE / 1000 +
						    2 * 262144u);
		EXPECT(says, s->requests <= PREFILTER_SMALL_BURST +
						    (ran_ms + 100) * PREFILTER_SMALL_RATE / 1000);
		break;
	case LIVES:
		EXPECT(says, !s->is_ended);
		EXPECT_EQ(says, h2_streams(s->h2), 0);
		break;
	}
}

static void attack_run(const struct attack *a)
{
	struct scene *s = xcalloc(1, sizeof *s);
	struct h2_message m = {0};
	size_t before = rss_kib();

	s->attack = a;
	s->loop = loop_new();
	s->began_ns = clock_mono_ns();
	CHECK(sock_pair(SOCK_STREAM, s->fd) == 0);
	s->h2 = h2_new(s->loop, s->fd[0], (a->is_server ? H2_SERVER : 0) | H2_HOSTILE_PEER,
		       &session_ops, s, NULL, 0);
	(void)h2_add(&m, ":method", "GET");
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":path", "/");
	if (a->is_server) {
		static const char magic[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

		memcpy(s->piece, magic, s->piece_n = sizeof magic - 1);
	} else {
		EXPECT(a->says, h2_request(s->h2, &m, false, &stream_ops, s) != NULL);
	}
	put_head(s, 0, 4, 0, 0); /* SETTINGS */
	s->deadline = timer_new(s->loop, on_deadline, s);
	s->quiet = timer_new(s->loop, on_quiet, s);
	s->watch = watch_new(s->loop, s->fd[1], on_attacker, s);
	watch_set(s->watch, WATCH_READ | WATCH_WRITE);
	timer_set(s->deadline, DEADLINE_MS);
	loop_run(s->loop);
	scene_judge(s);
	h2_free(s->h2);
	watch_free(s->watch);
	timer_free(s->deadline);
	timer_free(s->quiet);
	loop_free(s->loop);
	fd_drop(&s->fd[0]);
	fd_drop(&s->fd[1]);
	free(s);
	EXPECT(a->says, rss_kib() - before <= GROWTH_MAX_KIB);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(attacks); i++)
		attack_run(&attacks[i]);
	return test_done();
}
