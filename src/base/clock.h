/* Time. All times are nanoseconds in uint64_t from one of these two clocks. */
#ifndef SPACE_BASE_CLOCK_H
#define SPACE_BASE_CLOCK_H

#include "base/defs.h"

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S  ((uint64_t)1000000000)

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);

#define RFC3339_SIZE 32 /* "2026-12-01T00:52:48.123456789Z" and its NUL */
void rfc3339_print(char dst[RFC3339_SIZE], uint64_t real_ns);
int rfc3339_parse(const char *text, uint64_t *ret_real_ns); /* Z or +hh:mm; -EINVAL */

#endif
