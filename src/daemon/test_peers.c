/* See test_peers.h. */
#include "daemon/test_peers.h"

#include "base/alloc.h"
#include "net/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOOD_BYTES 2048u

/* One of the fake guest's streams. */
struct served {
	size_t up;   /* bytes of the request */
	size_t down; /* still to send */
	bool is_echo;
	bool has_end;
};

static void served_free(struct h2_stream *s, uint32_t code)
{
	struct fake *g = h2_arg(h2_stream_session(s));

	if (code != H2_NO_ERROR)
		g->closed++;
	if (g->held == s)
		g->held = NULL;
	free(h2_stream_arg(s));
	loop_stop(g->loop);
}

static void served_send(struct h2_stream *s)
{
	static const uint8_t zeros[PEER_CHUNK];
	struct served *v = h2_stream_arg(s);

	while (v->down && h2_room(s) >= PEER_CHUNK) {
		size_t n = size_min(v->down, PEER_CHUNK);

		(void)h2_write(s, zeros, n);
		v->down -= n;
		if (!v->down)
			h2_finish(s);
	}
}

static void served_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct fake *g = h2_arg(h2_stream_session(s));
	struct served *v = h2_stream_arg(s);

	v->up += n;
	g->up_bytes += n;
	if (v->is_echo)
		(void)h2_write(s, p, n);
	else
		h2_consume(s, n);
}

static void served_on_end(struct h2_stream *s)
{
	struct served *v = h2_stream_arg(s);

	v->has_end = true;
	if (v->is_echo)
		h2_finish(s);
}

static void served_on_drain(struct h2_stream *s, size_t n)
{
	struct served *v = h2_stream_arg(s);

	if (v->is_echo)
		h2_consume(s, n);
	else
		served_send(s);
}

static const struct h2_stream_ops served_ops = {
	.on_data = served_on_data,
	.on_end = served_on_end,
	.on_drain = served_on_drain,
	.on_close = served_free,
};

static void answer(struct h2_stream *s, const char *status, bool is_end)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":status", status);
	(void)h2_add(&m, "content-type", "text/plain");
	(void)h2_respond(s, &m, is_end);
}

static void fake_on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct fake *g = h2_arg(h);
	struct served *v = xcalloc(1, sizeof *v);
	const char *path = h2_get(m, ":path");

	g->has_token = g->has_token || h2_get(m, "x-access-token") || h2_get(m, "cookie");
	h2_accept(s, &served_ops, v);
	if (strcmp(path, "/health") == 0 || strcmp(path, "/space/init") == 0) {
		answer(s, "204", true);
	} else if (strcmp(path, "/echo") == 0) {
		v->is_echo = true;
		answer(s, "200", false);
	} else if (strcmp(path, "/bulk") == 0) {
		v->down = PEER_BULK;
		answer(s, "200", false);
		served_send(s);
	} else if (strcmp(path, "/early") == 0) {
		answer(s, "413", true);
	} else if (strcmp(path, "/reset") == 0) {
		h2_reset(s, H2_INTERNAL_ERROR);
	} else if (strcmp(path, "/cut") == 0) {
		answer(s, "200", false);
		(void)h2_write(s, "half", 4);
		g->held = s;
	} else {
		g->held = s; /* "/hold": no answer */
	}
	loop_stop(g->loop);
}

static void fake_on_end(struct h2 *h, int err)
{
	struct fake *g = h2_arg(h);

	(void)err;
	for (size_t i = 0; i < ARRAY_LEN(g->h2); i++)
		if (g->h2[i] == h)
			g->h2[i] = NULL;
	h2_free(h);
	loop_stop(g->loop);
}

static const struct h2_ops fake_server = {.on_request = fake_on_request, .on_end = fake_on_end};
static const struct h2_ops fake_client = {.on_end = fake_on_end};

static void egress_on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct fake *g = h2_stream_arg(s);

	(void)snprintf(g->egress_got, sizeof g->egress_got, "%s", h2_get(m, ":status"));
	loop_stop(g->loop);
}

