/* The table of calls: what exists, what E2B has and we do not yet, what is nothing. */
#include "spaced/api.h"

#include "base/str.h"

#define ID "{id}"

static const struct {
	const char *method;
	const char *path;
	enum api_call call;
} calls[] = {
	{"GET", "/health", API_HEALTH},
	{"GET", "/node", API_NODE},
	{"GET", "/node/ended", API_NODE_ENDED},
	{"POST", "/node/shutdown", API_NODE_SHUTDOWN},
	{"POST", "/sandboxes", API_CREATE_V1},
	{"POST", "/v2/sandboxes", API_CREATE_V2},
	{"GET", "/sandboxes", API_LIST_V1},
	{"GET", "/v2/sandboxes", API_LIST_V2},
	{"GET", "/sandboxes/" ID, API_GET},
	{"DELETE", "/sandboxes/" ID, API_KILL},
	{"POST", "/sandboxes/" ID "/timeout", API_TIMEOUT},
	{"POST", "/sandboxes/" ID "/connect", API_CONNECT_V1},
	{"POST", "/v2/sandboxes/" ID "/connect", API_CONNECT_V2},
	{"GET", "/sandboxes/" ID "/console", API_CONSOLE},
	{"GET", "/templates", API_TEMPLATES},
	{"GET", "/v2/templates", API_TEMPLATES},

	{"POST", "/sandboxes/" ID "/resume", API_LATER},
	{"POST", "/sandboxes/" ID "/pause", API_LATER},
	{"POST", "/sandboxes/" ID "/fork", API_LATER},
	{"POST", "/sandboxes/" ID "/snapshots", API_LATER},
	{"POST", "/sandboxes/" ID "/refreshes", API_LATER},
	{"PUT", "/sandboxes/" ID "/network", API_LATER},
	{"GET", "/sandboxes/" ID "/metrics", API_LATER},
	{"GET", "/sandboxes/" ID "/logs", API_LATER},
	{"GET", "/v2/sandboxes/" ID "/logs", API_LATER},
	{"GET", "/sandboxes/metrics", API_LATER},
	{"GET", "/snapshots", API_LATER},
	{"GET", "/teams", API_LATER},
	{"POST", "/v3/templates", API_LATER},
	{"GET", "/templates/" ID, API_LATER},
	{"DELETE", "/templates/" ID, API_LATER},
	{"GET", "/secrets", API_LATER},
	{"POST", "/secrets", API_LATER},
	{"GET", "/volumes", API_LATER},
	{"POST", "/volumes", API_LATER},
};

/* Whether path is what pattern says; *ret_id, *ret_id_n: what stands for {id}. */
static bool path_is(const char *pattern, const char *path, size_t n, const char **ret_id,
		    size_t *ret_id_n)
{
	const char *end = path + n;

	while (*pattern) {
		if (str_starts(pattern, ID)) {
			const char *start = path;

			while (path < end && *path != '/')
				path++;
			*ret_id = start;
			*ret_id_n = (size_t)(path - start);
			if (path == start)
				return false;
			pattern += strlen(ID);
		} else if (path < end && *path == *pattern) {
			path++;
			pattern++;
		} else {
			return false;
		}
	}
	return path == end;
}

static void id_copy(char ret[SANDBOX_ID_SIZE], const char *id, size_t n)
{
	const char *dash = memchr(id, '-', n);

	if (dash)
		n = (size_t)(dash - id);
	ret[0] = '\0';
	if (n != SANDBOX_ID_LEN)
		return;
	memcpy(ret, id, n);
	ret[n] = '\0';
	if (!sandbox_id_valid(ret))
		ret[0] = '\0';
}

enum api_call api_find(const char *method, size_t method_n, const char *path, size_t path_n,
		       char ret_id[SANDBOX_ID_SIZE])
{
	enum api_call found = API_NONE;
	const char *id = "";
	size_t id_n = 0;

	ret_id[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (!path_is(calls[i].path, path, path_n, &id, &id_n))
			continue;
		if (strlen(calls[i].method) == method_n &&
		    strncmp(calls[i].method, method, method_n) == 0) {
			id_copy(ret_id, id, id_n);
			return calls[i].call;
		}
		found = API_METHOD;
	}
	return found;
}
