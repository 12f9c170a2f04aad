/* See digest.h. GnuTLS's types stay in this file. */
#include "store/digest.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/wr.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#define PAGE_BYTES  4096u
#define CHUNK_BYTES (1024u * 1024)

static_assert(CHUNK_BYTES % PAGE_BYTES == 0, "chunks hold whole pages");

struct digest {
	gnutls_hash_hd_t h;
};

struct digest *digest_new(void)
{
	struct digest *d = xcalloc(1, sizeof *d);

	if (gnutls_hash_init(&d->h, GNUTLS_DIG_SHA256) < 0)
		abort(); /* only when memory is gone or SHA-256 is not built in */
	return d;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	if (gnutls_hash(d->h, p, n) < 0)
		abort(); /* as above */
}

void digest_end(struct digest *d, uint8_t ret[DIGEST_SIZE])
{
	gnutls_hash_deinit(d->h, ret);
	free(d);
}

void digest_of(uint8_t ret[DIGEST_SIZE], const void *p, size_t n)
{
	struct digest *d = digest_new();

	digest_add(d, p, n);
	digest_end(d, ret);
}

void digest_hex(char dst[DIGEST_HEX_SIZE], const uint8_t d[DIGEST_SIZE])
{
	hex_encode(dst, d, DIGEST_SIZE);
}

/* Up to n bytes at off; fewer only at the end. Bytes read, or a negative errno. */
static ssize_t read_at(int fd, uint8_t *p, size_t n, uint64_t off)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, p + got, n - got, (off_t)(off + got));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int digest_file(int fd, uint64_t max_bytes, uint8_t ret[DIGEST_SIZE])
{
	AUTO(mem_drop) uint8_t *chunk = xcalloc(1, CHUNK_BYTES);
	struct digest *d = digest_new();
	uint64_t off = 0;
	ssize_t n;

	while ((n = read_at(fd, chunk, CHUNK_BYTES, off)) > 0) {
		off += (uint64_t)n;
		if (off > max_bytes) {
			n = -EFBIG;
			break;
		}
		digest_add(d, chunk, (size_t)n);
	}
	digest_end(d, ret);
	return n < 0 ? (int)n : 0;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static void add_pages(struct digest *d, const uint8_t *p, size_t n, uint64_t off)
{
	for (size_t i = 0; i < n; i += PAGE_BYTES) {
		uint8_t head[8];
		struct wr w = wr_of(head, sizeof head);

		if (is_zero(p + i, PAGE_BYTES))
			continue;
		wr_be64(&w, (off + i) / PAGE_BYTES);
		digest_add(d, head, sizeof head);
		digest_add(d, p + i, PAGE_BYTES);
	}
}

int digest_pages(int fd, uint64_t size_bytes, uint8_t ret[DIGEST_SIZE])
{
	AUTO(mem_drop) uint8_t *chunk = xcalloc(1, CHUNK_BYTES);
	struct digest *d = digest_new();
	uint64_t off = 0;
	int r = size_bytes % PAGE_BYTES ? -EINVAL : 0;

	while (r == 0 && off < size_bytes) {
		off_t data = lseek(fd, (off_t)off, SEEK_DATA);
		size_t want;
		ssize_t n;

		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (data > 0)
			off = (uint64_t)data / PAGE_BYTES * PAGE_BYTES;
		if (off >= size_bytes)
			break;
		want = (size_t)u64_min(CHUNK_BYTES, size_bytes - off);
		n = read_at(fd, chunk, want, off);
		if (n != (ssize_t)want) {
			r = n < 0 ? (int)n : -ENODATA;
			break;
		}
		add_pages(d, chunk, want, off);
		off += want;
	}
	digest_end(d, ret);
	return r;
}
