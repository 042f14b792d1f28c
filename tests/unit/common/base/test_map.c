/* Mappings of files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/base/map.h"
#include "common/base/util.h"

static int memory_file(uint64_t len)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	return fd;
}

static bool is_mapped(const void *addr)
{
	unsigned char there;

	return mincore((void *)addr, PAGE_BYTES, &there) == 0;
}

/* No kernel aligns the mapping of a single page by itself; at the edges it behaves like all
 * others. */
static void map_file__begins_where_a_huge_page_does(void **state)
{
	const uint64_t lens[] = {1, PAGE_BYTES, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 3 * PAGE_BYTES};

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		autoclose int fd = memory_file(lens[i]);
		uint64_t pages = div_round_up(lens[i], PAGE_BYTES);
		uint8_t byte = 0x5a;
		void *addr;

		assert_int_equal(map_file(fd, lens[i], PROT_READ | PROT_WRITE, &addr), 0);
		assert_int_equal((uintptr_t)addr % HUGE_PAGE_BYTES, 0);
		((uint8_t *)addr)[lens[i] - 1] = byte;
		byte = 0;
		assert_int_equal(pread(fd, &byte, 1, (off_t)lens[i] - 1), 1);
		assert_int_equal(byte, 0x5a);
		assert_true(is_mapped((uint8_t *)addr + (pages - 1) * PAGE_BYTES));
		assert_int_equal(munmap(addr, lens[i]), 0);
	}
}

static void map_file__keeps_nothing_around_it(void **state)
{
	autoclose int fd = memory_file(PAGE_BYTES);
	void *addr;

	assert_int_equal(map_file(fd, PAGE_BYTES, PROT_READ, &addr), 0);
	assert_false(is_mapped((uint8_t *)addr - PAGE_BYTES));
	assert_false(is_mapped((uint8_t *)addr + PAGE_BYTES));
	assert_int_equal(munmap(addr, PAGE_BYTES), 0);
}

static void map_file__fails_and_leaves_nothing(void **state)
{
	autoclose int fd = memory_file(PAGE_BYTES);
	void *addr = &fd;

	assert_int_equal(map_file(-1, PAGE_BYTES, PROT_READ, &addr), -EBADF);
	assert_int_equal(map_file(fd, UINT64_MAX, PROT_READ, &addr), -ENOMEM);
	assert_int_equal(map_file(fd, UINT64_MAX - HUGE_PAGE_BYTES, PROT_READ, &addr), -ENOMEM);
	assert_int_equal(map_file(fd, UINT64_C(1) << 60, PROT_READ, &addr), -ENOMEM);
	assert_ptr_equal(addr, &fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_file__begins_where_a_huge_page_does),
		cmocka_unit_test(map_file__keeps_nothing_around_it),
		cmocka_unit_test(map_file__fails_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
