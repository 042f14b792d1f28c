/* image_block.h - files of blocks with sums, for image_write.c and image_read.c.
 *
 * A block is a header of 32 bytes, little-endian, and the data. The header has the length of the
 * data (4), a count (4), a first number (8), the sum (8), and a magic text (8). The sum is XXH3 of
 * the data, seeded by the header, by the block's number in its file, and by the snapshot's id.
 */
#ifndef RMEMFS_SERVER_SNAPSHOT_IMAGE_BLOCK_H
#define RMEMFS_SERVER_SNAPSHOT_IMAGE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/util.h"
#include "server/space/protect.h"

enum {
	BLOCK_HEADER_BYTES = 32,
	BLOCK_DATA_MAX = PROTECT_TAKE_PAGES * PAGE_BYTES,
	RECORD_HEADER_BYTES = 21, /* table 1, inode 8, lo 8, length of the value 4 */
};

enum image_file { IMAGE_RECORDS, IMAGE_PAGES, IMAGE_FILES };

extern const char *const image_file_names[IMAGE_FILES];
#define IMAGE_MANIFEST     "manifest"
#define IMAGE_MANIFEST_NEW "manifest.new"

enum { IMAGE_MANIFEST_MAX = 4096 };

struct block {
	uint32_t len, count;
	uint64_t first;
	uint64_t sum;
};

void image_block_encode(const struct block *b, uint8_t header[BLOCK_HEADER_BYTES]);
/* False: it is not the header of a block. */
bool image_block_decode(struct block *b, const uint8_t header[BLOCK_HEADER_BYTES]);
uint64_t image_block_sum(const struct block *b, const void *data, enum image_file file,
	uint64_t number, uint64_t id);

uint64_t image_sum(const void *data, size_t len);

#endif
