/* Messages between the platform's own processes: one SOCK_SEQPACKET packet each, a fixed head and
 * encoded fields, file descriptors beside it. The table msg_rules says who may send what to whom,
 * how long it may be and how many descriptors it carries; whatever falls outside ends the peer's
 * connection. Who the peer is follows from the socket, never from the bytes.
 *
 * Head: be16 type, be16 MSG_VERSION, be32 seq (an answer repeats the seq of its request; 0 =
 * event). Two versions of the platform may meet after an upgrade: an unknown version is refused
 * by name. */
#ifndef SPACE_WIRE_MSG_H
#define SPACE_WIRE_MSG_H

#include "base/defs.h"
#include "base/rd.h"
#include "base/wr.h"

#define MSG_VERSION  1
#define MSG_HEAD     8
#define MSG_BODY_MAX 4096
#define MSG_FDS_MAX  8

enum msg_peer { PEER_SPACED, PEER_JAILER, PEER_KEEPER, PEER_DAEMON, PEERS };

enum msg_type {
	MSG_NONE,
	/* spaced -> jailer */
	MSG_JAIL_START, /* struct jail_start; fds: JAIL_FDS in order */
	MSG_JAIL_KILL,  /* str id; fds: optional pidfd of the keeper (after the jailer's restart) */
	MSG_JAIL_QUIT,  /* nothing: no more starts, exit when no sandbox is left */
	/* jailer -> spaced */
	MSG_JAIL_HELLO,   /* struct jail_hello: what this node can do; once, first */
	MSG_JAIL_STARTED, /* str id, be32 uid */
	MSG_JAIL_FAILED,  /* str id, be32 errno, str text */
	MSG_JAIL_GONE, /* str id, be32 wait status: every process of it is reaped, cgroup removed */
	/* spaced -> keeper */
	MSG_VM_BOOT,    /* struct vm_spec; fds: VM_BOOT_FDS in order */
	MSG_VM_RESTORE, /* struct vm_spec; fds: VM_RESTORE_FDS in order */
	MSG_VM_SAVE,    /* nothing; fds: device state (read-write). Stops the VM and ends QEMU. */
	MSG_VM_STOP, /* nothing: keeper ends QEMU and space-daemon, writes its record and exits */
	/* keeper -> spaced */
	MSG_KEEPER_HELLO, /* struct keeper_hello; fds: pidfd of keeper, then RAM memfd if has_vm */
	MSG_VM_STATE,     /* struct vm_event */
	MSG_VM_SAVED,     /* nothing */
	/* keeper -> daemon */
	MSG_DAEMON_CONFIG, /* str id, str access token ("" = open) */
	/* daemon -> keeper */
	MSG_DAEMON_READY, /* nothing: the handshake with the guest is done */
	MSG_TYPES
};

struct msg {
	enum msg_type type;
	uint32_t seq;
	struct rd body;
	int fd[MSG_FDS_MAX];
	size_t n_fds;
};

struct msg_rule {
	enum msg_peer from;
	enum msg_peer to;
	uint16_t min; /* body bytes */
	uint16_t max;
	uint8_t fds_min;
	uint8_t fds_max;
};
extern const struct msg_rule msg_rules[MSG_TYPES];
const char *msg_name(enum msg_type t);

/* 0, or -EPROTO: not in the table for this direction, or a size or fd count outside it. */
int msg_allowed(enum msg_type t, enum msg_peer from, enum msg_peer to, size_t body, size_t fds);
/* Reads the head. -EBADMSG (short), -EPROTONOSUPPORT (another version), -EPROTO (unknown type). */
int msg_head_parse(struct rd *in, enum msg_type *ret_type, uint32_t *ret_seq);
void msg_head_print(struct wr *out, enum msg_type type, uint32_t seq);

/* --- fields; every _parse demands that nothing is left over (-EBADMSG) and checks ranges --- */

#define SANDBOX_ID_LEN  20 /* 'i' and 19 of [a-z0-9]; fits a host-name label with a port */
#define SANDBOX_ID_SIZE (SANDBOX_ID_LEN + 1)
bool sandbox_id_valid(const char *id);

#define TOKEN_SIZE        65 /* 64 lower-case hex digits and a NUL, or "" */
#define VARIANT_ID_SIZE   65 /* [a-z0-9._-], no leading dot, or "" */
#define CMDLINE_SIZE      1024
#define VM_MEMORY_MIN_MIB 128
#define VM_MEMORY_MAX_MIB 65536
#define VM_VCPUS_MAX      32

