/* The table of processes and each one's life: see process.h. */
#include "init/process.h"

#include "base/alloc.h"
#include "init/limits.h"
#include "init/userspace.h"
#include "net/loop.h"
#include "os/fd.h"

#include <errno.h>
#include <signal.h>

#define BUDGET_MIN   (8u * 1024 * 1024)
#define BUDGET_MAX   (64u * 1024 * 1024)
#define SWEEP_MS     1000
#define LEAF_REST_MS 200                    /* from a start to making the next one's cgroup */
#define FAILURE_SIZE (4 * LAUNCH_ERROR_MAX) /* a record, escaped */

struct process {
	struct processes *ps;
	struct process *next;
	struct process **at; /* the pointer that points here */
	enum process_state state;
	pid_t pid;
	bool has_exited; /* reaped: pid is no longer ours */
	bool timed_out;
	bool is_expired; /* a record past its time, kept because someone still holds its pipes */
	struct leaf leaf;
	struct start_request request; /* dropped when ended */
	size_t charged;
	char *tag;
	struct output output;
	struct input input;
	int master; /* of the terminal, owned by `output`; -1: none */
	struct exit_status status;
	struct timer *deadline; /* Connect-Timeout-Ms */
	struct timer *timer;    /* EXIT_DRAIN_MS, then RECORD_KEEP_MS */
	int error_fd;
	struct watch *error_watch;
	uint8_t *error; /* LAUNCH_ERROR_MAX bytes while error_fd is open */
	size_t error_n;
	enum connect_code failure;
	char *failure_text; /* PROCESS_FAILED */
};

static void process_step(struct process *p);

static void sweep(void *arg)
{
	struct processes *ps = arg;

	if (cgroups_sweep(ps->cgroups))
		timer_set(ps->sweep, SWEEP_MS);
}

static void prepare_leaf(void *arg)
{
	cgroups_prepare(arg);
}

void processes_init(struct processes *ps, struct loop *l, struct cgroups *c,
		    const struct userspace *u, uint64_t ram_bytes)
{
	uint64_t share = ram_bytes / 16;

	share = share < BUDGET_MIN ? BUDGET_MIN : u64_min(share, BUDGET_MAX);
	*ps = (struct processes){.loop = l, .cgroups = c, .userspace = u};
	budget_init(&ps->bytes, (size_t)share);
	budget_init(&ps->rings, (size_t)share);
	ps->sweep = timer_new(l, sweep, ps);
	ps->prepare = timer_new(l, prepare_leaf, c);
	cgroups_prepare(c);
}

static void list_add(struct process **list, struct process *p)
{
	p->next = *list;
	p->at = list;
	if (p->next)
		p->next->at = &p->next;
	*list = p;
}

static void list_remove(struct process *p)
{
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
}

static void drop_request(struct process *p)
{
	start_request_done(&p->request);
	budget_give(&p->ps->bytes, p->charged);
	p->charged = 0;
}

static void process_free(struct process *p)
{
	struct processes *ps = p->ps;
	bool is_live = p->state != PROCESS_ENDED;

	list_remove(p);
	ps->n_live -= is_live;
	ps->n_records -= !is_live;
	drop_request(p);
	input_shut(&p->input);
	output_done(&p->output);
	watch_free(p->error_watch);
	fd_drop(&p->error_fd);
	mem_drop(&p->error);
	mem_drop(&p->failure_text);
	timer_free(p->deadline);
	timer_free(p->timer);
	mem_drop(&p->tag);
	free(p);
}

/* Frees what nobody needs any more. True: p is gone. */
static bool process_retire(struct process *p)
{
	bool is_over = p->state == PROCESS_FAILED ? p->has_exited
						  : p->state == PROCESS_ENDED && p->is_expired &&
							    output_is_shut(&p->output);

	if (!is_over || p->output.readers)
		return false;
	process_free(p);
	return true;
}

/* The oldest record that nobody reads makes room; those that are read are bounded by
 * SUBSCRIBERS_MAX. */
static void records_trim(struct processes *ps)
{
	struct process *oldest = NULL;

	if (ps->n_records <= RECORDS_MAX)
		return;
	for (struct process *p = ps->records; p; p = p->next)
		if (!p->output.readers)
			oldest = p;
	if (oldest)
		process_free(oldest);
}

static void on_timer(void *arg)
{
	struct process *p = arg;

	if (p->state == PROCESS_ENDED) {
		p->is_expired = true;
		(void)process_retire(p);
	} else {
		output_close_soon(&p->output);
		process_step(p);
	}
}

