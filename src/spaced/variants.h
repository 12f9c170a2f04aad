/* Templates' variants: booted once, saved, kept in memory while in use. Whoever needs one while
 * it is being made waits for the same boot. */
#ifndef SPACE_SPACED_VARIANTS_H
#define SPACE_SPACED_VARIANTS_H

#include "spaced/node.h"
#include "spaced/vm.h"
#include "store/template.h"

#define VARIANTS_KEPT_MAX 8u /* RAM images in memory; the least recently used goes first */

struct variant;

/* One who waits; embedded in the one who does. done comes once, never before variants_get() has
 * returned, unless variants_cancel(). v is NULL when it could not be made: `why` is for the log. */
struct want {
	void (*done)(void *arg, struct variant *v, const char *why);
	void *arg;
	struct want *next;
	struct variant *of; /* NULL: does not wait */
};

struct variants *variants_new(struct node *n);
void variants_free(struct variants *vs); /* no VM of it is left */

void variants_get(struct variants *vs, const struct template *t, struct want *w);
void variants_cancel(struct want *w);

/* Between done and variant_plan() it must stay in memory: held, it is not evicted. */
void variant_hold(struct variant *v);
void variant_release(struct variant *v); /* NULL is fine */

/* Fills a plan to restore it: variant id, sizes, all descriptors but layer and console. */
int variant_plan(struct node *n, struct variant *v, struct vm_plan *ret, struct fail *f);
const char *variant_name(const struct variant *v);

/* Ends what is being made. variants_busy(): whether any VM is left. */
void variants_stop(struct variants *vs);
bool variants_busy(const struct variants *vs);

#endif
