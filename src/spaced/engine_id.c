/* See engine_id.h. A build is named by the content of its parts, not by a version number: a
 * security update that keeps the number makes new variants. */
#include "spaced/engine_id.h"

#include "base/alloc.h"
#include "base/str.h"
#include "engine/accel.h"
#include "os/fd.h"
#include "os/jail.h"
#include "store/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define PART_MAX ((uint64_t)512 << 20)

/* What a saved device state depends on beside the command line. */
static const char *const parts[] = {
	JAIL_QEMU,
	"/usr/share/qemu/bios-microvm.bin",
	"/usr/share/qemu/qboot.rom",
	"/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
};

static void add_part(struct digest *d, const char *path)
{
	AUTO(fd_drop) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t part[DIGEST_SIZE] = {0};

	/* A part that this distribution does not have, or has elsewhere, counts as zeros. */
	if (fd >= 0 && digest_file(fd, PART_MAX, part) < 0)
		memset(part, 0, sizeof part);
	if (strrchr(path, '/'))
		digest_add(d, strrchr(path, '/'), strlen(strrchr(path, '/')));
	digest_add(d, part, sizeof part);
}

/* The folder that we were started from: the keeper lies beside us. */
static char *beside(const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	char *slash;

	if (n <= 0)
		return xstrdup(name);
	path[n] = '\0';
	slash = strrchr(path, '/');
	return xasprintf("%.*s/%s", slash ? (int)(slash - path) : 0, path, name);
}

static int build_name(struct config *ret, struct fail *f)
{
	AUTO(str_drop) char *keeper = beside("space-keeper");
	char hex[DIGEST_HEX_SIZE];
	uint8_t whole[DIGEST_SIZE];
	struct digest *d;

	if (access(JAIL_QEMU, X_OK) < 0)
		return fail_errno(f, -errno, "cannot use '%s' (package qemu-system-x86)",
				  JAIL_QEMU);
	d = digest_new();
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		add_part(d, parts[i]);
	add_part(d, keeper); /* it holds QEMU's command line: another machine, another state */
	digest_end(d, whole);
	digest_hex(hex, whole);
	(void)snprintf(ret->engine, sizeof ret->engine, "qemu %s", hex); /* fits by its size */
	return 0;
}

int engine_find(enum accel_choice choice, const char *why, struct config *ret, struct fail *f)
{
	struct accel_report r = {.accel = choice == CHOOSE_KVM ? ACCEL_KVM : ACCEL_TCG};

	if (choice == CHOOSE_AUTO)
		accel_probe(&r);
	else if (choice == CHOOSE_TCG)
		(void)str_escape(r.why, sizeof r.why, why, strlen(why), "");
	ret->accel = r.accel;
	(void)str_copy(ret->accel_why, sizeof ret->accel_why, r.why); /* as long */
	return build_name(ret, f);
}
