/* mountinfo and /proc/self/cgroup. Properties: absolute paths or an error; no path leads upwards.
 */
#include "base/alloc.h"
#include "base/fuzz.h"
#include "os/cgroup_find.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const controllers[] = {NULL, "memory", "cpu"};
	AUTO(str_drop) char *text = xstrndup((const char *)data, n);

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		AUTO(str_drop) char *root = NULL;
		AUTO(str_drop) char *point = NULL;
		AUTO(str_drop) char *path = NULL;
		int err = cgroup_mount_parse(text, controllers[i], &root, &point);

		assert(err == -ENOENT || (err == 0 && root[0] == '/' && point[0] == '/'));
		err = cgroup_path_parse(text, controllers[i], &path);
		assert(err == -ENOENT || err == -EXDEV || (path[0] == '/' && !strstr(path, "/..")));
	}
	return 0;
}
