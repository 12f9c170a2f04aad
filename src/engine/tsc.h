/* The host's time-stamp counter. */
#ifndef SPACE_ENGINE_TSC_H
#define SPACE_ENGINE_TSC_H

#include "base/defs.h"

/* Its frequency in kHz, measured over about 20 ms against CLOCK_MONOTONIC_RAW; the same on every
 * call. An emulated guest reads this counter, so its kernel is told instead of calibrating. */
uint32_t tsc_khz(void);

#endif
