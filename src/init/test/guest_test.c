/* space-init in a real guest: everything that a client, the platform or a process can make it do.
 *
 *   guest-test KERNEL INITRD DISK ONE_DISK CONSOLE [CASE]
 *
 * DISK: a small root with a shell and users; ONE_DISK: a root with one static program in it. */
#include "init/test/run.h"
#include "init/test/vm.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/test.h"
#include "os/fd.h"
#include "wire/json.h"

#include <fcntl.h>

#define RUN_MS     60000
#define MIB        (1024u * 1024)
#define SPEED_RUNS 41

#define BROKEN_DISK                                                                                \
	"boot failed, powering off cause=\"cannot mount '/dev/vda' (ext4): Invalid argument\""

/* Checks the whole result of one command. */
static bool expect_run(const char *says, struct run *r, int code, const char *out)
{
	bool is_good = EXPECT(says, run_wait(r, RUN_MS));

	is_good = EXPECT(says, !r->is_bad && r->has_end && !r->code) && is_good;
	is_good = EXPECT_EQ(says, r->exit_code, code) && is_good;
	if (out)
		is_good = EXPECT_STR(says, r->out[0] ? r->out[0] : "", out) && is_good;
	if (!is_good)
		printf("  stderr: %s\n  error: %s %s\n", r->out[1] ? r->out[1] : "",
		       r->code ? r->code : "", r->message_text ? r->message_text : "");
	return is_good;
}

static void expect_sh(struct vm *v, const char *says, const struct run_options *o,
		      const char *script, int code, const char *out)
{
	struct run *r = run_sh(v, o, script);

	expect_run(says, r, code, out);
	run_free(r);
}

static void expect_error(const char *says, struct run *r, const char *code, const char *text)
{
	EXPECT(says, run_wait(r, RUN_MS));
	EXPECT_EQ(says, r->reply->status, 200);
	EXPECT_STR(says, r->reply->type, "application/connect+json");
	EXPECT(says, !r->pid && !r->has_end && !r->is_bad);
	EXPECT_STR(says, r->code, code);
	if (text)
		EXPECT_STR(says, r->message_text, text);
	run_free(r);
}

static json_int_t stat_of(struct vm *v, const char *name)
{
	AUTO(json_drop) json_t *o = NULL;

	(void)vm_call(v, "GET", "/space/stats", NULL, &o);
	return json_integer_value(json_object_get(o, name));
}

static unsigned call(struct vm *v, const char *procedure, const char *fmt, ...) PRINTF_LIKE(3, 4);

static unsigned call(struct vm *v, const char *procedure, const char *fmt, ...)
{
	AUTO(str_drop) char *path = xasprintf("/process.Process/%s", procedure);
	AUTO(str_drop) char *body = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&body, fmt, ap) < 0)
		abort();
	va_end(ap);
	return vm_call(v, "POST", path, body, NULL);
}

static unsigned send_init(struct vm *v, const char *hostname, const char *more)
{
	AUTO(str_drop)
	char *body =
		xasprintf("{\"sandboxId\":\"i123\",\"templateId\":\"base\",\"hostname\":\"%s\","
			  "\"realtimeNs\":\"1796083200000000000\",\"entropy\":\"AAECAwQFBgcICQ==\","
			  "\"machineId\":\"0123456789abcdef0123456789abcdef\","
			  "\"bootId\":\"01234567-89ab-cdef-0123-456789abcdef\"%s}",
			  hostname, more);

	return vm_call(v, "POST", "/space/init", body, NULL);
}

/* --- the cases --- */

static void before_init(struct vm *v)
{
	expect_error("no user code before /space/init", run_sh(v, NULL, "true"), "unavailable",
		     NULL);
	EXPECT_EQ("health", vm_call(v, "GET", "/health", NULL, NULL), 204);
	EXPECT_EQ("unknown path", vm_call(v, "GET", "/file", NULL, NULL), 404);
	EXPECT_EQ("files", vm_call(v, "GET", "/files?path=%2Fx", NULL, NULL), 501);
	EXPECT_EQ("folders", vm_call(v, "POST", "/filesystem.Filesystem/ListDir", "{}", NULL), 501);
	EXPECT_EQ("unknown procedure", vm_call(v, "POST", "/process.Process/Fly", "{}", NULL), 404);
	EXPECT_EQ("another method", vm_call(v, "POST", "/health", "{}", NULL), 405);
	EXPECT_EQ("a bad identity", vm_call(v, "POST", "/space/init", "{}", NULL), 400);
	expect_error("still none", run_sh(v, NULL, "true"), "unavailable", NULL);
}

