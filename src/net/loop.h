/* The event loop: one a process, one thread. Wraps libuv; nothing above net/ sees libuv's types.
 *
 * Watchers are heap objects owned by the caller and ended by their _free; a callback may free any
 * watcher, itself included. No callback runs after _free and none before the creating call
 * returned. */
#ifndef SPACE_NET_LOOP_H
#define SPACE_NET_LOOP_H

#include "base/defs.h"

struct loop;
struct timer;
struct watch;
struct sigwatch;

struct loop *loop_new(void);    /* aborts when the kernel refuses */
void loop_free(struct loop *l); /* every watcher was freed before; waits for loop_work */
void loop_run(struct loop *l);  /* until loop_stop() */
void loop_stop(struct loop *l);

/* One-shot timer. _set arms it (replacing an earlier time), _clear disarms. */
struct timer *timer_new(struct loop *l, void (*cb)(void *arg), void *arg);
void timer_set(struct timer *t, uint64_t after_ms);
void timer_clear(struct timer *t);
bool timer_is_set(const struct timer *t);
void timer_free(struct timer *t); /* NULL is fine, as for all _free here */

/* Readiness of a file descriptor (borrowed; free the watch before closing it; one watch a
 * descriptor; made non-blocking here). `events` is a set of WATCH_*; 0 stops watching. A level, not
 * an edge. An error or hang-up is reported as readable and writable. Not for plain files. */
#define WATCH_READ  1
#define WATCH_WRITE 2
#define WATCH_GONE  4 /* a socket's peer will send no more (or is gone): seen without reading */
struct watch *watch_new(struct loop *l, int fd, void (*cb)(void *arg, int events), void *arg);
void watch_set(struct watch *w, int events);
void watch_free(struct watch *w);

/* A signal, delivered in the loop. */
struct sigwatch *sigwatch_new(struct loop *l, int signo, void (*cb)(void *arg, int signo),
			      void *arg);
void sigwatch_free(struct sigwatch *s);

/* Calls cb once after the current callback has returned, before the loop sleeps. For freeing what
 * is on the stack and for breaking call cycles. Not cancellable: use timer_set(t, 0) when it must
 * be. */
void loop_later(struct loop *l, void (*cb)(void *arg), void *arg);

/* Runs work on a pool thread, then done in the loop. Not cancellable. */
void loop_work(struct loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg);

uint64_t loop_now_ns(struct loop *l); /* CLOCK_MONOTONIC at the start of this turn, whole ms */

#endif
