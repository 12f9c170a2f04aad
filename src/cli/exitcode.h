/* What our own exit status is, from what the platform says of a command: the command's own status,
 * 128 + n for signal n, 126 and 127 for a command that cannot start, 125 for everything that is the
 * platform's or the command line's fault. */
#ifndef SPACE_CLI_EXITCODE_H
#define SPACE_CLI_EXITCODE_H

#define EXIT_TIMED_OUT 124
#define EXIT_OURS      125
#define EXIT_CANNOT    126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL    128

/* Of an end event: exitCode, and the status text ("exit status 3", "signal: killed"). */
int exitcode_of_end(long long exit_code, const char *status);

/* Of the error that a Connect stream ended with. */
int exitcode_of_error(const char *connect_code, const char *message);

#endif
