/* A command in a sandbox: started, fed, shown and waited for, as process.Process has it. */
#ifndef SPACE_CLI_EXEC_H
#define SPACE_CLI_EXEC_H

#include "base/fail.h"

#include <jansson.h>

struct api;
struct call;
struct call_ops;

struct exec_spec {
	const char *sandbox; /* id */
	const char *token;   /* "" or NULL: an open sandbox */
	const char *user;    /* NULL: the sandbox's default */
	const char *cwd;     /* NULL: the sandbox's default */
	const json_t *env;   /* object of strings, or NULL */
	char *const *argv;   /* NULL-terminated */
	unsigned timeout_ms; /* 0: none */
	int in_fd;           /* -1: no input */
	int out_fd;          /* -1: output is counted and dropped */
	int err_fd;
};

struct exec_result {
	int exit_code;
	int signo;                /* we were told to stop by this signal; 0: not */
	uint64_t first_output_ns; /* since the POST; 0: there was none */
	uint64_t total_ns;
};

/* Runs the loop until it is over. 0: *ret->exit_code is the command's. A failure fills ret too. */
int exec_run(struct api *a, const struct exec_spec *s, struct exec_result *ret, struct fail *f);

/* A request to the sandbox's envd with the headers of `s`. type: "application/json" for a plain
 * call, "application/connect+json" for a stream. */
struct call *exec_call(struct api *a, const struct exec_spec *s, const char *path, const char *type,
		       const void *body, size_t n, const struct call_ops *ops, void *arg);

#endif
