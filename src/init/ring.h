/* What one process wrote: the newest bytes of stdout, stderr or its terminal, in the order they
 * were read, for any number of readers with a cursor each. Pure: no descriptor, no clock.
 *
 * A position in the output is a *sequence number*: how many bytes the process had written before.
 * The storage starts empty and doubles up to RING_MAX (and while the budget lasts); when it is
 * full, the oldest bytes go. Whoever must not lose bytes (a subscriber) is protected by the
 * writer: it writes at most ring_room(slowest reader) bytes. */
#ifndef SPACE_INIT_RING_H
#define SPACE_INIT_RING_H

#include "init/budget.h"

enum ring_tag { RING_STDOUT, RING_STDERR, RING_PTY, RING_TAGS };

struct ring {
	uint8_t *p;
	size_t cap;
	uint64_t first;     /* storage offset of the oldest record */
	uint64_t next;      /* storage offset after the newest */
	uint64_t first_seq; /* sequence number at `first` */
	uint64_t next_seq;
	uint64_t last; /* storage offset of the newest record's head; valid if first != next */
	struct budget *budget;
};

struct ring_cursor {
	uint64_t seq;  /* of the next byte to be read */
	uint64_t at;   /* storage offset of the record it is in */
	size_t inside; /* bytes of that record already read */
};

void ring_init(struct ring *r, struct budget *b); /* borrows the budget */
void ring_done(struct ring *r);
void ring_trim(struct ring *r); /* gives unused storage back; the content and cursors stay */

/* Appends; what no longer fits goes at the old end. */
void ring_write(struct ring *r, enum ring_tag tag, const void *p, size_t n);

/* The newest position, or the oldest one that is still there and not before `seq`. */
struct ring_cursor ring_newest(const struct ring *r);
struct ring_cursor ring_seek(const struct ring *r, uint64_t seq);

/* The next bytes at the cursor: one slice of one stream, 0 when there is nothing new. A cursor that
 * was overtaken jumps to the oldest byte. Does not move past the slice: ring_skip() does. */
size_t ring_peek(const struct ring *r, struct ring_cursor *c, enum ring_tag *ret_tag,
		 const uint8_t **ret_p);
void ring_skip(struct ring_cursor *c, size_t n); /* n <= what peek gave */

/* How many bytes one ring_write() takes at least without overtaking the cursor. */
size_t ring_room(const struct ring *r, const struct ring_cursor *c);

#endif
