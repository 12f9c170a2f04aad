/* A client's view of a process: see run.h. */
#include "init/test/run.h"

#include "base/alloc.h"
#include "base/str.h"
#include "wire/json.h"

static const char *const names[3] = {"stdout", "stderr", "pty"};

static void take_data(struct run *r, const json_t *data)
{
	for (size_t i = 0; i < 3; i++) {
		const json_t *v = json_object_get(data, names[i]);
		const char *text = json_string_value(v);
		AUTO(mem_drop) uint8_t *bytes = NULL;
		size_t n = 0;

		if (!text)
			continue;
		bytes = xcalloc(strlen(text) + 4, 1);
		if (base64_decode(bytes, text, strlen(text), &n) != 0)
			r->is_bad = true;
		r->total += n;
		if (r->is_counted)
			continue;
		r->out[i] = xrealloc(r->out[i], r->out_n[i] + n + 1, 1);
		memcpy(r->out[i] + r->out_n[i], bytes, n);
		r->out_n[i] += n;
		r->out[i][r->out_n[i]] = 0;
	}
}

static void take_end(struct run *r, const json_t *end)
{
	r->is_bad = r->is_bad || r->has_end;
	r->has_end = true;
	r->exit_code = (int)json_integer_value(json_object_get(end, "exitCode"));
	r->exited = json_is_true(json_object_get(end, "exited"));
	r->status = xstrdup(json_string_value(json_object_get(end, "status")));
	r->error = xstrdup(json_string_value(json_object_get(end, "error")));
}

static void take_event(struct run *r, const json_t *event)
{
	const json_t *start = json_object_get(event, "start");
	const json_t *v;

	if (!r->pid != (start != NULL) || r->has_end)
		r->is_bad = true; /* start comes first and once, nothing after the end */
	if (start)
		r->pid = (int)json_integer_value(json_object_get(start, "pid"));
	if ((v = json_object_get(event, "data")))
		take_data(r, v);
	if (json_object_get(event, "keepalive"))
		r->n_keepalive++;
	if ((v = json_object_get(event, "end")))
		take_end(r, v);
}

static void take_message(struct run *r, uint8_t flags)
{
	AUTO(json_drop) json_t *o = json_loadb((const char *)r->message, r->message_n, 0, NULL);
	const json_t *error = json_object_get(o, "error");

	r->message_n = 0;
	if (!o) {
		r->is_bad = true;
	} else if (flags & ENVELOPE_END) {
		r->is_over = true;
		r->code = xstrdup(json_string_value(json_object_get(error, "code")));
		r->message_text = xstrdup(json_string_value(json_object_get(error, "message")));
	} else {
		take_event(r, json_object_get(o, "event"));
	}
}

static void on_data(struct reply *reply, const uint8_t *p, size_t n)
{
	struct run *r = reply->arg;

	for (;;) {
		const uint8_t *data = NULL;
		size_t data_n = 0;
		size_t used = 0;
		enum envelope_step s = envelope_step(&r->envelope, p, n, &used, &data, &data_n);

		p += used;
		n -= used;
		if (s == ENVELOPE_PAYLOAD) {
			r->message = xrealloc(r->message, r->message_n + data_n, 1);
			memcpy(r->message + r->message_n, data, data_n);
			r->message_n += data_n;
		} else if (s == ENVELOPE_WHOLE) {
			take_message(r, r->envelope.flags);
		} else {
			r->is_bad = r->is_bad || s == ENVELOPE_BROKEN;
			return;
		}
	}
}

