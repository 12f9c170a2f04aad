/* exit_status.c: Go's words for wait statuses. */
#include "init/exit_status.h"

#include "base/test.h"

#define EXITED(n)   ((n) << 8)
#define SIGNALED(n) (n)
#define CORE        0x80

static const struct {
	const char *says;
	int in;
	int code;
	bool exited;
	const char *want;
} cases[] = {
	{"success", EXITED(0), 0, true, "exit status 0"},
	{"failure", EXITED(3), 3, true, "exit status 3"},
	{"the largest", EXITED(255), 255, true, "exit status 255"},
	{"SIGKILL", SIGNALED(9), -1, false, "signal: killed"},
	{"SIGTERM, the last with a name", SIGNALED(15), -1, false, "signal: terminated"},
	{"one past the names", SIGNALED(16), -1, false, "signal: signal 16"},
	{"a real-time signal", SIGNALED(64), -1, false, "signal: signal 64"},
	{"with a core", SIGNALED(11) | CORE, -1, false, "signal: segmentation fault (core dumped)"},
	{"no name, a core", SIGNALED(31) | CORE, -1, false, "signal: signal 31 (core dumped)"},
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct exit_status s = exit_status_of(cases[i].in);

		EXPECT_STR(cases[i].says, s.text, cases[i].want);
		EXPECT_EQ(cases[i].says, s.code, cases[i].code);
		EXPECT_EQ(cases[i].says, s.exited, cases[i].exited);
	}
	return test_done();
}
