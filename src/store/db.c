/* See db.h. The connection is used by one thread at a time: the opener's until db_start(), then
 * whichever pool thread runs the batch in hand; there is never more than one batch.
 *
 * Trusts the file to be ours (state/ is 0700) but not to be whole: damage is an error at the
 * start. */
#include "store/db.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>

#define APPLICATION_ID 0x53504143 /* "SPAC" */
#define BUSY_MS        2000

enum op_kind { OP_PUT, OP_SET_END, OP_END, OP_FORGET, OPS };

struct op {
	enum op_kind kind;
	struct db_sandbox put;
	struct db_ended ended; /* its id serves all kinds but OP_PUT */
	uint64_t end_ns;
	db_done *done;
	void *arg;
	struct op *next;
};

struct op_list {
	struct op *first;
	struct op **last;
	size_t n;
};

struct db {
	sqlite3 *sql;
	struct loop *loop;
	struct op_list waiting;
	struct op_list batch; /* in the worker's hands while is_busy */
	struct op *finished;  /* written, callbacks to come */
	bool is_busy;
	int batch_err;
	struct fail batch_fail;
};

static const char schema[] =
	"CREATE TABLE sandbox (id TEXT PRIMARY KEY, template TEXT NOT NULL, template_id TEXT NOT "
	"NULL,"
	" variant TEXT NOT NULL, token TEXT NOT NULL, state INTEGER NOT NULL, vcpus INTEGER NOT "
	"NULL,"
	" memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL, started_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, metadata TEXT NOT NULL, env TEXT NOT NULL) STRICT;"
	"CREATE TABLE ended (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL,"
	" template TEXT NOT NULL, started_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL,"
	" cause TEXT NOT NULL) STRICT;"
	"CREATE TABLE api_key (hash BLOB PRIMARY KEY, created_ns INTEGER NOT NULL) STRICT;";

void db_sandbox_done(struct db_sandbox *s)
{
	str_drop(&s->metadata);
	str_drop(&s->env);
	explicit_bzero(s->token, sizeof s->token);
}

/* --- lists of writes --- */

static void list_init(struct op_list *l)
{
	*l = (struct op_list){.first = NULL};
	l->last = &l->first;
}

static void list_add(struct op_list *l, struct op *o)
{
	*l->last = o;
	l->last = &o->next;
	l->n++;
}

static void op_free(struct op *o)
{
	db_sandbox_done(&o->put);
	free(o);
}

/* --- opening --- */

static int sql_fail(sqlite3 *sql, struct fail *f, const char *doing)
{
	int code = sql ? sqlite3_errcode(sql) : SQLITE_NOMEM;

	if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		return fail_set(
			f, -EBADMSG,
			"state.db is damaged (%s): move it away and start again; running sandboxes "
			"will be ended",
			doing);
	if (code == SQLITE_FULL)
		return fail_set(f, -ENOSPC, "no space left for state.db (%s)", doing);
	return fail_set(f, code == SQLITE_BUSY ? -EBUSY : -EIO, "state.db: %s: %s", doing,
			sql ? sqlite3_errmsg(sql) : "no memory");
}

static int sql_run(sqlite3 *sql, const char *text, struct fail *f)
{
	return sqlite3_exec(sql, text, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : sql_fail(sql, f, "setting up");
}

/* One number out of a statement. */
static int sql_number(sqlite3 *sql, const char *text, int64_t *ret, struct fail *f)
{
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(sql, text, -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW)
		r = sql_fail(sql, f, "reading");
	else
		*ret = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return r;
}

static int check_whole(sqlite3 *sql, struct fail *f)
{
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(sql, "PRAGMA quick_check(1)", -1, &st, NULL) != SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_ROW)
		r = sql_fail(sql, f, "checking");
	else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
		r = fail_set(f, -EBADMSG,
			     "state.db is damaged: move it away and start again; running sandboxes "
			     "will be "
			     "ended");
	sqlite3_finalize(st);
	return r;
}

static int make_schema(sqlite3 *sql, struct fail *f)
{
	AUTO(str_drop)
	char *text = xasprintf(
		"BEGIN IMMEDIATE; %s PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
		schema, APPLICATION_ID, DB_SCHEMA);

	return sql_run(sql, text, f);
}

static int check_version(sqlite3 *sql, struct fail *f)
{
	int64_t app = 0, version = 0;
	int r;

	if ((r = sql_number(sql, "PRAGMA application_id", &app, f)) < 0 ||
	    (r = sql_number(sql, "PRAGMA user_version", &version, f)) < 0)
		return r;
	if (app == 0 && version == 0)
		return make_schema(sql, f);
	if (app != APPLICATION_ID)
		return fail_set(f, -EBADMSG, "state.db belongs to another program");
	if (version > DB_SCHEMA)
		return fail_set(f, -EPROTO,
				"state.db was written by a newer version of SPACE (schema %" PRId64
				", this one knows %d)",
				version, DB_SCHEMA);
	return check_whole(sql, f);
}

