/* Processes by descriptor: a pidfd never means another process, a pid may. */
#ifndef SPACE_OS_PIDFD_H
#define SPACE_OS_PIDFD_H

#include "base/defs.h"

#include <sys/types.h>

#define PID_MAX 4194304 /* proc(5): 2^22 */

/* Of a child that is not reaped, or of any process whose number may be trusted. CLOEXEC. */
int pidfd_of(pid_t pid, int *ret_fd);
/* 0, or -ESRCH when it is gone. */
int pidfd_signal(int pidfd, int signo);
/* The process's number in our PID namespace. -ESRCH: gone and reaped; -EINVAL: not a pidfd;
 * -EXDEV: lives in a namespace that we cannot see into. */
int pidfd_pid(int pidfd, pid_t *ret_pid);
/* Waits for the end (not for the reaping) of any process, at most timeout_ms: -ETIMEDOUT. */
int pidfd_wait_end(int pidfd, int timeout_ms);

#endif
