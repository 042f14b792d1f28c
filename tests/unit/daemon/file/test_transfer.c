/* test_transfer.c - a range of a file, by transfer into a buffer and from its mapping: both give
 * the same bytes. The memory behind both is this program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread.h"
#include "daemon/remote/remote.h"
#include "daemon/file/transfer.h"
#include "daemon/serve/fs_block.h"
#include "daemon/fuse/fuse_ops.h"

enum { REGIONS = 2, REGION_PAGES = 1024 };

struct fixture {
	uint8_t *memory[REGIONS];
	bool away;
	struct fs fs;
	struct fs_parts parts;
	struct io_thread thread;
	struct request req;
	struct data_buffer buf;
	struct inode inode;
	struct pieces pieces;
	uint8_t expected[IO_BYTES_MAX], got[IO_BYTES_MAX];
};

static struct fixture *f;

/* ---- in place of the connection -------------------------------------------------------------- */

const struct io_limits *io_limits(const struct io_thread *thread)
{
	static const struct io_limits limits = {4, 4, 64 << 10};

	return &limits;
}

void *io_mapped(
	struct io_thread *thread, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	assert_int_equal(dir, IO_READ);
	assert_true(range_within(offset, len, (uint64_t)REGION_PAGES * PAGE_BYTES));
	return f->away && region == REGIONS - 1 ? NULL : f->memory[region] + offset;
}

void io_count_mapped(struct io_thread *thread, enum io_dir dir, uint64_t bytes)
{
}

static bool begins_anew(struct request *req, int *error)
{
	return false;
}

static const struct fuse_ops ops = {.begins_anew = begins_anew};

/* ---- the file -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	for (int i = 0; i < REGIONS; i++) {
		f->memory[i] = malloc((size_t)REGION_PAGES * PAGE_BYTES);
		assert_non_null(f->memory[i]);
		for (uint32_t at = 0; at < REGION_PAGES * PAGE_BYTES; at++)
			f->memory[i][at] = (uint8_t)(1 + (at + at / PAGE_BYTES + i) % 255);
	}
	f->buf.data = malloc(IO_BYTES_MAX);
	assert_non_null(f->buf.data);
	f->fs.options.merge_pages = IO_PAGES_MAX;
	fs_wire(&f->fs, &f->parts);
	f->thread.fs = &f->fs;
	f->thread.ops = &ops;
	f->thread.shared = &f->fs.requests;
	f->req.thread = &f->thread;
	f->req.buf = &f->buf;
	extent_map_init(&f->inode.map);
	return 0;
}

static int teardown(void **state)
{
	extent_map_fini(&f->inode.map);
	for (int i = 0; i < REGIONS; i++)
		free(f->memory[i]);
	free(f->buf.data);
	free(f);
	return 0;
}

static void put(uint64_t fpage, uint32_t npages, uint16_t region, uint32_t page)
{
	struct extent e = {.fpage = fpage, .npages = npages, .region = region, .page = page};

	assert_int_equal(extent_map_insert(&f->inode.map, &e, EXTENT_COMMITTED), 0);
}

/* Finds each byte by the map's own search. */
static void expect(uint64_t offset, uint32_t len)
{
	struct extent_cursor at;
	struct mapped_extent e;

	for (uint32_t i = 0; i < len; i++) {
		uint64_t pos = offset + i, fpage = pos >> PAGE_SHIFT;
		bool mapped = extent_map_seek(&f->inode.map, fpage, &at, &e) && e.fpage <= fpage;

		f->expected[i] =
			mapped ? f->memory[e.region][((e.page + fpage - e.fpage) << PAGE_SHIFT) +
						     pos % PAGE_BYTES]
			       : 0;
	}
}

static void gather_pieces(void)
{
	uint32_t at = 0;

	for (unsigned i = 1; i < f->pieces.n; i++) {
		memcpy(f->got + at, f->pieces.iov[i].iov_base, f->pieces.iov[i].iov_len);
		at += f->pieces.iov[i].iov_len;
	}
	assert_int_equal(at, f->pieces.len);
}

/* Returns how many bytes. */
static uint32_t run_works(uint32_t nworks)
{
	uint32_t bytes = 0;

	for (uint32_t w = 0; w < nworks; w++) {
		const struct work *work = &f->buf.works[w];
		const uint8_t *from = f->memory[work->region] + work->offset;

		for (uint32_t i = 0; i < work->nsge; i++) {
			memcpy(work->sge[i].addr, from, work->sge[i].len);
			from += work->sge[i].len;
			bytes += work->sge[i].len;
		}
	}
	return bytes;
}

static void same_either_way(uint64_t offset, uint32_t len)
{
	uint32_t nworks, zeroed;

	expect(offset, len);
	assert_true(transfer_mapped_locked(&f->req, &f->inode, offset, len, &f->pieces));
	assert_int_equal(f->pieces.len, len);
	gather_pieces();
	assert_memory_equal(f->got, f->expected, len);
	memset(f->buf.data, 0xee, len);
	nworks = transfer_plan_read_locked(&f->req, &f->inode, offset, len, &zeroed);
	assert_int_equal(run_works(nworks) + zeroed, len);
	assert_memory_equal(f->buf.data, f->expected, len);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void range__of_extents_and_holes(void **state)
{
	put(1, 3, 0, 700);
	put(4, 2, 1, 10);
	put(9, 1, 0, 5);
	same_either_way(0, 16 * PAGE_BYTES);
	same_either_way(PAGE_BYTES + 100, 200);
	same_either_way(2 * PAGE_BYTES + 1, 5 * PAGE_BYTES);
	same_either_way(5 * PAGE_BYTES + 4095, 1);
	same_either_way(6 * PAGE_BYTES, 3 * PAGE_BYTES);
	same_either_way(6 * PAGE_BYTES - 1, 3 * PAGE_BYTES + 2);
	same_either_way(9 * PAGE_BYTES + 77, 40 * PAGE_BYTES);
}

static void range__nothing_mapped(void **state)
{
	same_either_way(0, IO_BYTES_MAX);
	same_either_way(12345, IO_BYTES_MAX);
}

/* The greatest possible number of pieces: each page by itself, and no page begins where the range
 * does. */
static void range__every_other_page_a_hole(void **state)
{
	for (uint32_t i = 0; i < 520; i += 2)
		put(i, 1, i % 4 / 2, 1000 - i);
	same_either_way(0, IO_BYTES_MAX);
	same_either_way(PAGE_BYTES / 2, IO_BYTES_MAX);
	same_either_way(PAGE_BYTES + 1, IO_BYTES_MAX);
}

static void range__no_page_adjoins_another(void **state)
{
	for (uint32_t i = 0; i < 300; i++)
		put(i, 1, i % 2, 1000 - 3 * i);
	same_either_way(PAGE_BYTES / 2, IO_BYTES_MAX);
}

static void mapped__not_all_of_it(void **state)
{
	put(0, 1, 0, 3);
	put(1, 1, 1, 3);
	f->away = true;
	assert_false(transfer_mapped_locked(&f->req, &f->inode, 0, 2 * PAGE_BYTES, &f->pieces));
	assert_true(transfer_mapped_locked(&f->req, &f->inode, 0, PAGE_BYTES, &f->pieces));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(range__of_extents_and_holes),
		CASE(range__nothing_mapped),
		CASE(range__every_other_page_a_hole),
		CASE(range__no_page_adjoins_another),
		CASE(mapped__not_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
