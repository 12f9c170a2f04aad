/* What this host gives: user ids, the places that spaced and the jails see, the data folder. */
#ifndef SPACE_JAILER_NODE_H
#define SPACE_JAILER_NODE_H

#include "base/fail.h"

#include <sys/types.h>

#define NODE_UIDS      4096
#define NODE_UID_FIRST 0x53500000u /* where nobody else hands out ids: NODE_RANGES of them */
#define NODE_RANGES    1024u

struct node {
	bool is_root;    /* every sandbox gets an own uid; else all have ours */
	uid_t uid_first; /* of NODE_UIDS; the first one is spaced's where no user `space` exists */
	uid_t spaced_uid;
	gid_t spaced_gid;
	char *data;        /* as spaced sees it */
	char *libexec;     /* as spaced and bwrap see it */
	char instance[40]; /* names this data folder on this host: [0-9a-f-] */
	uint32_t next;     /* uids are handed out in turn, so that none is used again soon */
	bool used[NODE_UIDS];
};

struct node_request {
	const char *data;
	const char *libexec;
	bool has_uid_first;
	uid_t uid_first;
};

/* As root: a mount namespace of our own with both folders under /run/space, and a range of uids.
 * Makes state/, variants/ and run/ and gives them to spaced. */
int node_prepare(const struct node_request *r, struct node *ret, struct fail *f);

/* A uid that no process on this host has. -EUSERS: none is left. */
int node_uid_take(struct node *n, uid_t *ret);
void node_uid_give(struct node *n, uid_t uid);
bool node_uid_is_ours(const struct node *n, uid_t uid); /* one that a sandbox may have */

/* Whether a node's user namespace maps [first, first + count); text of /proc/self/uid_map. */
bool uid_map_has(const char *text, uint32_t first, uint32_t count);

#endif
