/* How much memory outside bytes may hold in space-init at one moment: request bodies, queued
 * stdin, the arguments of running processes; and, counted apart, the output rings. Both sizes
 * follow the guest's RAM. Whoever is refused answers `resource_exhausted`; nothing waits. */
#ifndef SPACE_INIT_BUDGET_H
#define SPACE_INIT_BUDGET_H

#include "base/defs.h"

struct budget {
	size_t used;
	size_t max;
};

static inline void budget_init(struct budget *b, size_t max_bytes)
{
	*b = (struct budget){.max = max_bytes};
}

static inline bool budget_take(struct budget *b, size_t n)
{
	if (n > b->max - b->used)
		return false;
	b->used += n;
	return true;
}

static inline void budget_give(struct budget *b, size_t n)
{
	assert(n <= b->used);
	b->used -= n;
}

#endif
