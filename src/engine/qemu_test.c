/* The engine against a monitor that may be captured: at each command it can refuse, break off,
 * babble or say nothing, and it can lie about the device state. Whatever it does, the owner hears
 * of it once and in time. */
#include "engine/engine.h"

#include "base/test.h"
#include "engine/qemu_argv.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/seqpacket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MEMORY_MIB 128
#define STEP_MS    60   /* the engine's patience in these cases */
#define TEST_MS    5000 /* and ours: reached only by a bug */
#define LINE_SIZE  4096

enum does {
	HONEST,
	REFUSES,
	SILENT,
	HANGS_UP,
	BABBLES,
	SHUTS_DOWN, /* the guest does */
	RESETS,
	IS_ENDED, /* by a signal from outside */
	NO_RESUME,
	EMPTY_STATE,
	LONG_STATE,
	LONGEST_STATE,
};

struct scenario {
	const char *says;
	bool is_boot;
	bool saves;
	const char *at; /* the command at which it happens */
	enum does does;
	const char *want;
};

/* The test's world: the owner's side and the monitor's. */
struct world {
	const struct scenario *c;
	struct loop *loop;
	struct engine *engine;
	struct timer *late;
	struct watch *watch;
	int monitor;
	int add_fd; /* what came with add-fd */
	bool is_mute;
	char text[LINE_SIZE];
	size_t text_n;
	char log[512]; /* what the owner heard, in order */
	int state_out;
};

/* --- the owner --- */

static void hear(struct world *w, const char *what)
{
	size_t n = strlen(w->log);

	(void)snprintf(w->log + n, sizeof w->log - n, "%s%s", n ? ", " : "", what);
}

static void on_running(void *arg)
{
	struct world *w = arg;
	struct fail f = {0};

	hear(w, "running");
	if (!w->c->saves && (w->c->does < SHUTS_DOWN || w->c->does > IS_ENDED)) {
		loop_stop(w->loop);
		return;
	}
	if (w->c->saves && engine_qemu.save(w->engine, w->state_out, &f) < 0)
		hear(w, f.text);
}

static void on_saved(void *arg)
{
	struct world *w = arg;

	hear(w, "saved");
	loop_stop(w->loop);
}

static void on_guest_end(void *arg, const char *how)
{
	struct world *w = arg;

	hear(w, how);
	loop_stop(w->loop);
}

static void on_failed(void *arg, const struct fail *why)
{
	struct world *w = arg;

	hear(w, why->text);
	loop_stop(w->loop);
}

static const struct engine_events events = {
	.on_running = on_running,
	.on_saved = on_saved,
	.on_guest_end = on_guest_end,
	.on_failed = on_failed,
};

/* --- the monitor --- */

static void say(struct world *w, const char *text)
{
	EXPECT_EQ(w->c->says, fd_write_all(w->monitor, text, strlen(text)), 0);
}

static void say_answer(struct world *w, const char *line, const char *answer)
{
	const char *id = strstr(line, "\"id\":");
	char text[512];

	(void)snprintf(text, sizeof text, "{%s, \"id\": %.*s}\r\n", answer,
		       id ? (int)strspn(id + 5, "0123456789") : 0, id ? id + 5 : "");
	say(w, text);
}

/* What an honest one does beside answering. */
static void act(struct world *w, const char *line, const char *name)
{
	static const char state[] = "the device state";
	bool is_cut = w->c->does == EMPTY_STATE || w->c->does == LONG_STATE ||
		      w->c->does == LONGEST_STATE;
	off_t size = w->c->does == EMPTY_STATE ? 0 : ENGINE_STATE_MAX;

	if (!strcmp(name, "xen-save-devices-state")) {
		if (!is_cut)
			EXPECT_EQ("state", fd_write_all(w->add_fd, state, strlen(state)), 0);
		else
			EXPECT_EQ("state", ftruncate(w->add_fd, size + (w->c->does == LONG_STATE)),
				  0);
	}
	say_answer(w, line, "\"return\": {}");
	if (!strcmp(name, "migrate-incoming") && w->c->does != NO_RESUME)
		say(w, "{\"event\": \"RESUME\"}\r\n");
}

static const char *const shutdown[] = {
	[SHUTS_DOWN] = "{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":7}}\n",
	[RESETS] = "{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":\"guest-reset\"}}\n",
	[IS_ENDED] = "{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":\"host-signal\"}}\n",
};

