/* Limits of one sandbox: a cgroup with pids, memory and CPU. v2 where those controllers may be
 * used, else the v1 hierarchies. Layout: <base>/space-<instance>/<id>, where base is the caller's
 * own cgroup, or for root the top of the hierarchy when the own one is shared with other processes.
 */
#ifndef SPACE_OS_CGROUP_H
#define SPACE_OS_CGROUP_H

#include "base/fail.h"

#include <sys/types.h>

#define CGROUP_TREES_MAX 3 /* v1: memory, pids, cpu */

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_base {
	enum cgroup_kind kind;
	size_t n;                        /* trees: 1 in v2 */
	int parent_fd[CGROUP_TREES_MAX]; /* base */
	int dir_fd[CGROUP_TREES_MAX];    /* base/space-<instance> */
	char name[64];                   /* space-<instance> */
};

/* What is set; 0 = no limit. Swap is forbidden where the kernel counts it. */
struct cgroup_limits {
	uint64_t memory_max_bytes;
	uint32_t pids_max;
	uint32_t cpu_max_permille; /* of one core, at least 10 */
};

struct cgroup {
	size_t n;
	int dir_fd[CGROUP_TREES_MAX];
	int procs_fd[CGROUP_TREES_MAX]; /* open for writing: give them to spawn() */
};

/* Finds and makes the base. On failure `f` says why this node has no limits, and ret->kind is
 * CGROUP_NONE, which all calls below accept as "nothing to do". `instance`: [a-z0-9-]. */
int cgroup_base_open(const char *instance, struct cgroup_base *ret, struct fail *f);
void cgroup_base_done(struct cgroup_base *b); /* removes space-<instance> when it is empty */

int cgroup_make(const struct cgroup_base *b, const char *id, const struct cgroup_limits *l,
		struct cgroup *ret, struct fail *f);
/* One that exists, or what is left of it (then some descriptors are -1). -ENOENT: nothing is. */
int cgroup_open(const struct cgroup_base *b, const char *id, struct cgroup *ret);
void cgroup_done(struct cgroup *c); /* closes; removes nothing */

/* SIGKILL to all inside. New ones may appear meanwhile: call again until cgroup_remove succeeds. */
int cgroup_kill(const struct cgroup *c);
/* 0: removed or not there. -EBUSY: somebody is inside. Never waits. */
int cgroup_remove(const struct cgroup_base *b, const char *id);

#endif