static void identity(struct vm *v)
{
	EXPECT_EQ("init", send_init(v, "box", ",\"envVars\":{\"A\":\"sandbox\",\"B\":\"sandbox\"}"),
		  204);
	expect_sh(v, "hostname", NULL, "hostname; cat /etc/hostname", 0, "box\nbox\n");
	expect_sh(v, "hosts", NULL, "grep -c box /etc/hosts", 0, "1\n");
	expect_sh(v, "machine-id", NULL, "cat /etc/machine-id", 0,
		  "0123456789abcdef0123456789abcdef\n");
	expect_sh(v, "boot id", NULL, "cat /proc/sys/kernel/random/boot_id", 0,
		  "01234567-89ab-cdef-0123-456789abcdef\n");
	expect_sh(v, "clock", NULL,
		  "[ $(date +%s) -ge 1796083200 ] && [ $(date +%s) -lt 1796083800 ]", 0, "");
}

static void identity_again(struct vm *v)
{
	EXPECT_EQ("init again",
		  send_init(v, "box2", ",\"defaultWorkdir\":\"/tmp\",\"defaultUser\":\"root\""),
		  204);
	expect_sh(v, "the new one in force", NULL, "cat /etc/hostname; id -u; pwd; echo \"[$A]\"",
		  0, "box2\n0\n/tmp\n[]\n");
	EXPECT_EQ("and back",
		  send_init(v, "box", ",\"envVars\":{\"A\":\"sandbox\",\"B\":\"sandbox\"}"), 204);
}

static void exits(struct vm *v)
{
	struct run *r = run_sh(v, NULL, "echo out; echo err >&2; exit 3");

	expect_run("exit 3", r, 3, "out\n");
	EXPECT_STR("stderr", r->out[1], "err\n");
	EXPECT("exited", r->exited);
	EXPECT_STR("status", r->status, "exit status 3");
	EXPECT_STR("error", r->error, "exit status 3");
	run_free(r);

	r = run_sh(v, NULL, "exit 0");
	expect_run("exit 0", r, 0, "");
	EXPECT_STR("status", r->status, "exit status 0");
	EXPECT("no error", !r->error);
	run_free(r);

	r = run_sh(v, NULL, "kill -9 $$");
	expect_run("killed", r, -1, "");
	EXPECT("not exited", !r->exited);
	EXPECT_STR("status", r->status, "signal: killed");
	run_free(r);

	r = run_sh(v, NULL, "ulimit -c unlimited; cd /tmp; kill -SEGV $$");
	expect_run("core", r, -1, "");
	EXPECT_STR("status", r->status, "signal: segmentation fault (core dumped)");
	run_free(r);
}

static void environment(struct vm *v)
{
	const struct run_options o = {.more = "\"envs\":{\"B\":\"request\",\"HOME\":\"/h\"}"};
	const struct run_options path = {.more = "\"envs\":{\"PATH\":\"bin:/opt\"}"};

	expect_sh(v, "order of the environment", &o, "echo $PATH $HOME $USER $LOGNAME $A $B", 0,
		  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /h user user "
		  "sandbox request\n");
	expect_sh(v, "sandbox variables", NULL,
		  "echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID", 0, "true i123 base\n");
	struct run *r = run_start(v, NULL, "echo", (const char *const[]){"found", NULL});
	expect_run("found in PATH", r, 0, "found\n");
	run_free(r);
	expect_error("the request's PATH counts", run_start(v, &path, "echo", NULL),
		     "invalid_argument", "exec: \"echo\": executable file not found in $PATH");
	expect_error("no such command", run_start(v, NULL, "nonesuch", NULL), "invalid_argument",
		     "exec: \"nonesuch\": executable file not found in $PATH");
	expect_error("no such path", run_start(v, NULL, "/none/such", NULL), "invalid_argument",
		     "fork/exec /none/such: no such file or directory");
	expect_error("not executable", run_start(v, NULL, "/etc/passwd", NULL), "invalid_argument",
		     "fork/exec /etc/passwd: permission denied");
}

static void users(struct vm *v)
{
	const struct run_options root = {.user = "root"};
	const struct run_options nobody = {.user = "ghost"};

	expect_sh(v, "the default user", NULL, "id", 0,
		  "uid=1000(user) gid=1000(user) groups=1000(user),2000(extra)\n");
	expect_sh(v, "root", &root, "id -u; echo $HOME; pwd", 0, "0\n/root\n/root\n");
	expect_error("unknown", run_sh(v, &nobody, "id"), "unauthenticated",
		     "invalid username: 'ghost'");
	expect_sh(v, "no capability stays", NULL, "grep CapEff /proc/self/status", 0,
		  "CapEff:\t0000000000000000\n");
	expect_sh(v, "oom_score_adj is not init's", NULL, "cat /proc/self/oom_score_adj", 0, "0\n");
	expect_sh(v, "no descriptor but the three", NULL, "ls /proc/self/fd | wc -l", 0, "4\n");
	expect_sh(v, "no signal blocked or ignored", NULL,
		  "grep -E 'Sig(Blk|Ign)' /proc/self/status | grep -c 0000000000000000", 0, "2\n");
}

