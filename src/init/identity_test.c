/* identity.c: what /space/init accepts. */
#include "init/identity.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"

#include <errno.h>

#define NAMES   "\"sandboxId\":\"i1\",\"hostname\":\"box-1.test\","
#define TIME    "\"realtimeNs\":\"1796083200000000000\","
#define ENTROPY "\"entropy\":\"AAECAw==\","
#define IDS                                                                                        \
	"\"machineId\":\"0123456789abcdef0123456789abcdef\","                                      \
	"\"bootId\":\"01234567-89ab-cdef-0123-456789abcdef\""
#define GOOD NAMES TIME ENTROPY IDS

static const struct {
	const char *says;
	const char *in;
	int want;
} cases[] = {
	{"the least", "{" GOOD "}", 0},
	{"unknown fields are ignored", "{" GOOD ",\"policy\":{\"a\":[1]}}", 0},
	{"generation", "{" GOOD ",\"generation\":7}", 0},
	{"null is absent", "{" GOOD ",\"envVars\":null}", 0},
	{"envs", "{" GOOD ",\"envVars\":{\"A\":\"1\",\"E2B_SANDBOX_ID\":\"mine\"}}", 0},
	{"no hostname", "{\"sandboxId\":\"i1\"," TIME ENTROPY IDS "}", -EINVAL},
	{"no entropy", "{" NAMES TIME IDS "}", -EINVAL},
	{"empty entropy", "{" NAMES TIME "\"entropy\":\"\"," IDS "}", -EINVAL},
	{"entropy that is no base64", "{" NAMES TIME "\"entropy\":\"A\"," IDS "}", -EINVAL},
	{"no clock", "{" NAMES ENTROPY IDS "}", -EINVAL},
	{"clock as a number", "{" NAMES "\"realtimeNs\":5," ENTROPY IDS "}", -EINVAL},
	{"negative clock", "{" NAMES "\"realtimeNs\":\"-5\"," ENTROPY IDS "}", -EINVAL},
	{"clock past 63 bits", "{" NAMES "\"realtimeNs\":\"9223372036854775808\"," ENTROPY IDS "}",
	 -EINVAL},
	{"hostname with a blank", "{\"sandboxId\":\"i\",\"hostname\":\"a b\"," TIME ENTROPY IDS "}",
	 -EINVAL},
	{"hostname with a newline",
	 "{\"sandboxId\":\"i\",\"hostname\":\"a\\nb\"," TIME ENTROPY IDS "}", -EINVAL},
	{"hostname that begins with -",
	 "{\"sandboxId\":\"i\",\"hostname\":\"-a\"," TIME ENTROPY IDS "}", -EINVAL},
	{"env name with =", "{" GOOD ",\"envVars\":{\"A=B\":\"1\"}}", -EINVAL},
	{"env value that is a number", "{" GOOD ",\"envVars\":{\"A\":1}}", -EINVAL},
	{"a key twice", "{" GOOD ",\"sandboxId\":\"i2\"}", -EINVAL},
	{"no object", "[]", -EINVAL},
	{"something after it", "{" GOOD "} x", -EINVAL},
	{"nothing", "", -EINVAL},
};

static const struct {
	const char *says;
	const char *machine;
	const char *boot;
	int want;
} id_cases[] = {
	{"upper case", "0123456789ABCDEF0123456789ABCDEF", "01234567-89ab-cdef-0123-456789abcdef",
	 -EINVAL},
	{"one digit less", "0123456789abcdef0123456789abcde",
	 "01234567-89ab-cdef-0123-456789abcdef", -EINVAL},
	{"one digit more", "0123456789abcdef0123456789abcdef0",
	 "01234567-89ab-cdef-0123-456789abcdef", -EINVAL},
	{"a dash elsewhere", "0123456789abcdef0123456789abcdef",
	 "012345678-9ab-cdef-0123-456789abcdef", -EINVAL},
	{"no dash", "0123456789abcdef0123456789abcdef", "01234567089ab-cdef-0123-456789abcdef",
	 -EINVAL},
};

static int parse(const char *text, struct identity *ret)
{
	struct fail f = {0};
	int err = identity_parse(ret, text, strlen(text), &f);

	if (err)
		EXPECT("says why", f.text[0] != 0);
	return err;
}

static void fields(void)
{
	AUTO(identity_done) struct identity id = {0};

	CHECK(parse("{" GOOD
		    ",\"templateId\":\"base\",\"envVars\":{\"E2B_SANDBOX_ID\":\"mine\",\"A\":\"\"},"
		    "\"defaultUser\":\"root\",\"defaultWorkdir\":\"/srv\",\"generation\":7}",
		    &id) == 0);
	EXPECT_STR("sandbox", id.sandbox_id, "i1");
	EXPECT_STR("host", id.hostname, "box-1.test");
	EXPECT_STR("user", id.default_user, "root");
	EXPECT_STR("workdir", id.default_workdir, "/srv");
	EXPECT_STR("machine", id.machine_id, "0123456789abcdef0123456789abcdef");
	EXPECT_STR("boot", id.boot_id, "01234567-89ab-cdef-0123-456789abcdef");
	EXPECT_EQ("clock", id.realtime_ns, 1796083200000000000);
	EXPECT_EQ("generation", id.generation, 7);
	EXPECT_EQ("entropy", id.entropy_n, 4);
	EXPECT_EQ("its bytes", id.entropy[3], 3);
	EXPECT_STR("set by us", env_get(&id.envs, "E2B_SANDBOX"), "true");
	EXPECT_STR("set by us", env_get(&id.envs, "E2B_TEMPLATE_ID"), "base");
	EXPECT_STR("the sandbox's own win", env_get(&id.envs, "E2B_SANDBOX_ID"), "mine");
}

static void entropy_limit(void)
{
	uint8_t bytes[ENTROPY_MAX + 1] = {0};
	char text[(ENTROPY_MAX + 3) / 3 * 4 + 1];

	for (size_t n = ENTROPY_MAX; n <= ENTROPY_MAX + 1; n++) {
		AUTO(identity_done) struct identity id = {0};
		AUTO(str_drop) char *in = NULL;

		base64_encode(text, bytes, n);
		in = xasprintf("{" NAMES TIME "\"entropy\":\"%s\"," IDS "}", text);
		EXPECT_EQ("entropy at the limit, and past it", parse(in, &id),
			  n > ENTROPY_MAX ? -EINVAL : 0);
	}
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(identity_done) struct identity id = {0};

		EXPECT_EQ(cases[i].says, parse(cases[i].in, &id), cases[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(id_cases); i++) {
		AUTO(identity_done) struct identity id = {0};
		AUTO(str_drop)
		char *in =
			xasprintf("{" NAMES TIME ENTROPY "\"machineId\":\"%s\",\"bootId\":\"%s\"}",
				  id_cases[i].machine, id_cases[i].boot);

		EXPECT_EQ(id_cases[i].says, parse(in, &id), id_cases[i].want);
	}
	fields();
	entropy_limit();
	return test_done();
}
