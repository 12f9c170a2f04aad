/* An exit status in the words of Go's os.ProcessState, which clients of envd compare. Pure. */
#ifndef SPACE_INIT_EXIT_STATUS_H
#define SPACE_INIT_EXIT_STATUS_H

#include "base/defs.h"

#define EXIT_STATUS_SIZE 64

struct exit_status {
	int code;                    /* -1 when ended by a signal */
	bool exited;                 /* false: by a signal */
	char text[EXIT_STATUS_SIZE]; /* "exit status 3", "signal: killed", "… (core dumped)" */
};

struct exit_status exit_status_of(int wait_status);

#endif