static void directories(struct vm *v)
{
	const struct run_options tmp = {.more = "\"cwd\":\"/tmp\""};
	const struct run_options relative = {.more = "\"cwd\":\"sub\""};
	const struct run_options home = {.more = "\"cwd\":\"~/sub\""};
	const struct run_options none = {.more = "\"cwd\":\"/none\""};
	const struct run_options closed = {.more = "\"cwd\":\"/root\""};

	expect_sh(v, "home", NULL, "mkdir -p sub; pwd", 0, "/home/user\n");
	expect_sh(v, "absolute", &tmp, "pwd", 0, "/tmp\n");
	expect_sh(v, "relative to home", &relative, "pwd", 0, "/home/user/sub\n");
	expect_sh(v, "~", &home, "pwd", 0, "/home/user/sub\n");
	expect_error("missing", run_sh(v, &none, "pwd"), "invalid_argument",
		     "cwd '/none' does not exist");
	expect_error("closed to the user", run_sh(v, &closed, "pwd"), "invalid_argument",
		     "chdir /root: permission denied");
}

static void world(struct vm *v)
{
	const struct run_options root = {.user = "root"};

	expect_sh(v, "only lo, and up", NULL, "ls /sys/class/net; cat /sys/class/net/lo/flags", 0,
		  "lo\n0x9\n");
	expect_sh(v, "what Debian expects", NULL,
		  "for d in /proc /sys /dev /dev/pts /dev/shm /dev/mqueue /run /sys/fs/cgroup; do"
		  " grep -q \" $d \" /proc/mounts || echo no $d; done; [ -k /tmp ] && echo x > "
		  "/tmp/x && "
		  "echo x > /dev/shm/x && [ -e /dev/fd/0 ] && echo good",
		  0, "good\n");
	expect_sh(v, "the initramfs is not to be seen", &root,
		  "ls -d /modules /sysroot /cgroup 2>/dev/null", 1, "");
	expect_sh(v, "user namespaces work", NULL, "unshare -U -r id -u", 0, "0\n");
	expect_sh(v, "own cgroup", NULL, "cat /proc/self/cgroup | grep -c '^0::/[0-9]*$'", 0,
		  "1\n");
	expect_sh(
		v, "limits of /user cannot be raised", &root,
		"mkdir -p /sys/fs/cgroup/mine && [ ! -e /sys/fs/cgroup/memory.max ] && echo closed;"
		"rmdir /sys/fs/cgroup/mine",
		0, NULL);
	expect_sh(v, "root cannot end init by accident", &root,
		  "kill -TERM 1; kill -KILL 1; echo on", 0, "on\n");
	expect_sh(v, "own session and group", NULL,
		  "[ $(cut -d' ' -f5,6 /proc/$$/stat | tr ' ' =) = $$=$$ ]", 0, "");
}

static void input(struct vm *v)
{
	const struct run_options with = {.outer = "\"stdin\":true"};
	const struct run_options without = {.outer = "\"stdin\":false"};
	AUTO(str_drop) char *big = xcalloc(4 * MIB, 1);
	AUTO(str_drop) char *body = NULL;
	struct run *r = run_sh(v, &with, "cat");

	CHECK(run_started(r, RUN_MS));
	EXPECT_EQ("input",
		  call(v, "SendInput",
		       "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"aGVsbG8K\"}}", r->pid),
		  200);
	CHECK(run_has(r, "hello", RUN_MS));
	EXPECT_EQ("a terminal's",
		  call(v, "SendInput", "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"aA==\"}}",
		       r->pid),
		  400);
	EXPECT_EQ("close", call(v, "CloseStdin", "{\"process\":{\"pid\":%d}}", r->pid), 200);
	expect_run("cat sees the end", r, 0, "hello\n");
	run_free(r);

	expect_sh(v, "no stdin", &without, "cat", 0, "");

	r = run_sh(v, &with, "exec 0<&-; echo closed; sleep 20");
	CHECK(run_has(r, "closed", RUN_MS));
	EXPECT_EQ("a broken pipe is reported",
		  call(v, "SendInput", "{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"aA==\"}}",
		       r->pid),
		  400);
	EXPECT_EQ("kill",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}",
		       r->pid),
		  200);
	expect_run("killed", r, -1, NULL);
	run_free(r);

	/* More than a pipe holds, to one that reads late. */
	r = run_sh(v, &with, "sleep 1; wc -c");
	CHECK(run_started(r, RUN_MS));
	memset(big, 'A', 4 * MIB / 2);
	body = xasprintf("{\"process\":{\"pid\":%d},\"input\":{\"stdin\":\"%s\"}}", r->pid, big);
	EXPECT_EQ("large input", vm_call(v, "POST", "/process.Process/SendInput", body, NULL), 200);
	EXPECT_EQ("close", call(v, "CloseStdin", "{\"process\":{\"pid\":%d}}", r->pid), 200);
	expect_run("all of it arrived", r, 0, "1572864\n");
	run_free(r);
}

