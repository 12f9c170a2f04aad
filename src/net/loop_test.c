/* The loop's promises: order, freeing inside callbacks, errors as readiness, nothing after
 * _free. */
#include "net/loop.h"

#include "base/clock.h"
#include "base/test.h"
#include "os/fd.h"
#include "os/sock.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

struct seen {
	struct loop *loop;
	struct timer *timer;
	struct watch *watch;
	struct sigwatch *sig;
	char log[64];
	size_t n;
	int events;
	int fd;
	pthread_t worker;
};

static void note(struct seen *s, char c)
{
	if (s->n < sizeof s->log - 1)
		s->log[s->n++] = c;
}

static void on_stop(void *arg)
{
	struct seen *s = arg;

	note(s, '.');
	loop_stop(s->loop);
}

static void on_later_again(void *arg)
{
	note(arg, 'b');
}

static void on_later(void *arg)
{
	struct seen *s = arg;

	note(s, 'a');
	loop_later(s->loop, on_later_again, s);
	note(s, 'A');
}

static void test_later(struct seen *s)
{
	struct timer *stop = timer_new(s->loop, on_stop, s);

	timer_set(stop, 20);
	loop_later(s->loop, on_later, s);
	note(s, '0');
	loop_run(s->loop);
	EXPECT_STR("later runs after its caller, before the loop sleeps", s->log, "0aAb.");
	EXPECT("a timer that fired is not set", !timer_is_set(stop));
	timer_free(stop);
}

static void on_timer_free(void *arg)
{
	struct seen *s = arg;

	note(s, 't');
	timer_free(s->timer);
	s->timer = NULL;
	loop_later(s->loop, on_stop, s);
}

static void test_timer(struct seen *s)
{
	struct timer *never = timer_new(s->loop, on_later_again, s);
	uint64_t began_ns = clock_mono_ns();

	s->timer = timer_new(s->loop, on_timer_free, s);
	timer_set(never, 1);
	timer_clear(never);
	timer_set(s->timer, 10000);
	timer_set(s->timer, 30); /* replaces */
	EXPECT("armed", timer_is_set(s->timer));
	loop_run(s->loop);
	EXPECT_STR("a timer may free itself, a cleared one is silent", s->log, "t.");
	EXPECT("not before its time", clock_mono_ns() - began_ns >= 29 * NS_PER_MS);
	timer_free(never);
	timer_free(NULL);
}

static void on_watch(void *arg, int events)
{
	struct seen *s = arg;

	s->events |= events;
	note(s, 'w');
	if (s->n < 2)
		return; /* a level: it comes again */
	watch_free(s->watch);
	fd_drop(&s->fd);
	loop_stop(s->loop);
}

enum peer_does { PEER_WRITES, PEER_CLOSES, PEER_SHUTS, PEER_RESETS };

static void test_watch(struct seen *s, int interest, enum peer_does what, int want)
{
	int fd[2];

	CHECK(sock_pair(SOCK_STREAM, fd) == 0);
	s->fd = fd[0];
	s->watch = watch_new(s->loop, fd[0], on_watch, s);
	watch_set(s->watch, interest);
	if (what == PEER_WRITES)
		CHECK(write(fd[1], "x", 1) == 1);
	if (what == PEER_SHUTS)
		CHECK(shutdown(fd[1], SHUT_WR) == 0);
	if (what == PEER_RESETS) /* closing with unread bytes is an error to the other side */
		CHECK(write(fd[0], "x", 1) == 1);
	if (what == PEER_CLOSES || what == PEER_RESETS)
		fd_drop(&fd[1]);
	loop_run(s->loop);
	EXPECT_STR("readiness is a level", s->log, "ww");
	EXPECT_EQ("events", s->events & want, want);
	if (what == PEER_WRITES || what == PEER_SHUTS)
		fd_drop(&fd[1]);
}

static void on_watch_never(void *arg, int events)
{
	(void)events;
	note(arg, '!');
}

static void on_watch_frees_other(void *arg, int events)
{
	struct seen *s = arg;

	(void)events;
	note(s, 'w');
	watch_free(s->watch); /* ready in this very turn, too */
	loop_later(s->loop, on_stop, s);
}

static void test_free_other(struct seen *s)
{
	struct watch *first;
	int a[2], b[2];

	CHECK(sock_pair(SOCK_STREAM, a) == 0 && sock_pair(SOCK_STREAM, b) == 0);
	first = watch_new(s->loop, a[0], on_watch_frees_other, s);
	s->watch = watch_new(s->loop, b[0], on_watch_never, s);
	watch_set(first, WATCH_READ);
	watch_set(s->watch, WATCH_READ);
	CHECK(write(a[1], "x", 1) == 1 && write(b[1], "x", 1) == 1);
	loop_later(s->loop, on_stop, s); /* stops after one turn, in which both were ready */
	loop_run(s->loop);
	EXPECT("no callback after _free", strchr(s->log, '!') == NULL);
	watch_free(first);
	for (size_t i = 0; i < 2; i++) {
		fd_drop(&a[i]);
		fd_drop(&b[i]);
	}
}

static void on_sig(void *arg, int signo)
{
	struct seen *s = arg;

	note(s, signo == SIGUSR1 ? 's' : '?');
	sigwatch_free(s->sig);
	loop_stop(s->loop);
}

static void test_signal(struct seen *s)
{
	s->sig = sigwatch_new(s->loop, SIGUSR1, on_sig, s);
	CHECK(raise(SIGUSR1) == 0);
	loop_run(s->loop);
	EXPECT_STR("a signal arrives in the loop", s->log, "s");
}

static void do_work(void *arg)
{
	struct seen *s = arg;

	s->worker = pthread_self();
}

static void on_done(void *arg)
{
	struct seen *s = arg;

	note(s, 'd');
	loop_stop(s->loop);
}

static void test_work(struct seen *s)
{
	loop_work(s->loop, do_work, on_done, s);
	loop_run(s->loop);
	EXPECT_STR("work is done", s->log, "d");
	EXPECT("on another thread", !pthread_equal(s->worker, pthread_self()));
}

static struct seen seen_new(void)
{
	return (struct seen){.loop = loop_new(), .fd = -1};
}

static void with_loop(void (*test)(struct seen *s))
{
	struct seen s = seen_new();

	test(&s);
	loop_free(s.loop);
}

static void with_watch(int interest, enum peer_does what, int want)
{
	struct seen s = seen_new();

	test_watch(&s, interest, what, want);
	loop_free(s.loop);
}

int main(void)
{
	with_loop(test_later);
	with_loop(test_timer);
	with_watch(WATCH_READ, PEER_WRITES, WATCH_READ);
	with_watch(WATCH_READ, PEER_CLOSES, WATCH_READ);
	with_watch(WATCH_WRITE, PEER_CLOSES, WATCH_WRITE);
	with_watch(WATCH_READ, PEER_RESETS, WATCH_READ | WATCH_WRITE);
	with_watch(WATCH_GONE, PEER_SHUTS, WATCH_GONE);
	with_watch(WATCH_GONE, PEER_CLOSES, WATCH_GONE);
	with_watch(WATCH_GONE, PEER_RESETS, WATCH_GONE);
	with_loop(test_free_other);
	with_loop(test_signal);
	with_loop(test_work);
	return test_done();
}
