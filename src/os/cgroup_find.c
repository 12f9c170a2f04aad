/* Two texts of the kernel, read strictly: mountinfo (proc(5)) and /proc/self/cgroup (cgroups(7)).
 */
#include "os/cgroup_find.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>

#define PROC_TEXT_MAX (1024u * 1024)

/* A piece of a text. */
struct word {
	const char *p;
	size_t n;
};

/* The next word of a line, which ends at `end`; empty at its end. */
static struct word word_next(const char **at, const char *end)
{
	struct word w = {*at, 0};

	while (w.p < end && *w.p == ' ')
		w.p++;
	while (w.p + w.n < end && w.p[w.n] != ' ')
		w.n++;
	*at = w.p + w.n;
	return w;
}

static bool word_is(struct word w, const char *want)
{
	return strlen(want) == w.n && memcmp(w.p, want, w.n) == 0;
}

/* Whether `name` is one of the comma-separated parts of w. */
static bool word_has(struct word w, const char *name)
{
	while (w.n > 0) {
		const char *comma = memchr(w.p, ',', w.n);
		struct word part = {w.p, comma != NULL ? (size_t)(comma - w.p) : w.n};

		if (word_is(part, name))
			return true;
		w.p += part.n + (comma != NULL);
		w.n -= part.n + (comma != NULL);
	}
	return false;
}

/* One line: id parent dev root point options [optional...] - type source super. */
static bool mount_line(const char *at, const char *end, const char *controller, struct word *root,
		       struct word *point)
{
	struct word w;
	struct word type;

	for (int i = 0; i < 3; i++)
		(void)word_next(&at, end);
	*root = word_next(&at, end);
	*point = word_next(&at, end);
	do
		w = word_next(&at, end);
	while (w.n > 0 && !word_is(w, "-"));
	type = word_next(&at, end);
	(void)word_next(&at, end);
	w = word_next(&at, end);
	if (point->n == 0 || point->p[0] != '/' || root->p[0] != '/')
		return false;
	return controller == NULL ? word_is(type, "cgroup2")
				  : word_is(type, "cgroup") && word_has(w, controller);
}

int cgroup_mount_parse(const char *text, const char *controller, char **ret_root, char **ret_point)
{
	for (const char *line = text; *line != '\0';) {
		const char *end = line + strcspn(line, "\n");
		struct word root;
		struct word point;

		if (mount_line(line, end, controller, &root, &point)) {
			*ret_root = xstrndup(root.p, root.n);
			*ret_point = xstrndup(point.p, point.n);
			return 0;
		}
		line = *end == '\0' ? end : end + 1;
	}
	return -ENOENT;
}

/* Lines: id:controllers:path, without controllers in version 2. */
int cgroup_path_parse(const char *text, const char *controller, char **ret)
{
	for (const char *line = text; *line != '\0';) {
		const char *end = line + strcspn(line, "\n");
		const char *list = memchr(line, ':', (size_t)(end - line));
		const char *path =
			list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));

		if (path != NULL) {
			struct word names = {list + 1, (size_t)(path - list - 1)};

			if (controller == NULL ? names.n == 0 : word_has(names, controller)) {
				AUTO(str_drop)
				char *found = xstrndup(path + 1, (size_t)(end - path - 1));

				if (found[0] != '/' || strstr(found, "/..") != NULL)
					return -EXDEV;
				*ret = found;
				found = NULL;
				return 0;
			}
		}
		line = *end == '\0' ? end : end + 1;
	}
	return -ENOENT;
}

char *cgroup_folder(const char *root, const char *point, const char *path)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return xasprintf("%s%s", point, path + n);
}

static int read_proc(const char *path, char **ret, struct fail *f)
{
	AUTO(fd_drop) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n;
	int err = fd < 0 ? -errno : fd_slurp(fd, PROC_TEXT_MAX, ret, &n);

	return err < 0 ? fail_errno(f, err, "cannot read %s", path) : 0;
}

int cgroup_find_own(const char *controller, bool is_top, int *ret_fd, struct fail *f)
{
	const char *name = controller != NULL ? controller : "version 2";
	AUTO(str_drop) char *mounts = NULL;
	AUTO(str_drop) char *groups = NULL;
	AUTO(str_drop) char *root = NULL;
	AUTO(str_drop) char *point = NULL;
	AUTO(str_drop) char *path = NULL;
	AUTO(str_drop) char *folder = NULL;
	int err = read_proc("/proc/self/mountinfo", &mounts, f);

	if (err == 0)
		err = read_proc("/proc/self/cgroup", &groups, f);
	if (err < 0)
		return err;
	err = cgroup_mount_parse(mounts, controller, &root, &point);
	if (err < 0)
		return fail_set(f, err, "no cgroup hierarchy with %s is mounted", name);
	err = cgroup_path_parse(groups, controller, &path);
	if (err == 0) {
		folder = is_top ? xstrdup(point) : cgroup_folder(root, point, path);
		err = folder == NULL ? -EXDEV : 0;
	}
	if (err < 0)
		return fail_set(f, err, "our cgroup with %s is not visible here", name);
	*ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? fail_errno(f, -errno, "cannot open cgroup '%s'", folder) : 0;
}