static void signals(struct vm *v)
{
	struct run *r = run_sh(
		v, NULL, "trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.1; done");

	CHECK(run_has(r, "ready", RUN_MS));
	EXPECT_EQ("SIGTERM",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGTERM\"}",
		       r->pid),
		  200);
	expect_run("handled", r, 7, "ready\nterm\n");
	EXPECT_EQ("ended",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}",
		       r->pid),
		  404);
	EXPECT_EQ("never was",
		  call(v, "SendSignal",
		       "{\"process\":{\"pid\":99999},\"signal\":\"SIGNAL_SIGKILL\"}"),
		  404);
	EXPECT_EQ("init is none",
		  call(v, "SendSignal", "{\"process\":{\"pid\":1},\"signal\":\"SIGNAL_SIGKILL\"}"),
		  404);
	run_free(r);

	r = run_sh(v, NULL, "sleep 1000 & echo ready; wait");
	CHECK(run_has(r, "ready", RUN_MS));
	EXPECT_EQ("SIGKILL",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}",
		       r->pid),
		  200);
	expect_run("killed", r, -1, NULL);
	run_free(r);
	expect_sh(v, "the whole group", NULL, "ps | grep -c '[s]leep 1000'", 1, "0\n");
}

static void timeouts(struct vm *v)
{
	const struct run_options o = {.timeout_ms = "700"};
	struct run *r = run_sh(v, &o, "sleep 1001 & echo ready; sleep 1001");
	struct run *other;
	AUTO(str_drop) char *selector = NULL;

	CHECK(run_started(r, RUN_MS));
	selector = xasprintf("\"pid\":%d", r->pid);
	other = run_connect(v, NULL, selector);
	CHECK(run_wait(r, RUN_MS));
	EXPECT_STR("the time is over", r->code, "deadline_exceeded");
	EXPECT("no exit was seen", !r->has_end);
	CHECK(run_wait(other, RUN_MS));
	EXPECT_STR("others see how it ended", other->status, "signal: killed");
	run_free(r);
	run_free(other);
	expect_sh(v, "the whole group", NULL, "ps | grep -c '[s]leep 1001'", 1, "0\n");

	/* Of Connect it ends the stream only. */
	r = run_sh(v, NULL, "sleep 1002");
	CHECK(run_started(r, RUN_MS));
	mem_drop(&selector);
	selector = xasprintf("\"pid\":%d", r->pid);
	other = run_connect(v, &o, selector);
	CHECK(run_wait(other, RUN_MS));
	EXPECT_STR("Connect's", other->code, "deadline_exceeded");
	EXPECT_EQ("it still runs",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}",
		       r->pid),
		  200);
	CHECK(run_wait(r, RUN_MS));
	run_free(other);
	run_free(r);
}

static void listing(struct vm *v)
{
	const struct run_options o = {.outer = "\"tag\":\"mine\"",
				      .more = "\"cwd\":\"/tmp\",\"envs\":{\"X\":\"y\"}"};
	struct run *r = run_start(v, &o, "sleep", (const char *const[]){"1003", NULL});
	AUTO(json_drop) json_t *list = NULL;
	const json_t *p;
	AUTO(str_drop) char *text = NULL;
	AUTO(str_drop) char *want = NULL;

	CHECK(run_started(r, RUN_MS));
	EXPECT_EQ("list", vm_call(v, "POST", "/process.Process/List", "{}", &list), 200);
	p = json_array_get(json_object_get(list, "processes"), 0);
	EXPECT_EQ("one", json_array_size(json_object_get(list, "processes")), 1);
	text = json_dumps(p, JSON_SORT_KEYS | JSON_COMPACT);
	want = xasprintf("{\"config\":{\"args\":[\"1003\"],\"cmd\":\"sleep\",\"cwd\":\"/"
			 "tmp\",\"envs\":{\"X\":\"y\"}},"
			 "\"pid\":%d,\"tag\":\"mine\"}",
			 r->pid);
	EXPECT_STR("what it says", text, want);
	EXPECT_EQ("by tag",
		  call(v, "SendSignal",
		       "{\"process\":{\"tag\":\"mine\"},\"signal\":\"SIGNAL_SIGKILL\"}"),
		  200);
	CHECK(run_wait(r, RUN_MS));
	run_free(r);
	json_drop(&list);
	EXPECT_EQ("list", vm_call(v, "POST", "/process.Process/List", "{}", &list), 200);
	EXPECT_EQ("none", json_array_size(json_object_get(list, "processes")), 0);
}

