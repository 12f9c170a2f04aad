/* One sandbox's keeper: the VM, its space-daemon, and the talk with spaced. */
#ifndef SPACE_KEEPER_KEEPER_H
#define SPACE_KEEPER_KEEPER_H

#include "engine/engine.h"
#include "os/jail.h"

struct loop;
struct keeper;

/* How long each step may take; past it the sandbox ends. */
struct keeper_times {
	uint32_t boot_ms;    /* until space-daemon has a session with the guest */
	uint32_t restore_ms; /* the same, and after space-daemon was started anew */
	uint32_t save_ms;    /* until the VMM has ended */
	uint32_t end_ms;     /* from the monitor's hang-up to the VMM's end */
	struct engine_times engine;
};
extern const struct keeper_times keeper_times_usual;

/* All of it belongs to the process: descriptors KEEPER_FD_* of wire/msg.h. Stops the loop when
 * the sandbox is over; the process must then exit, which ends every process of the sandbox. */
struct keeper *keeper_new(struct loop *l, const struct jail_paths *paths,
			  const struct keeper_times *times);
void keeper_free(struct keeper *k);

/* A child ended (from SIGCHLD). */
void keeper_reaped(struct keeper *k, pid_t pid, int wait_status);
/* The sandbox is to end: `why` goes to spaced and into the exit record. */
void keeper_stop(struct keeper *k, const char *why);

/* A keeper from beginning to end, with its signals: SIGCHLD, SIGTERM. */
void keeper_run(const struct jail_paths *paths, const struct keeper_times *times);

#endif
