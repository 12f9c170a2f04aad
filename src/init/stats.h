/* GET /space/stats: what the guest's kernel says of memory, disk and CPU. Read from /proc of init's
 * own namespace and by statfs of the user's root, none of which can wait for the user. */
#ifndef SPACE_INIT_STATS_H
#define SPACE_INIT_STATS_H

#include "base/defs.h"

#include <jansson.h>

struct stats {
	uint64_t cpu_total; /* at the last call, to make a percentage of the difference */
	uint64_t cpu_idle;
};

uint64_t stats_ram_bytes(void); /* MemTotal; 0 when /proc cannot be read */
/* A new object, the caller's. root, user_cgroup: directory descriptors. */
json_t *stats_object(struct stats *s, int root, int user_cgroup);

/* Pure: the number of "Name:   123 kB" in bytes, 0 when there is none; and the totals of the line
 * "cpu  u n s i …" of /proc/stat. */
uint64_t meminfo_bytes(const char *text, const char *name);
int cpu_times(const char *text, uint64_t *ret_total, uint64_t *ret_idle);

#endif
