/* What /proc says of one process. */
#ifndef SPACE_JAILER_PROC_H
#define SPACE_JAILER_PROC_H

#include "base/defs.h"

#include <sys/types.h>

#define PROC_NAME_SIZE 16 /* comm(5): 15 bytes and a NUL */

struct proc_status {
	char name[PROC_NAME_SIZE]; /* chosen by the process itself */
	pid_t parent;
	uid_t uid[4];       /* real, effective, saved, file system */
	unsigned pid_depth; /* PID namespaces it is in, counted from ours: 1 = only ours */
	pid_t pid_inner;    /* its number in the innermost one */
};

/* -ESRCH: gone. -EBADMSG: not what Linux writes. */
int proc_status_read(pid_t pid, struct proc_status *ret);
int proc_status_parse(const char *text, struct proc_status *ret);
bool proc_uid_is(const struct proc_status *s, uid_t uid); /* all four */

/* Calls `seen` for every process that can be read now. */
int proc_each(void (*seen)(void *arg, pid_t pid, const struct proc_status *s), void *arg);

#endif
