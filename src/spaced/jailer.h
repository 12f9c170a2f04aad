/* The line to space-jailer: asks for jails and hears what became of them. */
#ifndef SPACE_SPACED_JAILER_H
#define SPACE_SPACED_JAILER_H

#include "spaced/idmap.h"

struct jailer;
struct loop;

/* Embedded in what owns the jail. on_end is the last word about it: nothing of it runs any more. */
struct jail {
	struct idnode node; /* node.id is the sandbox's */
	void (*on_end)(struct jail *j, const char *why);
};

struct jailer_ops {
	void (*on_hello)(void *arg, const struct jail_hello *h);
	void (*on_lost)(void *arg);
};

/* Takes fd. */
struct jailer *jailer_new(struct loop *l, int fd, const struct jailer_ops *ops, void *arg);
void jailer_free(struct jailer *j);

/* Borrows the descriptors. After 0 on_end comes once, until jailer_forget(). */
int jailer_start(struct jailer *j, struct jail *jail, const struct jail_start *what,
		 const int fds[JAIL_FDS]);
/* Waits for the end of a jail that an earlier spaced started. */
void jailer_adopt(struct jailer *j, struct jail *jail);
/* pidfd of the keeper, or -1. May be asked again. */
int jailer_kill(struct jailer *j, struct jail *jail, int pidfd);
void jailer_forget(struct jailer *j, struct jail *jail);

/* Nothing will be started any more: the jailer ends when we do. */
void jailer_quit(struct jailer *j);

#endif
