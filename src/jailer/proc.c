/* /proc/PID/status, read once and taken apart. The process may be hostile and chooses its name; the
 * kernel escapes it, so no line can be forged. */
#include "proc.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/pidfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define STATUS_MAX    16384
#define PID_DEPTH_MAX 32 /* the kernel's MAX_PID_NS_LEVEL */

/* The words after "Key:\t" of a line, or NULL. */
static const char *field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
		if (strncmp(line, key, n) == 0 && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
		line += strcspn(line, "\n");
	}
	return NULL;
}

/* Reads up to `max` decimal words of the rest of a line; how many there were, 0 when one is not. */
static size_t numbers(const char *at, uint64_t *ret, size_t max, uint64_t limit)
{
	size_t n = 0;

	while (at != NULL && *at != '\0' && *at != '\n') {
		size_t len = strcspn(at, " \t\n");

		if (n == max || str_u64_n(at, len, limit, &ret[n]) < 0)
			return 0;
		n++;
		at += len;
		at += strspn(at, " \t");
	}
	return n;
}

int proc_status_parse(const char *text, struct proc_status *ret)
{
	struct proc_status s = {0};
	const char *name = field(text, "Name");
	uint64_t v[PID_DEPTH_MAX];
	size_t n;

	if (name == NULL)
		return -EBADMSG;
	(void)snprintf(s.name, sizeof s.name, "%.*s", (int)strcspn(name, "\n"), name);
	if (numbers(field(text, "PPid"), v, 1, PID_MAX) != 1)
		return -EBADMSG;
	s.parent = (pid_t)v[0];
	if (numbers(field(text, "Uid"), v, 4, UINT32_MAX) != 4)
		return -EBADMSG;
	for (size_t i = 0; i < 4; i++)
		s.uid[i] = (uid_t)v[i];
	n = numbers(field(text, "NSpid"), v, PID_DEPTH_MAX, PID_MAX);
	if (n == 0)
		return -EBADMSG;
	s.pid_depth = (unsigned)n;
	s.pid_inner = (pid_t)v[n - 1];
	*ret = s;
	return 0;
}

int proc_status_read(pid_t pid, struct proc_status *ret)
{
	AUTO(str_drop) char *text = NULL;
	AUTO(fd_drop) int fd = -1;
	char path[64];
	size_t n;
	int err;

	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = fd_slurp(fd, STATUS_MAX, &text, &n);
	return err < 0 ? err : proc_status_parse(text, ret);
}

bool proc_uid_is(const struct proc_status *s, uid_t uid)
{
	for (size_t i = 0; i < ARRAY_LEN(s->uid); i++)
		if (s->uid[i] != uid)
			return false;
	return true;
}

int proc_each(void (*seen)(void *arg, pid_t pid, const struct proc_status *s), void *arg)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		struct proc_status s;
		uint64_t pid;

		if (str_u64(e->d_name, PID_MAX, &pid) == 0 && proc_status_read((pid_t)pid, &s) == 0)
			seen(arg, (pid_t)pid, &s);
	}
	(void)closedir(d);
	return 0;
}
