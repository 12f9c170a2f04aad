/* See variant.h. The manifest is written last into the temporary folder, the rename of the folder
 * is what makes the variant exist; folders whose name begins with a dot are not variants. */
#include "store/variant.h"

#include "base/alloc.h"
#include "base/str.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "wire/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1024 * 1024)

struct manifest {
	uint64_t ram_bytes;
	char ram[DIGEST_HEX_SIZE];
	char devices[DIGEST_HEX_SIZE];
	char layer[DIGEST_HEX_SIZE];
};

void variant_id(const struct variant_key *k, char ret[VARIANT_ID_SIZE])
{
	AUTO(str_drop)
	char *text = xasprintf("space variant %d\n%s\n%s\n%s\n%u MiB\n%u vCPUs\n%s\n%s\n",
			       VARIANT_FORMAT, k->image, k->kernel, k->initrd, k->memory_mib,
			       k->vcpus, accel_name(k->accel), k->engine);
	uint8_t d[DIGEST_SIZE];

	static_assert(VARIANT_ID_SIZE == DIGEST_HEX_SIZE, "an id is a digest");
	digest_of(d, text, strlen(text));
	digest_hex(ret, d);
}

void variant_files_done(struct variant_files *v)
{
	fd_drop(&v->ram);
	fd_drop(&v->devices);
	fd_drop(&v->layer);
}

static int open_in(const struct data *d, const char *id, const char *name, int *ret_fd,
		   struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/%s", id, name);

	return file_open(d->variants, path, O_RDONLY, 0, ret_fd, f);
}

bool variant_exists(const struct data *d, const char *id)
{
	return dir_exists(d->variants, id);
}

static int load_sealed(const struct data *d, const char *id, const char *name, uint64_t max,
		       int *ret_fd, struct fail *f)
{
	AUTO(fd_drop) int file = -1;
	struct stat st;
	int r = open_in(d, id, name, &file, f);

	if (r < 0)
		return r;
	if (fstat(file, &st) < 0)
		return fail_errno(f, -errno, "cannot read the variant's '%s'", name);
	if (st.st_size < 1 || (uint64_t)st.st_size > max)
		return fail_set(f, -EBADMSG, "the variant's '%s' has an odd size", name);
	if ((r = memfd_load(name, file, (uint64_t)st.st_size, ret_fd, f)) < 0)
		return r;
	return memfd_seal(*ret_fd, f);
}

int variant_load_rest(const struct data *d, const char *id, struct variant_files *v, struct fail *f)
{
	int r = load_sealed(d, id, "devices", VARIANT_DEVICES_MAX, &v->devices, f);

	return r < 0 ? r : load_sealed(d, id, "layer.qcow2", VARIANT_LAYER_MAX, &v->layer, f);
}

/* --- manifest --- */

static int get_digest(const json_t *o, const char *key, char ret[DIGEST_HEX_SIZE], struct fail *f)
{
	const char *s = NULL;
	int r = json_get_str(o, key, JSON_REQUIRED, DIGEST_HEX_SIZE - 1, DIGEST_HEX_SIZE - 1, &s,
			     f);

	return r < 0 ? r : str_copy(ret, DIGEST_HEX_SIZE, s);
}

static int manifest_parse(const char *text, size_t n, struct manifest *ret, struct fail *f)
{
	AUTO(json_drop) json_t *o = NULL;
	int64_t format = 0, ram_bytes = 0;
	int r;

	if ((r = json_parse(&o, text, n, VARIANT_MANIFEST_MAX, f)) < 0 ||
	    (r = json_get_i64(o, "format", JSON_REQUIRED, VARIANT_FORMAT, VARIANT_FORMAT, &format,
			      f)) < 0 ||
	    (r = json_get_i64(o, "ramBytes", JSON_REQUIRED, (int64_t)(MEMORY_MIB_MIN * MIB),
			      (int64_t)(MEMORY_MIB_MAX * MIB), &ram_bytes, f)) < 0 ||
	    (r = get_digest(o, "ramSha256", ret->ram, f)) < 0 ||
	    (r = get_digest(o, "devicesSha256", ret->devices, f)) < 0 ||
	    (r = get_digest(o, "layerSha256", ret->layer, f)) < 0)
		return fail_set(f, -EBADMSG, "the manifest is damaged");
	ret->ram_bytes = (uint64_t)ram_bytes;
	return 0;
}

static int manifest_read(const struct data *d, const char *id, struct manifest *ret, struct fail *f)
{
	AUTO(str_drop) char *path = xasprintf("%s/manifest.json", id);
	AUTO(str_drop) char *text = NULL;
	size_t n = 0;
	int r = file_slurp(d->variants, path, VARIANT_MANIFEST_MAX, &text, &n, f);

	return r < 0 ? r : manifest_parse(text, n, ret, f);
}