static void egress_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	(void)p;
	h2_consume(s, n);
}

static void nothing_end(struct h2_stream *s)
{
	(void)s;
}

static void nothing_drain(struct h2_stream *s, size_t n)
{
	(void)s, (void)n;
}

static void nothing_close(struct h2_stream *s, uint32_t code)
{
	(void)s, (void)code;
}

static const struct h2_stream_ops egress_ops = {
	.on_head = egress_on_head,
	.on_data = egress_on_data,
	.on_end = nothing_end,
	.on_drain = nothing_drain,
	.on_close = nothing_close,
};

void fake_ask_egress(struct fake *g)
{
	struct h2_message m = {0};

	(void)h2_add(&m, ":method", "CONNECT");
	(void)h2_add(&m, ":authority", "example.org:443");
	if (!h2_request(g->h2[PORT_EGRESS], &m, false, &egress_ops, g))
		abort();
}

static void fake_sessions_drop(struct fake *g)
{
	for (size_t i = 0; i < ARRAY_LEN(g->h2); i++) {
		struct h2 *h = g->h2[i];

		g->h2[i] = NULL;
		h2_free(h);
	}
}

/* Begins after the host's request is there, so that an answer to it is one. A flood goes on as long
 * as the host reads: the first frames once, then the last frame for ever. */
static void raw_write(struct fake *g)
{
	uint8_t many[FLOOD_BYTES];
	size_t n = 0;

	if (!g->flood_n) {
		watch_set(g->watch[PORT_CONTROL], 0);
		(void)!write(g->fd[PORT_CONTROL], g->raw, g->raw_n);
		return;
	}
	if (!g->has_begun)
		(void)!write(g->fd[PORT_CONTROL], g->raw, g->raw_n);
	g->has_begun = true;
	while (n + g->flood_n <= sizeof many) {
		memcpy(many + n, g->raw + g->raw_n - g->flood_n, g->flood_n);
		n += g->flood_n;
	}
	if (g->part_n == 0)
		g->part_n = n;
	ssize_t sent = write(g->fd[PORT_CONTROL], many + n - g->part_n, g->part_n);

	if (sent > 0)
		g->part_n -= (size_t)sent;
	watch_set(g->watch[PORT_CONTROL], WATCH_READ | WATCH_WRITE);
}

static void fake_session(struct fake *g, size_t port, const uint8_t *early, size_t n)
{
	g->sessions++;
	if (g->mode == GUEST_RAW && port == PORT_CONTROL) {
		g->is_raw = true;
		return;
	}
	watch_set(g->watch[port], 0);
	if (port == PORT_CONTROL)
		g->h2[port] = h2_new(g->loop, g->fd[port], H2_SERVER, &fake_server, g, early, n);
	else
		g->h2[port] = h2_new(g->loop, g->fd[port], 0, &fake_client, g, early, n);
}

static void fake_port(struct fake *g, size_t port)
{
	uint8_t bytes[2048];
	uint8_t echo[PREFACE_SIZE];
	ssize_t n = read(g->fd[port], bytes, sizeof bytes);
	size_t used;

	if (g->is_raw && port == PORT_CONTROL) {
		raw_write(g);
		return;
	}
	if (n <= 0 || !preface_scan_step(&g->scan[port], bytes, (size_t)n, &used))
		return;
	preface_print(echo, g->nonce);
	if (write(g->fd[port], echo, sizeof echo) == (ssize_t)sizeof echo)
		fake_session(g, port, bytes + used, (size_t)n - used);
}

static void fake_on_control(void *arg, int events)
{
	(void)events;
	fake_port(arg, PORT_CONTROL);
}

static void fake_on_egress(void *arg, int events)
{
	(void)events;
	fake_port(arg, PORT_EGRESS);
}

