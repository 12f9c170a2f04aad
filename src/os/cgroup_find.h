/* Where cgroup hierarchies are mounted and where in them we are. */
#ifndef SPACE_OS_CGROUP_FIND_H
#define SPACE_OS_CGROUP_FIND_H

#include "base/fail.h"

/* Opens our own cgroup of the hierarchy that has `controller` (NULL: version 2); is_top: the top of
 * what is mounted of it. */
int cgroup_find_own(const char *controller, bool is_top, int *ret_fd, struct fail *f);

/* The text of /proc/self/mountinfo: mount point and mounted part of that hierarchy; the caller
 * frees both. -ENOENT. */
int cgroup_mount_parse(const char *text, const char *controller, char **ret_root, char **ret_point);
/* The text of /proc/self/cgroup: our path in that hierarchy, from its real root; the caller frees
 * it. -ENOENT; -EXDEV: it is outside what our namespace shows. */
int cgroup_path_parse(const char *text, const char *controller, char **ret);
/* The folder below `point`, where the part `root` is mounted, that has our path. NULL: none has. */
char *cgroup_folder(const char *root, const char *point, const char *path);

#endif
