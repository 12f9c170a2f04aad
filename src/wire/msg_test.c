/* The table, the head, and every field: round trip, each cut, each range at its edge. */
#include "base/test.h"
#include "wire/msg.h"

#include <errno.h>

#define ID "iabcdefghijklmno0189"

static const char hex64[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void rules(void)
{
	size_t senders = 0;

	for (unsigned t = MSG_NONE + 1; t < MSG_TYPES; t++) {
		const struct msg_rule *r = &msg_rules[t];
		const char *says = msg_name((enum msg_type)t);
		enum msg_type m = (enum msg_type)t;

		EXPECT(says, r->from != r->to && r->min <= r->max && r->fds_min <= r->fds_max);
		EXPECT(says, r->max <= MSG_BODY_MAX && r->fds_max <= MSG_FDS_MAX);
		EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->min, r->fds_min), 0);
		EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->max, r->fds_max), 0);
		EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->max + 1u, r->fds_max), -EPROTO);
		EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->max, r->fds_max + 1u), -EPROTO);
		if (r->min > 0)
			EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->min - 1u, r->fds_min),
				  -EPROTO);
		if (r->fds_min > 0)
			EXPECT_EQ(says, msg_allowed(m, r->from, r->to, r->min, r->fds_min - 1u),
				  -EPROTO);
		senders = 0;
		for (unsigned a = 0; a <= PEERS; a++)
			for (unsigned b = 0; b <= PEERS; b++)
				senders += msg_allowed(m, (enum msg_peer)a, (enum msg_peer)b,
						       r->min, r->fds_min) == 0;
		EXPECT_EQ(says, senders, 1);
	}
	CHECK(msg_allowed(MSG_NONE, PEERS, PEERS, 0, 0) == -EPROTO);
	CHECK(msg_allowed(MSG_TYPES, PEER_SPACED, PEER_JAILER, 0, 0) == -EPROTO);
	EXPECT_STR("name", msg_name(MSG_DAEMON_READY), "daemon-ready");
	EXPECT_STR("name", msg_name(MSG_VM_STATE), "vm-state");
	EXPECT_STR("name", msg_name(MSG_JAIL_FAILED), "jail-failed");
	EXPECT_STR("name", msg_name(MSG_TYPES), "unknown");
	EXPECT_STR("name", accel_name(ACCEL_KVM), "kvm");
	EXPECT_STR("name", vm_state_name(VM_STOPPED), "stopped");
}

static void head(void)
{
	static const struct {
		const char *says;
		const char *in;
		size_t n;
		int want;
	} cases[] = {
		{"good", "\0\1\0\1\0\0\0\7", 8, 0},
		{"last type", "\0\20\0\1\0\0\0\7", 8, 0},
		{"past the last", "\0\21\0\1\0\0\0\7", 8, -EPROTO},
		{"type 0", "\0\0\0\1\0\0\0\7", 8, -EPROTO},
		{"type 256 + 1", "\1\1\0\1\0\0\0\7", 8, -EPROTO},
		{"older version", "\0\1\0\0\0\0\0\7", 8, -EPROTONOSUPPORT},
		{"newer version", "\0\1\0\2\0\0\0\7", 8, -EPROTONOSUPPORT},
		{"short", "\0\1\0\1\0\0\0", 7, -EBADMSG},
		{"empty", "", 0, -EBADMSG},
	};
	uint8_t b[MSG_HEAD];
	struct wr w = wr_of(b, sizeof b);
	enum msg_type t = MSG_NONE;
	uint32_t seq = 0;
	struct rd r;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		r = rd_of(cases[i].in, cases[i].n);
		EXPECT_EQ(cases[i].says, msg_head_parse(&r, &t, &seq), cases[i].want);
	}
	msg_head_print(&w, MSG_VM_SAVE, 0x12345678);
	r = rd_of(b, wr_len(&w));
	CHECK(!w.bad && wr_len(&w) == MSG_HEAD && msg_head_parse(&r, &t, &seq) == 0);
	CHECK(t == MSG_VM_SAVE && seq == 0x12345678 && rd_end(&r));
}

