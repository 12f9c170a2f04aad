/* env.c: order of merging, the limits, and what is no name. */
#include "init/env.h"

#include "base/alloc.h"
#include "base/test.h"
#include "init/limits.h"

#include <errno.h>

static void merging(void)
{
	struct env base = {0};
	struct env sandbox = {0};
	struct env request = {0};

	CHECK(env_set(&base, "PATH", "/bin") == 0);
	CHECK(env_set(&base, "HOME", "/root") == 0);
	CHECK(env_set(&sandbox, "HOME", "/srv") == 0);
	CHECK(env_set(&sandbox, "E2B_SANDBOX", "true") == 0);
	CHECK(env_set(&request, "E2B_SANDBOX", "") == 0);
	CHECK(env_merge(&base, &sandbox) == 0);
	CHECK(env_merge(&base, &request) == 0);
	EXPECT_EQ("each name once", base.n, 3);
	EXPECT_STR("first stays first", base.v[0], "PATH=/bin");
	EXPECT_STR("replaced in place", base.v[1], "HOME=/srv");
	EXPECT_STR("the later one wins, also when empty", env_get(&base, "E2B_SANDBOX"), "");
	EXPECT("ends with NULL", base.v[3] == NULL);
	EXPECT("a prefix is no name", env_get(&base, "HOM") == NULL);
	EXPECT_EQ("bytes", base.bytes, 10 + 10 + 13);
	env_done(&base);
	env_done(&sandbox);
	env_done(&request);
}

static void names(void)
{
	struct env e = {0};

	EXPECT_EQ("empty name", env_set(&e, "", "x"), -EINVAL);
	EXPECT_EQ("'=' in a name", env_set(&e, "a=b", "x"), -EINVAL);
	EXPECT_EQ("'=' in a value", env_set(&e, "a", "b=c"), 0);
	EXPECT_STR("kept", env_get(&e, "a"), "b=c");
	env_done(&e);
}

static void limits(void)
{
	struct env e = {0};
	AUTO(str_drop) char *big = xcalloc(EXEC_MAX, 1);

	for (unsigned i = 0; i < ENVS_MAX; i++) {
		AUTO(str_drop) char *name = xasprintf("n%u", i);

		if (env_set(&e, name, "") != 0)
			EXPECT("up to the limit", false);
	}
	EXPECT_EQ("one past ENVS_MAX", env_set(&e, "more", ""), -E2BIG);
	EXPECT_EQ("replacing still works", env_set(&e, "n7", "x"), 0);
	env_done(&e);

	memset(big, 'v', EXEC_MAX - 3);
	EXPECT_EQ("EXEC_MAX bytes", env_set(&e, "n", big), 0);
	EXPECT_EQ("one more", env_set(&e, "m", ""), -E2BIG);
	big[EXEC_MAX - 3] = 'v';
	EXPECT_EQ("one byte longer", env_set(&e, "n", big), -E2BIG);
	env_done(&e);
}

int main(void)
{
	merging();
	names();
	limits();
	return test_done();
}
