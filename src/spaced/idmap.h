/* A map from sandbox ids to what embeds a node of it. The map owns nothing. */
#ifndef SPACE_SPACED_IDMAP_H
#define SPACE_SPACED_IDMAP_H

#include "wire/msg.h"

#define IDMAP_BUCKETS 256u

struct idnode {
	char id[SANDBOX_ID_SIZE];
	struct idnode *next;
};
struct idmap {
	struct idnode *bucket[IDMAP_BUCKETS];
	size_t n;
};

/* node->id is set by the caller and in no map yet. */
void idmap_add(struct idmap *m, struct idnode *node);
void idmap_remove(struct idmap *m, struct idnode *node);
struct idnode *idmap_find(const struct idmap *m, const char *id);
/* All of them in an array of n, which the caller frees: safe while the map changes. */
struct idnode **idmap_all(const struct idmap *m);

#endif
