/* QEMU's command line. Boot and restore describe one and the same machine: every device, in the
 * same order, since the device state names them; only where RAM and code come from differs. */
#ifndef SPACE_ENGINE_QEMU_ARGV_H
#define SPACE_ENGINE_QEMU_ARGV_H

#include "engine/engine.h"

/* The descriptors QEMU is started with, by number. Those not used by a plan stay closed. */
enum qemu_fd {
	QEMU_FD_QMP = 3,
	QEMU_FD_CONTROL,
	QEMU_FD_EGRESS,
	QEMU_FD_WAKE,
	QEMU_FD_CONSOLE,
	QEMU_FD_RAM,
	QEMU_FD_BASE,
	QEMU_FD_LAYER,
	QEMU_FD_TEMPLATE_LAYER, /* restore */
	QEMU_FD_KERNEL,         /* boot */
	QEMU_FD_INITRD,         /* boot */
	QEMU_FD_END
};

/* NULL-terminated, without the program's name; caller frees with qemu_argv_free(). tsc_khz: the
 * host's, for an emulated boot (ENGINE: without it one boot in three hangs in calibration). */
char **qemu_argv(const struct engine_plan *p, uint32_t tsc_khz);
void qemu_argv_free(char **argv);

#endif
