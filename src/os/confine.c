/* Confinement in stages, each of which can only narrow:
 *   1. no_new_privs        does: exec gives nothing; needed by 3 and 4.
 *   2. dumpable, core      does: no core file, no ptrace or /proc reading by the same uid.
 *   3. Landlock (daemon)   does: no path and no TCP port at all, no signal or abstract socket out.
 *   4. seccomp             does: the lists below. Must be last: it forbids the calls of 1 to 3.
 * The lists are the whole policy; a call that a library starts to need is added here with its
 * reason, or the program dies loudly (daemon) or sees EPERM (keeper, spaced). */
#include "os/confine.h"

#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* --- Landlock: numbers by ABI level, so that any header version builds it --- */

#define LANDLOCK_VERSION_QUERY 1U
#define LANDLOCK_ABI_KNOWN     7 /* 7 adds only how denials are logged */

struct landlock_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

static const struct {
	unsigned fs_bits;
	uint64_t net;
	uint64_t scoped;
	size_t size; /* how much of the struct that level knows */
} landlock_levels[LANDLOCK_ABI_KNOWN + 1] = {
	[1] = {13, 0, 0, 8},  [2] = {14, 0, 0, 8},  [3] = {15, 0, 0, 8},  [4] = {15, 3, 0, 16},
	[5] = {16, 3, 0, 16}, [6] = {16, 3, 3, 24}, [7] = {16, 3, 3, 24},
};

int confine_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_QUERY);

	return abi < 0 ? 0 : (int)abi;
}

/* Handles every right that the kernel knows and allows none. */
static int landlock_nothing(struct fail *f)
{
	AUTO(fd_drop) int rules = -1;
	struct landlock_attr a;
	int abi = confine_landlock_abi();

	if (abi == 0)
		return 0;
	if (abi > LANDLOCK_ABI_KNOWN)
		abi = LANDLOCK_ABI_KNOWN;
	a = (struct landlock_attr){
		.fs = (1ULL << landlock_levels[abi].fs_bits) - 1,
		.net = landlock_levels[abi].net,
		.scoped = landlock_levels[abi].scoped,
	};
	rules = (int)syscall(SYS_landlock_create_ruleset, &a, landlock_levels[abi].size, 0);
	if (rules < 0)
		return fail_errno(f, -errno, "cannot make a Landlock rule set");
	if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return fail_errno(f, -errno, "cannot enter Landlock");
	return 0;
}

/* --- seccomp --- */

/* Calls that are treated alike; NULL-terminated. */
struct list {
	uint32_t action;
	const char *const *names;
};

/* A call that is treated so only when one argument is, or lacks the bit, `value`. */
enum test { ARG_IS, ARG_LACKS };
struct condition {
	const char *name;
	uint32_t action;
	unsigned arg;
	enum test test;
	uint64_t value;
};

#define LISTS_MAX 3

struct role {
	uint32_t otherwise;
	bool landlock;
	struct list list[LISTS_MAX];
	const struct condition *conditions;
	size_t n_conditions;
	const int *families; /* socket(): the only ones, -1-terminated; NULL: no rule of its own */
};

#define PERMIT SCMP_ACT_ALLOW
#define REFUSE SCMP_ACT_ERRNO(EPERM)
#define LACK   SCMP_ACT_ERRNO(ENOSYS)

/* What libuv, nghttp2 and glibc call once the descriptors are there. */
static const char *const daemon_permits[] = {
	/* bytes over what is open */
	"read", "readv", "write", "writev", "recvfrom", "recvmsg", "sendto", "sendmsg", "accept4",
	"shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername", "close", "dup",
	"dup3", "fstat",
	/* waiting */
	"poll", "ppoll", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2",
	"pipe2", "timerfd_create", "timerfd_settime", "futex", "nanosleep", "clock_nanosleep",
	"clock_gettime", "clock_getres", "gettimeofday", "restart_syscall",
	/* memory */
	"brk", "munmap", "mremap", "madvise",
	/* itself */
	"getrandom", "getpid", "gettid", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"sigaltstack", "sched_yield", "exit", "exit_group", NULL};

