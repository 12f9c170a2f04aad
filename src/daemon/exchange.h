/* One request and its answer on their way through space-daemon: a stream of the client and a
 * stream of the guest, joined. An exchange frees itself after both are closed. */
#ifndef SPACE_DAEMON_EXCHANGE_H
#define SPACE_DAEMON_EXCHANGE_H

#include "net/h2.h"

struct exchange;
struct loop;

/* Those that wait for a session, oldest first. */
struct exchange_list {
	struct exchange *first;
	struct exchange **end;
};
void exchange_list_init(struct exchange_list *l);
struct exchange *exchange_list_first(const struct exchange_list *l);

struct exchange_owner {
	void (*on_count)(void *arg, int change); /* +1 at its birth, -1 at its end */
	void (*on_unwait)(void *arg);            /* once after exchange_wait() */
};

/* Takes the client's stream (in its on_request). */
struct exchange *exchange_new(struct loop *l, struct h2_stream *client,
			      const struct exchange_owner *owner, void *arg);
/* Then exactly one of these. `m` is the request as the guest shall get it; it is copied. */
void exchange_open(struct exchange *x, struct h2 *control, const struct h2_message *m);
void exchange_wait(struct exchange *x, struct exchange_list *l, const struct h2_message *m,
		   unsigned wait_ms);

/* A waiting one leaves the list and goes out. */
void exchange_resume(struct exchange *x, struct h2 *control);

#endif
