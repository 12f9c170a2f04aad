/* Strings and numbers from outside, and encodings. */
#ifndef SPACE_BASE_STR_H
#define SPACE_BASE_STR_H

#include "base/defs.h"

/* Decimal digits only (no sign, no blanks), value <= max. -EINVAL (not a number), -ERANGE. */
int str_u64(const char *text, uint64_t max, uint64_t *ret);
int str_u64_n(const char *text, size_t n, uint64_t max, uint64_t *ret);

/* Copies with a NUL; -ENAMETOOLONG when it does not fit, and dst is then "". */
int str_copy(char *dst, size_t dst_size, const char *src);

bool str_starts(const char *s, const char *prefix);
bool str_eq_nocase(const char *a, const char *b); /* ASCII only, no locale */
bool utf8_valid(const uint8_t *p, size_t n);

/* Same length and bytes, in a time that depends on n only. */
bool mem_eq_const(const void *a, const void *b, size_t n);

/* dst needs 2 * n + 1 bytes. */
void hex_encode(char *dst, const uint8_t *p, size_t n);
int hex_decode(uint8_t *dst, size_t dst_size, const char *hex, size_t *ret_n); /* lower case only */

/* Standard alphabet with padding (RFC 4648 §4). encode: dst needs base64_len(n) + 1 bytes.
 * decode: -EINVAL on anything but exactly that form (missing padding is accepted, as proto3 JSON
 * parsers do); dst needs at least 3 * ((n + 3) / 4) bytes. */
static inline size_t base64_len(size_t n)
{
	return (n + 2) / 3 * 4;
}
void base64_encode(char *dst, const uint8_t *p, size_t n);
int base64_decode(uint8_t *dst, const char *text, size_t n, size_t *ret_n);

/* Writes text for a terminal or a log into dst: printable UTF-8 stays, C0, C1, DEL, bidi controls
 * and broken UTF-8 become \xNN. Cut at dst_size - 1; returns the bytes written. `keep` lists
 * control characters that pass (e.g. "\n\t"). */
size_t str_escape(char *dst, size_t dst_size, const char *text, size_t n, const char *keep);

#endif