int db_open(const char *dir, struct db **ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/state.db", dir);
	struct db *db = xcalloc(1, sizeof *db);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
	int r = 0;

	list_init(&db->waiting);
	list_init(&db->batch);
	if (sqlite3_open_v2(path, &db->sql, flags, NULL) != SQLITE_OK) {
		r = sql_fail(db->sql, f, "opening");
	} else {
		(void)sqlite3_busy_timeout(db->sql, BUSY_MS);
		r = sql_run(
			db->sql,
			"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA trusted_schema=0",
			f);
	}
	if (r == 0)
		r = check_version(db->sql, f);
	if (r < 0) {
		(void)sqlite3_close(db->sql);
		free(db);
		return r;
	}
	*ret = db;
	return 0;
}

/* --- reading, at the start --- */

static void column_copy(sqlite3_stmt *st, int i, char *dst, size_t size)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	(void)str_copy(dst, size, s ? s : ""); /* too long: "", which no check of an id accepts */
}

static uint32_t column_u32(sqlite3_stmt *st, int i)
{
	return (uint32_t)sqlite3_column_int64(st, i);
}

static void read_sandbox(sqlite3_stmt *st, struct db_sandbox *s)
{
	const char *metadata = (const char *)sqlite3_column_text(st, 11);
	const char *env = (const char *)sqlite3_column_text(st, 12);

	*s = (struct db_sandbox){.vcpus = column_u32(st, 6),
				 .memory_mib = column_u32(st, 7),
				 .disk_mib = column_u32(st, 8),
				 .started_ns = (uint64_t)sqlite3_column_int64(st, 9),
				 .end_ns = (uint64_t)sqlite3_column_int64(st, 10)};
	column_copy(st, 0, s->id, sizeof s->id);
	column_copy(st, 1, s->template_name, sizeof s->template_name);
	column_copy(st, 2, s->template_id, sizeof s->template_id);
	column_copy(st, 3, s->variant, sizeof s->variant);
	column_copy(st, 4, s->token, sizeof s->token);
	s->state = sqlite3_column_int(st, 5) == DB_RUNNING ? DB_RUNNING : DB_STARTING;
	s->metadata = xstrdup(metadata ? metadata : "{}");
	s->env = xstrdup(env ? env : "{}");
}

static void read_ended(sqlite3_stmt *st, struct db_ended *e)
{
	*e = (struct db_ended){.started_ns = (uint64_t)sqlite3_column_int64(st, 2),
			       .ended_ns = (uint64_t)sqlite3_column_int64(st, 3)};
	column_copy(st, 0, e->id, sizeof e->id);
	column_copy(st, 1, e->template_name, sizeof e->template_name);
	column_copy(st, 4, e->cause, sizeof e->cause);
}

int db_load_sandboxes(struct db *db, struct db_sandbox **ret, size_t *ret_n, struct fail *f)
{
	struct db_sandbox *all = NULL;
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	int step;

	if (sqlite3_prepare_v2(
		    db->sql,
		    "SELECT id, template, template_id, variant, token, state, vcpus, memory_mib,"
		    " disk_mib, started_ns, end_ns, metadata, env FROM sandbox ORDER BY started_ns",
		    -1, &st, NULL) != SQLITE_OK)
		return sql_fail(db->sql, f, "reading sandboxes");
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		all = xrealloc(all, n + 1, sizeof *all);
		read_sandbox(st, &all[n++]);
	}
	sqlite3_finalize(st);
	if (step != SQLITE_DONE) {
		for (size_t i = 0; i < n; i++)
			db_sandbox_done(&all[i]);
		free(all);
		return sql_fail(db->sql, f, "reading sandboxes");
	}
	*ret = all;
	*ret_n = n;
	return 0;
}

int db_load_ended(struct db *db, struct db_ended **ret, size_t *ret_n, struct fail *f)
{
	struct db_ended *all = xcalloc(DB_ENDED_KEPT, sizeof *all);
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	int step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(
		    db->sql,
		    "SELECT id, template, started_ns, ended_ns, cause FROM (SELECT * FROM ended"
		    " ORDER BY seq DESC LIMIT ?) ORDER BY seq",
		    -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_bind_int(st, 1, DB_ENDED_KEPT) == SQLITE_OK)
		while ((step = sqlite3_step(st)) == SQLITE_ROW && n < DB_ENDED_KEPT)
			read_ended(st, &all[n++]);
	sqlite3_finalize(st);
	if (step != SQLITE_DONE) {
		free(all);
		return sql_fail(db->sql, f, "reading causes");
	}
	*ret = all;
	*ret_n = n;
	return 0;
}