static void connecting(struct vm *v)
{
	const struct run_options tagged = {.outer = "\"tag\":\"c\",\"stdin\":true"};
	const struct run_options from0 = {.after = "0"};
	const struct run_options from4 = {.after = "4"};
	struct run *r = run_sh(v, &tagged, "echo one; read x; echo two; exit 4");
	struct run *c;

	CHECK(run_has(r, "one", RUN_MS));
	c = run_connect(v, NULL, "\"tag\":\"c\"");
	CHECK(run_started(c, RUN_MS));
	EXPECT_EQ("the same process", c->pid, r->pid);
	EXPECT_EQ("from the newest byte", c->reply->seq, 4);
	run_free(r); /* the client goes away: the process goes on */
	EXPECT_EQ("input",
		  call(v, "SendInput",
		       "{\"process\":{\"tag\":\"c\"},\"input\":{\"stdin\":\"Cg==\"}}"),
		  200);
	expect_run("the rest", c, 4, "two\n");
	run_free(c);

	c = run_connect(v, NULL, "\"tag\":\"c\"");
	expect_run("after the exit", c, 4, "");
	run_free(c);
	c = run_connect(v, &from0, "\"tag\":\"c\"");
	expect_run("from the beginning", c, 4, "one\ntwo\n");
	EXPECT_EQ("nothing is gone", c->reply->gap, 0);
	run_free(c);
	c = run_connect(v, &from4, "\"tag\":\"c\"");
	expect_run("from the middle", c, 4, "two\n");
	run_free(c);
	expect_error("no such tag", run_connect(v, NULL, "\"tag\":\"x\""), "not_found",
		     "process with tag x not found");
	expect_error("no such pid", run_connect(v, NULL, "\"pid\":99999"), "not_found",
		     "process with pid 99999 not found");
}

static void dropped_output(struct vm *v)
{
	const struct run_options tagged = {.outer = "\"tag\":\"d\",\"stdin\":true"};
	const struct run_options from0 = {.after = "0"};
	/* Nobody listens: the process must run to its end all the same. */
	struct run *r =
		run_sh(v, &tagged, "echo ready; read x; head -c 3000000 /dev/zero; echo end");
	struct run *c;

	CHECK(run_has(r, "ready", RUN_MS));
	run_free(r);
	EXPECT_EQ("go",
		  call(v, "SendInput",
		       "{\"process\":{\"tag\":\"d\"},\"input\":{\"stdin\":\"Cg==\"}}"),
		  200);
	c = run_connect(v, NULL, "\"tag\":\"d\"");
	CHECK(run_wait(c, RUN_MS));
	EXPECT_EQ("it ended", c->exit_code, 0);
	run_free(c);
	c = run_connect(v, &from0, "\"tag\":\"d\"");
	CHECK(run_wait(c, RUN_MS));
	EXPECT_EQ("what is gone and what came are all", c->reply->gap + c->total, 3000000 + 6 + 4);
	EXPECT("the newest bytes", c->out[0] && strcmp(c->out[0] + c->out_n[0] - 4, "end\n") == 0);
	EXPECT("as much as the ring holds", c->total > 200000 && c->total <= 262144);
	run_free(c);
}

static void daemons(struct vm *v)
{
	uint64_t begin = clock_mono_ns();

	expect_sh(v, "a daemon holds the pipe", NULL, "(sleep 1004; echo late) & echo done", 0,
		  "done\n");
	EXPECT("the end comes soon", clock_mono_ns() - begin < 20 * NS_PER_S);
	expect_sh(v, "and the daemon lives", NULL, "ps | grep -c '[s]leep 1004$'", 0, "1\n");
	expect_sh(v, "output of a child after the exit", NULL,
		  "(sleep 0.1; echo child) & echo parent", 0, "parent\nchild\n");
	expect_sh(v, "it writes on without SIGPIPE", NULL,
		  "(sleep 2; echo x; echo alive > /tmp/alive) & true", 0, "");
	expect_sh(v, "it did", NULL,
		  "for i in $(seq 100); do [ -e /tmp/alive ] && break; sleep 0.1; done; cat "
		  "/tmp/alive",
		  0, "alive\n");
	expect_sh(v, "orphans are reaped", NULL,
		  "for i in $(seq 20); do (true &); done; sleep 0.5; ps -o stat | grep -c Z", 1,
		  "0\n");
	expect_sh(v, "leaves go", &(struct run_options){.user = "root"},
		  "killall sleep; for i in $(seq 50); do n=$(ls -d /sys/fs/cgroup/[0-9]* | wc -l); "
		  "[ $n -le 2 ] && break;"
		  " sleep 0.1; done; echo $n",
		  0, "2\n");
}

static void keepalives(struct vm *v)
{
	const struct run_options o = {.keepalive = "1"};
	struct run *r = run_sh(v, &o, "sleep 3.5; echo done");

	expect_run("keep-alives", r, 0, "done\n");
	EXPECT("two to four", r->n_keepalive >= 2 && r->n_keepalive <= 4);
	run_free(r);
}

