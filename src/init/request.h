/* The requests that space-init understands, as records: process.Process (E2B's envd, Connect's
 * JSON) and the platform's own /space/init. Pure. Everything in them comes from a client through
 * relays that do not look inside, so all of it is hostile; unknown fields are ignored.
 *
 * Every _parse returns 0 or a negative errno with a sentence in `f` that the client may read. */
#ifndef SPACE_INIT_REQUEST_H
#define SPACE_INIT_REQUEST_H

#include "base/fail.h"
#include "init/env.h"

#include <sys/types.h>

struct start_request {
	char *cmd;
	char **args; /* NULL-terminated */
	size_t n_args;
	struct env envs;
	char *cwd; /* "" = the default */
	char *tag; /* NULL = none */
	bool has_stdin;
	bool has_pty;
	uint16_t cols;
	uint16_t rows;
	size_t bytes; /* of all strings: what it costs to keep */
};
int start_request_parse(struct start_request *ret, const void *p, size_t n, struct fail *f);
void start_request_done(struct start_request *q);

/* Which process: by pid, or by the tag given at its start. */
struct selector {
	pid_t pid; /* 0: by tag */
	char *tag;
};

struct input_request {
	struct selector process;
	bool is_pty;
	uint8_t *data;
	size_t n;
};
struct signal_request {
	struct selector process;
	int signo;
};
struct update_request {
	struct selector process;
	bool has_size;
	uint16_t cols;
	uint16_t rows;
};
int selector_request_parse(struct selector *ret, const void *p, size_t n, struct fail *f);
int input_request_parse(struct input_request *ret, const void *p, size_t n, struct fail *f);
int signal_request_parse(struct signal_request *ret, const void *p, size_t n, struct fail *f);
int update_request_parse(struct update_request *ret, const void *p, size_t n, struct fail *f);
void selector_done(struct selector *s);
void input_request_done(struct input_request *q);
void signal_request_done(struct signal_request *q);
void update_request_done(struct update_request *q);

/* The fields of the head that matter here. */
struct head_options {
	bool has_user;
	char *user;          /* Authorization: Basic base64("user:") */
	uint64_t timeout_ms; /* Connect-Timeout-Ms; 0 = none */
	unsigned keepalive_s;
	bool has_after;
	uint64_t after; /* space-after: the sequence number the client has seen up to */
};
int head_options_parse(struct head_options *ret, const char *authorization, const char *timeout,
		       const char *keepalive, const char *after, struct fail *f);
void head_options_done(struct head_options *o);

#endif
