/* See identity.h. Nothing in it is secret from the guest; entropy is used once and wiped. */
#include "spaced/identity.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "spaced/ids.h"
#include "wire/json.h"

#include <inttypes.h>

#define DEFAULT_USER "user"
#define NUMBER_SIZE  24
#define BASE64_SIZE  ((IDENTITY_ENTROPY + 2) / 3 * 4 + 1)

/* What E2B's programs look for, then the template's and the client's own. */
static json_t *env_of(const struct identity *who)
{
	json_t *env = json_pack("{s:s, s:s, s:s}", "E2B_SANDBOX", "true", "E2B_SANDBOX_ID", who->id,
				"E2B_TEMPLATE_ID", who->template_id);

	if (env && who->env)
		(void)json_object_update(env, who->env); /* out of memory ends us elsewhere */
	return env;
}

char *identity_print(const struct identity *who, uint64_t realtime_ns,
		     const uint8_t entropy[IDENTITY_ENTROPY], const char *machine_id,
		     const char *boot_id, size_t *ret_n)
{
	char clock[NUMBER_SIZE];
	char base64[BASE64_SIZE];
	AUTO(json_drop) json_t *o = NULL;

	(void)snprintf(clock, sizeof clock, "%" PRIu64, realtime_ns); /* fits by its size */
	base64_encode(base64, entropy, IDENTITY_ENTROPY);
	o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:I}", "sandboxId",
		      who->id, "templateId", who->template_id, "hostname", who->hostname,
		      "realtimeNs", clock, "entropy", base64, "machineId", machine_id, "bootId",
		      boot_id, "envVars", env_of(who), "defaultUser", DEFAULT_USER,
		      "defaultWorkdir", "", "generation", (json_int_t)who->generation);
	explicit_bzero(base64, sizeof base64);
	return o ? json_print(o, ASK_BODY_MAX, ret_n) : NULL;
}

struct ask *identity_send(struct loop *l, int dir, const struct identity *who, uint64_t deadline_ms,
			  void (*done)(void *arg, const struct ask_answer *a), void *arg)
{
	uint8_t entropy[IDENTITY_ENTROPY];
	char machine_id[MACHINE_ID_SIZE];
	char boot_id[UUID_SIZE];
	AUTO(str_drop) char *body = NULL;
	struct ask_spec spec = {.dir = dir,
				.socket = "platform.sock",
				.path = "/space/init",
				.authority = "space",
				.content_type = "application/json",
				.deadline_ms = deadline_ms};

	random_bytes(entropy, sizeof entropy);
	machine_id_make(machine_id);
	uuid_make(boot_id);
	body = identity_print(who, clock_real_ns(), entropy, machine_id, boot_id, &spec.n);
	assert(body); /* the environment's limits keep it below ASK_BODY_MAX */
	spec.body = body;
	explicit_bzero(entropy, sizeof entropy);
	return ask_start(l, &spec, done, arg);
}
