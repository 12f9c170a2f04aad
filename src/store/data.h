/* The data folder: where things are (docs/architecture.md) and that only one spaced uses them. */
#ifndef SPACE_STORE_DATA_H
#define SPACE_STORE_DATA_H

#include "base/fail.h"

struct data {
	char *path;   /* as given, for SQLite, which takes no descriptor */
	int root;     /* -1: not open, as for all of these */
	int state;    /* owner only */
	int variants; /* owner only */
	int run;
	int lock; /* held until data_done() */
};

#define DATA_NONE ((struct data){NULL, -1, -1, -1, -1, -1})

/* Opens what is there and makes state/, variants/ and run/ where missing. The folder itself must
 * exist. -EBUSY: another spaced holds it. */
int data_open(const char *path, struct data *ret, struct fail *f);
void data_done(struct data *d);

#endif
