/* What a captured process would try, and where each must be refused. Shared by the attackers, which
 * run it in the place of QEMU and of space-daemon, and by the test, which runs it outside of any
 * jail to see that an attempt means something. */
#ifndef SPACE_REDTEAM_ATTEMPTS_H
#define SPACE_REDTEAM_ATTEMPTS_H

#include "base/defs.h"

/* Places an attempt runs in. */
#define IN_QEMU     1u /* QEMU's jail: bwrap, and the filter inherited from the keeper */
#define IN_DAEMON   2u /* space-daemon's jail before it confines itself */
#define IN_CONFINED 4u /* and after */
#define IN_ALL      7u

/* Remarks on an attempt. */
#define OUTSIDE       1u /* succeeds for the test itself: a control */
#define NEEDS_OWN_UID 2u /* refused by the sandbox's own uid: not without root */

/* What there is to reach on the host; numbers travel as arguments. */
struct targets {
	const char *peer; /* abstract socket of the other jail's attacker */
	const char *host; /* abstract socket of the test */
	uint16_t tcp_port;
	int shm_id;
	int host_pid;
};

struct attempt {
	const char *name;
	int (*try)(const struct targets *t); /* 0: succeeded; else a negative errno */
	unsigned refused_in;
	unsigned control;
};
extern const struct attempt attempts[];
extern const size_t n_attempts;

/* Runs one in a child of its own. 0: it succeeded. Negative: refused, an errno; below KILLED:
 * killed by signal KILLED - result. `prepare` (may be NULL) runs in the child first. */
#define KILLED (-1000)
int attempt_run(const struct attempt *a, const struct targets *t, void (*prepare)(void));

int abstract_listen(const char *name); /* a descriptor, or a negative errno */

#endif
