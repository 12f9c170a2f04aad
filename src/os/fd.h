/* File descriptors: ownership, whole reads and writes, flags. */
#ifndef SPACE_OS_FD_H
#define SPACE_OS_FD_H

#include "base/defs.h"
#include "base/fail.h"

void fd_drop(int *fd); /* closes if >= 0 and sets -1; for AUTO() */
int fd_take(int *fd);  /* moves it out */
int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);
int fd_reopen(int fd, int flags); /* another open file of the same inode, by /proc/self/fd */
int fd_write_all(int fd, const void *p, size_t n);
int fd_read_full(int fd, void *p, size_t n); /* exactly n: -ENODATA when the end comes first */
/* The whole of a file from its start, at most max bytes (-EFBIG). *ret is NUL-terminated, caller
 * frees. */
int fd_slurp(int fd, size_t max, char **ret, size_t *ret_n);
/* Copies n bytes from offset 0 to offset 0. is_sparse: zero blocks of 4 KiB become holes, so `to`
 * must read as zero already (new, or truncated); it is made n bytes long. -ENODATA: `from` is
 * shorter. */
int fd_copy(int to, int from, uint64_t n, bool is_sparse);

#endif
