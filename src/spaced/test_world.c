/* See test_world.h. */
#include "spaced/test_world.h"

#include "base/alloc.h"
#include "base/str.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/pidfd.h"
#include "os/sock.h"
#include "spaced/jailer.h"
#include "store/qcow2.h"
#include "store/variant.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define MIB ((uint64_t)1024 * 1024)

struct world world;

/* One jail that we play. */
struct jail_played {
	char id[SANDBOX_ID_SIZE];
	int fd[JAIL_FDS];
	struct watch *on_keeper, *on_platform;
	struct msgsock *keeper;
	struct watch *on_client;
	int platform, client;
	struct h2 *h2, *client_h2;
	bool is_starting;
};

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
	assert(msgsock_send(world.line, type, 0, body, wr_len(&w), NULL, 0) == 0);
}

static void jail_done(struct jail_played *j)
{
	for (size_t i = 0; i < JAILS_MAX; i++)
		if (world.jails[i] == j)
			world.jails[i] = NULL;
	if (j->is_starting)
		world.running--;
	watch_free(j->on_keeper);
	watch_free(j->on_platform);
	watch_free(j->on_client);
	msgsock_free(j->keeper);
	if (j->h2)
		h2_free(j->h2);
	if (j->client_h2)
		h2_free(j->client_h2);
	fd_drop(&j->platform);
	fd_drop(&j->client);
	for (size_t i = 0; i < JAIL_FDS; i++)
		fd_drop(&j->fd[i]);
	free(j);
}

static struct jail_played *jail_find(const char *id)
{
	for (size_t i = 0; i < JAILS_MAX; i++)
		if (world.jails[i] && strcmp(world.jails[i]->id, id) == 0)
			return world.jails[i];
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
	assert(msgsock_send(j->keeper, MSG_VM_STATE, 0, body, wr_len(&w), NULL, 0) == 0);
}

static void become_ready(struct jail_played *j)
{
	if (j->is_starting)
		world.running--;
	j->is_starting = false;
	tell_state(j, VM_READY, "");
}

