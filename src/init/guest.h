/* What the request handlers share: one of it, in main.c. */
#ifndef SPACE_INIT_GUEST_H
#define SPACE_INIT_GUEST_H

#include "init/cgroup.h"
#include "init/identity.h"
#include "init/process.h"
#include "init/stats.h"
#include "init/userspace.h"

struct guest {
	struct loop *loop;
	struct cgroups cgroups;
	struct userspace userspace;
	struct processes processes;
	struct identity identity;
	bool is_ready; /* an identity was applied: user code may run */
	struct stats stats;
};

#endif
