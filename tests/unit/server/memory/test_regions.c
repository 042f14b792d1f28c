/* test_regions.c - files of memory that a cancelled task does not make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/task.h"
#include "server/memory/regions.h"
#include "tests/unit/memory_dir.h"

enum { NFILES = 4, BYTES = 2 << 20 };

static const struct numa_place anywhere = {.node = -1};
static struct region_file file[NFILES];
static struct region_file *files[NFILES];
static struct task task;
static char dir[64];

static int set_up(void **state)
{
	memory_dir(dir, sizeof(dir));
	for (unsigned i = 0; i < NFILES; i++) {
		file[i] = (struct region_file){.len = BYTES, .fd = -1, .rofd = -1};
		snprintf(file[i].path, sizeof(file[i].path), "%s/%u", dir, i);
		files[i] = &file[i];
	}
	task_begin(&task);
	task_enter(&task);
	return 0;
}

static int tear_down(void **state)
{
	task_enter(NULL);
	task_end(&task);
	for (unsigned i = 0; i < NFILES; i++) {
		region_file_close(&file[i]);
		unlink(file[i].path);
	}
	rmdir(dir);
	return 0;
}

static int prepare(void)
{
	return regions_prepare(files, NFILES, HUGE_PAGES_NEVER, &anywhere);
}

static void prepare__makes_all(void **state)
{
	assert_int_equal(prepare(), 0);
	for (unsigned i = 0; i < NFILES; i++)
		assert_true(file[i].made);
}

static void prepare__of_a_cancelled_task_makes_none(void **state)
{
	task_cancel(&task);
	assert_int_equal(prepare(), -ECANCELED);
	for (unsigned i = 0; i < NFILES; i++)
		assert_int_equal(access(file[i].path, F_OK), -1);
}

/* Each of several workers logs one. */
static void prepare__leaves_its_reason_in_the_task(void **state)
{
	char why[RPC_TEXT_MAX];

	for (unsigned i = 0; i < NFILES; i++)
		snprintf(file[i].path, sizeof(file[i].path), "%s/none/%u", dir, i);
	assert_int_equal(prepare(), -ENOENT);
	task_why(&task, -ENOENT, why, sizeof(why));
	assert_non_null(strstr(why, "can't open: No such file or directory"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(prepare__makes_all),
		TEST(prepare__of_a_cancelled_task_makes_none),
		TEST(prepare__leaves_its_reason_in_the_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
