/* See guest.h.
 *
 * state   waits for                                   leaves to
 * WAKE    the echo of this round's wake record        ASK; WAKE with a new nonce after retry_ms
 * ASK     both echoes of this round's prefaces        UP; WAKE with a new nonce after retry_ms
 * REST    first_ms since the round began              WAKE (a session that broke at once)
 * UP      the end of either HTTP/2 session            REST
 * GONE    nothing                                     (QEMU closed a port)
 *
 * Bytes that are not the awaited record are what is left of an older session: read over, bounded a
 * round by DISCARD_MAX, so that a guest cannot make this process read for ever. */
#include "daemon/guest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/reply.h"
#include "net/h2.h"
#include "net/loop.h"
#include "wire/wake.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define READ_MAX     (16u * 1024)
#define RETRY_MAX_MS 8000u /* rounds get longer, so that a slow guest can answer within one */
#define DISCARD_MAX  (16u * 1024 * 1024) /* bytes of old sessions read over in one round and port */

enum guest_state { GUEST_WAKE, GUEST_ASK, GUEST_REST, GUEST_UP, GUEST_GONE };

struct port {
	struct guest *guest;
	int fd;
	struct watch *watch; /* while an echo is awaited */
	size_t discarded;    /* in this round */
	/* control and egress only */
	struct preface_scan scan;
	bool has_echo;
	struct h2 *h2;
	size_t early_n; /* read behind the echo */
	uint8_t early[READ_MAX];
};

struct guest {
	struct loop *loop;
	const struct guest_ops *ops;
	void *arg;
	enum guest_state state;
	uint64_t generation;
	uint64_t round_ns; /* when this round began */
	uint64_t retry_ms; /* how long the next one lasts */
	uint64_t first_ms; /* and the first after a session */
	struct timer *retry;
	uint8_t nonce[WAKE_NONCE]; /* this round's */
	struct wake_scan scan;
	struct port port[GUEST_PORTS];
};

static void port_quiet(struct port *p)
{
	watch_free(p->watch);
	p->watch = NULL;
}

/* Leaves whatever state it was in. */
static void sessions_drop(struct guest *g, enum guest_state next)
{
	enum guest_state was = g->state;

	g->state = next;
	if (was == GUEST_UP)
		g->ops->on_lost(g->arg);
	for (size_t i = 0; i < ARRAY_LEN(g->port); i++) {
		struct h2 *h = g->port[i].h2;

		port_quiet(&g->port[i]);
		g->port[i].h2 = NULL;
		h2_free(h);
	}
}

static void guest_gone(struct guest *g)
{
	if (g->state == GUEST_GONE)
		return;
	timer_clear(g->retry);
	sessions_drop(g, GUEST_GONE);
	g->ops->on_gone(g->arg);
}

/* Begins again, but never more often than once every first_ms. */
static void guest_again(struct guest *g)
{
	uint64_t ran_ms = (clock_mono_ns() - g->round_ns) / NS_PER_MS;

	sessions_drop(g, GUEST_REST);
	timer_set(g->retry, ran_ms >= g->first_ms ? 0 : g->first_ms - ran_ms);
}

