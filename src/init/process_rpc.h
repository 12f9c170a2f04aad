/* The procedures of process.Process, as E2B's envd has them. */
#ifndef SPACE_INIT_PROCESS_RPC_H
#define SPACE_INIT_PROCESS_RPC_H

#include "init/call.h"

void rpc_start(struct call *c, const uint8_t *p, size_t n);
void rpc_connect(struct call *c, const uint8_t *p, size_t n);
void rpc_list(struct call *c, const uint8_t *p, size_t n);
void rpc_send_input(struct call *c, const uint8_t *p, size_t n);
void rpc_close_stdin(struct call *c, const uint8_t *p, size_t n);
void rpc_send_signal(struct call *c, const uint8_t *p, size_t n);
void rpc_update(struct call *c, const uint8_t *p, size_t n);

#endif
