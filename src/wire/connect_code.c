/* The table of Connect's error codes (Connect protocol, "Error codes"); see connect_code.h. */
#include "wire/connect_code.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned status;
} codes[] = {
	[CONNECT_OK] = {"ok", 200},
	[CONNECT_CANCELED] = {"canceled", 499},
	[CONNECT_UNKNOWN] = {"unknown", 500},
	[CONNECT_INVALID_ARGUMENT] = {"invalid_argument", 400},
	[CONNECT_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
	[CONNECT_NOT_FOUND] = {"not_found", 404},
	[CONNECT_ALREADY_EXISTS] = {"already_exists", 409},
	[CONNECT_PERMISSION_DENIED] = {"permission_denied", 403},
	[CONNECT_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
	[CONNECT_FAILED_PRECONDITION] = {"failed_precondition", 400},
	[CONNECT_ABORTED] = {"aborted", 409},
	[CONNECT_OUT_OF_RANGE] = {"out_of_range", 400},
	[CONNECT_UNIMPLEMENTED] = {"unimplemented", 501},
	[CONNECT_INTERNAL] = {"internal", 500},
	[CONNECT_UNAVAILABLE] = {"unavailable", 503},
	[CONNECT_DATA_LOSS] = {"data_loss", 500},
	[CONNECT_UNAUTHENTICATED] = {"unauthenticated", 401},
};
static_assert(ARRAY_LEN(codes) == CONNECT_CODES, "a row for every code");

const char *connect_code_name(enum connect_code c)
{
	return codes[(unsigned)c < CONNECT_CODES ? c : CONNECT_UNKNOWN].name;
}

unsigned connect_code_status(enum connect_code c)
{
	return codes[(unsigned)c < CONNECT_CODES ? c : CONNECT_UNKNOWN].status;
}

enum connect_code connect_code_parse(const char *name)
{
	for (unsigned i = CONNECT_OK + 1; i < CONNECT_CODES; i++)
		if (strcmp(codes[i].name, name) == 0)
			return (enum connect_code)i;
	return CONNECT_UNKNOWN;
}

enum connect_code connect_code_of_status(unsigned status)
{
	switch (status) {
	case 400:
		return CONNECT_INTERNAL;
	case 401:
		return CONNECT_UNAUTHENTICATED;
	case 403:
		return CONNECT_PERMISSION_DENIED;
	case 404:
		return CONNECT_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return CONNECT_UNAVAILABLE;
	default:
		return CONNECT_UNKNOWN;
	}
}
