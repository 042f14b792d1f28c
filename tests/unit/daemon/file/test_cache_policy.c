/* test_cache_policy.c - which handles use the kernel's cache, and the flags of INIT for it. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/file/cache_policy.h"
#include "daemon/serve/fs.h"
#include "daemon/fuse/private.h"

enum { ALLOW_MMAP_2 = 1 << 4 }; /* FUSE_DIRECT_IO_ALLOW_MMAP in flags2 */

static const struct fs_features newer = {.direct_io_allow_mmap = true}, older;
static const struct cache_handles none, direct = {2, 0}, cached = {1, 1}, mixed = {2, 1};

/* ---- handles --------------------------------------------------------------------------------- */

static void open_kind__none_is_always_direct(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_NONE, &newer, none, O_RDONLY), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_NONE, &older, none, O_RDWR), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_NONE, &newer, cached, O_RDWR), OPENED_DIRECT);
}

static void open_kind__exclusive_is_always_cached(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_EXCLUSIVE, &newer, none, O_WRONLY), OPENED_CACHED);
	assert_int_equal(
		cache_open_kind(CACHE_EXCLUSIVE, &newer, none, O_RDWR | O_DIRECT), OPENED_CACHED);
}

static void open_kind__shared_by_what_the_first_is_opened_for(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_SHARED, &newer, none, O_RDONLY), OPENED_CACHED);
	assert_int_equal(cache_open_kind(CACHE_SHARED, &newer, none, O_RDWR), OPENED_CACHED);
	assert_int_equal(cache_open_kind(CACHE_SHARED, &newer, none, O_WRONLY), OPENED_DIRECT);
	assert_int_equal(
		cache_open_kind(CACHE_SHARED, &newer, none, O_RDONLY | O_DIRECT), OPENED_DIRECT);
}

static void open_kind__shared_later_ones_do_as_the_first(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_SHARED, &newer, direct, O_RDWR), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_SHARED, &newer, cached, O_WRONLY), OPENED_CACHED);
	assert_int_equal(
		cache_open_kind(CACHE_SHARED, &newer, cached, O_RDWR | O_DIRECT), OPENED_CACHED);
}

static void open_kind__readers_only_beside_their_like(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_READERS, &newer, none, O_RDONLY), OPENED_CACHED);
	assert_int_equal(cache_open_kind(CACHE_READERS, &older, cached, O_RDONLY), OPENED_CACHED);
	assert_int_equal(cache_open_kind(CACHE_READERS, &newer, direct, O_RDONLY), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_READERS, &newer, mixed, O_RDONLY), OPENED_DIRECT);
	assert_int_equal(
		cache_open_kind(CACHE_READERS, &newer, none, O_RDONLY | O_DIRECT), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_READERS, &newer, none, O_RDWR), OPENED_DIRECT);
	assert_int_equal(cache_open_kind(CACHE_READERS, &older, cached, O_WRONLY), OPENED_DIRECT);
}

static void open_kind__shared_is_cached_where_direct_files_cannot_be_mapped(void **state)
{
	assert_int_equal(cache_open_kind(CACHE_SHARED, &older, none, O_WRONLY), OPENED_CACHED);
	assert_int_equal(
		cache_open_kind(CACHE_SHARED, &older, none, O_RDWR | O_DIRECT), OPENED_CACHED);
}

/* ---- INIT ------------------------------------------------------------------------------------ */

static struct fuse_init_in offer(uint32_t flags, uint32_t flags2)
{
	return (struct fuse_init_in){.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.flags = flags | FUSE_INIT_EXT,
		.flags2 = flags2};
}

static const struct fuse_wishes nothing;

static void negotiate__writeback_is_asked_for_by_exclusive_alone(void **state)
{
	struct fuse_init_in in = offer(FUSE_WRITEBACK_CACHE, 0);
	struct fs_features features;
	struct fuse_init_out out;

	for (enum cache_mode mode = CACHE_NONE; mode <= CACHE_EXCLUSIVE; mode++) {
		const struct fuse_wishes wishes = {.write_back = mode == CACHE_EXCLUSIVE};

		assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &wishes, &out, &features), 0);
		assert_int_equal((out.flags & FUSE_WRITEBACK_CACHE) != 0, mode == CACHE_EXCLUSIVE);
		assert_int_equal(features.writeback, mode == CACHE_EXCLUSIVE);
	}
}

static void negotiate__writeback_that_is_not_offered_is_not_relied_on(void **state)
{
	struct fuse_init_in in = offer(0, 0);
	struct fs_features features;
	struct fuse_init_out out;

	assert_int_equal(fuse_init_negotiate(&in, sizeof(in),
				 &(struct fuse_wishes){.write_back = true}, &out, &features),
		0);
	assert_false(features.writeback);
}

static void negotiate__mapping_direct_files_as_the_kernel_offers(void **state)
{
	struct fs_features features;
	struct fuse_init_out out;
	struct fuse_init_in in = offer(0, ALLOW_MMAP_2);

	in.minor = 40;
	for (unsigned sharing = 0; sharing < 2; sharing++) {
		const struct fuse_wishes wishes = {.sharing = sharing};

		assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &wishes, &out, &features), 0);
		assert_true(features.direct_io_allow_mmap);
		assert_int_equal(out.flags2, ALLOW_MMAP_2);
	}
	in.flags2 = 0;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &nothing, &out, &features), 0);
	assert_false(features.direct_io_allow_mmap);
	assert_int_equal(out.flags2, 0);
}

/* Linux 6.6 to 6.8 allow it, but don't write such pages back. */
static void negotiate__mapping_direct_files_of_a_kernel_that_loses_stores(void **state)
{
	struct fs_features features;
	struct fuse_init_out out;
	struct fuse_init_in in = offer(0, ALLOW_MMAP_2);

	in.minor = 39;
	assert_int_equal(fuse_init_negotiate(&in, sizeof(in), &nothing, &out, &features), 0);
	assert_false(features.direct_io_allow_mmap);
	assert_int_equal(out.flags2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_kind__none_is_always_direct),
		cmocka_unit_test(open_kind__exclusive_is_always_cached),
		cmocka_unit_test(open_kind__shared_by_what_the_first_is_opened_for),
		cmocka_unit_test(open_kind__shared_later_ones_do_as_the_first),
		cmocka_unit_test(open_kind__readers_only_beside_their_like),
		cmocka_unit_test(open_kind__shared_is_cached_where_direct_files_cannot_be_mapped),
		cmocka_unit_test(negotiate__writeback_is_asked_for_by_exclusive_alone),
		cmocka_unit_test(negotiate__writeback_that_is_not_offered_is_not_relied_on),
		cmocka_unit_test(negotiate__mapping_direct_files_as_the_kernel_offers),
		cmocka_unit_test(negotiate__mapping_direct_files_of_a_kernel_that_loses_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
