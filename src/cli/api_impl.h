/* What api.c and call.c share. */
#ifndef SPACE_CLI_API_IMPL_H
#define SPACE_CLI_API_IMPL_H

#include "cli/api.h"

struct http_client;

struct api {
	struct loop *loop;
	struct http_client *http;
	char *url;            /* without a path and a slash at its end */
	char *place;          /* how messages call it */
	char *sock;           /* NULL: over TCP */
	char *key;            /* NULL: none known */
	int state;            /* DATA/state, which `sock` goes through; -1: none */
	char next_token[256]; /* of the answer that came last */
};

int calls_init(struct api *a, struct fail *f);
void calls_done(struct api *a);

#endif
