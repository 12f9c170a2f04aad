/* Identity repair: see identity.h. Order: entropy and clock first, for everything after may use
 * them. */
#include "init/identity.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "init/limits.h"
#include "os/fd.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>

#define ENTROPY_TEXT ((ENTROPY_MAX + 2) / 3 * 4) /* in base64 */

static bool all_of(const char *s, const char *set)
{
	return s[strspn(s, set)] == 0;
}

static bool hostname_valid(const char *s)
{
	static const char set[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

	return *s && *s != '-' && *s != '.' && all_of(s, set);
}

static bool boot_id_valid(const char *s)
{
	for (size_t i = 0; i < BOOT_ID_N; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? s[i] != '-' : !strchr("0123456789abcdef", s[i]) || !s[i])
			return false;
	}
	return s[BOOT_ID_N] == 0;
}

static int parse_names(struct identity *id, const json_t *o, struct fail *f)
{
	const char *sandbox = "";
	const char *template = "";
	const char *hostname = "";
	const char *user = "user";
	const char *workdir = "";
	int err = json_get_str(o, "sandboxId", JSON_REQUIRED, 1, ID_MAX, &sandbox, f);

	if (!err)
		err = json_get_str(o, "templateId", JSON_OPTIONAL, 0, ID_MAX, &template, f);
	if (!err)
		err = json_get_str(o, "hostname", JSON_REQUIRED, 1, HOSTNAME_SIZE - 1, &hostname,
				   f);
	if (!err)
		err = json_get_str(o, "defaultUser", JSON_OPTIONAL, 1, USER_SIZE - 1, &user, f);
	if (!err)
		err = json_get_str(o, "defaultWorkdir", JSON_OPTIONAL, 0, PATH_SIZE - 1, &workdir,
				   f);
	if (err)
		return err;
	if (!hostname_valid(hostname))
		return fail_set(f, -EINVAL, "hostname has other characters than a-z A-Z 0-9 - .");
	id->sandbox_id = xstrdup(sandbox);
	id->template_id = xstrdup(template);
	id->hostname = xstrdup(hostname);
	id->default_user = xstrdup(user);
	id->default_workdir = xstrdup(workdir);
	return 0;
}

static int parse_numbers(struct identity *id, const json_t *o, struct fail *f)
{
	const char *realtime = NULL;
	const char *entropy = NULL;
	uint8_t bytes[3 * ((ENTROPY_TEXT + 3) / 4)];
	int64_t generation = 0;
	int err = json_get_str(o, "realtimeNs", JSON_REQUIRED, 1, 20, &realtime, f);

	if (!err && str_u64(realtime, INT64_MAX, &id->realtime_ns) != 0)
		err = fail_set(f, -EINVAL, "realtimeNs is not a decimal string");
	if (!err)
		err = json_get_str(o, "entropy", JSON_REQUIRED, 1, ENTROPY_TEXT, &entropy, f);
	if (!err && (base64_decode(bytes, entropy, strlen(entropy), &id->entropy_n) != 0 ||
		     id->entropy_n > ENTROPY_MAX))
		err = fail_set(f, -EINVAL, "entropy is not base64 of at most %u bytes",
			       ENTROPY_MAX);
	if (!err)
		err = json_get_i64(o, "generation", JSON_OPTIONAL, 0, INT64_MAX, &generation, f);
	if (err)
		return err;
	memcpy(id->entropy, bytes, id->entropy_n);
	explicit_bzero(bytes, sizeof bytes);
	id->generation = (uint64_t)generation;
	return 0;
}

static int parse_ids(struct identity *id, const json_t *o, struct fail *f)
{
	const char *machine = NULL;
	const char *boot = NULL;
	int err = json_get_str(o, "machineId", JSON_REQUIRED, MACHINE_ID_N, MACHINE_ID_N, &machine,
			       f);

	if (!err)
		err = json_get_str(o, "bootId", JSON_REQUIRED, BOOT_ID_N, BOOT_ID_N, &boot, f);
	if (err)
		return err;
	if (!all_of(machine, "0123456789abcdef"))
		return fail_set(f, -EINVAL, "machineId is not 32 hexadecimal digits");
	if (!boot_id_valid(boot))
		return fail_set(f, -EINVAL, "bootId is not a UUID");
	(void)str_copy(id->machine_id, sizeof id->machine_id, machine); /* lengths are checked */
	(void)str_copy(id->boot_id, sizeof id->boot_id, boot);
	return 0;
}