static char *manifest_print(const struct manifest *m, const struct variant_key *k, size_t *ret_n)
{
	AUTO(json_drop)
	json_t *o = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:s, s:s, s:s}",
			      "format", VARIANT_FORMAT, "image", k->image, "kernel", k->kernel,
			      "initrd", k->initrd, "memoryMiB", (json_int_t)k->memory_mib, "vcpus",
			      (json_int_t)k->vcpus, "accel", accel_name(k->accel), "engine",
			      k->engine, "ramBytes", (json_int_t)m->ram_bytes, "ramSha256", m->ram,
			      "devicesSha256", m->devices, "layerSha256", m->layer);

	return o ? json_print(o, VARIANT_MANIFEST_MAX, ret_n) : NULL;
}

/* --- loading --- */

static int check_digest(const char *what, int err, const uint8_t got[DIGEST_SIZE], const char *want,
			struct fail *f)
{
	char hex[DIGEST_HEX_SIZE];

	if (err < 0)
		return fail_errno(f, err, "cannot read the variant's %s", what);
	digest_hex(hex, got);
	if (strcmp(hex, want) != 0)
		return fail_set(f, -EBADMSG, "the variant's %s is damaged", what);
	return 0;
}

static int check_files(const struct variant_files *v, const struct manifest *m, struct fail *f)
{
	uint8_t got[DIGEST_SIZE];
	int r;

	r = digest_pages(v->ram, m->ram_bytes, got);
	if ((r = check_digest("memory", r, got, m->ram, f)) < 0)
		return r;
	r = digest_file(v->devices, VARIANT_DEVICES_MAX, got);
	if ((r = check_digest("device state", r, got, m->devices, f)) < 0)
		return r;
	r = digest_file(v->layer, VARIANT_LAYER_MAX, got);
	return check_digest("disk layer", r, got, m->layer, f);
}

static int load_files(const struct data *d, const char *id, const struct manifest *m,
		      struct variant_files *v, struct fail *f)
{
	AUTO(fd_drop) int ram = -1;
	int r;

	if ((r = open_in(d, id, "ram", &ram, f)) < 0 ||
	    (r = memfd_load("ram", ram, m->ram_bytes, &v->ram, f)) < 0 ||
	    (r = memfd_seal(v->ram, f)) < 0 || (r = variant_load_rest(d, id, v, f)) < 0)
		return r;
	return check_files(v, m, f);
}

int variant_load(const struct data *d, const char *id, struct variant_files *ret, struct fail *f)
{
	struct variant_files v = VARIANT_FILES_NONE;
	struct manifest m = {0};
	int r;

	if (!variant_exists(d, id))
		return fail_set(f, -ENOENT, "there is no variant '%s'", id);
	if ((r = manifest_read(d, id, &m, f)) == 0)
		r = load_files(d, id, &m, &v, f);
	if (r < 0) {
		variant_files_done(&v);
		/* Whatever is missing or short: this folder cannot be used. */
		if (r != -ENOMEM && r != -EMFILE && r != -ENFILE)
			r = -EBADMSG;
		f->code = r;
		return r;
	}
	*ret = v;
	return 0;
}

/* --- saving --- */

static int write_new(int dir, const char *name, int from, uint64_t n, struct fail *f)
{
	AUTO(fd_drop) int fd = -1;
	int r = file_open(dir, name, O_RDWR | O_CREAT | O_EXCL, 0400, &fd, f);

	if (r < 0)
		return r;
	if ((r = fd_copy(fd, from, n, true)) < 0)
		return fail_errno(f, r, "cannot write '%s'", name);
	if (ftruncate(fd, (off_t)n) < 0 || fsync(fd) < 0)
		return fail_errno(f, -errno, "cannot write '%s'", name);
	return 0;
}

static int take_layer(const struct data *d, int dir, const char *run_id, char hex[DIGEST_HEX_SIZE],
		      struct fail *f)
{
	AUTO(str_drop) char *from = xasprintf("%s/layer.qcow2", run_id);
	AUTO(fd_drop) int fd = -1;
	uint8_t digest[DIGEST_SIZE];
	int r;

	if (renameat(d->run, from, dir, "layer.qcow2") < 0)
		return fail_errno(f, -errno, "cannot move the disk layer");
	if ((r = file_open(dir, "layer.qcow2", O_RDONLY, 0, &fd, f)) < 0)
		return r;
	if (fchmod(fd, 0400) < 0 || fsync(fd) < 0)
		return fail_errno(f, -errno, "cannot close the disk layer");
	if ((r = digest_file(fd, VARIANT_LAYER_MAX, digest)) < 0)
		return fail_errno(f, r, "cannot read the disk layer");
	digest_hex(hex, digest);
	return 0;
}

static int digests(struct manifest *m, int ram, int devices, struct fail *f)
{
	uint8_t digest[DIGEST_SIZE];
	int r = digest_pages(ram, m->ram_bytes, digest);

	if (r < 0)
		return fail_errno(f, r, "cannot read the memory");
	digest_hex(m->ram, digest);
	if ((r = digest_file(devices, VARIANT_DEVICES_MAX, digest)) < 0)
		return fail_errno(f, r, "cannot read the device state");
	digest_hex(m->devices, digest);
	return 0;
}

