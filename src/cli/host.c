/* See host.h. */
#include "cli/host.h"

#include "base/alloc.h"
#include "base/defs.h"
#include "base/str.h"
#include "os/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define CPUINFO_MAX (1024u * 1024)

static void cpu_model(char dst[HOST_TEXT_MAX])
{
	AUTO(fd_drop) int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	AUTO(str_drop) char *text = NULL;
	const char *p;
	size_t n;

	(void)str_copy(dst, HOST_TEXT_MAX, "unknown");
	if (fd < 0 || fd_slurp(fd, CPUINFO_MAX, &text, &n) < 0)
		return;
	p = strstr(text, "model name");
	if (!p || !(p = strchr(p, ':')))
		return;
	p += strspn(p, ": \t");
	str_escape(dst, HOST_TEXT_MAX, p, strcspn(p, "\n"), NULL);
}

void host_look(struct host *ret)
{
	struct utsname u;

	*ret = (struct host){.cores = sysconf(_SC_NPROCESSORS_ONLN)};
	cpu_model(ret->cpu);
	if (uname(&u) == 0)
		(void)snprintf(ret->kernel, sizeof ret->kernel, "%s %s", u.sysname, u.release);
	if (getloadavg(&ret->load, 1) != 1)
		ret->load = 0;
}
