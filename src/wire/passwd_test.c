/* Users and groups: what Debian has, and what an attacker with root in the guest writes there. */
#include "base/test.h"
#include "wire/passwd.h"

#include <errno.h>

#define ROOT "root:x:0:0:root:/root:/bin/bash\n"
#define USER "user:x:1000:1000:,,,:/home/user:/bin/bash\n"

static struct rd text_of(const char *s)
{
	return rd_of(s, strlen(s));
}

static const struct {
	const char *says;
	const char *file;
	const char *want; /* name uid gid home shell of "user", or NULL */
} users[] = {
	{"plain", ROOT USER, "user 1000 1000 /home/user /bin/bash"},
	{"no last line feed", "user:x:1:2::/h:/s", "user 1 2 /h /s"},
	{"empty home and shell", "user:x:1:2:::\n", "user 1 2 / /bin/sh"},
	{"largest ids", "user:x:4294967294:4294967294::/h:/s", "user 4294967294 4294967294 /h /s"},
	{"first match wins", "user:x:1:1::/a:/s\nuser:x:0:0::/b:/s\n", "user 1 1 /a /s"},
	{"broken lines before", "user\nuser:x:1\n:::::::\n\n\nuser:x:1:2::/h:/s\n",
	 "user 1 2 /h /s"},
	{"empty file", "", NULL},
	{"another user", ROOT, NULL},
	{"prefix of a name", "users:x:1:2::/h:/s\nuse:x:1:2::/h:/s\n", NULL},
	{"six fields", "user:x:1:2::/h\n", NULL},
	{"eight fields", "user:x:1:2::/h:/s:\n", NULL},
	{"uid -1", "user:x:4294967295:2::/h:/s\n", NULL},
	{"uid past 2^32", "user:x:4294967296:2::/h:/s\n", NULL},
	{"uid past 2^64", "user:x:18446744073709551616:2::/h:/s\n", NULL},
	{"negative uid", "user:x:-1:2::/h:/s\n", NULL},
	{"no uid", "user:x::2::/h:/s\n", NULL},
	{"uid with a blank", "user:x: 1:2::/h:/s\n", NULL},
	{"hex gid", "user:x:1:0x0::/h:/s\n", NULL},
	{"relative home", "user:x:1:2::h:/s\n", NULL},
	{"relative shell", "user:x:1:2::/h:sh\n", NULL},
	{"DOS line end", "user:x:1:2::/h:/s\r\n", NULL},
	{"NIS", "+user:x:1:2::/h:/s\n+::::::\n", NULL},
	{"comment", "#user:x:1:2::/h:/s\n", NULL},
};

static void user_table(void)
{
	static struct passwd_user u;
	static char got[2 * PASSWD_PATH_SIZE + 100];

	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		int r = passwd_find_name(text_of(users[i].file), "user", &u);

		EXPECT_EQ(users[i].says, r, users[i].want ? 0 : -ENOENT);
		if (r < 0)
			continue;
		(void)snprintf(got, sizeof got, "%s %u %u %s %s", u.name, u.uid, u.gid, u.home,
			       u.shell);
		EXPECT_STR(users[i].says, got, users[i].want);
	}
	CHECK(passwd_find_uid(text_of(ROOT USER), 1000, &u) == 0 && strcmp(u.name, "user") == 0);
	CHECK(passwd_find_uid(text_of(ROOT USER), 0, &u) == 0 && strcmp(u.home, "/root") == 0);
	CHECK(passwd_find_uid(text_of(ROOT USER), 1, &u) == -ENOENT);
	CHECK(passwd_find_name(text_of(ROOT USER), "", &u) == -ENOENT);
	CHECK(passwd_find_name(rd_of("us\0er:x:1:2::/h:/s", 18), "us", &u) == -ENOENT);
	CHECK(passwd_find_name(rd_of("user:x:1:2::/h\0:/s", 18), "user", &u) == -ENOENT);
}

