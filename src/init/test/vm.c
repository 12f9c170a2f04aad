/* The guest under test: see vm.h. */
#include "init/test/vm.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "net/h2.h"
#include "net/loop.h"
#include "os/fd.h"
#include "wire/json.h"
#include "wire/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <x86intrin.h>

#define BOOT_MS   120000 /* emulated, on a loaded machine */
#define CALL_MS   60000
#define TSC_MS    100
#define CHUNK     65536
#define PORTS     3
#define TAIL_SIZE 1500

enum { CONTROL, EGRESS, WAKE };

struct vm {
	struct vm_files files;
	pid_t qemu;
	int port[PORTS];
	struct loop *loop;
	struct h2 *control;
	struct h2 *egress;
	uint64_t generation;
	bool is_late;
};

/* --- QEMU --- */

static uint64_t tsc_khz(void)
{
	struct timespec t = {.tv_nsec = TSC_MS * 1000000L};
	uint64_t a_ns = clock_mono_ns();
	uint64_t a = __rdtsc();
	uint64_t b;

	(void)nanosleep(&t, NULL); /* the length of a measurement, not a wait for something */
	b = __rdtsc();
	return (b - a) * NS_PER_MS / (clock_mono_ns() - a_ns);
}

static _Noreturn void exec_qemu(const struct vm *v, const int theirs[PORTS], unsigned memory)
{
	char *append = xasprintf("console=hvc0 quiet panic=-1 mitigations=off tsc=reliable "
				 "tsc_early_khz=%" PRIu64 " lpj=4000000",
				 tsc_khz());
	char *disk = xasprintf("file=%s,if=none,id=d,format=raw,snapshot=on,discard=unmap",
			       v->files.disk);
	char *console = xasprintf("file,id=console,path=%s", v->files.console);
	char *mem = xasprintf("%u", memory);
	char *chardev[PORTS];
	static const char *const device[PORTS] = {
		"virtserialport,chardev=c0,name=space.control,nr=1",
		"virtserialport,chardev=c1,name=space.egress,nr=2",
		"virtserialport,chardev=c2,name=space.wake,nr=3",
	};

	for (int i = 0; i < PORTS; i++) {
		(void)fd_set_cloexec(theirs[i], false);
		chardev[i] = xasprintf("socket,id=c%d,fd=%d", i, theirs[i]);
	}
	(void)execlp("qemu-system-x86_64", "qemu-system-x86_64", "-M",
		     "microvm,rtc=off,pit=off,pic=off,isa-serial=off,x-option-roms=off", "-accel",
		     "tcg,tb-size=128", "-cpu", "max,-la57", "-m", mem, "-smp", "1", "-nodefaults",
		     "-no-user-config", "-no-reboot", "-display", "none", "-kernel",
		     v->files.kernel, "-initrd", v->files.initrd, "-append", append, "-drive", disk,
		     "-device", "virtio-blk-device,drive=d", "-device", "virtio-rng-device",
		     "-device", "virtio-serial-device", "-chardev", console, "-device",
		     "virtconsole,chardev=console,nr=0", "-chardev", chardev[0], "-device",
		     device[0], "-chardev", chardev[1], "-device", device[1], "-chardev",
		     chardev[2], "-device", device[2], (char *)NULL);
	_exit(127);
}

struct vm *vm_start(const struct vm_files *files, unsigned memory)
{
	struct vm *v = xcalloc(1, sizeof *v);
	int theirs[PORTS];

	v->files = *files;
	v->loop = loop_new();
	for (int i = 0; i < PORTS; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
			abort();
		v->port[i] = pair[0];
		theirs[i] = pair[1];
		(void)fd_set_nonblock(pair[0], true);
	}
	v->qemu = fork();
	if (v->qemu == 0)
		exec_qemu(v, theirs, memory);
	if (v->qemu < 0)
		abort();
	for (int i = 0; i < PORTS; i++)
		fd_drop(&theirs[i]);
	return v;
}

static void print_console(const struct vm *v)
{
	AUTO(fd_drop) int fd = open(v->files.console, O_RDONLY | O_CLOEXEC);
	char text[TAIL_SIZE];
	char safe[4 * TAIL_SIZE];
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n;

	if (fd < 0)
		return;
	n = pread(fd, text, sizeof text, end > TAIL_SIZE ? end - TAIL_SIZE : 0);
	if (n <= 0)
		return;
	(void)str_escape(safe, sizeof safe, text, (size_t)n, "\n\t");
	printf("--- console of the guest ---\n%s\n---\n", safe);
}

void vm_drop_sessions(struct vm *v)
{
	h2_free(v->control);
	h2_free(v->egress);
	v->control = NULL;
	v->egress = NULL;
}

void vm_kill(struct vm *v)
{
	vm_drop_sessions(v);
	if (v->qemu > 0) {
		(void)kill(v->qemu, SIGKILL);
		(void)waitpid(v->qemu, NULL, 0);
	}
	for (int i = 0; i < PORTS; i++)
		fd_drop(&v->port[i]);
	loop_free(v->loop);
	free(v);
}

