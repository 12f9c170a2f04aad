/* The control plane over HTTP: E2B's sandbox calls and our own about the node. */
#ifndef SPACE_SPACED_API_H
#define SPACE_SPACED_API_H

#include "net/http_server.h"
#include "spaced/node.h"

/* arg of an http_server on these callbacks. */
struct api {
	struct node *n;
	bool is_local; /* the owner-only unix socket: no key is asked for */
};
extern const struct http_server_ops api_server_ops;

/* Which call a method and a path (without query) mean. Pure. */
enum api_call {
	API_NONE,   /* 404 */
	API_METHOD, /* the path is known, the method is not: 405 */
	API_LATER,  /* a call of E2B that this version does not have: 501 */
	API_HEALTH,
	API_NODE,
	API_NODE_ENDED,
	API_NODE_SHUTDOWN,
	API_CREATE_V1,
	API_CREATE_V2,
	API_LIST_V1,
	API_LIST_V2,
	API_GET,
	API_KILL,
	API_TIMEOUT,
	API_CONNECT_V1,
	API_CONNECT_V2,
	API_CONSOLE,
	API_TEMPLATES,
	API_CALLS
};
/* ret_id: the sandbox's id in the path, cut at its first dash; "" where there is none or it
 * cannot be one. */
enum api_call api_find(const char *method, size_t method_n, const char *path, size_t path_n,
		       char ret_id[SANDBOX_ID_SIZE]);

#endif
