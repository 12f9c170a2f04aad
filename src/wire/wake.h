/* How space-daemon and space-init agree on where a session begins.
 *
 * virtio-serial shows no reliable session boundary: bytes of an old session survive close and
 * restore. So after every start of space-daemon (boot, restore, crash) the host sends one wake
 * record on space.wake, and a preface with the same nonce on space.control and space.egress.
 * space-init drops its sessions when a wake arrives, discards what comes on each port until that
 * nonce's preface, echoes the preface there, and only then HTTP/2 starts. The host discards until
 * the echo. A newer wake replaces an older one at any moment; the host repeats it with a new
 * nonce (WAKE_RETRY_MS) until all ports echoed.
 *
 * Order: space-init echoes the wake record on space.wake once the old sessions are gone, and the
 * host sends the prefaces only after that echo. Without it a preface could reach the guest before
 * the wake (QEMU serves the ports in no promised order) and an old session would swallow it: one
 * retry lost.
 *
 *   wake:    "SPACEWK1" be64 generation  16 bytes nonce      (32 bytes)
 *   preface: "SPACEPF1"                  16 bytes nonce      (24 bytes) */
#ifndef SPACE_WIRE_WAKE_H
#define SPACE_WIRE_WAKE_H

#include "base/defs.h"

#define WAKE_NONCE    16
#define WAKE_SIZE     32
#define PREFACE_SIZE  24
#define WAKE_RETRY_MS 1000

struct wake {
	uint64_t generation;
	uint8_t nonce[WAKE_NONCE];
};

void wake_print(uint8_t dst[WAKE_SIZE], const struct wake *w);
void preface_print(uint8_t dst[PREFACE_SIZE], const uint8_t nonce[WAKE_NONCE]);

/* Finds records in a byte stream, whatever stands before or between them; a record may be split
 * over calls at any place, and a false start must not hide a true one. */
struct wake_scan {
	uint8_t got[WAKE_SIZE];
	size_t n;
};
void wake_scan_init(struct wake_scan *s);
/* Consumes from p until a whole wake was seen (true: *ret is it) or all was read (false). */
bool wake_scan_step(struct wake_scan *s, const uint8_t *p, size_t n, size_t *ret_used,
		    struct wake *ret);

struct preface_scan {
	uint8_t want[PREFACE_SIZE];
	size_t n;
};
void preface_scan_init(struct preface_scan *s, const uint8_t nonce[WAKE_NONCE]);
bool preface_scan_step(struct preface_scan *s, const uint8_t *p, size_t n, size_t *ret_used);

#endif
