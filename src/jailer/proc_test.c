/* What /proc says, taken apart; and the maps of a user namespace. */
#include "base/test.h"
#include "node.h"
#include "proc.h"

#include <errno.h>

#define HEAD "Name:\tspace-keeper\nUmask:\t0077\nState:\tS (sleeping)\nTgid:\t9\n"

static void test_status(void)
{
	static const struct {
		const char *says;
		const char *in;
		int want;
		unsigned depth;
		pid_t inner;
	} cases[] = {
		{"a keeper", HEAD "PPid:\t7\nUid:\t5\t5\t5\t5\nNSpid:\t9\t1\n", 0, 2, 1},
		{"of the host", HEAD "PPid:\t7\nUid:\t5\t5\t5\t5\nNSpid:\t9\n", 0, 1, 9},
		{"no parent", HEAD "Uid:\t5\t5\t5\t5\nNSpid:\t9\t1\n", -EBADMSG, 0, 0},
		{"three uids", HEAD "PPid:\t7\nUid:\t5\t5\t5\nNSpid:\t9\t1\n", -EBADMSG, 0, 0},
		{"five uids", HEAD "PPid:\t7\nUid:\t5\t5\t5\t5\t5\nNSpid:\t9\n", -EBADMSG, 0, 0},
		{"no number", HEAD "PPid:\tx\nUid:\t5\t5\t5\t5\nNSpid:\t9\n", -EBADMSG, 0, 0},
		{"no namespaces", HEAD "PPid:\t7\nUid:\t5\t5\t5\t5\n", -EBADMSG, 0, 0},
		{"a name that looks like a field",
		 "Name:\tx\\nPPid: 1\nPPid:\t7\nUid:\t5\t5\t5\t5\nNSpid:\t9\n", 0, 1, 9},
		{"nothing", "", -EBADMSG, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct proc_status s = {0};

		EXPECT_EQ(cases[i].says, proc_status_parse(cases[i].in, &s), cases[i].want);
		EXPECT_EQ(cases[i].says, s.pid_depth, cases[i].depth);
		EXPECT_EQ(cases[i].says, s.pid_inner, cases[i].inner);
		EXPECT_EQ(cases[i].says, s.parent, cases[i].want == 0 ? 7 : 0);
		EXPECT(cases[i].says, cases[i].want != 0 || proc_uid_is(&s, 5));
	}
}

static void test_own(void)
{
	struct proc_status s;

	EXPECT_EQ("ourselves", proc_status_read(getpid(), &s), 0);
	EXPECT_EQ("parent", s.parent, getppid());
	EXPECT("uid", proc_uid_is(&s, getuid()) && !proc_uid_is(&s, getuid() + 1));
	EXPECT_EQ("nobody", proc_status_read(0, &s), -ESRCH);
}

static void test_maps(void)
{
	static const struct {
		const char *says;
		const char *map;
		uint32_t first;
		uint32_t count;
		bool want;
	} cases[] = {
		{"the host", "         0          0 4294967295\n", 0x53500000, 4096, true},
		{"a container", "0 100000 65536\n", 61440, 4096, true},
		{"one past it", "0 100000 65536\n", 61441, 4096, false},
		{"only root", "0 1000 1\n", 0, 1, true},
		{"only root, another", "0 1000 1\n", 1, 1, false},
		{"the second line", "0 1000 1\n1 100000 65536\n", 20000, 4096, true},
		{"not across lines", "0 0 100\n100 500 100\n", 50, 100, false},
		{"before the line", "100 0 100\n", 99, 2, false},
		{"broken", "0 0 x\n", 0, 1, false},
		{"nothing", "", 0, 1, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		EXPECT_EQ(cases[i].says, uid_map_has(cases[i].map, cases[i].first, cases[i].count),
			  cases[i].want);
}

int main(void)
{
	test_status();
	test_own();
	test_maps();
	return test_done();
}
