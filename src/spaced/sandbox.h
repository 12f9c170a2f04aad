/* Sandboxes: created, found, given time, ended. Each is one state machine (sandbox.c). */
#ifndef SPACE_SPACED_SANDBOX_H
#define SPACE_SPACED_SANDBOX_H

#include "spaced/node.h"
#include "spaced/params.h"
#include "spaced/variants.h"
#include "store/template.h"

struct ask;
struct relay;
struct envd;

#define CAUSE_SIZE 256

enum sandbox_state {
	SANDBOX_VARIANT,
	SANDBOX_QUEUED,
	SANDBOX_START,
	SANDBOX_INIT,
	SANDBOX_RECORD,
	SANDBOX_RUNNING,
	SANDBOX_ENDING,
	SANDBOX_FORGET,
	SANDBOX_STATES
};

/* Why there is none: a stable code and sentence for the client. */
struct refusal {
	unsigned status;
	unsigned retry_after_s; /* 0: not said */
	const char *message;
};

struct sandbox {
	struct idnode node; /* first; node.id is its id */
	struct node *n;
	enum sandbox_state state;
	struct db_sandbox rec;
	json_t *metadata;
	json_t *env; /* the template's, then the client's */
	struct want want;
	struct variant *variant; /* held while QUEUED */
	struct vm *vm;
	struct ask *ask;
	struct timer *timer;
	bool holds_slot;
	bool is_recorded; /* the record of the beginning is durable */
	bool is_adopted;
	char cause[CAUSE_SIZE];
	const struct refusal *refusal;      /* how its creation ended */
	uint64_t began_ns;                  /* monotonic */
	void (*on_slot)(struct sandbox *s); /* it holds a start slot now */
	struct sandbox *next_queued;
	/* The client that waits for its creation. s NULL: there is none, r says why, and nothing
	 * is left. */
	void (*created)(void *arg, struct sandbox *s, const struct refusal *r);
	void *created_arg;
	/* The client that waits for its end. */
	void (*ended)(void *arg);
	void *ended_arg;
	/* route.c's: requests under way, and the connection to its space-daemon. */
	struct relay *relays;
	struct envd *envd;
};

struct sandboxes *sandboxes_new(struct node *n);
void sandboxes_free(struct sandboxes *all); /* none is left */

/* created comes once, later, unless sandbox_abandon(). Takes the fields of `want` it keeps.
 * A refusal at once: returned, and nothing was begun. */
const struct refusal *
sandbox_create(struct node *n, struct new_sandbox *want, const struct template *t,
	       void (*created)(void *arg, struct sandbox *s, const struct refusal *r), void *arg,
	       struct sandbox **ret);
void sandbox_abandon(struct sandbox *s); /* the client went away: undo */

/* A running one, or NULL. */
struct sandbox *sandbox_find(struct node *n, const char *id);
/* The running ones, in an array that the caller frees. */
struct sandbox **sandboxes_running(struct node *n, size_t *ret_n);

/* ended may be NULL; it comes when nothing of it is left. */
void sandbox_end(struct sandbox *s, const char *cause, void (*ended)(void *arg), void *arg);

/* From now on it lives until then (real time). done: the time is durable. */
int sandbox_set_end(struct sandbox *s, uint64_t end_ns, db_done *done, void *arg);

struct sandbox_counts {
	size_t running;
	size_t starting;
	size_t queued;
	size_t ending;
};
void sandboxes_count(struct node *n, struct sandbox_counts *ret);
/* Ended ones, oldest first; borrowed until the next call into this module. */
const struct db_ended *sandboxes_ended(struct node *n, size_t *ret_n);

/* At the start: takes over what an earlier spaced left, as the records and run/ say. */
int sandboxes_recover(struct node *n, struct fail *f);
/* One record of those; takes its texts. */
void sandbox_take_over(struct node *n, struct db_sandbox *rec);

/* Ends all; sandboxes_left() counts those that are not gone. */
void sandboxes_stop(struct node *n);
size_t sandboxes_left(const struct node *n);

#endif
