/* See answer.h. */
#include "spaced/answer.h"

#include "base/alloc.h"
#include "net/http_server.h"

#include <stdio.h>

static const char failed[] = "{\"code\":500,\"message\":\"the answer could not be written\"}";

void answer_json(struct http_exchange *x, unsigned status, const json_t *o)
{
	size_t n = 0;
	AUTO(str_drop) char *text = o ? json_print(o, ANSWER_MAX, &n) : NULL;

	if (text)
		http_respond_full(x, status, "application/json", text, n);
	else
		http_respond_full(x, 500, "application/json", failed, sizeof failed - 1);
}

void answer_error(struct http_exchange *x, unsigned status, const char *message)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:i, s:s}", "code", (int)status, "message", message);

	answer_json(x, status, o);
}

void answer_refusal(struct http_exchange *x, unsigned status, unsigned retry_after_s,
		    const char *message)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:i, s:s}", "code", (int)status, "message", message);
	size_t n = 0;
	AUTO(str_drop) char *text = o ? json_print(o, ANSWER_MAX, &n) : NULL;
	char seconds[16];
	struct http_field h[] = {{"Content-Type", "application/json"}, {"Retry-After", seconds}};

	(void)snprintf(seconds, sizeof seconds, "%u", retry_after_s); /* fits by its size */
	if (!text || !retry_after_s) {
		answer_error(x, status, message);
		return;
	}
	if (http_respond(x, status, h, 2, n) == 0 && http_write(x, text, n) == 0)
		http_finish(x);
	else
		http_abort(x);
}

void answer_empty(struct http_exchange *x, unsigned status)
{
	http_respond_full(x, status, NULL, NULL, 0);
}

void answer_text(struct http_exchange *x, const char *text, size_t n)
{
	http_respond_full(x, 200, "text/plain; charset=utf-8", text, n);
}
