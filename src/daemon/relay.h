/* The way of a request from a client's (or the platform's) socket to the guest and back.
 *
 * Owns the listening sockets' connections and every open exchange. Each exchange holds at most one
 * window a direction: bytes are given back to the side they came from when the other side took
 * them. An answer is finished only when the guest finished it; whatever else ends it, cuts it. */
#ifndef SPACE_DAEMON_RELAY_H
#define SPACE_DAEMON_RELAY_H

#include "daemon/rules.h"

#define RELAY_STREAMS_MAX     256u   /* requests of clients at once */
#define RELAY_PLATFORM_MAX    32u    /* and of the platform, which clients cannot take away */
#define RELAY_WAITING_MAX     64u    /* of all of them: waiting for a session with the guest */
#define RELAY_WAIT_MS         10000u /* the usual patience with a guest that is not there yet */
#define RELAY_CONNECTIONS_MAX 32u    /* of each listening socket */

struct h2;
struct loop;
struct relay;

/* `token` is copied; "" = open. wait_ms: how long a request waits for a session with the guest. */
struct relay *relay_new(struct loop *l, const char *token, unsigned wait_ms);
void relay_free(struct relay *r);

/* Accepts on `fd`: borrowed, listening, non-blocking. Once for each side. */
void relay_listen(struct relay *r, enum side side, int fd);

/* A session with the guest is there: what waited goes out. It is gone by itself when it ends:
 * relay_guest_lost() must be called before the pointer dies. */
void relay_guest_found(struct relay *r, struct h2 *control);
void relay_guest_lost(struct relay *r);

size_t relay_exchanges(const struct relay *r);

#endif
