/* See build.h. The script is a child in our process group: a terminal's Ctrl-C reaches it too, and
 * we pass on what only we got. Its stderr is read line by line; what is not progress is kept (the
 * last lines) and shown when it fails. */
#include "cli/build.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "cli/term.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "os/spawn.h"
#include "store/template.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define LINE_MAX_BYTES 1024 /* of the script's; longer ones are cut into several */
#define TAIL_LINES     12

struct run {
	struct loop *loop;
	struct build *build;
	int pidfd;
	int out;
	struct watch *on_exit;
	struct watch *on_output;
	struct buf line;
	char *tail[TAIL_LINES]; /* a ring */
	size_t tail_n;
};

static void line_take(struct run *r, const char *text, size_t n)
{
	AUTO(str_drop) char *line = xstrndup(text, n);
	char **slot;

	if (str_starts(line, "step ")) {
		term_progress("%s: %s", r->build->name, line + strlen("step "));
		return;
	}
	slot = &r->tail[r->tail_n++ % TAIL_LINES];
	free(*slot);
	*slot = xstrdup(line);
}

static void lines_take(struct run *r)
{
	for (;;) {
		const char *p = (const char *)buf_data(&r->line);
		size_t n = buf_len(&r->line);
		const char *end = n ? memchr(p, '\n', n) : NULL;

		if (!end && buf_room(&r->line) > 0)
			return;
		line_take(r, p, end ? (size_t)(end - p) : n);
		buf_consume(&r->line, end ? (size_t)(end - p) + 1 : n);
	}
}

/* Whether something was read. */
static bool output_read(struct run *r)
{
	size_t room;
	uint8_t *p = buf_space(&r->line, LINE_MAX_BYTES, &room);
	ssize_t n = p ? read(r->out, p, room) : -1;

	if (n <= 0)
		return false;
	buf_commit(&r->line, (size_t)n);
	lines_take(r);
	return true;
}

static void on_output(void *arg, int events)
{
	struct run *r = arg;

	(void)events;
	if (!output_read(r) && errno != EAGAIN)
		watch_set(r->on_output, 0);
}

/* What a descendant still holds open does not keep us: only what is there is read. */
static void on_exit_seen(void *arg, int events)
{
	struct run *r = arg;

	(void)events;
	while (output_read(r))
		;
	loop_stop(r->loop);
}

static void on_signal(void *arg, int signo)
{
	struct run *r = arg;

	r->build->signo = signo;
	term_progress("%s: stopping", r->build->name);
	(void)pidfd_signal(r->pidfd, SIGTERM);
}

static void run_loop(struct run *r)
{
	struct signals signals;

	signals_watch(&signals, r->loop, on_signal, r);
	r->on_exit = watch_new(r->loop, r->pidfd, on_exit_seen, r);
	watch_set(r->on_exit, WATCH_READ);
	r->on_output = watch_new(r->loop, r->out, on_output, r);
	watch_set(r->on_output, WATCH_READ);
	loop_run(r->loop);
	watch_free(r->on_output);
	watch_free(r->on_exit);
	signals_done(&signals);
}

static int script_start(struct build *b, int out, pid_t *ret_pid, int *ret_pidfd, struct fail *f)
{
	const struct cli *c = b->cli;
	AUTO(str_drop)
	char *script = xasprintf("%s/share/space/templates/%s/build", c->prefix, b->name);
	const char *argv[] = {script, "--data", c->data, "--libexec", c->libexec, NULL, NULL};
	const int fds[] = {-1, out, out};
	const struct spawn_spec spec = {
		.argv = argv,
		.envp = (const char *const *)environ,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
	};

	if (!template_name_valid(b->name) || access(script, X_OK) < 0)
		return fail_set(f, -ENOENT, "there is no stock template '%.64s'; there is 'base'",
				b->name);
	if (b->is_forced)
		argv[ARRAY_LEN(argv) - 2] = "--force";
	return spawn(&spec, ret_pid, ret_pidfd, f);
}

static int build_result(struct run *r, int status, struct fail *f)
{
	struct build *b = r->build;

	term_progress_end();
	if (b->signo)
		return fail_set(f, -EINTR, "template '%s': stopped", b->name);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	for (size_t i = 0; i < TAIL_LINES; i++) {
		const char *line = r->tail[(r->tail_n + i) % TAIL_LINES];

		if (line)
			term_note("  %s", line);
	}
	if (WIFSIGNALED(status))
		return fail_set(f, -ECHILD, "building template '%s' was ended by signal %d",
				b->name, WTERMSIG(status));
	return fail_set(f, -ECHILD, "cannot build template '%s': its lines above say why", b->name);
}

int build_template(struct build *b, struct fail *f)
{
	struct run r = {.build = b, .pidfd = -1, .out = -1};
	int pipe_fd[2];
	int status = 0;
	pid_t pid;
	int err;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot make a pipe");
	r.out = pipe_fd[0];
	err = script_start(b, pipe_fd[1], &pid, &r.pidfd, f);
	fd_drop(&pipe_fd[1]);
	if (err < 0) {
		fd_drop(&r.out);
		return err;
	}
	(void)fd_set_nonblock(r.out, true);
	buf_init(&r.line, LINE_MAX_BYTES);
	r.loop = loop_new();
	run_loop(&r);
	(void)waitpid(pid, &status, 0);
	err = build_result(&r, status, f);
	for (size_t i = 0; i < TAIL_LINES; i++)
		free(r.tail[i]);
	buf_done(&r.line);
	loop_free(r.loop);
	fd_drop(&r.pidfd);
	fd_drop(&r.out);
	return err;
}