static void user_limits(void)
{
	static char file[PASSWD_FILE_MAX + 1];
	static struct passwd_user u;
	char name[PASSWD_NAME_SIZE + 1];

	memset(name, 'n', sizeof name);
	name[PASSWD_NAME_SIZE - 1] = '\0';
	(void)snprintf(file, sizeof file, "%s:x:1:2::/h:/s\n", name);
	EXPECT_EQ("name at the limit", passwd_find_name(text_of(file), name, &u), 0);
	name[PASSWD_NAME_SIZE - 1] = 'n';
	name[PASSWD_NAME_SIZE] = '\0';
	(void)snprintf(file, sizeof file, "%s:x:1:2::/h:/s\n", name);
	EXPECT_EQ("name one past", passwd_find_name(text_of(file), name, &u), -ENOENT);
	(void)snprintf(file, sizeof file, "user:x:1:2::/%0*d:/s\n", PASSWD_PATH_SIZE - 2, 0);
	EXPECT_EQ("home at the limit", passwd_find_name(text_of(file), "user", &u), 0);
	EXPECT_EQ("home at the limit", strlen(u.home), PASSWD_PATH_SIZE - 1);
	(void)snprintf(file, sizeof file, "user:x:1:2::/%0*d:/s\n", PASSWD_PATH_SIZE - 1, 0);
	EXPECT_EQ("home one past", passwd_find_name(text_of(file), "user", &u), -ENOENT);
	memset(file, 'x', sizeof file);
	memcpy(file, USER, sizeof USER - 1);
	EXPECT_EQ("file at the limit, one long line",
		  passwd_find_name(rd_of(file, PASSWD_FILE_MAX), "user", &u), 0);
	EXPECT_EQ("file one past", passwd_find_name(rd_of(file, PASSWD_FILE_MAX + 1), "user", &u),
		  -EFBIG);
	memset(file, '\n', sizeof file);
	EXPECT_EQ("a million empty lines",
		  passwd_find_name(rd_of(file, PASSWD_FILE_MAX), "user", &u), -ENOENT);
}

static const struct {
	const char *says;
	const char *file;
	const char *want;
} groups[] = {
	{"none", "root:x:0:\n", "7"},
	{"one of several", "a:x:1:user\nb:x:2:x,user,y\nc:x:3:users,use\n", "7 1 2"},
	{"own group is not doubled", "user:x:7:user\n", "7"},
	{"no group twice", "a:x:1:user,user\nb:x:1:user\n", "7 1"},
	{"three fields", "a:x:1\nb:x:2:user\n", "7 2"},
	{"five fields", "a:x:1:user:\n", "7"},
	{"bad ids", "a:x:4294967295:user\nb:x::user\nc:x:-1:user\nd:x:4294967294:user\n",
	 "7 4294967294"},
	{"NIS", "+a:x:1:user\n", "7"},
	{"blank in a member", "a:x:1: user\n", "7"},
};

static void group_table(void)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		uint32_t id[PASSWD_GROUPS_MAX];
		char got[256] = "";
		size_t n = 0;

		EXPECT_EQ(groups[i].says, passwd_groups(text_of(groups[i].file), "user", 7, id, &n),
			  0);
		for (size_t k = 0; k < n; k++)
			(void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u",
				       k ? " " : "", id[k]);
		EXPECT_STR(groups[i].says, got, groups[i].want);
	}
}

static void group_limits(void)
{
	static char file[PASSWD_FILE_MAX + 1];
	uint32_t id[PASSWD_GROUPS_MAX];
	size_t at = 0;
	size_t n = 0;

	for (unsigned i = 1; i < PASSWD_GROUPS_MAX; i++)
		at += (size_t)snprintf(file + at, sizeof file - at, "g:x:%u:user\n", 100 + i);
	EXPECT_EQ("at the limit", passwd_groups(text_of(file), "user", 7, id, &n), 0);
	EXPECT_EQ("at the limit", n, PASSWD_GROUPS_MAX);
	n = 0;
	(void)snprintf(file + at, sizeof file - at, "g:x:1:user\n");
	EXPECT_EQ("one past", passwd_groups(text_of(file), "user", 7, id, &n), -E2BIG);
	EXPECT_EQ("outputs stay", n, 0);
	memset(file, ',', sizeof file);
	EXPECT_EQ("file one past", passwd_groups(rd_of(file, sizeof file), "user", 7, id, &n),
		  -EFBIG);
}

int main(void)
{
	user_table();
	user_limits();
	group_table();
	group_limits();
	return test_done();
}
