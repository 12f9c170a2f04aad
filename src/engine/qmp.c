/* See qmp.h. */
#include "engine/qmp.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "net/loop.h"
#include "os/fd.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define READ_SIZE      (16u * 1024)
#define NAME_MAX_BYTES 64u
#define TEXT_MAX_BYTES 4096u
#define REASON_SIZE    200u

struct command {
	struct command *next;
	int64_t id;
	char name[NAME_MAX_BYTES];
	uint64_t deadline_ms; /* counted from when it is the oldest open one */
	qmp_done *done;
	void *arg;
	char *line; /* not sent yet */
	size_t line_n;
	size_t sent;
	int fd; /* dup'ed, -1 none */
};

struct qmp {
	struct loop *loop;
	int fd;
	const struct qmp_ops *ops;
	void *arg;
	struct watch *watch;
	struct timer *timer;
	struct buf in;
	struct command *first; /* in the order asked, which is the order of the answers */
	struct command **last;
	size_t n_open;
	size_t n_events;
	int64_t next_id;
	unsigned busy;
	bool has_greeting;
	bool is_over;
	bool is_freed;
};

static void command_free(struct command *c)
{
	fd_drop(&c->fd);
	free(c->line);
	free(c);
}

static void release(struct qmp *q)
{
	struct command *c;

	if (!q->is_freed || q->busy)
		return;
	while ((c = q->first)) {
		q->first = c->next;
		command_free(c);
	}
	buf_done(&q->in);
	fd_drop(&q->fd);
	free(q);
}

static struct command *command_take(struct qmp *q)
{
	struct command *c = q->first;

	q->first = c->next;
	if (!q->first)
		q->last = &q->first;
	q->n_open--;
	if (q->first)
		timer_set(q->timer, q->first->deadline_ms);
	else
		timer_clear(q->timer);
	return c;
}

static void over(struct qmp *q, const struct fail *why)
{
	if (q->is_over || q->is_freed)
		return;
	q->is_over = true;
	watch_set(q->watch, 0);
	while (!q->is_freed && q->first) {
		struct command *c = command_take(q);

		if (c->done)
			c->done(c->arg, -EPIPE, NULL, why);
		command_free(c);
	}
	if (q->is_freed)
		return;
	timer_clear(q->timer);
	q->ops->on_end(q->arg, why);
}

static void ended(struct qmp *q, int code, const char *what)
{
	struct fail f = {0};

	(void)fail_set(&f, code, "the VM monitor %s", what);
	over(q, &f);
}

static void broken(struct qmp *q, const char *what)
{
	ended(q, -EPROTO, what);
}

static void answer(struct qmp *q, int r, const json_t *ret, const struct fail *f)
{
	struct command *c = command_take(q);
	struct fail why = *f;

	if (c->done)
		c->done(c->arg, r, ret, f);
	else if (r) {
		(void)fail_prefix(&why, "'%s' was refused", c->name);
		over(q, &why);
	}
	command_free(c);
}

static void on_refusal(struct qmp *q, const json_t *error)
{
	struct fail f = {0};
	struct fail bad = {0};
	const char *text = "";
	char safe[REASON_SIZE];

	if (json_get_str(error, "desc", JSON_OPTIONAL, 0, TEXT_MAX_BYTES, &text, &bad) < 0)
		text = "an unreadable reason";
	(void)str_escape(safe, sizeof safe, text, strlen(text), "");
	(void)fail_set(&f, -EREMOTEIO, "%s", safe);
	answer(q, -EREMOTEIO, NULL, &f);
}

static void on_message(struct qmp *q, const json_t *m)
{
	const json_t *ret = json_object_get(m, "return");
	const json_t *error = json_object_get(m, "error");
	const json_t *id = json_object_get(m, "id");
	const char *event = json_string_value(json_object_get(m, "event"));
	const struct fail none = {0};

	if (json_object_get(m, "QMP")) {
		if (q->has_greeting)
			broken(q, "greeted twice");
		q->has_greeting = true;
	} else if (event) {
		if (++q->n_events > QMP_EVENTS_MAX)
			broken(q, "sent too many events");
		else
			q->ops->on_event(q->arg, event, json_object_get(m, "data"));
	} else if (!q->first || !json_is_integer(id) || json_integer_value(id) != q->first->id) {
		broken(q, "answered what was not asked");
	} else if (ret && !error) {
		answer(q, 0, ret, &none);
	} else if (json_is_object(error) && !ret) {
		on_refusal(q, error);
	} else {
		broken(q, "sent an answer that is none");
	}
}

static void lines_take(struct qmp *q)
{
	const uint8_t *end;

	while (!q->is_over && !q->is_freed &&
	       (end = memchr(buf_data(&q->in), '\n', buf_len(&q->in)))) {
		AUTO(json_drop) json_t *m = NULL;
		size_t n = (size_t)(end - buf_data(&q->in));
		struct fail bad = {0};

		if (json_parse(&m, buf_data(&q->in), n, QMP_LINE_MAX, &bad) < 0) {
			broken(q, "sent broken JSON");
			return;
		}
		buf_consume(&q->in, n + 1);
		on_message(q, m);
	}
}

