/* A guest under test: QEMU (emulated) with the real kernel, space-init and a small root, and the
 * host's half of the channel in this process. Everything waits with a deadline; a test that waits
 * in vain prints the end of the guest's console and fails. */
#ifndef SPACE_INIT_TEST_VM_H
#define SPACE_INIT_TEST_VM_H

#include "base/defs.h"

#include <jansson.h>

struct vm;
struct h2;
struct loop;

struct vm_files {
	const char *kernel;
	const char *initrd;
	const char *disk;    /* raw ext4; opened with a throw-away layer on top */
	const char *console; /* written */
};

/* Exits the test program when QEMU cannot be started. memory in MiB. */
struct vm *vm_start(const struct vm_files *files, unsigned memory);
void vm_kill(struct vm *v);
/* The handshake; drops the sessions of an earlier one. False: no answer within the deadline. */
bool vm_wake(struct vm *v);
/* Raw bytes on space.control, as an old session leaves them. Between vm_sleep_sessions and
 * vm_wake. */
void vm_garbage(struct vm *v, const void *p, size_t n);
void vm_drop_sessions(struct vm *v);
bool vm_gone(struct vm *v, uint64_t within_ms); /* QEMU has ended by itself */
bool vm_has_session(const struct vm *v);

/* Runs the loop until is_true(arg), at most so long. */
bool vm_until(struct vm *v, bool (*is_true)(void *arg), void *arg, uint64_t ms);
struct loop *vm_loop(struct vm *v);

/* One request and what came back. Never freed before vm_reply_free(). */
struct reply {
	unsigned status; /* 0: no head yet */
	uint64_t seq;    /* space-seq */
	uint64_t gap;    /* space-gap; UINT64_MAX: none */
	char *type;
	uint8_t *body;
	size_t n;
	bool is_closed;
	uint32_t code;
	bool is_held;      /* set before data comes: nothing is consumed, the guest must stop */
	size_t held;       /* bytes not consumed */
	bool is_discarded; /* the body is only counted */
	uint64_t total;
	void (*on_data)(struct reply *r, const uint8_t *p, size_t n);
	void *arg;
	struct h2_stream *stream;
};
struct header {
	const char *name;
	const char *value;
};
#define HEADERS_MAX 8
struct reply *vm_send(struct vm *v, const char *method, const char *path,
		      const struct header headers[HEADERS_MAX], const void *body, size_t n);
void vm_reply_free(struct reply *r);                            /* cancels it if it is open */
void vm_reply_release(struct reply *r);                         /* consumes what was held */
bool vm_reply_wait(struct vm *v, struct reply *r, uint64_t ms); /* until it is closed */

/* A whole unary call: *ret (may be NULL) is the JSON answer. Returns the status, 0 without an
 * answer. */
unsigned vm_call(struct vm *v, const char *method, const char *path, const char *body,
		 json_t **ret);

#endif
