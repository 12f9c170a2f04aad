/* See keys.h. The file is written before the hash: a crash in between leaves a key that nobody
 * accepts and the next start replaces, never a hash whose key nobody has. */
#include "spaced/keys.h"

#include "base/clock.h"
#include "os/dir.h"
#include "spaced/ids.h"

static int key_make(struct node *n, struct fail *f)
{
	char line[API_KEY_SIZE + 1];
	uint8_t hash[DIGEST_SIZE];
	int r;

	api_key_make(line);
	digest_of(hash, line, API_KEY_SIZE - 1);
	line[API_KEY_SIZE - 1] = '\n';
	r = file_replace(n->data.state, "api-key", 0600, line, API_KEY_SIZE, f);
	explicit_bzero(line, sizeof line);
	if (r == 0)
		r = db_add_key(n->db, hash, clock_real_ns(), f);
	if (r == 0)
		memcpy(n->key[n->n_keys++], hash, sizeof hash);
	return r;
}

int keys_prepare(struct node *n, struct fail *f)
{
	int r = db_load_keys(n->db, n->key, &n->n_keys, f);

	return r == 0 && n->n_keys == 0 ? key_make(n, f) : r;
}
