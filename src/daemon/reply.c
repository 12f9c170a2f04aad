/* See reply.h. */
#include "daemon/reply.h"

#include "net/h2.h"

#include <stdio.h>
#include <string.h>

#define REPLY_MAX 256

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	(void)p;
	h2_consume(s, n);
}

static void on_end(struct h2_stream *s)
{
	(void)s;
}

static void on_drain(struct h2_stream *s, size_t n)
{
	(void)s, (void)n;
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	(void)s, (void)code;
}

static const struct h2_stream_ops reply_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_close = on_close,
};

void reply_write(struct h2_stream *s, unsigned status, const char *message)
{
	char body[REPLY_MAX];
	char code[8];
	char length[8];
	struct h2_message m = {0};
	int n = snprintf(body, sizeof body, "{\"code\":%u,\"message\":\"%s\"}", status, message);

	assert(n > 0 && (size_t)n < sizeof body);
	(void)snprintf(code, sizeof code, "%u", status);
	(void)snprintf(length, sizeof length, "%d", n);
	(void)h2_add(&m, ":status", code);
	(void)h2_add(&m, "content-type", "application/json");
	(void)h2_add(&m, "content-length", length);
	if (h2_respond(s, &m, false) < 0 || h2_write(s, body, (size_t)n) < 0) {
		h2_reset(s, H2_INTERNAL_ERROR);
		return;
	}
	h2_finish(s);
}

void reply_send(struct h2_stream *s, unsigned status, const char *message)
{
	h2_accept(s, &reply_ops, NULL);
	reply_write(s, status, message);
}
