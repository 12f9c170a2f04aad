/* The table of messages and the encoding of their fields; see msg.h. Pure. Every parser reads into
 * a local, checks every range, demands the end, and only then publishes. */
#include "wire/msg.h"

#include <errno.h>
#include <string.h>

#define STR_ID       (2 + SANDBOX_ID_LEN)
#define STR_MAX(n)   (2 + (n)-1) /* of a field kept in char[n] */
#define FAIL_STR     512         /* a struct fail's text */
#define PIDS_LIMIT   4194304u    /* Linux: PID_MAX_LIMIT on 64 bit */
#define PERMILLE_MAX 1024000u    /* 1024 cores */

#define JAIL_START_SIZE (STR_ID + 8 + 8 + 4 + 4 + 1)
#define VM_SPEC_REST    (1 + 4 + 4)
#define VM_SPEC_MIN     (STR_ID + 2 + 2 + VM_SPEC_REST + 2)
#define VM_SPEC_MAX                                                                                \
	(STR_ID + STR_MAX(TOKEN_SIZE) + STR_MAX(VARIANT_ID_SIZE) + VM_SPEC_REST +                  \
	 STR_MAX(CMDLINE_SIZE))
#define KEEPER_HELLO_REST (1 + 1 + 4)

/* clang-format off */
const struct msg_rule msg_rules[MSG_TYPES] = {
	/*                      from         to           min  max           fds min, max */
	[MSG_NONE]          = {PEERS,       PEERS,       0, 0, 0, 0},
	[MSG_JAIL_START]    = {PEER_SPACED, PEER_JAILER,
			       JAIL_START_SIZE, JAIL_START_SIZE, JAIL_FDS, JAIL_FDS},
	[MSG_JAIL_KILL]     = {PEER_SPACED, PEER_JAILER, STR_ID, STR_ID, 0, 1},
	[MSG_JAIL_QUIT]     = {PEER_SPACED, PEER_JAILER, 0, 0, 0, 0},
	[MSG_JAIL_HELLO]    = {PEER_JAILER, PEER_SPACED,
			       1 + 1 + 4 + 2, 1 + 1 + 4 + STR_MAX(128), 0, 0},
	[MSG_JAIL_STARTED]  = {PEER_JAILER, PEER_SPACED, STR_ID + 4, STR_ID + 4, 0, 0},
	[MSG_JAIL_FAILED]   = {PEER_JAILER, PEER_SPACED,
			       STR_ID + 4 + 2, STR_ID + 4 + STR_MAX(FAIL_STR), 0, 0},
	[MSG_JAIL_GONE]     = {PEER_JAILER, PEER_SPACED, STR_ID + 4, STR_ID + 4, 0, 0},
	[MSG_VM_BOOT]       = {PEER_SPACED, PEER_KEEPER,
			       VM_SPEC_MIN, VM_SPEC_MAX, VM_BOOT_FDS, VM_BOOT_FDS},
	[MSG_VM_RESTORE]    = {PEER_SPACED, PEER_KEEPER,
			       VM_SPEC_MIN, VM_SPEC_MAX, VM_RESTORE_FDS, VM_RESTORE_FDS},
	[MSG_VM_SAVE]       = {PEER_SPACED, PEER_KEEPER, 0, 0, 1, 1},
	[MSG_VM_STOP]       = {PEER_SPACED, PEER_KEEPER, 0, 0, 0, 0},
	[MSG_KEEPER_HELLO]  = {PEER_KEEPER, PEER_SPACED, 2 + 2 + KEEPER_HELLO_REST,
			       STR_ID + STR_MAX(VARIANT_ID_SIZE) + KEEPER_HELLO_REST, 1, 2},
	[MSG_VM_STATE]      = {PEER_KEEPER, PEER_SPACED, 1 + 4 + 2, 1 + 4 + STR_MAX(256), 0, 0},
	[MSG_VM_SAVED]      = {PEER_KEEPER, PEER_SPACED, 0, 0, 0, 0},
	[MSG_DAEMON_CONFIG] = {PEER_KEEPER, PEER_DAEMON,
			       STR_ID + 2, STR_ID + STR_MAX(TOKEN_SIZE), 0, 0},
	[MSG_DAEMON_READY]  = {PEER_DAEMON, PEER_KEEPER, 0, 0, 0, 0},
};
/* clang-format on */
static_assert(VM_SPEC_MAX <= MSG_BODY_MAX, "the longest message fits");
static_assert(VM_BOOT_FDS <= MSG_FDS_MAX && VM_RESTORE_FDS <= MSG_FDS_MAX, "and its descriptors");
static_assert(JAIL_FDS <= MSG_FDS_MAX, "and the jail's");

