/* bwrap's info. Properties: a pid in its range or nothing; how it is written does not matter. */
#include "base/fuzz.h"
#include "os/jail.h"
#include "os/pidfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char text[64];
	pid_t pid = -1;
	pid_t again = -1;
	int err = jail_info_parse((const char *)data, n, &pid);

	assert(err == 0 || (err == -EBADMSG && pid == -1));
	if (err == 0) {
		assert(pid >= 2 && pid <= PID_MAX);
		(void)snprintf(text, sizeof text, "{\"child-pid\": %d}", pid);
		assert(jail_info_parse(text, strlen(text), &again) == 0 && again == pid);
	}
	return 0;
}
