/* How a child's end is told. That children start, and with which descriptors, keeper_test sees. */
#include "keeper/children.h"

#include "base/test.h"

#define EXITED(code)   ((code) << 8) /* as wait(2) gives it */
#define SIGNALED(sig)  (sig)
#define CORE_DUMP_FLAG 0x80

static const struct {
	int status;
	const char *want;
} cases[] = {
	{EXITED(0), "exit status 0"},
	{EXITED(1), "exit status 1"},
	{EXITED(128), "exit status 128"},
	{EXITED(129), "killed by signal 1"}, /* bwrap's way to say it */
	{EXITED(137), "killed by signal 9"},
	{EXITED(192), "killed by signal 64"},
	{EXITED(193), "exit status 193"}, /* there is no signal 65 */
	{EXITED(255), "exit status 255"},
	{SIGNALED(9), "killed by signal 9"},
	{SIGNALED(31) | CORE_DUMP_FLAG, "killed by signal 31"},
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[CHILD_STATUS_SIZE];

		child_status_print(text, sizeof text, cases[i].status);
		EXPECT_STR(cases[i].want, text, cases[i].want);
	}
	return test_done();
}
