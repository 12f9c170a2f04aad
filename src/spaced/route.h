/* Clients' requests to a sandbox's own server (envd), relayed to its space-daemon and back.
 *
 * Bodies are opaque; heads are rewritten field by field. Each request holds at most one window a
 * direction: what the other side took is given back to the side it came from. An answer is
 * finished only when the guest finished it; whatever else ends it, cuts it, so that a client
 * never takes a piece for the whole. */
#ifndef SPACE_SPACED_ROUTE_H
#define SPACE_SPACED_ROUTE_H

#include "net/http_server.h"
#include "spaced/sandbox.h"

#define ENVD_PORT 49983u

/* Whether the request is for a sandbox (it has a routing header), not for the control plane. */
bool route_wants(const struct http1_request *r);

/* Takes the exchange, also to refuse it. */
void route_request(struct node *n, struct http_exchange *x, const struct http1_request *r);

/* The sandbox ends: every request of it is cut, now. */
void route_cut(struct sandbox *s);
/* It is freed. */
void route_done(struct sandbox *s);

/* What nobody outside may ask a guest: envd's private paths and everything below /space/. Pure. */
bool route_path_is_private(const char *target, size_t n);

#endif
