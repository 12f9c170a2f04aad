/* Allocation that does not fail, for sizes that we chose; see alloc.h. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
	if (!p) {
		static const char text[] = "out of memory\n";

		(void)!write(STDERR_FILENO, text, sizeof text - 1);
		abort();
	}
	return p;
}

void *xcalloc(size_t count, size_t size_bytes)
{
	return must(calloc(count ? count : 1, size_bytes ? size_bytes : 1));
}

void *xrealloc(void *p, size_t count, size_t size_bytes)
{
	size_t n;

	if (__builtin_mul_overflow(count, size_bytes, &n))
		return must(NULL);
	return must(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s)
{
	return s ? must(strdup(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
	return s ? must(strndup(s, n)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return must(text);
}

void *try_alloc(size_t size_bytes)
{
	return calloc(1, size_bytes ? size_bytes : 1);
}

void mem_drop(void *pp)
{
	void **p = pp;

	free(*p);
	*p = NULL;
}

void str_drop(char **pp)
{
	free(*pp);
	*pp = NULL;
}
