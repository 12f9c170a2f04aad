/* Percentiles of measured times. */
#ifndef SPACE_CLI_STATS_H
#define SPACE_CLI_STATS_H

#include "base/defs.h"

struct stats {
	size_t n;
	uint64_t min_ns;
	uint64_t p50_ns;
	uint64_t p95_ns;
	uint64_t p99_ns;
	uint64_t max_ns;
};

/* Sorts `sample`. Percentiles by nearest rank: the smallest value that at least that share of the
 * sample does not exceed, so each is a time that was measured. n == 0: all zero. */
void stats_of(uint64_t *sample, size_t n, struct stats *ret);

#endif