static struct run *run_send(struct vm *v, const struct run_options *o, const char *path,
			    const char *body)
{
	struct run *r = xcalloc(1, sizeof *r);
	struct header h[HEADERS_MAX] = {{"content-type", "application/connect+json"}};
	size_t n = strlen(body);
	AUTO(mem_drop) uint8_t *bytes = xcalloc(ENVELOPE_HEAD + n, 1);
	AUTO(str_drop) char *basic = NULL;
	size_t i = 1;

	if (o && o->user) {
		AUTO(str_drop) char *plain = xasprintf("%s:", o->user);
		char text[256];

		base64_encode(text, (const uint8_t *)plain, strlen(plain));
		basic = xasprintf("Basic %s", text);
		h[i++] = (struct header){"authorization", basic};
	}
	if (o && o->timeout_ms)
		h[i++] = (struct header){"connect-timeout-ms", o->timeout_ms};
	if (o && o->keepalive)
		h[i++] = (struct header){"keepalive-ping-interval", o->keepalive};
	if (o && o->after)
		h[i++] = (struct header){"space-after", o->after};
	envelope_head_print(bytes, 0, (uint32_t)n);
	memcpy(bytes + ENVELOPE_HEAD, body, n);
	r->vm = v;
	r->is_counted = o && o->is_counted;
	envelope_init(&r->envelope, ENVELOPE_PAYLOAD_MAX);
	r->reply = vm_send(v, "POST", path, h, bytes, ENVELOPE_HEAD + n);
	r->reply->arg = r;
	r->reply->on_data = on_data;
	r->reply->is_held = o && o->is_held;
	return r;
}

struct run *run_start(struct vm *v, const struct run_options *o, const char *cmd,
		      const char *const args[])
{
	AUTO(json_drop) json_t *list = json_array();
	AUTO(json_drop) json_t *name = json_string(cmd);
	AUTO(str_drop) char *args_text = NULL;
	AUTO(str_drop) char *cmd_text = NULL;
	AUTO(str_drop) char *body = NULL;

	for (; args && *args; args++)
		(void)json_array_append_new(list, json_string(*args));
	args_text = json_dumps(list, 0);
	cmd_text = json_dumps(name, JSON_ENCODE_ANY);
	body = xasprintf("{\"process\":{\"cmd\":%s,\"args\":%s%s%s}%s%s}", cmd_text, args_text,
			 o && o->more ? "," : "", o && o->more ? o->more : "",
			 o && o->outer ? "," : "", o && o->outer ? o->outer : "");
	return run_send(v, o, "/process.Process/Start", body);
}

struct run *run_sh(struct vm *v, const struct run_options *o, const char *script)
{
	return run_start(v, o, "/bin/sh", (const char *const[]){"-c", script, NULL});
}

struct run *run_connect(struct vm *v, const struct run_options *o, const char *selector)
{
	AUTO(str_drop) char *body = xasprintf("{\"process\":{%s}}", selector);

	return run_send(v, o, "/process.Process/Connect", body);
}

bool run_wait(struct run *r, uint64_t ms)
{
	return vm_reply_wait(r->vm, r->reply, ms) && r->is_over;
}

static bool is_started(void *arg)
{
	const struct run *r = arg;

	return r->pid || r->reply->is_closed;
}

bool run_started(struct run *r, uint64_t ms)
{
	return vm_until(r->vm, is_started, r, ms) && r->pid;
}

struct text_wait {
	const struct run *r;
	const char *text;
};

static bool has_text(void *arg)
{
	const struct text_wait *w = arg;
	const struct run *r = w->r;

	return (r->out[0] && strstr(r->out[0], w->text)) ||
	       (r->out[2] && strstr(r->out[2], w->text)) || r->reply->is_closed;
}

bool run_has(struct run *r, const char *text, uint64_t ms)
{
	struct text_wait w = {r, text};

	return vm_until(r->vm, has_text, &w, ms) &&
	       ((r->out[0] && strstr(r->out[0], text)) || (r->out[2] && strstr(r->out[2], text)));
}

void run_free(struct run *r)
{
	if (!r)
		return;
	r->reply->on_data = NULL;
	r->reply->is_discarded = true;
	vm_reply_free(r->reply);
	for (size_t i = 0; i < 3; i++)
		mem_drop(&r->out[i]);
	mem_drop(&r->message);
	mem_drop(&r->status);
	mem_drop(&r->error);
	mem_drop(&r->code);
	mem_drop(&r->message_text);
	free(r);
}