/* Asked by glibc (stat of stdio's descriptors, qsort's memory size), content with a no. */
static const char *const daemon_refuses[] = {"newfstatat", "sysinfo", NULL};

/* libuv from 1.45 on asks for a ring and goes on without. */
static const char *const daemon_lacks[] = {"io_uring_setup", NULL};

static const struct condition daemon_conditions[] = {
	{"mmap", PERMIT, 2, ARG_LACKS, PROT_EXEC},
	{"mprotect", PERMIT, 2, ARG_LACKS, PROT_EXEC},
	{"fcntl", PERMIT, 1, ARG_IS, F_GETFD},
	{"fcntl", PERMIT, 1, ARG_IS, F_SETFD},
	{"fcntl", PERMIT, 1, ARG_IS, F_GETFL},
	{"fcntl", PERMIT, 1, ARG_IS, F_SETFL},
	{"fcntl", PERMIT, 1, ARG_IS, F_DUPFD_CLOEXEC},
	{"ioctl", PERMIT, 1, ARG_IS, FIONBIO},
	{"ioctl", PERMIT, 1, ARG_IS, FIOCLEX},
	{"ioctl", REFUSE, 1, ARG_IS, TCGETS}, /* stdio's isatty */
};

/* What reaches the kernel's rarely used depths, other processes or the machine itself. bwrap needs
 * clone, unshare, mount, pivot_root, prctl and capset, QEMU threads and plain I/O: none is here. */
static const char *const depths[] = {
	/* the machine */
	"acct", "adjtimex", "clock_adjtime", "clock_settime", "delete_module", "finit_module",
	"init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "nfsservctl", "quotactl",
	"quotactl_fd", "reboot", "settimeofday", "swapoff", "swapon", "syslog", "uselib", "ustat",
	"vhangup", "modify_ldt", "lookup_dcookie",
	/* other processes */
	"kcmp", "pidfd_getfd", "ptrace", "perf_event_open", "migrate_pages", "move_pages",
	/* files without a path, keys, programs in the kernel */
	"name_to_handle_at", "open_by_handle_at", "fanotify_init", "add_key", "keyctl",
	"request_key", "bpf", "userfaultfd", "vmsplice", NULL};

static const char *const rings[] = {"io_uring_setup", "io_uring_enter", "io_uring_register", NULL};

/* spaced: no program, no look into a process, no namespace, mount or other root. */
static const char *const spaced_refuses[] = {
	/* programs and processes */
	"execve", "execveat", "fork", "vfork", "process_vm_readv", "process_vm_writev",
	"process_madvise", "personality",
	/* mounts, roots, names, nodes */
	"unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "mount_setattr",
	"move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "sethostname",
	"setdomainname", "mknod", "mknodat", NULL};

/* clone3's flags are out of a filter's reach: without it glibc makes threads by clone(). */
static const char *const spaced_lacks[] = {"io_uring_setup", "io_uring_enter", "io_uring_register",
					   "clone3", NULL};

static const struct condition spaced_conditions[] = {
	{"clone", REFUSE, 0, ARG_LACKS, CLONE_THREAD},
};

static const int keeper_families[] = {AF_UNIX, AF_NETLINK, -1}; /* bwrap brings `lo` up */
static const int spaced_families[] = {AF_UNIX, AF_INET, AF_INET6, -1};

static const struct role roles[] = {
	[CONFINE_DAEMON] = {.otherwise = SCMP_ACT_KILL_PROCESS,
			    .landlock = true,
			    .list = {{PERMIT, daemon_permits},
				     {REFUSE, daemon_refuses},
				     {LACK, daemon_lacks}},
			    .conditions = daemon_conditions,
			    .n_conditions = ARRAY_LEN(daemon_conditions)},
	[CONFINE_KEEPER] = {.otherwise = PERMIT,
			    .list = {{REFUSE, depths}, {LACK, rings}},
			    .families = keeper_families},
	[CONFINE_SPACED] = {.otherwise = PERMIT,
			    .list = {{REFUSE, depths},
				     {REFUSE, spaced_refuses},
				     {LACK, spaced_lacks}},
			    .conditions = spaced_conditions,
			    .n_conditions = ARRAY_LEN(spaced_conditions),
			    .families = spaced_families},
};
static_assert(ARRAY_LEN(roles) == CONFINE_ROLES, "rules for every role");

