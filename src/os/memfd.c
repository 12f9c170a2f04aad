/* Sealed RAM images. The seal is what makes sharing safe: QEMU opens its RAM read-write and would
 * punch holes through the template of everybody else. */
#include "os/memfd.h"

#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int memfd_make(const char *name, uint64_t size_bytes, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop)
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return fail_errno(f, -errno, "cannot make memory '%s'", name);
	if (size_bytes > INT64_MAX || ftruncate(fd, (off_t)size_bytes) < 0)
		return fail_errno(f, size_bytes > INT64_MAX ? -EFBIG : -errno,
				  "cannot size memory '%s'", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

int memfd_load(const char *name, int file, uint64_t size_bytes, int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int err = memfd_make(name, size_bytes, &fd, f);

	if (err < 0)
		return err;
	err = fd_copy(fd, file, size_bytes, true);
	if (err < 0)
		return fail_errno(f, err, "cannot load memory '%s'", name);
	*ret_fd = fd_take(&fd);
	return 0;
}

int memfd_seal(int fd, struct fail *f)
{
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return fail_errno(f, -errno, "cannot seal memory");
	return 0;
}

bool memfd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS;
}
