/* A sandbox's life with honest and broken neighbours: this program stands where the jailer, the
 * keeper and space-daemon are, on the sockets that they get; spaced's own parts are the real
 * ones. Whatever goes wrong, nothing may be left: no folder, no record, no start slot. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/test.h"
#include "net/h2.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "spaced/jailer.h"
#include "spaced/sandbox.h"
#include "store/qcow2.h"
#include "store/variant.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define MIB       ((uint64_t)1024 * 1024)
#define GUARD_MS  20000
#define AT_ONCE   10u
#define JAILS_MAX 16u
#define ENGINE    "qemu test"

enum behaviour {
	GOOD,
	JAIL_FAILS,   /* the jailer cannot start it */
	KEEPER_DIES,  /* before it said anything */
	HAS_VM,       /* the keeper says that it has a VM already */
	GARBAGE,      /* the keeper breaks the protocol */
	VM_STOPS,     /* QEMU ends while it starts */
	INIT_REFUSED, /* the guest does not take its identity */
	DAEMON_GONE,  /* nobody answers on the platform socket */
	BEHAVIOURS
};

static struct node n;
static char dir[] = "/tmp/space-life-XXXXXX";
static enum behaviour behaviour;
static struct msgsock *line; /* to spaced, as the jailer */
static struct timer *guard;
static unsigned running, most_running, killed, inits;
static bool is_holding; /* VM_READY waits until released */
static char last_token[TOKEN_SIZE];

/* One jail that we play. */
struct jail_played {
	char id[SANDBOX_ID_SIZE];
	int fd[JAIL_FDS];
	struct watch *on_keeper, *on_platform;
	struct msgsock *keeper;
	int platform;
	struct h2 *h2;
	bool is_starting;
};
static struct jail_played *jails[JAILS_MAX];

void node_stop(struct node *node, const char *why)
{
	(void)node;
	(void)why;
}

static void send_id(enum msg_type type, const char *id, uint32_t value, const char *text)
{
	uint8_t body[512];
	struct wr w = wr_of(body, sizeof body);

	wr_str(&w, id);
	wr_be32(&w, value);
	if (text)
		wr_str(&w, text);
	CHECK(msgsock_send(line, type, 0, body, wr_len(&w), NULL, 0) == 0);
}

static void jail_done(struct jail_played *j)
{
	for (size_t i = 0; i < JAILS_MAX; i++)
		if (jails[i] == j)
			jails[i] = NULL;
	if (j->is_starting)
		running--;
	watch_free(j->on_keeper);
	watch_free(j->on_platform);
	msgsock_free(j->keeper);
	if (j->h2)
		h2_free(j->h2);
	fd_drop(&j->platform);
	for (size_t i = 0; i < JAIL_FDS; i++)
		fd_drop(&j->fd[i]);
	free(j);
}

static struct jail_played *jail_find(const char *id)
{
	for (size_t i = 0; i < JAILS_MAX; i++)
		if (jails[i] && strcmp(jails[i]->id, id) == 0)
			return jails[i];
	return NULL;
}

/* --- as the keeper --- */

static void tell_state(struct jail_played *j, enum vm_state state, const char *text)
{
	struct vm_event e = {.state = state};
	uint8_t body[512];
	struct wr w = wr_of(body, sizeof body);

	(void)str_copy(e.text, sizeof e.text, text);
	vm_event_print(&w, &e);
	CHECK(msgsock_send(j->keeper, MSG_VM_STATE, 0, body, wr_len(&w), NULL, 0) == 0);
}

static void become_ready(struct jail_played *j)
{
	if (j->is_starting)
		running--;
	j->is_starting = false;
	tell_state(j, VM_READY, "");
}

static void on_keeper_msg(void *arg, struct msg *m)
{
	struct jail_played *j = arg;
	struct vm_spec spec;

	CHECK(m->type == MSG_VM_RESTORE && m->n_fds == VM_RESTORE_FDS);
	CHECK(vm_spec_parse(&spec, m->body) == 0);
	EXPECT_STR("the id of the jail", spec.id, j->id);
	EXPECT("its memory is sealed", memfd_is_sealed(m->fd[RESTORE_FD_RAM]));
	EXPECT_EQ("the disk cannot be written", fcntl(m->fd[RESTORE_FD_BASE], F_GETFL) & O_ACCMODE,
		  O_RDONLY);
	EXPECT_EQ("the layer can", fcntl(m->fd[RESTORE_FD_LAYER], F_GETFL) & O_ACCMODE, O_RDWR);
	memcpy(last_token, spec.token, sizeof last_token);
	tell_state(j, VM_RUNNING, "");
	if (behaviour == VM_STOPS)
		tell_state(j, VM_STOPPED, "QEMU ended \x1b[2J at once");
	else if (!is_holding)
		become_ready(j);
}

