/* What every x_fuzz.c defines. libFuzzer calls it with what it invents; fuzz/replay.c with the
 * seeds of fuzz/<target>/, so that a plain build runs them too. A broken property is a failed
 * assert. */
#ifndef SPACE_BASE_FUZZ_H
#define SPACE_BASE_FUZZ_H

#include "base/defs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
