/* See exec.h.
 *
 * state    waits for                                        leaves to
 * START    the start event                                  RUN, or LAST (the stream ended)
 * RUN      output, the end event, input, signals            LAST
 * LAST     queued output being written                      (done)
 *
 * The output's stream is not read while our own stdout or stderr is full, so a slow reader slows
 * the command down and costs no memory. Input is sent one piece after the other. */
#include "cli/exec.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/exitcode.h"
#include "cli/input.h"
#include "cli/signals.h"
#include "cli/sink.h"
#include "net/loop.h"
#include "wire/connect_code.h"
#include "wire/envelope.h"
#include "wire/json.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SINK_HIGH     (256u * 1024) /* above it the stream is not read on */
#define SINK_MAX      (ENVELOPE_PAYLOAD_MAX + 2u * SINK_HIGH)
#define STOP_GRACE_MS 2000u   /* between the polite signal, the other one, and giving up */
#define PID_MAX_      4194304 /* Linux: PID_MAX_LIMIT */

enum stop_level { STOP_NOT, STOP_TERM, STOP_KILL, STOP_LEAVE };

struct exec {
	struct api *api;
	const struct exec_spec *spec;
	struct exec_result *ret;
	struct fail *fail;
	int err;
	struct call *stream; /* NULL when it ended */
	unsigned status;
	struct envelope envelope;
	struct buf payload;
	size_t held; /* bytes of the stream that were not given back */
	bool has_end;
	int64_t pid; /* 0: not started yet */
	uint64_t began_ns;
	struct sink out;
	struct sink err_out;
	struct input *input;
	struct timer *grace;
	enum stop_level stop;
	struct call *signalling;
	struct signals signals;
};

static void exec_settle(struct exec *x);

static void exec_failed(struct exec *x, int err, const char *text)
{
	if (x->err)
		return;
	x->err = fail_set(x->fail, err, "%s", text);
	x->ret->exit_code = EXIT_OURS;
}

/* --- stopping: a polite signal, then a hard one, then we go without it --- */

static void on_signal_sent(void *arg, int err)
{
	struct exec *x = arg;

	(void)err; /* it may have ended by itself: the stream tells */
	x->signalling = NULL;
	exec_settle(x);
}

static void on_ignored_head(void *arg, unsigned status)
{
	(void)arg, (void)status;
}

static void on_signal_data(void *arg, const uint8_t *p, size_t n)
{
	struct exec *x = arg;

	(void)p;
	call_consume(x->signalling, n);
}

static const struct call_ops signal_ops = {
	.on_head = on_ignored_head,
	.on_data = on_signal_data,
	.on_end = on_signal_sent,
};

static void signal_send(struct exec *x)
{
	AUTO(str_drop)
	char *body = xasprintf("{\"process\":{\"pid\":%lld},\"signal\":\"%s\"}", (long long)x->pid,
			       x->stop == STOP_TERM ? "SIGNAL_SIGTERM" : "SIGNAL_SIGKILL");

	if (x->pid && !x->signalling)
		x->signalling = exec_call(x->api, x->spec, "/process.Process/SendSignal",
					  "application/json", body, strlen(body), &signal_ops, x);
}

static void stop_further(struct exec *x)
{
	x->stop++;
	if (x->stop >= STOP_LEAVE) {
		if (x->stream)
			call_cancel(x->stream);
		return;
	}
	signal_send(x);
	timer_set(x->grace, STOP_GRACE_MS);
}

static void on_grace(void *arg)
{
	stop_further(arg);
}

static void on_signal(void *arg, int signo)
{
	struct exec *x = arg;

	if (!x->ret->signo)
		x->ret->signo = signo;
	if (x->stop < STOP_LEAVE)
		stop_further(x);
}

/* --- output --- */

static void stream_read_on(struct exec *x)
{
	size_t n = x->held;

	if (!x->stream || !n || buf_len(&x->out.queue) > SINK_HIGH ||
	    buf_len(&x->err_out.queue) > SINK_HIGH)
		return;
	x->held = 0;
	call_consume(x->stream, n);
}

