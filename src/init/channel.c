/* Ports and handshake: see channel.h. A port whose host side is closed reports a hang-up without
 * end, reads 0 and refuses writes, so such a port is looked at again after a while instead of being
 * waited for. */
#include "init/channel.h"

#include "base/alloc.h"
#include "base/log.h"
#include "init/boot.h"
#include "net/loop.h"
#include "wire/wake.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define AGAIN_MS 5
#define READ_MAX 16384

enum port_state { PORT_IDLE, PORT_SEEK, PORT_ECHO, PORT_OPEN, PORT_STATES };

struct port {
	struct channel *channel;
	const struct h2_ops *ops;
	unsigned flags;
	int fd;
	enum port_state state;
	struct watch *watch; /* PORT_SEEK */
	struct timer *again; /* PORT_SEEK, PORT_ECHO: when the host is not there */
	struct preface_scan scan;
	uint8_t echo[PREFACE_SIZE];
	size_t echo_off;
	struct h2 *session; /* PORT_OPEN */
	size_t early_n;     /* bytes behind the preface: the session's first */
	uint8_t early[READ_MAX];
};

struct channel {
	struct loop *loop;
	void (*on_request)(void *arg, struct h2_stream *s, const struct h2_message *m);
	void *arg;
	struct port control;
	struct port egress;
	int wake_fd;
	struct watch *wake_watch;
	struct timer *wake_again;
	struct wake_scan scan;
	uint8_t echo[WAKE_SIZE]; /* of the newest wake */
	size_t echo_off;         /* WAKE_SIZE: it is written */
};

/* --- one port --- */

static void port_watch(struct port *p, bool on)
{
	watch_set(p->watch, on ? WATCH_READ : 0);
	if (!on)
		timer_clear(p->again);
}

static void port_drop(struct port *p)
{
	port_watch(p, false);
	h2_free(p->session);
	p->session = NULL;
	p->early_n = 0;
	p->state = PORT_IDLE;
}

static void port_open(struct port *p)
{
	p->state = PORT_OPEN;
	p->session = h2_new(p->channel->loop, p->fd, p->flags, p->ops, p, p->early, p->early_n);
	p->early_n = 0;
}

static void port_echo(struct port *p)
{
	ssize_t n = write(p->fd, p->echo + p->echo_off, PREFACE_SIZE - p->echo_off);

	if (n > 0)
		p->echo_off += (size_t)n;
	if (p->echo_off == PREFACE_SIZE)
		port_open(p);
	else
		timer_set(p->again, AGAIN_MS);
}

/* Reads over whatever an old session left, up to the preface; what follows it belongs to the new
 * one. */
static void port_seek(struct port *p)
{
	size_t used = 0;
	ssize_t n = read(p->fd, p->early, sizeof p->early);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		watch_set(p->watch, 0);
		timer_set(p->again, AGAIN_MS);
		return;
	}
	if (!preface_scan_step(&p->scan, p->early, (size_t)n, &used))
		return;
	p->early_n = (size_t)n - used;
	memmove(p->early, p->early + used, p->early_n);
	port_watch(p, false);
	p->state = PORT_ECHO;
	port_echo(p);
}

static void port_on_event(void *arg, int events)
{
	struct port *p = arg;

	(void)events;
	if (p->state == PORT_SEEK)
		port_seek(p);
}

static void port_on_again(void *arg)
{
	struct port *p = arg;

	if (p->state == PORT_SEEK)
		port_watch(p, true);
	else if (p->state == PORT_ECHO)
		port_echo(p);
}

static void port_wake(struct port *p, const struct wake *w)
{
	port_drop(p);
	p->state = PORT_SEEK;
	preface_scan_init(&p->scan, w->nonce);
	preface_print(p->echo, w->nonce);
	p->echo_off = 0;
	port_watch(p, true);
}

static void port_init(struct port *p, struct channel *c, int fd, unsigned flags,
		      const struct h2_ops *ops)
{
	*p = (struct port){.channel = c, .ops = ops, .flags = flags, .fd = fd};
	p->watch = watch_new(c->loop, fd, port_on_event, p);
	p->again = timer_new(c->loop, port_on_again, p);
}

/* --- the sessions --- */

static void on_control_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	struct port *p = h2_arg(h);

	p->channel->on_request(p->channel->arg, s, m);
}

static void on_end(struct h2 *h, int err)
{
	struct port *p = h2_arg(h);

	log_info("session ended", "port=%s errno=%d", p->flags & H2_SERVER ? "control" : "egress",
		 -err);
	port_drop(p); /* frees h; the host wakes us anew */
}

static const struct h2_ops control_ops = {.on_request = on_control_request, .on_end = on_end};
static const struct h2_ops egress_ops = {.on_end = on_end};

/* --- space.wake --- */

/* The host sends its prefaces when it has seen this, so no old session can swallow them. */
static void wake_echo(struct channel *c)
{
	ssize_t n = write(c->wake_fd, c->echo + c->echo_off, WAKE_SIZE - c->echo_off);

	if (n > 0)
		c->echo_off += (size_t)n;
	if (c->echo_off < WAKE_SIZE)
		timer_set(c->wake_again, AGAIN_MS);
}

static void wake_take(struct channel *c, const struct wake *w)
{
	log_debug("wake", "generation=%" PRIu64, w->generation);
	port_wake(&c->control, w);
	port_wake(&c->egress, w);
	wake_print(c->echo, w);
	c->echo_off = 0;
	wake_echo(c);
}

static void wake_on_event(void *arg, int events)
{
	struct channel *c = arg;
	uint8_t bytes[WAKE_SIZE * 4];
	const uint8_t *at = bytes;
	ssize_t n = read(c->wake_fd, bytes, sizeof bytes);
	struct wake w;
	size_t used;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		watch_set(c->wake_watch, 0);
		timer_set(c->wake_again, AGAIN_MS);
		return;
	}
	for (size_t left = (size_t)n; left && wake_scan_step(&c->scan, at, left, &used, &w);
	     left -= used) {
		wake_take(c, &w);
		at += used;
	}
}

static void wake_on_again(void *arg)
{
	struct channel *c = arg;

	watch_set(c->wake_watch, WATCH_READ);
	if (c->echo_off < WAKE_SIZE)
		wake_echo(c);
}

int channel_new(struct loop *l,
		void (*on_request)(void *arg, struct h2_stream *s, const struct h2_message *m),
		void *arg, struct channel **ret, struct fail *f)
{
	int control_fd = -1;
	int egress_fd = -1;
	int wake_fd = -1;
	int err = boot_port("space.control", &control_fd, f);
	struct channel *c;

	if (!err)
		err = boot_port("space.egress", &egress_fd, f);
	if (!err)
		err = boot_port("space.wake", &wake_fd, f);
	if (err)
		return err; /* the guest ends: main.c */
	c = xcalloc(1, sizeof *c);
	*c = (struct channel){.loop = l,
			      .on_request = on_request,
			      .arg = arg,
			      .wake_fd = wake_fd,
			      .echo_off = WAKE_SIZE};
	port_init(&c->control, c, control_fd, H2_SERVER, &control_ops);
	port_init(&c->egress, c, egress_fd, 0, &egress_ops);
	wake_scan_init(&c->scan);
	c->wake_watch = watch_new(l, wake_fd, wake_on_event, c);
	c->wake_again = timer_new(l, wake_on_again, c);
	watch_set(c->wake_watch, WATCH_READ);
	*ret = c;
	return 0;
}