static const char *const msg_names[] = {
	"none",         "jail-start", "jail-kill", "jail-quit",     "jail-hello",   "jail-started",
	"jail-failed",  "jail-gone",  "vm-boot",   "vm-restore",    "vm-save",      "vm-stop",
	"keeper-hello", "vm-state",   "vm-saved",  "daemon-config", "daemon-ready",
};
static_assert(ARRAY_LEN(msg_names) == MSG_TYPES, "a name for every message");

static const char *const accel_names[] = {"tcg", "kvm"};
static_assert(ARRAY_LEN(accel_names) == ACCELS, "a name for every accelerator");

static const char *const vm_state_names[] = {"none",  "starting", "running",
					     "ready", "saving",   "stopped"};
static_assert(ARRAY_LEN(vm_state_names) == VM_STATES, "a name for every state");

const char *msg_name(enum msg_type t)
{
	return (unsigned)t < MSG_TYPES ? msg_names[t] : "unknown";
}

const char *accel_name(enum accel a)
{
	return (unsigned)a < ACCELS ? accel_names[a] : "unknown";
}

const char *vm_state_name(enum vm_state s)
{
	return (unsigned)s < VM_STATES ? vm_state_names[s] : "unknown";
}

int msg_allowed(enum msg_type t, enum msg_peer from, enum msg_peer to, size_t body, size_t fds)
{
	const struct msg_rule *r;

	if ((unsigned)t >= MSG_TYPES || t == MSG_NONE)
		return -EPROTO;
	r = &msg_rules[t];
	if (r->from != from || r->to != to)
		return -EPROTO;
	if (body < r->min || body > r->max || fds < r->fds_min || fds > r->fds_max)
		return -EPROTO;
	return 0;
}

int msg_head_parse(struct rd *in, enum msg_type *ret_type, uint32_t *ret_seq)
{
	uint16_t type = rd_be16(in);
	uint16_t version = rd_be16(in);
	uint32_t seq = rd_be32(in);

	if (in->bad)
		return -EBADMSG;
	if (version != MSG_VERSION)
		return -EPROTONOSUPPORT;
	if (type == MSG_NONE || type >= MSG_TYPES)
		return -EPROTO;
	*ret_type = (enum msg_type)type;
	*ret_seq = seq;
	return 0;
}

void msg_head_print(struct wr *out, enum msg_type type, uint32_t seq)
{
	wr_be16(out, (uint16_t)type);
	wr_be16(out, MSG_VERSION);
	wr_be32(out, seq);
}

static bool is_alnum_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool sandbox_id_valid(const char *id)
{
	if (id[0] != 'i')
		return false;
	for (size_t i = 1; i < SANDBOX_ID_LEN; i++)
		if (!is_alnum_lower(id[i]))
			return false;
	return id[SANDBOX_ID_LEN] == '\0';
}

/* "" or 64 lower-case hex digits. */
static bool token_valid(const char *s)
{
	return s[0] == '\0' ||
	       (strspn(s, "0123456789abcdef") == TOKEN_SIZE - 1 && s[TOKEN_SIZE - 1] == '\0');
}

/* A name that is also a folder's: no slash, no leading dot. */
static bool variant_valid(const char *s)
{
	if (s[0] == '.')
		return false;
	for (; *s; s++)
		if (!is_alnum_lower(*s) && *s != '-' && *s != '_' && *s != '.')
			return false;
	return true;
}

static bool printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			return false;
	return true;
}

/* One spelling of a truth value. */
static bool rd_bool(struct rd *in)
{
	uint8_t v = rd_u8(in);

	if (v > 1)
		in->bad = true;
	return v == 1;
}

void jail_start_print(struct wr *out, const struct jail_start *v)
{
	wr_str(out, v->id);
	wr_be64(out, v->memory_max_bytes);
	wr_be64(out, v->file_max_bytes);
	wr_be32(out, v->pids_max);
	wr_be32(out, v->cpu_max_permille);
	wr_u8(out, v->kvm);
}