/* A reader that went away is SIGPIPE, as in any pipe; all else is told. */
static void sink_failed(struct exec *x, int err)
{
	if (x->err || x->ret->signo)
		return;
	if (err == -EPIPE) {
		if (x->stop == STOP_NOT)
			on_signal(x, SIGPIPE);
		return;
	}
	x->err = fail_errno(x->fail, err, "cannot write the command's output");
	x->ret->exit_code = EXIT_OURS;
	if (x->stop < STOP_LEAVE)
		stop_further(x);
}

static void on_drain(void *arg, size_t n)
{
	struct exec *x = arg;

	(void)n;
	if (x->out.err || x->err_out.err)
		sink_failed(x, x->out.err ? x->out.err : x->err_out.err);
	stream_read_on(x);
	exec_settle(x);
}

static void output_take(struct exec *x, const char *text, struct sink *to)
{
	size_t n = strlen(text);
	AUTO(mem_drop) uint8_t *bytes = xcalloc(3, n / 4 + 1);

	if (base64_decode(bytes, text, n, &n) < 0) {
		exec_failed(x, -EBADMSG, "the sandbox sent output that cannot be read");
		return;
	}
	if (n && !x->ret->first_output_ns)
		x->ret->first_output_ns = clock_mono_ns() - x->began_ns;
	if (to->fd >= 0 && !to->err && sink_write(to, bytes, n) < 0)
		exec_failed(x, -ENOBUFS, "the sandbox sent more output than it may at once");
}

/* Nothing of worth follows: a sandbox that does not end the stream now is not waited for. */
static void end_take(struct exec *x, const json_t *end)
{
	json_t *code = json_object_get(end, "exitCode");
	const char *status = json_string_value(json_object_get(end, "status"));

	x->has_end = true;
	x->ret->exit_code = exitcode_of_end(json_is_integer(code) ? json_integer_value(code) : 0,
					    status ? status : "");
	x->stop = STOP_KILL;
	timer_set(x->grace, STOP_GRACE_MS);
}

static void event_take(struct exec *x, const json_t *event)
{
	const json_t *data = json_object_get(event, "data");
	const json_t *end = json_object_get(event, "end");
	const json_t *start = json_object_get(event, "start");
	const char *out = json_string_value(json_object_get(data, "stdout"));
	const char *err = json_string_value(json_object_get(data, "stderr"));

	if (out)
		output_take(x, out, &x->out);
	if (err)
		output_take(x, err, &x->err_out);
	if (end)
		end_take(x, end);
	if (!start || x->pid)
		return;
	if (json_get_i64(start, "pid", JSON_REQUIRED, 1, PID_MAX_, &x->pid, NULL) < 0) {
		exec_failed(x, -EBADMSG, "the sandbox named no process");
		return;
	}
	if (x->stop != STOP_NOT)
		signal_send(x);
	else if (x->spec->in_fd >= 0)
		x->input = input_start(x->api, x->spec, x->pid);
}

static void error_take(struct exec *x, const json_t *error)
{
	const char *code = json_string_value(json_object_get(error, "code"));
	const char *message = json_string_value(json_object_get(error, "message"));

	if (x->err || x->has_end)
		return;
	x->err = fail_set(x->fail, -EREMOTEIO, "cannot run '%.100s': %.300s", x->spec->argv[0],
			  message ? message : "no reason given");
	x->ret->exit_code = exitcode_of_error(code ? code : "", message ? message : "");
	if (x->ret->exit_code == EXIT_TIMED_OUT)
		(void)fail_set(x->fail, -ETIMEDOUT, "the command ran out of its %u s",
			       x->spec->timeout_ms / 1000);
}

