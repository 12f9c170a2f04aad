/* The probe on this host, whatever it finds: it answers in time, says why not, and leaves neither
 * a child nor a descriptor nor a changed signal behind. And the counter's frequency. */
#include "engine/accel.h"
#include "engine/tsc.h"

#include "base/clock.h"
#include "base/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define SLACK_MS 2000 /* of a loaded machine, for fork and reaping */

static size_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

static void test_probe(void)
{
	struct accel_report r = {.why = "untouched"};
	struct sigaction before;
	struct sigaction after;
	size_t descriptors = open_descriptors();
	uint64_t start = clock_mono_ns();

	(void)sigaction(SIGCHLD, NULL, &before);
	accel_probe(&r);
	(void)sigaction(SIGCHLD, NULL, &after);
	EXPECT("in time", clock_mono_ns() - start < (ACCEL_PROBE_MS + SLACK_MS) * NS_PER_MS);
	EXPECT("a reason exactly without KVM", (r.accel == ACCEL_KVM) == (r.why[0] == '\0'));
	EXPECT("a fresh reason", strcmp(r.why, "untouched") != 0);
	EXPECT("no child is left", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	EXPECT_EQ("no descriptor is left", open_descriptors(), descriptors);
	EXPECT("signals are as before", before.sa_handler == after.sa_handler);
}

static void test_tsc(void)
{
	uint32_t khz = tsc_khz();

	EXPECT("a plausible frequency", khz > 100000 && khz < 20000000);
	EXPECT_EQ("the same on every call", tsc_khz(), khz);
}

int main(void)
{
	test_probe();
	test_tsc();
	return test_done();
}
