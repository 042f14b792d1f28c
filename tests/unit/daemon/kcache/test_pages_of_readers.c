/* Pages of files that are read through the cache by handles from before other mounts came. */
#include "tests/unit/daemon/kcache/pages_client.h"

/* read(2) by it stops at the end that the kernel knows. */
static void recall__of_what_is_read_by_the_cache__leaves_the_end_as_it_is(void **state)
{
	open_with(LEASE_SHARED, 1);
	fx.inode->nopen++;
	fx.inode->nopen_cached = 1;
	read_pages(0, 2);
	assert_nothing_dropped();
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(kernel_pages_size_of_entry(fx.inode, 2 * PAGE), 2 * PAGE);
	/* Then a mapping by another handle goes by it. */
	fx.inode->nopen--;
	fx.inode->nopen_cached = 0;
	kernel_pages_reader_closed_locked(fx.inode, &fx.thread);
	told_that_it_is_endless();
	close_and_return(1);
}

/* It would show zeros from the page that the end is in, if the kernel does not take the end. */
static void read__of_the_end_by_the_cache__is_dropped_with_its_page(void **state)
{
	open_with(LEASE_SHARED, 1);
	fx.inode->nopen_cached = 1;
	read_pages(0, 8);
	answer_end(2 * PAGE - 1);
	dropped(take_dropped(1, NO_END / PAGE - 1));
	answer_end(2 * PAGE);
	dropped(take_dropped(2, NO_END / PAGE - 2));
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 8));
	fx.inode->nopen_cached = 0;
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_mapping, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(recall__of_what_is_read_by_the_cache__leaves_the_end_as_it_is),
		CASE(read__of_the_end_by_the_cache__is_dropped_with_its_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
