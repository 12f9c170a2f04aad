/* The sandboxes of this node, as far as the privileged side knows them: one jail each, from its
 * bwrap to the last process in it. What spaced asks is checked here again as if it were hostile.
 *
 * state    waits for                          leaves to
 * STARTING bwrap's info, whole                RUNNING (JAIL_STARTED), ENDING
 * RUNNING  the keeper's end                   ENDING
 * ENDING   monitor reaped, cgroup removed     gone (JAIL_GONE, or JAIL_FAILED if it never ran) */
#ifndef SPACE_JAILER_SANDBOX_H
#define SPACE_JAILER_SANDBOX_H

#include "base/fail.h"
#include "node.h"
#include "os/cgroup.h"
#include "os/jail.h"
#include "wire/msg.h"

#include <poll.h>

#define SANDBOXES_MAX 4000 /* below NODE_UIDS */

struct sandbox;

/* What the table tells: one of JAIL_STARTED, JAIL_FAILED, JAIL_GONE. */
struct report {
	enum msg_type type;
	uint32_t seq;
	const char *id;
	uint32_t value;   /* uid, errno or wait status */
	const char *text; /* JAIL_FAILED */
};

struct table {
	struct node *node;
	const struct jail_paths *paths;
	struct cgroup_base limits;
	void (*tell)(void *arg, const struct report *r);
	void *arg;
	size_t n;
	struct sandbox *item[SANDBOXES_MAX];
};

/* Takes nothing of fds (they stay the caller's). An error has been told as JAIL_FAILED. */
void sandbox_start(struct table *t, const struct jail_start *q, uint32_t seq, const int *fds);
/* pidfd: -1, or that of a keeper which an earlier jailer started; borrowed. */
void sandbox_kill(struct table *t, const char *id, uint32_t seq, int pidfd);
/* A child of ours was reaped. True when it was a sandbox's. */
bool sandbox_reaped(struct table *t, pid_t pid, int status);

/* The loop: at most one descriptor a sandbox; then a look at everyone; in how many milliseconds the
 * next look is due at the latest (-1: no need). */
size_t sandbox_poll(const struct table *t, struct pollfd *p);
int sandbox_step(struct table *t);

#endif
