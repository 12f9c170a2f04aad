/* See stats.h. */
#include "cli/stats.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t rank(const uint64_t *sorted, size_t n, size_t percent)
{
	return sorted[(n * percent + 99) / 100 - 1];
}

void stats_of(uint64_t *sample, size_t n, struct stats *ret)
{
	*ret = (struct stats){.n = n};
	if (n == 0)
		return;
	qsort(sample, n, sizeof *sample, compare);
	ret->min_ns = sample[0];
	ret->p50_ns = rank(sample, n, 50);
	ret->p95_ns = rank(sample, n, 95);
	ret->p99_ns = rank(sample, n, 99);
	ret->max_ns = sample[n - 1];
}