int db_load_keys(struct db *db, uint8_t ret[DB_KEYS_MAX][DIGEST_SIZE], size_t *ret_n,
		 struct fail *f)
{
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	int step = SQLITE_ERROR;

	if (sqlite3_prepare_v2(db->sql, "SELECT hash FROM api_key ORDER BY created_ns", -1, &st,
			       NULL) == SQLITE_OK)
		while ((step = sqlite3_step(st)) == SQLITE_ROW && n < DB_KEYS_MAX)
			if (sqlite3_column_bytes(st, 0) == DIGEST_SIZE)
				memcpy(ret[n++], sqlite3_column_blob(st, 0), DIGEST_SIZE);
	sqlite3_finalize(st);
	if (step != SQLITE_DONE && step != SQLITE_ROW)
		return sql_fail(db->sql, f, "reading keys");
	*ret_n = n;
	return 0;
}

int db_add_key(struct db *db, const uint8_t hash[DIGEST_SIZE], uint64_t created_ns, struct fail *f)
{
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(db->sql, "INSERT INTO api_key VALUES (?, ?)", -1, &st, NULL) !=
		    SQLITE_OK ||
	    sqlite3_bind_blob(st, 1, hash, DIGEST_SIZE, SQLITE_TRANSIENT) != SQLITE_OK ||
	    sqlite3_bind_int64(st, 2, (sqlite3_int64)created_ns) != SQLITE_OK ||
	    sqlite3_step(st) != SQLITE_DONE)
		r = sql_fail(db->sql, f, "storing a key");
	sqlite3_finalize(st);
	return r;
}

/* --- writing, on a pool thread --- */

static void bind_text(sqlite3_stmt *st, int i, const char *s)
{
	(void)sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC); /* a failed bind shows in the step */
}

static void bind_u64(sqlite3_stmt *st, int i, uint64_t v)
{
	(void)sqlite3_bind_int64(st, i, (sqlite3_int64)v);
}

static int run_bound(sqlite3 *sql, sqlite3_stmt *st, struct fail *f)
{
	int r = sqlite3_step(st) == SQLITE_DONE ? 0 : sql_fail(sql, f, "writing");

	sqlite3_finalize(st);
	return r;
}

static int write_put(sqlite3 *sql, const struct db_sandbox *s, struct fail *f)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(sql,
			       "INSERT OR REPLACE INTO sandbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
			       -1, &st, NULL) != SQLITE_OK)
		return sql_fail(sql, f, "writing a sandbox");
	bind_text(st, 1, s->id);
	bind_text(st, 2, s->template_name);
	bind_text(st, 3, s->template_id);
	bind_text(st, 4, s->variant);
	bind_text(st, 5, s->token);
	bind_u64(st, 6, s->state);
	bind_u64(st, 7, s->vcpus);
	bind_u64(st, 8, s->memory_mib);
	bind_u64(st, 9, s->disk_mib);
	bind_u64(st, 10, s->started_ns);
	bind_u64(st, 11, s->end_ns);
	bind_text(st, 12, s->metadata);
	bind_text(st, 13, s->env);
	return run_bound(sql, st, f);
}

static int write_set_end(sqlite3 *sql, const struct op *o, struct fail *f)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(sql, "UPDATE sandbox SET end_ns = ? WHERE id = ?", -1, &st, NULL) !=
	    SQLITE_OK)
		return sql_fail(sql, f, "writing an end time");
	bind_u64(st, 1, o->end_ns);
	bind_text(st, 2, o->ended.id);
	return run_bound(sql, st, f);
}

static int write_forget(sqlite3 *sql, const char *id, struct fail *f)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(sql, "DELETE FROM sandbox WHERE id = ?", -1, &st, NULL) != SQLITE_OK)
		return sql_fail(sql, f, "removing a sandbox");
	bind_text(st, 1, id);
	return run_bound(sql, st, f);
}

static int write_end(sqlite3 *sql, const struct db_ended *e, struct fail *f)
{
	sqlite3_stmt *st = NULL;
	int r = write_forget(sql, e->id, f);

	if (r < 0)
		return r;
	if (sqlite3_prepare_v2(sql,
			       "INSERT INTO ended (id, template, started_ns, ended_ns, cause)"
			       " VALUES (?,?,?,?,?)",
			       -1, &st, NULL) != SQLITE_OK)
		return sql_fail(sql, f, "writing a cause");
	bind_text(st, 1, e->id);
	bind_text(st, 2, e->template_name);
	bind_u64(st, 3, e->started_ns);
	bind_u64(st, 4, e->ended_ns);
	bind_text(st, 5, e->cause);
	if ((r = run_bound(sql, st, f)) < 0)
		return r;
	if (sqlite3_prepare_v2(sql,
			       "DELETE FROM ended WHERE seq <= (SELECT max(seq) FROM ended) - ?",
			       -1, &st, NULL) != SQLITE_OK)
		return sql_fail(sql, f, "thinning causes");
	bind_u64(st, 1, DB_ENDED_KEPT);
	return run_bound(sql, st, f);
}

