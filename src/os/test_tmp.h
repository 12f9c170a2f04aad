/* A folder of a test's own, removed at its end. For tests only. */
#ifndef SPACE_OS_TEST_TMP_H
#define SPACE_OS_TEST_TMP_H

#include "base/test.h"
#include "os/dir.h"
#include "os/fd.h"

#include <fcntl.h>

struct test_tmp {
	char path[32];
	int fd;
};

static inline void test_tmp_make(struct test_tmp *t)
{
	(void)snprintf(t->path, sizeof t->path, "/tmp/space-test-XXXXXX");
	t->fd = -1;
	if (mkdtemp(t->path) != NULL)
		t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	EXPECT("a folder for the test", t->fd >= 0);
}

static inline void test_tmp_drop(struct test_tmp *t)
{
	AUTO(fd_drop) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	fd_drop(&t->fd);
	EXPECT_EQ("the test's folder goes", dir_remove(tmp, t->path + strlen("/tmp/"), NULL), 0);
}

#endif
