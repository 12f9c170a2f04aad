/* This machine: what it must have before a node can run here, and where the data folder is. */
#ifndef SPACE_CLI_PLACE_H
#define SPACE_CLI_PLACE_H

#include "base/fail.h"

struct cli;

/* The data folder and its parents, 0755 for root (jails with other uids work in it), else 0700. */
int place_make_data(const struct cli *c, struct fail *f);

/* Programs and kernel features, each with one sentence when it is missing. */
int place_check(const struct cli *c, struct fail *f);

/* "HOST:PORT" or "[V6]:PORT"; whether it can be listened on now. -EADDRINUSE. */
int place_check_listen(const char *listen, struct fail *f);

#endif
