/* What is written is there after a restart; what is damaged, newer or foreign is refused in
 * words. */
#include "store/db.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/test.h"
#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>

static char dir[] = "/tmp/space-db-XXXXXX";
static unsigned dones;
static int last_err = 1;

static void on_done(void *arg, int err)
{
	dones++;
	last_err = err;
	if (arg)
		loop_stop(arg);
}

static struct db *reopen(struct db *db)
{
	struct fail f = {0};

	db_close(db);
	db = NULL;
	EXPECT_EQ("opens", db_open(dir, &db, &f), 0);
	return db;
}

static void fill(struct db_sandbox *s, const char *id)
{
	*s = (struct db_sandbox){.state = DB_STARTING,
				 .vcpus = 2,
				 .memory_mib = 512,
				 .disk_mib = 4096,
				 .started_ns = 1796000000000000000u,
				 .end_ns = 1796000300000000000u};
	(void)str_copy(s->id, sizeof s->id, id);
	(void)str_copy(s->template_name, sizeof s->template_name, "base");
	(void)str_copy(s->template_id, sizeof s->template_id, "base0123");
	(void)str_copy(s->token, sizeof s->token, "t0k3n");
	s->metadata = xstrdup("{\"who\":\"me; DROP TABLE sandbox\"}");
	s->env = NULL;
}

static void check_round(struct loop *l)
{
	static const char *const ids[] = {"iaaaaaaaaaaaaaaaaaa1", "iaaaaaaaaaaaaaaaaaa2"};
	struct db_ended e = {.ended_ns = 5, .cause = "it was killed"};
	struct db_sandbox *all = NULL;
	struct db_ended *ended = NULL;
	struct db *db = NULL;
	struct fail f = {0};
	size_t n = 0;

	db = reopen(NULL);
	db_start(db, l);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		AUTO(db_sandbox_done) struct db_sandbox s;

		fill(&s, ids[i]);
		EXPECT_EQ("queued", db_put_sandbox(db, &s, on_done, i ? l : NULL), 0);
	}
	EXPECT_EQ("nothing is told before the loop ran", dones, 0);
	loop_run(l);
	EXPECT_EQ("both are told", dones, 2);
	EXPECT_EQ("as written", last_err, 0);
	EXPECT_EQ("queued", db_set_end(db, ids[0], 42, NULL, NULL), 0);
	(void)str_copy(e.id, sizeof e.id, ids[1]);
	EXPECT_EQ("queued", db_end_sandbox(db, &e, on_done, l), 0);
	loop_run(l);
	while (!db_idle(db))
		loop_run(l);

	db = reopen(db);
	EXPECT_EQ("loads", db_load_sandboxes(db, &all, &n, &f), 0);
	EXPECT_EQ("one is left", n, 1);
	if (n == 1) {
		EXPECT_STR("its id", all[0].id, ids[0]);
		EXPECT_STR("its metadata", all[0].metadata, "{\"who\":\"me; DROP TABLE sandbox\"}");
		EXPECT_STR("no env is an empty one", all[0].env, "{}");
		EXPECT_EQ("its new end", all[0].end_ns, 42);
		EXPECT_EQ("its start", all[0].started_ns, 1796000000000000000u);
		EXPECT_STR("its token", all[0].token, "t0k3n");
		db_sandbox_done(&all[0]);
	}
	free(all);
	EXPECT_EQ("loads", db_load_ended(db, &ended, &n, &f), 0);
	EXPECT_EQ("one has ended", n, 1);
	EXPECT_STR("its cause", ended[0].cause, "it was killed");
	free(ended);
	db_close(db);
}

static void check_thinning(struct loop *l)
{
	struct db *db = reopen(NULL);
	struct db_ended *ended = NULL;
	struct fail f = {0};
	size_t n = 0;

	db_start(db, l);
	for (unsigned i = 0; i <= DB_ENDED_KEPT; i++) {
		struct db_ended e = {.ended_ns = 100 + i};

		EXPECT_EQ("queued", db_end_sandbox(db, &e, i == DB_ENDED_KEPT ? on_done : NULL, l),
			  0);
	}
	loop_run(l);
	while (!db_idle(db))
		loop_run(l);
	db = reopen(db);
	EXPECT_EQ("loads", db_load_ended(db, &ended, &n, &f), 0);
	EXPECT_EQ("only so many are kept", n, DB_ENDED_KEPT);
	EXPECT_EQ("the newest ones", ended[n - 1].ended_ns, 100 + DB_ENDED_KEPT);
	EXPECT_EQ("oldest first", ended[0].ended_ns, 101);
	free(ended);
	db_close(db);
}

