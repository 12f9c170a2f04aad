/* A QMP client (QEMU's machine protocol) in the loop: JSON lines over a stream socket.
 *
 * QEMU may be captured by its guest, so nothing it says is trusted: a line over QMP_LINE_MAX,
 * broken JSON, an answer with an id that was not asked next, or silence past a command's deadline
 * ends the client. Commands may be sent before the greeting came (QEMU reads them in order).
 *
 *   state  waits for                                 leaves to
 *   OPEN   answers, each within its deadline; events OVER on anything outside the protocol
 *   OVER   qmp_free() */
#ifndef SPACE_ENGINE_QMP_H
#define SPACE_ENGINE_QMP_H

#include "base/fail.h"

#include <jansson.h>

struct loop;
struct qmp;

#define QMP_LINE_MAX     (64u * 1024)
#define QMP_COMMANDS_MAX 32u   /* asked and not answered */
#define QMP_EVENTS_MAX   4096u /* in a client's life: a flood ends it */

struct qmp_ops {
	void (*on_event)(void *arg, const char *name, const json_t *data); /* data may be NULL */
	/* Once: the connection is of no more use. Open commands have had their -EPIPE before.
	 * Code -EPIPE: QEMU hung up, as it does when it ends; -EPROTO or -ETIMEDOUT: it must be
	 * ended. */
	void (*on_end)(void *arg, const struct fail *why);
};

/* r = 0: `ret` is what QEMU returned (borrowed); else f says what QEMU said (-EREMOTEIO) or why
 * the client is over (-EPIPE; f->code as for on_end). Comes exactly once a command. */
typedef void qmp_done(void *arg, int r, const json_t *ret, const struct fail *f);

/* Takes fd. */
struct qmp *qmp_new(struct loop *l, int fd, const struct qmp_ops *ops, void *arg);
void qmp_free(struct qmp *q); /* open commands are dropped without a call */

/* Steals args (may be NULL). `fd` >= 0 travels beside the line and stays the caller's. `done` may
 * be NULL: then a refusal by QEMU ends the client. -ENOBUFS, -EPIPE. */
int qmp_command(struct qmp *q, const char *name, json_t *args, int fd, uint64_t deadline_ms,
		qmp_done *done, void *arg);

#endif
