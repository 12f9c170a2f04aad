/* Which QEMU this node has and how it runs guests: both are part of every variant's id. */
#ifndef SPACE_SPACED_ENGINE_ID_H
#define SPACE_SPACED_ENGINE_ID_H

#include "base/fail.h"
#include "spaced/node.h"
#include "spaced/options.h"

/* Sets accel, accel_why and engine. Before confinement: reads /usr. */
int engine_find(enum accel_choice choice, struct config *ret, struct fail *f);

#endif