static void ids(void)
{
	CHECK(sandbox_id_valid(ID));
	CHECK(!sandbox_id_valid(""));
	CHECK(!sandbox_id_valid("i"));
	CHECK(!sandbox_id_valid(ID "a"));
	CHECK(!sandbox_id_valid("iabcdefghijklmno018"));
	CHECK(!sandbox_id_valid("jabcdefghijklmno0189"));
	CHECK(!sandbox_id_valid("iabcdefghijklmno018A"));
	CHECK(!sandbox_id_valid("iabcdefghijklmn/0189"));
	CHECK(!sandbox_id_valid("iabcdefghijklmn.0189"));
}

/* One struct of each kind behind one interface, so that cuts are tried on all of them. */
struct kind {
	const char *says;
	enum msg_type type;
	size_t (*print)(uint8_t *dst, size_t size);
	int (*parse)(struct rd in);
};

static const struct jail_start start = {.id = ID,
					.memory_max_bytes = 1,
					.file_max_bytes = INT64_MAX,
					.pids_max = 4194304,
					.cpu_max_permille = 1024000,
					.kvm = true};
static const struct jail_hello hello = {
	.is_root = true, .has_limits = false, .uid_first = 7, .limits_why = "none"};
static const struct keeper_hello khello = {
	.id = ID, .variant = "a1", .state = VM_READY, .has_vm = true, .daemon_starts = 2};
static const struct vm_event event = {.state = VM_STOPPED, .wait_status = 9, .text = "gone"};
static struct vm_spec spec = {.id = ID,
			      .variant = "v-1",
			      .accel = ACCEL_KVM,
			      .memory_mib = 512,
			      .vcpus = 2,
			      .cmdline = "console=hvc0"};

#define KIND(name, value)                                                                          \
	static size_t name##_bytes(uint8_t *dst, size_t size)                                      \
	{                                                                                          \
		struct wr w = wr_of(dst, size);                                                    \
                                                                                                   \
		name##_print(&w, &value);                                                          \
		return w.bad ? 0 : wr_len(&w);                                                     \
	}                                                                                          \
	static int name##_same(struct rd in)                                                       \
	{                                                                                          \
		struct name v;                                                                     \
		int r;                                                                             \
                                                                                                   \
		memset(&v, 0, sizeof v);                                                           \
		r = name##_parse(&v, in);                                                          \
		if (r == 0 && memcmp(&v, &value, sizeof v) != 0)                                   \
			return 1;                                                                  \
		return r;                                                                          \
	}
KIND(jail_start, start)
KIND(jail_hello, hello)
KIND(keeper_hello, khello)
KIND(vm_event, event)
KIND(vm_spec, spec)

static const struct kind kinds[] = {
	{"jail_start", MSG_JAIL_START, jail_start_bytes, jail_start_same},
	{"jail_hello", MSG_JAIL_HELLO, jail_hello_bytes, jail_hello_same},
	{"keeper_hello", MSG_KEEPER_HELLO, keeper_hello_bytes, keeper_hello_same},
	{"vm_event", MSG_VM_STATE, vm_event_bytes, vm_event_same},
	{"vm_spec", MSG_VM_BOOT, vm_spec_bytes, vm_spec_same},
};

static void round_trips(void)
{
	static uint8_t b[MSG_BODY_MAX];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];
		size_t n = k->print(b, sizeof b);

		EXPECT(k->says, n >= msg_rules[k->type].min && n <= msg_rules[k->type].max);
		EXPECT_EQ(k->says, k->parse(rd_of(b, n)), 0);
		for (size_t cut = 0; cut < n; cut++)
			EXPECT_EQ(k->says, k->parse(rd_of(b, cut)), -EBADMSG);
		b[n] = 0;
		EXPECT_EQ(k->says, k->parse(rd_of(b, n + 1)), -EBADMSG);
		EXPECT_EQ(k->says, k->print(b, n - 1), 0);
	}
}

static int spec_try(void)
{
	static uint8_t b[MSG_BODY_MAX];

	return vm_spec_same(rd_of(b, vm_spec_bytes(b, sizeof b)));
}

