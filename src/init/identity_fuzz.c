/* POST /space/init. Properties: what is accepted has every part a guest needs, in the form in
 * which it is written to files; what is refused leaves the output alone and says why. */
#include "base/fuzz.h"

#include "init/identity.h"
#include "init/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(identity_done) struct identity id = {.generation = 7};
	struct fail f = {0};

	if (identity_parse(&id, data, size, &f) != 0) {
		assert(f.text[0] && !id.sandbox_id && id.generation == 7);
		return 0;
	}
	assert(id.sandbox_id[0] && strlen(id.sandbox_id) <= ID_MAX &&
	       strlen(id.template_id) <= ID_MAX);
	assert(id.hostname[0] && strlen(id.hostname) < HOSTNAME_SIZE);
	assert(!strpbrk(id.hostname, "\n\t /\""));
	assert(id.default_user[0] && strlen(id.default_workdir) < PATH_SIZE);
	assert(strlen(id.machine_id) == MACHINE_ID_N && strlen(id.boot_id) == BOOT_ID_N);
	assert(id.machine_id[strspn(id.machine_id, "0123456789abcdef")] == 0);
	assert(id.boot_id[strspn(id.boot_id, "0123456789abcdef-")] == 0);
	assert(id.entropy_n >= 1 && id.entropy_n <= ENTROPY_MAX && id.realtime_ns <= INT64_MAX);
	assert(env_get(&id.envs, "E2B_SANDBOX") && env_get(&id.envs, "E2B_SANDBOX_ID"));
	return 0;
}
