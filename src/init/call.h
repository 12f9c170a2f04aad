/* One request on space.control: its head, its body gathered up to MESSAGE_MAX, and its answer in
 * the form its kind of procedure wants. Lives as long as its HTTP/2 stream. */
#ifndef SPACE_INIT_CALL_H
#define SPACE_INIT_CALL_H

#include "base/fail.h"
#include "init/request.h"
#include "net/h2.h"
#include "wire/connect_code.h"

#include <jansson.h>

struct guest;
struct call;

enum call_kind {
	CALL_PLAIN, /* HTTP: a status, JSON */
	CALL_UNARY, /* Connect, application/json */
	CALL_STREAM /* Connect server stream, application/connect+json: 200, then envelopes */
};

struct route {
	const char *method;
	const char *path;
	enum call_kind kind;
	/* The body is complete (of a stream: the one message in it). Answers now or later. */
	void (*fn)(struct call *c, const uint8_t *p, size_t n);
};

struct call {
	struct guest *guest;
	struct h2_stream *stream;
	const struct route *route; /* NULL: answered in the head already, the body is thrown away */
	struct head_options options;
	uint8_t *body;
	size_t n;
	size_t cap;   /* charged to the budget */
	char *answer; /* what is still to be sent of an answer at once */
	size_t answer_n;
	size_t answer_off;
	/* Whoever answers later; both may be NULL. After on_close the call is gone. */
	void (*on_drain)(void *arg);
	void (*on_close)(void *arg);
	void *arg;
};

/* Takes the stream of an on_request. `routes` ends with a NULL path. */
void call_begin(struct guest *g, const struct route *routes, struct h2_stream *s,
		const struct h2_message *m);

/* Each call is answered once, by one of these. */
void call_status(struct call *c, unsigned status); /* without a body */
void call_json(struct call *c, json_t *o);         /* 200; takes o */
void call_ok(struct call *c);                      /* 200 {} */
void call_error(struct call *c, enum connect_code code, const char *text);
void call_refuse(struct call *c, int err, const struct fail *f); /* of a _parse */

/* A stream's answer: the head with what is said about the output's position, envelopes, the end. */
void call_stream_open(struct call *c, uint64_t seq, const uint64_t *gap);
void call_stream_error(struct call *c, enum connect_code code, const char *text); /* ends it */
void call_stream_end(struct call *c);

#endif
