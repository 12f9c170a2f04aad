/* One sandbox's keeper: the VM, its space-daemon, and the talk with spaced. */
#ifndef SPACE_KEEPER_KEEPER_H
#define SPACE_KEEPER_KEEPER_H

#include "os/jail.h"

struct loop;
struct keeper;

/* All of it belongs to the process: descriptors KEEPER_FD_* of wire/msg.h. Stops the loop when the
 * sandbox is over; the process must then exit, which ends every process of the sandbox. */
struct keeper *keeper_new(struct loop *l, const struct jail_paths *paths);
void keeper_free(struct keeper *k);

/* A child ended (from SIGCHLD). */
void keeper_reaped(struct keeper *k, pid_t pid, int wait_status);
/* The sandbox is to end: `why` goes to spaced and into the exit record. */
void keeper_stop(struct keeper *k, const char *why);

#endif
