/* Limits by cgroup. Owns what lies below space-<instance> and touches nothing else, but for the
 * caller's own cgroup: to hand controllers down in v2 it may have to move the caller into a child
 * (a v2 cgroup with processes cannot have limited children). Trusts /proc and the mounts it names.
 */
#include "os/cgroup.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/cgroup_find.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define PROC_TEXT_MAX   (1024u * 1024)
#define PROCS_TEXT_MAX  (4u * 1024 * 1024)
#define CPU_PERIOD_US   100000u
#define CPU_PERMILLE_US (CPU_PERIOD_US / 1000)

static const char *const v1_names[] = {"memory", "pids", "cpu"};
static_assert(ARRAY_LEN(v1_names) == CGROUP_TREES_MAX, "a place for every v1 tree");

/* --- small files --- */

static bool word_is(const char *p, size_t n, const char *want)
{
	return strlen(want) == n && memcmp(p, want, n) == 0;
}

/* Splits off the next line of a NUL-terminated text; NULL at its end. */
static char *next_line(char **at)
{
	char *line = *at;
	char *end = line + strcspn(line, "\n");

	if (*line == '\0')
		return NULL;
	*at = *end == '\0' ? end : end + 1;
	*end = '\0';
	return line;
}

static int put(int dir, const char *name, const char *value)
{
	AUTO(fd_drop) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd_write_all(fd, value, strlen(value));
}

static int get(int dir, const char *name, size_t max, char **ret)
{
	AUTO(fd_drop) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t n;

	return fd < 0 ? -errno : fd_slurp(fd, max, ret, &n);
}

static bool has_words(int dir, const char *name)
{
	AUTO(str_drop) char *text = NULL;
	size_t found = 0;

	if (get(dir, name, PROC_TEXT_MAX, &text) < 0)
		return false;
	for (char *at = text; *at != '\0'; at += strspn(at, " \n")) {
		size_t n = strcspn(at, " \n");

		for (size_t i = 0; i < ARRAY_LEN(v1_names); i++)
			found += word_is(at, n, v1_names[i]);
		at += n;
	}
	return found == ARRAY_LEN(v1_names);
}

/* --- v2 --- */

/* A cgroup that holds only us (a service with delegated controllers): we step down into a child, so
 * that it may hand its controllers to the sandboxes' cgroups. */
static int step_down(int own)
{
	AUTO(str_drop) char *procs = NULL;
	AUTO(str_drop) char *only_us = xasprintf("%d\n", getpid());
	int err = get(own, "cgroup.procs", PROCS_TEXT_MAX, &procs);

	if (err < 0)
		return err;
	if (strcmp(procs, only_us) != 0)
		return -EBUSY;
	if (mkdirat(own, "space-jailer", 0755) < 0 && errno != EEXIST)
		return -errno;
	return put(own, "space-jailer/cgroup.procs", "0");
}

static int hand_down(int dir)
{
	static const char all[] = "+memory +pids +cpu";
	int err;

	if (has_words(dir, "cgroup.subtree_control"))
		return 0;
	if (!has_words(dir, "cgroup.controllers"))
		return -EOPNOTSUPP;
	err = put(dir, "cgroup.subtree_control", all);
	if (err == -EBUSY) {
		err = step_down(dir);
		if (err == 0)
			err = put(dir, "cgroup.subtree_control", all);
	}
	return err;
}

static int v2_parent(int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int own = -1;
	AUTO(fd_drop) int top = -1;
	int err = cgroup_find_own(NULL, false, &own, f);

	if (err < 0)
		return err;
	err = hand_down(own);
	if (err == 0) {
		*ret_fd = fd_take(&own);
		return 0;
	}
	/* Root in a session's cgroup, which it shares with its shell. */
	if (geteuid() == 0 && cgroup_find_own(NULL, true, &top, f) == 0 && hand_down(top) == 0) {
		*ret_fd = fd_take(&top);
		return 0;
	}
	if (err == -EOPNOTSUPP)
		return fail_set(f, err, "cgroup v2 has no memory, pids and cpu controllers here");
	return fail_errno(f, err, "memory, pids and cpu controllers are not delegated to us");
}

/* --- base --- */

static int make_sub(int parent, const char *name, int *ret_fd, struct fail *f)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return fail_errno(f, -errno, "cannot make cgroup '%s'", name);
	return dir_open(parent, name, ret_fd, f);
}

static void base_reset(struct cgroup_base *b)
{
	*b = (struct cgroup_base){.kind = CGROUP_NONE};
	for (size_t i = 0; i < CGROUP_TREES_MAX; i++) {
		b->parent_fd[i] = -1;
		b->dir_fd[i] = -1;
	}
}

