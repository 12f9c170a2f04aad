/* The node on this machine: is it there, start it, end it. Who it is follows from the kernel (the
 * peer of its socket), never from a number in a file. */
#ifndef SPACE_CLI_NODE_H
#define SPACE_CLI_NODE_H

#include "base/fail.h"

#include <sys/types.h>

struct cli;

struct node {
	int jailer;   /* pidfd; -1: none */
	pid_t pid;    /* of the jailer */
	off_t log_at; /* where its lines in node.log begin, when we started it */
};
#define NODE_NONE ((struct node){-1, 0, 0})
void node_drop(struct node *n);

/* -ECONNREFUSED: no node runs on this data folder. */
int node_find(const struct cli *c, struct node *ret, struct fail *f);

/* Starts space-jailer detached, its log in DATA/node.log. args: for spaced, NULL-terminated. */
int node_start(const struct cli *c, const char *const *args, struct node *ret, struct fail *f);
/* Waits until it answers. -ECHILD: it ended, and the end of its log was shown; -EINTR: a signal
 * came (then nothing is left running); -ETIMEDOUT. */
int node_wait_ready(const struct cli *c, struct node *n, struct fail *f);

/* Ends the node, which removes its sandboxes first, and waits for it. */
int node_stop(const struct cli *c, struct node *n, struct fail *f);

/* The address it listens on, as it says itself. Caller frees. */
int node_endpoint(const struct cli *c, char **ret, struct fail *f);

/* SIGINT, SIGTERM and SIGHUP are noted from the first call on. The first that came, or 0. */
int node_signal(void);

#endif