bool vm_gone(struct vm *v, uint64_t within_ms)
{
	uint64_t deadline = clock_mono_ns() + within_ms * NS_PER_MS;
	struct pollfd p = {.fd = v->port[WAKE], .events = POLLIN};

	while (clock_mono_ns() < deadline) {
		char byte;

		if (waitpid(v->qemu, NULL, WNOHANG) == v->qemu) {
			v->qemu = -1;
			return true;
		}
		(void)poll(&p, 1, 50);
		if (p.revents && read(p.fd, &byte, 1) == 0) { /* its end is closed: it is dying */
			(void)waitpid(v->qemu, NULL, 0);
			v->qemu = -1;
			return true;
		}
	}
	print_console(v);
	return false;
}

/* --- waiting --- */

static void on_late(void *arg)
{
	struct vm *v = arg;

	v->is_late = true;
	loop_stop(v->loop);
}

bool vm_until(struct vm *v, bool (*is_true)(void *arg), void *arg, uint64_t ms)
{
	struct timer *t = timer_new(v->loop, on_late, v);

	v->is_late = false;
	timer_set(t, ms);
	while (!is_true(arg) && !v->is_late)
		loop_run(v->loop);
	timer_free(t);
	if (v->is_late && !is_true(arg))
		print_console(v);
	return is_true(arg);
}

struct loop *vm_loop(struct vm *v)
{
	return v->loop;
}

bool vm_has_session(const struct vm *v)
{
	return v->control != NULL;
}

/* --- the handshake --- */

static void on_end(struct h2 *h, int err)
{
	struct vm *v = h2_arg(h);

	(void)err;
	if (h == v->control)
		v->control = NULL;
	else
		v->egress = NULL;
	h2_free(h);
	loop_stop(v->loop);
}

static void on_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	(void)h;
	(void)m;
	h2_reset(s, H2_REFUSED_STREAM);
}

static const struct h2_ops control_ops = {.on_end = on_end};
static const struct h2_ops egress_ops = {.on_request = on_request, .on_end = on_end};

static bool read_some(int fd, uint8_t *p, size_t size, size_t *ret_n, uint64_t deadline)
{
	struct pollfd f = {.fd = fd, .events = POLLIN};

	while (clock_mono_ns() < deadline) {
		ssize_t n = read(fd, p, size);

		if (n > 0) {
			*ret_n = (size_t)n;
			return true;
		}
		if (n == 0 || errno != EAGAIN)
			return false;
		(void)poll(&f, 1, 100);
	}
	return false;
}

static bool wait_wake(struct vm *v, const struct wake *want, uint64_t deadline)
{
	struct wake_scan scan;
	struct wake got;
	uint8_t bytes[1024];
	size_t n;

	wake_scan_init(&scan);
	while (read_some(v->port[WAKE], bytes, sizeof bytes, &n, deadline)) {
		const uint8_t *at = bytes;
		size_t used;

		for (; n && wake_scan_step(&scan, at, n, &used, &got); at += used, n -= used)
			if (memcmp(got.nonce, want->nonce, WAKE_NONCE) == 0 &&
			    got.generation == want->generation)
				return true;
	}
	return false;
}

static bool wait_preface(int fd, const struct wake *w, uint8_t *early, size_t *ret_early,
			 uint64_t deadline)
{
	struct preface_scan scan;
	size_t n;
	size_t used;

	preface_scan_init(&scan, w->nonce);
	while (read_some(fd, early, CHUNK, &n, deadline)) {
		if (!preface_scan_step(&scan, early, n, &used))
			continue;
		*ret_early = n - used;
		memmove(early, early + used, n - used);
		return true;
	}
	return false;
}

bool vm_wake(struct vm *v)
{
	uint64_t deadline = clock_mono_ns() + BOOT_MS * NS_PER_MS;
	struct wake w = {.generation = ++v->generation};
	uint8_t bytes[WAKE_SIZE];
	AUTO(mem_drop) uint8_t *early = xcalloc(CHUNK, 1);
	size_t n = 0;

	vm_drop_sessions(v);
	if (getrandom(w.nonce, sizeof w.nonce, 0) != sizeof w.nonce)
		abort();
	wake_print(bytes, &w);
	if (write(v->port[WAKE], bytes, WAKE_SIZE) != WAKE_SIZE || !wait_wake(v, &w, deadline))
		goto failed;
	preface_print(bytes, w.nonce);
	for (int i = CONTROL; i <= EGRESS; i++) {
		if (write(v->port[i], bytes, PREFACE_SIZE) != PREFACE_SIZE ||
		    !wait_preface(v->port[i], &w, early, &n, deadline))
			goto failed;
		if (i == CONTROL)
			v->control = h2_new(v->loop, v->port[i], H2_HOSTILE_PEER, &control_ops, v,
					    early, n);
		else
			v->egress = h2_new(v->loop, v->port[i], H2_SERVER | H2_HOSTILE_PEER,
					   &egress_ops, v, early, n);
	}
	return true;
failed:
	print_console(v);
	return false;
}