int jail_start_parse(struct jail_start *ret, struct rd in)
{
	struct jail_start v = {0};

	rd_str(&in, v.id, sizeof v.id);
	v.memory_max_bytes = rd_be64(&in);
	v.file_max_bytes = rd_be64(&in);
	v.pids_max = rd_be32(&in);
	v.cpu_max_permille = rd_be32(&in);
	v.kvm = rd_bool(&in);
	if (!rd_end(&in) || !sandbox_id_valid(v.id) || v.memory_max_bytes > INT64_MAX ||
	    v.file_max_bytes > INT64_MAX || v.pids_max > PIDS_LIMIT ||
	    v.cpu_max_permille > PERMILLE_MAX)
		return -EBADMSG;
	*ret = v;
	return 0;
}

void jail_hello_print(struct wr *out, const struct jail_hello *v)
{
	wr_u8(out, v->is_root);
	wr_u8(out, v->has_limits);
	wr_be32(out, v->uid_first);
	wr_str(out, v->limits_why);
}

int jail_hello_parse(struct jail_hello *ret, struct rd in)
{
	struct jail_hello v = {0};

	v.is_root = rd_bool(&in);
	v.has_limits = rd_bool(&in);
	v.uid_first = rd_be32(&in);
	rd_str(&in, v.limits_why, sizeof v.limits_why);
	if (!rd_end(&in))
		return -EBADMSG;
	*ret = v;
	return 0;
}

void vm_spec_print(struct wr *out, const struct vm_spec *v)
{
	wr_str(out, v->id);
	wr_str(out, v->token);
	wr_str(out, v->variant);
	wr_u8(out, (uint8_t)v->accel);
	wr_be32(out, v->memory_mib);
	wr_be32(out, v->vcpus);
	wr_str(out, v->cmdline);
}

int vm_spec_parse(struct vm_spec *ret, struct rd in)
{
	struct vm_spec v = {0};
	uint8_t accel;

	rd_str(&in, v.id, sizeof v.id);
	rd_str(&in, v.token, sizeof v.token);
	rd_str(&in, v.variant, sizeof v.variant);
	accel = rd_u8(&in);
	v.memory_mib = rd_be32(&in);
	v.vcpus = rd_be32(&in);
	rd_str(&in, v.cmdline, sizeof v.cmdline);
	if (!rd_end(&in) || accel >= ACCELS || !sandbox_id_valid(v.id) || !token_valid(v.token) ||
	    !variant_valid(v.variant) || !printable(v.cmdline))
		return -EBADMSG;
	if (v.memory_mib < VM_MEMORY_MIN_MIB || v.memory_mib > VM_MEMORY_MAX_MIB || v.vcpus < 1 ||
	    v.vcpus > VM_VCPUS_MAX)
		return -EBADMSG;
	v.accel = (enum accel)accel;
	*ret = v;
	return 0;
}

void vm_event_print(struct wr *out, const struct vm_event *v)
{
	wr_u8(out, (uint8_t)v->state);
	wr_be32(out, v->wait_status);
	wr_str(out, v->text);
}

int vm_event_parse(struct vm_event *ret, struct rd in)
{
	struct vm_event v = {0};
	uint8_t state = rd_u8(&in);

	v.wait_status = rd_be32(&in);
	rd_str(&in, v.text, sizeof v.text);
	if (!rd_end(&in) || state >= VM_STATES)
		return -EBADMSG;
	v.state = (enum vm_state)state;
	*ret = v;
	return 0;
}

void keeper_hello_print(struct wr *out, const struct keeper_hello *v)
{
	wr_str(out, v->id);
	wr_str(out, v->variant);
	wr_u8(out, (uint8_t)v->state);
	wr_u8(out, v->has_vm);
	wr_be32(out, v->daemon_starts);
}

int keeper_hello_parse(struct keeper_hello *ret, struct rd in)
{
	struct keeper_hello v = {0};
	uint8_t state;

	rd_str(&in, v.id, sizeof v.id);
	rd_str(&in, v.variant, sizeof v.variant);
	state = rd_u8(&in);
	v.has_vm = rd_bool(&in);
	v.daemon_starts = rd_be32(&in);
	if (!rd_end(&in) || state >= VM_STATES || !variant_valid(v.variant))
		return -EBADMSG;
	if (state == VM_NONE ? v.id[0] != '\0' : !sandbox_id_valid(v.id))
		return -EBADMSG;
	v.state = (enum vm_state)state;
	*ret = v;
	return 0;
}
