/* One jail with one VM, from its folder run/<id>/ to the last file of it: asks the jailer, speaks
 * with the keeper. Who uses it decides what the VM is for (sandbox.c, variants.c).
 *
 * Trusts the jailer. The keeper is less trusted (it runs with the sandbox's uid beside QEMU):
 * what it says can only end its own VM, and no descriptor of its is used for anybody else. */
#ifndef SPACE_SPACED_VM_H
#define SPACE_SPACED_VM_H

#include "base/fail.h"
#include "spaced/node.h"

struct vm;

#define VM_CAUSE_SIZE 256

/* None is called before the call that made the vm has returned. */
struct vm_ops {
	void (*on_up)(void *arg); /* VM_READY: the guest can be asked */
	/* After vm_save(): device state is written and nothing of the VM runs; its folder is
	 * still there until vm_sweep(). */
	void (*on_saved)(void *arg);
	/* It ends by itself: once, not after vm_end(). What it was for is over now. */
	void (*on_down)(void *arg, const char *cause);
	/* Last, once: no process and no file is left. The vm is freed after it returns. */
	void (*on_gone)(void *arg);
};

struct vm_plan {
	bool is_boot;
	struct vm_spec spec; /* spec.id names it */
	uint64_t disk_bytes;
	/* In the order of vm_boot_fd or vm_restore_fd; layer and console are made here. Taken. */
	int fd[VM_RESTORE_FDS];
};
static_assert((int)VM_BOOT_FDS == (int)VM_RESTORE_FDS, "one array holds either");
void vm_plan_init(struct vm_plan *p, bool is_boot); /* all fds -1 */
void vm_plan_done(struct vm_plan *p);

/* On failure nothing is left and no callback comes. */
int vm_start(struct node *n, struct vm_plan *plan, const struct vm_ops *ops, void *arg,
	     struct vm **ret, struct fail *f);
/* What an earlier spaced started: on_up when its keeper answers and the guest is there. */
struct vm *vm_adopt(struct node *n, const char *id, const struct vm_ops *ops, void *arg);
/* Only ends and sweeps what is there: for run/<id> without a record. ops may leave all but
 * on_gone NULL. */
struct vm *vm_bury(struct node *n, const char *id, const struct vm_ops *ops, void *arg);

/* After on_up only. state_fd: read-write, borrowed. */
int vm_save(struct vm *v, int state_fd);
void vm_sweep(struct vm *v);

/* on_gone follows, nothing else. May be called at any time, again too. */
void vm_end(struct vm *v);

const char *vm_id(const struct vm *v);
int vm_dir(const struct vm *v); /* run/<id>: where its sockets are; -1 when it is not there */
const char *
vm_variant(const struct vm *v); /* after on_up of an adopted one: what its keeper said */

/* The last max bytes of run/<id>/console.log, newly allocated. */
int vm_console(const struct vm *v, size_t max, char **ret, size_t *ret_n);

#endif
