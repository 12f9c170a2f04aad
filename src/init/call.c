/* Requests and their answers: see call.h. */
#include "init/call.h"

#include "base/alloc.h"
#include "base/str.h"
#include "init/guest.h"
#include "init/limits.h"
#include "wire/envelope.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>

#define BODY_MAX   (MESSAGE_MAX + ENVELOPE_HEAD)
#define BODY_FIRST 4096u
#define ANSWER_MAX MESSAGE_MAX

static void body_drop(struct call *c)
{
	mem_drop(&c->body);
	budget_give(&c->guest->processes.bytes, c->cap);
	c->cap = 0;
	c->n = 0;
}

/* --- answers --- */

static void answer_pump(struct call *c)
{
	size_t n = size_min(h2_room(c->stream), c->answer_n - c->answer_off);

	if (n && h2_write(c->stream, c->answer + c->answer_off, n) == 0)
		c->answer_off += n;
	if (c->answer_off == c->answer_n) {
		mem_drop(&c->answer);
		h2_finish(c->stream);
	}
}

/* From here on the request's body does not matter. */
static int respond(struct call *c, unsigned status, const char *type, bool is_end)
{
	struct h2_message m = {0};
	char text[8];

	(void)snprintf(text, sizeof text, "%u", status);
	(void)h2_add(&m, ":status", text);
	if (type)
		(void)h2_add(&m, "content-type", type);
	c->route = NULL;
	return h2_respond(c->stream, &m, is_end);
}

static void respond_text(struct call *c, unsigned status, char *text, size_t n)
{
	c->answer = text;
	c->answer_n = n;
	if (respond(c, status, "application/json", false) == 0)
		answer_pump(c);
}

void call_status(struct call *c, unsigned status)
{
	(void)respond(c, status, NULL, true); /* fails only when the stream has ended */
}

void call_json(struct call *c, json_t *o)
{
	AUTO(json_drop) json_t *owned = o;
	size_t n = 0;
	char *text = json_print(owned, ANSWER_MAX, &n);

	if (text)
		respond_text(c, 200, text, n);
	else
		call_error(c, CONNECT_RESOURCE_EXHAUSTED, "the answer is over 4 MiB");
}

void call_ok(struct call *c)
{
	respond_text(c, 200, xstrdup("{}"), 2);
}

/* {"code":…,"message":…}; a sentence that is not UTF-8 (cut, or a path of the guest's) is
 * escaped. */
static json_t *error_object(json_t *code, const char *text)
{
	char safe[2048];
	size_t n = strlen(text);

	if (!utf8_valid((const uint8_t *)text, n)) {
		(void)str_escape(safe, sizeof safe, text, n, "");
		text = safe;
	}
	return json_pack("{s:o, s:s}", "code", code, "message", text);
}

void call_error(struct call *c, enum connect_code code, const char *text)
{
	unsigned status = connect_code_status(code);
	bool is_plain = c->route && c->route->kind == CALL_PLAIN;
	size_t n = 0;
	char *body;

	if (c->route && c->route->kind == CALL_STREAM) {
		call_stream_open(c, 0, NULL);
		call_stream_error(c, code, text);
		return;
	}
	AUTO(json_drop)
	json_t *o = error_object(
		is_plain ? json_integer(status) : json_string(connect_code_name(code)), text);
	body = json_print(o, ANSWER_MAX, &n);
	if (body)
		respond_text(c, status, body, n);
	else
		call_status(c, status);
}

void call_refuse(struct call *c, int err, const struct fail *f)
{
	call_error(c, err == -ENOMEM ? CONNECT_RESOURCE_EXHAUSTED : CONNECT_INVALID_ARGUMENT,
		   f->text);
}

void call_stream_open(struct call *c, uint64_t seq, const uint64_t *gap)
{
	struct h2_message m = {0};
	char seq_text[24];
	char gap_text[24];

	(void)snprintf(seq_text, sizeof seq_text, "%" PRIu64, seq);
	(void)h2_add(&m, ":status", "200");
	(void)h2_add(&m, "content-type", "application/connect+json");
	(void)h2_add(&m, "space-seq", seq_text);
	if (gap) {
		(void)snprintf(gap_text, sizeof gap_text, "%" PRIu64, *gap);
		(void)h2_add(&m, "space-gap", gap_text);
	}
	c->route = NULL;
	(void)h2_respond(c->stream, &m, false); /* fails only when the stream has ended */
}

static void stream_last(struct call *c, const char *text, size_t n)
{
	uint8_t head[ENVELOPE_HEAD];

	envelope_head_print(head, ENVELOPE_END, (uint32_t)n);
	/* SUBSCRIBER_QUEUE leaves far more room than an end envelope needs. */
	if (h2_write(c->stream, head, sizeof head) == 0)
		(void)h2_write(c->stream, text, n);
	h2_finish(c->stream);
}

