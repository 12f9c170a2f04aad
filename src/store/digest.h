/* SHA-256 (GnuTLS): names of variants, content of stored files, API keys. */
#ifndef SPACE_STORE_DIGEST_H
#define SPACE_STORE_DIGEST_H

#include "base/defs.h"

#define DIGEST_SIZE     32
#define DIGEST_HEX_SIZE 65 /* 64 lower-case digits and a NUL */

void digest_of(uint8_t ret[DIGEST_SIZE], const void *p, size_t n);
void digest_hex(char dst[DIGEST_HEX_SIZE], const uint8_t d[DIGEST_SIZE]);

/* Piecewise. _end gives the result and frees. */
struct digest;
struct digest *digest_new(void);
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, uint8_t ret[DIGEST_SIZE]);

/* A file's whole content from its start, whatever its offset is. */
int digest_file(int fd, uint64_t max_bytes, uint8_t ret[DIGEST_SIZE]);

/* Of a sparse file: for every 4 KiB page that is not all zero, in order: be64 page number, the
 * page. The same for a file, its copy with other holes, and a memfd. size_bytes: a multiple of
 * 4096. */
int digest_pages(int fd, uint64_t size_bytes, uint8_t ret[DIGEST_SIZE]);

#endif
