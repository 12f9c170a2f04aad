/* The QMP client against a scripted peer that may be captured: split lines, pipelining,
 * descriptors, refusals, garbage, over-long lines, wrong ids, floods, silence, hang-up. */
#include "engine/qmp.h"

#include "base/str.h"
#include "base/test.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/seqpacket.h"
#include "os/sock.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define DEADLINE_MS 2000

struct seen {
	struct loop *loop;
	struct qmp *q;
	int peer;
	/* One letter a callback: a answer, r refusal, p broken pipe, e event, E end. */
	char log[256];
	struct fail end;
	struct fail refusal;
	char event[64];
	bool is_freeing; /* frees the client inside the first callback */
};

static void note(struct seen *s, const char *c)
{
	size_t n = strlen(s->log);

	(void)snprintf(s->log + n, sizeof s->log - n, "%s", c);
	if (s->is_freeing) {
		qmp_free(s->q);
		s->q = NULL;
		loop_stop(s->loop);
	}
}

static void on_event(void *arg, const char *name, const json_t *data)
{
	struct seen *s = arg;

	(void)data;
	(void)snprintf(s->event, sizeof s->event, "%s", name);
	if (strlen(s->log) < 32)
		note(s, "e");
}

static void on_end(void *arg, const struct fail *why)
{
	struct seen *s = arg;

	s->end = *why;
	note(s, "E");
	loop_stop(s->loop);
}

static const struct qmp_ops ops = {.on_event = on_event, .on_end = on_end};

static void on_done(void *arg, int r, const json_t *ret, const struct fail *f)
{
	struct seen *s = arg;

	(void)ret;
	if (r == -EREMOTEIO)
		s->refusal = *f;
	note(s, r == 0 ? "a" : r == -EPIPE ? "p" : "r");
}

static void on_stop(void *arg)
{
	struct seen *s = arg;

	loop_stop(s->loop);
}

/* Runs two commands against a peer that says `script` at once, then hangs up or stays silent. */
static void play(struct seen *s, const char *script, size_t n, bool hangs_up)
{
	struct timer *stop;
	int pair[2];

	CHECK(sock_pair(SOCK_STREAM, pair) == 0);
	s->loop = loop_new();
	s->peer = pair[1];
	s->q = qmp_new(s->loop, pair[0], &ops, s);
	CHECK(qmp_command(s->q, "one", NULL, -1, DEADLINE_MS, on_done, s) == 0);
	CHECK(qmp_command(s->q, "two", json_pack("{s:i}", "x", 1), -1, DEADLINE_MS, on_done, s) ==
	      0);
	(void)fd_set_nonblock(pair[1], false);
	CHECK(fd_write_all(pair[1], script, n) == 0);
	if (hangs_up)
		(void)shutdown(pair[1], SHUT_WR);
	stop = timer_new(s->loop, on_stop, s);
	timer_set(stop, 100);
	loop_run(s->loop);
	timer_free(stop);
	qmp_free(s->q);
	fd_drop(&s->peer);
	loop_free(s->loop);
}

#define HELLO "{\"QMP\": {\"version\": {}}}\r\n"
#define ONE   "{\"return\": {}, \"id\": 1}\r\n"
#define TWO   "{\"return\": {\"a\": 1}, \"id\": 2}\r\n"

