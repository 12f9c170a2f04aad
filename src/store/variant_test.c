/* Templates are read or refused by field; variants are saved whole, loaded checked, and a flipped
 * byte anywhere is seen. */
#include "store/variant.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/test.h"
#include "os/dir.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "store/qcow2.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1024 * 1024)
#define GOOD                                                                                       \
	"\"name\":\"base\",\"templateId\":\"base01\",\"image\":\"images/base01/root.ext4\","       \
	"\"kernel\":\"kernels/6.1\",\"initrd\":\"initrds/ab.cpio\""
#define SIZES "\"memoryMiB\":512,\"vcpus\":1,\"diskMiB\":4096"

static const struct {
	const char *says;
	const char *in;
	int want;
} templates[] = {
	{"the least", "{" GOOD "," SIZES "}", 0},
	{"all of it",
	 "{" GOOD "," SIZES ",\"env\":{\"A\":\"b\"},\"startCmd\":\"x\",\"readyCmd\":\"y\"}", 0},
	{"unknown fields", "{" GOOD "," SIZES ",\"later\":[1]}", 0},
	{"empty", "", -EINVAL},
	{"no sizes", "{" GOOD "}", -EINVAL},
	{"memory at its least", "{" GOOD ",\"memoryMiB\":128,\"vcpus\":1,\"diskMiB\":16}", 0},
	{"memory below it", "{" GOOD ",\"memoryMiB\":127,\"vcpus\":1,\"diskMiB\":16}", -EINVAL},
	{"memory at its most", "{" GOOD ",\"memoryMiB\":65536,\"vcpus\":32,\"diskMiB\":16}", 0},
	{"memory past it", "{" GOOD ",\"memoryMiB\":65537,\"vcpus\":32,\"diskMiB\":16}", -EINVAL},
	{"vcpus past their most", "{" GOOD ",\"memoryMiB\":512,\"vcpus\":33,\"diskMiB\":16}",
	 -EINVAL},
	{"no vcpu", "{" GOOD ",\"memoryMiB\":512,\"vcpus\":0,\"diskMiB\":16}", -EINVAL},
	{"a path out",
	 "{\"name\":\"b\",\"templateId\":\"b\",\"image\":\"images/../../etc/shadow\","
	 "\"kernel\":\"kernels/6.1\",\"initrd\":\"initrds/ab.cpio\"," SIZES "}",
	 -EINVAL},
	{"an absolute path",
	 "{\"name\":\"b\",\"templateId\":\"b\",\"image\":\"/etc/shadow\","
	 "\"kernel\":\"kernels/6.1\",\"initrd\":\"initrds/ab.cpio\"," SIZES "}",
	 -EINVAL},
	{"another folder",
	 "{\"name\":\"b\",\"templateId\":\"b\",\"image\":\"state/state.db\","
	 "\"kernel\":\"kernels/6.1\",\"initrd\":\"initrds/ab.cpio\"," SIZES "}",
	 -EINVAL},
	{"a name with a slash",
	 "{\"name\":\"a/b\",\"templateId\":\"b\",\"image\":\"images/x\","
	 "\"kernel\":\"kernels/6.1\",\"initrd\":\"initrds/ab.cpio\"," SIZES "}",
	 -EINVAL},
	{"env of numbers", "{" GOOD "," SIZES ",\"env\":{\"A\":1}}", -EINVAL},
};

static void check_templates(const struct data *d)
{
	struct template t = {0};
	struct template *all = NULL;
	struct fail f = {0};
	size_t n = 0, bad = 0;

	for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
		struct template one = {0};

		EXPECT_EQ(templates[i].says,
			  template_parse(templates[i].in, strlen(templates[i].in), &one, &f),
			  templates[i].want);
		template_done(&one);
	}
	EXPECT_EQ("no folder, no template", template_find(d, "base", &t, &f), -ENOENT);
	CHECK(dir_make(d->root, "templates", 0700, &f) == 0);
	CHECK(file_replace(d->root, "templates/base.json", 0600, templates[0].in,
			   strlen(templates[0].in), &f) == 0);
	CHECK(file_replace(d->root, "templates/bad.json", 0600, "{}", 2, &f) == 0);
	EXPECT_EQ("by name", template_find(d, "base", &t, &f), 0);
	EXPECT_STR("its id", t.id, "base01");
	template_done(&t);
	EXPECT_EQ("by id", template_find(d, "base01", &t, &f), 0);
	EXPECT_STR("its name", t.name, "base");
	template_done(&t);
	EXPECT_EQ("not there", template_find(d, "other", &t, &f), -ENOENT);
	EXPECT_EQ("no name at all", template_find(d, "../state/x", &t, &f), -ENOENT);
	EXPECT_EQ("damaged", template_find(d, "bad", &t, &f), -EINVAL);
	EXPECT_EQ("lists", template_list(d, &all, &n, &bad, &f), 0);
	EXPECT_EQ("the good one", n, 1);
	EXPECT_EQ("and the bad one", bad, 1);
	for (size_t i = 0; i < n; i++)
		template_done(&all[i]);
	free(all);
}