static void check_keys(void)
{
	uint8_t keys[DB_KEYS_MAX][DIGEST_SIZE];
	uint8_t hash[DIGEST_SIZE];
	struct db *db = reopen(NULL);
	struct fail f = {0};
	size_t n = 9;

	EXPECT_EQ("loads", db_load_keys(db, keys, &n, &f), 0);
	EXPECT_EQ("none at first", n, 0);
	digest_of(hash, "abc", 3);
	EXPECT_EQ("adds", db_add_key(db, hash, 1, &f), 0);
	EXPECT("twice is an error", db_add_key(db, hash, 1, &f) < 0);
	db = reopen(db);
	EXPECT_EQ("loads", db_load_keys(db, keys, &n, &f), 0);
	EXPECT_EQ("it is there", n, 1);
	EXPECT("as it was", memcmp(keys[0], hash, sizeof hash) == 0);
	db_close(db);
}

static void check_limit(struct loop *l)
{
	struct db *db = reopen(NULL);
	unsigned queued = 0;

	db_start(db, l);
	/* The first goes to the worker at once, the others wait. */
	while (queued < DB_QUEUE_MAX + 10 && db_forget_sandbox(db, "ix", NULL, NULL) == 0)
		queued++;
	EXPECT_EQ("the queue has an end", queued, DB_QUEUE_MAX + 1);
	dones = 0;
	db_disown(db, l);
	while (!db_idle(db)) {
		loop_later(l, (void (*)(void *))loop_stop, l);
		loop_run(l);
	}
	EXPECT_EQ("nobody is told", dones, 0);
	db_close(db);
}

static void sql(const char *text)
{
	AUTO(str_drop) char *path = xasprintf("%s/state.db", dir);
	sqlite3 *s = NULL;

	CHECK(sqlite3_open(path, &s) == SQLITE_OK);
	CHECK(sqlite3_exec(s, text, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_close(s) == SQLITE_OK);
}

static int open_code(void)
{
	struct db *db = NULL;
	struct fail f = {0};
	int r = db_open(dir, &db, &f);

	if (r == 0)
		db_close(db);
	else
		EXPECT("says why", f.text[0] != '\0');
	return r;
}

static void check_refusals(void)
{
	AUTO(str_drop) char *path = xasprintf("%s/state.db", dir);
	char junk[2048];
	int fd;

	sql("PRAGMA user_version = 2");
	EXPECT_EQ("a newer schema", open_code(), -EPROTO);
	sql("PRAGMA user_version = 1; PRAGMA application_id = 7");
	EXPECT_EQ("another program's", open_code(), -EBADMSG);
	sql("PRAGMA application_id = 1397768515");
	EXPECT_EQ("ours again", open_code(), 0);
	sql("PRAGMA wal_checkpoint(TRUNCATE)");
	memset(junk, 'x', sizeof junk);
	fd = open(path, O_WRONLY);
	CHECK(pwrite(fd, junk, sizeof junk, 4096) == (ssize_t)sizeof junk);
	EXPECT_EQ("damaged inside", open_code(), -EBADMSG);
	CHECK(pwrite(fd, junk, sizeof junk, 0) == (ssize_t)sizeof junk);
	EXPECT_EQ("no database", open_code(), -EBADMSG);
	(void)close(fd);
}

int main(void)
{
	struct loop *l = loop_new();
	static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm"};

	log_init("db_test", LOG_ERROR, 2);
	if (!mkdtemp(dir))
		return test_skip("no temporary folder");
	check_round(l);
	check_thinning(l);
	check_keys();
	check_limit(l);
	check_refusals();
	loop_free(l);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO(str_drop) char *path = xasprintf("%s/%s", dir, names[i]);

		(void)unlink(path);
	}
	(void)rmdir(dir);
	return test_done();
}
