/* Character classes of HTTP/1.1 (RFC 9110 §5.6.2, RFC 9112 §2.2), without locale. */
#ifndef SPACE_WIRE_HTTP1_CHARS_H
#define SPACE_WIRE_HTTP1_CHARS_H

#include "base/defs.h"

static inline bool http1_is_blank(char c)
{
	return c == ' ' || c == '\t';
}
static inline bool http1_is_digit(char c)
{
	return c >= '0' && c <= '9';
}
static inline char http1_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}
static inline bool http1_is_alnum(char c)
{
	return http1_is_digit(c) || (http1_lower(c) >= 'a' && http1_lower(c) <= 'z');
}
static inline bool http1_is_hex(char c)
{
	return http1_is_digit(c) || (http1_lower(c) >= 'a' && http1_lower(c) <= 'f');
}

/* What a field value or an extension may hold: visible ASCII, blanks, bytes over 0x7f. */
static inline bool http1_is_text(char c)
{
	uint8_t b = (uint8_t)c;

	return b == '\t' || (b >= 0x20 && b != 0x7f);
}

static inline bool http1_is_token(char c)
{
	switch (c) {
	case '!':
	case '#':
	case '$':
	case '%':
	case '&':
	case '\'':
	case '*':
	case '+':
	case '-':
	case '.':
	case '^':
	case '_':
	case '`':
	case '|':
	case '~':
		return true;
	default:
		return http1_is_alnum(c);
	}
}

#endif