static void payload_take(struct exec *x)
{
	AUTO(json_drop) json_t *j = NULL;
	struct fail why = {0};

	if (json_parse(&j, buf_data(&x->payload), buf_len(&x->payload), ENVELOPE_PAYLOAD_MAX,
		       &why) < 0)
		exec_failed(x, -EBADMSG, "the sandbox sent an event that cannot be read");
	else if (x->envelope.flags & ENVELOPE_END && json_object_get(j, "error"))
		error_take(x, json_object_get(j, "error"));
	else if (json_object_get(j, "event"))
		event_take(x, json_object_get(j, "event"));
	buf_clear(&x->payload);
}

/* --- the stream --- */

static void on_stream_head(void *arg, unsigned status)
{
	struct exec *x = arg;

	x->status = status;
}

static void envelopes_take(struct exec *x, const uint8_t *p, size_t n)
{
	enum envelope_step step;

	do {
		const uint8_t *data = NULL;
		size_t data_n = 0;
		size_t used = 0;

		step = envelope_step(&x->envelope, p, n, &used, &data, &data_n);
		p += used;
		n -= used;
		if (step == ENVELOPE_BROKEN ||
		    (step == ENVELOPE_PAYLOAD && buf_append(&x->payload, data, data_n) < 0))
			exec_failed(x, -EBADMSG, "the sandbox sent a stream that cannot be read");
		else if (step == ENVELOPE_WHOLE)
			payload_take(x);
	} while (step != ENVELOPE_MORE && !x->err);
}

static void on_stream_data(void *arg, const uint8_t *p, size_t n)
{
	struct exec *x = arg;

	x->held += n;
	if (x->status == 200) {
		if (!x->err)
			envelopes_take(x, p, n);
	} else {
		(void)buf_append(&x->payload, p, n); /* an error's JSON; a longer one is cut */
	}
	if (x->err && x->stop == STOP_NOT && x->status == 200) {
		x->stop = STOP_LEAVE;
		call_cancel(x->stream);
		return;
	}
	stream_read_on(x);
}

/* An answer that is no stream: the platform's {"code":N,"message":"..."}, or Connect's. */
static void refusal_take(struct exec *x)
{
	AUTO(json_drop) json_t *j = NULL;
	const char *message = NULL;
	const char *code = NULL;

	if (json_parse(&j, buf_data(&x->payload), buf_len(&x->payload), ENVELOPE_PAYLOAD_MAX,
		       NULL) == 0) {
		message = json_string_value(json_object_get(j, "message"));
		code = json_string_value(json_object_get(j, "code"));
	}
	x->err = fail_set(x->fail, -EREMOTEIO, "cannot run '%.100s': %.300s", x->spec->argv[0],
			  message ? message : "the sandbox does not answer");
	x->ret->exit_code = exitcode_of_error(code ? code : "", message ? message : "");
}

static void on_stream_end(void *arg, int err)
{
	struct exec *x = arg;

	x->stream = NULL;
	x->ret->total_ns = clock_mono_ns() - x->began_ns;
	if (x->has_end || x->err || x->stop == STOP_LEAVE) {
		exec_settle(x);
		return;
	}
	if (err == -ECONNREFUSED)
		exec_failed(x, err, "no node runs here: start one with `space up`");
	else if (x->status && x->status != 200)
		refusal_take(x);
	else
		exec_failed(x, err ? err : -EPIPE,
			    "the command's stream was cut: has its sandbox ended? `space ps -a` "
			    "says so");
	exec_settle(x);
}

static const struct call_ops stream_ops = {
	.on_head = on_stream_head,
	.on_data = on_stream_data,
	.on_end = on_stream_end,
};

static char *start_body(const struct exec_spec *s, size_t *ret_n)
{
	AUTO(json_drop) json_t *args = json_array();
	AUTO(json_drop) json_t *j = NULL;
	AUTO(str_drop) char *text = NULL;
	char *body;
	size_t n;

	for (size_t i = 1; s->argv[i]; i++)
		if (json_array_append_new(args, json_string(s->argv[i])) < 0)
			return NULL; /* not UTF-8 */
	j = json_pack("{s:{s:s,s:O,s:O*,s:s*},s:b}", "process", "cmd", s->argv[0], "args", args,
		      "envs", s->env, "cwd", s->cwd, "stdin", s->in_fd >= 0);
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	if (!text)
		return NULL;
	n = strlen(text);
	body = xcalloc(1, ENVELOPE_HEAD + n + 1);
	envelope_head_print((uint8_t *)body, 0, (uint32_t)n);
	memcpy(body + ENVELOPE_HEAD, text, n);
	*ret_n = ENVELOPE_HEAD + n;
	return body;
}

