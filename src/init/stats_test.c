/* stats.c: reading of /proc/meminfo and /proc/stat. */
#include "init/stats.h"

#include "base/test.h"

static const char meminfo[] = "MemTotal:         482316 kB\n"
			      "MemFree:          401108 kB\n"
			      "MemAvailable:     430000 kB\n"
			      "Buffers:            1200 kB\n"
			      "SwapCached:            7 kB\n"
			      "Cached:            33000 kB\n"
			      "Last:                  5";

static const struct {
	const char *says;
	const char *name;
	uint64_t want;
} mem_cases[] = {
	{"the first line", "MemTotal", 482316u * 1024},
	{"a name that is another's end", "Cached", 33000u * 1024},
	{"a name that is another's front", "Mem", 0},
	{"the last line without a newline", "Last", 5u * 1024},
	{"not there", "Shmem", 0},
};

static void cpu(void)
{
	uint64_t total = 0;
	uint64_t idle = 0;

	CHECK(cpu_times("cpu  10 1 5 80 4 0 0 2 99 99\ncpu0 1 1 1 1\n", &total, &idle) == 0);
	EXPECT_EQ("eight fields count", total, 102);
	EXPECT_EQ("idle and iowait", idle, 84);
	CHECK(cpu_times("", &total, &idle) != 0);
	CHECK(cpu_times("cpu0 1 2 3 4", &total, &idle) != 0);
	CHECK(cpu_times("cpu  99999999999999999999 1 1 1", &total, &idle) == 0);
	EXPECT_EQ("what does not fit counts as nothing", total, 3);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(mem_cases); i++)
		EXPECT_EQ(mem_cases[i].says, meminfo_bytes(meminfo, mem_cases[i].name),
			  mem_cases[i].want);
	cpu();
	return test_done();
}
