/* Starts and ends jails. Root where given: so every path, uid and limit here comes from us, and of
 * spaced's words only a checked id, four numbers and one bool are used; its descriptors are handed
 * on and never read, written or looked at. */
#include "sandbox.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "os/fd.h"
#include "os/pidfd.h"
#include "os/spawn.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START_LIMIT_NS (10 * NS_PER_S) /* bwrap has told who its child is */
#define TERM_LIMIT_NS  (2 * NS_PER_S)  /* a killed keeper's bwrap has ended */
#define LOOK_MS        5               /* between two looks at one that ends */
#define SLOW_LOOK_MS   200
#define MEMORY_MIN     (32u * 1024 * 1024)
#define PIDS_MIN       16u
#define FILE_MIN       (4u * 1024 * 1024) /* logs */
#define CPU_MIN        50u                /* permille: with less a jail does not start in time */
#define KEEPER_INFO_FD 7                  /* after KEEPER_FD_EXIT */
#define KEEPER_NAME    "space-keeper"

enum sandbox_state { STARTING, RUNNING, ENDING };

struct sandbox {
	char id[SANDBOX_ID_SIZE];
	enum sandbox_state state;
	uid_t uid;
	bool has_uid;  /* taken from the node: to be given back */
	pid_t monitor; /* the outer bwrap, our child; 0: reaped, or an earlier jailer's */
	int info;      /* what bwrap says; -1 when read */
	char text[JAIL_INFO_MAX];
	size_t text_n;
	int keeper;   /* pidfd; -1: not known, or ended */
	bool is_told; /* JAIL_STARTED was */
	bool is_killed;
	uint32_t seq; /* of the request that is to be answered; 0: an event */
	uint32_t status;
	uint64_t since_ns; /* in this state, or killed */
};

static struct sandbox *find(const struct table *t, const char *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->item[i]->id, id) == 0)
			return t->item[i];
	return NULL;
}

static void fail_start(const struct table *t, const char *id, uint32_t seq, const struct fail *f)
{
	struct report r = {MSG_JAIL_FAILED, seq, id, (uint32_t)-f->code, f->text};

	t->tell(t->arg, &r);
}

static struct sandbox *add(struct table *t, const char *id, uint32_t seq)
{
	struct sandbox *s = xcalloc(1, sizeof *s);

	memcpy(s->id, id, sizeof s->id);
	s->seq = seq;
	s->info = -1;
	s->keeper = -1;
	s->since_ns = clock_mono_ns();
	t->item[t->n++] = s;
	return s;
}

static void drop(struct table *t, size_t i)
{
	struct sandbox *s = t->item[i];

	if (s->has_uid)
		node_uid_give(t->node, s->uid);
	fd_drop(&s->info);
	fd_drop(&s->keeper);
	free(s);
	t->item[i] = t->item[--t->n];
}

/* --- start --- */

static int check(const struct table *t, const struct jail_start *q, struct fail *f)
{
	if (!sandbox_id_valid(q->id))
		return fail_set(f, -EINVAL, "bad sandbox id");
	if (find(t, q->id) != NULL)
		return fail_set(f, -EEXIST, "sandbox '%s' exists", q->id);
	if (t->n >= SANDBOXES_MAX)
		return fail_set(f, -EUSERS, "more than %d sandboxes", SANDBOXES_MAX);
	if ((q->memory_max_bytes != 0 && q->memory_max_bytes < MEMORY_MIN) ||
	    (q->file_max_bytes != 0 && q->file_max_bytes < FILE_MIN) ||
	    (q->pids_max != 0 && q->pids_max < PIDS_MIN) ||
	    (q->cpu_max_permille != 0 && q->cpu_max_permille < CPU_MIN))
		return fail_set(f, -ERANGE, "limits of '%s' are too small to run in", q->id);
	return 0;
}