static void spec_ranges(void)
{
	const struct vm_spec good = spec;
	size_t n;
	static uint8_t b[MSG_BODY_MAX];

	(void)memcpy(spec.token, hex64, sizeof hex64);
	memset(spec.variant, 'a', VARIANT_ID_SIZE - 1);
	memset(spec.cmdline, 'c', CMDLINE_SIZE - 1);
	EXPECT_EQ("longest", spec_try(), 0);
	n = vm_spec_bytes(b, sizeof b);
	EXPECT_EQ("longest is the table's", n, msg_rules[MSG_VM_BOOT].max);
	spec.token[63] = '\0';
	EXPECT_EQ("short token", spec_try(), -EBADMSG);
	(void)memcpy(spec.token, "ABCDEF", 6);
	spec.token[63] = '0';
	EXPECT_EQ("upper-case token", spec_try(), -EBADMSG);
	spec = good;
	spec.memory_mib = VM_MEMORY_MIN_MIB;
	EXPECT_EQ("least memory", spec_try(), 0);
	spec.memory_mib = VM_MEMORY_MIN_MIB - 1;
	EXPECT_EQ("too little memory", spec_try(), -EBADMSG);
	spec.memory_mib = VM_MEMORY_MAX_MIB;
	EXPECT_EQ("most memory", spec_try(), 0);
	spec.memory_mib = VM_MEMORY_MAX_MIB + 1;
	EXPECT_EQ("too much memory", spec_try(), -EBADMSG);
	spec = good;
	spec.vcpus = VM_VCPUS_MAX;
	EXPECT_EQ("most CPUs", spec_try(), 0);
	spec.vcpus = VM_VCPUS_MAX + 1;
	EXPECT_EQ("too many CPUs", spec_try(), -EBADMSG);
	spec.vcpus = 0;
	EXPECT_EQ("no CPU", spec_try(), -EBADMSG);
	spec = good;
	spec.accel = ACCELS;
	EXPECT_EQ("unknown accelerator", spec_try(), -EBADMSG);
	spec = good;
	spec.cmdline[0] = '\n';
	EXPECT_EQ("control in the command line", spec_try(), -EBADMSG);
	spec = good;
	(void)memcpy(spec.variant, "../x", 5);
	EXPECT_EQ("variant that climbs", spec_try(), -EBADMSG);
	(void)memcpy(spec.variant, "a/x", 4);
	EXPECT_EQ("variant with a slash", spec_try(), -EBADMSG);
	(void)memcpy(spec.variant, "..", 3);
	EXPECT_EQ("variant of dots", spec_try(), -EBADMSG);
	(void)memcpy(spec.variant, "a.b", 4);
	EXPECT_EQ("variant with a dot inside", spec_try(), 0);
	spec = good;
	spec.id[3] = '-';
	EXPECT_EQ("bad id", spec_try(), -EBADMSG);
	spec = good;
}

static void other_ranges(void)
{
	uint8_t b[512];
	size_t n = jail_start_bytes(b, sizeof b);

	b[n - 1] = 2;
	EXPECT_EQ("truth value 2", jail_start_same(rd_of(b, n)), -EBADMSG);
	(void)jail_start_bytes(b, sizeof b);
	b[22] = 0x80;
	EXPECT_EQ("memory past 2^63", jail_start_same(rd_of(b, n)), -EBADMSG);
	(void)jail_start_bytes(b, sizeof b);
	b[30] = 0x80;
	EXPECT_EQ("file past 2^63", jail_start_same(rd_of(b, n)), -EBADMSG);
	(void)jail_start_bytes(b, sizeof b);
	b[41]++;
	EXPECT_EQ("one process too many", jail_start_same(rd_of(b, n)), -EBADMSG);
	(void)jail_start_bytes(b, sizeof b);
	b[45]++;
	EXPECT_EQ("one permille too many", jail_start_same(rd_of(b, n)), -EBADMSG);
	n = vm_event_bytes(b, sizeof b);
	b[0] = VM_STATES;
	EXPECT_EQ("unknown state", vm_event_same(rd_of(b, n)), -EBADMSG);
	n = keeper_hello_bytes(b, sizeof b);
	b[n - 6] = VM_STATES;
	EXPECT_EQ("unknown state", keeper_hello_same(rd_of(b, n)), -EBADMSG);
	b[n - 6] = VM_NONE;
	EXPECT_EQ("an id before there is a VM", keeper_hello_same(rd_of(b, n)), -EBADMSG);
	EXPECT_EQ("no id and no VM", keeper_hello_same(rd_of("\0\0\0\0\0\0\0\0\0\0", 10)), 1);
	EXPECT_EQ("no id but a VM", keeper_hello_same(rd_of("\0\0\0\0\3\1\0\0\0\1", 10)), -EBADMSG);
}

int main(void)
{
	rules();
	head();
	ids();
	round_trips();
	spec_ranges();
	other_ranges();
	return test_done();
}
