/* process.Process/Start and Connect as a client sees them: events parsed as they come. */
#ifndef SPACE_INIT_TEST_RUN_H
#define SPACE_INIT_TEST_RUN_H

#include "init/test/vm.h"
#include "wire/envelope.h"

struct run_options {
	const char *user;
	const char *timeout_ms;
	const char *keepalive;
	const char *after;
	const char *more;  /* JSON members beside cmd and args: `"cwd":"/",…` */
	const char *outer; /* JSON members beside process: `"stdin":true,"tag":"t"` */
	bool is_held;
	bool is_counted; /* output is counted, not kept */
};

struct run {
	struct vm *vm;
	struct reply *reply;
	struct envelope envelope;
	uint8_t *message;
	size_t message_n;
	int pid;      /* 0: no start event */
	char *out[3]; /* stdout, stderr, pty */
	size_t out_n[3];
	uint64_t total; /* bytes of all output */
	unsigned n_keepalive;
	bool has_end;
	int exit_code;
	bool exited;
	char *status;
	char *error; /* of the end event */
	char *code;  /* of the end envelope */
	char *message_text;
	bool is_over; /* the end envelope came */
	bool is_counted;
	bool is_bad; /* something no client would understand */
};

/* cmd and args; args ends with NULL. */
struct run *run_start(struct vm *v, const struct run_options *o, const char *cmd,
		      const char *const args[]);
struct run *run_sh(struct vm *v, const struct run_options *o, const char *script); /* /bin/sh -c */
struct run *run_connect(struct vm *v, const struct run_options *o, const char *selector);
bool run_wait(struct run *r, uint64_t ms);    /* the stream is over */
bool run_started(struct run *r, uint64_t ms); /* start event or over */
bool run_has(struct run *r, const char *text,
	     uint64_t ms); /* text appeared in stdout or the terminal */
void run_free(struct run *r);

#endif