void call_stream_error(struct call *c, enum connect_code code, const char *text)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:o}", "error",
			      error_object(json_string(connect_code_name(code)), text));
	size_t n = 0;
	AUTO(str_drop) char *body = json_print(o, ANSWER_MAX, &n);

	if (body)
		stream_last(c, body, n);
	else
		h2_reset(c->stream, H2_INTERNAL_ERROR);
}

void call_stream_end(struct call *c)
{
	stream_last(c, "{}", 2);
}

/* --- requests --- */

/* Doubles, so that a small body costs little; charged before it is allocated. */
static int body_grow(struct call *c, size_t n)
{
	struct budget *b = &c->guest->processes.bytes;
	size_t cap = c->cap ? c->cap : BODY_FIRST;
	uint8_t *p;

	while (cap < n)
		cap *= 2;
	if (!budget_take(b, cap - c->cap))
		return -ENOBUFS;
	p = try_alloc(cap);
	if (!p) {
		budget_give(b, cap - c->cap);
		return -ENOMEM;
	}
	if (c->n)
		memcpy(p, c->body, c->n);
	mem_drop(&c->body);
	c->body = p;
	c->cap = cap;
	return 0;
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct call *c = h2_stream_arg(s);

	h2_consume(s, n);
	if (!c->route || n == 0)
		return;
	if (n > BODY_MAX - c->n) {
		body_drop(c);
		call_error(c, CONNECT_RESOURCE_EXHAUSTED, "the message is over 4 MiB");
	} else if (c->n + n > c->cap && body_grow(c, c->n + n) != 0) {
		body_drop(c);
		call_error(c, CONNECT_RESOURCE_EXHAUSTED, "too many bytes are held for requests");
	} else {
		memcpy(c->body + c->n, p, n);
		c->n += n;
	}
}

static void on_end(struct h2_stream *s)
{
	struct call *c = h2_stream_arg(s);
	const uint8_t *p = c->body;
	size_t n = c->n;
	const struct route *r = c->route;

	if (!r)
		return;
	if (r->kind == CALL_STREAM && envelope_single(c->body, c->n, MESSAGE_MAX, &p, &n) != 0)
		call_error(c, CONNECT_INVALID_ARGUMENT, "the body is not one uncompressed message");
	else
		r->fn(c, p, n);
	body_drop(c);
}

static void on_drain(struct h2_stream *s, size_t n)
{
	struct call *c = h2_stream_arg(s);

	(void)n;
	if (c->answer)
		answer_pump(c);
	else if (c->on_drain)
		c->on_drain(c->arg);
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	struct call *c = h2_stream_arg(s);

	(void)code;
	if (c->on_close)
		c->on_close(c->arg);
	body_drop(c);
	head_options_done(&c->options);
	mem_drop(&c->answer);
	free(c);
}

static const struct h2_stream_ops call_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drain = on_drain,
	.on_close = on_close,
};

static const struct route *find_route(const struct route *routes, const char *method,
				      const char *path, bool *ret_is_path)
{
	size_t n = strcspn(path, "?");

	for (const struct route *r = routes; r->path; r++) {
		if (strlen(r->path) != n || memcmp(r->path, path, n) != 0)
			continue;
		*ret_is_path = true;
		if (strcmp(r->method, method) == 0)
			return r;
	}
	return NULL;
}

/* envd's files. A 404 would tell an SDK that a file is missing. */
static bool is_of_files(const char *path)
{
	return strcmp(path, "/files") == 0 || str_starts(path, "/files?") ||
	       str_starts(path, "/files/") || str_starts(path, "/filesystem.Filesystem/");
}

void call_begin(struct guest *g, const struct route *routes, struct h2_stream *s,
		const struct h2_message *m)
{
	const char *method = h2_get(m, ":method");
	const char *path = h2_get(m, ":path");
	struct call *c = xcalloc(1, sizeof *c);
	bool is_path = false;
	struct fail f = {0};

	c->guest = g;
	c->stream = s;
	h2_accept(s, &call_ops, c);
	c->route = find_route(routes, method ? method : "", path ? path : "", &is_path);
	if (!c->route && path && is_of_files(path)) {
		call_error(c, CONNECT_UNIMPLEMENTED, "files are not available in this version");
		return;
	}
	if (!c->route) {
		call_status(c, is_path ? 405 : 404);
		return;
	}
	if (head_options_parse(
		    &c->options, h2_get(m, "authorization"), h2_get(m, "connect-timeout-ms"),
		    h2_get(m, "keepalive-ping-interval"), h2_get(m, "space-after"), &f) != 0)
		call_error(c, CONNECT_INVALID_ARGUMENT, f.text);
}
