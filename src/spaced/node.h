/* What the parts of spaced share: made by main.c, never copied. */
#ifndef SPACE_SPACED_NODE_H
#define SPACE_SPACED_NODE_H

#include "spaced/idmap.h"
#include "store/data.h"
#include "store/db.h"

struct jailer;
struct loop;
struct sandboxes;
struct variants;

struct config {
	uint32_t max_sandboxes;
	uint32_t max_hours;
	uint32_t cores; /* starts in flight at most */
	enum accel accel;
	char accel_why[128]; /* why not KVM, or "" */
	char engine[160];    /* the build of QEMU and of the keeper; part of every variant's id */
	char url[64];
};

struct node {
	struct loop *loop;
	struct data data;
	struct db *db;
	struct config cfg;
	struct jailer *jailer;
	struct jail_hello jails; /* what the jailer said */
	struct variants *variants;
	struct sandboxes *sandboxes;
	int meminfo; /* /proc/meminfo, opened before confinement; -1: unknown */
	uint64_t started_ns;
	bool is_stopping;
	uint64_t stop_ns; /* since when */
	size_t n_keys;
	uint8_t key[DB_KEYS_MAX][DIGEST_SIZE]; /* hashes of the API keys */
};

/* Ends every sandbox, then the program. */
void node_stop(struct node *n, const char *why);

#endif
