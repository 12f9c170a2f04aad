/* An empty qcow2 image, written by ourselves: no process is started while a sandbox is created.
 * It names no backing file: the chain is given to QEMU explicitly, so nothing in a layer, which a
 * guest's writes reach, can point anywhere. Format: QEMU docs/interop/qcow2.txt, version 3. */
#ifndef SPACE_STORE_QCOW2_H
#define SPACE_STORE_QCOW2_H

#include "base/defs.h"

#define QCOW2_CLUSTER   65536u
#define QCOW2_SIZE_MAX  ((uint64_t)4 << 40) /* what one cluster of first-level table reaches */
#define QCOW2_EMPTY_MAX (4u * QCOW2_CLUSTER)

/* size_bytes: of the disk, a multiple of 512, 512..QCOW2_SIZE_MAX, else -EINVAL. *ret_n: bytes. */
int qcow2_empty_print(uint8_t dst[QCOW2_EMPTY_MAX], uint64_t size_bytes, size_t *ret_n);

/* The same into an empty file; only the bytes that are not zero take room. */
int qcow2_empty_write(int fd, uint64_t size_bytes);

#endif
