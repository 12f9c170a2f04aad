/* See record.h. */
#include "keeper/record.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "os/fd.h"
#include "wire/json.h"

#include <errno.h>

#define RECORD_MAX 4096

void record_write(int fd, const char *id, const char *why, int wait_status)
{
	char at[RFC3339_SIZE];
	AUTO(json_drop) json_t *j = NULL;
	AUTO(str_drop) char *text = NULL;
	size_t n;

	rfc3339_print(at, clock_real_ns());
	j = json_pack("{s:s, s:s, s:i, s:s}", "id", id, "why", why, "waitStatus", wait_status, "at",
		      at);
	text = j ? json_print(j, RECORD_MAX, &n) : NULL;
	if (!text || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fd_write_all(fd, text, n) < 0 || fd_write_all(fd, "\n", 1) < 0)
		log_warn("cannot write the exit record, going on", "errno=%d", errno);
}

void record_sync(int fd)
{
	if (fsync(fd) < 0)
		log_warn("cannot sync the exit record, going on", "errno=%d", errno);
}
