/* The error codes of the Connect protocol: numbers, names, HTTP status. Pure. */
#ifndef SPACE_WIRE_CONNECT_CODE_H
#define SPACE_WIRE_CONNECT_CODE_H

#include "base/defs.h"

enum connect_code {
	CONNECT_OK,
	CONNECT_CANCELED,
	CONNECT_UNKNOWN,
	CONNECT_INVALID_ARGUMENT,
	CONNECT_DEADLINE_EXCEEDED,
	CONNECT_NOT_FOUND,
	CONNECT_ALREADY_EXISTS,
	CONNECT_PERMISSION_DENIED,
	CONNECT_RESOURCE_EXHAUSTED,
	CONNECT_FAILED_PRECONDITION,
	CONNECT_ABORTED,
	CONNECT_OUT_OF_RANGE,
	CONNECT_UNIMPLEMENTED,
	CONNECT_INTERNAL,
	CONNECT_UNAVAILABLE,
	CONNECT_DATA_LOSS,
	CONNECT_UNAUTHENTICATED,
	CONNECT_CODES
};

const char *connect_code_name(enum connect_code c); /* "not_found"; "ok" for CONNECT_OK */
unsigned connect_code_status(enum connect_code c);  /* 404; 200 for CONNECT_OK */
/* The code of that name; CONNECT_UNKNOWN for any other text ("ok" among them). */
enum connect_code connect_code_parse(const char *name);
/* What an error answer of that HTTP status means when its body is not Connect's. */
enum connect_code connect_code_of_status(unsigned status);

#endif
