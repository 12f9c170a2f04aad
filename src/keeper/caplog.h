/* Copies what a child says into a file that never grows past a cap: at the cap the newest half
 * stays. It reads no faster than a rate, so that a flood costs the flooder, not the host: the pipe
 * or socket fills and the writer waits (QEMU drops a console's bytes then, and its guest goes on).
 * The bytes are opaque. */
#ifndef SPACE_KEEPER_CAPLOG_H
#define SPACE_KEEPER_CAPLOG_H

#include "base/defs.h"

struct loop;
struct caplog;

#define CAPLOG_FILE_MAX (1024u * 1024)
#define CAPLOG_PER_S    (256u * 1024) /* bytes */
#define CAPLOG_BURST    (512u * 1024)

/* Takes from (readable); borrows `to` (a regular file, readable and writable; other writers may
 * append to it). */
struct caplog *caplog_new(struct loop *l, int from, int to);
void caplog_free(struct caplog *c); /* copies what is there already, within the cap */

#endif
