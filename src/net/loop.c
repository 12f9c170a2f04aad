/* The event loop on libuv; see loop.h. Every watcher is one heap object whose first act in _free is
 * to forget its callback; libuv hands the memory back in a later turn, so freeing inside a callback
 * is safe. */
#include "net/loop.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

struct later {
	void (*cb)(void *arg);
	void *arg;
	struct later *next;
};

struct loop {
	uv_loop_t uv;
	uv_idle_t idle; /* active while something waits in `first`: keeps the loop from sleeping */
	uv_async_t alive; /* never sent: a loop without watchers still runs until loop_stop() */
	struct later *first;
	struct later **last;
};

struct timer {
	uv_timer_t uv;
	void (*cb)(void *arg);
	void *arg;
};

struct watch {
	uv_poll_t uv;
	void (*cb)(void *arg, int events);
	void *arg;
	int events;
	bool is_halted; /* libuv stopped it because of an error */
};

struct sigwatch {
	uv_signal_t uv;
	void (*cb)(void *arg, int signo);
	void *arg;
};

struct work {
	uv_work_t uv;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

/* The kernel refusing an epoll, a timer or a thread leaves nothing to go on with. */
static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "event loop: %s: %s\n", what, uv_strerror(r));
	abort();
}

static void on_idle(uv_idle_t *h)
{
	struct loop *l = h->data;
	struct later *q = l->first;
	struct later *next;

	l->first = NULL;
	l->last = &l->first;
	uv_idle_stop(h);
	for (; q; q = next) {
		next = q->next;
		q->cb(q->arg);
		free(q);
	}
}

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof *l);

	must(uv_loop_init(&l->uv), "loop");
	must(uv_idle_init(&l->uv, &l->idle), "idle");
	must(uv_async_init(&l->uv, &l->alive, NULL), "async");
	l->idle.data = l;
	l->last = &l->first;
	return l;
}

/* The owners freed their watchers before: what runs here is their close callbacks, work that is on
 * the pool, and what was put off until later. */
void loop_free(struct loop *l)
{
	if (!l)
		return;
	uv_close((uv_handle_t *)&l->alive, NULL);
	(void)uv_run(&l->uv, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&l->idle, NULL);
	(void)uv_run(&l->uv, UV_RUN_DEFAULT);
	must(uv_loop_close(&l->uv), "close");
	free(l);
}

void loop_run(struct loop *l)
{
	(void)uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

uint64_t loop_now_ns(struct loop *l)
{
	return uv_now(&l->uv) * NS_PER_MS;
}

void loop_later(struct loop *l, void (*cb)(void *arg), void *arg)
{
	struct later *q = xcalloc(1, sizeof *q);

	q->cb = cb;
	q->arg = arg;
	*l->last = q;
	l->last = &q->next;
	must(uv_idle_start(&l->idle, on_idle), "idle start");
}

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void on_timer(uv_timer_t *h)
{
	struct timer *t = h->data;

	if (t->cb)
		t->cb(t->arg);
}

struct timer *timer_new(struct loop *l, void (*cb)(void *arg), void *arg)
{
	struct timer *t = xcalloc(1, sizeof *t);

	must(uv_timer_init(&l->uv, &t->uv), "timer");
	t->uv.data = t;
	t->cb = cb;
	t->arg = arg;
	return t;
}

void timer_set(struct timer *t, uint64_t after_ms)
{
	uv_update_time(t->uv.loop); /* a long turn must not shorten the wait */
	must(uv_timer_start(&t->uv, on_timer, after_ms, 0), "timer start");
}

void timer_clear(struct timer *t)
{
	must(uv_timer_stop(&t->uv), "timer stop");
}

bool timer_is_set(const struct timer *t)
{
	return uv_is_active((const uv_handle_t *)&t->uv);
}

void timer_free(struct timer *t)
{
	if (!t)
		return;
	t->cb = NULL;
	uv_close((uv_handle_t *)&t->uv, on_closed);
}

static void on_poll(uv_poll_t *h, int status, int uv_events);

static void watch_start(struct watch *w)
{
	int uv_events = 0;

	if (w->events & WATCH_READ)
		uv_events |= UV_READABLE;
	if (w->events & WATCH_WRITE)
		uv_events |= UV_WRITABLE;
	if (w->events & WATCH_GONE)
		uv_events |= UV_DISCONNECT;
	w->is_halted = false;
	if (uv_events)
		must(uv_poll_start(&w->uv, uv_events, on_poll), "poll start");
	else
		must(uv_poll_stop(&w->uv), "poll stop");
}

static void on_poll(uv_poll_t *h, int status, int uv_events)
{
	struct watch *w = h->data;
	int events = 0;

	if (status < 0) {
		events = WATCH_READ | WATCH_WRITE | (w->events & WATCH_GONE);
		w->is_halted = true;
	}
	if (uv_events & UV_READABLE)
		events |= WATCH_READ;
	if (uv_events & UV_WRITABLE)
		events |= WATCH_WRITE;
	if (uv_events & UV_DISCONNECT)
		events |= WATCH_GONE;
	if (w->cb && events)
		w->cb(w->arg, events);
	/* Readiness is a level, also after an error: whoever is still interested hears of it
	 * again. */
	if (w->cb && w->is_halted)
		watch_start(w);
}

struct watch *watch_new(struct loop *l, int fd, void (*cb)(void *arg, int events), void *arg)
{
	struct watch *w = xcalloc(1, sizeof *w);

	must(uv_poll_init(&l->uv, &w->uv, fd), "poll");
	w->uv.data = w;
	w->cb = cb;
	w->arg = arg;
	return w;
}

void watch_set(struct watch *w, int events)
{
	if (events == w->events && !w->is_halted)
		return;
	w->events = events;
	watch_start(w);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	w->cb = NULL;
	/* Stopped at once, so that the descriptor may be closed right after. */
	uv_close((uv_handle_t *)&w->uv, on_closed);
}

static void on_signal(uv_signal_t *h, int signo)
{
	struct sigwatch *s = h->data;

	if (s->cb)
		s->cb(s->arg, signo);
}

struct sigwatch *sigwatch_new(struct loop *l, int signo, void (*cb)(void *arg, int signo),
			      void *arg)
{
	struct sigwatch *s = xcalloc(1, sizeof *s);

	must(uv_signal_init(&l->uv, &s->uv), "signal");
	s->uv.data = s;
	s->cb = cb;
	s->arg = arg;
	must(uv_signal_start(&s->uv, on_signal, signo), "signal start");
	return s;
}

void sigwatch_free(struct sigwatch *s)
{
	if (!s)
		return;
	s->cb = NULL;
	uv_close((uv_handle_t *)&s->uv, on_closed);
}

static void on_work(uv_work_t *u)
{
	struct work *w = u->data;

	w->work(w->arg);
}

static void on_work_done(uv_work_t *u, int status)
{
	struct work *w = u->data;

	(void)status; /* never cancelled */
	w->done(w->arg);
	free(w);
}

void loop_work(struct loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct work *w = xcalloc(1, sizeof *w);

	w->uv.data = w;
	w->work = work;
	w->done = done;
	w->arg = arg;
	must(uv_queue_work(&l->uv, &w->uv, on_work, on_work_done), "work");
}
