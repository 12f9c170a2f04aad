/* Starts one user process: a child in its own cgroup leaf, session and process group, that enters
 * the user's namespaces, becomes the user, and executes. Everything that touches the user's files
 * (who is "user", is the cwd there, where is the command) happens in the child, so that no file
 * system the user has mounted can make init wait. What fails there comes back as a record on a pipe
 * that closes by itself when the execution succeeds. */
#ifndef SPACE_INIT_LAUNCH_H
#define SPACE_INIT_LAUNCH_H

#include "base/fail.h"
#include "init/cgroup.h"
#include "wire/connect_code.h"

#include <sys/types.h>

struct identity;
struct start_request;
struct userspace;

struct launch_plan {
	const struct userspace *userspace;
	const struct identity *identity;
	const struct start_request *request;
	const char *user; /* NULL: the default user */
};

struct launched {
	pid_t pid;
	int in;    /* write end of stdin, -1 without; with a terminal: its master, also `out` */
	int out;   /* read end of stdout; with a terminal: its master */
	int err;   /* read end of stderr; -1 with a terminal */
	int error; /* read end of the error record */
};
#define LAUNCH_ERROR_MAX 1024 /* a record: the connect_code as one byte, then a sentence */

/* The descriptors are non-blocking and the caller's. */
int launch(const struct launch_plan *p, const struct leaf *leaf, struct launched *ret,
	   struct fail *f);

/* What a record says; an empty one means that the program runs (CONNECT_OK). */
enum connect_code launch_error_parse(const uint8_t *p, size_t n, char *text, size_t text_size);

/* Terminal size; best effort. */
void launch_resize(int master, uint16_t cols, uint16_t rows);

#endif