static int fill_folder(const struct data *d, int dir, const struct variant_key *k, int ram,
		       int devices, const char *run_id, struct fail *f)
{
	AUTO(str_drop) char *text = NULL;
	struct manifest m = {.ram_bytes = k->memory_mib * MIB};
	struct stat st;
	size_t n = 0;
	int r;

	if (fstat(devices, &st) < 0)
		return fail_errno(f, -errno, "cannot read the device state");
	if (st.st_size < 1 || (uint64_t)st.st_size > VARIANT_DEVICES_MAX)
		return fail_set(f, -EBADMSG, "the device state has an odd size");
	if ((r = memfd_seal(ram, f)) < 0 || (r = digests(&m, ram, devices, f)) < 0 ||
	    (r = write_new(dir, "ram", ram, m.ram_bytes, f)) < 0 ||
	    (r = write_new(dir, "devices", devices, (uint64_t)st.st_size, f)) < 0 ||
	    (r = take_layer(d, dir, run_id, m.layer, f)) < 0)
		return r;
	text = manifest_print(&m, k, &n);
	return text ? file_replace(dir, "manifest.json", 0400, text, n, f)
		    : fail_set(f, -ENOMEM, "cannot print the manifest");
}

int variant_save(const struct data *d, const char *id, const struct variant_key *k, int ram,
		 int devices, const char *run_id, struct fail *f)
{
	AUTO(str_drop) char *temporary = xasprintf(".new-%s", id);
	AUTO(fd_drop) int dir = -1;
	struct fail ignored;
	int r;

	if ((r = dir_remove(d->variants, temporary, f)) < 0 ||
	    (r = dir_make(d->variants, temporary, 0700, f)) < 0 ||
	    (r = dir_open(d->variants, temporary, &dir, f)) < 0)
		return r;
	r = fill_folder(d, dir, k, ram, devices, run_id, f);
	if (r == 0 && fsync(dir) < 0)
		r = fail_errno(f, -errno, "cannot sync the variant");
	if (r == 0 && (r = dir_remove(d->variants, id, f)) == 0 &&
	    renameat(d->variants, temporary, d->variants, id) < 0)
		r = fail_errno(f, -errno, "cannot name the variant");
	if (r == 0 && fsync(d->variants) < 0)
		r = fail_errno(f, -errno, "cannot sync the variants");
	if (r < 0)
		(void)dir_remove(d->variants, temporary, &ignored); /* else the next sweep does */
	return r;
}

int variant_remove(const struct data *d, const char *id, struct fail *f)
{
	return dir_remove(d->variants, id, f);
}

/* Whether it is this engine's, and a template still has the image that it was made of.
 * Unreadable: it is not. */
static bool is_usable(const struct data *d, const char *id, const char *engine,
		      const struct template *t, size_t n)
{
	const char *made_by = NULL;
	AUTO(str_drop) char *path = xasprintf("%s/manifest.json", id);
	AUTO(str_drop) char *text = NULL;
	AUTO(json_drop) json_t *o = NULL;
	const char *image = NULL;
	struct fail f;
	size_t len = 0;

	if (file_slurp(d->variants, path, VARIANT_MANIFEST_MAX, &text, &len, &f) < 0 ||
	    json_parse(&o, text, len, VARIANT_MANIFEST_MAX, &f) < 0 ||
	    json_get_str(o, "image", JSON_REQUIRED, 1, TEMPLATE_PATH_MAX, &image, &f) < 0 ||
	    json_get_str(o, "engine", JSON_REQUIRED, 1, VARIANT_MANIFEST_MAX, &made_by, &f) < 0 ||
	    strcmp(made_by, engine) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(t[i].image, image) == 0)
			return true;
	return false;
}

static int sweep_unused(const struct data *d, const char *engine, struct fail *f)
{
	struct template *t = NULL;
	char **names = NULL;
	size_t n_t = 0, bad = 0, n = 0;
	int r = template_list(d, &t, &n_t, &bad, f);

	/* A template that cannot be read may be what a variant belongs to. */
	if (r == 0 && bad == 0)
		r = dir_list(d->root, "variants", &names, &n, f);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && !is_usable(d, names[i], engine, t, n_t))
			r = variant_remove(d, names[i], f);
		free(names[i]);
	}
	free(names);
	for (size_t i = 0; i < n_t; i++)
		template_done(&t[i]);
	free(t);
	return r;
}

static int sweep_half_made(const struct data *d, struct fail *f)
{
	int fd = openat(d->variants, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		r = fail_errno(f, -errno, "cannot read the variants");
		fd_drop(&fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir)))
		if (str_starts(e->d_name, ".new-"))
			r = dir_remove(d->variants, e->d_name, f);
	(void)closedir(dir);
	return r;
}

int variant_sweep(const struct data *d, const char *engine, struct fail *f)
{
	int r = sweep_half_made(d, f);

	return r < 0 ? r : sweep_unused(d, engine, f);
}
