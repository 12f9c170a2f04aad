/* The jails' command lines. The order of the arguments is bwrap's order of work: binds first, then
 * /proc and /dev, then the root is made read-only. Trusts its caller; parses nothing. */
#include "os/jail.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/pidfd.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define TREE_PATH_MAX 256 /* of a tree or its link's target */

struct tree_rule {
	const char *path;
	bool qemu_only; /* firmware: space-daemon has no use for it */
};

/* What may exist on a host. Directories are bound at their own path, links (a merged /usr) are made
 * anew. The multiarch folder stands before the whole /usr/lib, which is taken only without it. */
static const struct tree_rule tree_rules[] = {
	{"/usr/lib/x86_64-linux-gnu", false},
	{"/lib/x86_64-linux-gnu", false},
	{"/usr/lib64", false},
	{"/lib", false},
	{"/lib64", false},
	{"/usr/share/qemu", true},
	{"/usr/share/seabios", true},
	{"/usr/lib/ipxe/qemu", true},
};
static_assert(ARRAY_LEN(tree_rules) <= JAIL_TREES_MAX, "room for every tree");

static int need_program(const char *path, const char *package, struct fail *f)
{
	if (access(path, X_OK) < 0)
		return fail_errno(f, -errno, "cannot use '%s' (package %s)", path, package);
	return 0;
}

/* A path below a link that the jail makes itself would be bound twice: /lib/x86_64-linux-gnu is the
 * same place as /usr/lib/x86_64-linux-gnu where /lib is a link. */
static bool is_below_link(const char *path)
{
	char top[TREE_PATH_MAX];
	const char *slash = strchr(path + 1, '/');
	struct stat st;

	if (slash == NULL)
		return false;
	(void)snprintf(top, sizeof top, "%.*s", (int)(slash - path), path);
	return lstat(top, &st) == 0 && S_ISLNK(st.st_mode);
}

/* A real /lib (not merged) is far more than libraries: its multiarch folder is bound instead. */
static bool tree_wanted(const struct tree_rule *r, const struct stat *st)
{
	struct stat multi;

	if (is_below_link(r->path))
		return false;
	if (S_ISLNK(st->st_mode))
		return true;
	if (!S_ISDIR(st->st_mode))
		return false;
	return strcmp(r->path, "/lib") != 0 || stat("/lib/x86_64-linux-gnu", &multi) < 0;
}

static void probe_tree(const struct tree_rule *r, struct jail_paths *p)
{
	struct jail_tree *t = &p->tree[p->n_trees];
	char target[TREE_PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(r->path, &st) < 0 || !tree_wanted(r, &st))
		return;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(r->path, target, sizeof target);
		if (n <= 0 || (size_t)n == sizeof target)
			return;
		t->link = xstrndup(target, (size_t)n);
	}
	t->path = xstrdup(r->path);
	t->qemu_only = r->qemu_only;
	p->n_trees++;
}

int jail_paths_probe(const char *libexec, const char *qemu, struct jail_paths *ret, struct fail *f)
{
	static const char *const ours[] = {"space-keeper", "space-daemon"};
	int err = need_program(JAIL_BWRAP, "bubblewrap", f);

	if (qemu == NULL)
		qemu = JAIL_QEMU;
	if (err == 0)
		err = need_program(qemu, "qemu-system-x86", f);
	for (size_t i = 0; err == 0 && i < ARRAY_LEN(ours); i++) {
		AUTO(str_drop) char *path = xasprintf("%s/%s", libexec, ours[i]);

		err = need_program(path, "space", f);
	}
	if (err < 0)
		return err;
	*ret = (struct jail_paths){
		.libexec = xstrdup(libexec), .bwrap = xstrdup(JAIL_BWRAP), .qemu = xstrdup(qemu)};
	for (size_t i = 0; i < ARRAY_LEN(tree_rules); i++)
		probe_tree(&tree_rules[i], ret);
	return 0;
}

void jail_paths_done(struct jail_paths *p)
{
	for (size_t i = 0; i < p->n_trees; i++) {
		str_drop(&p->tree[i].path);
		str_drop(&p->tree[i].link);
	}
	str_drop(&p->libexec);
	str_drop(&p->bwrap);
	str_drop(&p->qemu);
	p->n_trees = 0;
}

void jail_argv_done(struct jail_argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->argv[i]);
	free(a->argv);
	*a = (struct jail_argv){0};
}

static void add(struct jail_argv *a, const char *arg)
{
	a->argv = xrealloc(a->argv, a->n + 2, sizeof *a->argv);
	a->argv[a->n++] = xstrdup(arg);
	a->argv[a->n] = NULL;
}

static void add_all(struct jail_argv *a, const char *const *args)
{
	for (size_t i = 0; args != NULL && args[i] != NULL; i++)
		add(a, args[i]);
}

static void add_bind(struct jail_argv *a, const char *from, const char *to)
{
	add(a, "--ro-bind");
	add(a, from);
	add(a, to);
}

