/* variants/<id>/: a template booted once, saved ready to go: ram (sparse), devices, layer.qcow2,
 * manifest.json. Complete or absent: written under another name, synced, renamed. Everything here
 * blocks and is called on a pool thread; nothing is shared between calls. */
#ifndef SPACE_STORE_VARIANT_H
#define SPACE_STORE_VARIANT_H

#include "base/fail.h"
#include "store/data.h"
#include "store/digest.h"
#include "store/template.h"
#include "wire/msg.h"

#define VARIANT_FORMAT       1
#define VARIANT_DEVICES_MAX  (16u * 1024 * 1024)
#define VARIANT_LAYER_MAX    ((uint64_t)256 << 20) /* what a boot writes: 400 KB are usual */
#define VARIANT_MANIFEST_MAX 65536u

/* What a variant is the product of. The same words give the same id, on every node. */
struct variant_key {
	char image[TEMPLATE_PATH_MAX + 1];
	char kernel[TEMPLATE_PATH_MAX + 1];
	char initrd[TEMPLATE_PATH_MAX + 1];
	uint32_t memory_mib;
	uint32_t vcpus;
	enum accel accel;
	char engine[160]; /* the build of QEMU and of what gives it its options */
};
void variant_id(const struct variant_key *k, char ret[VARIANT_ID_SIZE]);

struct variant_files {
	/* Sealed memfds, all of them: a captured QEMU may have the uid that owns the files (without
	 * root it has), and whatever it can open again for writing it could poison for the next. */
	int ram;
	int devices;
	int layer;
};
#define VARIANT_FILES_NONE ((struct variant_files){-1, -1, -1})
void variant_files_done(struct variant_files *v);

bool variant_exists(const struct data *d, const char *id);

/* Loads everything into memory and checks it against the manifest. -ENOENT: there is none;
 * -EBADMSG: damaged (remove it and make it anew). */
int variant_load(const struct data *d, const char *id, struct variant_files *ret, struct fail *f);

/* All but the RAM, of a variant that was just saved. */
int variant_load_rest(const struct data *d, const char *id, struct variant_files *v,
		      struct fail *f);

/* Stores a variant. ram: the memfd that QEMU has left, devices: a memfd or file; the layer is
 * moved from run/<run_id>/layer.qcow2. Seals ram. */
int variant_save(const struct data *d, const char *id, const struct variant_key *k, int ram,
		 int devices, const char *run_id, struct fail *f);

int variant_remove(const struct data *d, const char *id, struct fail *f);
/* Removes what an interrupted save left, and variants that can never be used again: of an image
 * that no template has any more, or of another engine than this node's. */
int variant_sweep(const struct data *d, const char *engine, struct fail *f);

#endif