enum accel { ACCEL_TCG, ACCEL_KVM, ACCELS };
const char *accel_name(enum accel a); /* "tcg", "kvm" */

/* MSG_JAIL_START descriptors: become 3, 4, 5, 6 of the keeper; the log becomes its 2. */
enum jail_fd {
	JAIL_FD_KEEPER_SOCK,
	JAIL_FD_CLIENT_SOCK,
	JAIL_FD_PLATFORM_SOCK,
	JAIL_FD_EXIT,
	JAIL_FD_LOG,
	JAIL_FDS
};
#define KEEPER_FD_SOCK     3 /* listening, SEQPACKET: spaced */
#define KEEPER_FD_CLIENT   4 /* listening, STREAM: space-daemon's client side */
#define KEEPER_FD_PLATFORM 5 /* listening, STREAM: space-daemon's platform side */
#define KEEPER_FD_EXIT     6 /* file for the exit record */

struct jail_start {
	char id[SANDBOX_ID_SIZE];
	uint64_t memory_max_bytes; /* of the whole jail, 0 = no limit */
	uint64_t file_max_bytes;   /* of any one file that it writes, 0 = no limit */
	uint32_t pids_max;         /* 0 = no limit */
	uint32_t cpu_max_permille; /* of one core, 0 = no limit */
	bool kvm;                  /* /dev/kvm is needed inside */
};
struct jail_hello {
	bool is_root;    /* every sandbox gets its own uid */
	bool has_limits; /* cgroup limits are in force */
	uint32_t uid_first;
	char limits_why[128]; /* why not, or "" */
};
/* What QEMU is told about one VM. */
struct vm_spec {
	char id[SANDBOX_ID_SIZE];
	char token[TOKEN_SIZE];        /* of space-daemon's client side; "" = open */
	char variant[VARIANT_ID_SIZE]; /* which RAM image; "" while it is being made */
	enum accel accel;
	uint32_t memory_mib;        /* VM_MEMORY_MIN_MIB..VM_MEMORY_MAX_MIB */
	uint32_t vcpus;             /* 1..VM_VCPUS_MAX */
	char cmdline[CMDLINE_SIZE]; /* boot only */
};
enum vm_boot_fd {
	BOOT_FD_RAM,
	BOOT_FD_KERNEL,
	BOOT_FD_INITRD,
	BOOT_FD_BASE,
	BOOT_FD_LAYER,
	BOOT_FD_CONSOLE,
	VM_BOOT_FDS
};
enum vm_restore_fd {
	RESTORE_FD_RAM,
	RESTORE_FD_STATE,
	RESTORE_FD_BASE,
	RESTORE_FD_TEMPLATE_LAYER,
	RESTORE_FD_LAYER,
	RESTORE_FD_CONSOLE,
	VM_RESTORE_FDS
};

enum vm_state {
	VM_NONE,     /* keeper waits for a boot or restore */
	VM_STARTING, /* QEMU is being started */
	VM_RUNNING,  /* the guest's CPUs run */
	VM_READY,    /* and space-daemon has a session with space-init */
	VM_SAVING,
	VM_STOPPED, /* QEMU is gone: vm_event.text says why */
	VM_STATES
};
const char *vm_state_name(enum vm_state s);

struct vm_event {
	enum vm_state state;
	uint32_t wait_status; /* VM_STOPPED: as waitpid(2) gave it */
	char text[256];       /* for the operator */
};
struct keeper_hello {
	char id[SANDBOX_ID_SIZE]; /* "" with VM_NONE: a keeper learns it from its VM's spec */
	char variant[VARIANT_ID_SIZE];
	enum vm_state state;
	bool has_vm;
	uint32_t daemon_starts; /* how often space-daemon was started; 1 is the normal value */
};

void jail_start_print(struct wr *out, const struct jail_start *v);
int jail_start_parse(struct jail_start *ret, struct rd in);
void jail_hello_print(struct wr *out, const struct jail_hello *v);
int jail_hello_parse(struct jail_hello *ret, struct rd in);
void vm_spec_print(struct wr *out, const struct vm_spec *v);
int vm_spec_parse(struct vm_spec *ret, struct rd in);
void vm_event_print(struct wr *out, const struct vm_event *v);
int vm_event_parse(struct vm_event *ret, struct rd in);
void keeper_hello_print(struct wr *out, const struct keeper_hello *v);
int keeper_hello_parse(struct keeper_hello *ret, struct rd in);

#endif
