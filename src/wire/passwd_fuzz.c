/* Users and groups. Properties: who is found is who was asked for, with absolute paths; printed
 * as a file of one line he is found again, the same; groups are no more than allowed, each once. */
#include "base/alloc.h"
#include "base/fuzz.h"
#include "wire/passwd.h"

#include <stdio.h>
#include <string.h>

static void user_check(const struct passwd_user *u)
{
	struct passwd_user again = {0};
	AUTO(str_drop)
	char *line = xasprintf("%s:x:%u:%u::%s:%s\n", u->name, u->uid, u->gid, u->home, u->shell);

	assert(u->home[0] == '/' && u->shell[0] == '/' && u->name[0] != '\0');
	assert(strlen(u->home) < PASSWD_PATH_SIZE && u->uid <= PASSWD_ID_MAX);
	assert(u->gid <= PASSWD_ID_MAX && !strpbrk(u->name, ":/\n ") && !strpbrk(u->home, ":\n"));
	assert(!strpbrk(u->shell, ":\n"));
	assert(passwd_find_name(rd_of(line, strlen(line)), u->name, &again) == 0);
	assert(strcmp(u->name, again.name) == 0 && strcmp(u->home, again.home) == 0);
	assert(strcmp(u->shell, again.shell) == 0 && u->uid == again.uid && u->gid == again.gid);
	assert(passwd_find_uid(rd_of(line, strlen(line)), u->uid, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rd file = rd_of(data, size);
	struct passwd_user u = {0};
	uint32_t id[PASSWD_GROUPS_MAX];
	size_t n = 0;

	if (passwd_find_name(file, "user", &u) == 0) {
		assert(strcmp(u.name, "user") == 0);
		user_check(&u);
	}
	if (passwd_find_uid(file, 1000, &u) == 0) {
		assert(u.uid == 1000);
		user_check(&u);
	}
	if (passwd_groups(file, "user", 1000, id, &n) < 0)
		return 0;
	assert(n >= 1 && n <= PASSWD_GROUPS_MAX && id[0] == 1000);
	for (size_t i = 0; i < n; i++) {
		assert(id[i] <= PASSWD_ID_MAX);
		for (size_t k = 0; k < i; k++)
			assert(id[i] != id[k]);
	}
	return 0;
}
