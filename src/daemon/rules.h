/* What may cross between a client and a guest, as pure functions: which requests are let through,
 * which fields of them the guest sees, and what of a guest's answer goes back.
 *
 * Everything given to these functions is hostile. They hold no state and no descriptor. */
#ifndef SPACE_DAEMON_RULES_H
#define SPACE_DAEMON_RULES_H

#include "net/h2.h"

/* Which of the two listening sockets a request came in on; that is its only identity. */
enum side { SIDE_CLIENT, SIDE_PLATFORM };

#define RULES_FIELDS_MAX 60           /* fields of one message, pseudo fields included */
#define RULES_HEAD_MAX   (32u * 1024) /* names + values of one message, bytes */
#define RULES_TARGET_MAX (16u * 1024)
#define RULES_CODE_OK    0u

/* code RULES_CODE_OK: pass it on. Else the status of the refusal and its sentence (static). */
struct verdict {
	unsigned code;
	const char *message;
};

/* `token` is the sandbox's access token; "" lets every request of a client pass. */
struct verdict request_judge(const struct h2_message *in, enum side side, const char *token);

/* The request as the guest gets it: pseudo fields anew, no credential of ours, no hop-by-hop field.
 * `in` must have passed request_judge(). *ret borrows from it. -EBADMSG, -E2BIG. */
int request_rewrite(struct h2_message *ret, const struct h2_message *in);

/* The guest's answer as the client gets it: status 200..599. *ret borrows. -EBADMSG, -E2BIG. */
int answer_rewrite(struct h2_message *ret, const struct h2_message *in);

#endif
