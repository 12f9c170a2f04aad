/* Spaced's side of a keeper, for tests: says what it is told, and writes down what it hears. */
#ifndef SPACE_KEEPER_TEST_SPACED_H
#define SPACE_KEEPER_TEST_SPACED_H

#include "wire/msg.h"

#include <sys/types.h>

#define TEST_SANDBOX "i0123456789abcdefghi"

struct test_spaced {
	int fd;     /* to the keeper; -1: none */
	int record; /* borrowed: the file of the exit record */
	char id[SANDBOX_ID_SIZE];
	char heard[1024];    /* "hello starting running stopped: why": every message */
	enum vm_state state; /* of the newest VM_STATE */
	struct keeper_hello hello;
	pid_t keeper;         /* by the pidfd of its hello */
	uint64_t ram_bytes;   /* of the memory that came with it, 0: none */
	const char *wrong;    /* the first thing that was not as the wire's contract says */
	bool has_seen_record; /* it was written when the end was heard */
};

/* A listening "keeper.sock" in the folder is the keeper's. */
void test_spaced_connect(struct test_spaced *s, int dirfd);
void test_spaced_say(struct test_spaced *s, enum msg_type type, const void *body, size_t size,
		     const int *fds, size_t n_fds);
void test_spaced_begin(struct test_spaced *s, const struct vm_spec *spec, bool is_boot,
		       const int fds[VM_BOOT_FDS]);
/* The next message, within timeout_ms; false: the keeper closed, or nothing came. */
bool test_spaced_listen(struct test_spaced *s, int timeout_ms);

#endif
