/* The table of sandboxes: by id, in the queue for a start, and how they ended. */
#ifndef SPACE_SPACED_SANDBOXES_H
#define SPACE_SPACED_SANDBOXES_H

#include "spaced/sandbox.h"

#define QUEUED_MAX 256u /* sandboxes waiting for a start slot */

struct sandboxes {
	struct idmap map;
	uint32_t in_flight;
	size_t n_queued;
	struct sandbox *queue;
	struct sandbox **queue_last;
	size_t n_ended;
	struct db_ended ended[DB_ENDED_KEPT];
};

void sandboxes_remember(struct node *n, const struct db_ended *e);

/* At most `cores` sandboxes start at once: each holds a slot from its on_slot() on until
 * slot_leave(). on_slot may come before slot_wait() returns. -ENOBUFS: too many wait. */
int slot_wait(struct sandbox *s);
void slot_unwait(struct sandbox *s); /* leaves the queue; not waiting is fine */
void slot_leave(struct sandbox *s);  /* holding none is fine */

#endif
