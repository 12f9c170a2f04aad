/* Which QEMU this node has and how it runs guests: both are part of every variant's id. */
#ifndef SPACE_SPACED_ENGINE_ID_H
#define SPACE_SPACED_ENGINE_ID_H

#include "base/fail.h"
#include "spaced/node.h"
#include "spaced/options.h"

/* Sets accel, accel_why and engine. Before confinement: reads /usr, and CHOOSE_AUTO runs a probe
 * in a child. `why`: what whoever chose TCG for us says about KVM. */
int engine_find(enum accel_choice choice, const char *why, struct config *ret, struct fail *f);

#endif
