/* A call of api.h over net/http_client. */
#include "cli/api_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "net/http_client.h"
#include "net/loop.h"

#include <errno.h>

struct call {
	struct api *api;
	const struct call_ops *ops;
	void *arg;
	struct http_call *http; /* NULL: it could not be sent, `refusal` will say so */
	struct timer *refusal;
};

int calls_init(struct api *a, struct fail *f)
{
	return http_client_new(a->loop, a->url, a->sock, &a->http, f);
}

void calls_done(struct api *a)
{
	http_client_free(a->http);
	a->http = NULL;
}

static void call_free(struct call *c)
{
	http_call_free(c->http);
	timer_free(c->refusal);
	free(c);
}

static void on_head(void *arg, unsigned status)
{
	struct call *c = arg;
	const char *token = http_call_field(c->http, "x-next-token");

	if (!token || str_copy(c->api->next_token, sizeof c->api->next_token, token) < 0)
		c->api->next_token[0] = 0;
	c->ops->on_head(c->arg, status);
}

static void on_data(void *arg, const uint8_t *p, size_t n)
{
	struct call *c = arg;

	c->ops->on_data(c->arg, p, n);
}

static void on_end(void *arg, int err)
{
	struct call *c = arg;
	const struct call_ops *ops = c->ops;
	void *owner = c->arg;

	call_free(c);
	ops->on_end(owner, err);
}

static void on_refusal(void *arg)
{
	on_end(arg, -EINVAL);
}

struct call *call_start(struct api *a, const struct call_spec *s, const struct call_ops *ops,
			void *arg)
{
	static const struct http_call_ops http_ops = {
		.on_head = on_head,
		.on_data = on_data,
		.on_end = on_end,
	};
	struct call *c = xcalloc(1, sizeof *c);
	struct http_call_field fields[API_HEADERS_MAX];
	const struct http_call_spec spec = {
		.method = s->method,
		.path = s->path,
		.fields = fields,
		.n_fields = s->n_headers,
		.body = s->body,
		.body_n = s->body_n,
		.timeout_ms = s->timeout_ms,
	};

	assert(s->n_headers <= API_HEADERS_MAX);
	for (size_t i = 0; i < s->n_headers; i++)
		fields[i] = (struct http_call_field){s->headers[i].name, s->headers[i].value};
	c->api = a;
	c->ops = ops;
	c->arg = arg;
	c->http = http_call_start(a->http, &spec, &http_ops, c);
	if (!c->http) {
		c->refusal = timer_new(a->loop, on_refusal, c);
		timer_set(c->refusal, 0);
	}
	return c;
}

void call_consume(struct call *c, size_t n)
{
	http_call_consume(c->http, n);
}

void call_cancel(struct call *c)
{
	if (c->http)
		http_call_cancel(c->http);
}

void call_abandon(struct call *c)
{
	call_free(c);
}
