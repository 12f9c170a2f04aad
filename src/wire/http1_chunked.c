/* The decoder of chunked bodies (RFC 9112 §7.1); see http1.h. Pure. Sizes are bounded before they
 * are used, lines end in CR LF only, extensions and trailers must be well-formed and go no
 * further. */
#include "wire/http1.h"

#include "wire/http1_chars.h"

#include <errno.h>

/* state          waits for                                    leaves to
 * SIZE           hex digits                                   EXT_NAME at ';', SIZE_LF at CR
 * EXT_NAME       the first character of an extension's name   EXT_IN_NAME
 * EXT_IN_NAME    the rest of it                               EXT_VALUE at '=', EXT_NAME, SIZE_LF
 * EXT_VALUE      a value's first character                    EXT_IN_VALUE, EXT_QUOTED at '"'
 * EXT_IN_VALUE   the rest of a token                          EXT_NAME, SIZE_LF
 * EXT_QUOTED     the closing quote                            EXT_ESCAPED at '\', EXT_AFTER
 * EXT_ESCAPED    any character                                EXT_QUOTED
 * EXT_AFTER      ';' or CR                                    EXT_NAME, SIZE_LF
 * SIZE_LF        LF                                           DATA, or TRAILER after size 0
 * DATA           the chunk's bytes                            DATA_CR
 * DATA_CR        CR                                           DATA_LF
 * DATA_LF        LF                                           SIZE
 * TRAILER        a field's first character, or CR             TRAILER_NAME, END_LF
 * TRAILER_NAME   ':'                                          TRAILER_VALUE
 * TRAILER_VALUE  CR                                           TRAILER_LF
 * TRAILER_LF     LF                                           TRAILER
 * END_LF         LF                                           END
 * END, BROKEN    nothing                                      - */
enum chunk_state {
	SIZE,
	EXT_NAME,
	EXT_IN_NAME,
	EXT_VALUE,
	EXT_IN_VALUE,
	EXT_QUOTED,
	EXT_ESCAPED,
	EXT_AFTER,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	END_LF,
	END,
	BROKEN,
	CHUNK_STATES
};

void http1_chunked_init(struct http1_chunked *c)
{
	*c = (struct http1_chunked){.state = SIZE};
}

static enum chunk_state expect(char c, char want, enum chunk_state next)
{
	return c == want ? next : BROKEN;
}

static enum chunk_state size_step(struct http1_chunked *c, char b)
{
	uint64_t digit =
		http1_is_digit(b) ? (uint64_t)(b - '0') : (uint64_t)(http1_lower(b) - 'a' + 10);

	if (http1_is_hex(b)) {
		if (c->left > (uint64_t)INT64_MAX >> 4)
			return BROKEN;
		c->left = c->left << 4 | digit;
		return SIZE;
	}
	if (c->line_n == 1) /* not one digit came before */
		return BROKEN;
	return b == ';' ? EXT_NAME : expect(b, '\r', SIZE_LF);
}

/* After a name or a value: the next extension, or the end of the line. */
static enum chunk_state ext_end(char b)
{
	return b == ';' ? EXT_NAME : expect(b, '\r', SIZE_LF);
}

static enum chunk_state ext_step(enum chunk_state s, char b)
{
	bool is_token = http1_is_token(b);

	if (s == EXT_NAME)
		return is_token ? EXT_IN_NAME : BROKEN;
	if (s == EXT_IN_NAME)
		return is_token ? EXT_IN_NAME : b == '=' ? EXT_VALUE : ext_end(b);
	if (s == EXT_VALUE)
		return is_token ? EXT_IN_VALUE : expect(b, '"', EXT_QUOTED);
	if (s == EXT_IN_VALUE)
		return is_token ? EXT_IN_VALUE : ext_end(b);
	if (s == EXT_AFTER)
		return ext_end(b);
	if (!http1_is_text(b))
		return BROKEN;
	if (s == EXT_ESCAPED)
		return EXT_QUOTED;
	return b == '"' ? EXT_AFTER : b == '\\' ? EXT_ESCAPED : EXT_QUOTED;
}

static enum chunk_state trailer_step(enum chunk_state s, char b)
{
	if (s == TRAILER && b == '\r')
		return END_LF;
	if (s == TRAILER_VALUE)
		return http1_is_text(b) ? TRAILER_VALUE : expect(b, '\r', TRAILER_LF);
	if (s == TRAILER_NAME && b == ':')
		return TRAILER_VALUE;
	return http1_is_token(b) ? TRAILER_NAME : BROKEN;
}

/* One byte that is not a chunk's data. */
static enum chunk_state byte_step(struct http1_chunked *c, char b)
{
	enum chunk_state s = (enum chunk_state)c->state;

	if (s < SIZE_LF && ++c->line_n > HTTP1_CHUNK_LINE_MAX && b != '\r')
		return BROKEN;
	if (s >= TRAILER && ++c->trailer_n > HTTP1_TRAILER_MAX + 2) /* and the empty line */
		return BROKEN;
	if (s == SIZE)
		return size_step(c, b);
	if (s < SIZE_LF)
		return ext_step(s, b);
	if (s == SIZE_LF) {
		c->line_n = 0;
		return expect(b, '\n', c->left > 0 ? DATA : TRAILER);
	}
	if (s == DATA_CR)
		return expect(b, '\r', DATA_LF);
	if (s == DATA_LF)
		return expect(b, '\n', SIZE);
	if (s == TRAILER_LF)
		return expect(b, '\n', TRAILER);
	if (s == END_LF)
		return expect(b, '\n', END);
	return trailer_step(s, b);
}

int http1_chunked_step(struct http1_chunked *c, const uint8_t *p, size_t n, size_t *ret_used,
		       const uint8_t **ret_data, size_t *ret_data_n)
{
	size_t i = 0;

	*ret_data = p;
	*ret_data_n = 0;
	while (i < n && c->state != END && c->state != BROKEN) {
		if (c->state == DATA) {
			*ret_data = p + i;
			*ret_data_n = (size_t)u64_min(c->left, n - i);
			c->left -= *ret_data_n;
			c->state = c->left > 0 ? DATA : DATA_CR;
			i += *ret_data_n;
			break;
		}
		c->state = byte_step(c, (char)p[i++]);
	}
	*ret_used = i;
	assert(c->state < CHUNK_STATES);
	return c->state == BROKEN ? -EBADMSG : c->state == END;
}
