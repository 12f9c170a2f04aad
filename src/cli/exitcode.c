/* See exitcode.h. */
#include "cli/exitcode.h"

#include "base/defs.h"
#include "base/str.h"

#include <signal.h>
#include <string.h>

#define SIGNAL_PREFIX "signal: "
#define SIGNAL_MAX    64

/* The spelling of Go's syscall.Signal.String(), which is what envd's clients know. */
static const struct {
	const char *text;
	int signo;
} signal_names[] = {
	{"hangup", SIGHUP},
	{"interrupt", SIGINT},
	{"quit", SIGQUIT},
	{"illegal instruction", SIGILL},
	{"trace/breakpoint trap", SIGTRAP},
	{"aborted", SIGABRT},
	{"bus error", SIGBUS},
	{"floating point exception", SIGFPE},
	{"killed", SIGKILL},
	{"user defined signal 1", SIGUSR1},
	{"segmentation fault", SIGSEGV},
	{"user defined signal 2", SIGUSR2},
	{"broken pipe", SIGPIPE},
	{"alarm clock", SIGALRM},
	{"terminated", SIGTERM},
};

static int signal_of(const char *text)
{
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(signal_names); i++) {
		size_t len = strlen(signal_names[i].text);

		/* "signal: segmentation fault (core dumped)" */
		if (strncmp(text, signal_names[i].text, len) == 0 &&
		    (!text[len] || text[len] == ' '))
			return signal_names[i].signo;
	}
	if (str_starts(text, "signal ") && str_u64(text + 7, SIGNAL_MAX, &n) == 0 && n > 0)
		return (int)n;
	return 0;
}

int exitcode_of_end(long long exit_code, const char *status)
{
	int signo = 0;

	if (exit_code >= 0 && exit_code <= 255)
		return (int)exit_code;
	if (str_starts(status, SIGNAL_PREFIX))
		signo = signal_of(status + strlen(SIGNAL_PREFIX));
	return signo ? EXIT_SIGNAL + signo : EXIT_OURS;
}

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

int exitcode_of_error(const char *connect_code, const char *message)
{
	if (strcmp(connect_code, "deadline_exceeded") == 0)
		return EXIT_TIMED_OUT;
	if (strcmp(connect_code, "not_found") == 0 || has(message, "executable file not found") ||
	    has(message, "no such file or directory"))
		return EXIT_NOT_FOUND;
	if (strcmp(connect_code, "permission_denied") == 0 || has(message, "permission denied") ||
	    has(message, "exec format error") || str_starts(message, "invalid username") ||
	    str_starts(message, "cwd '"))
		return EXIT_CANNOT;
	return EXIT_OURS;
}
