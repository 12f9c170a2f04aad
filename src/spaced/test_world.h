/* Where the jailer, the keepers and space-daemon are for a test: this stands on the sockets that
 * they get, honest or broken as `behaviour` says; spaced's own parts are the real ones. */
#ifndef SPACE_SPACED_TEST_WORLD_H
#define SPACE_SPACED_TEST_WORLD_H

#include "net/h2.h"
#include "spaced/sandbox.h"

#define JAILS_MAX 16u
#define ENGINE    "qemu test"

enum behaviour {
	GOOD,
	JAIL_FAILS,   /* the jailer cannot start it */
	KEEPER_DIES,  /* before it said anything */
	HAS_VM,       /* the keeper says that it has a VM already */
	GARBAGE,      /* the keeper breaks the protocol */
	VM_STOPS,     /* QEMU ends while it starts */
	INIT_REFUSED, /* the guest does not take its identity */
	DAEMON_GONE,  /* nobody answers on the platform socket */
	BEHAVIOURS
};

struct world {
	struct node n;
	char dir[32];
	enum behaviour behaviour;
	struct msgsock *line; /* to spaced, as the jailer */
	unsigned running;     /* jails that start now */
	unsigned most_running;
	unsigned inits;
	bool is_holding; /* VM_READY waits */
	char last_token[TOKEN_SIZE];
	struct jail_played *jails[JAILS_MAX];
	/* Requests that space-daemon gets from clients; NULL: it takes no connection. */
	void (*on_client)(struct h2 *h, struct h2_stream *s, const struct h2_message *m);
};
extern struct world world;

/* false: there is no place for it. */
bool world_make(void);
void world_end(void);

/* The VM of a running sandbox ends by itself. */
void world_stop_vm(const char *id, const char *why);

#endif
