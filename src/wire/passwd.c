/* /etc/passwd and /etc/group, read as data of an enemy; see passwd.h. Pure, one pass, no copy of
 * the file. A line counts only when it is whole: right number of fields, a plain name, ids in
 * range. */
#include "wire/passwd.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

#define USER_FIELDS  7 /* name:password:uid:gid:gecos:home:shell */
#define GROUP_FIELDS 4 /* name:password:gid:members */

/* A part of the file; not NUL-terminated. */
struct part {
	const char *p;
	size_t n;
};

/* Takes what stands before the next `stop`, and `stop`. */
static struct part part_take(struct part *in, char stop)
{
	const char *at = in->n > 0 ? memchr(in->p, stop, in->n) : NULL;
	struct part head = {.p = in->p, .n = at ? (size_t)(at - in->p) : in->n};
	size_t used = head.n + (at ? 1 : 0);

	in->p += used;
	in->n -= used;
	return head;
}

static bool part_is(struct part s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static struct part file_part(struct rd file)
{
	return (struct part){.p = (const char *)file.p, .n = rd_left(&file)};
}

/* Cuts a line into exactly n fields. */
static bool fields_cut(struct part line, struct part *field, size_t n)
{
	if (line.n == 0 || memchr(line.p, '\0', line.n) || memchr(line.p, '\r', line.n))
		return false;
	for (size_t i = 0; i + 1 < n; i++) {
		if (line.n == 0 || !memchr(line.p, ':', line.n))
			return false;
		field[i] = part_take(&line, ':');
	}
	field[n - 1] = line;
	return line.n == 0 || !memchr(line.p, ':', line.n);
}

/* What useradd(8) lets through and a little more; no control characters, blanks, slash, leading
 * '-', '+' or '#'. */
static bool name_valid(struct part s)
{
	if (s.n == 0 || s.n > PASSWD_NAME_SIZE - 1 || strchr("-+#", s.p[0]))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || s.p[i] == '/' || s.p[i] == ',')
			return false;
	return !part_is(s, ".") && !part_is(s, "..");
}

static bool id_parse(struct part s, uint32_t *ret)
{
	uint64_t v;

	if (s.n > 10 || str_u64_n(s.p, s.n, PASSWD_ID_MAX, &v) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* An absolute path, or `empty` for an empty field. */
static bool path_parse(struct part s, const char *empty, char dst[PASSWD_PATH_SIZE])
{
	if (s.n == 0)
		return str_copy(dst, PASSWD_PATH_SIZE, empty) == 0;
	if (s.n > PASSWD_PATH_SIZE - 1 || s.p[0] != '/')
		return false;
	memcpy(dst, s.p, s.n);
	dst[s.n] = '\0';
	return true;
}

static bool user_parse(struct part line, struct passwd_user *ret)
{
	struct part f[USER_FIELDS];

	if (!fields_cut(line, f, USER_FIELDS) || !name_valid(f[0]) || !id_parse(f[2], &ret->uid) ||
	    !id_parse(f[3], &ret->gid) || !path_parse(f[5], "/", ret->home) ||
	    !path_parse(f[6], "/bin/sh", ret->shell))
		return false;
	memcpy(ret->name, f[0].p, f[0].n);
	ret->name[f[0].n] = '\0';
	return true;
}

/* By name, or by uid when name is NULL. */
static int user_find(struct rd file, const char *name, uint32_t uid, struct passwd_user *ret)
{
	struct part left = file_part(file);
	struct passwd_user u = {0}; /* out here: not cleared once a line */

	if (left.n > PASSWD_FILE_MAX)
		return -EFBIG;
	while (left.n > 0) {
		struct part line = part_take(&left, '\n');

		if (!user_parse(line, &u))
			continue;
		if (name ? strcmp(u.name, name) != 0 : u.uid != uid)
			continue;
		*ret = u;
		return 0;
	}
	return -ENOENT;
}

int passwd_find_name(struct rd file, const char *name, struct passwd_user *ret)
{
	return user_find(file, name, 0, ret);
}

int passwd_find_uid(struct rd file, uint32_t uid, struct passwd_user *ret)
{
	return user_find(file, NULL, uid, ret);
}

static bool lists(struct part members, const char *name)
{
	while (members.n > 0)
		if (part_is(part_take(&members, ','), name))
			return true;
	return false;
}

static bool is_among(const uint32_t *id, size_t n, uint32_t gid)
{
	for (size_t i = 0; i < n; i++)
		if (id[i] == gid)
			return true;
	return false;
}

int passwd_groups(struct rd file, const char *name, uint32_t gid, uint32_t ret[PASSWD_GROUPS_MAX],
		  size_t *ret_n)
{
	struct part left = file_part(file);
	uint32_t found[PASSWD_GROUPS_MAX] = {gid};
	size_t n = 1;

	if (left.n > PASSWD_FILE_MAX)
		return -EFBIG;
	while (left.n > 0) {
		struct part line = part_take(&left, '\n');
		struct part f[GROUP_FIELDS];
		uint32_t id;

		if (!fields_cut(line, f, GROUP_FIELDS) || !name_valid(f[0]) ||
		    !id_parse(f[2], &id) || !lists(f[3], name) || is_among(found, n, id))
			continue;
		if (n == PASSWD_GROUPS_MAX)
			return -E2BIG;
		found[n++] = id;
	}
	memcpy(ret, found, n * sizeof *found);
	*ret_n = n;
	return 0;
}
