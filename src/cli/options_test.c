/* Options: a table of command lines. */
#include "cli/options.h"

#include "base/test.h"

#include <errno.h>

#define ARGS_MAX  8
#define LINE_SIZE 64

static const struct option_def own[] = {
	{'e', "env", "K=V", "a variable"},
	{'k', "keep", NULL, "keep it"},
	{0, "timeout", "SECONDS", "how long"},
};
static const struct option_def common[] = {{'h', "help", NULL, "help"}, {0, "data", "DIR", "data"}};

static const struct {
	const char *says;
	const char *line; /* arguments, a blank between them */
	int want;         /* operands begin here, or a negative errno */
	const char *env;  /* last value */
	const char *why;  /* part of the sentence */
	size_t n;
} cases[] = {
	{"nothing", "", 0, NULL, NULL, 0},
	{"ends at the first operand", "-k ls -l", 1, NULL, NULL, 1},
	{"two dashes end", "-- -k", 1, NULL, NULL, 0},
	{"one dash is an operand", "-", 0, NULL, NULL, 0},
	{"value apart", "-e A=1 x", 2, "A=1", NULL, 1},
	{"value joined", "-eA=1", 1, "A=1", NULL, 1},
	{"flags joined, then a value", "-keA=1", 1, "A=1", NULL, 2},
	{"long, apart", "--env A=1", 2, "A=1", NULL, 1},
	{"long, joined", "--env=A=1", 1, "A=1", NULL, 1},
	{"long, empty", "--env=", 1, "", NULL, 1},
	{"the last counts", "-eA -eB", 2, "B", NULL, 2},
	{"a value may look like an option", "-e -k", 2, "-k", NULL, 1},
	{"common ones too", "--data d -h", 3, NULL, NULL, 2},
	{"unknown letter", "-z", -EINVAL, NULL, "unknown option '-z'", 0},
	{"unknown name", "--zz=3", -EINVAL, NULL, "unknown option '--zz'", 0},
	{"no prefix of a name", "--keepx", -EINVAL, NULL, "'--keepx'", 0},
	{"value missing", "--env", -EINVAL, NULL, "needs a value: K=V", 0},
	{"value missing, letter", "-e", -EINVAL, NULL, "needs a value: K=V", 0},
	{"value too much", "--keep=1", -EINVAL, NULL, "takes no value", 0},
};

static int split(char *line, char *argv[ARGS_MAX])
{
	int n = 0;

	for (char *p = line; *p;) {
		size_t len = strcspn(p, " ");

		argv[n++] = p;
		p += len;
		if (*p)
			*p++ = 0;
	}
	return n;
}

static void test_parse(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct options o = {0};
		struct fail f = {0};
		char line[LINE_SIZE];
		char *argv[ARGS_MAX];
		int argc;
		int r;

		(void)snprintf(line, sizeof line, "%s", cases[i].line);
		argc = split(line, argv);
		r = options_parse(&o, argc, argv, own, ARRAY_LEN(own), common, ARRAY_LEN(common),
				  &f);
		EXPECT_EQ(cases[i].says, r < 0 ? r : o.first_operand, cases[i].want);
		if (cases[i].why)
			EXPECT(cases[i].says, strstr(f.text, cases[i].why) != NULL);
		if (r < 0)
			continue;
		EXPECT_EQ(cases[i].says, o.n, cases[i].n);
		EXPECT_STR(cases[i].says, option_value(&o, "env"), cases[i].env);
	}
}

static void test_limit(void)
{
	static char flag[] = "-k";
	static char *argv[OPTIONS_MAX + 1];
	static struct options o;
	static struct options over;
	struct fail f = {0};

	for (int i = 0; i <= OPTIONS_MAX; i++)
		argv[i] = flag;
	EXPECT_EQ("at the limit", options_parse(&o, OPTIONS_MAX, argv, own, 3, NULL, 0, &f), 0);
	EXPECT_EQ("past it", options_parse(&over, OPTIONS_MAX + 1, argv, own, 3, NULL, 0, &f),
		  -EINVAL);
}

static void test_u64(void)
{
	static const struct {
		const char *says;
		const char *value;
		int want;
		uint64_t number;
	} numbers[] = {
		{"not given", NULL, 0, 7},       {"least", "1", 0, 1},
		{"most", "10", 0, 10},           {"below", "0", -EINVAL, 0},
		{"above", "11", -EINVAL, 0},     {"sign", "+1", -EINVAL, 0},
		{"word", "ten", -EINVAL, 0},     {"empty", "", -EINVAL, 0},
		{"fraction", "1.5", -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct options o = {.n = numbers[i].value ? 1 : 0,
				    .given = {{"timeout", numbers[i].value}}};
		struct fail f = {0};
		uint64_t v = 0;
		int r = option_u64(&o, "timeout", 1, 10, 7, &v, &f);

		EXPECT_EQ(numbers[i].says, r, numbers[i].want);
		EXPECT_EQ(numbers[i].says, v, numbers[i].number);
	}
}

int main(void)
{
	test_parse();
	test_limit();
	test_u64();
	return test_done();
}
