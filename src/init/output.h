/* What a process writes: its pipes (or terminal) read into its ring, at the pace of the slowest
 * reader. Without readers the ring's oldest bytes go and the process never waits. */
#ifndef SPACE_INIT_OUTPUT_H
#define SPACE_INIT_OUTPUT_H

#include "init/ring.h"

struct loop;
struct watch;
struct output;

/* Embedded in whoever reads. on_change: there may be more at the cursor, or the process's state has
 * changed. It may detach this reader, but no other. */
struct reader {
	struct ring_cursor cursor;
	void (*on_change)(void *arg);
	void *arg;
	struct reader *next;
};

struct output_pipe {
	struct output *o;
	struct watch *watch;
	size_t left; /* bytes that still count; SIZE_MAX until output_close_soon() */
	int fd;      /* -1: at its end */
	enum ring_tag tag;
};

struct output {
	struct ring ring;
	struct reader *readers;
	size_t n_readers;
	struct output_pipe pipe[2];
	bool is_dropping;
	void (*on_done)(void *arg); /* output_is_done() may have become true */
	void *arg;
};

void output_init(struct output *o, struct budget *rings, void (*on_done)(void *arg), void *arg);
void output_done(struct output *o); /* closes the pipes; no reader may be left */
void output_add(struct output *o, struct loop *l, int fd,
		enum ring_tag tag); /* takes fd; twice at most */

void output_attach(struct output *o, struct reader *r);
void output_detach(struct output *o, struct reader *r);
void output_moved(struct output *o); /* a cursor went on: reading may go on */
void output_notify(struct output *o);

/* From now on only what already waits in the pipes counts. */
void output_close_soon(struct output *o);
bool output_is_done(const struct output *o); /* nothing that counts is still to come */
bool output_is_shut(const struct output *o); /* every pipe is at its end */
/* Reads on and drops, so that whoever still holds a pipe can write into it. */
void output_drop(struct output *o);

#endif