static int save(const struct data *d, const char *id, const struct variant_key *k)
{
	AUTO(fd_drop) int ram = -1;
	AUTO(fd_drop) int devices = -1;
	AUTO(fd_drop) int layer = -1;
	struct fail f = {0};

	CHECK(memfd_make("ram", k->memory_mib * MIB, &ram, &f) == 0);
	CHECK(pwrite(ram, "hello", 5, 64 * 1024 * 1024 + 5) == 5);
	CHECK(memfd_make("devices", 0, &devices, &f) == 0);
	CHECK(pwrite(devices, "state", 5, 0) == 5);
	CHECK(dir_make(d->run, "irun", 0700, &f) == 0);
	CHECK(file_open(d->run, "irun/layer.qcow2", O_RDWR | O_CREAT, 0600, &layer, &f) == 0);
	CHECK(qcow2_empty_write(layer, 512 * MIB) == 0);
	return variant_save(d, id, k, ram, devices, "irun", &f);
}

static void flip(const struct data *d, const char *id, const char *name, off_t at)
{
	AUTO(str_drop) char *path = xasprintf("%s/%s", id, name);
	AUTO(fd_drop) int fd = -1;
	struct fail f;
	char c = 0;

	CHECK(fchmodat(d->variants, path, 0600, 0) == 0);
	CHECK(file_open(d->variants, path, O_RDWR, 0, &fd, &f) == 0);
	CHECK(pread(fd, &c, 1, at) == 1);
	c = (char)(c ^ 1);
	CHECK(pwrite(fd, &c, 1, at) == 1);
}

static int load_code(const struct data *d, const char *id)
{
	struct variant_files v = VARIANT_FILES_NONE;
	struct fail f = {0};
	int r = variant_load(d, id, &v, &f);

	variant_files_done(&v);
	return r;
}

static void check_load(const struct data *d, const char *id)
{
	struct variant_files v = VARIANT_FILES_NONE;
	struct fail f = {0};
	struct stat st;
	char got[6] = "";

	EXPECT_EQ("loads", variant_load(d, id, &v, &f), 0);
	EXPECT("its memory is sealed", memfd_is_sealed(v.ram));
	EXPECT("so are its device state and its layer",
	       memfd_is_sealed(v.devices) && memfd_is_sealed(v.layer));
	CHECK(pread(v.ram, got, 5, 64 * 1024 * 1024 + 5) == 5);
	EXPECT_STR("and what it was", got, "hello");
	EXPECT("it is sparse", fstat(v.ram, &st) == 0 && st.st_blocks * 512 < 1024 * 1024);
	variant_files_done(&v);
}

static void check_variants(const struct data *d)
{
	static const struct {
		const char *name;
		off_t at;
	} flips[] = {{"ram", 64 * 1024 * 1024 + 5},
		     {"ram", 0},
		     {"devices", 2},
		     {"layer.qcow2", 70000},
		     {"manifest.json", 20}};
	struct variant_key k = {.image = "images/base01/root.ext4",
				.kernel = "kernels/1",
				.initrd = "initrds/1.cpio",
				.memory_mib = 128,
				.vcpus = 1,
				.engine = "qemu 1"};
	char id[VARIANT_ID_SIZE], other[VARIANT_ID_SIZE];
	struct fail f = {0};

	variant_id(&k, id);
	k.vcpus = 2;
	variant_id(&k, other);
	EXPECT("another size is another variant", strcmp(id, other) != 0);
	k.vcpus = 1;
	EXPECT_EQ("none at first", load_code(d, id), -ENOENT);
	for (size_t i = 0; i < ARRAY_LEN(flips); i++) {
		EXPECT_EQ("saves", save(d, id, &k), 0);
		check_load(d, id);
		flip(d, id, flips[i].name, flips[i].at);
		EXPECT_EQ(flips[i].name, load_code(d, id), -EBADMSG);
	}
	EXPECT_EQ("saves over a damaged one", save(d, id, &k), 0);
	check_load(d, id);
	CHECK(dir_make(d->variants, ".new-1234", 0700, &f) == 0);
	CHECK(faccessat(d->root, "templates/bad.json", F_OK, 0) == 0);
	k.image[7] = 'x';
	EXPECT_EQ("of another image", save(d, other, &k), 0);
	EXPECT_EQ("sweeps", variant_sweep(d, k.engine, &f), 0);
	EXPECT("what was half made", !dir_exists(d->variants, ".new-1234"));
	EXPECT("a template is unreadable: nothing else", variant_exists(d, other));
	CHECK(unlinkat(d->root, "templates/bad.json", 0) == 0);
	EXPECT_EQ("sweeps", variant_sweep(d, k.engine, &f), 0);
	EXPECT("what no template has", !variant_exists(d, other));
	EXPECT("and no more", variant_exists(d, id));
	k.image[7] = 'b';
	EXPECT("of this engine", variant_exists(d, id));
	EXPECT_EQ("sweeps for another engine", variant_sweep(d, "qemu 2", &f), 0);
	EXPECT("what is of another", !variant_exists(d, id));
	EXPECT_EQ("removes", variant_remove(d, id, &f), 0);
	EXPECT_EQ("gone", load_code(d, id), -ENOENT);
}

int main(void)
{
	char dir[] = "/tmp/space-variant-XXXXXX";
	struct data d = DATA_NONE;
	struct data second = DATA_NONE;
	struct fail f = {0};

	if (!mkdtemp(dir))
		return test_skip("no temporary folder");
	EXPECT_EQ("opens", data_open(dir, &d, &f), 0);
	EXPECT_EQ("only one may", data_open(dir, &second, &f), -EBUSY);
	check_templates(&d);
	check_variants(&d);
	data_done(&d);
	EXPECT_EQ("then the next", data_open(dir, &second, &f), 0);
	data_done(&second);
	CHECK(chdir("/tmp") == 0);
	EXPECT_EQ("cleans up", dir_remove(AT_FDCWD, dir + strlen("/tmp/"), &f), 0);
	return test_done();
}