static void misbehave(struct world *w, const char *line, const char *name)
{
	switch (w->c->does) {
	case REFUSES:
		say_answer(w, line,
			   "\"error\": {\"class\": \"GenericError\", \"desc\": \"no\\n\"}");
		return;
	case SILENT:
		w->is_mute = true;
		return;
	case HANGS_UP:
		watch_free(w->watch);
		w->watch = NULL;
		fd_drop(&w->monitor);
		return;
	case BABBLES:
		say(w, "Segmentation fault\n");
		return;
	case SHUTS_DOWN:
	case RESETS:
	case IS_ENDED:
		act(w, line, name);
		say(w, shutdown[w->c->does]);
		return;
	case HONEST:
	case NO_RESUME:
	case EMPTY_STATE:
	case LONG_STATE:
	case LONGEST_STATE:
		act(w, line, name);
	}
}

static void on_line(struct world *w, const char *line)
{
	const char *name = strstr(line, "\"execute\":\"");
	char text[64];
	size_t n;

	CHECK(name != NULL);
	if (!name)
		return;
	name += strlen("\"execute\":\"");
	n = strcspn(name, "\"");
	(void)snprintf(text, sizeof text, "%.*s", (int)size_min(n, 63), name);
	if (w->is_mute)
		return;
	if (w->c->at && !strcmp(text, w->c->at))
		misbehave(w, line, text);
	else
		act(w, line, text);
}

static void on_monitor(void *arg, int ready)
{
	struct world *w = arg;
	int fds[4];
	size_t n_fds;
	size_t n;
	char *end;

	(void)ready;
	if (seqpacket_recv(w->monitor, w->text + w->text_n, sizeof w->text - 1 - w->text_n, &n, fds,
			   ARRAY_LEN(fds), &n_fds) < 0)
		return;
	w->text_n += n;
	w->text[w->text_n] = '\0';
	for (size_t i = 0; i < n_fds; i++) {
		fd_drop(&w->add_fd);
		w->add_fd = fds[i];
	}
	while (w->watch && (end = strchr(w->text, '\n'))) {
		*end = '\0';
		on_line(w, w->text);
		w->text_n -= (size_t)(end + 1 - w->text);
		memmove(w->text, end + 1, w->text_n + 1);
	}
}

static int launch(void *arg, const char *const *tail, const int *fds, size_t n, struct fail *f)
{
	struct world *w = arg;

	(void)f;
	EXPECT_EQ("every descriptor has its place", n, QEMU_FD_END);
	EXPECT("there is a command line", tail[0] != NULL);
	w->monitor = fcntl(fds[QEMU_FD_QMP], F_DUPFD_CLOEXEC, 0);
	w->watch = watch_new(w->loop, w->monitor, on_monitor, w);
	watch_set(w->watch, WATCH_READ);
	say(w, "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n");
	return 0;
}

static void on_late(void *arg)
{
	struct world *w = arg;

	hear(w, "nothing in time");
	loop_stop(w->loop);
}

/* --- cases --- */

static const struct scenario cases[] = {
	{"boot", true, false, NULL, HONEST, "running"},
	{"restore", false, false, NULL, HONEST, "running"},
	{"boot and save", true, true, NULL, HONEST, "running, saved"},
	{"no first answer", true, false, "qmp_capabilities", SILENT,
	 "the VM monitor did not answer 'qmp_capabilities' in time"},
	{"first answer refused", true, false, "qmp_capabilities", REFUSES, "no\\x0a"},
	{"hang-up at the start", true, false, "qmp_capabilities", HANGS_UP,
	 "the VM monitor hung up"},
	{"babble at the start", false, false, "qmp_capabilities", BABBLES,
	 "the VM monitor sent broken JSON"},
	{"state not taken", false, false, "getfd", REFUSES, "'getfd' was refused: no\\x0a"},
	{"state not loaded", false, false, "migrate-incoming", REFUSES,
	 "'migrate-incoming' was refused: no\\x0a"},
	{"loading goes on for ever", false, false, "migrate-incoming", SILENT,
	 "the saved state did not load in time"},
	{"loaded, but never runs", false, false, "migrate-incoming", NO_RESUME,
	 "the saved state did not load in time"},
	{"hang-up while loading", false, false, "migrate-incoming", HANGS_UP,
	 "the VM monitor hung up"},
	{"the guest ends", true, false, "qmp_capabilities", SHUTS_DOWN,
	 "running, the guest shut down"},
	{"the guest resets", false, false, "migrate-incoming", RESETS,
	 "running, the guest restarted"},
	{"QEMU is told to end", true, false, "qmp_capabilities", IS_ENDED,
	 "running, the virtual machine was told to end"},
	{"stop is refused", true, true, "stop", REFUSES, "running, 'stop' was refused: no\\x0a"},
	{"stop is not answered", true, true, "stop", SILENT,
	 "running, the VM monitor did not answer 'stop' in time"},
	{"no descriptor for the state", true, true, "add-fd", REFUSES,
	 "running, 'add-fd' was refused: no\\x0a"},
	{"the state is refused", true, true, "xen-save-devices-state", REFUSES, "running, no\\x0a"},
	{"the state does not come", true, true, "xen-save-devices-state", SILENT,
	 "running, the VM monitor did not answer 'xen-save-devices-state' in time"},
	{"an empty state", true, true, "xen-save-devices-state", EMPTY_STATE,
	 "running, the device state is empty or too large"},
	{"a state past the limit", true, true, "xen-save-devices-state", LONG_STATE,
	 "running, the device state is empty or too large"},
	{"a state at the limit", true, true, "xen-save-devices-state", LONGEST_STATE,
	 "running, saved"},
};

