/* Mappings of files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/base/map.h"
#include "common/base/util.h"
#include "tests/unit/emulated.h"

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

static bool is_in_page_table(const void *at)
{
	autoclose int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	assert_int_equal(pread(fd, &entry, sizeof(entry),
				 (off_t)((uintptr_t)at / PAGE_BYTES * sizeof(entry))),
		sizeof(entry));
	return entry >> 63;
}

static void map_populate__gets_the_pages_that_the_range_touches(void **state)
{
	enum { PAGES = 1024 };
	autoclose int fd = memory_file(PAGES * PAGE_BYTES);
	uint8_t *at;
	void *addr;

	/* The page table is the emulator's. */
	skip_if_emulated();
	assert_int_equal(map_file(fd, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, &addr), 0);
	at = addr;
	assert_false(is_in_page_table(at + 10 * PAGE_BYTES));
	map_populate(at + 11 * PAGE_BYTES - 1, PAGE_BYTES + 2, true);
	for (unsigned i = 10; i <= 12; i++)
		assert_true(is_in_page_table(at + i * PAGE_BYTES));
	assert_false(is_in_page_table(at + (PAGES - 1) * PAGE_BYTES));
	map_populate(at + (PAGES - 1) * PAGE_BYTES, 1, false);
	assert_true(is_in_page_table(at + (PAGES - 1) * PAGE_BYTES));
	assert_int_equal(munmap(addr, PAGES * PAGE_BYTES), 0);
}

/* The file is shorter than its mapping. */
static void map_populate__copes_with_what_is_not_there(void **state)
{
	autoclose int fd = memory_file(PAGE_BYTES);
	void *addr;

	assert_int_equal(map_file(fd, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, &addr), 0);
	map_populate(addr, 2 * PAGE_BYTES, true);
	assert_false(is_in_page_table((uint8_t *)addr + PAGE_BYTES));
	assert_int_equal(munmap(addr, 2 * PAGE_BYTES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_file__begins_where_a_huge_page_does),
		cmocka_unit_test(map_file__keeps_nothing_around_it),
		cmocka_unit_test(map_file__fails_and_leaves_nothing),
		cmocka_unit_test(map_populate__gets_the_pages_that_the_range_touches),
		cmocka_unit_test(map_populate__copes_with_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
