/* The three virtio-serial ports and the sessions on them (wire/wake.h has the handshake).
 *
 *   state of a port   waits for                                   leaves to
 *   PORT_IDLE         a wake on space.wake                        PORT_SEEK
 *   PORT_SEEK         the preface with the wake's nonce           PORT_ECHO
 *   PORT_ECHO         the echo to be written                      PORT_OPEN
 *   PORT_OPEN         the session's end                           PORT_IDLE
 *   any               a newer wake                                PORT_SEEK
 *
 * A wake drops both sessions: their streams close, the processes go on. */
#ifndef SPACE_INIT_CHANNEL_H
#define SPACE_INIT_CHANNEL_H

#include "base/fail.h"
#include "net/h2.h"

struct loop;
struct channel;

/* Opens the ports. on_request: of the session on space.control, as in net/h2.h. */
int channel_new(struct loop *l,
		void (*on_request)(void *arg, struct h2_stream *s, const struct h2_message *m),
		void *arg, struct channel **ret, struct fail *f);

#endif