static int write_op(sqlite3 *sql, const struct op *o, struct fail *f)
{
	switch (o->kind) {
	case OP_PUT:
		return write_put(sql, &o->put, f);
	case OP_SET_END:
		return write_set_end(sql, o, f);
	case OP_END:
		return write_end(sql, &o->ended, f);
	case OP_FORGET:
		return write_forget(sql, o->ended.id, f);
	case OPS:
		break;
	}
	return -EINVAL;
}

/* One transaction: all of the batch is durable, or none. */
static void batch_work(void *arg)
{
	struct db *db = arg;
	struct fail *f = &db->batch_fail;
	int r = sql_run(db->sql, "BEGIN IMMEDIATE", f);

	for (const struct op *o = db->batch.first; o && r == 0; o = o->next)
		r = write_op(db->sql, o, f);
	if (r == 0)
		r = sql_run(db->sql, "COMMIT", f);
	if (r < 0 && !sqlite3_get_autocommit(db->sql))
		(void)sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL,
				   NULL); /* the batch failed already */
	db->batch_err = r;
}

static void report(struct db *db)
{
	int err = db->batch_err;

	if (err < 0)
		log_error("cannot write state.db", "why=%s", db->batch_fail.text);
	db->finished = db->batch.first;
	list_init(&db->batch);
	while (db->finished) {
		struct op *o = db->finished;

		db->finished = o->next;
		if (o->done)
			o->done(o->arg, err);
		op_free(o);
	}
}

static void batch_start(struct db *db);

static void batch_done(void *arg)
{
	struct db *db = arg;

	report(db);
	db->is_busy = false;
	batch_start(db);
}

static void batch_start(struct db *db)
{
	if (db->is_busy || !db->waiting.n)
		return;
	db->batch = db->waiting;
	list_init(&db->waiting);
	db->is_busy = true;
	loop_work(db->loop, batch_work, batch_done, db);
}

void db_start(struct db *db, struct loop *l)
{
	db->loop = l;
}

static struct op *op_new(enum op_kind kind, const char *id, db_done *done, void *arg)
{
	struct op *o = xcalloc(1, sizeof *o);

	o->kind = kind;
	o->done = done;
	o->arg = arg;
	(void)str_copy(o->ended.id, sizeof o->ended.id,
		       id); /* ids are checked before they get here */
	return o;
}

static int op_queue(struct db *db, struct op *o)
{
	if (db->waiting.n >= DB_QUEUE_MAX) {
		op_free(o);
		return -ENOBUFS;
	}
	list_add(&db->waiting, o);
	batch_start(db);
	return 0;
}

int db_put_sandbox(struct db *db, const struct db_sandbox *s, db_done *done, void *arg)
{
	struct op *o = op_new(OP_PUT, s->id, done, arg);

	o->put = *s;
	o->put.metadata = xstrdup(s->metadata ? s->metadata : "{}");
	o->put.env = xstrdup(s->env ? s->env : "{}");
	return op_queue(db, o);
}

int db_set_end(struct db *db, const char *id, uint64_t end_ns, db_done *done, void *arg)
{
	struct op *o = op_new(OP_SET_END, id, done, arg);

	o->end_ns = end_ns;
	return op_queue(db, o);
}

int db_end_sandbox(struct db *db, const struct db_ended *e, db_done *done, void *arg)
{
	struct op *o = op_new(OP_END, e->id, done, arg);

	o->ended = *e;
	return op_queue(db, o);
}

int db_forget_sandbox(struct db *db, const char *id, db_done *done, void *arg)
{
	return op_queue(db, op_new(OP_FORGET, id, done, arg));
}

void db_disown(struct db *db, const void *arg)
{
	for (struct op *o = db->waiting.first; o; o = o->next)
		if (o->arg == arg)
			o->done = NULL;
	for (struct op *o = db->batch.first; o; o = o->next)
		if (o->arg == arg)
			o->done = NULL; /* the worker reads neither done nor arg */
	for (struct op *o = db->finished; o; o = o->next)
		if (o->arg == arg)
			o->done = NULL;
}

bool db_idle(const struct db *db)
{
	return !db->is_busy;
}

static void finish_now(struct db *db)
{
	db->batch = db->waiting;
	list_init(&db->waiting);
	batch_work(db);
	report(db);
}

void db_close(struct db *db)
{
	if (!db)
		return;
	assert(!db->is_busy); /* the loop is run until db_idle() */
	while (db->waiting.n)
		finish_now(db);
	(void)sqlite3_close(db->sql);
	free(db);
}
