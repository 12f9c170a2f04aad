/* Whether this node has room for one more sandbox. */
#ifndef SPACE_SPACED_ADMIT_H
#define SPACE_SPACED_ADMIT_H

#include "spaced/sandbox.h"

#define ADMIT_RESERVE_MIB 256u /* the host keeps at least this much */
#define ADMIT_START_MIB   96u  /* what one sandbox touches of its own while it starts */

/* Of /proc/meminfo's text. -EINVAL. */
int meminfo_available_mib(const char *text, uint64_t *ret);

/* NULL: there is. */
const struct refusal *admit(struct node *n);

#endif
