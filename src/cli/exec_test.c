/* Commands against a node that answers whatever the case says: true streams, cut ones, lies. */
#include "cli/exec.h"

#include "base/alloc.h"
#include "base/test.h"
#include "base/wr.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/sock.h"
#include "wire/envelope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ANSWER_MAX (256u * 1024)
#define ASKED_MAX  4096
#define EVENTS_MAX 5
#define OUTPUT_MAX 256

#define START             "{\"event\":{\"start\":{\"pid\":7}}}"
#define OUT_HI            "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}"
#define ERR_OH            "{\"event\":{\"data\":{\"stderr\":\"b2gK\"}}}"
#define ALIVE             "{\"event\":{\"keepalive\":{}}}"
#define END(body)         "{\"event\":{\"end\":{" body "}}}"
#define ERROR(code, text) "!{\"error\":{\"code\":\"" code "\",\"message\":\"" text "\"}}"

/* An event that begins with '!' is the end envelope, with '?' one of unknown flags. */
static const struct {
	const char *says;
	unsigned status;
	const char *event[EVENTS_MAX]; /* or the body itself, when status is not 200 */
	unsigned cut;                  /* bytes of the answer that are missing at its end */
	int want_err;
	int want_exit;
	const char *want_out;
	const char *want_text; /* part of the sentence */
} cases[] = {
	{"success",
	 200,
	 {START, OUT_HI, END("\"exitCode\":0,\"exited\":true"), "!{}"},
	 0,
	 0,
	 0,
	 "hi\n",
	 NULL},
	{"defaults left out", 200, {START, END(""), "!{}"}, 0, 0, 0, "", NULL},
	{"keep-alives are nothing",
	 200,
	 {START, ALIVE, OUT_HI, END("\"exitCode\":0"), "!{}"},
	 0,
	 0,
	 0,
	 "hi\n",
	 NULL},
	{"its own status", 200, {START, ERR_OH, END("\"exitCode\":3"), "!{}"}, 0, 0, 3, "", NULL},
	{"a signal",
	 200,
	 {START, END("\"exitCode\":-1,\"status\":\"signal: killed\""), "!{}"},
	 0,
	 0,
	 137,
	 "",
	 NULL},
	{"status out of range",
	 200,
	 {START, END("\"exitCode\":99999999999"), "!{}"},
	 0,
	 0,
	 125,
	 "",
	 NULL},
	{"cut", 200, {START, OUT_HI}, 3, -1, 125, NULL, "stream was cut"},
	{"ended without a record",
	 200,
	 {START, OUT_HI, "!{}"},
	 0,
	 -1,
	 125,
	 "hi\n",
	 "stream was cut"},
	{"cut behind the record", 200, {START, END("\"exitCode\":4"), "!{}"}, 2, 0, 4, "", NULL},
	{"no such program",
	 200,
	 {ERROR("invalid_argument", "exec: \\\"x\\\": executable file not found in $PATH")},
	 0,
	 -1,
	 127,
	 "",
	 "executable file not found"},
	{"no such user",
	 200,
	 {ERROR("unauthenticated", "invalid username: 'x'")},
	 0,
	 -1,
	 126,
	 "",
	 "invalid username"},
	{"time is up", 200, {START, ERROR("deadline_exceeded", "")}, 0, -1, 124, "", "ran out of"},
	{"unknown flags", 200, {START, "?{}"}, 0, -1, 125, "", "cannot be read"},
	{"not JSON", 200, {START, "{"}, 0, -1, 125, "", "cannot be read"},
	{"not base64",
	 200,
	 {START, "{\"event\":{\"data\":{\"stdout\":\"*\"}}}"},
	 0,
	 -1,
	 125,
	 "",
	 "cannot be read"},
	{"a process of no number",
	 200,
	 {"{\"event\":{\"start\":{\"pid\":0}}}"},
	 0,
	 -1,
	 125,
	 "",
	 "no process"},
	{"too large a number",
	 200,
	 {"{\"event\":{\"start\":{\"pid\":4194305}}}"},
	 0,
	 -1,
	 125,
	 "",
	 "no process"},
	{"gone",
	 502,
	 {"{\"code\":502,\"message\":\"The sandbox was not found\"}"},
	 0,
	 -1,
	 125,
	 "",
	 "was not found"},
	{"refused", 401, {"{\"code\":401,\"message\":\"no\"}"}, 0, -1, 125, "", "no"},
	{"refused without words", 500, {"<html>"}, 0, -1, 125, "", "does not answer"},
};

