/* See template.h. The files are the operator's, yet checked: a damaged one must not become a
 * command line. */
#include "store/template.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/dir.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>

void template_done(struct template *t)
{
	json_decref(t->env);
	str_drop(&t->start_cmd);
	str_drop(&t->ready_cmd);
	*t = (struct template){0};
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool template_name_valid(const char *name)
{
	size_t n = strlen(name);

	if (n < 1 || n > TEMPLATE_NAME_MAX || name[0] == '.' || name[0] == '_' || name[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(name[i]))
			return false;
	return true;
}

/* Segments of name characters; dot segments would be refused beneath the folder anyway. */
static bool path_valid(const char *p, const char *prefix)
{
	if (!str_starts(p, prefix))
		return false;
	for (const char *c = p; *c; c++)
		if (!is_name_char(*c) && *c != '/' && !(*c >= 'A' && *c <= 'Z') && *c != '+' &&
		    *c != '~')
			return false;
	return strstr(p, "..") == NULL;
}

static int get_text(const json_t *o, const char *key, char *dst, size_t size, struct fail *f)
{
	const char *s = NULL;
	int r = json_get_str(o, key, JSON_REQUIRED, 1, size - 1, &s, f);

	return r < 0 ? r : str_copy(dst, size, s);
}

static int get_name(const json_t *o, const char *key, char *dst, size_t size, struct fail *f)
{
	int r = get_text(o, key, dst, size, f);

	if (r == 0 && !template_name_valid(dst))
		return fail_set(f, -EINVAL, "'%s' is not a name", key);
	return r;
}

static int get_path(const json_t *o, const char *key, const char *prefix, char *dst, size_t size,
		    struct fail *f)
{
	int r = get_text(o, key, dst, size, f);

	if (r == 0 && !path_valid(dst, prefix))
		return fail_set(f, -EINVAL, "'%s' is not a path below '%s'", key, prefix);
	return r;
}

static int get_number(const json_t *o, const char *key, uint32_t min, uint32_t max, uint32_t *ret,
		      struct fail *f)
{
	int64_t v = 0;
	int r = json_get_i64(o, key, JSON_REQUIRED, min, max, &v, f);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

static int get_command(const json_t *o, const char *key, char **ret, struct fail *f)
{
	const char *s = NULL;
	int r = json_get_str(o, key, JSON_OPTIONAL, 0, TEMPLATE_COMMAND_MAX, &s, f);

	if (r == 0 && s && *s)
		*ret = xstrdup(s);
	return r;
}

static int get_env(const json_t *o, json_t **ret, struct fail *f)
{
	static const struct json_limits max = {
		.count = 1000, .key = 4096, .value = 65536, .total = TEMPLATE_FILE_MAX};
	json_t *env = NULL;
	int r = json_get_str_map(o, "env", JSON_OPTIONAL, max, &env, f);

	if (r == 0)
		*ret = env ? json_incref(env) : json_object();
	return r;
}

static int read_fields(const json_t *o, struct template *t, struct fail *f)
{
	int r;

	if ((r = get_name(o, "name", t->name, sizeof t->name, f)) < 0 ||
	    (r = get_name(o, "templateId", t->id, sizeof t->id, f)) < 0 ||
	    (r = get_path(o, "image", "images/", t->image, sizeof t->image, f)) < 0 ||
	    (r = get_path(o, "kernel", "kernels/", t->kernel, sizeof t->kernel, f)) < 0 ||
	    (r = get_path(o, "initrd", "initrds/", t->initrd, sizeof t->initrd, f)) < 0 ||
	    (r = get_number(o, "memoryMiB", MEMORY_MIB_MIN, MEMORY_MIB_MAX, &t->memory_mib, f)) <
		    0 ||
	    (r = get_number(o, "vcpus", 1, VCPUS_MAX, &t->vcpus, f)) < 0 ||
	    (r = get_number(o, "diskMiB", DISK_MIB_MIN, DISK_MIB_MAX, &t->disk_mib, f)) < 0 ||
	    (r = get_command(o, "startCmd", &t->start_cmd, f)) < 0 ||
	    (r = get_command(o, "readyCmd", &t->ready_cmd, f)) < 0)
		return r;
	return get_env(o, &t->env, f);
}

int template_parse(const char *text, size_t n, struct template *ret, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	struct template t = {0};
	int r = json_parse(&o, text, n, TEMPLATE_FILE_MAX, f);

	if (r == 0)
		r = read_fields(o, &t, f);
	if (r < 0) {
		template_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

static int load(const struct data *d, const char *file, struct template *ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("templates/%s", file);
	AUTO(str_drop) char *text = NULL;
	size_t n = 0;
	int r = file_slurp(d->root, path, TEMPLATE_FILE_MAX, &text, &n, f);

	if (r == 0 && (r = template_parse(text, n, ret, f)) < 0)
		return fail_prefix(f, "template '%s'", file);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct template *)a)->name, ((const struct template *)b)->name);
}

static bool is_json_name(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".json") == 0;
}

int template_list(const struct data *d, struct template **ret, size_t *ret_n, size_t *ret_bad,
		  struct fail *f)
{
	struct template *all;
	char **names = NULL;
	size_t n = 0, found = 0, bad = 0;
	int r;

	if (!dir_exists(d->root, "templates")) {
		*ret = xcalloc(1, sizeof **ret);
		*ret_n = *ret_bad = 0;
		return 0;
	}
	r = dir_list(d->root, "templates", &names, &n, f);
	if (r < 0)
		return r;
	all = xcalloc(n + 1, sizeof *all);
	for (size_t i = 0; i < n; i++) {
		struct fail one = {0};

		if (is_json_name(names[i]) && found < TEMPLATES_MAX) {
			if (load(d, names[i], &all[found], &one) == 0)
				found++;
			else
				bad++;
		}
		free(names[i]);
	}
	free(names);
	qsort(all, found, sizeof *all, by_name);
	*ret = all;
	*ret_n = found;
	*ret_bad = bad;
	return 0;
}

static int find_by_id(const struct data *d, const char *id, struct template *ret, struct fail *f)
{
	struct template *all = NULL;
	size_t n = 0, bad = 0;
	bool found = false;
	int r = template_list(d, &all, &n, &bad, f);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (!found && strcmp(all[i].id, id) == 0) {
			*ret = all[i];
			found = true;
		} else {
			template_done(&all[i]);
		}
	}
	free(all);
	return found ? 0 : fail_set(f, -ENOENT, "there is no template '%s'", id);
}

int template_find(const struct data *d, const char *name_or_id, struct template *ret,
		  struct fail *f)
{
	AUTO(str_drop) char *file = NULL;
	AUTO(str_drop) char *path = NULL;

	if (!template_name_valid(name_or_id))
		return fail_set(f, -ENOENT, "this cannot be a template's name");
	file = xasprintf("%s.json", name_or_id);
	path = xasprintf("templates/%s", file);
	if (!dir_exists(d->root, "templates") ||
	    faccessat(d->root, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return find_by_id(d, name_or_id, ret, f);
	return load(d, file, ret, f);
}
