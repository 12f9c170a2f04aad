/* A sandbox's life with honest and broken neighbours (test_world.h). Whatever goes wrong, nothing
 * may be left: no folder, no record, no start slot. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/test.h"
#include "net/loop.h"
#include "os/dir.h"
#include "spaced/test_world.h"

#include <fcntl.h>

#define GUARD_MS 20000
#define AT_ONCE  10u

static struct timer *guard;

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
	loop_stop(world.n.loop);
}

static void on_created(void *arg, struct sandbox *s, const struct refusal *r)
{
	struct client *c = arg;

	c->answers++;
	c->good += s != NULL;
	c->s = s;
	c->last = r;
	if (c->answers == c->want)
		loop_stop(world.n.loop);
}

static void on_ended(void *arg)
{
	(void)arg;
	loop_stop(world.n.loop);
}

static const struct refusal *create(struct client *c, struct sandbox **ret)
{
	AUTO(new_sandbox_done) struct new_sandbox want = {.secure = true, .timeout_s = 60};
	AUTO(template_done) struct template t = {.memory_mib = 0};
	struct fail f = {0};

	want.metadata = json_pack("{s:s}", "who", "me");
	want.env = json_object();
	CHECK(template_find(&world.n.data, "base", &t, &f) == 0);
	return sandbox_create(&world.n, &want, &t, on_created, c, ret);
}

static void run_loop(void)
{
	timer_set(guard, GUARD_MS);
	loop_run(world.n.loop);
	timer_clear(guard);
}

static void stop_when_idle(void *arg)
{
	if (sandboxes_left(&world.n) == 0 && db_idle(world.n.db))
		loop_stop(world.n.loop);
	else
		timer_set(*(struct timer **)arg, 1);
}

static void wait_until_nothing_is_left(void)
{
	static struct timer *t;

	t = timer_new(world.n.loop, stop_when_idle, &t);
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
	sandboxes_count(&world.n, &c);
	EXPECT_EQ(says, c.running + c.starting + c.queued + c.ending, 0);
	EXPECT_EQ(says, entries(world.n.data.root, "run"), 0);
	for (size_t i = 0; i < JAILS_MAX; i++)
		EXPECT(says, !world.jails[i]);
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

		world.behaviour = cases[i].how;
		EXPECT(cases[i].says, create(&c, &s) == NULL);
		run_loop();
		EXPECT_EQ(cases[i].says, c.answers, 1);
		EXPECT_EQ(cases[i].says, c.s != NULL, cases[i].want == 0);
		EXPECT_EQ(cases[i].says, c.last ? c.last->status : 0, cases[i].want);
		if (c.s) {
			EXPECT("it is found", sandbox_find(&world.n, c.s->node.id) == c.s);
			EXPECT_STR("its token went with it", world.last_token, c.s->rec.token);
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

	world.behaviour = GOOD;
	world.most_running = 0;
	for (size_t i = 0; i < AT_ONCE; i++)
		EXPECT("is taken", create(&c, &s[i]) == NULL);
	run_loop();
	EXPECT_EQ("all are there", c.good, AT_ONCE);
	EXPECT("never more starts than cores", world.most_running <= world.n.cfg.cores);
	for (size_t i = 0; i < AT_ONCE; i++)
		sandbox_end(s[i], "by the test", NULL, NULL);
	expect_nothing_left("many at once");
}

static void check_full(void)
{
	struct client c = {.want = 2};
	struct sandbox *s[3];
	const struct refusal *r;

	world.behaviour = GOOD;
	world.n.cfg.max_sandboxes = 2;
	EXPECT("the first", create(&c, &s[0]) == NULL);
	EXPECT("the last that may be", create(&c, &s[1]) == NULL);
	r = create(&c, &s[2]);
	EXPECT("one more is refused", r && r->status == 429 && r->retry_after_s > 0);
	run_loop();
	EXPECT_EQ("the others are there", c.good, 2);
	sandbox_end(s[0], "by the test", NULL, NULL);
	sandbox_end(s[1], "by the test", NULL, NULL);
	world.n.cfg.max_sandboxes = 100;
	expect_nothing_left("a full node");
}

static void on_look(void *arg)
{
	(void)arg;
	if (world.running)
		loop_stop(world.n.loop);
	else
		timer_set(*(struct timer **)arg, 1);
}

static void check_abandoned(void)
{
	static struct timer *t;
	struct client c = {.want = 1};
	struct sandbox *s = NULL;

	world.behaviour = GOOD;
	world.is_holding = true;
	EXPECT("is taken", create(&c, &s) == NULL);
	t = timer_new(world.n.loop, on_look, &t);
	timer_set(t, 1);
	run_loop();
	timer_free(t);
	sandbox_abandon(s);
	expect_nothing_left("the client went away");
	EXPECT_EQ("it is not told", c.answers, 0);
	world.is_holding = false;
}

static void check_death(void)
{
	const struct db_ended *ended;
	struct client c = {.want = 1};
	struct sandbox *s = NULL;
	size_t n_ended = 0;

	world.behaviour = GOOD;
	EXPECT("is taken", create(&c, &s) == NULL);
	run_loop();
	world_stop_vm(s->node.id, "QEMU was killed by signal 9");
	expect_nothing_left("its VM died");
	ended = sandboxes_ended(&world.n, &n_ended);
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
	ended = sandboxes_ended(&world.n, &n_ended);
	EXPECT_STR("the cause is known", n_ended ? ended[n_ended - 1].cause : "",
		   "its time is over");
}

int main(void)
{
	log_init("life_test", LOG_ERROR, open("/dev/null", O_WRONLY | O_CLOEXEC));
	if (!world_make())
		return test_skip("no temporary folder");
	guard = timer_new(world.n.loop, on_guard, NULL);
	check_behaviours();
	check_many();
	check_full();
	check_abandoned();
	check_death();
	check_time();
	timer_free(guard);
	world_end();
	return test_done();
}