/* The group that may use /dev/kvm; *ret_n 0 when everybody may. */
static int kvm_group(gid_t *ret, size_t *ret_n, struct fail *f)
{
	struct stat st;

	if (stat("/dev/kvm", &st) < 0)
		return fail_errno(f, -errno, "cannot use /dev/kvm");
	*ret_n = 0;
	if ((st.st_mode & 0006) == 0006)
		return 0;
	if ((st.st_mode & 0060) != 0060 || st.st_gid == 0)
		return fail_set(f, -EACCES, "/dev/kvm is open to root only; give it to group kvm");
	*ret = st.st_gid;
	*ret_n = 1;
	return 0;
}

static int run_jail(const struct table *t, const struct jail_start *q, const int *fds,
		    const struct cgroup *cg, struct sandbox *s, struct fail *f)
{
	AUTO(jail_argv_done) struct jail_argv argv = {0};
	AUTO(fd_drop) int info = -1;
	AUTO(fd_drop) int info_end = -1;
	int map[KEEPER_INFO_FD + 1] = {-1, -1, fds[JAIL_FD_LOG]};
	union {
		char *const *in;
		const char *const *out;
	} args;
	struct spawn_spec spec = {.fds = map,
				  .n_fds = ARRAY_LEN(map),
				  .new_session = true,
				  .no_new_privs = true,
				  .file_max_bytes = q->file_max_bytes,
				  .has_ids = t->node->is_root,
				  .uid = s->uid,
				  .gid = s->uid,
				  .cgroup_fds = cg->procs_fd,
				  .n_cgroup_fds = cg->n};
	gid_t group = 0;
	int ends[2];
	int err = 0;

	if (q->kvm && t->node->is_root)
		err = kvm_group(&group, &spec.n_groups, f);
	if (err < 0)
		return err;
	spec.groups = &group;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot make a pipe");
	info = ends[0];
	info_end = ends[1];
	for (int i = JAIL_FD_KEEPER_SOCK; i <= JAIL_FD_EXIT; i++)
		map[KEEPER_FD_SOCK + i] = fds[i];
	map[KEEPER_INFO_FD] = info_end;
	jail_argv_keeper(t->paths, q->kvm, KEEPER_INFO_FD, NULL, &argv);
	args.in = argv.argv;
	spec.argv = args.out;
	err = fd_set_nonblock(info, true);
	if (err == 0)
		err = spawn(&spec, &s->monitor, NULL, f);
	if (err == 0)
		s->info = fd_take(&info);
	return err;
}

static int start(struct table *t, const struct jail_start *q, const int *fds, struct sandbox *s,
		 struct fail *f)
{
	AUTO(cgroup_done) struct cgroup cg;
	struct cgroup_limits l = {q->memory_max_bytes, q->pids_max, q->cpu_max_permille};
	int err = cgroup_make(&t->limits, q->id, &l, &cg, f);

	if (err < 0)
		return err;
	err = node_uid_take(t->node, &s->uid);
	if (err < 0)
		err = fail_set(f, err, "no user id is free");
	s->has_uid = err == 0;
	if (err == 0)
		err = run_jail(t, q, fds, &cg, s, f);
	if (err < 0)
		(void)cgroup_remove(&t->limits, q->id); /* nobody was put into it */
	return err;
}

void sandbox_start(struct table *t, const struct jail_start *q, uint32_t seq, const int *fds)
{
	struct fail f = {0};
	int err = check(t, q, &f);

	if (err == 0) {
		struct sandbox *s = add(t, q->id, seq);

		err = start(t, q, fds, s, &f);
		if (err < 0)
			drop(t, t->n - 1);
	}
	if (err < 0)
		fail_start(t, q->id, seq, &f);
}

/* --- end --- */

/* The keeper is process 1 of its namespace: with it everything inside ends. */
static void strike(const struct table *t, struct sandbox *s)
{
	AUTO(cgroup_done) struct cgroup cg;
	bool is_late = clock_mono_ns() - s->since_ns > TERM_LIMIT_NS;

	if (s->keeper >= 0)
		(void)pidfd_signal(s->keeper, SIGKILL); /* ended already is fine */
	if (cgroup_open(&t->limits, s->id, &cg) == 0)
		(void)cgroup_kill(&cg); /* looked at again until the cgroup is removed */
	/* The monitor leads a group that its child leaves only when it is the keeper. */
	if (s->monitor > 0 && (is_late || s->state == ENDING))
		(void)kill(-s->monitor, SIGKILL);
}

