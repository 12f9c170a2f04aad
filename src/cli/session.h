/* A sandbox that a command of ours made and removes again, whatever happens in between: signals are
 * noted from the first moment on, and the sandbox's life is a lease that we renew while we live, so
 * that it ends by itself if we are killed. */
#ifndef SPACE_CLI_SESSION_H
#define SPACE_CLI_SESSION_H

#include "base/fail.h"
#include "cli/api.h"

#define SESSION_LEASE_S 120u

struct session;

struct session_spec {
	const char *template;
	const char *name;  /* NULL: none; kept as metadata "name" */
	const json_t *env; /* object of strings, or NULL */
	unsigned lease_s;  /* SESSION_LEASE_S, or more for one that is kept */
	int signo;         /* set with -EINTR: which signal came */
};

/* -EINTR: a signal came; nothing is left. `a` is borrowed. */
int session_create(struct api *a, struct session_spec *s, struct session **ret, struct fail *f);
const char *session_id(const struct session *s);
const char *session_token(const struct session *s);
uint64_t session_create_ns(const struct session *s); /* how long it took */
int session_signal(const struct session *s);         /* the first that came, or 0 */

/* Ends the signal watch and the lease's renewal; the sandbox stays (kept), or is removed. */
void session_keep(struct session *s);
int session_remove(struct session *s, struct fail *f);

#endif
