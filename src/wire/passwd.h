/* Users and groups as /etc/passwd and /etc/group name them (passwd(5), group(5)). Pure: the caller
 * hands in the file's bytes. The files belong to whoever has root in the guest, so they are
 * hostile: a line that is not well-formed is skipped, as libc does, and never repaired; NIS lines
 * (+, -) and comments do not count; the first match wins. */
#ifndef SPACE_WIRE_PASSWD_H
#define SPACE_WIRE_PASSWD_H

#include "base/defs.h"
#include "base/rd.h"

#define PASSWD_FILE_MAX   (1024u * 1024) /* what a caller should read at most */
#define PASSWD_NAME_SIZE  33             /* Linux: 32 and a NUL */
#define PASSWD_PATH_SIZE  1024
#define PASSWD_ID_MAX     4294967294u /* (uid_t)-1 is not a user */
#define PASSWD_GROUPS_MAX 64          /* supplementary groups of one user */

struct passwd_user {
	char name[PASSWD_NAME_SIZE];
	char home[PASSWD_PATH_SIZE];  /* absolute; "/" when the field is empty */
	char shell[PASSWD_PATH_SIZE]; /* absolute; "/bin/sh" when the field is empty */
	uint32_t uid;
	uint32_t gid;
};

/* -ENOENT: no such user. -EFBIG: the file is longer than PASSWD_FILE_MAX. */
int passwd_find_name(struct rd file, const char *name, struct passwd_user *ret);
int passwd_find_uid(struct rd file, uint32_t uid, struct passwd_user *ret);

/* The groups that list `name`, each once, `gid` (the user's own) first. *ret_n >= 1. -E2BIG: more
 * than PASSWD_GROUPS_MAX; -EFBIG. */
int passwd_groups(struct rd file, const char *name, uint32_t gid, uint32_t ret[PASSWD_GROUPS_MAX],
		  size_t *ret_n);

#endif
