/* Exit statuses: what the platform says of a command, and what we end with. */
#include "cli/exitcode.h"

#include "base/test.h"

static const struct {
	const char *says;
	long long code;
	const char *status;
	int want;
} ends[] = {
	{"success", 0, "exit status 0", 0},
	{"its own status", 3, "exit status 3", 3},
	{"the largest", 255, "exit status 255", 255},
	{"no status of ours", 256, "exit status 256", 125},
	{"killed", -1, "signal: killed", 137},
	{"terminated", -1, "signal: terminated", 143},
	{"core", -1, "signal: segmentation fault (core dumped)", 139},
	{"a number", -1, "signal: signal 34", 162},
	{"number too large", -1, "signal: signal 65", 125},
	{"half a name", -1, "signal: kill", 125},
	{"longer name", -1, "signal: killedx", 125},
	{"nothing known", -1, "", 125},
	{"far below", -9223372036854775807LL, "", 125},
};

static const struct {
	const char *says;
	const char *code;
	const char *message;
	int want;
} errors[] = {
	{"time is up", "deadline_exceeded", "", 124},
	{"no such command", "invalid_argument", "exec: \"x\": executable file not found in $PATH",
	 127},
	{"no such file", "invalid_argument", "fork/exec /x: no such file or directory", 127},
	{"not executable", "invalid_argument", "fork/exec /x: permission denied", 126},
	{"not for this machine", "internal", "fork/exec /x: exec format error", 126},
	{"unknown user", "unauthenticated", "invalid username: 'x'", 126},
	{"no such folder", "invalid_argument", "cwd '/x' does not exist", 126},
	{"unknown", "internal", "", 125},
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		EXPECT_EQ(ends[i].says, exitcode_of_end(ends[i].code, ends[i].status),
			  ends[i].want);
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		EXPECT_EQ(errors[i].says, exitcode_of_error(errors[i].code, errors[i].message),
			  errors[i].want);
	return test_done();
}
