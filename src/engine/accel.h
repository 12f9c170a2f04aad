/* Which accelerator this host can really use. A /dev/kvm may be there and still not run ordinary
 * kernels (paravirtual KVM without SVM or VMX interprets ring 0), so it is tried, not looked at.
 * */
#ifndef SPACE_ENGINE_ACCEL_H
#define SPACE_ENGINE_ACCEL_H

#include "base/defs.h"
#include "wire/msg.h"

#define ACCEL_WHY_SIZE 128

struct accel_report {
	enum accel accel;
	char why[ACCEL_WHY_SIZE]; /* why not KVM; "" with KVM */
};

/* Runs a tiny guest (a ring-0 loop, no memory of ours in it) in a child process for at most
 * ACCEL_PROBE_MS, and compares its speed with the same loop here. Never fails: doubt means TCG.
 * Starts a process: call it before confine_enter() forbids that. */
#define ACCEL_PROBE_MS 500
void accel_probe(struct accel_report *ret);

#endif
