/* Strings, numbers and encodings from outside; see str.h. No locale, no allocation. */
#include "base/str.h"

#include <errno.h>
#include <string.h>

int str_u64_n(const char *text, size_t n, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	bool is_over = false;

	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v))
			is_over = true;
	}
	if (is_over || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int str_u64(const char *text, uint64_t max, uint64_t *ret)
{
	return str_u64_n(text, strlen(text), max, ret);
}

int str_copy(char *dst, size_t dst_size, const char *src)
{
	size_t n = strlen(src);

	assert(dst_size > 0);
	if (n > dst_size - 1) {
		dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(dst, src, n + 1);
	return 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_eq_nocase(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return *a == '\0' && *b == '\0';
}

/* One character at p (n > 0 bytes): its length, 0 when broken (overlong, surrogate, > U+10FFFF). */
static size_t utf8_one(const uint8_t *p, size_t n, uint32_t *ret_c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (len == 0 || len > n || p[0] > 0xf4)
		return 0;
	c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret_c = c;
	return len;
}

bool utf8_valid(const uint8_t *p, size_t n)
{
	uint32_t c;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_one(p + i, n - i, &c);

		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

bool mem_eq_const(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a; /* volatile: no early exit may be invented */
	const volatile uint8_t *y = b;
	unsigned diff = 0;

	for (size_t i = 0; i < n; i++)
		diff |= (unsigned)(x[i] ^ y[i]);
	return diff == 0;
}

void hex_encode(char *dst, const uint8_t *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		dst[2 * i] = digit[p[i] >> 4];
		dst[2 * i + 1] = digit[p[i] & 15];
	}
	dst[2 * n] = '\0';
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int hex_decode(uint8_t *dst, size_t dst_size, const char *hex, size_t *ret_n)
{
	size_t n = strlen(hex);

	if (n % 2)
		return -EINVAL;
	if (n / 2 > dst_size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < n; i += 2) {
		int hi = hex_digit(hex[i]);
		int lo = hex_digit(hex[i + 1]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		dst[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	*ret_n = n / 2;
	return 0;
}

void base64_encode(char *dst, const uint8_t *p, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; n > 0; dst += 4) {
		size_t k = size_min(n, 3);
		uint32_t v = (uint32_t)p[0] << 16;

		v |= k > 1 ? (uint32_t)p[1] << 8 : 0;
		v |= k > 2 ? p[2] : 0;
		dst[0] = digit[v >> 18];
		dst[1] = digit[v >> 12 & 63];
		dst[2] = k > 1 ? digit[v >> 6 & 63] : '=';
		dst[3] = k > 2 ? digit[v & 63] : '=';
		p += k;
		n -= k;
	}
	*dst = '\0';
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Padding is whole or absent: anything between would be a second spelling. */
static int base64_strip(const char *text, size_t *n)
{
	size_t pad = 0;

	while (pad < 2 && pad < *n && text[*n - 1 - pad] == '=')
		pad++;
	if (pad > 0 && *n % 4 != 0)
		return -EINVAL;
	*n -= pad;
	return *n % 4 == 1 ? -EINVAL : 0;
}

int base64_decode(uint8_t *dst, const char *text, size_t n, size_t *ret_n)
{
	size_t out = 0;
	uint32_t v = 0;
	unsigned bits = 0;

	if (base64_strip(text, &n) < 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int d = base64_digit(text[i]);

		if (d < 0)
			return -EINVAL;
		v = (v << 6 | (uint32_t)d) & 0xffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			dst[out++] = (uint8_t)(v >> bits);
		}
	}
	if (v & ((1u << bits) - 1)) /* bits that no byte holds: two texts for one value */
		return -EINVAL;
	*ret_n = out;
	return 0;
}

/* What could move the cursor, hide text or turn it around on a terminal. */
static bool is_active(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t str_escape(char *dst, size_t dst_size, const char *text, size_t n, const char *keep)
{
	static const char digit[] = "0123456789abcdef";
	const uint8_t *p = (const uint8_t *)text;
	size_t out = 0;

	assert(dst_size > 0);
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = utf8_one(p + i, n - i, &c);
		bool is_plain = len > 0 && (!is_active(c) ||
					    (keep && c > 0 && c < 0x80 && strchr(keep, (int)c)));

		if (len == 0)
			len = 1;
		if (dst_size - 1 - out < (is_plain ? len : 4 * len))
			break; /* whole characters only */
		for (size_t k = 0; k < len; k++) {
			if (is_plain) {
				dst[out++] = (char)p[i + k];
				continue;
			}
			dst[out++] = '\\';
			dst[out++] = 'x';
			dst[out++] = digit[p[i + k] >> 4];
			dst[out++] = digit[p[i + k] & 15];
		}
		i += len;
	}
	dst[out] = '\0';
	return out;
}
