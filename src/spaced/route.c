/* See route.h.
 *
 * state   waits for                             leaves to
 * HEAD    the guest's head; the client's body   BODY, or an error answer
 * BODY    either side                           DONE when the guest ended its answer, CUT otherwise
 * DONE    the client to take the rest           freed when both sides are closed
 * CUT     both sides to close                   freed */
#include "spaced/route.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "net/h2.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/sock.h"
#include "spaced/answer.h"
#include "spaced/vm.h"

#include <errno.h>
#include <sys/socket.h>

/* One HTTP/2 connection to a space-daemon, made on demand, kept. */
struct envd {
	int fd;
	struct h2 *h2;
	struct sandbox *s;
	bool is_dead; /* to be freed in the loop's next turn at the latest */
};

struct relay {
	struct http_exchange *x;  /* NULL once closed */
	struct h2_stream *stream; /* NULL once closed */
	struct sandbox *s;        /* NULL once cut */
	bool is_answered;         /* the head went to the client */
	bool is_done;             /* the guest ended its answer */
	bool has_body;            /* of the answer: a HEAD or 204 has none */
	struct relay *next;
	struct relay **at; /* where next to it points at us */
};

static const char *const private_segments[] = {"init",     "freeze", "unfreeze", "collapse",
					       "fsfreeze", "fsthaw", "upgrade",  "space"};

/* Fields of one connection, of the routing, of the platform's own secrets. */
static const char *const dropped_fields[] = {
	"connection",
	"keep-alive",
	"proxy-connection",
	"proxy-authenticate",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"http2-settings",
	"proxy-authorization",
	"host",
	"expect",
	"e2b-sandbox-id",
	"e2b-sandbox-port",
	"x-api-key",
	"cookie",
	"content-length",
};

static const char *const dropped_answer_fields[] = {
	"connection",        "keep-alive", "proxy-connection",
	"transfer-encoding", "upgrade",    "date",
	"content-length",    "trailer",    "te",
};

bool route_wants(const struct http1_request *r)
{
	for (size_t i = 0; i < r->n_fields; i++) {
		const struct http1_str *name = &r->field[i].name;

		if ((name->n == strlen("e2b-sandbox-id") &&
		     strncasecmp(name->p, "e2b-sandbox-id", name->n) == 0) ||
		    (name->n == strlen("e2b-sandbox-port") &&
		     strncasecmp(name->p, "e2b-sandbox-port", name->n) == 0))
			return true;
	}
	return false;
}

bool route_path_is_private(const char *target, size_t n)
{
	size_t len = 0;

	if (n < 1 || target[0] != '/')
		return true;
	while (len < n - 1 && target[1 + len] != '/' && target[1 + len] != '?')
		len++;
	for (size_t i = 0; i < ARRAY_LEN(private_segments); i++)
		if (strlen(private_segments[i]) == len &&
		    strncmp(target + 1, private_segments[i], len) == 0)
			return true;
	return false;
}

/* --- life of a relay --- */

static void relay_link(struct relay *r, struct sandbox *s)
{
	r->s = s;
	r->next = s->relays;
	r->at = &s->relays;
	if (r->next)
		r->next->at = &r->next;
	s->relays = r;
}

static void relay_unlink(struct relay *r)
{
	if (!r->s)
		return;
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	r->s = NULL;
}

static void relay_free_if_closed(struct relay *r)
{
	if (r->x || r->stream)
		return;
	relay_unlink(r);
	free(r);
}

static void answer_not_found(struct http_exchange *x, const char *id)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:s, s:s, s:i}", "sandboxId", id, "message",
			      "The sandbox was not found", "code", 502);

	answer_json(x, 502, o);
}

static void answer_port_closed(struct http_exchange *x, const char *id, uint64_t port)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:s, s:s, s:I, s:i}", "sandboxId", id, "message",
			      "The sandbox is running but port is not open", "port",
			      (json_int_t)port, "code", 502);

	answer_json(x, 502, o);
}

/* The guest's side will not go on. */
static void relay_break(struct relay *r)
{
	if (!r->x || r->is_done)
		return;
	if (r->is_answered)
		http_abort(r->x);
	else
		answer_not_found(r->x, r->s ? r->s->node.id : "");
	r->is_done = true;
}

void route_cut(struct sandbox *s)
{
	while (s->relays) {
		struct relay *r = s->relays;

		if (r->x && !r->is_answered) {
			answer_not_found(r->x, s->node.id);
			r->is_done = true;
		} else if (r->x && !r->is_done) {
			http_abort(r->x);
			r->is_done = true;
		}
		relay_unlink(r);
	}
	if (s->envd) {
		struct envd *e = s->envd;

		s->envd = NULL;
		e->s = NULL;
		h2_free(e->h2); /* closes the streams of the relays above */
		fd_drop(&e->fd);
		free(e);
	}
}

void route_done(struct sandbox *s)
{
	route_cut(s);
}

/* --- from the guest --- */

static bool field_dropped(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(name, list[i]))
			return true;
	return false;
}

