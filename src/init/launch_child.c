/* From init's twin to the user's program. Runs in the child with all signals blocked; init has one
 * thread, so allocating is fine here. In order: session, streams, namespaces, who the user is,
 * limits, rights dropped, working directory, signals, exec. Up to the dropping of rights it is root
 * in the user's namespace and must not follow the user's symbolic links anywhere but in /etc. */
#include "init/launch_child.h"

#include "base/alloc.h"
#include "base/rd.h"
#include "init/env.h"
#include "init/identity.h"
#include "init/launch.h"
#include "init/limits.h"
#include "init/request.h"
#include "init/userspace.h"
#include "os/fd.h"
#include "wire/passwd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define FILES_SOFT   1024
#define FILES_HARD   524288
#define SIGNALS      65 /* 1..64 */

struct user {
	struct passwd_user entry;
	uint32_t groups[PASSWD_GROUPS_MAX];
	size_t n_groups;
};

/* The end of a child that could not become the program. */
static _Noreturn void give_up(const struct child_fds *fds, enum connect_code code, const char *fmt,
			      ...) PRINTF_LIKE(3, 4);

static _Noreturn void give_up(const struct child_fds *fds, enum connect_code code, const char *fmt,
			      ...)
{
	char record[LAUNCH_ERROR_MAX] = {(char)code};
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(record + 1, sizeof record - 1, fmt, ap);
	va_end(ap);
	n = n < 0 ? 0 : n;
	(void)fd_write_all(fds->error, record, 1 + size_min((size_t)n, sizeof record - 2));
	_exit(127);
}

/* errno as Go says it, which clients of envd know: the same words, no capital. */
static const char *words(int err)
{
	static char text[64];
	const char *s = strerrordesc_np(err);

	(void)snprintf(text, sizeof text, "%s", s ? s : "unknown error");
	if (text[0] >= 'A' && text[0] <= 'Z')
		text[0] = (char)(text[0] - 'A' + 'a');
	return text;
}

static void take_streams(const struct child_fds *fds)
{
	AUTO(fd_drop) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int from[3] = {
		fds->slave >= 0 ? fds->slave
		: fds->in >= 0  ? fds->in
				: null,
		fds->slave >= 0 ? fds->slave : fds->out,
		fds->slave >= 0 ? fds->slave : fds->err,
	};

	/* Init keeps 0-2 open: none of `from` is below 3, and dup2 clears close-on-exec. */
	for (int i = 0; i < 3; i++)
		if (from[i] < 0 || dup2(from[i], i) < 0)
			give_up(fds, CONNECT_INTERNAL, "cannot set up the standard streams");
	if (fds->slave >= 0 && ioctl(0, TIOCSCTTY, 0) != 0)
		give_up(fds, CONNECT_INTERNAL, "cannot take the terminal");
}

static void enter_userspace(const struct userspace *u, const struct child_fds *fds)
{
	/* Below /proc of init's own namespace: the user's may be anything. */
	AUTO(fd_drop) int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (oom < 0 || write(oom, "0", 1) != 1)
		give_up(fds, CONNECT_INTERNAL, "cannot set oom_score_adj");
	if (setns(u->cgroup_ns, CLONE_NEWCGROUP) != 0 || setns(u->mnt_ns, CLONE_NEWNS) != 0)
		give_up(fds, CONNECT_INTERNAL, "cannot enter the namespaces");
}

/* A file of /etc that may be missing: then it is empty. Never waits (a FIFO in its place). */
static struct rd slurp(const char *path, char **ret)
{
	AUTO(fd_drop) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    fd_slurp(fd, PASSWD_FILE_MAX, ret, &n) != 0)
		return rd_of("", 0);
	return rd_of(*ret, n);
}

/* root is always uid 0; no other user is ever invented. */
static void find_user(const char *name, struct user *ret, const struct child_fds *fds)
{
	AUTO(str_drop) char *passwd = NULL;
	AUTO(str_drop) char *group = NULL;

	if (passwd_find_name(slurp("/etc/passwd", &passwd), name, &ret->entry) != 0) {
		if (strcmp(name, "root") != 0)
			give_up(fds, CONNECT_UNAUTHENTICATED, "invalid username: '%s'", name);
		ret->entry = (struct passwd_user){.name = "root", .home = "/", .shell = "/bin/sh"};
	}
	if (strcmp(name, "root") == 0)
		ret->entry.uid = 0;
	if (passwd_groups(slurp("/etc/group", &group), name, ret->entry.gid, ret->groups,
			  &ret->n_groups) != 0) {
		ret->groups[0] = ret->entry.gid;
		ret->n_groups = 1;
	}
}

