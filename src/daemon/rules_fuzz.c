/* Requests and answers of any shape: what passes has only harmless spelling, no credential, and a
 * path that no second reader takes for one of the platform's. Input: lines "name\tvalue". */
#include "daemon/rules.h"

#include "base/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void message_of(struct h2_message *m, char *text)
{
	while (*text && m->n < H2_HEADERS_MAX) {
		char *end = strchr(text, '\n');
		char *tab;

		if (end)
			*end = 0;
		tab = strchr(text, '\t');
		if (tab) {
			*tab = 0;
			(void)h2_add(m, text, tab + 1);
		}
		text = end ? end + 1 : text + strlen(text);
	}
}

static void check_fields(const struct h2_message *m)
{
	size_t used = 0;

	assert(m->n <= RULES_FIELDS_MAX);
	for (size_t i = 0; i < m->n; i++) {
		used += strlen(m->h[i].name) + strlen(m->h[i].value);
		for (const char *c = m->h[i].name; *c; c++)
			assert(*c > 0x20 && *c < 0x7f && !(*c >= 'A' && *c <= 'Z'));
		for (const char *c = m->h[i].value; *c; c++)
			assert(*c != '\r' && *c != '\n' && *c != 0x7f);
	}
	assert(used <= RULES_HEAD_MAX);
}

static void check_path(const char *path)
{
	size_t n = strcspn(path, "?");
	char *whole = malloc(n + 2);

	assert(whole && path[0] == '/');
	memcpy(whole, path, n);
	memcpy(whole + n, "/", 2); /* so that a last segment ends too */
	assert(!strchr(whole, '%') && !strstr(whole, "//"));
	assert(!strstr(whole, "/./") && !strstr(whole, "/../"));
	assert(strncmp(whole, "/space/", 7) != 0 && strncmp(whole, "/init/", 6) != 0);
	free(whole);
}

static void try_request(const struct h2_message *m)
{
	struct h2_message out;

	if (request_judge(m, SIDE_CLIENT, TOKEN).code != RULES_CODE_OK) {
		assert(request_judge(m, SIDE_CLIENT, TOKEN).message);
		return;
	}
	if (strcmp(h2_get(m, ":path"), "/health") != 0)
		assert(strcmp(h2_get(m, "x-access-token"), TOKEN) == 0);
	assert(request_judge(m, SIDE_CLIENT, "").code == RULES_CODE_OK);
	if (request_rewrite(&out, m) < 0)
		return;
	check_fields(&out);
	check_path(h2_get(&out, ":path"));
	assert(!h2_get(&out, "x-access-token") && !h2_get(&out, "cookie") &&
	       !h2_get(&out, "connection") && !h2_get(&out, "transfer-encoding"));
}

static void try_answer(const struct h2_message *m)
{
	struct h2_message out;
	struct h2_message again;

	if (answer_rewrite(&out, m) < 0)
		return;
	check_fields(&out);
	assert(strcmp(out.h[0].name, ":status") == 0 && strlen(out.h[0].value) == 3);
	assert(out.h[0].value[0] >= '2' && out.h[0].value[0] <= '5');
	assert(answer_rewrite(&again, &out) == 0 && again.n == out.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);
	struct h2_message m = {0};

	assert(text);
	if (n)
		memcpy(text, p, n);
	text[n] = 0;
	message_of(&m, text);
	try_request(&m);
	try_answer(&m);
	free(text);
	return 0;
}