struct call *exec_call(struct api *a, const struct exec_spec *s, const char *path, const char *type,
		       const void *body, size_t n, const struct call_ops *ops, void *arg)
{
	char basic[256];
	char user[128];
	char timeout[16];
	struct api_header h[API_HEADERS_MAX];
	size_t n_h = 0;
	bool is_stream = strcmp(type, "application/json") != 0;

	h[n_h++] = (struct api_header){"E2b-Sandbox-Id", s->sandbox};
	h[n_h++] = (struct api_header){"E2b-Sandbox-Port", "49983"};
	h[n_h++] = (struct api_header){"Content-Type", type};
	h[n_h++] = (struct api_header){"Connect-Protocol-Version", "1"};
	if (s->token && *s->token)
		h[n_h++] = (struct api_header){"X-Access-Token", s->token};
	if (s->user) {
		int len = snprintf(user, sizeof user, "%.64s:", s->user);

		(void)snprintf(basic, sizeof basic, "Basic ");
		base64_encode(basic + strlen("Basic "), (const uint8_t *)user, (size_t)len);
		h[n_h++] = (struct api_header){"Authorization", basic};
	}
	if (is_stream && s->timeout_ms) {
		(void)snprintf(timeout, sizeof timeout, "%u", s->timeout_ms);
		h[n_h++] = (struct api_header){"Connect-Timeout-Ms", timeout};
	}
	return call_start(a,
			  &(struct call_spec){
				  .method = "POST",
				  .path = path,
				  .headers = h,
				  .n_headers = n_h,
				  .body = body,
				  .body_n = n,
				  .timeout_ms = is_stream ? 0 : API_TIMEOUT_MS,
			  },
			  ops, arg);
}

/* Ends the loop when nothing is left to wait for. */
static void exec_settle(struct exec *x)
{
	if (x->stream || x->signalling || !sink_is_empty(&x->out) || !sink_is_empty(&x->err_out))
		return;
	loop_stop(api_loop(x->api));
}

static void exec_done(struct exec *x)
{
	signals_done(&x->signals);
	input_free(x->input);
	timer_free(x->grace);
	sink_done(&x->out);
	sink_done(&x->err_out);
	buf_done(&x->payload);
}

int exec_run(struct api *a, const struct exec_spec *s, struct exec_result *ret, struct fail *f)
{
	struct loop *l = api_loop(a);
	struct exec x = {.api = a, .spec = s, .ret = ret, .fail = f};
	AUTO(mem_drop) char *body = NULL;
	size_t n;

	*ret = (struct exec_result){.exit_code = EXIT_OURS};
	body = start_body(s, &n);
	if (!body)
		return fail_set(f, -EINVAL, "the command or its environment is not valid UTF-8");
	envelope_init(&x.envelope, ENVELOPE_PAYLOAD_MAX);
	buf_init(&x.payload, ENVELOPE_PAYLOAD_MAX);
	sink_init(&x.out, l, s->out_fd, SINK_MAX, on_drain, &x);
	sink_init(&x.err_out, l, s->err_fd, SINK_MAX, on_drain, &x);
	x.grace = timer_new(l, on_grace, &x);
	signals_watch(&x.signals, l, on_signal, &x);
	x.began_ns = clock_mono_ns();
	x.stream = exec_call(a, s, "/process.Process/Start", "application/connect+json", body, n,
			     &stream_ops, &x);
	loop_run(l);
	exec_done(&x);
	if (ret->signo)
		ret->exit_code = EXIT_SIGNAL + ret->signo;
	return x.err;
}