static int parse_envs(struct identity *id, const json_t *o, struct fail *f)
{
	const struct json_limits max = {ENVS_MAX / 2, EXEC_MAX / 2, EXEC_MAX / 2, EXEC_MAX / 2};
	json_t *envs = NULL;
	const char *name;
	json_t *value;
	int err = json_get_str_map(o, "envVars", JSON_OPTIONAL, max, &envs, f);

	if (!err)
		err = env_set(&id->envs, "E2B_SANDBOX", "true");
	if (!err)
		err = env_set(&id->envs, "E2B_SANDBOX_ID", id->sandbox_id);
	if (!err)
		err = env_set(&id->envs, "E2B_TEMPLATE_ID", id->template_id);
	if (err || !envs)
		return err;
	json_object_foreach (envs, name, value)
		if (env_set(&id->envs, name, json_string_value(value)) != 0)
			return fail_set(f, -EINVAL, "envVars has an invalid name or is too large");
	return 0;
}

int identity_parse(struct identity *ret, const void *p, size_t n, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	struct identity id = {0};
	int err = json_parse(&o, p, n, MESSAGE_MAX, f);

	if (!err)
		err = parse_names(&id, o, f);
	if (!err)
		err = parse_numbers(&id, o, f);
	if (!err)
		err = parse_ids(&id, o, f);
	if (!err)
		err = parse_envs(&id, o, f);
	if (err) {
		identity_done(&id);
		return err;
	}
	*ret = id;
	return 0;
}

void identity_done(struct identity *id)
{
	mem_drop(&id->sandbox_id);
	mem_drop(&id->template_id);
	mem_drop(&id->hostname);
	mem_drop(&id->default_user);
	mem_drop(&id->default_workdir);
	env_done(&id->envs);
	*id = (struct identity){0};
}

/* Mixed in and credited; the reseed makes the next reader depend on it. */
static int add_entropy(const struct identity *id, struct fail *f)
{
	AUTO(fd_drop) int fd = open("/dev/random", O_RDWR | O_CLOEXEC);
	struct { /* struct rand_pool_info, with room */
		int entropy_bits;
		int n;
		uint8_t bytes[ENTROPY_MAX];
	} pool = {.entropy_bits = (int)id->entropy_n * 8, .n = (int)id->entropy_n};
	int err = 0;

	static_assert(offsetof(typeof(pool), bytes) == offsetof(struct rand_pool_info, buf),
		      "the bytes are where the kernel looks for them");
	memcpy(pool.bytes, id->entropy, id->entropy_n);
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &pool) != 0 || ioctl(fd, RNDRESEEDCRNG, NULL) != 0)
		err = fail_errno(f, -errno, "cannot add entropy");
	explicit_bzero(&pool, sizeof pool);
	return err;
}

/* In place: readers through the bind mount see it at once. Same length as before in a restored
 * guest, so a reader sees the old or the new text. */
static int rewrite(int fd, const char *text, struct fail *f)
{
	size_t n = strlen(text);

	if (fd < 0)
		return 0;
	if (pwrite(fd, text, n, 0) != (ssize_t)n || ftruncate(fd, (off_t)n) != 0)
		return fail_errno(f, -errno, "cannot write an identity file");
	return 0;
}

static int write_files(const struct identity *id, const int file[IDENTITY_FILES], struct fail *f)
{
	AUTO(str_drop) char *hostname = xasprintf("%s\n", id->hostname);
	AUTO(str_drop) char *machine = xasprintf("%s\n", id->machine_id);
	AUTO(str_drop) char *boot = xasprintf("%s\n", id->boot_id);
	AUTO(str_drop)
	char *hosts = xasprintf("127.0.0.1\tlocalhost\n"
				"127.0.1.1\t%s\n"
				"::1\tlocalhost ip6-localhost ip6-loopback\n",
				id->hostname);
	const char *text[IDENTITY_FILES] = {
		[FILE_HOSTNAME] = hostname,
		[FILE_HOSTS] = hosts,
		[FILE_MACHINE_ID] = machine,
		[FILE_BOOT_ID] = boot,
	};

	for (size_t i = 0; i < IDENTITY_FILES; i++) {
		int err = rewrite(file[i], text[i], f);

		if (err)
			return err;
	}
	return 0;
}

int identity_apply(const struct identity *id, const int file[IDENTITY_FILES], struct fail *f)
{
	struct timespec now = {
		.tv_sec = (time_t)(id->realtime_ns / NS_PER_S),
		.tv_nsec = (long)(id->realtime_ns % NS_PER_S),
	};
	int err = add_entropy(id, f);

	if (err)
		return err;
	if (clock_settime(CLOCK_REALTIME, &now) != 0)
		return fail_errno(f, -errno, "cannot set the clock");
	if (sethostname(id->hostname, strlen(id->hostname)) != 0)
		return fail_errno(f, -errno, "cannot set the host name");
	return write_files(id, file, f);
}