static void terminals(struct vm *v)
{
	const struct run_options o = {.outer = "\"pty\":{\"size\":{\"cols\":91,\"rows\":17}}"};
	struct run *r = run_sh(v, &o,
			       "tty; stty size; [ -t 0 ] && [ -t 2 ] && echo both; read x; stty "
			       "size; echo got-$x");

	CHECK(run_has(r, "both", RUN_MS));
	EXPECT("it has a name and its size",
	       strstr(r->out[2], "/dev/pts/") && strstr(r->out[2], "17 91"));
	EXPECT_EQ("resize",
		  call(v, "Update",
		       "{\"process\":{\"pid\":%d},\"pty\":{\"size\":{\"cols\":100,\"rows\":40}}}",
		       r->pid),
		  200);
	EXPECT_EQ("type",
		  call(v, "SendInput", "{\"process\":{\"pid\":%d},\"input\":{\"pty\":\"aGkK\"}}",
		       r->pid),
		  200);
	CHECK(run_wait(r, RUN_MS));
	EXPECT("the new size, the input",
	       strstr(r->out[2], "40 100") && strstr(r->out[2], "got-hi"));
	EXPECT_EQ("code", r->exit_code, 0);
	run_free(r);
}

static void slow_reader(struct vm *v)
{
	const struct run_options o = {.is_held = true, .is_counted = true};
	struct run *r = run_sh(v, &o, "head -c 200000000 /dev/zero; echo x > /tmp/flood-done");
	json_int_t before = stat_of(v, "initRssBytes");
	uint64_t at;

	CHECK(run_started(r, RUN_MS));
	expect_sh(v, "others are not held back", NULL, "echo quick", 0, "quick\n");
	expect_sh(v, "the flood waits", NULL, "sleep 2; ls /tmp/flood-done 2>/dev/null", 1, "");
	at = r->total;
	EXPECT("one window, no more", at < 1024 * 1024);
	EXPECT("memory is flat", stat_of(v, "initRssBytes") < before + 2 * MIB);
	vm_reply_release(r->reply);
	CHECK(run_wait(r, 4 * RUN_MS));
	EXPECT_EQ("every byte", r->total, 200000000);
	EXPECT_EQ("code", r->exit_code, 0);
	EXPECT("memory is flat", stat_of(v, "initRssBytes") < before + 2 * MIB);
	run_free(r);
}

static void many_short(struct vm *v)
{
	json_int_t before;

	for (unsigned i = 0; i < 30; i++)
		expect_sh(v, "warm", NULL, "exit 0", 0, "");
	before = stat_of(v, "initRssBytes");
	for (unsigned i = 0; i < 300; i++)
		expect_sh(v, "short", NULL, "echo x", 0, "x\n");
	EXPECT("memory grows by the records only", stat_of(v, "initRssBytes") < before + 6 * MIB);
}

static void fork_bomb(struct vm *v)
{
	struct run *r = run_sh(v, NULL, "b() { b | b & }; b; echo armed; sleep 1000");
	uint64_t begin;

	CHECK(run_started(r, RUN_MS));
	expect_sh(v, "let it grow", NULL, "sleep 3", 0, "");
	begin = clock_mono_ns();
	expect_sh(v, "an exec answers", NULL, "echo alive", 0, "alive\n");
	EXPECT("within seconds", clock_mono_ns() - begin < 15 * NS_PER_S);
	printf("exec under a fork bomb: %" PRIu64 " ms, %lld processes\n",
	       (clock_mono_ns() - begin) / NS_PER_MS, (long long)stat_of(v, "processes"));
	EXPECT_EQ("kill",
		  call(v, "SendSignal", "{\"process\":{\"pid\":%d},\"signal\":\"SIGNAL_SIGKILL\"}",
		       r->pid),
		  200);
	CHECK(run_wait(r, RUN_MS));
	run_free(r);
}

static void memory_hog(struct vm *v)
{
	struct run *r = run_sh(v, NULL, "tail /dev/zero");
	uint64_t begin;

	CHECK(run_started(r, RUN_MS));
	begin = clock_mono_ns();
	expect_sh(v, "an exec answers", NULL, "echo alive", 0, "alive\n");
	EXPECT("within seconds", clock_mono_ns() - begin < 15 * NS_PER_S);
	CHECK(run_wait(r, 2 * RUN_MS));
	EXPECT_STR("the hog is killed", r->status, "signal: killed");
	run_free(r);
	expect_sh(v, "and all is well", NULL, "echo well", 0, "well\n");
}

