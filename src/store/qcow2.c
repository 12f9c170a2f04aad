/* See qcow2.h. Clusters: 0 header, 1 refcount table, 2 its only block, 3 first-level table
 * (empty). The file may end inside the last cluster, as those that qemu-img makes do. */
#include "store/qcow2.h"

#include "base/wr.h"

#include <errno.h>

#define MAGIC           0x514649fbu
#define VERSION         3u
#define CLUSTER_BITS    16u
#define REFCOUNT_ORDER  4u /* 16 bits a count */
#define HEADER_LENGTH   104u
#define L2_REACH        ((uint64_t)QCOW2_CLUSTER / 8 * QCOW2_CLUSTER) /* bytes one L1 entry maps */
#define CLUSTERS        4u
#define PIECES_SIZE_MAX 128u

static_assert(QCOW2_CLUSTER == 1u << CLUSTER_BITS, "one cluster size");
static_assert(QCOW2_SIZE_MAX == (uint64_t)QCOW2_CLUSTER / 8 * L2_REACH, "the table is one cluster");

/* The parts of the image that are not zero. */
struct piece {
	uint32_t off;
	uint32_t n;
	uint8_t p[PIECES_SIZE_MAX];
};
enum { PIECE_HEADER, PIECE_TABLE, PIECE_BLOCK, PIECES };

static uint32_t l1_entries(uint64_t size_bytes)
{
	return (uint32_t)((size_bytes + L2_REACH - 1) / L2_REACH);
}

static void header_print(struct piece *ret, uint64_t size_bytes)
{
	struct wr w = wr_of(ret->p, sizeof ret->p);

	wr_be32(&w, MAGIC);
	wr_be32(&w, VERSION);
	wr_be64(&w, 0); /* no backing file */
	wr_be32(&w, 0);
	wr_be32(&w, CLUSTER_BITS);
	wr_be64(&w, size_bytes);
	wr_be32(&w, 0); /* not encrypted */
	wr_be32(&w, l1_entries(size_bytes));
	wr_be64(&w, 3ull * QCOW2_CLUSTER);
	wr_be64(&w, 1ull * QCOW2_CLUSTER);
	wr_be32(&w, 1); /* cluster of refcount table */
	wr_be32(&w, 0); /* no internal snapshots */
	wr_be64(&w, 0);
	wr_be64(&w, 0); /* features: incompatible, compatible, autoclear */
	wr_be64(&w, 0);
	wr_be64(&w, 0);
	wr_be32(&w, REFCOUNT_ORDER);
	wr_be32(&w, HEADER_LENGTH);
	wr_be64(&w, 0); /* end of header extensions */
	assert(!w.bad && wr_len(&w) == HEADER_LENGTH + 8);
	ret->off = 0;
	ret->n = (uint32_t)wr_len(&w);
}

static int pieces_print(struct piece ret[PIECES], uint64_t size_bytes, size_t *ret_n)
{
	struct wr w;

	if (size_bytes < 512 || size_bytes > QCOW2_SIZE_MAX || size_bytes % 512)
		return -EINVAL;
	header_print(&ret[PIECE_HEADER], size_bytes);

	w = wr_of(ret[PIECE_TABLE].p, PIECES_SIZE_MAX);
	wr_be64(&w, 2ull * QCOW2_CLUSTER);
	ret[PIECE_TABLE].off = QCOW2_CLUSTER;
	ret[PIECE_TABLE].n = (uint32_t)wr_len(&w);

	w = wr_of(ret[PIECE_BLOCK].p, PIECES_SIZE_MAX);
	for (unsigned i = 0; i < CLUSTERS; i++)
		wr_be16(&w, 1);
	ret[PIECE_BLOCK].off = 2 * QCOW2_CLUSTER;
	ret[PIECE_BLOCK].n = (uint32_t)wr_len(&w);

	*ret_n = 3u * QCOW2_CLUSTER + 8u * l1_entries(size_bytes);
	return 0;
}

int qcow2_empty_print(uint8_t dst[QCOW2_EMPTY_MAX], uint64_t size_bytes, size_t *ret_n)
{
	struct piece piece[PIECES];
	size_t n = 0;
	int r = pieces_print(piece, size_bytes, &n);

	if (r < 0)
		return r;
	memset(dst, 0, n);
	for (size_t i = 0; i < PIECES; i++)
		memcpy(dst + piece[i].off, piece[i].p, piece[i].n);
	*ret_n = n;
	return 0;
}

int qcow2_empty_write(int fd, uint64_t size_bytes)
{
	struct piece piece[PIECES];
	size_t n = 0;
	int r = pieces_print(piece, size_bytes, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < PIECES; i++) {
		ssize_t done = pwrite(fd, piece[i].p, piece[i].n, (off_t)piece[i].off);

		if (done < 0)
			return -errno;
		if (done != (ssize_t)piece[i].n)
			return -ENOSPC;
	}
	return ftruncate(fd, (off_t)n) < 0 ? -errno : 0;
}
