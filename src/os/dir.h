/* Files below a directory descriptor. Names are resolved beneath it without following symbolic
 * links (openat2 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, Linux 5.6). */
#ifndef SPACE_OS_DIR_H
#define SPACE_OS_DIR_H

#include "base/fail.h"

#include <sys/types.h>

int dir_open(int dirfd, const char *path, int *ret_fd, struct fail *f);
int dir_make(int dirfd, const char *path, mode_t mode,
	     struct fail *f); /* parents too; existing is fine */
int file_open(int dirfd, const char *path, int flags, mode_t mode, int *ret_fd, struct fail *f);
int file_slurp(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n, struct fail *f);
/* Write to a temporary name, fsync, rename over, fsync the directory: the old or the new content,
 * never half of it (ext4, xfs, btrfs). */
int file_replace(int dirfd, const char *path, mode_t mode, const void *p, size_t n, struct fail *f);
int dir_remove(int dirfd, const char *path, struct fail *f); /* a whole tree; missing is fine */
bool dir_exists(int dirfd, const char *path);
/* Names of the entries (no dot files), sorted; caller frees each and the array. */
int dir_list(int dirfd, const char *path, char ***ret_names, size_t *ret_n, struct fail *f);

#endif
