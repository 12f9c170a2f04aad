/* The command line of spaced. */
#ifndef SPACE_SPACED_OPTIONS_H
#define SPACE_SPACED_OPTIONS_H

#include "base/fail.h"

#define MAX_SANDBOXES_DEFAULT 200u
#define MAX_SANDBOXES_MAX     2000u
#define MAX_HOURS_DEFAULT     720u
#define MAX_HOURS_MAX         8760u

enum accel_choice { CHOOSE_AUTO, CHOOSE_TCG, CHOOSE_KVM };

struct options {
	const char *data;
	int jailer_fd;
	char host[46]; /* an address literal */
	uint16_t port; /* 0: the last one if it is free, else any */
	uint32_t max_sandboxes;
	uint32_t max_hours;
	enum accel_choice accel;
	const char *accel_why; /* why not KVM, from whoever tried before us; "" */
};

/* -EINVAL with the sentence for the person. */
int options_parse(int argc, char **argv, struct options *ret, struct fail *f);

/* "127.0.0.1:8080", "[::1]:0": loopback addresses only, others need TLS, which is not built yet. */
int listen_parse(const char *text, char host[46], uint16_t *ret_port, struct fail *f);

#endif
