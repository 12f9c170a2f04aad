/* Our own stdout and stderr as the end of a stream: never blocks the loop and never changes the
 * descriptor's flags (they are shared with the shell). Bytes go out raw. */
#ifndef SPACE_CLI_SINK_H
#define SPACE_CLI_SINK_H

#include "base/buf.h"

struct loop;
struct timer;
struct watch;

struct sink {
	int fd;
	bool can_wait; /* false: a file, which takes everything at once */
	int err;       /* why it takes no more, 0: it does; bytes are dropped from here on */
	struct watch *watch;
	struct timer *turn; /* of a file */
	struct buf queue;
	void (*on_drain)(void *arg, size_t n); /* n bytes were written, or dropped */
	void *arg;
};

/* max_bytes: what may wait in it. */
void sink_init(struct sink *s, struct loop *l, int fd, size_t max_bytes,
	       void (*on_drain)(void *arg, size_t n), void *arg);
void sink_done(struct sink *s);

/* All or -ENOBUFS. on_drain is never called from within. */
int sink_write(struct sink *s, const void *p, size_t n);
static inline bool sink_is_empty(const struct sink *s)
{
	return buf_len(&s->queue) == 0;
}

/* Whether readiness of that descriptor can be waited for (not so for files and /dev/null). */
bool fd_can_wait(int fd);

#endif
