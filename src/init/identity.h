/* Who this guest is: POST /space/init. A restored guest is the twin of every other guest of its
 * template until this is applied, so no user code starts before the first one.
 *
 * Applying never blocks and never forks: clock, kernel entropy and host name are system calls, and
 * the files below were bind-mounted over the user's at boot and are rewritten in place.
 * A later request replaces an earlier one whole. */
#ifndef SPACE_INIT_IDENTITY_H
#define SPACE_INIT_IDENTITY_H

#include "base/fail.h"
#include "init/env.h"

#define ENTROPY_MAX  512
#define ID_MAX       128 /* sandboxId, templateId */
#define MACHINE_ID_N 32
#define BOOT_ID_N    36

struct identity {
	char *sandbox_id;
	char *template_id;
	char *hostname;
	char *default_user;
	char *default_workdir; /* "" = the user's home */
	struct env envs;       /* E2B_SANDBOX…, then the sandbox's own */
	char machine_id[MACHINE_ID_N + 1];
	char boot_id[BOOT_ID_N + 1];
	uint64_t realtime_ns;
	uint64_t generation;
	size_t entropy_n;
	uint8_t entropy[ENTROPY_MAX];
};

/* Files of the user's root that are ours: order of identity_files. */
enum identity_file { FILE_HOSTNAME, FILE_HOSTS, FILE_MACHINE_ID, FILE_BOOT_ID, IDENTITY_FILES };

/* Pure. Errors' texts are for the one who asked. */
int identity_parse(struct identity *ret, const void *p, size_t n, struct fail *f);
void identity_done(struct identity *id);

/* `file`: descriptors of the files, -1 where the user's root has no place for one. */
int identity_apply(const struct identity *id, const int file[IDENTITY_FILES], struct fail *f);

#endif
