/* See jailer.h. The jailer is more trusted than we are; still its words are parsed and bounded,
 * so that a mix of versions ends in a sentence and not in a crash. */
#include "spaced/jailer.h"

#include "base/alloc.h"
#include "base/log.h"
#include "net/msgsock.h"

#include <errno.h>

#define WHY_SIZE 256

struct jailer {
	struct msgsock *sock;
	struct idmap jails;
	const struct jailer_ops *ops;
	void *arg;
};

static void jail_ended(struct jailer *j, const char *id, const char *why)
{
	struct idnode *n = idmap_find(&j->jails, id);

	if (n) {
		struct jail *jail = (struct jail *)n; /* the node is its first member */

		jailer_forget(j, jail);
		jail->on_end(jail, why);
	}
}

static int on_failed(struct jailer *j, struct rd in)
{
	char id[SANDBOX_ID_SIZE];
	char why[WHY_SIZE];

	rd_str(&in, id, sizeof id);
	(void)rd_be32(&in);
	rd_str(&in, why, sizeof why);
	if (!rd_end(&in))
		return -EBADMSG;
	jail_ended(j, id, why);
	return 0;
}

static int on_gone(struct jailer *j, struct rd in)
{
	char id[SANDBOX_ID_SIZE];

	rd_str(&in, id, sizeof id);
	(void)rd_be32(&in);
	if (!rd_end(&in))
		return -EBADMSG;
	jail_ended(j, id, "");
	return 0;
}

static int on_hello(struct jailer *j, struct rd in)
{
	struct jail_hello h = {.is_root = false};
	int r = jail_hello_parse(&h, in);

	if (r == 0)
		j->ops->on_hello(j->arg, &h);
	return r;
}

static void on_msg(void *arg, struct msg *m)
{
	struct jailer *j = arg;
	int r = 0;

	if (m->type == MSG_JAIL_HELLO)
		r = on_hello(j, m->body);
	else if (m->type == MSG_JAIL_FAILED)
		r = on_failed(j, m->body);
	else if (m->type == MSG_JAIL_GONE)
		r = on_gone(j, m->body);
	if (r < 0) {
		log_error("the jailer speaks another language", "message=%s", msg_name(m->type));
		j->ops->on_lost(j->arg);
	}
}

static void on_end(void *arg, int err)
{
	struct jailer *j = arg;

	log_error("the jailer is gone", "errno=%d", -err);
	j->ops->on_lost(j->arg);
}

struct jailer *jailer_new(struct loop *l, int fd, const struct jailer_ops *ops, void *arg)
{
	static const struct msgsock_ops sock_ops = {.on_msg = on_msg, .on_end = on_end};
	struct jailer *j = xcalloc(1, sizeof *j);

	static_assert(offsetof(struct jail, node) == 0, "a jail is found by its node");
	j->ops = ops;
	j->arg = arg;
	j->sock = msgsock_new(l, fd, PEER_SPACED, PEER_JAILER, &sock_ops, j);
	return j;
}

void jailer_free(struct jailer *j)
{
	if (!j)
		return;
	msgsock_free(j->sock);
	free(j);
}

int jailer_start(struct jailer *j, struct jail *jail, const struct jail_start *what,
		 const int fds[JAIL_FDS])
{
	uint8_t body[256];
	struct wr w = wr_of(body, sizeof body);
	int r;

	jail_start_print(&w, what);
	assert(!w.bad);
	r = msgsock_send(j->sock, MSG_JAIL_START, 0, body, wr_len(&w), fds, JAIL_FDS);
	if (r == 0)
		idmap_add(&j->jails, &jail->node);
	return r;
}

void jailer_adopt(struct jailer *j, struct jail *jail)
{
	idmap_add(&j->jails, &jail->node);
}

int jailer_kill(struct jailer *j, struct jail *jail, int pidfd)
{
	uint8_t body[64];
	struct wr w = wr_of(body, sizeof body);

	wr_str(&w, jail->node.id);
	return msgsock_send(j->sock, MSG_JAIL_KILL, 0, body, wr_len(&w), &pidfd, pidfd >= 0);
}

void jailer_forget(struct jailer *j, struct jail *jail)
{
	idmap_remove(&j->jails, &jail->node);
}

void jailer_quit(struct jailer *j)
{
	(void)msgsock_send(j->sock, MSG_JAIL_QUIT, 0, NULL, 0, NULL, 0); /* it sees our exit too */
}