static void bad_requests(struct vm *v)
{
	static const struct header stream[HEADERS_MAX] = {
		{"content-type", "application/connect+json"}};
	static const struct header timeout[HEADERS_MAX] = {{"connect-timeout-ms", "x"}};
	static const uint8_t compressed[] = {1, 0, 0, 0, 2, '{', '}'};
	static const uint8_t longer[] = {0, 0, 0, 0, 3, '{', '}'};
	AUTO(str_drop) char *big = xcalloc(4 * MIB + 8, 1);
	struct reply *r =
		vm_send(v, "POST", "/process.Process/Start", stream, compressed, sizeof compressed);

	CHECK(vm_reply_wait(v, r, RUN_MS));
	EXPECT("a compressed envelope",
	       r->n > 5 && strstr((char *)r->body + 5, "invalid_argument"));
	vm_reply_free(r);
	r = vm_send(v, "POST", "/process.Process/Start", stream, longer, sizeof longer);
	CHECK(vm_reply_wait(v, r, RUN_MS));
	EXPECT("a cut envelope", r->n > 5 && strstr((char *)r->body + 5, "invalid_argument"));
	vm_reply_free(r);
	r = vm_send(v, "POST", "/process.Process/List", timeout, "{}", 2);
	CHECK(vm_reply_wait(v, r, RUN_MS));
	EXPECT_EQ("a bad header", r->status, 400);
	vm_reply_free(r);
	memset(big, ' ', 4 * MIB + 6);
	r = vm_send(v, "POST", "/process.Process/List", NULL, big, 4 * MIB + 6);
	EXPECT("a message over 4 MiB", vm_reply_wait(v, r, RUN_MS) && r->status == 429);
	vm_reply_free(r);
	EXPECT_EQ("no JSON", call(v, "List", "[]"), 400);
}

static void wake_again(struct vm *v)
{
	/* The front of an HTTP/2 frame: what a restored guest finds of its old session. */
	static const uint8_t half_frame[] = {0, 0x40, 0,   0,   0,   0,   0,  0,
					     1, 'S',  'P', 'A', 'C', 'E', 'P'};
	const struct run_options tagged = {.outer = "\"tag\":\"w\",\"stdin\":true"};
	struct run *r = run_sh(v, &tagged, "echo before; read x; echo after; exit 5");
	struct run *c;

	CHECK(run_has(r, "before", RUN_MS));
	vm_drop_sessions(v);
	EXPECT("the stream was cut", r->reply->is_closed && !r->is_over);
	run_free(r);
	vm_garbage(v, half_frame, sizeof half_frame);
	CHECK(vm_wake(v));
	EXPECT_EQ("a new session", vm_call(v, "GET", "/health", NULL, NULL), 204);
	c = run_connect(v, NULL, "\"tag\":\"w\"");
	CHECK(run_started(c, RUN_MS));
	EXPECT_EQ("input",
		  call(v, "SendInput",
		       "{\"process\":{\"tag\":\"w\"},\"input\":{\"stdin\":\"Cg==\"}}"),
		  200);
	expect_run("the process went on", c, 5, "after\n");
	run_free(c);
	for (unsigned i = 0; i < 5; i++)
		CHECK(vm_wake(v));
	EXPECT_EQ("after many wakes", vm_call(v, "GET", "/health", NULL, NULL), 204);
}

