/* Percentiles by nearest rank. */
#include "cli/stats.h"

#include "base/test.h"

#define SAMPLE_MAX 200

static const struct {
	const char *says;
	size_t n; /* the sample is n, n-1, ..., 1 */
	uint64_t p50, p95, p99, max;
} cases[] = {
	{"nothing", 0, 0, 0, 0, 0},
	{"one", 1, 1, 1, 1, 1},
	{"two", 2, 1, 2, 2, 2},
	{"three", 3, 2, 3, 3, 3},
	{"twenty", 20, 10, 19, 20, 20},
	{"a hundred", 100, 50, 95, 99, 100},
	{"more", 200, 100, 190, 198, 200},
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t sample[SAMPLE_MAX];
		struct stats s;

		for (size_t k = 0; k < cases[i].n; k++)
			sample[k] = cases[i].n - k;
		stats_of(sample, cases[i].n, &s);
		EXPECT_EQ(cases[i].says, s.p50_ns, cases[i].p50);
		EXPECT_EQ(cases[i].says, s.p95_ns, cases[i].p95);
		EXPECT_EQ(cases[i].says, s.p99_ns, cases[i].p99);
		EXPECT_EQ(cases[i].says, s.max_ns, cases[i].max);
		EXPECT_EQ(cases[i].says, s.min_ns, cases[i].n ? 1 : 0);
	}
	return test_done();
}
