/* See idmap.h. Ids are random, so their bytes spread well without a hash of our own. */
#include "spaced/idmap.h"

#include "base/alloc.h"

static size_t bucket_of(const char *id)
{
	size_t h = 0;

	for (const char *c = id; *c; c++)
		h = h * 31 + (unsigned char)*c;
	return h % IDMAP_BUCKETS;
}

void idmap_add(struct idmap *m, struct idnode *node)
{
	struct idnode **b = &m->bucket[bucket_of(node->id)];

	node->next = *b;
	*b = node;
	m->n++;
}

void idmap_remove(struct idmap *m, struct idnode *node)
{
	for (struct idnode **p = &m->bucket[bucket_of(node->id)]; *p; p = &(*p)->next)
		if (*p == node) {
			*p = node->next;
			m->n--;
			return;
		}
}

struct idnode *idmap_find(const struct idmap *m, const char *id)
{
	for (struct idnode *p = m->bucket[bucket_of(id)]; p; p = p->next)
		if (strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

struct idnode **idmap_all(const struct idmap *m)
{
	struct idnode **all = xcalloc(m->n + 1, sizeof *all);
	size_t n = 0;

	for (size_t i = 0; i < IDMAP_BUCKETS; i++)
		for (struct idnode *p = m->bucket[i]; p; p = p->next)
			all[n++] = p;
	return all;
}