static void receive(struct qmp *q)
{
	size_t room;
	uint8_t *p = buf_space(&q->in, READ_SIZE, &room);
	ssize_t n;

	if (!p) {
		broken(q, "sent a line that is too long");
		return;
	}
	n = read(q->fd, p, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		ended(q, -EPIPE, "hung up");
		return;
	}
	buf_commit(&q->in, (size_t)n);
	lines_take(q);
}

/* One sendmsg: the descriptor goes with the first byte. Returns 0, -EAGAIN or another errno. */
static int line_send(struct qmp *q, struct command *c)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec v = {c->line + c->sent, c->line_n - c->sent};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	ssize_t n;

	if (c->fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof control.bytes;
		control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.align), &c->fd, sizeof c->fd);
	}
	do
		n = sendmsg(q->fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c->sent += (size_t)n;
	if (n > 0)
		fd_drop(&c->fd);
	return c->sent < c->line_n ? -EAGAIN : 0;
}

static void send_open(struct qmp *q)
{
	bool is_waiting = false;
	int r;

	for (struct command *c = q->first; c && !is_waiting; c = c->next) {
		if (c->sent == c->line_n)
			continue;
		r = line_send(q, c);
		if (r && r != -EAGAIN) {
			ended(q, -EPIPE, "takes no more commands");
			return;
		}
		is_waiting = r == -EAGAIN;
	}
	if (!q->is_over && !q->is_freed)
		watch_set(q->watch, is_waiting ? WATCH_READ | WATCH_WRITE : WATCH_READ);
}

static void on_watch(void *arg, int events)
{
	struct qmp *q = arg;

	q->busy++;
	if (events & WATCH_READ)
		receive(q);
	if (!q->is_over && !q->is_freed)
		send_open(q);
	q->busy--;
	release(q);
}

static void on_deadline(void *arg)
{
	struct qmp *q = arg;
	struct fail f = {0};

	q->busy++;
	(void)fail_set(&f, -ETIMEDOUT, "the VM monitor did not answer '%s' in time",
		       q->first ? q->first->name : "anything");
	over(q, &f);
	q->busy--;
	release(q);
}

struct qmp *qmp_new(struct loop *l, int fd, const struct qmp_ops *ops, void *arg)
{
	struct qmp *q = xcalloc(1, sizeof *q);

	q->loop = l;
	q->fd = fd;
	q->ops = ops;
	q->arg = arg;
	q->last = &q->first;
	q->next_id = 1;
	buf_init(&q->in, QMP_LINE_MAX);
	(void)fd_set_nonblock(fd, true); /* a socket of ours: cannot fail */
	q->watch = watch_new(l, fd, on_watch, q);
	q->timer = timer_new(l, on_deadline, q);
	watch_set(q->watch, WATCH_READ);
	return q;
}

void qmp_free(struct qmp *q)
{
	if (!q || q->is_freed)
		return;
	q->is_freed = true;
	watch_free(q->watch);
	timer_free(q->timer);
	release(q);
}

static struct command *command_make(struct qmp *q, const char *name, json_t *args, int fd)
{
	json_t *m = json_pack("{s:s, s:I, s:o*}", "execute", name, "id", (json_int_t)q->next_id,
			      "arguments", args);
	struct command *c = xcalloc(1, sizeof *c);
	size_t n;

	assert(m);
	c->id = q->next_id++;
	(void)snprintf(c->name, sizeof c->name, "%s", name);
	c->line = json_print(m, QMP_LINE_MAX - 1, &n);
	assert(c->line);
	json_decref(m);
	c->line = xrealloc(c->line, n + 1, 1);
	c->line[n] = '\n'; /* in place of the NUL */
	c->line_n = n + 1;
	c->fd = -1;
	if (fd >= 0)
		c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return c;
}

int qmp_command(struct qmp *q, const char *name, json_t *args, int fd, uint64_t deadline_ms,
		qmp_done *done, void *arg)
{
	struct command *c;

	if (q->is_over || q->is_freed || q->n_open >= QMP_COMMANDS_MAX) {
		json_decref(args);
		return q->n_open >= QMP_COMMANDS_MAX ? -ENOBUFS : -EPIPE;
	}
	c = command_make(q, name, args, fd);
	if (fd >= 0 && c->fd < 0) {
		command_free(c);
		return -EMFILE;
	}
	c->deadline_ms = deadline_ms;
	c->done = done;
	c->arg = arg;
	*q->last = c;
	q->last = &c->next;
	if (q->n_open++ == 0)
		timer_set(q->timer, deadline_ms);
	/* Written from the loop, so that no callback comes from inside this call. */
	watch_set(q->watch, WATCH_READ | WATCH_WRITE);
	return 0;
}