static void on_head(struct h2_stream *st, const struct h2_message *m)
{
	struct relay *r = h2_stream_arg(st);
	struct http_field fields[H2_HEADERS_MAX];
	const char *status = h2_get(m, ":status");
	const char *length = h2_get(m, "content-length");
	uint64_t code = 0, n = HTTP_CHUNKED;
	size_t n_fields = 0;

	if (!r->x || r->is_answered || r->is_done)
		return;
	if (!status || str_u64(status, 599, &code) < 0 || code < 200) {
		relay_break(r);
		return;
	}
	if (length && str_u64(length, INT64_MAX, &n) < 0) {
		relay_break(r);
		return;
	}
	if (code == 204 || code == 304)
		n = 0;
	for (size_t i = 0; i < m->n; i++)
		if (m->h[i].name[0] != ':' && !field_dropped(m->h[i].name, dropped_answer_fields,
							     ARRAY_LEN(dropped_answer_fields)))
			fields[n_fields++] =
				(struct http_field){.name = m->h[i].name, .value = m->h[i].value};
	if (http_respond(r->x, (unsigned)code, fields, n_fields, n) < 0) {
		relay_break(r);
		return;
	}
	r->is_answered = true;
	r->has_body = n != 0;
}

static void on_answer_data(struct h2_stream *st, const uint8_t *p, size_t n)
{
	struct relay *r = h2_stream_arg(st);

	if (!r->x || r->is_done || !r->is_answered || !r->has_body) {
		h2_consume(st, n);
		return;
	}
	if (http_write(r->x, p, n) < 0) /* more than the length it named, or than the window */
		relay_break(r);
}

static void on_answer_end(struct h2_stream *st)
{
	struct relay *r = h2_stream_arg(st);

	if (!r->x || r->is_done)
		return;
	if (!r->is_answered) {
		relay_break(r);
		return;
	}
	r->is_done = true;
	http_finish(r->x);
}

static void on_request_drain(struct h2_stream *st, size_t n)
{
	struct relay *r = h2_stream_arg(st);

	if (r->x)
		http_consume(r->x, n);
}

static void on_stream_close(struct h2_stream *st, uint32_t code)
{
	struct relay *r = h2_stream_arg(st);

	(void)code;
	r->stream = NULL;
	relay_break(r);
	relay_free_if_closed(r);
}

static const struct h2_stream_ops stream_ops = {.on_head = on_head,
						.on_data = on_answer_data,
						.on_end = on_answer_end,
						.on_drain = on_request_drain,
						.on_close = on_stream_close};

/* --- from the client --- */

static void on_request_data(struct http_exchange *x, const uint8_t *p, size_t n)
{
	struct relay *r = http_exchange_arg(x);

	if (!r->stream) {
		http_consume(x, n); /* the answer came early: the rest is read over */
		return;
	}
	if (h2_write(r->stream, p, n) < 0) {
		h2_reset(r->stream, H2_INTERNAL_ERROR);
		relay_break(r);
	}
}

static void on_request_end(struct http_exchange *x)
{
	struct relay *r = http_exchange_arg(x);

	if (r->stream)
		h2_finish(r->stream);
}

static void on_answer_drain(struct http_exchange *x, size_t n)
{
	struct relay *r = http_exchange_arg(x);

	if (r->stream && r->is_answered)
		h2_consume(r->stream, n);
}

static void on_exchange_close(struct http_exchange *x, bool is_aborted)
{
	struct relay *r = http_exchange_arg(x);

	r->x = NULL;
	if (r->stream && (is_aborted || !r->is_done))
		h2_reset(r->stream, H2_CANCEL);
	else if (r->stream)
		h2_reset(r->stream, H2_NO_ERROR);
	relay_free_if_closed(r);
}

static const struct http_exchange_ops exchange_ops = {.on_data = on_request_data,
						      .on_end = on_request_end,
						      .on_drain = on_answer_drain,
						      .on_close = on_exchange_close};

/* --- the connection to a space-daemon --- */

static void on_session_end(struct h2 *h, int err)
{
	struct envd *e = h2_arg(h);

	if (err && e->s)
		log_warn("connection to space-daemon broke", "sandbox=%s errno=%d", e->s->node.id,
			 -err);
	if (e->s)
		e->s->envd = NULL;
	h2_free(h);
	fd_drop(&e->fd);
	free(e);
}

static struct h2 *session_of(struct sandbox *s)
{
	static const struct h2_ops ops = {.on_end = on_session_end};
	struct envd *e = s->envd;
	struct fail f;

	if (e)
		return e->h2;
	e = xcalloc(1, sizeof *e);
	e->fd = -1;
	e->s = s;
	if (vm_dir(s->vm) < 0 ||
	    sock_unix_connect(vm_dir(s->vm), "daemon.sock", SOCK_STREAM, &e->fd, &f) < 0) {
		free(e);
		return NULL;
	}
	/* It speaks with a guest all day, and we serve others besides. */
	e->h2 = h2_new(s->n->loop, e->fd, H2_HOSTILE_PEER, &ops, e, NULL, 0);
	s->envd = e;
	return e->h2;
}

/* --- the request --- */

