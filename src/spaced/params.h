/* Bodies of the control plane, checked: what a client may ask for. Pure. A failure's text is fit
 * for the client. Unknown fields are ignored; known ones of another type are refused by name. */
#ifndef SPACE_SPACED_PARAMS_H
#define SPACE_SPACED_PARAMS_H

#include "base/fail.h"
#include "wire/json.h"

#define PARAMS_BODY_MAX      (256u * 1024)
#define PARAMS_TEMPLATE_MAX  128u
#define TIMEOUT_DEFAULT_S    300u
#define TIMEOUT_DEFAULT_V1_S 15u
#define METADATA_COUNT_MAX   64u
#define METADATA_KEY_MAX     256u
#define METADATA_VALUE_MAX   4096u
#define METADATA_TOTAL_MAX   (16u * 1024)
#define ENV_COUNT_MAX        256u
#define ENV_KEY_MAX          256u
#define ENV_VALUE_MAX        (32u * 1024)
#define ENV_TOTAL_MAX        (64u * 1024)
#define ENV_PRINTED_MAX      (128u * 1024) /* as JSON: what the guest is sent */

enum api_version { API_V1, API_V2 };

struct new_sandbox {
	char template_name[PARAMS_TEMPLATE_MAX + 1];
	uint32_t timeout_s;
	bool secure;
	json_t *metadata; /* objects of strings; owned */
	json_t *env;
};
void new_sandbox_done(struct new_sandbox *n);

/* -EINVAL; -EOPNOTSUPP: asks for something that this version does not have. */
int new_sandbox_parse(const void *body, size_t n, enum api_version v, uint32_t max_hours,
		      struct new_sandbox *ret, struct fail *f);

/* {"timeout":S}: of POST .../timeout, where 0 ends the sandbox, and of .../connect (v2: optional,
 * then TIMEOUT_DEFAULT_S), where the body may be empty. */
int timeout_parse(const void *body, size_t n, uint32_t max_hours, uint32_t *ret_s, struct fail *f);
int connect_parse(const void *body, size_t n, enum api_version v, uint32_t max_hours,
		  uint32_t *ret_s, struct fail *f);

#endif