/* One keeper under two names would give its uid back while processes still have it. */
static bool has_keeper(const struct table *t, pid_t pid)
{
	pid_t known;

	for (size_t i = 0; i < t->n; i++)
		if (t->item[i]->keeper >= 0 && pidfd_pid(t->item[i]->keeper, &known) == 0 &&
		    known == pid)
			return true;
	return false;
}

/* A keeper of an earlier jailer: in our range of uids (or ours, without root), process 1 of a
 * namespace below ours, and called what a keeper is called. */
static int check_keeper(const struct table *t, int pidfd, uid_t *ret_uid)
{
	struct proc_status s;
	pid_t again;
	pid_t pid;
	int err = pidfd_pid(pidfd, &pid);

	if (err == 0)
		err = proc_status_read(pid, &s);
	if (err == 0)
		err = pidfd_pid(pidfd, &again); /* still the one whose status was read */
	if (err < 0)
		return err;
	if (again != pid || !node_uid_is_ours(t->node, s.uid[0]) || !proc_uid_is(&s, s.uid[0]) ||
	    s.pid_depth < 2 || s.pid_inner != 1 || strcmp(s.name, KEEPER_NAME) != 0 ||
	    has_keeper(t, pid))
		return -EPERM;
	*ret_uid = s.uid[0];
	return 0;
}

/* Takes over what an earlier jailer started, in order to end it. Its cgroup may be all that is
 * left of it, or all that can be believed: the pidfd came from the keeper, which may be captured
 * and not want to end. */
static int adopt(struct table *t, const char *id, uint32_t seq, int pidfd, struct fail *f)
{
	AUTO(cgroup_done) struct cgroup cg;
	AUTO(fd_drop) int own = -1;
	bool has_cgroup = t->limits.kind != CGROUP_NONE && cgroup_open(&t->limits, id, &cg) == 0;
	struct sandbox *s;
	uid_t uid = 0;
	int err = 0;

	if (t->limits.kind == CGROUP_NONE)
		(void)cgroup_open(&t->limits, id, &cg); /* empty, so that it can be dropped */
	if (t->n >= SANDBOXES_MAX)
		return fail_set(f, -EUSERS, "more than %d sandboxes", SANDBOXES_MAX);
	if (pidfd >= 0) {
		err = check_keeper(t, pidfd, &uid);
		if (err < 0 && err != -ESRCH && !has_cgroup)
			return fail_set(f, err, "that process is not the keeper of '%s'", id);
		own = err == 0 ? fcntl(pidfd, F_DUPFD_CLOEXEC, 0) : -1;
		if (err == 0 && own < 0)
			return fail_errno(f, -errno, "cannot hold the keeper of '%s'", id);
	}
	if (own < 0 && !has_cgroup)
		return fail_set(f, -ESRCH, "no sandbox '%s' is known", id);
	s = add(t, id, seq);
	s->state = own >= 0 ? RUNNING : ENDING;
	s->is_told = true;
	s->has_uid = own >= 0;
	s->uid = uid;
	s->keeper = fd_take(&own);
	return 0;
}

void sandbox_kill(struct table *t, const char *id, uint32_t seq, int pidfd)
{
	struct sandbox *s = find(t, id);
	struct fail f = {0};

	if (s == NULL) {
		if (adopt(t, id, seq, pidfd, &f) < 0) {
			fail_start(t, id, seq, &f);
			return;
		}
		s = t->item[t->n - 1];
	}
	if (s->is_told)
		s->seq = seq; /* else JAIL_FAILED of the start is the answer to both */
	s->is_killed = true;
	s->since_ns = clock_mono_ns();
	strike(t, s);
}

