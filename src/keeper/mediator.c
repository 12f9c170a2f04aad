/* See mediator.h. Nothing that space-daemon says is trusted beyond MSG_DAEMON_READY, which tells
 * no more than that it is content. */
#include "keeper/mediator.h"

#include "base/alloc.h"
#include "base/log.h"
#include "keeper/caplog.h"
#include "keeper/children.h"
#include "net/loop.h"
#include "net/msgsock.h"
#include "os/fd.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

struct mediator {
	struct loop *loop;
	struct mediator_plan plan;
	const struct mediator_ops *ops;
	void *arg;
	pid_t pid;
	struct msgsock *ctl;
	struct caplog *log;
	uint32_t starts;
	uint64_t start_ns[MEDIATOR_STARTS]; /* a ring: of the newest */
};

static void on_msg(void *arg, struct msg *msg)
{
	struct mediator *m = arg;

	(void)msg; /* the table lets MSG_DAEMON_READY through, nothing else */
	m->ops->on_ready(m->arg);
}

static void on_end(void *arg, int err)
{
	struct mediator *m = arg;

	(void)err;
	/* It is dead or must be: the reaper goes on from there. */
	if (m->pid > 0)
		(void)kill(m->pid, SIGKILL);
}

static const struct msgsock_ops ctl_ops = {.on_msg = on_msg, .on_end = on_end};

static int config_send(struct mediator *m)
{
	uint8_t body[SANDBOX_ID_SIZE + TOKEN_SIZE + 4];
	struct wr w = wr_of(body, sizeof body);
	int r;

	wr_str(&w, m->plan.spec->id);
	wr_str(&w, m->plan.spec->token);
	r = msgsock_send(m->ctl, MSG_DAEMON_CONFIG, 0, body, wr_len(&w), NULL, 0);
	explicit_bzero(body, sizeof body);
	return r;
}

static bool may_start(struct mediator *m)
{
	uint64_t now = clock_mono_ns();
	uint64_t *oldest = &m->start_ns[m->starts % MEDIATOR_STARTS];

	if (*oldest && now - *oldest < MEDIATOR_WINDOW_NS)
		return false;
	*oldest = now;
	m->starts++;
	return true;
}

static int log_make(struct mediator *m, int *ret_end, struct fail *f)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(f, -errno, "cannot make space-daemon's log");
	caplog_free(m->log);
	m->log = caplog_new(m->loop, ends[0], m->plan.log_file);
	*ret_end = ends[1];
	return 0;
}

static int start(struct mediator *m, struct fail *f)
{
	const struct mediator_plan *p = &m->plan;
	AUTO(fd_drop) int ctl_end = -1;
	AUTO(fd_drop) int log_end = -1;
	int ctl[2];
	int r;

	if (!may_start(m))
		return fail_set(f, -EAGAIN, "space-daemon died %u times in a minute",
				MEDIATOR_STARTS);
	if ((r = log_make(m, &log_end, f)) < 0)
		return r;
	if ((r = sock_pair(SOCK_SEQPACKET, ctl)) < 0)
		return fail_errno(f, r, "cannot make space-daemon's socket");
	ctl_end = ctl[1];
	msgsock_free(m->ctl);
	m->ctl = msgsock_new(m->loop, ctl[0], PEER_KEEPER, PEER_DAEMON, &ctl_ops, m);
	r = child_start_daemon(p->paths,
			       (const int[DAEMON_FDS]){
				       [DAEMON_FD_KEEPER] = ctl_end,
				       [DAEMON_FD_CLIENT] = p->client_listen,
				       [DAEMON_FD_PLATFORM] = p->platform_listen,
				       [DAEMON_FD_CONTROL] = p->channel[CHANNEL_CONTROL],
				       [DAEMON_FD_EGRESS] = p->channel[CHANNEL_EGRESS],
				       [DAEMON_FD_WAKE] = p->channel[CHANNEL_WAKE],
			       },
			       log_end, &m->pid, f);
	if (r)
		return r;
	return config_send(m) < 0 ? fail_set(f, -EPIPE, "space-daemon takes no messages") : 0;
}

int mediator_new(struct loop *l, const struct mediator_plan *p, const struct mediator_ops *ops,
		 void *arg, struct mediator **ret, struct fail *f)
{
	struct mediator *m = xcalloc(1, sizeof *m);
	int r;

	m->loop = l;
	m->plan = *p;
	m->ops = ops;
	m->arg = arg;
	m->pid = -1;
	if ((r = start(m, f)) < 0) {
		mediator_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void mediator_free(struct mediator *m)
{
	if (!m)
		return;
	msgsock_free(m->ctl);
	caplog_free(m->log);
	free(m);
}

bool mediator_reaped(struct mediator *m, pid_t pid, int wait_status, bool is_ending)
{
	struct fail f = {0};
	char how[CHILD_STATUS_SIZE];

	if (!m || pid != m->pid)
		return false;
	m->pid = -1;
	if (is_ending)
		return true;
	child_status_print(how, sizeof how, wait_status);
	log_warn("space-daemon ended, starting it anew", "sandbox=%s how=\"%s\"", m->plan.spec->id,
		 how);
	if (start(m, &f) < 0)
		m->ops->on_failed(m->arg, wait_status, &f);
	else
		m->ops->on_again(m->arg);
	return true;
}

uint32_t mediator_starts(const struct mediator *m)
{
	return m ? m->starts : 0;
}