static void drop_rights(const struct user *u, const struct child_fds *fds)
{
	const struct rlimit files = {FILES_SOFT, FILES_HARD};
	const struct rlimit memlock = {8u << 20,
				       8u << 20}; /* the kernel's default; init's is more */
	gid_t gid = u->entry.gid;
	uid_t uid = u->entry.uid;

	static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are passed as they are");
	if (fds->slave >= 0 && fchown(0, uid, (gid_t)-1) != 0) /* as login(1) does */
		give_up(fds, CONNECT_INTERNAL, "cannot give the terminal away: %s", words(errno));
	if (setrlimit(RLIMIT_NOFILE, &files) != 0 || setrlimit(RLIMIT_MEMLOCK, &memlock) != 0)
		give_up(fds, CONNECT_INTERNAL, "cannot set limits: %s", words(errno));
	if (setgroups(u->n_groups, u->groups) != 0 || setresgid(gid, gid, gid) != 0 ||
	    setresuid(uid, uid, uid) != 0)
		give_up(fds, CONNECT_INTERNAL, "cannot become user '%s': %s", u->entry.name,
			words(errno));
	(void)umask(022);
}

static void build_env(struct env *e, const struct launch_plan *p, const struct user *u,
		      const struct child_fds *fds)
{
	int err = env_set(e, "PATH", PATH_DEFAULT);

	if (!err)
		err = env_set(e, "HOME", u->entry.home);
	if (!err)
		err = env_set(e, "USER", u->entry.name);
	if (!err)
		err = env_set(e, "LOGNAME", u->entry.name);
	if (!err)
		err = env_merge(e, &p->identity->envs);
	if (!err)
		err = env_merge(e, &p->request->envs);
	if (err)
		give_up(fds, CONNECT_INVALID_ARGUMENT, "the environment is too large");
}

/* "" = the sandbox's default, else the user's home; "~" is the home; relative to the default. */
static char *cwd_of(const struct launch_plan *p, const struct user *u)
{
	const char *home = u->entry.home;
	const char *base = *p->identity->default_workdir ? p->identity->default_workdir : home;
	const char *cwd = p->request->cwd;

	if (!*cwd)
		return xstrdup(base);
	if (*cwd == '/')
		return xstrdup(cwd);
	if (*cwd == '~' && (!cwd[1] || cwd[1] == '/'))
		return xasprintf("%s%s", home, cwd + 1);
	return xasprintf("%s/%s", base, cwd);
}

static void enter_cwd(const char *cwd, const struct child_fds *fds)
{
	if (chdir(cwd) == 0)
		return;
	if (errno == ENOENT)
		give_up(fds, CONNECT_INVALID_ARGUMENT, "cwd '%s' does not exist", cwd);
	give_up(fds, CONNECT_INVALID_ARGUMENT, "chdir %s: %s", cwd, words(errno));
}

static void default_signals(void)
{
	sigset_t none;

	for (int i = 1; i < SIGNALS; i++)
		(void)signal(i, SIG_DFL); /* SIGKILL, SIGSTOP and libc's own refuse: fine */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Not there, or not for us: the search goes on. */
static bool is_elsewhere(int err)
{
	return err == ENOENT || err == ENOTDIR || err == EACCES || err == ENAMETOOLONG ||
	       err == ELOOP;
}

static _Noreturn void run(const char *cmd, char **argv, char **envp, const char *path,
			  const struct child_fds *fds)
{
	if (strchr(cmd, '/')) {
		(void)execve(cmd, argv, envp);
		give_up(fds, CONNECT_INVALID_ARGUMENT, "fork/exec %s: %s", cmd, words(errno));
	}
	for (const char *dir = path ? path : ""; *dir;) {
		size_t n = strcspn(dir, ":");
		AUTO(str_drop) char *file = xasprintf("%.*s/%s", (int)n, dir, cmd);

		if (*dir == '/') { /* Go, and so envd, takes no command from a relative folder */
			(void)execve(file, argv, envp);
			if (!is_elsewhere(errno))
				give_up(fds, CONNECT_INVALID_ARGUMENT, "fork/exec %s: %s", file,
					words(errno));
		}
		dir += n + (dir[n] == ':');
	}
	give_up(fds, CONNECT_INVALID_ARGUMENT, "exec: \"%s\": executable file not found in $PATH",
		cmd);
}

_Noreturn void launch_child(const struct launch_plan *p, const struct child_fds *fds)
{
	struct user u = {0};
	struct env env = {0};
	size_t n = p->request->n_args;
	char **argv = xcalloc(n + 2, sizeof *argv);
	char *cwd;

	argv[0] = p->request->cmd;
	memcpy(argv + 1, p->request->args, n * sizeof *argv);
	(void)setsid();
	take_streams(fds);
	enter_userspace(p->userspace, fds);
	find_user(p->user ? p->user : p->identity->default_user, &u, fds);
	drop_rights(&u, fds);
	build_env(&env, p, &u, fds);
	cwd = cwd_of(p, &u);
	enter_cwd(cwd, fds);
	default_signals();
	(void)syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
	run(p->request->cmd, argv, env.v, env_get(&env, "PATH"), fds);
}
