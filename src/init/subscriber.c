/* Events of a process to one client: see subscriber.h.
 *
 *   {"event":{"start":{"pid":7}}}                    first, always
 *   {"event":{"data":{"stdout":"<base64>"}}}         stderr, pty likewise
 *   {"event":{"keepalive":{}}}                       when nothing was sent for a while
 *   {"event":{"end":{…}}}, the end envelope          when it has ended and every byte went out
 *
 * The head says where the output begins: space-seq is the sequence number of the first byte to
 * come, space-gap how many of those asked for (space-after) are gone. */
#include "init/subscriber.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "init/guest.h"
#include "init/limits.h"
#include "net/loop.h"
#include "wire/envelope.h"

#include <inttypes.h>

#define EVENT_MAX (ENVELOPE_HEAD + 64 + (EVENT_DATA_MAX + 2) / 3 * 4 + 1)

static_assert(EVENT_MAX + SUBSCRIBER_QUEUE < H2_STREAM_QUEUE / 2,
	      "an event and the end always fit");

struct subscriber {
	struct call *call;
	struct process *process;
	struct reader reader;
	struct timer *keepalive;
	struct timer *deadline; /* Connect only: Start's belongs to the process */
	bool is_start;
	bool is_open;  /* the head and the start event were sent */
	bool is_ended; /* the end envelope was sent */
	uint64_t gap;
	bool has_gap;
};

static uint8_t frame[EVENT_MAX];

static void send_frame(struct subscriber *s, size_t payload)
{
	envelope_head_print(frame, 0, (uint32_t)payload);
	(void)h2_write(s->call->stream, frame, ENVELOPE_HEAD + payload); /* fits: see EVENT_MAX */
	timer_set(s->keepalive, (uint64_t)s->call->options.keepalive_s * 1000);
}

