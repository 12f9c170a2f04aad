/* templates/<name>.json: what a template is made of. Written by `space template build`. */
#ifndef SPACE_STORE_TEMPLATE_H
#define SPACE_STORE_TEMPLATE_H

#include "base/fail.h"
#include "store/data.h"

#include <jansson.h>

#define TEMPLATE_NAME_MAX    64
#define TEMPLATE_PATH_MAX    200
#define TEMPLATE_FILE_MAX    (256u * 1024)
#define TEMPLATE_COMMAND_MAX 8192
#define TEMPLATES_MAX        1000

#define MEMORY_MIB_MIN 128u
#define MEMORY_MIB_MAX 65536u
#define VCPUS_MAX      32u
#define DISK_MIB_MIN   16u
#define DISK_MIB_MAX   (4u * 1024 * 1024)

struct template
{
	char name[TEMPLATE_NAME_MAX + 1];
	char id[TEMPLATE_NAME_MAX + 1];
	char image[TEMPLATE_PATH_MAX + 1];  /* below the data folder: images/<id>/root.ext4 */
	char kernel[TEMPLATE_PATH_MAX + 1]; /* the folder: kernels/<version> */
	char initrd[TEMPLATE_PATH_MAX + 1];
	uint32_t memory_mib;
	uint32_t vcpus;
	uint32_t disk_mib;
	json_t *env;     /* object of strings; owned */
	char *start_cmd; /* or NULL; owned */
	char *ready_cmd;
};

void template_done(struct template *t);

/* [a-z0-9] first, then also '.', '_' and '-'; 1..TEMPLATE_NAME_MAX. */
bool template_name_valid(const char *name);

/* -EINVAL with a sentence that names the field. Unknown fields are ignored: newer builders. */
int template_parse(const char *text, size_t n, struct template *ret, struct fail *f);

/* By name or by id. -ENOENT. */
int template_find(const struct data *d, const char *name_or_id, struct template *ret,
		  struct fail *f);

/* All that parse, sorted by name; *ret_bad counts those that do not. Caller: template_done()
 * each, then free the array. */
int template_list(const struct data *d, struct template **ret, size_t *ret_n, size_t *ret_bad,
		  struct fail *f);

#endif