void vm_garbage(struct vm *v, const void *p, size_t n)
{
	if (write(v->port[CONTROL], p, n) != (ssize_t)n)
		abort();
}

/* --- requests --- */

static struct loop *loop_of(struct h2_stream *s)
{
	struct vm *v = h2_arg(h2_stream_session(s));

	return v->loop;
}

static void on_head(struct h2_stream *s, const struct h2_message *m)
{
	struct reply *r = h2_stream_arg(s);
	const char *seq = h2_get(m, "space-seq");
	const char *gap = h2_get(m, "space-gap");
	uint64_t status = 0;

	(void)str_u64(h2_get(m, ":status"), 999, &status);
	r->status = (unsigned)status;
	r->gap = UINT64_MAX;
	if (seq)
		(void)str_u64(seq, UINT64_MAX, &r->seq);
	if (gap)
		(void)str_u64(gap, UINT64_MAX, &r->gap);
	r->type = xstrdup(h2_get(m, "content-type"));
	loop_stop(loop_of(s));
}

static void on_data(struct h2_stream *s, const uint8_t *p, size_t n)
{
	struct reply *r = h2_stream_arg(s);

	r->total += n;
	if (r->on_data)
		r->on_data(r, p, n);
	else if (!r->is_discarded) {
		r->body = xrealloc(r->body, r->n + n + 1, 1);
		memcpy(r->body + r->n, p, n);
		r->n += n;
		r->body[r->n] = 0;
	}
	if (r->is_held)
		r->held += n;
	else
		h2_consume(s, n);
	loop_stop(loop_of(s));
}

static void on_close(struct h2_stream *s, uint32_t code)
{
	struct reply *r = h2_stream_arg(s);

	r->is_closed = true;
	r->code = code;
	r->stream = NULL;
	loop_stop(loop_of(s));
}

static void on_stream_end(struct h2_stream *s)
{
	(void)s;
}

static void on_drain(struct h2_stream *s, size_t n)
{
	(void)n;
	loop_stop(loop_of(s));
}

static const struct h2_stream_ops reply_ops = {
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_stream_end,
	.on_drain = on_drain,
	.on_close = on_close,
};

static bool has_room(void *arg)
{
	const struct reply *r = arg;

	return r->is_closed || h2_room(r->stream) > 0;
}

struct reply *vm_send(struct vm *v, const char *method, const char *path,
		      const struct header headers[HEADERS_MAX], const void *body, size_t n)
{
	struct reply *r = xcalloc(1, sizeof *r);
	struct h2_message m = {0};
	const uint8_t *p = body;

	(void)h2_add(&m, ":method", method);
	(void)h2_add(&m, ":scheme", "http");
	(void)h2_add(&m, ":authority", "envd");
	(void)h2_add(&m, ":path", path);
	for (size_t i = 0; headers && i < HEADERS_MAX && headers[i].name; i++)
		(void)h2_add(&m, headers[i].name, headers[i].value);
	r->stream = v->control ? h2_request(v->control, &m, n == 0, &reply_ops, r) : NULL;
	if (!r->stream) {
		r->is_closed = true;
		return r;
	}
	while (n && vm_until(v, has_room, r, CALL_MS) && !r->is_closed) {
		size_t k = size_min(n, h2_room(r->stream));

		(void)h2_write(r->stream, p, k);
		p += k;
		n -= k;
		if (n == 0)
			h2_finish(r->stream);
	}
	return r;
}

void vm_reply_free(struct reply *r)
{
	if (!r)
		return;
	if (r->stream)
		h2_reset(r->stream, H2_CANCEL);
	/* on_close still wants it: a cancelled reply lives as long as the program. */
	mem_drop(&r->body);
	mem_drop(&r->type);
	if (r->is_closed)
		free(r);
}

void vm_reply_release(struct reply *r)
{
	r->is_held = false;
	if (r->stream && r->held)
		h2_consume(r->stream, r->held);
	r->held = 0;
}

static bool is_closed(void *arg)
{
	const struct reply *r = arg;

	return r->is_closed;
}

bool vm_reply_wait(struct vm *v, struct reply *r, uint64_t ms)
{
	return vm_until(v, is_closed, r, ms);
}

unsigned vm_call(struct vm *v, const char *method, const char *path, const char *body, json_t **ret)
{
	static const struct header json[HEADERS_MAX] = {{"content-type", "application/json"}};
	struct reply *r = vm_send(v, method, path, json, body, body ? strlen(body) : 0);
	unsigned status = vm_reply_wait(v, r, CALL_MS) ? r->status : 0;

	if (ret)
		*ret = r->n ? json_loadb((const char *)r->body, r->n, 0, NULL) : NULL;
	vm_reply_free(r);
	return status;
}
