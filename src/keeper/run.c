/* A keeper's life in its process: see keeper.h. As init of its namespace it reaps whatever is
 * left to it. */
#include "keeper/keeper.h"
#include "net/loop.h"

#include <signal.h>
#include <sys/wait.h>

static void on_child(void *arg, int signo)
{
	int status;
	pid_t pid;

	(void)signo;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		keeper_reaped(arg, pid, status);
}

static void on_term(void *arg, int signo)
{
	(void)signo;
	keeper_stop(arg, "ended by a signal");
}

void keeper_run(const struct jail_paths *paths, const struct keeper_times *times)
{
	struct loop *l = loop_new();
	struct keeper *k = keeper_new(l, paths, times);
	struct sigwatch *child = sigwatch_new(l, SIGCHLD, on_child, k);
	struct sigwatch *term = sigwatch_new(l, SIGTERM, on_term, k);

	loop_run(l);
	sigwatch_free(child);
	sigwatch_free(term);
	keeper_free(k);
	loop_free(l);
}
