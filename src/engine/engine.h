/* What runs a VM. The keeper sees these operations only; QMP, qcow2 and QEMU's options stay in
 * engine/qemu*.c, so that another VMM can stand behind the same table.
 *
 * The engine never starts a process itself: `launch` does, in the jail that the owner made.
 * Callbacks come from the loop, never from inside an operation. */
#ifndef SPACE_ENGINE_ENGINE_H
#define SPACE_ENGINE_ENGINE_H

#include "base/fail.h"
#include "wire/msg.h"

struct loop;
struct engine;

#define ENGINE_STATE_MAX (16u * 1024 * 1024) /* bytes of device state; 17 KB are usual */

enum engine_port { PORT_CONTROL, PORT_EGRESS, PORT_WAKE, PORT_CONSOLE, ENGINE_PORTS };

/* How long the VMM may take. Past it: on_failed. */
struct engine_times {
	uint32_t start_ms; /* from its start to its first answer, on a loaded host */
	uint32_t load_ms;  /* restore: from then until the CPUs run */
	uint32_t save_ms;  /* each step of a save */
};

/* Everything one VM is made of. Descriptors are borrowed for the call. */
struct engine_plan {
	const struct vm_spec *spec;
	struct engine_times times;
	bool is_boot;           /* else restore */
	int port[ENGINE_PORTS]; /* the VM's ends: stream sockets */
	int ram;                /* memfd of spec->memory_mib; sealed for a restore */
	int base;               /* root image, read-only */
	int layer;              /* top disk layer, read-write */
	int template_layer;     /* restore: the layer that the template's boot wrote, read-only */
	int state;              /* restore: device state, a file of at most ENGINE_STATE_MAX */
	int kernel;             /* boot */
	int initrd;             /* boot */
};

struct engine_events {
	void (*on_running)(void *arg); /* the guest's CPUs run, once */
	void (*on_saved)(void *arg);   /* the device state is whole and the VMM is ending */
	void (*on_guest_end)(void *arg, const char *how); /* guest shut down, reset, panicked */
	/* It can go no further. Code -EPIPE: the process is ending by itself and its status says
	 * more; else the owner ends it. */
	void (*on_failed)(void *arg, const struct fail *why);
};

/* Starts the VMM: `tail` are the arguments after the program's name; the program's descriptor i
 * is fds[i] (-1: none; 0..2 are the owner's). */
typedef int engine_launch(void *arg, const char *const *tail, const int *fds, size_t n,
			  struct fail *f);

struct engine_ops {
	const char *name;
	/* Calls launch once. When it fails after that, the process is the owner's to end. */
	int (*start)(struct loop *l, const struct engine_plan *p, engine_launch *launch,
		     const struct engine_events *events, void *arg, struct engine **ret,
		     struct fail *f);
	/* Stops the VM for good and writes its device state to state_fd (borrowed until
	 * on_saved). */
	int (*save)(struct engine *e, int state_fd, struct fail *f);
	void (*free)(struct engine *e); /* the process is ended by its owner */
};

extern const struct engine_ops engine_qemu;

#endif