static void base_close(struct cgroup_base *b)
{
	for (size_t i = 0; i < CGROUP_TREES_MAX; i++) {
		fd_drop(&b->dir_fd[i]);
		fd_drop(&b->parent_fd[i]);
	}
}

static int base_v2(struct cgroup_base *b, struct fail *f)
{
	int err = v2_parent(&b->parent_fd[0], f);

	if (err == 0)
		err = make_sub(b->parent_fd[0], b->name, &b->dir_fd[0], f);
	if (err == 0 && hand_down(b->dir_fd[0]) < 0)
		err = fail_set(f, -EOPNOTSUPP, "cgroup '%s' cannot limit its children", b->name);
	b->n = 1;
	b->kind = CGROUP_V2;
	return err;
}

static int base_v1(struct cgroup_base *b, struct fail *f)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < ARRAY_LEN(v1_names); i++) {
		err = cgroup_find_own(v1_names[i], false, &b->parent_fd[i], f);
		if (err == 0)
			err = make_sub(b->parent_fd[i], b->name, &b->dir_fd[i], f);
	}
	b->n = ARRAY_LEN(v1_names);
	b->kind = CGROUP_V1;
	return err;
}

static bool instance_valid(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && s[n] == '\0';
}

int cgroup_base_open(const char *instance, struct cgroup_base *ret, struct fail *f)
{
	struct cgroup_base b;
	struct fail v2 = {0};
	int n;
	int err;

	base_reset(ret);
	base_reset(&b);
	n = snprintf(b.name, sizeof b.name, "space-%s", instance);
	if (!instance_valid(instance) || n < 0 || (size_t)n >= sizeof b.name)
		return fail_set(f, -EINVAL, "bad instance name '%s'", instance);
	err = base_v2(&b, &v2);
	if (err < 0) {
		cgroup_base_done(&b);
		(void)snprintf(b.name, sizeof b.name, "space-%s", instance);
		err = base_v1(&b, f);
		if (err < 0) {
			cgroup_base_done(&b);
			return fail_prefix(f, "%s; v1", v2.text);
		}
	}
	*ret = b;
	return 0;
}

void cgroup_base_done(struct cgroup_base *b)
{
	for (size_t i = 0; i < CGROUP_TREES_MAX; i++)
		if (b->dir_fd[i] >= 0 && b->parent_fd[i] >= 0)
			(void)unlinkat(b->parent_fd[i], b->name,
				       AT_REMOVEDIR); /* kept while in use */
	base_close(b);
	base_reset(b);
}

/* --- one sandbox --- */

static void cgroup_reset(struct cgroup *c)
{
	*c = (struct cgroup){0};
	for (size_t i = 0; i < CGROUP_TREES_MAX; i++) {
		c->dir_fd[i] = -1;
		c->procs_fd[i] = -1;
	}
}

void cgroup_done(struct cgroup *c)
{
	for (size_t i = 0; i < CGROUP_TREES_MAX; i++) {
		fd_drop(&c->dir_fd[i]);
		fd_drop(&c->procs_fd[i]);
	}
	cgroup_reset(c);
}

struct setting {
	const char *file;
	uint64_t value;
	bool is_optional; /* a kernel without swap accounting lacks the file */
	bool is_cpu_max;  /* v2: two numbers */
};

static int put_setting(int dir, const struct setting *s)
{
	char text[64];
	int err;

	if (s->is_cpu_max)
		(void)snprintf(text, sizeof text, "%" PRIu64 " %u", s->value, CPU_PERIOD_US);
	else
		(void)snprintf(text, sizeof text, "%" PRIu64, s->value);
	err = put(dir, s->file, text);
	return err == -ENOENT && s->is_optional ? 0 : err;
}

