/* The guest's cgroups (v2):
 *
 *   /space-init   PID 1: first in line for the CPU, its memory protected
 *   /user         everything else: memory.max and pids.max leave init room to answer
 *   /user/<n>     one leaf for each started process: a fork bomb fills its own leaf, and there is
 *                 room and CPU time for a command from outside that ends it
 *
 * Leaves have no memory controller: 100 000 short commands would leave as many dying memory groups
 * behind. A leaf goes when it is empty; daemons that outlive their command keep theirs. */
#ifndef SPACE_INIT_CGROUP_H
#define SPACE_INIT_CGROUP_H

#include "base/fail.h"

#define LEAF_NAME_SIZE 24

struct leaf {
	char name[LEAF_NAME_SIZE]; /* "" = none */
	int fd;
};

struct cgroups {
	int user;                     /* directory of /user */
	uint64_t next;                /* number of the next leaf */
	uint64_t pids_leaf;           /* pids.max of a leaf */
	struct leaf spare;            /* made ahead, off the path of a start */
	char (*left)[LEAF_NAME_SIZE]; /* leaves that were not empty when their process ended */
	size_t n_left;
};

/* Makes the two groups with their limits and moves the caller into /space-init. */
int cgroups_init(struct cgroups *c, uint64_t ram_bytes, uint64_t protect_bytes, struct fail *f);
/* Splits /user into leaves: once no process is in it. */
int cgroups_open_user(struct cgroups *c, struct fail *f);

int leaf_take(struct cgroups *c, struct leaf *ret, struct fail *f);
void leaf_give(struct cgroups *c, struct leaf *l); /* removes it now or when it has become empty */
void cgroups_prepare(struct cgroups *c);           /* makes the spare; best effort */
bool cgroups_sweep(struct cgroups *c); /* tries those left; true: some are still there */

#endif