static void on_keeper_msg(void *arg, struct msg *m)
{
	struct jail_played *j = arg;
	struct vm_spec spec;

	assert(m->type == MSG_VM_RESTORE && m->n_fds == VM_RESTORE_FDS);
	assert(vm_spec_parse(&spec, m->body) == 0);
	assert(strcmp(spec.id, j->id) == 0);
	assert(memfd_is_sealed(m->fd[RESTORE_FD_RAM]));
	assert((fcntl(m->fd[RESTORE_FD_BASE], F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert((fcntl(m->fd[RESTORE_FD_LAYER], F_GETFL) & O_ACCMODE) == O_RDWR);
	memcpy(world.last_token, spec.token, sizeof world.last_token);
	tell_state(j, VM_RUNNING, "");
	if (world.behaviour == VM_STOPS)
		tell_state(j, VM_STOPPED, "QEMU ended \x1b[2J at once");
	else if (!world.is_holding)
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
	if (world.behaviour == KEEPER_DIES) {
		(void)close(fd);
		return;
	}
	if (world.behaviour == GARBAGE) {
		assert(write(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 8);
		(void)close(fd);
		return;
	}
	j->keeper = msgsock_new(world.n.loop, fd, PEER_KEEPER, PEER_SPACED, &ops, j);
	if (world.behaviour == HAS_VM) { /* of a VM that nobody asked for */
		h.state = VM_READY;
		memcpy(h.id, j->id, sizeof h.id);
	}
	keeper_hello_print(&w, &h);
	assert(pidfd_of(getpid(), &pidfd) == 0);
	assert(msgsock_send(j->keeper, MSG_KEEPER_HELLO, 0, body, wr_len(&w), &pidfd, 1) == 0);
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

	world.inits++;
	assert(h2_add(&m, ":status", world.behaviour == INIT_REFUSED ? "400" : "204") == 0);
	assert(h2_respond(s, &m, true) == 0);
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

	assert(strcmp(h2_get(m, ":path"), "/space/init") == 0);
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
	if (world.behaviour == DAEMON_GONE)
		fd_drop(&j->platform);
	else
		j->h2 = h2_new(world.n.loop, j->platform, H2_SERVER, &ops, j, NULL, 0);
}

static void on_client_request(struct h2 *h, struct h2_stream *s, const struct h2_message *m)
{
	world.on_client(h, s, m);
}

static void on_client_end(struct h2 *h, int err)
{
	struct jail_played *j = h2_arg(h);

	(void)err;
	j->client_h2 = NULL;
	h2_free(h);
	fd_drop(&j->client);
}

/* One connection at a time, as spaced makes them. */
static void on_client_connect(void *arg, int events)
{
	static const struct h2_ops ops = {.on_request = on_client_request, .on_end = on_client_end};
	struct jail_played *j = arg;

	(void)events;
	if (!j->client_h2 && sock_accept(j->fd[JAIL_FD_CLIENT_SOCK], &j->client) == 0)
		j->client_h2 = h2_new(world.n.loop, j->client, H2_SERVER, &ops, j, NULL, 0);
}

/* --- as the jailer --- */

static void start_jail(struct msg *m)
{
	struct jail_played *j = xcalloc(1, sizeof *j);
	struct jail_start q;

	j->platform = j->client = -1;
	assert(jail_start_parse(&q, m->body) == 0 && m->n_fds == JAIL_FDS);
	assert(q.memory_max_bytes && q.file_max_bytes && q.pids_max && q.cpu_max_permille);
	memcpy(j->id, q.id, sizeof j->id);
	for (size_t i = 0; i < JAIL_FDS; i++)
		j->fd[i] = fd_take(&m->fd[i]);
	for (size_t i = 0; i < JAILS_MAX; i++) {
		if (world.jails[i])
			continue;
		world.jails[i] = j;
		break;
	}
	j->is_starting = true;
	if (++world.running > world.most_running)
		world.most_running = world.running;
	if (world.behaviour == JAIL_FAILS) {
		send_id(MSG_JAIL_FAILED, j->id, ENOSPC, "no user namespaces");
		jail_done(j);
		return;
	}
	send_id(MSG_JAIL_STARTED, j->id, 4001, NULL);
	j->on_keeper = watch_new(world.n.loop, j->fd[JAIL_FD_KEEPER_SOCK], on_keeper_connect, j);
	watch_set(j->on_keeper, WATCH_READ);
	j->on_platform =
		watch_new(world.n.loop, j->fd[JAIL_FD_PLATFORM_SOCK], on_platform_connect, j);
	watch_set(j->on_platform, WATCH_READ);
	if (world.on_client) {
		j->on_client =
			watch_new(world.n.loop, j->fd[JAIL_FD_CLIENT_SOCK], on_client_connect, j);
		watch_set(j->on_client, WATCH_READ);
	}
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
	assert(m->type == MSG_JAIL_KILL);
	rd_str(&m->body, id, sizeof id);
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
	assert(memfd_make("ram", k.memory_mib * MIB, &ram, &f) == 0);
	assert(memfd_make("devices", 0, &devices, &f) == 0);
	assert(write(devices, "state", 5) == 5);
	assert(dir_make(world.n.data.run, "made", 0700, &f) == 0);
	assert(file_open(world.n.data.run, "made/layer.qcow2", O_RDWR | O_CREAT, 0600, &layer,
			 &f) == 0);
	assert(qcow2_empty_write(layer, 512 * MIB) == 0);
	assert(variant_save(&world.n.data, id, &k, ram, devices, "made", &f) == 0);
	assert(dir_remove(world.n.data.run, "made", &f) == 0);
}

bool world_make(void)
{
	AUTO(str_drop) char *state = NULL;
	struct fail f = {0};
	static const struct msgsock_ops ops = {.on_msg = on_ask, .on_end = on_line_end};
	static const struct jailer_ops jailer_ops = {.on_hello = NULL, .on_lost = NULL};
	int pair[2];

	(void)str_copy(world.dir, sizeof world.dir, "/tmp/space-life-XXXXXX"); /* fits */
	if (!mkdtemp(world.dir))
		return false;
	world.n.cfg.max_sandboxes = 100;
	world.n.cfg.max_hours = 24;
	world.n.cfg.cores = 2;
	(void)str_copy(world.n.cfg.engine, sizeof world.n.cfg.engine, ENGINE);
	world.n.meminfo = -1;
	assert(data_open(world.dir, &world.n.data, &f) == 0);
	assert(dir_make(world.n.data.root, "templates", 0700, &f) == 0);
	assert(dir_make(world.n.data.root, "images/base01", 0700, &f) == 0);
	assert(file_replace(world.n.data.root, "images/base01/root.ext4", 0600, "disk", 4, &f) ==
	       0);
	assert(file_replace(world.n.data.root, "templates/base.json", 0600, template_text,
			    strlen(template_text), &f) == 0);
	make_variant();
	world.n.loop = loop_new();
	state = xasprintf("%s/state", world.dir);
	assert(db_open(state, &world.n.db, &f) == 0);
	world.n.sandboxes = sandboxes_new(&world.n);
	db_start(world.n.db, world.n.loop);
	world.n.variants = variants_new(&world.n);
	assert(sock_pair(SOCK_SEQPACKET, pair) == 0);
	world.n.jailer = jailer_new(world.n.loop, pair[0], &jailer_ops, NULL);
	world.line = msgsock_new(world.n.loop, pair[1], PEER_JAILER, PEER_SPACED, &ops, NULL);
	return true;
}

void world_end(void)
{
	struct fail f = {0};

	jailer_free(world.n.jailer);
	msgsock_free(world.line);
	variants_free(world.n.variants);
	sandboxes_free(world.n.sandboxes);
	db_close(world.n.db);
	data_done(&world.n.data);
	loop_free(world.n.loop);
	assert(chdir("/tmp") == 0);
	assert((dir_remove(AT_FDCWD, world.dir + strlen("/tmp/"), &f)) == 0);
}

void world_stop_vm(const char *id, const char *why)
{
	tell_state(jail_find(id), VM_STOPPED, why);
}