/* A call that this architecture or libseccomp does not know cannot be named in a rule: under an
 * allow-list it stays forbidden. */
static int add_list(scmp_filter_ctx ctx, const struct list *l)
{
	for (size_t i = 0; l->names != NULL && l->names[i] != NULL; i++) {
		int nr = seccomp_syscall_resolve_name(l->names[i]);
		int err = nr < 0 ? 0 : seccomp_rule_add_array(ctx, l->action, nr, 0, NULL);

		if (err < 0)
			return err;
	}
	return 0;
}

static int add_condition(scmp_filter_ctx ctx, const struct condition *c)
{
	struct scmp_arg_cmp cmp = {.arg = c->arg, .op = SCMP_CMP_EQ, .datum_a = c->value};
	int nr = seccomp_syscall_resolve_name(c->name);

	if (c->test == ARG_LACKS) {
		cmp.op = SCMP_CMP_MASKED_EQ;
		cmp.datum_b = 0;
	}
	return nr < 0 ? 0 : seccomp_rule_add_array(ctx, c->action, nr, 1, &cmp);
}

static bool family_in(const int *families, int family)
{
	while (*families >= 0 && *families != family)
		families++;
	return *families == family;
}

/* The kernel looks at 32 bits of the family, the filter at 64: what lies above is refused too. */
static int add_families(scmp_filter_ctx ctx, const int *families)
{
	struct scmp_arg_cmp cmp = {.arg = 0, .op = SCMP_CMP_EQ};
	int err = 0;

	for (int family = 0; err == 0 && family < AF_MAX; family++) {
		cmp.datum_a = (scmp_datum_t)family;
		if (!family_in(families, family))
			err = seccomp_rule_add_array(ctx, REFUSE, SCMP_SYS(socket), 1, &cmp);
	}
	cmp.op = SCMP_CMP_GE;
	cmp.datum_a = AF_MAX;
	return err == 0 ? seccomp_rule_add_array(ctx, REFUSE, SCMP_SYS(socket), 1, &cmp) : err;
}

/* abort() ends in tgkill(own pid): without it a failed assertion would look like a forbidden call.
 */
static int add_own_abort(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp own = {
		.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)getpid()};

	return seccomp_rule_add_array(ctx, PERMIT, SCMP_SYS(tgkill), 1, &own);
}

static int load_rules(scmp_filter_ctx ctx, const struct role *role)
{
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (err == 0)
		err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a chain */
	for (size_t i = 0; err == 0 && i < LISTS_MAX; i++)
		err = add_list(ctx, &role->list[i]);
	for (size_t i = 0; err == 0 && i < role->n_conditions; i++)
		err = add_condition(ctx, &role->conditions[i]);
	if (err == 0 && role->families != NULL)
		err = add_families(ctx, role->families);
	if (err == 0 && role->otherwise != PERMIT)
		err = add_own_abort(ctx);
	return err == 0 ? seccomp_load(ctx) : err;
}

static int filter_calls(const struct role *role, struct fail *f)
{
	scmp_filter_ctx ctx = seccomp_init(role->otherwise);
	int err;

	if (ctx == NULL)
		return fail_set(f, -ENOMEM, "cannot make a system call filter");
	err = load_rules(ctx, role);
	seccomp_release(ctx);
	return err < 0 ? fail_errno(f, err, "cannot set the system call filter") : 0;
}

int confine_enter(enum confine_role role, struct fail *f)
{
	const struct rlimit none = {0};
	const struct role *r = &roles[role];
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_errno(f, -errno, "cannot set no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return fail_errno(f, -errno, "cannot forbid core dumps");
	if (r->landlock) {
		err = landlock_nothing(f);
		if (err < 0)
			return err;
	}
	return filter_calls(r, f);
}
