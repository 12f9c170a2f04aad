/* /proc/PID/status and uid_map. Properties: all of it or an error; a range that is mapped has every
 * smaller range inside mapped too. */
#include "base/alloc.h"
#include "base/fuzz.h"
#include "node.h"
#include "os/pidfd.h"
#include "proc.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AUTO(str_drop) char *text = xstrndup((const char *)data, n);
	struct proc_status s;
	int err = proc_status_parse(text, &s);

	assert(err == 0 || err == -EBADMSG);
	if (err == 0) {
		assert(strlen(s.name) < sizeof s.name && s.pid_depth >= 1);
		assert(s.parent >= 0 && s.parent <= PID_MAX && s.pid_inner <= PID_MAX);
	}
	if (uid_map_has(text, 1000, 100))
		assert(uid_map_has(text, 1000, 99) && uid_map_has(text, 1001, 99));
	return 0;
}