static const struct vm_spec spec = {.memory_mib = MEMORY_MIB, .vcpus = 1};

static struct engine_plan plan_make(bool is_boot)
{
	struct engine_plan p = {.spec = &spec,
				.is_boot = is_boot,
				.times = {STEP_MS, STEP_MS, STEP_MS},
				.port = {-1, -1, -1, -1},
				.base = -1,
				.layer = -1,
				.template_layer = -1,
				.state = -1,
				.kernel = -1,
				.initrd = -1};
	struct fail f = {0};

	CHECK(memfd_make("ram", (uint64_t)MEMORY_MIB << 20, &p.ram, &f) == 0);
	if (!is_boot) {
		CHECK(memfd_seal(p.ram, &f) == 0);
		CHECK(memfd_make("state", 16, &p.state, &f) == 0);
	}
	return p;
}

static void plan_drop(struct engine_plan *p)
{
	fd_drop(&p->ram);
	fd_drop(&p->state);
}

static void world_free(struct world *w)
{
	engine_qemu.free(w->engine);
	watch_free(w->watch);
	timer_free(w->late);
	fd_drop(&w->monitor);
	fd_drop(&w->add_fd);
	fd_drop(&w->state_out);
	loop_free(w->loop);
}

static void run(const struct scenario *c)
{
	struct world w = {.c = c, .monitor = -1, .add_fd = -1, .loop = loop_new()};
	struct engine_plan p = plan_make(c->is_boot);
	struct fail f = {0};
	struct stat st;

	CHECK(memfd_make("out", 0, &w.state_out, &f) == 0);
	w.late = timer_new(w.loop, on_late, &w);
	timer_set(w.late, TEST_MS);
	EXPECT_EQ(c->says, engine_qemu.start(w.loop, &p, launch, &events, &w, &w.engine, &f), 0);
	EXPECT_STR("nothing is heard before start returns", w.log, "");
	plan_drop(&p);
	loop_run(w.loop);
	EXPECT_STR(c->says, w.log, c->want);
	if (strstr(c->want, "saved") && c->does == HONEST)
		EXPECT("the state arrived", fstat(w.state_out, &st) == 0 && st.st_size == 16);
	world_free(&w);
}

static int refused_start(const struct engine_plan *p, struct fail *f)
{
	struct world w = {.c = &cases[0], .monitor = -1, .add_fd = -1, .state_out = -1};
	int r;

	w.loop = loop_new();
	r = engine_qemu.start(w.loop, p, launch, &events, &w, &w.engine, f);
	EXPECT_EQ("nothing was launched", w.monitor, -1);
	world_free(&w);
	return r;
}

/* What must never reach QEMU: RAM that another could change, a state of no sense. */
static void test_bad_plans(void)
{
	struct engine_plan p = plan_make(true);
	struct fail f = {0};

	p.is_boot = false;
	EXPECT_EQ("RAM that is not sealed", refused_start(&p, &f), -EINVAL);
	EXPECT_STR("it says so", f.text, "the memory image is not sealed");
	plan_drop(&p);
	p = plan_make(false);
	fd_drop(&p.state);
	CHECK(memfd_make("state", 0, &p.state, &f) == 0);
	EXPECT_EQ("an empty state", refused_start(&p, &f), -EINVAL);
	EXPECT_EQ("one past the limit", ftruncate(p.state, ENGINE_STATE_MAX + 1), 0);
	EXPECT_EQ("a state past the limit", refused_start(&p, &f), -EINVAL);
	plan_drop(&p);
	p = plan_make(true);
	CHECK(ftruncate(p.ram, ((off_t)MEMORY_MIB << 20) - 4096) == 0);
	EXPECT_EQ("RAM of another size", refused_start(&p, &f), -EINVAL);
	plan_drop(&p);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		run(&cases[i]);
	test_bad_plans();
	return test_done();
}
