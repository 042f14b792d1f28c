/* Regions whose files other processes change. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "server/memory/region_loss.h"
#include "tests/unit/memory_dir.h"
#include "tests/unit/take_sigbus.h"

enum { NREGIONS = 2, LEN = 16 * PAGE_BYTES };

static struct fixture {
	char dir[64];
	struct export export;
	struct region_file files[NREGIONS];
	struct region_file *regions[NREGIONS];
} fx;

static int set_up(void **state)
{
	const struct numa_place none = {.node = -1};

	fx = (struct fixture){
		.export = {.name = "data", .nregions = NREGIONS, .regions = fx.regions}};
	memory_dir(fx.dir, sizeof(fx.dir));
	for (unsigned i = 0; i < NREGIONS; i++) {
		fx.files[i] = (struct region_file){
			.len = LEN, .fd = -1, .rofd = -1, .export_lost = &fx.export.lost};
		fx.regions[i] = &fx.files[i];
		snprintf(fx.files[i].path, sizeof(fx.files[i].path), "%s/data.%04u", fx.dir, i);
	}
	assert_int_equal(regions_prepare(fx.regions, NREGIONS, HUGE_PAGES_NEVER, &none), 0);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < NREGIONS; i++) {
		unlink(fx.files[i].path);
		region_file_close(&fx.files[i]);
	}
	rmdir(fx.dir);
	return 0;
}

static void expect_lost(unsigned n)
{
	assert_int_equal(region_loss_count(&fx.export), n);
	assert_int_equal(fx.export.lost, n > 0);
}

static void look__finds_whole_files_whole(void **state)
{
	assert_false(region_loss_look(&fx.export));
	expect_lost(0);
}

static void look__finds_a_cut_file_once(void **state)
{
	assert_int_equal(ftruncate(fx.files[1].fd, LEN - 1), 0);
	assert_true(region_loss_look(&fx.export));
	expect_lost(1);
	assert_true(fx.files[1].lost);
	assert_false(region_loss_look(&fx.export));
	assert_int_equal(ftruncate(fx.files[0].fd, 0), 0);
	assert_true(region_loss_look(&fx.export));
	expect_lost(2);
}

static void look__finds_a_hole(void **state)
{
	assert_int_equal(fallocate(fx.files[0].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 3 * PAGE_BYTES, PAGE_BYTES),
		0);
	assert_true(region_loss_look(&fx.export));
	expect_lost(1);
	assert_true(fx.files[0].lost);
}

static void look__finds_a_file_that_was_cut_and_made_longer(void **state)
{
	assert_int_equal(ftruncate(fx.files[0].fd, 0), 0);
	assert_int_equal(ftruncate(fx.files[0].fd, 2 * LEN), 0);
	assert_true(region_loss_look(&fx.export));
	expect_lost(1);
}

/* The file looks whole again, but this process has met a lost page. */
static void look__believes_an_access_that_failed(void **state)
{
	assert_int_equal(ftruncate(fx.files[1].fd, 0), 0);
	take_sigbus();
	memset(fx.files[1].addr, 1, LEN);
	assert_true(fx.export.lost);
	assert_int_equal(fallocate(fx.files[1].fd, 0, 0, LEN), 0);
	assert_true(region_loss_look(&fx.export));
	expect_lost(1);
	assert_true(fx.files[1].lost);
}

static void look__cuts_a_longer_file_back(void **state)
{
	struct stat st;

	assert_int_equal(fallocate(fx.files[0].fd, 0, 0, 4 * LEN), 0);
	assert_false(region_loss_look(&fx.export));
	assert_int_equal(fstat(fx.files[0].fd, &st), 0);
	assert_int_equal(st.st_size, LEN);
	expect_lost(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(look__finds_whole_files_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(look__finds_a_cut_file_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(look__finds_a_hole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			look__finds_a_file_that_was_cut_and_made_longer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			look__believes_an_access_that_failed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(look__cuts_a_longer_file_back, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