/* The only value of a routing field in dst; "" where it is absent. */
static int routing_field(const struct http1_request *r, const char *name, char *dst, size_t size)
{
	const struct http1_str *only = NULL;

	for (size_t i = 0; i < r->n_fields; i++) {
		const struct http1_field *h = &r->field[i];

		if (h->name.n != strlen(name) || strncasecmp(h->name.p, name, h->name.n) != 0)
			continue;
		if (only)
			return -EINVAL;
		only = &h->value;
	}
	dst[0] = '\0';
	if (!only)
		return 0;
	if (only->n == 0 || only->n >= size || memchr(only->p, 0, only->n))
		return -EINVAL;
	memcpy(dst, only->p, only->n);
	dst[only->n] = '\0';
	return 0;
}

/* Strings of a request's head as NUL-terminated copies, in one block. */
struct texts {
	char *p;
	size_t n;
	size_t used;
};

static const char *texts_add(struct texts *t, const struct http1_str *s, bool lower)
{
	char *at = t->p + t->used;

	assert(s->n < t->n - t->used);
	for (size_t i = 0; i < s->n; i++)
		at[i] = lower && s->p[i] >= 'A' && s->p[i] <= 'Z' ? (char)(s->p[i] | 0x20)
								  : s->p[i];
	at[s->n] = '\0';
	t->used += s->n + 1;
	return at;
}

/* Adds a field, within what h2_request() takes of a list. */
static int add_field(struct h2_message *m, size_t *left, const char *name, const char *value)
{
	size_t name_n = strlen(name), value_n = strlen(value);

	if (name_n > *left || value_n > *left - name_n)
		return -ENOBUFS;
	*left -= name_n + value_n;
	return h2_add(m, name, value);
}

static int build_message(const struct http1_request *r, struct texts *t, struct h2_message *m)
{
	size_t left = H2_HEADER_LIST_MAX;

	if (add_field(m, &left, ":method", texts_add(t, &r->method, false)) < 0 ||
	    add_field(m, &left, ":scheme", "http") < 0 ||
	    add_field(m, &left, ":authority", "envd") < 0 ||
	    add_field(m, &left, ":path", texts_add(t, &r->target, false)) < 0)
		return -ENOBUFS;
	for (size_t i = 0; i < r->n_fields; i++) {
		const char *name = texts_add(t, &r->field[i].name, true);
		const char *value = texts_add(t, &r->field[i].value, false);

		if (!field_dropped(name, dropped_fields, ARRAY_LEN(dropped_fields)) &&
		    add_field(m, &left, name, value) < 0)
			return -ENOBUFS;
	}
	return 0;
}

static size_t texts_size(const struct http1_request *r)
{
	size_t n = r->method.n + r->target.n + 2;

	for (size_t i = 0; i < r->n_fields; i++)
		n += r->field[i].name.n + r->field[i].value.n + 2;
	return n + 1;
}

static void relay_start(struct sandbox *s, struct http_exchange *x, const struct http1_request *r)
{
	struct texts t = {.n = texts_size(r)};
	AUTO(str_drop) char *block = xcalloc(1, t.n);
	struct h2_message m = {.n = 0};
	struct h2 *h = session_of(s);
	struct relay *relay;

	t.p = block;
	if (build_message(r, &t, &m) < 0) {
		answer_error(x, 431, "the request's header fields are too many or too long");
		return;
	}
	relay = xcalloc(1, sizeof *relay);
	relay->x = x;
	relay->stream =
		h ? h2_request(h, &m, r->body == HTTP1_BODY_NONE, &stream_ops, relay) : NULL;
	if (!relay->stream) {
		free(relay);
		if (h)
			answer_refusal(x, 503, 1,
				       "too many requests of this sandbox are under way");
		else
			answer_not_found(x, s->node.id);
		return;
	}
	relay_link(relay, s);
	http_exchange_set(x, &exchange_ops, relay);
}

void route_request(struct node *n, struct http_exchange *x, const struct http1_request *r)
{
	char id[64];
	char port_text[8];
	uint64_t port = 0;
	char *dash;
	struct sandbox *s;

	if (routing_field(r, "e2b-sandbox-id", id, sizeof id) < 0 ||
	    routing_field(r, "e2b-sandbox-port", port_text, sizeof port_text) < 0 || !id[0] ||
	    !port_text[0] || str_u64(port_text, 65535, &port) < 0 || port == 0) {
		answer_error(x, 400,
			     "E2b-Sandbox-Id and E2b-Sandbox-Port must both be given, once, and be "
			     "valid");
		return;
	}
	if ((dash = strchr(id, '-'))) /* old clients: id-clientid */
		*dash = '\0';
	s = sandbox_id_valid(id) ? sandbox_find(n, id) : NULL;
	if (!s)
		answer_not_found(x, sandbox_id_valid(id) ? id : "");
	else if (port != ENVD_PORT)
		answer_port_closed(x, id, port);
	else if (route_path_is_private(r->target.p, r->target.n))
		answer_error(x, 404, "there is no such path");
	else
		relay_start(s, x, r);
}
