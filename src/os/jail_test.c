/* The jails' command lines, as text, and bwrap's info. That they hold is tests/redteam's business.
 */
#include "os/jail.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/test.h"

#include <errno.h>

static struct jail_paths paths(void)
{
	struct jail_paths p = {
		.libexec = xstrdup("/L"), .bwrap = xstrdup("/B"), .qemu = xstrdup("/Q")};

	p.tree[0] = (struct jail_tree){.path = xstrdup("/usr/lib")};
	p.tree[1] = (struct jail_tree){.path = xstrdup("/lib"), .link = xstrdup("usr/lib")};
	p.tree[2] = (struct jail_tree){.path = xstrdup("/fw"), .qemu_only = true};
	p.n_trees = 3;
	return p;
}

static void expect_line(const char *says, struct jail_argv *a, const char *want)
{
	struct buf b;

	buf_init(&b, 65536);
	for (size_t i = 0; i < a->n; i++)
		EXPECT_EQ(says, buf_printf(&b, "%s%s", i > 0 ? " " : "", a->argv[i]), 0);
	EXPECT_EQ(says, buf_append(&b, "", 1), 0);
	EXPECT_STR(says, (const char *)buf_data(&b), want);
	EXPECT(says, a->argv[a->n] == NULL);
	buf_done(&b);
	jail_argv_done(a);
	EXPECT(says, a->argv == NULL && a->n == 0);
}

static void test_lines(void)
{
	static const char *const tail[] = {"-x", "y z", NULL};
	AUTO(jail_paths_done) struct jail_paths p = paths();
	struct jail_argv a;

	jail_argv_keeper(&p, false, 7, NULL, &a);
	expect_line(
		"keeper", &a,
		"/B --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts "
		"--as-pid-1 "
		"--new-session --cap-drop ALL --hostname keeper --clearenv --info-fd 7 --ro-bind "
		"/B "
		"/usr/bin/bwrap --ro-bind /Q /usr/bin/qemu-system-x86_64 --ro-bind /usr/lib "
		"/usr/lib "
		"--symlink usr/lib /lib --ro-bind /fw /fw --ro-bind /L/space-keeper "
		"/usr/bin/space-keeper --ro-bind /L/space-daemon /usr/bin/space-daemon --dir /tmp "
		"--proc /proc --dev /dev --remount-ro /dev --remount-ro / --chdir / -- "
		"/usr/bin/space-keeper");
	jail_argv_qemu(&p, true, -1, tail, &a);
	expect_line(
		"QEMU with KVM", &a,
		"/B --unshare-all --unshare-user --disable-userns --as-pid-1 --new-session "
		"--die-with-parent --cap-drop ALL --clearenv --hostname sandbox --ro-bind /Q "
		"/usr/bin/qemu-system-x86_64 --ro-bind /usr/lib /usr/lib --symlink usr/lib /lib "
		"--ro-bind /fw /fw --proc /proc --dev-bind /dev/kvm /dev/kvm --remount-ro / "
		"--chdir / "
		"-- /usr/bin/qemu-system-x86_64 -x y z");
	jail_argv_daemon(&p, 9, tail, &a);
	expect_line("space-daemon", &a,
		    "/B --unshare-all --unshare-user --disable-userns --as-pid-1 --new-session "
		    "--die-with-parent --cap-drop ALL --clearenv --hostname daemon --info-fd 9 "
		    "--ro-bind "
		    "/L/space-daemon /usr/bin/space-daemon --ro-bind /usr/lib /usr/lib --symlink "
		    "usr/lib "
		    "/lib --remount-ro / --chdir / -- /usr/bin/space-daemon -x y z");
}

static void test_info(void)
{
	static const struct {
		const char *says;
		const char *in;
		int want;
		pid_t pid;
	} cases[] = {
		{"what bwrap 0.8 writes", "{\n    \"child-pid\": 17\n}\n", 0, 17},
		{"with namespaces", "{\n    \"child-pid\": 3,\n    \"mnt-namespace\": 402\n}\n", 0,
		 3},
		{"the largest", "{\"child-pid\": 4194304}", 0, 4194304},
		{"one more", "{\"child-pid\": 4194305}", -EBADMSG, 0},
		{"process 1", "{\"child-pid\": 1}", -EBADMSG, 0},
		{"negative", "{\"child-pid\": -1}", -EBADMSG, 0},
		{"no number", "{\"child-pid\": }", -EBADMSG, 0},
		{"cut", "{\"child-p", -EBADMSG, 0},
		{"nothing", "", -EBADMSG, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pid_t pid = 0;

		EXPECT_EQ(cases[i].says, jail_info_parse(cases[i].in, strlen(cases[i].in), &pid),
			  cases[i].want);
		EXPECT_EQ(cases[i].says, pid, cases[i].pid);
	}
}

static void test_probe(void)
{
	struct jail_paths p;
	struct fail f = {0};

	EXPECT_EQ("no programs of ours", jail_paths_probe("/none", "/bin/sh", &p, &f), -ENOENT);
	EXPECT("it says which",
	       strstr(f.text, "/none/space-keeper") != NULL || strstr(f.text, "bwrap") != NULL);
}

int main(void)
{
	test_lines();
	test_info();
	test_probe();
	return test_done();
}
