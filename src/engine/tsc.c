/* See tsc.h. */
#include "engine/tsc.h"

#include "base/clock.h"

#include <x86intrin.h>

#define WINDOW_NS (20 * NS_PER_MS)

static uint64_t raw_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC_RAW, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint32_t tsc_khz(void)
{
	static uint32_t khz;
	uint64_t t0;
	uint64_t t1;
	uint64_t c0;

	if (khz)
		return khz;
	t0 = raw_ns();
	c0 = __rdtsc();
	do
		t1 = raw_ns();
	while (t1 - t0 < WINDOW_NS);
	khz = (uint32_t)((__rdtsc() - c0) * 1000000 / (t1 - t0));
	return khz;
}
