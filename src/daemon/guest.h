/* The session with space-init: the handshake of wire/wake.h over the three ports, then HTTP/2 as
 * client on space.control and as server on space.egress.
 *
 * The guest may be captured: whatever it sends can cost only its own session. A session that breaks
 * is begun anew with another nonce, at most once every retry_ms. The descriptors are borrowed. */
#ifndef SPACE_DAEMON_GUEST_H
#define SPACE_DAEMON_GUEST_H

#include "base/defs.h"

struct guest;
struct h2;
struct loop;

enum guest_port { PORT_CONTROL, PORT_EGRESS, PORT_WAKE, GUEST_PORTS };

struct guest_ops {
	void (*on_up)(void *arg, struct h2 *control);
	void (*on_lost)(
		void *arg); /* that session ends: its streams are closed after this returns */
	void (*on_gone)(void *arg); /* QEMU closed a port: nothing will come any more */
};

/* retry_ms: WAKE_RETRY_MS, and shorter in tests. */
struct guest *guest_new(struct loop *l, const int fd[GUEST_PORTS], unsigned retry_ms,
			const struct guest_ops *ops, void *arg);
void guest_free(struct guest *g);

#endif
