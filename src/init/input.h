/* The way into a process: a queue of byte strings in front of its stdin or terminal. Each is
 * reported when its last byte is in the pipe, so the caller of SendInput waits as long as the
 * process does. */
#ifndef SPACE_INIT_INPUT_H
#define SPACE_INIT_INPUT_H

#include "base/defs.h"

struct loop;
struct watch;
struct budget;
struct input_item;

struct input {
	int fd; /* -1: closed */
	struct watch *watch;
	struct input_item *first;
	struct input_item *last;
	size_t n;
	bool is_closing; /* after what is queued */
	struct budget *budget;
};

void input_init(struct input *in, struct budget *b);
void input_open(struct input *in, struct loop *l, int fd); /* takes fd, non-blocking */
/* Takes data (freed here). on_done comes later and once: 0, or -EPIPE (nobody reads any more).
 * -EPIPE (closed), -ENOBUFS (STDIN_QUEUE or the budget is full): data is freed, no on_done. */
int input_push(struct input *in, uint8_t *data, size_t n, void (*on_done)(void *arg, int err),
	       void *arg, struct input_item **ret);
void input_forget(struct input_item *item); /* its on_done will not come; the bytes go on */
int input_close(struct input *in);          /* -EPIPE: it is closed already */
void input_shut(struct input *in);          /* now; what is queued gets -EPIPE */

#endif
