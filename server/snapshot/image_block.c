/* image_block.c - see image_block.h. */
#include "server/snapshot/image_block.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <xxhash.h>

#include "common/base/log.h"
#include "common/rpc/wire.h"
#include "server/snapshot/image.h"

static const char magic[8] = "rmemfsB";

const char *const image_file_names[IMAGE_FILES] = {
	[IMAGE_RECORDS] = "records",
	[IMAGE_PAGES] = "pages",
};

void image_block_encode(const struct block *b, uint8_t header[BLOCK_HEADER_BYTES])
{
	struct wire_out w;

	wire_out_init(&w, header, BLOCK_HEADER_BYTES);
	wire_put_u32(&w, b->len);
	wire_put_u32(&w, b->count);
	wire_put_u64(&w, b->first);
	wire_put_u64(&w, b->sum);
	wire_put(&w, magic, sizeof(magic));
}

bool image_block_decode(struct block *b, const uint8_t header[BLOCK_HEADER_BYTES])
{
	char found[sizeof(magic)];
	struct wire_in r;

	wire_in_init(&r, header, BLOCK_HEADER_BYTES);
	b->len = wire_get_u32(&r);
	b->count = wire_get_u32(&r);
	b->first = wire_get_u64(&r);
	b->sum = wire_get_u64(&r);
	wire_get(&r, found, sizeof(found));
	return memcmp(found, magic, sizeof(magic)) == 0 && b->len <= BLOCK_DATA_MAX;
}

uint64_t image_block_sum(
	const struct block *b, const void *data, enum image_file file, uint64_t number, uint64_t id)
{
	uint64_t place[6] = {b->len, b->count, b->first, file, number, id};

	for (unsigned i = 0; i < 6; i++)
		place[i] = htole64(place[i]);
	return XXH3_64bits_withSeed(data, b->len, XXH3_64bits(place, sizeof(place)));
}

uint64_t image_sum(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

int image_fail(const struct image_why *why, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->len, format, args);
	va_end(args);
	return err;
}

static bool is_unit(void)
{
	return getenv("NOTIFY_SOCKET");
}

int image_fail_writing(
	const struct image_why *why, int err, const char *doing, const char *path, const char *dir)
{
	if (err != -EROFS || !is_unit())
		return image_fail(why, err, "can't %s %s: %s", doing, path, errno_text(err));
	return image_fail(why, err,
		"can't %s %s: %s: if the disk is not, it is so for the server's unit, which needs "
		"ReadWritePaths=%s in a drop-in (systemctl edit rmemfs-server), and a restart",
		doing, path, errno_text(err), dir);
}
