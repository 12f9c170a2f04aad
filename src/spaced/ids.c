/* See ids.h. Ids are random over their whole length, so that none ever comes again and none can
 * be guessed. */
#include "spaced/ids.h"

#include "base/str.h"

#include <sys/random.h>

#define ID_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"
#define ID_BASE   36u

static_assert(sizeof ID_DIGITS - 1 == ID_BASE, "as many digits as the base says");

void random_bytes(void *p, size_t n)
{
	uint8_t *b = p;

	while (n > 0) {
		ssize_t r = getrandom(b, n, 0);

		if (r < 0)
			abort();
		b += r;
		n -= (size_t)r;
	}
}

void id_make(char ret[SANDBOX_ID_SIZE])
{
	size_t n = 0;

	ret[n++] = 'i';
	while (n < SANDBOX_ID_LEN) {
		uint8_t byte;

		random_bytes(&byte, 1);
		if (byte < 256 / ID_BASE * ID_BASE) /* no digit is likelier than another */
			ret[n++] = ID_DIGITS[byte % ID_BASE];
	}
	ret[n] = '\0';
}

void token_make(char ret[TOKEN_SIZE])
{
	uint8_t b[(TOKEN_SIZE - 1) / 2];

	random_bytes(b, sizeof b);
	hex_encode(ret, b, sizeof b);
	explicit_bzero(b, sizeof b);
}

void api_key_make(char ret[API_KEY_SIZE])
{
	uint8_t b[20];

	random_bytes(b, sizeof b);
	(void)snprintf(ret, API_KEY_SIZE, "e2b_"); /* fits by its size */
	hex_encode(ret + 4, b, sizeof b);
	explicit_bzero(b, sizeof b);
}

void machine_id_make(char ret[MACHINE_ID_SIZE])
{
	uint8_t b[16];

	random_bytes(b, sizeof b);
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* machine-id(5): a version 4 UUID without dashes */
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	hex_encode(ret, b, sizeof b);
}

void uuid_make(char ret[UUID_SIZE])
{
	char hex[MACHINE_ID_SIZE];

	machine_id_make(hex);
	(void)snprintf(ret, UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		       hex + 16, hex + 20); /* fits by its size */
}
