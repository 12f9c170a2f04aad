/* Starting processes, init's side: pipes or a terminal, and the clone. See launch.h. */
#include "init/launch.h"

#include "base/str.h"
#include "init/launch_child.h"
#include "init/request.h"
#include "init/userspace.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* Both ends of everything; what is left open is closed by ends_drop(). */
struct ends {
	struct launched ours;
	struct child_fds child;
};

static void ends_drop(struct ends *e)
{
	fd_drop(&e->ours.in);
	fd_drop(&e->ours.out);
	fd_drop(&e->ours.err);
	fd_drop(&e->ours.error);
	fd_drop(&e->child.in);
	fd_drop(&e->child.out);
	fd_drop(&e->child.err);
	fd_drop(&e->child.error);
	fd_drop(&e->child.slave);
}

/* A pipe of which one end is ours and non-blocking. */
static int make_pipe(int *ret_ours, int *ret_theirs, bool we_read, struct fail *f)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return fail_errno(f, -errno, "cannot make a pipe");
	*ret_ours = p[we_read ? 0 : 1];
	*ret_theirs = p[we_read ? 1 : 0];
	return fd_set_nonblock(*ret_ours, true);
}

void launch_resize(int master, uint16_t cols, uint16_t rows)
{
	struct winsize size = {.ws_col = cols, .ws_row = rows};

	(void)ioctl(master, TIOCSWINSZ, &size); /* best effort: the terminal may be gone */
}

/* The terminal is one of the user's devpts, so that it has a name there. */
static int make_terminal(struct ends *e, const struct launch_plan *p, struct fail *f)
{
	int unlocked = 0;
	int master = openat(p->userspace->pts, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (master < 0)
		return fail_errno(f, -errno, "cannot open a terminal");
	e->ours.out = master;
	e->ours.in = fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (e->ours.in < 0 || ioctl(master, TIOCSPTLCK, &unlocked) != 0)
		return fail_errno(f, -errno, "cannot unlock the terminal");
	e->child.slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (e->child.slave < 0)
		return fail_errno(f, -errno, "cannot open the terminal's other side");
	launch_resize(master, p->request->cols, p->request->rows);
	return 0;
}

static int make_ends(struct ends *e, const struct launch_plan *p, struct fail *f)
{
	int err = make_pipe(&e->ours.error, &e->child.error, true, f);

	if (err)
		return err;
	if (p->request->has_pty)
		return make_terminal(e, p, f);
	err = make_pipe(&e->ours.out, &e->child.out, true, f);
	if (!err)
		err = make_pipe(&e->ours.err, &e->child.err, true, f);
	if (!err && p->request->has_stdin)
		err = make_pipe(&e->ours.in, &e->child.in, false, f);
	return err;
}

/* As fork(), but the child begins its life in the leaf. */
static pid_t clone_into(int leaf)
{
	struct clone_args a = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned)leaf,
	};

	return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

int launch(const struct launch_plan *p, const struct leaf *leaf, struct launched *ret,
	   struct fail *f)
{
	AUTO(ends_drop)
	struct ends e = {.ours = {.in = -1, .out = -1, .err = -1, .error = -1},
			 .child = {.in = -1, .out = -1, .err = -1, .error = -1, .slave = -1}};
	sigset_t all;
	sigset_t before;
	pid_t pid;
	int err = make_ends(&e, p, f);

	if (err)
		return err;
	/* No handler of ours may run in the child. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone_into(leaf->fd);
	err = pid < 0 ? -errno : 0;
	if (pid == 0)
		launch_child(p, &e.child);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (err)
		return fail_errno(f, err, "cannot fork");
	*ret = e.ours;
	ret->pid = pid;
	e.ours = (struct launched){.in = -1, .out = -1, .err = -1, .error = -1};
	return 0;
}

enum connect_code launch_error_parse(const uint8_t *p, size_t n, char *text, size_t text_size)
{
	if (n == 0)
		return CONNECT_OK;
	(void)str_escape(text, text_size, (const char *)p + 1, n - 1, "");
	return p[0] > CONNECT_OK && p[0] < CONNECT_CODES ? (enum connect_code)p[0]
							 : CONNECT_INTERNAL;
}