static void add_trees(struct jail_argv *a, const struct jail_paths *p, bool with_qemu)
{
	for (size_t i = 0; i < p->n_trees; i++) {
		const struct jail_tree *t = &p->tree[i];

		if (t->qemu_only && !with_qemu)
			continue;
		if (t->link != NULL) {
			add(a, "--symlink");
			add(a, t->link);
			add(a, t->path);
		} else {
			add_bind(a, t->path, t->path);
		}
	}
}

static void add_kvm(struct jail_argv *a, bool kvm)
{
	static const char *const bind[] = {"--dev-bind", "/dev/kvm", "/dev/kvm", NULL};

	if (kvm)
		add_all(a, bind);
}

static void add_end(struct jail_argv *a, const char *program, const char *const *tail)
{
	static const char *const end[] = {"--remount-ro", "/", "--chdir", "/", "--", NULL};

	add_all(a, end);
	add(a, program);
	add_all(a, tail);
}

static void add_info_fd(struct jail_argv *a, int info_fd)
{
	AUTO(str_drop) char *fd = xasprintf("%d", info_fd);

	if (info_fd < 0)
		return;
	add(a, "--info-fd");
	add(a, fd);
}

void jail_argv_keeper(const struct jail_paths *p, bool kvm, int info_fd, const char *const *tail,
		      struct jail_argv *ret)
{
	/* No --die-with-parent: the sandbox outlives who started it. No --disable-userns: the inner
	 * jails need user namespaces of their own. */
	static const char *const head[] = {
		"--unshare-user",
		"--unshare-pid",
		"--unshare-net",
		"--unshare-ipc",
		"--unshare-uts",
		"--as-pid-1",
		"--new-session",
		"--cap-drop",
		"ALL",
		"--hostname",
		"keeper",
		"--clearenv",
		NULL,
	};
	/* bwrap builds the inner roots on /tmp; an empty, read-only folder does. */
	static const char *const inner[] = {"--dir", "/tmp", "--proc", "/proc",
					    "--dev", "/dev", NULL};
	/* A file system of its own, on which anybody inside could store files. */
	static const char *const dev[] = {"--remount-ro", "/dev", NULL};
	AUTO(str_drop) char *keeper = xasprintf("%s/space-keeper", p->libexec);
	AUTO(str_drop) char *daemon = xasprintf("%s/space-daemon", p->libexec);

	*ret = (struct jail_argv){0};
	add(ret, p->bwrap);
	add_all(ret, head);
	add_info_fd(ret, info_fd);
	add_bind(ret, p->bwrap, JAIL_BWRAP);
	add_bind(ret, p->qemu, JAIL_QEMU);
	add_trees(ret, p, true);
	add_bind(ret, keeper, JAIL_KEEPER);
	add_bind(ret, daemon, JAIL_DAEMON);
	add_all(ret, inner);
	add_kvm(ret, kvm);
	add_all(ret, dev);
	add_end(ret, JAIL_KEEPER, tail);
}

/* What both inner jails share: nothing of the outside but the descriptors. */
static void add_inner(struct jail_argv *a, const struct jail_paths *p, const char *hostname,
		      int info_fd)
{
	static const char *const head[] = {
		"--unshare-all",
		"--unshare-user",
		"--disable-userns",
		"--as-pid-1",
		"--new-session",
		"--die-with-parent",
		"--cap-drop",
		"ALL",
		"--clearenv",
		"--hostname",
		NULL,
	};

	add(a, p->bwrap);
	add_all(a, head);
	add(a, hostname);
	add_info_fd(a, info_fd);
}

void jail_argv_qemu(const struct jail_paths *p, bool kvm, int info_fd, const char *const *tail,
		    struct jail_argv *ret)
{
	static const char *const proc[] = {"--proc", "/proc", NULL};

	*ret = (struct jail_argv){0};
	add_inner(ret, p, "sandbox", info_fd);
	add_bind(ret, p->qemu, JAIL_QEMU);
	add_trees(ret, p, true);
	add_all(ret, proc); /* QEMU opens its RAM and keys as /proc/self/fd/N; it needs no /dev */
	add_kvm(ret, kvm);
	add_end(ret, JAIL_QEMU, tail);
}

void jail_argv_daemon(const struct jail_paths *p, int info_fd, const char *const *tail,
		      struct jail_argv *ret)
{
	AUTO(str_drop) char *daemon = xasprintf("%s/space-daemon", p->libexec);

	*ret = (struct jail_argv){0};
	add_inner(ret, p, "daemon", info_fd);
	add_bind(ret, daemon, JAIL_DAEMON);
	add_trees(ret, p, false);
	add_end(ret, JAIL_DAEMON, tail);
}

int jail_info_parse(const char *text, size_t n, pid_t *ret_pid)
{
	static const char key[] = "\"child-pid\": ";
	const char *at = memmem(text, n, key, sizeof key - 1);
	uint64_t pid;
	size_t digits = 0;

	if (at == NULL || n > JAIL_INFO_MAX)
		return -EBADMSG;
	at += sizeof key - 1;
	while (at + digits < text + n && at[digits] >= '0' && at[digits] <= '9')
		digits++;
	if (str_u64_n(at, digits, PID_MAX, &pid) < 0 || pid < 2)
		return -EBADMSG;
	*ret_pid = (pid_t)pid;
	return 0;
}
