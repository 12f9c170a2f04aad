/* Runs a fuzz target over files: replay FOLDER... For builds without libFuzzer: any compiler, any
 * sanitizer, valgrind. A property that does not hold ends the program by assert. */
#include "base/alloc.h"
#include "base/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED_MAX (2u * 1024 * 1024)

/* A copy of its exact size, so that a sanitizer sees the first byte read past the end. */
static int replay_file(const char *path)
{
	AUTO(mem_drop) uint8_t *all = xcalloc(1, SEED_MAX + 1);
	AUTO(mem_drop) uint8_t *exact = NULL;
	FILE *f = fopen(path, "rbe");
	size_t n;

	if (!f) {
		printf("%s: %s\n", path, strerror(errno));
		return -1;
	}
	n = fread(all, 1, SEED_MAX + 1, f);
	(void)fclose(f); /* only read */
	if (n > SEED_MAX) {
		printf("%s: longer than %u bytes\n", path, SEED_MAX);
		return -1;
	}
	exact = xcalloc(1, n);
	if (n > 0)
		memcpy(exact, all, n);
	(void)LLVMFuzzerTestOneInput(exact, n);
	return 0;
}

static void replay_folder(const char *path, unsigned *passed, unsigned *failed)
{
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d) {
		printf("%s: %s\n", path, strerror(errno));
		(*failed)++;
		return;
	}
	while ((e = readdir(d))) {
		AUTO(str_drop) char *file = NULL;

		if (e->d_name[0] == '.')
			continue;
		file = xasprintf("%s/%s", path, e->d_name);
		if (replay_file(file) < 0)
			(*failed)++;
		else
			(*passed)++;
	}
	(void)closedir(d);
}

int main(int argc, char **argv)
{
	unsigned passed = 0;
	unsigned failed = 0;

	(void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		replay_folder(argv[i], &passed, &failed);
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed ? EXIT_FAILURE : EXIT_SUCCESS;
}
