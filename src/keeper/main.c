/* space-keeper: init of one sandbox's outer jail. It starts the VMM and space-daemon in their
 * inner jails, speaks with the VMM's monitor, reaps, and tells spaced. When it ends, all of it
 * ends.
 *
 * Descriptors (from space-jailer): 2 log, KEEPER_FD_* of wire/msg.h. It holds RAM and disk
 * descriptors and the access token. Trusts spaced's messages as far as the table goes; not the
 * VMM, not space-daemon. Never looks at a guest's byte: console output is copied, not read. */
#include "base/log.h"
#include "keeper/keeper.h"
#include "os/confine.h"
#include "os/fd.h"
#include "wire/msg.h"

#include <signal.h>

static int descriptors_check(void)
{
	for (int fd = KEEPER_FD_SOCK; fd <= KEEPER_FD_EXIT; fd++) {
		if (fd_set_cloexec(fd, true) < 0) {
			log_error("a descriptor is missing", "fd=%d", fd);
			return -1;
		}
	}
	return 0;
}

int main(void)
{
	struct jail_paths paths = {0};
	struct fail f = {0};

	log_init("space-keeper", LOG_INFO, STDERR_FILENO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (descriptors_check() < 0)
		return 1;
	if (confine_enter(CONFINE_KEEPER, &f) < 0 ||
	    jail_paths_probe(JAIL_LIBEXEC, JAIL_QEMU, &paths, &f) < 0) {
		log_error("cannot begin", "why=\"%s\"", f.text);
		return 1;
	}
	keeper_run(&paths, &keeper_times_usual);
	jail_paths_done(&paths);
	return 0;
}
