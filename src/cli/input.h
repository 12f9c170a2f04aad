/* Our stdin as a command's: read a piece, sent, then the next; its end closes the command's. */
#ifndef SPACE_CLI_INPUT_H
#define SPACE_CLI_INPUT_H

#include "base/defs.h"

struct api;
struct exec_spec;
struct input;

/* Reads spec->in_fd for process `pid`. spec is borrowed until input_free(). */
struct input *input_start(struct api *a, const struct exec_spec *spec, int64_t pid);
void input_free(struct input *i); /* NULL is fine */

#endif
