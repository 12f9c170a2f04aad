/* The mount namespace that jailer, spaced and every jail's outside live in. */
#ifndef SPACE_JAILER_MOUNTS_H
#define SPACE_JAILER_MOUNTS_H

#include "base/fail.h"

/* Folders below the data folder that a node only reads; NULL-terminated. A descriptor that is
 * opened in one of them cannot be opened anew for writing, by whoever holds it: the file's mount is
 * read-only. Without root that is all that keeps a captured QEMU from its own user's images. */
extern const char *const mounts_read_only[];

/* As root: a namespace of our own in which both folders are found below /run/space, so that they
 * may lie behind folders that others must not enter; *data and *libexec are replaced. Without root:
 * the same in a user namespace of our own, with both folders where they are; a host that forbids
 * this is not a failure, it is told by -EOPNOTSUPP and nothing has changed. */
int mounts_prepare(bool is_root, char **data, char **libexec, struct fail *f);

#endif
