/* API keys: made once, shown once in an owner-only file for the command line, kept as hashes. */
#ifndef SPACE_SPACED_KEYS_H
#define SPACE_SPACED_KEYS_H

#include "base/fail.h"
#include "spaced/node.h"

/* Loads the hashes into n; at the first start makes a key and writes state/api-key. */
int keys_prepare(struct node *n, struct fail *f);

#endif