static const struct {
	const char *says;
	const char *script;
	bool hangs_up;
	const char *want_log;
	const char *want_end; /* part of the sentence */
} cases[] = {
	{"both answered", HELLO ONE TWO, false, "aa", ""},
	{"events between", HELLO "{\"event\":\"STOP\"}\n" ONE "{\"event\":\"RESUME\"}\n" TWO, false,
	 "eaea", ""},
	{"a refusal is the command's",
	 HELLO "{\"error\":{\"class\":\"X\",\"desc\":\"no\"},\"id\":1}\n" TWO, false, "ra", ""},
	{"hang-up", HELLO ONE, true, "apE", "hung up"},
	{"hang-up in a line", HELLO "{\"ret", true, "ppE", "hung up"},
	{"garbage", "hello\n", false, "ppE", "broken JSON"},
	{"not an object", "[]\n", false, "ppE", "broken JSON"},
	{"answer of another", HELLO TWO, false, "ppE", "not asked"},
	{"answer twice", HELLO ONE ONE, false, "apE", "not asked"},
	{"answer without id", HELLO "{\"return\":{}}\n", false, "ppE", "not asked"},
	{"answer after all", HELLO ONE TWO TWO, false, "aaE", "not asked"},
	{"both at once", HELLO "{\"return\":{},\"error\":{},\"id\":1}\n", false, "ppE", "none"},
	{"neither", HELLO "{\"id\":1}\n", false, "ppE", "none"},
	{"an error of a wrong type", HELLO "{\"error\":5,\"id\":1}\n", false, "ppE", "none"},
	{"two greetings", HELLO HELLO, false, "ppE", "greeted twice"},
	{"an id of a wrong type", HELLO "{\"return\":{},\"id\":\"1\"}\n", false, "ppE",
	 "not asked"},
	{"a description of a wrong type", HELLO "{\"error\":{\"desc\":7},\"id\":1}\n" TWO, false,
	 "ra", ""},
	{"deep JSON",
	 HELLO "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
	       "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}\n",
	 false, "ppE", "broken JSON"},
	{"silence", "", false, "", ""},
};

static void test_table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct seen s = {.peer = -1};

		play(&s, cases[i].script, strlen(cases[i].script), cases[i].hangs_up);
		EXPECT_STR(cases[i].says, s.log, cases[i].want_log);
		EXPECT(cases[i].says, strstr(s.end.text, cases[i].want_end) != NULL);
	}
}

static void test_line_limit(void)
{
	static char line[QMP_LINE_MAX + 1];
	struct seen at = {.peer = -1};
	struct seen past = {.peer = -1};
	size_t n;

	/* One event of exactly QMP_LINE_MAX bytes with its newline, and one that is longer. */
	memset(line, ' ', sizeof line);
	memcpy(line, "{\"event\":\"X\"}", 13);
	line[QMP_LINE_MAX - 1] = '\n';
	play(&at, line, QMP_LINE_MAX, false);
	EXPECT_STR("a line at the limit", at.log, "e");
	line[QMP_LINE_MAX - 1] = ' ';
	line[QMP_LINE_MAX] = '\n';
	n = QMP_LINE_MAX + 1;
	play(&past, line, n, false);
	EXPECT_STR("a line past the limit", past.log, "ppE");
}

static void test_event_flood(void)
{
	static char flood[(QMP_EVENTS_MAX + 1) * 14];
	struct seen at = {.peer = -1};
	struct seen past = {.peer = -1};

	for (size_t i = 0; i <= QMP_EVENTS_MAX; i++)
		memcpy(flood + i * 14, "{\"event\":\"X\"}\n", 14);
	play(&at, flood, QMP_EVENTS_MAX * 14, false);
	EXPECT("as many events as allowed", at.end.code == 0);
	play(&past, flood, sizeof flood, false);
	EXPECT("one more", strstr(past.end.text, "too many events") != NULL);
}

static void test_deadline(void)
{
	struct seen s = {.peer = -1};
	int pair[2];

	CHECK(sock_pair(SOCK_STREAM, pair) == 0);
	s.loop = loop_new();
	s.q = qmp_new(s.loop, pair[0], &ops, &s);
	CHECK(qmp_command(s.q, "stop", NULL, -1, 20, on_done, &s) == 0);
	loop_run(s.loop);
	EXPECT_STR("no answer", s.log, "pE");
	EXPECT_EQ("it says what kind", s.end.code, -ETIMEDOUT);
	EXPECT_STR("it says which", s.end.text, "the VM monitor did not answer 'stop' in time");
	EXPECT_EQ("nothing more can be asked", qmp_command(s.q, "x", NULL, -1, 20, on_done, &s),
		  -EPIPE);
	qmp_free(s.q);
	(void)close(pair[1]);
	loop_free(s.loop);
}