/* --- the node --- */

static size_t answer_print(size_t i, uint8_t *dst)
{
	static uint8_t body[8192];
	struct wr w = wr_of(body, sizeof body);
	int n;

	for (size_t k = 0; k < EVENTS_MAX && cases[i].event[k]; k++) {
		const char *text = cases[i].event[k];
		uint8_t head[ENVELOPE_HEAD];
		uint8_t flags = *text == '!' ? ENVELOPE_END : *text == '?' ? 0x80 : 0;

		text += flags != 0;
		envelope_head_print(head, flags, (uint32_t)strlen(text));
		if (cases[i].status == 200)
			wr_bytes(&w, head, sizeof head);
		wr_bytes(&w, text, strlen(text));
	}
	n = snprintf((char *)dst, ANSWER_MAX,
		     "HTTP/1.1 %u X\r\nContent-Type: application/connect+json\r\n"
		     "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		     cases[i].status, wr_len(&w));
	memcpy(dst + n, body, wr_len(&w));
	return (size_t)n + wr_len(&w) - cases[i].cut;
}

/* Reads until the request's one envelope is there, answers, and closes. */
static void serve(int fd, size_t i)
{
	AUTO(mem_drop) uint8_t *answer = xcalloc(1, ANSWER_MAX);
	char asked[ASKED_MAX + 1];
	size_t got = 0;
	ssize_t n;

	while (got < ASKED_MAX && (n = read(fd, asked + got, ASKED_MAX - got)) > 0) {
		got += (size_t)n;
		asked[got] = 0;
		if (memmem(asked, got, "\"stdin\":false}", 14))
			break;
	}
	(void)!fd_write_all(fd, answer, answer_print(i, answer));
	(void)shutdown(fd, SHUT_WR);
	while (read(fd, asked, ASKED_MAX) > 0)
		;
}

static void node(int listening)
{
	(void)fd_set_nonblock(listening, false);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fd = accept(listening, NULL, NULL);

		if (fd < 0)
			_exit(1);
		serve(fd, i);
		(void)close(fd);
	}
	_exit(0);
}

/* --- the command --- */

static void run(size_t i, struct api *a)
{
	char command[] = "x";
	char *const argv[] = {command, NULL};
	char out[OUTPUT_MAX + 1];
	struct exec_result result;
	struct fail f = {0};
	int pipe_fd[2];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t n;
	int r;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		exit(EXIT_FAILURE);
	r = exec_run(a,
		     &(struct exec_spec){.sandbox = "iabc",
					 .token = "t",
					 .user = "root",
					 .argv = argv,
					 .in_fd = -1,
					 .out_fd = pipe_fd[1],
					 .err_fd = null},
		     &result, &f);
	(void)close(pipe_fd[1]);
	n = read(pipe_fd[0], out, OUTPUT_MAX);
	out[n > 0 ? n : 0] = 0;
	(void)close(pipe_fd[0]);
	(void)close(null);
	EXPECT_EQ(cases[i].says, r < 0 ? -1 : 0, cases[i].want_err);
	EXPECT_EQ(cases[i].says, result.exit_code, cases[i].want_exit);
	if (cases[i].want_out)
		EXPECT_STR(cases[i].says, out, cases[i].want_out);
	if (cases[i].want_text && !EXPECT(cases[i].says, strstr(f.text, cases[i].want_text)))
		printf("  it says: %s\n", f.text);
}

int main(void)
{
	static char dir[] = "/tmp/exec.XXXXXX";
	static struct cli c;
	struct fail f = {0};
	struct api *a;
	int root;
	int state;
	int listening;
	pid_t pid;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("SPACE_URL");
	c.data = dir;
	if (!mkdtemp(dir) || (root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    dir_make(root, "state", 0700, &f) < 0 || dir_open(root, "state", &state, &f) < 0 ||
	    sock_unix_listen(state, "api.sock", SOCK_STREAM, &listening, &f) < 0)
		return EXIT_FAILURE;
	pid = fork();
	if (pid == 0)
		node(listening);
	if (api_open(&c, &a, &f) < 0) {
		printf("%s\n", f.text);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		run(i, a);
	api_close(a);
	(void)waitpid(pid, NULL, 0);
	(void)close(listening);
	(void)dir_remove(root, "state", &f);
	(void)close(state);
	(void)close(root);
	(void)rmdir(dir);
	return test_done();
}
