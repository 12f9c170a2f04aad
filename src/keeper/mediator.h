/* The sandbox's space-daemon: started in its jail, and anew when it died, but no more often than
 * MEDIATOR_STARTS times in MEDIATOR_WINDOW_NS, since each start is an attempt of whoever kills
 * it. */
#ifndef SPACE_KEEPER_MEDIATOR_H
#define SPACE_KEEPER_MEDIATOR_H

#include "base/clock.h"
#include "base/fail.h"
#include "os/jail.h"
#include "wire/msg.h"

struct loop;
struct mediator;

#define MEDIATOR_STARTS    5u
#define MEDIATOR_WINDOW_NS (60 * NS_PER_S)

enum mediator_channel { CHANNEL_CONTROL, CHANNEL_EGRESS, CHANNEL_WAKE, CHANNELS };

/* Everything is borrowed for the mediator's life. */
struct mediator_plan {
	const struct jail_paths *paths;
	const struct vm_spec *spec;
	int channel[CHANNELS]; /* the host's ends; they stay open here when space-daemon dies */
	int client_listen;
	int platform_listen;
	int log_file;
};

struct mediator_ops {
	void (*on_ready)(void *arg); /* it has a session with the guest, once a start */
	void (*on_again)(void *arg); /* it died, and a new one was started */
	void (*on_failed)(void *arg, int wait_status, const struct fail *why);
};

int mediator_new(struct loop *l, const struct mediator_plan *p, const struct mediator_ops *ops,
		 void *arg, struct mediator **ret, struct fail *f);
void mediator_free(struct mediator *m); /* the process ends with the keeper */

/* A child of ours ended. True: it was this one's. is_ending: then nothing is started. */
bool mediator_reaped(struct mediator *m, pid_t pid, int wait_status, bool is_ending);
uint32_t mediator_starts(const struct mediator *m); /* so far; NULL: 0 */

#endif