/* What a captured monitor says stands in logs and messages: whole characters, none of control. */
static void test_refusal_text(void)
{
	static const char head[] = HELLO "{\"error\":{\"desc\":\"\\u001b[2J";
	static const char tail[] = "\"},\"id\":1}\n" TWO;
	char script[1024];
	struct seen s = {.peer = -1};
	size_t n = (size_t)snprintf(script, sizeof script, "%s", head);

	while (n < 600)
		n += (size_t)snprintf(script + n, sizeof script - n, "\u00e4");
	n += (size_t)snprintf(script + n, sizeof script - n, "%s", tail);
	play(&s, script, n, false);
	EXPECT_STR("refused, then goes on", s.log, "ra");
	EXPECT("escaped", str_starts(s.refusal.text, "\\x1b[2J\u00e4"));
	EXPECT("cut", strlen(s.refusal.text) < 200);
	EXPECT("whole characters",
	       utf8_valid((const uint8_t *)s.refusal.text, strlen(s.refusal.text)));
}

static void test_free_inside(void)
{
	struct seen s = {.peer = -1, .is_freeing = true};

	play(&s, HELLO ONE TWO, strlen(HELLO ONE TWO), false);
	EXPECT_STR("freed in the first answer, nothing after", s.log, "a");
}

static void test_limits(void)
{
	struct seen s = {.peer = -1};
	int pair[2];
	int r = 0;

	CHECK(sock_pair(SOCK_STREAM, pair) == 0);
	s.loop = loop_new();
	s.q = qmp_new(s.loop, pair[0], &ops, &s);
	for (size_t i = 0; i < QMP_COMMANDS_MAX && !r; i++)
		r = qmp_command(s.q, "x", NULL, -1, DEADLINE_MS, on_done, &s);
	EXPECT_EQ("as many open commands as allowed", r, 0);
	EXPECT_EQ("one more", qmp_command(s.q, "x", NULL, -1, DEADLINE_MS, on_done, &s), -ENOBUFS);
	qmp_free(s.q);
	EXPECT_STR("free tells nobody", s.log, "");
	(void)close(pair[1]);
	loop_free(s.loop);
}

/* What arrives at the monitor: lines in order, the descriptor with its command. */
static void test_sent(void)
{
	struct seen s = {.peer = -1};
	struct timer *stop;
	char text[256] = "";
	int fds[4];
	size_t n = 0;
	size_t n_fds = 0;
	int pair[2];
	int pipe_fds[2];

	CHECK(sock_pair(SOCK_STREAM, pair) == 0);
	CHECK(pipe(pipe_fds) == 0);
	s.loop = loop_new();
	s.q = qmp_new(s.loop, pair[0], &ops, &s);
	CHECK(qmp_command(s.q, "getfd", json_pack("{s:s}", "fdname", "a"), pipe_fds[0], DEADLINE_MS,
			  on_done, &s) == 0);
	(void)close(pipe_fds[0]); /* it was dup'ed */
	stop = timer_new(s.loop, on_stop, &s);
	timer_set(stop, 30);
	loop_run(s.loop);
	CHECK(seqpacket_recv(pair[1], text, sizeof text - 1, &n, fds, 4, &n_fds) == 0);
	EXPECT_STR("one line", text,
		   "{\"execute\":\"getfd\",\"id\":1,\"arguments\":{\"fdname\":\"a\"}}\n");
	EXPECT_EQ("one descriptor", n_fds, 1);
	if (n_fds == 1) {
		struct stat st;

		EXPECT("it is the pipe", fstat(fds[0], &st) == 0 && S_ISFIFO(st.st_mode));
		(void)close(fds[0]);
	}
	timer_free(stop);
	qmp_free(s.q);
	(void)close(pair[1]);
	(void)close(pipe_fds[1]);
	loop_free(s.loop);
}

int main(void)
{
	test_table();
	test_line_limit();
	test_event_flood();
	test_deadline();
	test_refusal_text();
	test_free_inside();
	test_limits();
	test_sent();
	return test_done();
}