static void fake_on_wake(void *arg, int events)
{
	struct fake *g = arg;
	uint8_t bytes[WAKE_SIZE];
	struct wake w;
	size_t used;
	ssize_t n = read(g->fd[PORT_WAKE], bytes, sizeof bytes);

	(void)events;
	if (n <= 0 || g->mode == GUEST_ABSENT ||
	    !wake_scan_step(&g->wake_scan, bytes, (size_t)n, &used, &w))
		return;
	fake_sessions_drop(g);
	g->is_raw = false;
	memcpy(g->nonce, w.nonce, sizeof g->nonce);
	for (size_t i = 0; i < ARRAY_LEN(g->scan); i++) {
		preface_scan_init(&g->scan[i], w.nonce);
		watch_set(g->watch[i], WATCH_READ);
	}
	wake_print(bytes, &w);
	if (write(g->fd[PORT_WAKE], bytes, sizeof bytes) < 0)
		abort();
}

void fake_start(struct fake *g, struct loop *l, const int fd[GUEST_PORTS])
{
	g->loop = l;
	for (size_t i = 0; i < GUEST_PORTS; i++)
		g->fd[i] = fd[i];
	wake_scan_init(&g->wake_scan);
	g->watch[PORT_CONTROL] = watch_new(l, fd[PORT_CONTROL], fake_on_control, g);
	g->watch[PORT_EGRESS] = watch_new(l, fd[PORT_EGRESS], fake_on_egress, g);
	g->watch[PORT_WAKE] = watch_new(l, fd[PORT_WAKE], fake_on_wake, g);
	watch_set(g->watch[PORT_WAKE], WATCH_READ);
}

void fake_stop(struct fake *g)
{
	fake_sessions_drop(g);
	for (size_t i = 0; i < GUEST_PORTS; i++)
		watch_free(g->watch[i]);
}

/* --- the client --- */

static void asked_on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct asked *q = h2_stream_arg(s);

	(void)snprintf(q->status, sizeof q->status, "%s", h2_get(m, ":status"));
	loop_stop(q->loop);
}

static void asked_on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct asked *q = h2_stream_arg(s);

	(void)p;
	q->got += n;
	if (q->is_slow)
		q->unread += n;
	else
		h2_consume(s, n);
	loop_stop(q->loop);
}

static void asked_on_end(struct h2_stream *s)
{
	struct asked *q = h2_stream_arg(s);

	q->has_end = true;
	loop_stop(q->loop);
}

static void asked_send(struct asked *q)
{
	static const uint8_t zeros[PEER_CHUNK];

	while (q->up && h2_room(q->stream) >= PEER_CHUNK) {
		size_t n = size_min(q->up, PEER_CHUNK);

		(void)h2_write(q->stream, zeros, n);
		q->up -= n;
		if (!q->up)
			h2_finish(q->stream);
	}
}

static void asked_on_drain(struct h2_stream *s, size_t n)
{
	(void)n;
	asked_send(h2_stream_arg(s));
}

static void asked_on_close(struct h2_stream *s, uint32_t code)
{
	struct asked *q = h2_stream_arg(s);

	q->stream = NULL;
	q->is_closed = true;
	q->code = code;
	loop_stop(q->loop);
}

static const struct h2_stream_ops asked_ops = {
	.on_head = asked_on_head,
	.on_data = asked_on_data,
	.on_end = asked_on_end,
	.on_drain = asked_on_drain,
	.on_close = asked_on_close,
};

void asked_start(struct asked *q, struct loop *l, struct h2 *client, const char *method,
		 const char *path, size_t up)
{
	struct h2_message m = {0};

	q->loop = l;
	q->up = up;
	(void)h2_add(&m, ":method", method);
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "envd");
	(void)h2_add(&m, ":path", path);
	(void)h2_add(&m, "x-access-token", PEER_TOKEN);
	(void)h2_add(&m, "cookie", "a=b");
	q->stream = h2_request(client, &m, up == 0, &asked_ops, q);
	assert(q->stream);
	asked_send(q);
}