static void on_deadline(void *arg)
{
	struct process *p = arg;

	p->timed_out = true;
	(void)process_signal(p, SIGKILL); /* it may have ended this very moment */
	output_notify(&p->output);
}

static void process_end(struct process *p)
{
	struct processes *ps = p->ps;

	p->state = PROCESS_ENDED;
	list_remove(p);
	ps->n_live--;
	list_add(&ps->records, p);
	ps->n_records++;
	timer_free(p->deadline);
	p->deadline = NULL;
	timer_set(p->timer, RECORD_KEEP_MS);
	drop_request(p);
	ring_trim(&p->output.ring);
	output_drop(&p->output);
	output_notify(&p->output);
	records_trim(ps);
}

/* The error record is whole. */
static void process_launched(struct process *p)
{
	char *text = xcalloc(FAILURE_SIZE, 1);

	p->failure = launch_error_parse(p->error, p->error_n, text, FAILURE_SIZE);
	mem_drop(&p->error);
	if (p->failure == CONNECT_OK)
		mem_drop(&text);
	p->failure_text = text;
	p->state = p->failure == CONNECT_OK ? PROCESS_RUNNING : PROCESS_FAILED;
	output_notify(&p->output);
}

/* The one place where states change, from what has become known. */
static void process_step(struct process *p)
{
	if (p->state == PROCESS_STARTING && p->error_fd < 0)
		process_launched(p);
	if (p->state == PROCESS_RUNNING && p->has_exited && output_is_done(&p->output))
		process_end(p);
	else
		(void)process_retire(p);
}

static void on_output_done(void *arg)
{
	process_step(arg);
}

static void on_error_record(void *arg, int events)
{
	struct process *p = arg;
	ssize_t n = read(p->error_fd, p->error + p->error_n, LAUNCH_ERROR_MAX - p->error_n);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		p->error_n += (size_t)n;
	if (n > 0 && p->error_n < LAUNCH_ERROR_MAX)
		return;
	watch_free(p->error_watch);
	p->error_watch = NULL;
	fd_drop(&p->error_fd);
	process_step(p);
}

static struct process *process_new(struct processes *ps, const struct launched *c,
				   struct start_request *q, const struct leaf *leaf)
{
	struct process *p = xcalloc(1, sizeof *p);

	p->ps = ps;
	p->pid = c->pid;
	p->leaf = *leaf;
	p->request = *q;
	*q = (struct start_request){0};
	p->charged = p->request.bytes;
	p->tag = xstrdup(p->request.tag);
	p->master = p->request.has_pty ? c->out : -1;
	output_init(&p->output, &ps->rings, on_output_done, p);
	output_add(&p->output, ps->loop, c->out, p->master >= 0 ? RING_PTY : RING_STDOUT);
	if (c->err >= 0)
		output_add(&p->output, ps->loop, c->err, RING_STDERR);
	input_init(&p->input, &ps->bytes);
	if (c->in >= 0)
		input_open(&p->input, ps->loop, c->in);
	p->error_fd = c->error;
	p->error = xcalloc(LAUNCH_ERROR_MAX, 1);
	p->error_watch = watch_new(ps->loop, c->error, on_error_record, p);
	watch_set(p->error_watch, WATCH_READ);
	p->timer = timer_new(ps->loop, on_timer, p);
	p->deadline = timer_new(ps->loop, on_deadline, p);
	list_add(&ps->live, p);
	ps->n_live++;
	return p;
}

/* What the world refuses for want of something is the caller's to retry; the rest is ours. */
static enum connect_code code_of(int err)
{
	bool is_scarce = err == -EAGAIN || err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
			 err == -ENOSPC || err == -EBUSY;

	return is_scarce ? CONNECT_RESOURCE_EXHAUSTED : CONNECT_INTERNAL;
}

static enum connect_code admit(const struct processes *ps, struct fail *f)
{
	if (ps->n_live >= PROCESSES_MAX)
		(void)fail_set(f, -ENOBUFS, "%u processes are running", PROCESSES_MAX);
	else if (ps->n_readers >= SUBSCRIBERS_MAX)
		(void)fail_set(f, -ENOBUFS, "%u streams of processes are open", SUBSCRIBERS_MAX);
	else
		return CONNECT_OK;
	return CONNECT_RESOURCE_EXHAUSTED;
}

enum connect_code process_start(struct processes *ps, const struct identity *id,
				struct start_request *q, const char *user, uint64_t timeout_ms,
				struct reader *reader, struct process **ret, struct fail *f)
{
	const struct launch_plan plan = {ps->userspace, id, q, user};
	struct leaf leaf = {.fd = -1};
	struct launched c;
	size_t bytes = q->bytes;
	enum connect_code code = admit(ps, f);
	int err;