bool sandbox_reaped(struct table *t, pid_t pid, int status)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->item[i]->monitor != pid)
			continue;
		t->item[i]->monitor = 0;
		t->item[i]->status = (uint32_t)status;
		return true;
	}
	return false;
}

/* --- the loop --- */

size_t sandbox_poll(const struct table *t, struct pollfd *p)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct sandbox *s = t->item[i];
		int fd = s->state == STARTING ? s->info : s->keeper;

		if (fd >= 0)
			p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	return n;
}

/* Reads bwrap's info to its end: 0 when all is there, -EAGAIN while it is not. */
static int read_info(struct sandbox *s)
{
	for (;;) {
		ssize_t got = read(s->info, s->text + s->text_n, sizeof s->text - s->text_n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return s->text_n < sizeof s->text ? 0 : -EMSGSIZE;
		s->text_n += (size_t)got;
	}
}

/* bwrap runs as the sandbox's uid: that the process it names is its own child is asked of /proc. */
static int find_keeper(struct sandbox *s)
{
	AUTO(fd_drop) int pidfd = -1;
	struct proc_status st;
	pid_t again;
	pid_t pid;
	int err = jail_info_parse(s->text, s->text_n, &pid);

	if (err == 0)
		err = pidfd_of(pid, &pidfd);
	if (err == 0)
		err = proc_status_read(pid, &st);
	if (err == 0)
		err = pidfd_pid(pidfd, &again);
	if (err < 0)
		return err;
	if (again != pid || st.parent != s->monitor)
		return -EPERM;
	s->keeper = fd_take(&pidfd);
	return 0;
}

static void step_starting(const struct table *t, struct sandbox *s)
{
	struct report r = {MSG_JAIL_STARTED, s->seq, s->id, s->uid, NULL};
	int err = read_info(s);

	if (err == -EAGAIN && s->monitor > 0 && clock_mono_ns() - s->since_ns < START_LIMIT_NS)
		return;
	fd_drop(&s->info);
	if (err == 0)
		err = find_keeper(s);
	if (err < 0) {
		s->state = ENDING;
		strike(t, s);
		return;
	}
	s->state = RUNNING;
	if (s->is_killed)
		strike(t, s);
	s->is_told = true;
	t->tell(t->arg, &r);
	s->seq = 0;
}

/* Everything is gone when the monitor is reaped and the cgroup, if there is one, could be removed.
 */
static bool step_ending(const struct table *t, const struct sandbox *s)
{
	return s->monitor == 0 && cgroup_remove(&t->limits, s->id) == 0;
}

static void step_running(struct sandbox *s)
{
	if (pidfd_wait_end(s->keeper, 0) == -ETIMEDOUT)
		return;
	fd_drop(&s->keeper);
	s->state = ENDING;
	s->since_ns = clock_mono_ns();
}

static void tell_gone(const struct table *t, const struct sandbox *s)
{
	struct report r = {MSG_JAIL_GONE, s->seq, s->id, s->status, NULL};

	if (!s->is_told) {
		r.type = MSG_JAIL_FAILED;
		r.value = ECHILD;
		r.text = "the jail ended before its keeper ran; its log says why";
	}
	t->tell(t->arg, &r);
}

int sandbox_step(struct table *t)
{
	int due = -1;

	for (size_t i = 0; i < t->n;) {
		struct sandbox *s = t->item[i];
		bool is_late;

		if (s->state == STARTING)
			step_starting(t, s);
		if (s->state == RUNNING)
			step_running(s);
		if (s->state == ENDING && step_ending(t, s)) {
			tell_gone(t, s);
			drop(t, i);
			continue;
		}
		is_late = clock_mono_ns() - s->since_ns > TERM_LIMIT_NS;
		if (s->state == ENDING || s->is_killed) {
			if (is_late)
				strike(t, s);
			if (due < 0 || !is_late)
				due = is_late ? SLOW_LOOK_MS : LOOK_MS;
		} else if (s->state == STARTING && due < 0) {
			due = SLOW_LOOK_MS;
		}
		i++;
	}
	return due;
}