/* An HTTP/2 session may end without the port having ended: a guest can say goodbye. */
static bool port_is_closed(const struct port *p)
{
	uint8_t b;

	return recv(p->fd, &b, sizeof b, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_session_end(struct h2 *h, int err)
{
	struct port *p = h2_arg(h);
	struct guest *g = p->guest;

	p->h2 = NULL;
	h2_free(h);
	if (g->state != GUEST_UP)
		return;
	if (port_is_closed(p)) {
		guest_gone(g);
		return;
	}
	log_warn("guest session lost, asking anew", "port=%s errno=%d",
		 p == &g->port[PORT_CONTROL] ? "control" : "egress", -err);
	guest_again(g);
}

static void on_egress_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	(void)h, (void)m;
	reply_send(s, 403, "this sandbox has no network");
}

static const struct h2_ops control_ops = {.on_end = on_session_end};
static const struct h2_ops egress_ops = {
	.on_request = on_egress_request,
	.on_end = on_session_end,
};

static void session_begin(struct port *p, unsigned flags, const struct h2_ops *ops)
{
	p->h2 = h2_new(p->guest->loop, p->fd, flags | H2_HOSTILE_PEER, ops, p, p->early,
		       p->early_n);
	p->early_n = 0;
}

static void guest_up(struct guest *g)
{
	timer_clear(g->retry);
	g->retry_ms = g->first_ms;
	g->state = GUEST_UP;
	session_begin(&g->port[PORT_CONTROL], 0, &control_ops);
	session_begin(&g->port[PORT_EGRESS], H2_SERVER, &egress_ops);
	log_info("guest session up", "generation=%" PRIu64, g->generation);
	g->ops->on_up(g->arg, g->port[PORT_CONTROL].h2);
}

/* A port whose queue is full loses the record: the next round brings another. */
static void record_send(struct port *p, const void *bytes, size_t n)
{
	if (write(p->fd, bytes, n) != (ssize_t)n)
		log_debug("port is full, asking again later", "fd=%d", p->fd);
}

static void port_listen(struct port *p, void (*cb)(void *arg, int events))
{
	port_quiet(p);
	p->watch = watch_new(p->guest->loop, p->fd, cb, p);
	watch_set(p->watch, WATCH_READ);
}

/* Reads a chunk into p->early. 0: nothing to look at now. */
static size_t port_read(struct port *p)
{
	ssize_t n = read(p->fd, p->early, sizeof p->early);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		guest_gone(p->guest);
	if (n <= 0)
		return 0;
	p->discarded += (size_t)n;
	return (size_t)n;
}

/* Looks for the echo in what was read; the rest of the chunk already belongs to the session. */
static void on_preface(void *arg, int events)
{
	struct port *p = arg;
	struct guest *g = p->guest;
	size_t n = port_read(p);
	size_t used;

	(void)events;
	if (n == 0)
		return;
	if (!preface_scan_step(&p->scan, p->early, n, &used)) {
		if (p->discarded >= DISCARD_MAX)
			port_quiet(p); /* until the next round */
		return;
	}
	port_quiet(p);
	p->has_echo = true;
	p->early_n = n - used;
	memmove(p->early, p->early + used, p->early_n);
	if (g->port[PORT_CONTROL].has_echo && g->port[PORT_EGRESS].has_echo)
		guest_up(g);
}

static void port_ask(struct port *p)
{
	uint8_t bytes[PREFACE_SIZE];

	preface_print(bytes, p->guest->nonce);
	preface_scan_init(&p->scan, p->guest->nonce);
	record_send(p, bytes, sizeof bytes);
	port_listen(p, on_preface);
}

static void on_wake(void *arg, int events)
{
	struct port *p = arg;
	struct guest *g = p->guest;
	size_t left = port_read(p);
	const uint8_t *at = p->early;
	struct wake echo;
	size_t used;

	(void)events;
	while (left && wake_scan_step(&g->scan, at, left, &used, &echo)) {
		at += used;
		left -= used;
		if (echo.generation != g->generation ||
		    memcmp(echo.nonce, g->nonce, sizeof g->nonce) != 0)
			continue; /* of an earlier round */
		port_quiet(p);
		g->state = GUEST_ASK;
		port_ask(&g->port[PORT_CONTROL]);
		port_ask(&g->port[PORT_EGRESS]);
		return;
	}
	if (p->discarded >= DISCARD_MAX)
		port_quiet(p);
}

static void round_start(struct guest *g)
{
	struct wake w = {.generation = ++g->generation};
	uint8_t bytes[WAKE_SIZE];

	if (getrandom(w.nonce, sizeof w.nonce, 0) != sizeof w.nonce)
		abort(); /* a nonce that can be guessed would let an old session echo it */
	memcpy(g->nonce, w.nonce, sizeof g->nonce);
	g->state = GUEST_WAKE;
	g->round_ns = clock_mono_ns();
	for (size_t i = 0; i < ARRAY_LEN(g->port); i++) {
		port_quiet(&g->port[i]);
		g->port[i].has_echo = false;
		g->port[i].discarded = 0;
		g->port[i].early_n = 0;
	}
	wake_scan_init(&g->scan);
	wake_print(bytes, &w);
	record_send(&g->port[PORT_WAKE], bytes, sizeof bytes);
	port_listen(&g->port[PORT_WAKE], on_wake);
	timer_set(g->retry, g->retry_ms);
	g->retry_ms = u64_min(g->retry_ms * 2, RETRY_MAX_MS);
}

static void on_retry(void *arg)
{
	round_start(arg);
}

struct guest *guest_new(struct loop *l, const int fd[GUEST_PORTS], unsigned retry_ms,
			const struct guest_ops *ops, void *arg)
{
	struct guest *g = xcalloc(1, sizeof *g);

	g->loop = l;
	g->ops = ops;
	g->arg = arg;
	g->retry_ms = g->first_ms = retry_ms;
	g->generation = clock_real_ns(); /* above every earlier process's, as a rule */
	g->retry = timer_new(l, on_retry, g);
	for (size_t i = 0; i < ARRAY_LEN(g->port); i++) {
		g->port[i].guest = g;
		g->port[i].fd = fd[i];
	}
	round_start(g);
	return g;
}

void guest_free(struct guest *g)
{
	if (!g)
		return;
	sessions_drop(g, GUEST_GONE);
	timer_free(g->retry);
	free(g);
}