static void on_keeper_end(void *arg, int err)
{
	(void)arg;
	(void)err;
}

static void on_keeper_connect(void *arg, int events)
{
	static const struct msgsock_ops ops = {.on_msg = on_keeper_msg, .on_end = on_keeper_end};
	struct jail_played *j = arg;
	struct keeper_hello h = {.state = VM_NONE, .daemon_starts = 1};
	uint8_t body[512];
	struct wr w = wr_of(body, sizeof body);
	int fd = -1, pidfd = -1;

	(void)events;
	if (j->keeper || sock_accept(j->fd[JAIL_FD_KEEPER_SOCK], &fd) < 0)
		return;
	if (behaviour == KEEPER_DIES) {
		(void)close(fd);
		return;
	}
	if (behaviour == GARBAGE) {
		CHECK(write(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 8);
		(void)close(fd);
		return;
	}
	j->keeper = msgsock_new(n.loop, fd, PEER_KEEPER, PEER_SPACED, &ops, j);
	if (behaviour == HAS_VM) { /* of a VM that nobody asked for */
		h.state = VM_READY;
		memcpy(h.id, j->id, sizeof h.id);
	}
	keeper_hello_print(&w, &h);
	CHECK(pidfd_of(getpid(), &pidfd) == 0);
	CHECK(msgsock_send(j->keeper, MSG_KEEPER_HELLO, 0, body, wr_len(&w), &pidfd, 1) == 0);
	fd_drop(&pidfd);
}

/* --- as space-daemon --- */

static void on_init_data(struct h2_stream *s, const uint8_t *p, size_t len)
{
	(void)p;
	h2_consume(s, len);
}

static void on_init_end(struct h2_stream *s)
{
	struct h2_message m = {.n = 0};

	inits++;
	CHECK(h2_add(&m, ":status", behaviour == INIT_REFUSED ? "400" : "204") == 0);
	CHECK(h2_respond(s, &m, true) == 0);
}

static void on_init_close(struct h2_stream *s, uint32_t code)
{
	(void)s;
	(void)code;
}

static void on_init(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	static const struct h2_stream_ops ops = {
		.on_data = on_init_data, .on_end = on_init_end, .on_close = on_init_close};

	EXPECT_STR("only the identity is asked here", h2_get(m, ":path"), "/space/init");
	h2_accept(s, &ops, h2_arg(h));
}

static void on_platform_end(struct h2 *h, int err)
{
	struct jail_played *j = h2_arg(h);

	(void)err;
	j->h2 = NULL;
	h2_free(h);
}

static void on_platform_connect(void *arg, int events)
{
	static const struct h2_ops ops = {.on_request = on_init, .on_end = on_platform_end};
	struct jail_played *j = arg;

	(void)events;
	if (j->h2 || sock_accept(j->fd[JAIL_FD_PLATFORM_SOCK], &j->platform) < 0)
		return;
	if (behaviour == DAEMON_GONE)
		fd_drop(&j->platform);
	else
		j->h2 = h2_new(n.loop, j->platform, H2_SERVER, &ops, j, NULL, 0);
}

/* --- as the jailer --- */

static void start_jail(struct msg *m)
{
	struct jail_played *j = xcalloc(1, sizeof *j);
	struct jail_start q;

	j->platform = -1;
	CHECK(jail_start_parse(&q, m->body) == 0 && m->n_fds == JAIL_FDS);
	EXPECT("limits are asked for", q.memory_max_bytes && q.pids_max && q.cpu_max_permille);
	memcpy(j->id, q.id, sizeof j->id);
	for (size_t i = 0; i < JAIL_FDS; i++)
		j->fd[i] = fd_take(&m->fd[i]);
	for (size_t i = 0; i < JAILS_MAX; i++) {
		if (jails[i])
			continue;
		jails[i] = j;
		break;
	}
	j->is_starting = true;
	if (++running > most_running)
		most_running = running;
	if (behaviour == JAIL_FAILS) {
		send_id(MSG_JAIL_FAILED, j->id, ENOSPC, "no user namespaces");
		jail_done(j);
		return;
	}
	send_id(MSG_JAIL_STARTED, j->id, 4001, NULL);
	j->on_keeper = watch_new(n.loop, j->fd[JAIL_FD_KEEPER_SOCK], on_keeper_connect, j);
	watch_set(j->on_keeper, WATCH_READ);
	j->on_platform = watch_new(n.loop, j->fd[JAIL_FD_PLATFORM_SOCK], on_platform_connect, j);
	watch_set(j->on_platform, WATCH_READ);
}

static void on_ask(void *arg, struct msg *m)
{
	char id[SANDBOX_ID_SIZE];
	struct jail_played *j;

	(void)arg;
	if (m->type == MSG_JAIL_START) {
		start_jail(m);
		return;
	}
	CHECK(m->type == MSG_JAIL_KILL);
	rd_str(&m->body, id, sizeof id);
	killed++;
	j = jail_find(id);
	if (j)
		jail_done(j);
	send_id(j ? MSG_JAIL_GONE : MSG_JAIL_FAILED, id, 9, j ? NULL : "no sandbox is known");
}

static void on_line_end(void *arg, int err)
{
	(void)arg;
	(void)err;
}

/* --- as the client --- */

struct client {
	unsigned answers;
	unsigned good;
	const struct refusal *last;
	struct sandbox *s;
	unsigned want;
};

static void on_guard(void *arg)
{
	(void)arg;
	EXPECT("it ends in time", false);
	loop_stop(n.loop);
}

static void on_created(void *arg, struct sandbox *s, const struct refusal *r)
{
	struct client *c = arg;

	c->answers++;
	c->good += s != NULL;
	c->s = s;
	c->last = r;
	if (c->answers == c->want)
		loop_stop(n.loop);
}

static void on_ended(void *arg)
{
	(void)arg;
	loop_stop(n.loop);
}

static const struct refusal *create(struct client *c, struct sandbox **ret)
{
	AUTO(new_sandbox_done) struct new_sandbox want = {.secure = true, .timeout_s = 60};
	AUTO(template_done) struct template t = {.memory_mib = 0};
	struct fail f = {0};

	want.metadata = json_pack("{s:s}", "who", "me");
	want.env = json_object();
	CHECK(template_find(&n.data, "base", &t, &f) == 0);
	return sandbox_create(&n, &want, &t, on_created, c, ret);
}

static void run_loop(void)
{
	timer_set(guard, GUARD_MS);
	loop_run(n.loop);
	timer_clear(guard);
}

static void stop_when_idle(void *arg)
{
	if (sandboxes_left(&n) == 0 && db_idle(n.db))
		loop_stop(n.loop);
	else
		timer_set(*(struct timer **)arg, 1);
}

static void wait_until_nothing_is_left(void)
{
	static struct timer *t;

	t = timer_new(n.loop, stop_when_idle, &t);
	timer_set(t, 0);
	run_loop();
	timer_free(t);
}

static size_t entries(int fd, const char *name)
{
	char **names = NULL;
	size_t count = 0;
	struct fail f;

	CHECK(dir_list(fd, name, &names, &count, &f) == 0);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return count;
}

static void expect_nothing_left(const char *says)
{
	struct sandbox_counts c;

	wait_until_nothing_is_left();
	sandboxes_count(&n, &c);
	EXPECT_EQ(says, c.running + c.starting + c.queued + c.ending, 0);
	EXPECT_EQ(says, entries(n.data.root, "run"), 0);
	for (size_t i = 0; i < JAILS_MAX; i++)
		EXPECT(says, !jails[i]);
}

/* --- the cases --- */

static void check_behaviours(void)
{
	static const struct {
		const char *says;
		enum behaviour how;
		unsigned want; /* status, 0: it is created */
	} cases[] = {
		{"all is well", GOOD, 0},
		{"no jail", JAIL_FAILS, 503},
		{"the keeper dies", KEEPER_DIES, 503},
		{"the keeper has a VM already", HAS_VM, 503},
		{"the keeper talks nonsense", GARBAGE, 503},
		{"QEMU ends", VM_STOPS, 503},
		{"the guest refuses", INIT_REFUSED, 503},
		{"space-daemon is gone", DAEMON_GONE, 503},
		{"all is well again", GOOD, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client c = {.want = 1};
		struct sandbox *s = NULL;

		behaviour = cases[i].how;
		EXPECT(cases[i].says, create(&c, &s) == NULL);
		run_loop();
		EXPECT_EQ(cases[i].says, c.answers, 1);
		EXPECT_EQ(cases[i].says, c.s != NULL, cases[i].want == 0);
		EXPECT_EQ(cases[i].says, c.last ? c.last->status : 0, cases[i].want);
		if (c.s) {
			EXPECT("it is found", sandbox_find(&n, c.s->node.id) == c.s);
			EXPECT_STR("its token went with it", last_token, c.s->rec.token);
			sandbox_end(c.s, "by the test", on_ended, NULL);
			run_loop();
		}
		expect_nothing_left(cases[i].says);
	}
}

static void check_many(void)
{
	struct client c = {.want = AT_ONCE};
	struct sandbox *s[AT_ONCE];

	behaviour = GOOD;
	most_running = 0;
	for (size_t i = 0; i < AT_ONCE; i++)
		EXPECT("is taken", create(&c, &s[i]) == NULL);
	run_loop();
	EXPECT_EQ("all are there", c.good, AT_ONCE);
	EXPECT("never more starts than cores", most_running <= n.cfg.cores);
	for (size_t i = 0; i < AT_ONCE; i++)
		sandbox_end(s[i], "by the test", NULL, NULL);
	expect_nothing_left("many at once");
}

static void check_full(void)
{
	struct client c = {.want = 2};
	struct sandbox *s[3];
	const struct refusal *r;

	behaviour = GOOD;
	n.cfg.max_sandboxes = 2;
	EXPECT("the first", create(&c, &s[0]) == NULL);
	EXPECT("the last that may be", create(&c, &s[1]) == NULL);
	r = create(&c, &s[2]);
	EXPECT("one more is refused", r && r->status == 429 && r->retry_after_s > 0);
	run_loop();
	EXPECT_EQ("the others are there", c.good, 2);
	sandbox_end(s[0], "by the test", NULL, NULL);
	sandbox_end(s[1], "by the test", NULL, NULL);
	n.cfg.max_sandboxes = 100;
	expect_nothing_left("a full node");
}

static void on_look(void *arg)
{
	(void)arg;
	if (running)
		loop_stop(n.loop);
	else
		timer_set(*(struct timer **)arg, 1);
}

static void check_abandoned(void)
{
	static struct timer *t;
	struct client c = {.want = 1};
	struct sandbox *s = NULL;

	behaviour = GOOD;
	is_holding = true;
	EXPECT("is taken", create(&c, &s) == NULL);
	t = timer_new(n.loop, on_look, &t);
	timer_set(t, 1);
	run_loop();
	timer_free(t);
	sandbox_abandon(s);
	expect_nothing_left("the client went away");
	EXPECT_EQ("it is not told", c.answers, 0);
	is_holding = false;
}

static void check_death(void)
{
	const struct db_ended *ended;
	struct client c = {.want = 1};
	struct sandbox *s = NULL;
	size_t n_ended = 0;

	behaviour = GOOD;
	EXPECT("is taken", create(&c, &s) == NULL);
	run_loop();
	tell_state(jail_find(s->node.id), VM_STOPPED, "QEMU was killed by signal 9");
	expect_nothing_left("its VM died");
	ended = sandboxes_ended(&n, &n_ended);
	EXPECT_STR("the cause is known", n_ended ? ended[n_ended - 1].cause : "",
		   "QEMU was killed by signal 9");
}

static void check_time(void)
{
	struct client c = {.want = 1};
	struct sandbox *s = NULL;
	const struct db_ended *ended;
	size_t n_ended = 0;

	EXPECT("is taken", create(&c, &s) == NULL);
	run_loop();
	EXPECT_EQ("its end is moved", sandbox_set_end(s, 1, NULL, NULL), 0);
	expect_nothing_left("its time is over");
	ended = sandboxes_ended(&n, &n_ended);
	EXPECT_STR("the cause is known", n_ended ? ended[n_ended - 1].cause : "",
		   "its time is over");
}

/* --- the world --- */

static const char template_text[] =
	"{\"name\":\"base\",\"templateId\":\"base01\",\"image\":\"images/base01/root.ext4\","
	"\"kernel\":\"kernels/1\",\"initrd\":\"initrds/1.cpio\",\"memoryMiB\":128,\"vcpus\":1,"
	"\"diskMiB\":512}";

static void make_variant(void)
{
	struct variant_key k = {.image = "images/base01/root.ext4",
				.kernel = "kernels/1",
				.initrd = "initrds/1.cpio",
				.memory_mib = 128,
				.vcpus = 1,
				.accel = ACCEL_TCG,
				.engine = ENGINE};
	AUTO(fd_drop) int ram = -1;
	AUTO(fd_drop) int devices = -1;
	AUTO(fd_drop) int layer = -1;
	char id[VARIANT_ID_SIZE];
	struct fail f = {0};

	variant_id(&k, id);
	CHECK(memfd_make("ram", k.memory_mib * MIB, &ram, &f) == 0);
	CHECK(memfd_make("devices", 0, &devices, &f) == 0);
	CHECK(write(devices, "state", 5) == 5);
	CHECK(dir_make(n.data.run, "made", 0700, &f) == 0);
	CHECK(file_open(n.data.run, "made/layer.qcow2", O_RDWR | O_CREAT, 0600, &layer, &f) == 0);
	CHECK(qcow2_empty_write(layer, 512 * MIB) == 0);
	CHECK(variant_save(&n.data, id, &k, ram, devices, "made", &f) == 0);
	CHECK(dir_remove(n.data.run, "made", &f) == 0);
}

static void make_world(void)
{
	AUTO(str_drop) char *state = NULL;
	struct fail f = {0};
	static const struct msgsock_ops ops = {.on_msg = on_ask, .on_end = on_line_end};
	static const struct jailer_ops jailer_ops = {.on_hello = NULL, .on_lost = NULL};
	int pair[2];

	n.cfg.max_sandboxes = 100;
	n.cfg.max_hours = 24;
	n.cfg.cores = 2;
	(void)str_copy(n.cfg.engine, sizeof n.cfg.engine, ENGINE);
	n.meminfo = -1;
	CHECK(data_open(dir, &n.data, &f) == 0);
	CHECK(dir_make(n.data.root, "templates", 0700, &f) == 0);
	CHECK(dir_make(n.data.root, "images/base01", 0700, &f) == 0);
	CHECK(file_replace(n.data.root, "images/base01/root.ext4", 0600, "disk", 4, &f) == 0);
	CHECK(file_replace(n.data.root, "templates/base.json", 0600, template_text,
			   strlen(template_text), &f) == 0);
	make_variant();
	n.loop = loop_new();
	state = xasprintf("%s/state", dir);
	CHECK(db_open(state, &n.db, &f) == 0);
	n.sandboxes = sandboxes_new(&n);
	db_start(n.db, n.loop);
	n.variants = variants_new(&n);
	CHECK(sock_pair(SOCK_SEQPACKET, pair) == 0);
	n.jailer = jailer_new(n.loop, pair[0], &jailer_ops, NULL);
	line = msgsock_new(n.loop, pair[1], PEER_JAILER, PEER_SPACED, &ops, NULL);
	guard = timer_new(n.loop, on_guard, NULL);
}

static void end_world(void)
{
	struct fail f = {0};

	timer_free(guard);
	jailer_free(n.jailer);
	msgsock_free(line);
	variants_free(n.variants);
	sandboxes_free(n.sandboxes);
	db_close(n.db);
	data_done(&n.data);
	loop_free(n.loop);
	CHECK(chdir("/tmp") == 0);
	EXPECT_EQ("cleans up", dir_remove(AT_FDCWD, dir + strlen("/tmp/"), &f), 0);
}

int main(void)
{
	log_init("life_test", LOG_ERROR, open("/dev/null", O_WRONLY | O_CLOEXEC));
	if (!mkdtemp(dir))
		return test_skip("no temporary folder");
	make_world();
	check_behaviours();
	check_many();
	check_full();
	check_abandoned();
	check_death();
	check_time();
	end_world();
	return test_done();
}
