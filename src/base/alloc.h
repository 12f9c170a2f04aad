/* Allocation. Small fixed sizes abort when memory is gone; a size that came from outside uses
 * try_alloc() and is capped by its caller. */
#ifndef SPACE_BASE_ALLOC_H
#define SPACE_BASE_ALLOC_H

#include "base/defs.h"

void *xcalloc(size_t count, size_t size_bytes);           /* zeroed; never NULL */
void *xrealloc(void *p, size_t count, size_t size_bytes); /* overflow-checked; never NULL */
char *xstrdup(const char *s);                             /* NULL in, NULL out */
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

void *try_alloc(size_t size_bytes); /* zeroed, or NULL */

void mem_drop(void *pp); /* for AUTO(): frees *(void **)pp and sets it to NULL */
void str_drop(char **pp);

#endif
