/* What only the platform asks: /health, /space/…. The guest cannot tell who asks; space-daemon lets
 * nobody but the platform reach /space/. */
#ifndef SPACE_INIT_PLATFORM_RPC_H
#define SPACE_INIT_PLATFORM_RPC_H

#include "init/call.h"

void rpc_health(struct call *c, const uint8_t *p, size_t n);
void rpc_init(struct call *c, const uint8_t *p, size_t n);
void rpc_stats(struct call *c, const uint8_t *p, size_t n);
void rpc_poweroff(struct call *c, const uint8_t *p, size_t n);

_Noreturn void guest_poweroff(void); /* syncs and ends the machine */

#endif