static void statistics(struct vm *v)
{
	EXPECT("memTotal", stat_of(v, "memTotal") > 400 * (json_int_t)MIB);
	EXPECT("memUsed", stat_of(v, "memUsed") > 0);
	EXPECT("diskTotal", stat_of(v, "diskTotal") > 10 * (json_int_t)MIB);
	EXPECT("diskUsed", stat_of(v, "diskUsed") > 0);
	EXPECT_EQ("cpuCount", stat_of(v, "cpuCount"), 1);
	EXPECT("uptimeNs", stat_of(v, "uptimeNs") > 0);
	printf("init RSS: %lld KiB\n", (long long)stat_of(v, "initRssBytes") / 1024);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Figures, not limits: an emulated guest on a busy machine proves nothing about time. */
static void speed(struct vm *v)
{
	uint64_t start_us[SPEED_RUNS];
	uint64_t all_us[SPEED_RUNS];
	uint64_t begin;

	for (unsigned i = 0; i < SPEED_RUNS; i++) {
		struct run *r;

		begin = clock_mono_ns();
		r = run_start(v, NULL, "/bin/true", NULL);
		CHECK(run_started(r, RUN_MS));
		start_us[i] = (clock_mono_ns() - begin) / 1000;
		expect_run("true", r, 0, "");
		all_us[i] = (clock_mono_ns() - begin) / 1000;
		run_free(r);
	}
	qsort(start_us, SPEED_RUNS, sizeof *start_us, by_value);
	qsort(all_us, SPEED_RUNS, sizeof *all_us, by_value);
	printf("exec true, median us: start event %" PRIu64 ", end %" PRIu64 "\n",
	       start_us[SPEED_RUNS / 2], all_us[SPEED_RUNS / 2]);
	begin = clock_mono_ns();
	for (unsigned i = 0; i < SPEED_RUNS; i++)
		EXPECT_EQ("health", vm_call(v, "GET", "/health", NULL, NULL), 204);
	printf("/health: %" PRIu64 " us\n", (clock_mono_ns() - begin) / 1000 / SPEED_RUNS);
	begin = clock_mono_ns();
	EXPECT_EQ("init", send_init(v, "box", ",\"envVars\":{\"A\":\"sandbox\",\"B\":\"sandbox\"}"),
		  204);
	printf("/space/init: %" PRIu64 " us\n", (clock_mono_ns() - begin) / 1000);
	begin = clock_mono_ns();
	expect_sh(v, "raw", NULL,
		  "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do busybox true; "
		  "done",
		  0, "");
	printf("20 times fork and exec by a shell: %" PRIu64 " us each\n",
	       (clock_mono_ns() - begin) / 20000);
}

/* A root with one static program and nothing else. */
static void bare_root(const struct vm_files *files)
{
	struct vm *v = vm_start(files, 256);
	const struct run_options root = {.user = "root"};
	struct run *r;

	if (EXPECT("it boots", vm_wake(v))) {
		EXPECT_EQ("init", send_init(v, "bare", ""), 204);
		r = run_start(v, &root, "/busybox", (const char *const[]){"id", "-u", NULL});
		expect_run("root is uid 0", r, 0, "0\n");
		run_free(r);
		r = run_start(v, &root, "/busybox",
			      (const char *const[]){
				      "sh", "-c", "pwd; echo $HOME; cat /proc/sys/kernel/hostname",
				      NULL});
		expect_run("its home is /", r, 0, "/\n/\nbare\n");
		run_free(r);
		expect_error("no other user is invented", run_start(v, NULL, "/busybox", NULL),
			     "unauthenticated", "invalid username: 'user'");
		EXPECT_EQ("power off", vm_call(v, "POST", "/space/poweroff", NULL, NULL), 204);
		EXPECT("the machine ends", vm_gone(v, 30000));
	}
	vm_kill(v);
}

/* What is not a file system: one clear line, and the machine ends. */
static void broken_disk(const struct vm_files *files)
{
	struct vm_files bad = *files;
	AUTO(str_drop) char *text = NULL;
	AUTO(fd_drop) int fd = -1;
	size_t n = 0;
	struct vm *v;

	bad.disk = files->kernel;
	v = vm_start(&bad, 256);
	EXPECT("a machine that cannot boot ends", vm_gone(v, 120000));
	fd = open(bad.console, O_RDONLY | O_CLOEXEC);
	EXPECT_EQ("says so", fd_slurp(fd, MIB, &text, &n), 0);
	if (!EXPECT("in one clear line", text && strstr(text, BROKEN_DISK)))
		printf("  %s\n", text ? text : "");
	vm_kill(v);
}

static const struct {
	const char *name;
	void (*run)(struct vm *v);
} cases[] = {
	{"before_init", before_init},
	{"identity", identity},
	{"identity_again", identity_again},
	{"exits", exits},
	{"environment", environment},
	{"users", users},
	{"directories", directories},
	{"world", world},
	{"input", input},
	{"signals", signals},
	{"timeouts", timeouts},
	{"listing", listing},
	{"connecting", connecting},
	{"dropped_output", dropped_output},
	{"daemons", daemons},
	{"keepalives", keepalives},
	{"terminals", terminals},
	{"bad_requests", bad_requests},
	{"statistics", statistics},
	{"speed", speed},
	{"wake_again", wake_again},
	{"slow_reader", slow_reader},
	{"many_short", many_short},
	{"fork_bomb", fork_bomb},
	{"memory_hog", memory_hog},
};

int main(int argc, char **argv)
{
	struct vm_files files;
	struct vm *v;

	const char *only = argc > 6 ? argv[6] : NULL;

	if (argc < 6)
		return test_skip("usage: guest-test KERNEL INITRD DISK ONE_DISK CONSOLE [CASE]");
	files = (struct vm_files){argv[1], argv[2], argv[3], argv[5]};
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (only && strcmp(only, "broken_disk") == 0) {
		broken_disk(&files);
		return test_done();
	}
	v = vm_start(&files, 512);
	if (EXPECT("the guest answers", vm_wake(v)))
		for (size_t i = 0; i < ARRAY_LEN(cases) && EXPECT("a session", vm_has_session(v));
		     i++)
			if (!only || strcmp(only, cases[i].name) == 0 || cases[i].run == identity)
				cases[i].run(v);
	vm_kill(v);
	if (only)
		return test_done();
	files.disk = argv[4];
	bare_root(&files);
	broken_disk(&files);
	return test_done();
}
