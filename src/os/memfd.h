/* RAM images in memory: made, filled, sealed, then handed to any number of QEMUs. */
#ifndef SPACE_OS_MEMFD_H
#define SPACE_OS_MEMFD_H

#include "base/fail.h"

/* A sealable memfd of that size, all zero; CLOEXEC, never executable where the kernel can say so.
 */
int memfd_make(const char *name, uint64_t size_bytes, int *ret_fd, struct fail *f);
/* The same, filled from the first size_bytes of `file`; holes stay holes. Not sealed yet. */
int memfd_load(const char *name, int file, uint64_t size_bytes, int *ret_fd, struct fail *f);
/* No more writing, shrinking, growing or sealing, for every holder and for good. -EBUSY while a
 * writable shared mapping exists: QEMU that wrote it must have ended. Private mappings are fine. */
int memfd_seal(int fd, struct fail *f);
bool memfd_is_sealed(int fd);

#endif
