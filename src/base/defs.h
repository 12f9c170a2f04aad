/* Small words that every file uses: scope cleanup, array length, unused results. */
#ifndef SPACE_BASE_DEFS_H
#define SPACE_BASE_DEFS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs drop(&variable) at the end of the scope. Drop functions accept and leave the empty value. */
#define AUTO(drop) __attribute__((cleanup(drop)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
