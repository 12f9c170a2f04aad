/* Exit statuses in words: see exit_status.h. */
#include "init/exit_status.h"

#include <sys/wait.h>

/* As Go's syscall package names them on Linux; those above have no name there. */
static const char *const signals[] = {
	NULL,
	"hangup",
	"interrupt",
	"quit",
	"illegal instruction",
	"trace/breakpoint trap",
	"aborted",
	"bus error",
	"floating point exception",
	"killed",
	"user defined signal 1",
	"segmentation fault",
	"user defined signal 2",
	"broken pipe",
	"alarm clock",
	"terminated",
};

struct exit_status exit_status_of(int wait_status)
{
	struct exit_status s = {.code = -1};
	int signo = WTERMSIG(wait_status);
	const char *core = WCOREDUMP(wait_status) ? " (core dumped)" : "";

	if (WIFEXITED(wait_status)) {
		s.code = WEXITSTATUS(wait_status);
		s.exited = true;
		(void)snprintf(s.text, sizeof s.text, "exit status %d", s.code);
	} else if (signo > 0 && (size_t)signo < ARRAY_LEN(signals)) {
		(void)snprintf(s.text, sizeof s.text, "signal: %s%s", signals[signo], core);
	} else {
		(void)snprintf(s.text, sizeof s.text, "signal: signal %d%s", signo, core);
	}
	return s;
}