	if (code)
		return code;
	if (!budget_take(&ps->bytes, bytes)) {
		(void)fail_set(f, -ENOBUFS, "too many bytes are held for requests and arguments");
		return CONNECT_RESOURCE_EXHAUSTED;
	}
	err = leaf_take(ps->cgroups, &leaf, f);
	if (!err)
		err = launch(&plan, &leaf, &c, f);
	if (err) {
		leaf_give(ps->cgroups, &leaf);
		budget_give(&ps->bytes, bytes);
		return code_of(err);
	}
	fd_drop(&leaf.fd);
	*ret = process_new(ps, &c, q, &leaf);
	if (timeout_ms)
		timer_set((*ret)->deadline, timeout_ms);
	(void)process_attach(*ret, reader,
			     (struct ring_cursor){0}); /* admit() saw that there is room */
	timer_set(ps->prepare, LEAF_REST_MS);
	return CONNECT_OK;
}

static struct process *live_by_pid(const struct processes *ps, pid_t pid)
{
	for (struct process *p = ps->live; p; p = p->next)
		if (p->pid == pid && !p->has_exited)
			return p;
	return NULL;
}

void processes_reaped(struct processes *ps, pid_t pid, int wait_status)
{
	struct process *p = live_by_pid(ps, pid);

	if (ps->cgroups->n_left && !timer_is_set(ps->sweep))
		timer_set(ps->sweep, SWEEP_MS);
	if (!p)
		return; /* an orphan */
	p->has_exited = true;
	p->status = exit_status_of(wait_status);
	timer_clear(p->deadline);
	leaf_give(ps->cgroups, &p->leaf);
	input_shut(&p->input);
	timer_set(p->timer, EXIT_DRAIN_MS);
	process_step(p);
}

static bool matches(const struct process *p, const struct selector *s)
{
	if (p->state == PROCESS_FAILED || p->is_expired)
		return false;
	if (s->pid)
		return p->pid == s->pid;
	return p->tag && strcmp(p->tag, s->tag) == 0;
}

struct process *process_find(const struct processes *ps, const struct selector *s,
			     bool with_records)
{
	for (struct process *p = ps->live; p; p = p->next)
		if (matches(p, s) && (with_records || !p->has_exited))
			return p;
	for (struct process *p = with_records ? ps->records : NULL; p; p = p->next)
		if (matches(p, s))
			return p;
	return NULL;
}

struct process *process_next(const struct processes *ps, const struct process *p)
{
	struct process *n = p ? p->next : ps->live;

	while (n && (n->state != PROCESS_RUNNING || n->has_exited))
		n = n->next;
	return n;
}

int process_attach(struct process *p, struct reader *r, struct ring_cursor at)
{
	if (p->output.n_readers >= SUBSCRIBERS_PER_PROCESS || p->ps->n_readers >= SUBSCRIBERS_MAX)
		return -ENOBUFS;
	r->cursor = at;
	output_attach(&p->output, r);
	p->ps->n_readers++;
	return 0;
}

void process_detach(struct process *p, struct reader *r)
{
	output_detach(&p->output, r);
	p->ps->n_readers--;
	(void)process_retire(p);
}

void process_moved(struct process *p)
{
	output_moved(&p->output);
}

enum process_state process_state(const struct process *p)
{
	return p->state;
}

pid_t process_pid(const struct process *p)
{
	return p->pid;
}

const char *process_tag(const struct process *p)
{
	return p->tag;
}

const struct start_request *process_request(const struct process *p)
{
	return &p->request;
}

const struct ring *process_ring(const struct process *p)
{
	return &p->output.ring;
}

struct input *process_input(struct process *p)
{
	return &p->input;
}

bool process_timed_out(const struct process *p)
{
	return p->timed_out;
}

const struct exit_status *process_status(const struct process *p)
{
	return &p->status;
}

enum connect_code process_failure(const struct process *p, const char **ret_text)
{
	*ret_text = p->failure_text;
	return p->failure;
}

/* The leader is not reaped, so its pid and the group's number are still its own. Before the child's
 * setsid() there is no such group: then the child itself. */
int process_signal(struct process *p, int signo)
{
	if (p->has_exited)
		return -ESRCH;
	if (kill(-p->pid, signo) == 0 || kill(p->pid, signo) == 0)
		return 0;
	return -errno;
}

int process_resize(struct process *p, uint16_t cols, uint16_t rows)
{
	if (p->master < 0 || p->has_exited || p->output.pipe[0].fd != p->master)
		return -ENOTTY;
	launch_resize(p->master, cols, rows);
	return 0;
}
