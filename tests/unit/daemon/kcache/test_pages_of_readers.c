/* Pages of files that are read through the cache by handles from before other mounts came, or that
 * the kernel copies. */
#include "daemon/file/cache_policy.h"
#include "daemon/file/handle.h"
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
	dropped(take_dropped(0, 1));
	fx.inode->nopen_cached = 0;
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(1);
}

/* If the lease only goes down, the page would stay. */
static void recall__to_shared__leaves_no_page_with_the_end(void **state)
{
	open_with(LEASE_EXCLUSIVE, 1);
	fx.inode->nopen_cached = 1;
	begin(1, OP_WRITE, 0);
	assert_int_equal(fx.went[1], 1);
	begin_cached(0, OP_READ, 0, 8);
	assert_int_equal(fx.went[0], 1);
	assert_true(kernel_pages_answers_end(fx.inode, 2 * PAGE - 1));
	recall(1, LEASE_SHARED);
	end(0);
	kernel_pages_end_answered(fx.inode, &fx.thread);
	dropped(take_dropped(1, NO_END / PAGE - 1));
	end(1);
	answer(take_return(1, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	fx.inode->nopen_cached = 0;
	close_and_return(1);
}

/* Nothing of that READ is cached any more. A READ meanwhile would have to fail. */
static void read__of_the_end__drops_nothing_when_the_lease_has_gone_since(void **state)
{
	open_with(LEASE_SHARED, 1);
	fx.inode->nopen_cached = 1;
	begin_cached(0, OP_READ, 0, 8);
	assert_int_equal(fx.went[0], 1);
	assert_true(kernel_pages_answers_end(fx.inode, 2 * PAGE - 1));
	end(0);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 8));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	kernel_pages_end_answered(fx.inode, &fx.thread);
	assert_nothing_dropped();
	assert_false(kernel_pages_drops_behind_locked(fx.inode));
	fx.inode->nopen_cached = 0;
	close_and_return(1);
}

/* No lease was lost: the server has all that is in them. */
static void cut__of_what_was_closed_when_others_came__waits_for_its_pages(void **state)
{
	struct cached_pages *p = fx.inode->cached->pages;
	struct notifier_job *job;

	p->mapped = false;
	p->ranges[p->nranges++] = (struct cached_range){.from = 0, .to = 4 * PAGE};
	kernel_pages_share_locked(fx.inode, &fx.thread);
	job = take_dropped(0, 4);
	cut(0);
	run_calls();
	assert_int_equal(fx.went[0], 0);
	assert_nothing_sent();
	dropped(job);
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 1);
	assert_int_equal(fx.went[0], 1);
	end(0);
	list_none_dirty();
	recall(1, LEASE_NONE);
	answer(take_return(1, LEASE_NONE, RETURN_UNPIN), 0);
}

static void read_alone_by(enum open_kind kind, uint64_t page)
{
	struct handle handle = {.kind = kind};
	struct request *req = &fx.ops[0];

	*req = (struct request){.thread = &fx.thread, .op = OP_READ, .node = INO};
	req->args.fh = (uintptr_t)&handle;
	req->args.cached = true;
	req->args.offset = page * PAGE;
	req->args.size = PAGE;
	assert_true(kernel_pages_note_alone(req));
}

/* Both ways of a conversion go by it: a program that appends keeps the kernel from being told the
 * end of what is mapped. */
static void share__of_what_is_read_by_the_cache__counts_no_mapping(void **state)
{
	struct inode *inode = fx.inode;
	struct cached_pages *p = inode->cached->pages;

	atomic_store(&fx.fs.sharing, false);
	p->mapped = false;
	inode->nopen = 2;
	inode->nopen_cached = 1;
	read_alone_by(OPENED_CACHED, 0);
	atomic_store(&fx.fs.sharing, true);
	kernel_pages_share_locked(inode, &fx.thread);
	assert_true(kernel_pages_any_locked(inode));
	inode->nopen_cached = 0;
	inode->cached->nappenders = 1;
	kernel_pages_reader_closed_locked(inode, &fx.thread);
	assert_nothing_dropped();
	assert_false(kernel_pages_end_is_open_locked(inode));
	/* A page of it is asked for again, by the other handle. */
	kernel_pages_note_locked(inode, &fx.thread, (struct cached_range){0, PAGE}, true);
	assert_true(kernel_pages_end_is_open_locked(inode));
	inode->cached->nappenders = 0;
	p->nranges = 0;
	inode->nopen = 0;
}

static void share__of_what_a_mapping_has_read__tells_that_there_is_no_end(void **state)
{
	struct inode *inode = fx.inode;

	atomic_store(&fx.fs.sharing, false);
	inode->cached->pages->mapped = false;
	inode->nopen = 2;
	inode->nopen_cached = 1;
	read_alone_by(OPENED_DIRECT, 0);
	atomic_store(&fx.fs.sharing, true);
	kernel_pages_share_locked(inode, &fx.thread);
	inode->nopen_cached = 0;
	kernel_pages_reader_closed_locked(inode, &fx.thread);
	told_that_it_is_endless();
	inode->cached->pages->nranges = 0;
	inode->nopen = 0;
}

static void give_back_what_was_read(unsigned npages)
{
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, npages));
	give_back(1);
	close_and_return(1);
}

/* A program that has the kernel copy the file goes by the end that the kernel knows. */
static void read__of_what_the_kernel_knows_the_end_of__tells_nothing(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	fx.inode->attr.size = 100 * PAGE;
	kernel_pages_end_is_answered(fx.inode, 100 * PAGE);
	read_pages(0, 2);
	assert_nothing_dropped();
	give_back_what_was_read(2);
}

/* The READ finds the end. */
static void read__of_the_page_with_the_end__tells_nothing(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	fx.inode->attr.size = PAGE + 100;
	kernel_pages_end_is_answered(fx.inode, PAGE + 1);
	read_pages(0, 2);
	assert_nothing_dropped();
	give_back_what_was_read(2);
}

/* The kernel may have taken it from there, whatever it was answered before. */
static void read__after_a_shorter_one__has_the_kernel_told(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	fx.inode->attr.size = 100 * PAGE;
	kernel_pages_answers_end(fx.inode, PAGE);
	read_pages(0, 2);
	told_that_it_is_endless();
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	return_and_close(1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_mapping, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(recall__of_what_is_read_by_the_cache__leaves_the_end_as_it_is),
		CASE(read__of_the_end_by_the_cache__is_dropped_with_its_page),
		CASE(read__of_the_end__drops_nothing_when_the_lease_has_gone_since),
		CASE(recall__to_shared__leaves_no_page_with_the_end),
		CASE(cut__of_what_was_closed_when_others_came__waits_for_its_pages),
		CASE(share__of_what_is_read_by_the_cache__counts_no_mapping),
		CASE(read__of_what_the_kernel_knows_the_end_of__tells_nothing),
		CASE(read__of_the_page_with_the_end__tells_nothing),
		CASE(read__after_a_shorter_one__has_the_kernel_told),
		CASE(share__of_what_a_mapping_has_read__tells_that_there_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
