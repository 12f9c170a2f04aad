/* Names and secrets made of the kernel's randomness. */
#ifndef SPACE_SPACED_IDS_H
#define SPACE_SPACED_IDS_H

#include "wire/msg.h"

#define API_KEY_SIZE    45 /* "e2b_", 40 hex digits and a NUL */
#define MACHINE_ID_SIZE 33
#define UUID_SIZE       37

void random_bytes(void *p, size_t n); /* aborts where the kernel has none */
void id_make(char ret[SANDBOX_ID_SIZE]);
void token_make(char ret[TOKEN_SIZE]);
void api_key_make(char ret[API_KEY_SIZE]);
void machine_id_make(char ret[MACHINE_ID_SIZE]);
void uuid_make(char ret[UUID_SIZE]); /* version 4 */

#endif
