/* The platform's requests: see platform_rpc.h. */
#include "init/platform_rpc.h"

#include "base/log.h"
#include "init/guest.h"
#include "net/loop.h"

#include <sys/reboot.h>
#include <unistd.h>

void rpc_health(struct call *c, const uint8_t *p, size_t n)
{
	(void)p;
	(void)n;
	call_status(c, 204);
}

void rpc_init(struct call *c, const uint8_t *p, size_t n)
{
	struct guest *g = c->guest;
	AUTO(identity_done) struct identity id = {0};
	struct fail f = {0};
	int err = identity_parse(&id, p, n, &f);

	if (err) {
		call_refuse(c, err, &f);
		return;
	}
	/* Half applied is not applied: nothing starts until a later request succeeds whole. */
	g->is_ready = false;
	err = identity_apply(&id, g->userspace.file, &f);
	if (err) {
		log_error("identity not applied", "cause=\"%s\"", f.text);
		call_error(c, CONNECT_INTERNAL, f.text);
		return;
	}
	identity_done(&g->identity);
	g->identity = id;
	id = (struct identity){0};
	explicit_bzero(g->identity.entropy, sizeof g->identity.entropy);
	g->is_ready = true;
	call_status(c, 204);
}

void rpc_stats(struct call *c, const uint8_t *p, size_t n)
{
	struct guest *g = c->guest;

	(void)p;
	(void)n;
	call_json(c, stats_object(&g->stats, g->userspace.root, g->cgroups.user));
}

_Noreturn void guest_poweroff(void)
{
	sync();
	/* Where nothing can power off (microvm), QEMU's -no-reboot makes an end of a reboot. */
	(void)reboot(RB_POWER_OFF);
	(void)reboot(RB_AUTOBOOT);
	_exit(1); /* a dead init is a panic, and that is a reboot too */
}

static void poweroff_later(void *arg)
{
	(void)arg;
	guest_poweroff();
}

void rpc_poweroff(struct call *c, const uint8_t *p, size_t n)
{
	(void)p;
	(void)n;
	log_info("powering off", "cause=request");
	call_status(c, 204);
	loop_later(c->guest->loop, poweroff_later, NULL);
}