static int put_limits(const struct cgroup_base *b, const struct cgroup *c,
		      const struct cgroup_limits *l, const char **ret_file)
{
	const bool v2 = b->kind == CGROUP_V2;
	const uint64_t quota = (uint64_t)l->cpu_max_permille * CPU_PERMILLE_US;
	/* v1 places: v1_names. memsw counts memory and swap together, so the same number is no
	 * swap. */
	const struct {
		size_t v1_tree;
		bool wanted;
		struct setting v2;
		struct setting v1;
	} table[] = {
		{0,
		 l->memory_max_bytes != 0,
		 {"memory.max", l->memory_max_bytes, false, false},
		 {"memory.limit_in_bytes", l->memory_max_bytes, false, false}},
		{0,
		 l->memory_max_bytes != 0,
		 {"memory.swap.max", 0, true, false},
		 {"memory.memsw.limit_in_bytes", l->memory_max_bytes, true, false}},
		{1,
		 l->pids_max != 0,
		 {"pids.max", l->pids_max, false, false},
		 {"pids.max", l->pids_max, false, false}},
		{2,
		 l->cpu_max_permille != 0,
		 {"cpu.max", quota, false, true},
		 {"cpu.cfs_quota_us", quota, false, false}},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct setting *s = v2 ? &table[i].v2 : &table[i].v1;
		int err = 0;

		if (table[i].wanted)
			err = put_setting(c->dir_fd[v2 ? 0 : table[i].v1_tree], s);
		if (err < 0) {
			*ret_file = s->file;
			return err;
		}
	}
	return 0;
}

static int open_trees(const struct cgroup_base *b, const char *id, struct cgroup *c)
{
	size_t found = 0;

	for (size_t i = 0; i < b->n; i++) {
		c->dir_fd[i] =
			openat(b->dir_fd[i], id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (c->dir_fd[i] < 0 && errno == ENOENT)
			continue;
		if (c->dir_fd[i] < 0)
			return -errno;
		c->procs_fd[i] = openat(c->dir_fd[i], "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (c->procs_fd[i] < 0)
			return -errno;
		found++;
	}
	c->n = b->n;
	return found == 0 && b->n > 0 ? -ENOENT : 0;
}

int cgroup_open(const struct cgroup_base *b, const char *id, struct cgroup *ret)
{
	struct cgroup c;
	int err;

	cgroup_reset(&c);
	cgroup_reset(ret);
	err = open_trees(b, id, &c);
	if (err < 0) {
		cgroup_done(&c);
		return err;
	}
	*ret = c;
	return 0;
}

int cgroup_make(const struct cgroup_base *b, const char *id, const struct cgroup_limits *l,
		struct cgroup *ret, struct fail *f)
{
	const char *file = "cgroup.procs";
	struct cgroup c;
	int err = 0;

	cgroup_reset(ret);
	for (size_t i = 0; err == 0 && i < b->n; i++)
		if (mkdirat(b->dir_fd[i], id, 0755) < 0)
			err = fail_errno(f, -errno, "cannot make cgroup '%s'", id);
	if (err == 0) {
		err = cgroup_open(b, id, &c);
		if (err == 0 && b->kind != CGROUP_NONE)
			err = put_limits(b, &c, l, &file);
		if (err == 0) {
			*ret = c;
			return 0;
		}
		cgroup_done(&c);
		err = fail_errno(f, err, "cannot set '%s' of cgroup '%s'", file, id);
	}
	(void)cgroup_remove(b, id); /* what was made of it; one with processes stays */
	return err;
}

static bool procs_has(int dir, pid_t pid)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *want = xasprintf("%d", pid);
	char *at;
	char *line;

	if (get(dir, "cgroup.procs", PROCS_TEXT_MAX, &text) < 0)
		return false;
	at = text;
	while ((line = next_line(&at)) != NULL)
		if (strcmp(line, want) == 0)
			return true;
	return false;
}

/* The pidfd is taken first and the membership looked at again: a number that was given to another
 * process meanwhile is not killed. */
static void kill_member(int dir, pid_t pid)
{
	AUTO(fd_drop) int pidfd = -1;

	if (pidfd_of(pid, &pidfd) == 0 && procs_has(dir, pid))
		(void)pidfd_signal(pidfd, SIGKILL); /* gone already is fine */
}

int cgroup_kill(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n; i++) {
		AUTO(str_drop) char *text = NULL;
		char *at;
		char *line;
		int err;

		if (c->dir_fd[i] < 0 || put(c->dir_fd[i], "cgroup.kill", "1") == 0)
			continue; /* cgroup.kill: v2, Linux 5.14 */
		err = get(c->dir_fd[i], "cgroup.procs", PROCS_TEXT_MAX, &text);
		if (err < 0)
			return err;
		at = text;
		while ((line = next_line(&at)) != NULL) {
			uint64_t pid;

			if (str_u64(line, PID_MAX, &pid) == 0 && pid > 1)
				kill_member(c->dir_fd[i], (pid_t)pid);
		}
	}
	return 0;
}

int cgroup_remove(const struct cgroup_base *b, const char *id)
{
	int err = 0;

	for (size_t i = 0; i < b->n; i++)
		if (unlinkat(b->dir_fd[i], id, AT_REMOVEDIR) < 0 && errno != ENOENT)
			err = -errno;
	return err;
}