static void send_text(struct subscriber *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void send_text(struct subscriber *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf((char *)frame + ENVELOPE_HEAD, sizeof frame - ENVELOPE_HEAD, fmt, ap);
	va_end(ap);
	send_frame(s, (size_t)n);
}

static void send_data(struct subscriber *s, enum ring_tag tag, const uint8_t *p, size_t n)
{
	static const char *const names[RING_TAGS] = {"stdout", "stderr", "pty"};
	char *at = (char *)frame + ENVELOPE_HEAD;
	size_t room = sizeof frame - ENVELOPE_HEAD;
	size_t used = (size_t)snprintf(at, room, "{\"event\":{\"data\":{\"%s\":\"", names[tag]);

	base64_encode(at + used, p, n);
	used += base64_len(n);
	used += (size_t)snprintf(at + used, room - used, "\"}}}");
	send_frame(s, used);
}

static void send_end(struct subscriber *s)
{
	const struct exit_status *e = process_status(s->process);
	bool is_good = e->exited && e->code == 0;

	send_text(s,
		  "{\"event\":{\"end\":{\"exitCode\":%d,\"exited\":%s,\"status\":\"%s\"%s%s%s}}}",
		  e->code, e->exited ? "true" : "false", e->text, is_good ? "" : ",\"error\":\"",
		  is_good ? "" : e->text, is_good ? "" : "\"");
	call_stream_end(s->call);
	s->is_ended = true;
}

static void fail_stream(struct subscriber *s, enum connect_code code, const char *text)
{
	if (!s->is_open)
		call_stream_open(s->call, s->reader.cursor.seq, NULL);
	call_stream_error(s->call, code, text);
	s->is_ended = true;
}

static bool has_queue_room(const struct subscriber *s)
{
	return H2_STREAM_QUEUE - h2_room(s->call->stream) < SUBSCRIBER_QUEUE;
}

/* True: everything the process wrote so far is framed. */
static bool send_output(struct subscriber *s)
{
	const struct ring *r = process_ring(s->process);
	bool has_moved = false;
	bool is_all = false;

	while (!is_all && has_queue_room(s)) {
		enum ring_tag tag = RING_STDOUT;
		const uint8_t *p = NULL;
		size_t n = size_min(ring_peek(r, &s->reader.cursor, &tag, &p), EVENT_DATA_MAX);

		is_all = n == 0;
		if (is_all)
			break;
		send_data(s, tag, p, n);
		ring_skip(&s->reader.cursor, n);
		has_moved = true;
	}
	if (has_moved)
		process_moved(s->process);
	return is_all;
}

static void pump(struct subscriber *s)
{
	enum process_state state = process_state(s->process);
	const char *text = NULL;

	if (s->is_ended)
		return;
	if (s->is_start && process_timed_out(s->process)) {
		fail_stream(s, CONNECT_DEADLINE_EXCEEDED,
			    "the time is over; the process was killed");
		return;
	}
	if (state == PROCESS_FAILED) {
		enum connect_code code = process_failure(s->process, &text);

		fail_stream(s, code, text);
		return;
	}
	if (state == PROCESS_STARTING)
		return;
	if (!s->is_open) {
		call_stream_open(s->call, s->reader.cursor.seq, s->has_gap ? &s->gap : NULL);
		s->is_open = true;
		send_text(s, "{\"event\":{\"start\":{\"pid\":%d}}}", (int)process_pid(s->process));
	}
	if (send_output(s) && state == PROCESS_ENDED)
		send_end(s);
}

static void on_change(void *arg)
{
	pump(arg);
}

static void on_keepalive(void *arg)
{
	struct subscriber *s = arg;

	if (s->is_ended)
		return;
	if (s->is_open && has_queue_room(s))
		send_text(s, "{\"event\":{\"keepalive\":{}}}");
	else
		timer_set(s->keepalive, (uint64_t)s->call->options.keepalive_s * 1000);
}

static void on_deadline(void *arg)
{
	struct subscriber *s = arg;

	if (!s->is_ended)
		fail_stream(s, CONNECT_DEADLINE_EXCEEDED, "the time is over");
}

static void on_close(void *arg)
{
	struct subscriber *s = arg;

	if (s->process)
		process_detach(s->process, &s->reader);
	timer_free(s->keepalive);
	timer_free(s->deadline);
	free(s);
}

static struct subscriber *subscriber_new(struct call *c, bool is_start)
{
	struct subscriber *s = xcalloc(1, sizeof *s);

	s->call = c;
	s->is_start = is_start;
	s->reader = (struct reader){.on_change = on_change, .arg = s};
	s->keepalive = timer_new(c->guest->loop, on_keepalive, s);
	s->deadline = timer_new(c->guest->loop, on_deadline, s);
	c->arg = s;
	c->on_drain = on_change;
	c->on_close = on_close;
	return s;
}

void subscriber_start(struct call *c, struct start_request *q)
{
	struct guest *g = c->guest;
	const struct head_options *o = &c->options;
	struct subscriber *s = subscriber_new(c, true);
	struct fail f = {0};
	enum connect_code code =
		process_start(&g->processes, &g->identity, q, o->has_user ? o->user : NULL,
			      o->timeout_ms, &s->reader, &s->process, &f);

	if (code) {
		s->is_ended = true;
		call_error(c, code, f.text);
	}
}

void subscriber_connect(struct call *c, struct process *p)
{
	const struct ring *r = process_ring(p);
	const struct head_options *o = &c->options;
	struct ring_cursor at = o->has_after ? ring_seek(r, o->after) : ring_newest(r);
	struct subscriber *s = subscriber_new(c, false);

	s->has_gap = o->has_after;
	s->gap = at.seq > o->after ? at.seq - o->after : 0;
	if (process_attach(p, &s->reader, at) != 0) {
		s->is_ended = true;
		call_error(c, CONNECT_RESOURCE_EXHAUSTED,
			   "too many streams of this process are open");
		return;
	}
	s->process = p;
	if (o->timeout_ms)
		timer_set(s->deadline, o->timeout_ms);
	pump(s);
}
