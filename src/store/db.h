/* state.db: what must outlive spaced (SQLite, WAL, synchronous FULL, one writer).
 *
 * Reading happens once, at the start, on the caller's thread. Writing is asynchronous: puts are
 * gathered and committed together on a pool thread; `done` runs in the loop when the record is
 * durable or could not be written. An answer that promises a record leaves only then. */
#ifndef SPACE_STORE_DB_H
#define SPACE_STORE_DB_H

#include "base/fail.h"
#include "store/digest.h"
#include "wire/msg.h"

struct loop;
struct db;

#define DB_SCHEMA     1
#define DB_QUEUE_MAX  4096 /* writes waiting for a commit */
#define DB_NAME_SIZE  65
#define DB_KEYS_MAX   64
#define DB_ENDED_KEPT 256 /* causes of ended sandboxes that are kept */

enum db_state { DB_STARTING, DB_RUNNING, DB_STATES };

/* One sandbox. Texts are owned by the record. */
struct db_sandbox {
	char id[SANDBOX_ID_SIZE];
	char template_name[DB_NAME_SIZE];
	char template_id[DB_NAME_SIZE];
	char variant[VARIANT_ID_SIZE];
	char token[TOKEN_SIZE]; /* "" = open */
	enum db_state state;
	uint32_t vcpus;
	uint32_t memory_mib;
	uint32_t disk_mib;
	uint64_t started_ns; /* real time */
	uint64_t end_ns;
	char *metadata; /* JSON object */
	char *env;      /* JSON object */
};
void db_sandbox_done(struct db_sandbox *s);

struct db_ended {
	char id[SANDBOX_ID_SIZE];
	char template_name[DB_NAME_SIZE];
	uint64_t started_ns;
	uint64_t ended_ns;
	char cause[256];
};

/* Opens or makes dir/state.db. -EBADMSG: damaged; -EPROTO: made by a newer version. */
int db_open(const char *dir, struct db **ret, struct fail *f);
/* Commits what waits (every `done` runs), then closes. Only while db_idle(): no batch is with the
 * worker. */
void db_close(struct db *db);
bool db_idle(const struct db *db);

/* Before db_start() only. Results are the caller's. */
int db_load_sandboxes(struct db *db, struct db_sandbox **ret, size_t *ret_n, struct fail *f);
int db_load_ended(struct db *db, struct db_ended **ret, size_t *ret_n, struct fail *f);
int db_load_keys(struct db *db, uint8_t ret[DB_KEYS_MAX][DIGEST_SIZE], size_t *ret_n,
		 struct fail *f);
int db_add_key(struct db *db, const uint8_t hash[DIGEST_SIZE], uint64_t created_ns, struct fail *f);

/* From here on the connection belongs to the writer. */
void db_start(struct db *db, struct loop *l);

/* The writes, in order. They copy what they are given. `done` may be NULL. -ENOBUFS: too many
 * wait; then done is not called. err of done: 0 or a negative errno. */
typedef void db_done(void *arg, int err);
int db_put_sandbox(struct db *db, const struct db_sandbox *s, db_done *done, void *arg);
int db_set_end(struct db *db, const char *id, uint64_t end_ns, db_done *done, void *arg);
int db_end_sandbox(struct db *db, const struct db_ended *e, db_done *done, void *arg);
int db_forget_sandbox(struct db *db, const char *id, db_done *done, void *arg);

/* Drops the pending callbacks that carry this arg: its owner goes away. */
void db_disown(struct db *db, const void *arg);

#endif
