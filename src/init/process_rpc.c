/* process.Process: parse, find, act, answer. See process_rpc.h. */
#include "init/process_rpc.h"

#include "base/alloc.h"
#include "init/guest.h"
#include "init/limits.h"
#include "init/subscriber.h"
#include "wire/json.h"

#include <errno.h>

static const char not_ready[] = "the sandbox is not initialised yet";

void rpc_start(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(start_request_done) struct start_request q = {0};
	struct fail f = {0};
	int err;

	if (!c->guest->is_ready) {
		call_error(c, CONNECT_UNAVAILABLE, not_ready);
		return;
	}
	err = start_request_parse(&q, p, n, &f);
	if (err)
		call_refuse(c, err, &f);
	else
		subscriber_start(c, &q);
}

/* Finds the process or answers that there is none. */
static struct process *find(struct call *c, const struct selector *s, bool with_records)
{
	struct process *p = process_find(&c->guest->processes, s, with_records);
	AUTO(str_drop) char *text = NULL;

	if (p)
		return p;
	text = s->pid ? xasprintf("process with pid %d not found", (int)s->pid)
		      : xasprintf("process with tag %s not found", s->tag);
	call_error(c, CONNECT_NOT_FOUND, text);
	return NULL;
}

void rpc_connect(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(selector_done) struct selector s = {0};
	struct fail f = {0};
	int err = selector_request_parse(&s, p, n, &f);
	struct process *process;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	process = find(c, &s, true);
	if (process)
		subscriber_connect(c, process);
}

static json_t *envs_object(const struct env *e)
{
	json_t *o = json_object();

	for (size_t i = 0; i < e->n; i++) {
		const char *eq = strchr(e->v[i], '=');
		AUTO(str_drop) char *name = xstrndup(e->v[i], (size_t)(eq - e->v[i]));

		(void)json_object_set_new(o, name, json_string(eq + 1));
	}
	return o;
}

static json_t *process_object(const struct process *p)
{
	const struct start_request *q = process_request(p);
	json_t *args = json_array();
	json_t *config;
	json_t *o;

	for (size_t i = 0; i < q->n_args; i++)
		(void)json_array_append_new(args, json_string(q->args[i]));
	config = json_pack("{s:s, s:o, s:o}", "cmd", q->cmd, "args", args, "envs",
			   envs_object(&q->envs));
	if (*q->cwd)
		(void)json_object_set_new(config, "cwd", json_string(q->cwd));
	o = json_pack("{s:o, s:i}", "config", config, "pid", (int)process_pid(p));
	if (process_tag(p))
		(void)json_object_set_new(o, "tag", json_string(process_tag(p)));
	return o;
}

void rpc_list(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(json_drop) json_t *q = NULL;
	struct fail f = {0};
	int err = json_parse(&q, p, n, MESSAGE_MAX, &f);
	const struct processes *ps = &c->guest->processes;
	json_t *list;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	list = json_array();
	for (struct process *x = process_next(ps, NULL); x; x = process_next(ps, x))
		(void)json_array_append_new(list, process_object(x));
	call_json(c, json_pack("{s:o}", "processes", list));
}

/* --- input --- */

/* A SendInput that waits for the pipe. */
static void input_on_done(void *arg, int err)
{
	struct call *c = arg;

	c->on_close = NULL;
	if (err)
		call_error(c, CONNECT_FAILED_PRECONDITION,
			   "the process does not read its input: broken pipe");
	else
		call_ok(c);
}

static void input_on_close(void *item)
{
	input_forget(item); /* the client is gone; the bytes go on */
}

static void refuse_input(struct call *c, int err)
{
	if (err == -EPIPE)
		call_error(c, CONNECT_FAILED_PRECONDITION, "stdin not enabled or closed");
	else
		call_error(c, CONNECT_RESOURCE_EXHAUSTED, "too much input waits for the process");
}

void rpc_send_input(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(input_request_done) struct input_request q = {0};
	struct fail f = {0};
	struct input_item *item = NULL;
	int err = input_request_parse(&q, p, n, &f);
	struct process *process;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	process = find(c, &q.process, false);
	if (!process)
		return;
	if (q.is_pty != process_request(process)->has_pty) {
		call_error(c, CONNECT_FAILED_PRECONDITION,
			   q.is_pty ? "the process has no terminal" : "the process has a terminal");
		return;
	}
	err = input_push(process_input(process), q.data, q.n, input_on_done, c, &item);
	q.data = NULL; /* taken in any case */
	if (err) {
		refuse_input(c, err);
		return;
	}
	c->arg = item;
	c->on_close = input_on_close;
}

void rpc_close_stdin(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(selector_done) struct selector s = {0};
	struct fail f = {0};
	int err = selector_request_parse(&s, p, n, &f);
	struct process *process;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	process = find(c, &s, false);
	if (!process)
		return;
	if (process_request(process)->has_pty)
		call_error(c, CONNECT_FAILED_PRECONDITION,
			   "a terminal's input is ended by sending Ctrl-D");
	else if (input_close(process_input(process)) != 0)
		refuse_input(c, -EPIPE);
	else
		call_ok(c);
}

void rpc_send_signal(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(signal_request_done) struct signal_request q = {0};
	struct fail f = {0};
	int err = signal_request_parse(&q, p, n, &f);
	struct process *process;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	process = find(c, &q.process, false);
	if (!process)
		return;
	if (process_signal(process, q.signo) != 0)
		call_error(c, CONNECT_NOT_FOUND, "the process has ended");
	else
		call_ok(c);
}

void rpc_update(struct call *c, const uint8_t *p, size_t n)
{
	AUTO(update_request_done) struct update_request q = {0};
	struct fail f = {0};
	int err = update_request_parse(&q, p, n, &f);
	struct process *process;

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	process = find(c, &q.process, false);
	if (!process)
		return;
	if (q.has_size && process_resize(process, q.cols, q.rows) != 0)
		call_error(c, CONNECT_FAILED_PRECONDITION, "the process has no terminal");
	else
		call_ok(c);
}
