/* Where cgroups are, from the texts of several kinds of machine. */
#include "os/cgroup_find.h"

#include "base/alloc.h"
#include "base/test.h"

#include <errno.h>

#define V2 "25 1 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                                                         \
	"30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"              \
	"31 24 0:27 /docker/7 /sys/fs/cgroup/memory rw master:9 - cgroup cgroup rw,memory\n"

static void test_mounts(void)
{
	static const struct {
		const char *says;
		const char *text;
		const char *controller;
		int want;
		const char *root;
		const char *point;
	} cases[] = {
		{"version 2", V2, NULL, 0, "/", "/sys/fs/cgroup"},
		{"behind others", V1 V2, NULL, 0, "/", "/sys/fs/cgroup"},
		{"one of two controllers", V1, "cpu", 0, "/", "/sys/fs/cgroup/cpu,cpuacct"},
		{"a part", V1, "memory", 0, "/docker/7", "/sys/fs/cgroup/memory"},
		{"a controller that is not there", V1, "pids", -ENOENT, NULL, NULL},
		{"half a name", V1, "mem", -ENOENT, NULL, NULL},
		{"only version 1", V1, NULL, -ENOENT, NULL, NULL},
		{"version 2 has no such option", V2, "nsdelegate", -ENOENT, NULL, NULL},
		{"cut", "25 1 0:23 / /sys/fs", NULL, -ENOENT, NULL, NULL},
		{"nothing", "", NULL, -ENOENT, NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop) char *root = NULL;
		AUTO(str_drop) char *point = NULL;

		EXPECT_EQ(cases[i].says,
			  cgroup_mount_parse(cases[i].text, cases[i].controller, &root, &point),
			  cases[i].want);
		EXPECT_STR(cases[i].says, root, cases[i].root);
		EXPECT_STR(cases[i].says, point, cases[i].point);
	}
}

static void test_paths(void)
{
	static const struct {
		const char *says;
		const char *text;
		const char *controller;
		int want;
		const char *path;
	} cases[] = {
		{"version 2", "0::/user.slice\n", NULL, 0, "/user.slice"},
		{"both", "4:memory:/a\n0::/b\n", "memory", 0, "/a"},
		{"one of two", "4:cpu,cpuacct:/c\n", "cpuacct", 0, "/c"},
		{"no end of line", "0::/", NULL, 0, "/"},
		{"a colon in it", "0::/a:b\n", NULL, 0, "/a:b"},
		{"outside the namespace", "0::/../x\n", NULL, -EXDEV, NULL},
		{"not a path", "0::x\n", NULL, -EXDEV, NULL},
		{"no such", "4:memory:/a\n", "pids", -ENOENT, NULL},
		{"cut", "4:memory", "memory", -ENOENT, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop) char *path = NULL;

		EXPECT_EQ(cases[i].says,
			  cgroup_path_parse(cases[i].text, cases[i].controller, &path),
			  cases[i].want);
		EXPECT_STR(cases[i].says, path, cases[i].path);
	}
}

static void test_folders(void)
{
	static const struct {
		const char *says;
		const char *root;
		const char *path;
		const char *want;
	} cases[] = {
		{"the top", "/", "/", "/m/"},
		{"below it", "/", "/a/b", "/m/a/b"},
		{"of a part", "/docker/7", "/docker/7/x", "/m/x"},
		{"the part itself", "/docker/7", "/docker/7", "/m"},
		{"beside the part", "/docker/7", "/docker/77", NULL},
		{"elsewhere", "/docker/7", "/", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(str_drop) char *got = cgroup_folder(cases[i].root, "/m", cases[i].path);

		EXPECT_STR(cases[i].says, got, cases[i].want);
	}
}

int main(void)
{
	test_mounts();
	test_paths();
	test_folders();
	return test_done();
}
