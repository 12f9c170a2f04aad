/* See signals.h. Whether one is ignored is asked once, before any watch changes the answer. */
#include "cli/signals.h"

#include "base/defs.h"
#include "net/loop.h"

#include <signal.h>

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

static bool is_ignored(size_t i)
{
	static bool is_known;
	static bool ignored[ARRAY_LEN(stop_signals)];
	struct sigaction a;

	for (size_t k = 0; !is_known && k < ARRAY_LEN(stop_signals); k++)
		ignored[k] = sigaction(stop_signals[k], NULL, &a) == 0 &&
			     !(a.sa_flags & SA_SIGINFO) && a.sa_handler == SIG_IGN;
	is_known = true;
	return ignored[i];
}

void signals_watch(struct signals *s, struct loop *l, void (*cb)(void *arg, int signo), void *arg)
{
	static_assert(ARRAY_LEN(s->watch) == ARRAY_LEN(stop_signals), "a watch for each");
	for (size_t i = 0; i < ARRAY_LEN(stop_signals); i++)
		s->watch[i] = is_ignored(i) ? NULL : sigwatch_new(l, stop_signals[i], cb, arg);
}

void signals_done(struct signals *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->watch); i++)
		sigwatch_free(s->watch[i]);
}
