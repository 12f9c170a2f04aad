/* For tests: a guest behind the three ports, honest or writing what it is told to, and requests
 * of a client that are watched. */
#ifndef SPACE_DAEMON_TEST_PEERS_H
#define SPACE_DAEMON_TEST_PEERS_H

#include "daemon/guest.h"
#include "net/h2.h"
#include "wire/wake.h"

#define PEER_TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define PEER_BULK  (3u * 1024 * 1024)
#define PEER_CHUNK (32u * 1024)

enum guest_mode {
	GUEST_HONEST,
	GUEST_ABSENT, /* never answers the wake */
	GUEST_RAW,    /* answers the handshake, then writes fake.raw on space.control */
};

struct fake {
	struct loop *loop;
	int fd[GUEST_PORTS];
	struct watch *watch[GUEST_PORTS];
	struct wake_scan wake_scan;
	struct preface_scan scan[2];
	uint8_t nonce[WAKE_NONCE];
	struct h2 *h2[2];
	enum guest_mode mode;
	const char *raw;
	size_t raw_n;
	size_t flood_n; /* bytes of the frame that is repeated; 0: none */
	size_t part_n;  /* still to write of this round */
	bool has_begun;
	bool is_raw; /* the handshake is done, the bytes follow */
	unsigned sessions;
	unsigned closed;        /* streams that ended before their answer did */
	size_t up_bytes;        /* of all requests */
	char egress_got[8];     /* status of our own request on space.egress */
	bool has_token;         /* a credential reached us */
	struct h2_stream *held; /* of /hold */
};

/* Answers from now on. It serves /health, /space/init (204), /echo, /bulk, /early (413 at once),
 * /reset, /cut (half an answer) and holds everything else. Stops the loop at every event. */
void fake_start(struct fake *g, struct loop *l, const int fd[GUEST_PORTS]);
void fake_stop(struct fake *g);
void fake_ask_egress(struct fake *g); /* a CONNECT on space.egress */

struct asked {
	struct loop *loop;
	struct h2_stream *stream; /* NULL when closed */
	char status[8];
	size_t up; /* still to send */
	size_t got;
	size_t unread; /* not given back, when is_slow */
	bool is_slow;
	bool has_end;
	bool is_closed;
	uint32_t code;
};

/* A request with the token and a cookie; up: bytes of its body. Stops the loop at every event. */
void asked_start(struct asked *q, struct loop *l, struct h2 *client, const char *method,
		 const char *path, size_t up);

#endif
