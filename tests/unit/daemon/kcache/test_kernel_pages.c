/* Pages that the kernel has cached of a file, and how they go before the lease does. */
#include "tests/unit/daemon/kcache/pages_client.h"

static void recall__of_what_nobody_has_mapped__drops_nothing(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	begin(0, OP_READ, 0);
	end(0);
	recall(1, LEASE_NONE);
	assert_nothing_dropped();
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(1);
}

/* The kernel may know an end that others have moved since, without being told another one. */
static void grown_since_it_was_told(void)
{
	kernel_pages_end_is_answered(fx.inode, PAGE + 1);
	fx.inode->attr.size = 100 * PAGE;
}

static void read__after_others_made_it_longer__has_the_kernel_told_of_no_end(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	grown_since_it_was_told();
	read_pages(0, 2);
	told_that_it_is_endless();
	read_pages(2, 2);
	assert_nothing_dropped();
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 4));
	return_and_close(1);
}

/* Behind a range that is being dropped just then. */
static void read__of_the_first_page_again__has_the_kernel_told_of_no_end(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 2);
	pthread_mutex_lock(&fx.inode->lock);
	kernel_pages_closed_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	grown_since_it_was_told();
	begin_cached(1, OP_READ, 0, 1);
	assert_int_equal(fx.went[1], 1);
	assert_nothing_dropped();
	dropped(job);
	told_that_it_is_endless();
	end(1);
	dropped(take_dropped(0, 1));
	/* A lease asked for before brings no end. */
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(1);
}

/* It may be sent after that. If an earlier notification was not the last one, the kernel would take
 * its end. */
static void read__under_what_is_recalled__has_the_kernel_told_again(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 2);
	fx.inode->cached->pages->endless = true;
	begin_cached(1, OP_READ, 0, 1);
	end(1);
	dropped(job);
	dropped(take_dropped(0, 1));
	return_and_close(1);
}

static void recall__of_what_is_cached__drops_it_first(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	return_and_close(1);
}

/* None of these pages stays, and a later reader asks for a lease anew. */
static void expect_all_to_go(void)
{
	dropped(take_dropped(0, 2));
	give_back(1);
	begin(1, OP_READ, O_RDONLY);
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	end(1);
	list_none_dirty();
	close_and_leave(2);
}

static void recall__of_what_the_server_has_refused__drops_what_is_cached(void **state)
{
	open_with(LEASE_EXCLUSIVE, 1);
	read_pages(0, 2);
	make_dirty();
	commit_start(fx.inode, &fx.thread);
	answer(take_commit(), -EIO);
	assert_nothing_dropped();
	recall(1, LEASE_SHARED);
	expect_all_to_go();
}

static void recall__whose_commit_is_refused__drops_what_is_cached(void **state)
{
	open_with(LEASE_EXCLUSIVE, 1);
	read_pages(0, 2);
	make_dirty();
	recall(1, LEASE_SHARED);
	assert_nothing_dropped();
	answer(take_commit(), -EIO);
	expect_all_to_go();
}

static void recall__while_somebody_appends__leaves_the_end_as_it_is(void **state)
{
	open_with(LEASE_SHARED, 1);
	fx.inode->cached->nappenders++;
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	fx.inode->cached->nappenders--;
	close_and_return(1);
}

static uint64_t size_of_entry(void)
{
	return kernel_pages_size_of_entry(fx.inode, PAGE);
}

static void entry__of_what_is_mapped__has_no_end_without_a_lease(void **state)
{
	open_with(LEASE_SHARED, 1);
	assert_int_equal(size_of_entry(), PAGE);
	read_pages(0, 2);
	assert_int_equal(size_of_entry(), PAGE);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	assert_true(size_of_entry() > INT32_MAX);
	give_back(1);
	assert_true(size_of_entry() > INT32_MAX);
	close_and_return(1);
	assert_int_equal(size_of_entry(), PAGE);
}

static bool is_sent_back(uint32_t pid)
{
	bool back;

	pthread_mutex_lock(&fx.inode->lock);
	back = kernel_pages_sends_back_locked(fx.inode, pid);
	pthread_mutex_unlock(&fx.inode->lock);
	if (back)
		kernel_pages_sent_back(fx.inode, pid);
	return back;
}

static bool append_is_sent_back(void)
{
	return is_sent_back(PID);
}

/* The file is mapped, and none of it is leased any more. */
static void have_returned(uint64_t number)
{
	open_with(LEASE_SHARED, number);
	read_pages(0, 2);
	recall(number, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(number);
}

/* Under a lease that another reader needs, too. */
static void read_again(uint64_t number)
{
	begin_cached(0, OP_READ, 0, 1);
	grant(take_strict_lease(LEASE_SHARED, 0), LEASE_SHARED, number);
	end(0);
}

static void append__of_what_was_told_no_end__is_sent_back_once(void **state)
{
	open_with(LEASE_SHARED, 1);
	assert_false(append_is_sent_back());
	read_pages(0, 2);
	assert_false(append_is_sent_back());
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(1);
	assert_true(append_is_sent_back());
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(append_is_sent_back());
	close_and_return(1);
}

/* The kernel has not learned another end by that. */
static void append__of_what_was_told_no_end__is_sent_back_under_the_next_lease(void **state)
{
	have_returned(1);
	read_again(2);
	assert_true(append_is_sent_back());
	assert_false(append_is_sent_back());
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	return_and_close(2);
}

static void append__that_was_sent_back__finds_the_true_end_until_it_comes(void **state)
{
	have_returned(1);
	read_again(2);
	assert_true(append_is_sent_back());
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(2, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(append_is_sent_back());
	/* It might have been counted, and closed again. */
	read_again(3);
	recall(3, LEASE_NONE);
	dropped(take_dropped(0, 1));
	return_and_close(3);
}

/* The second one has looked the file up before the first was sent back. */
static void append__by_two_at_once__is_sent_back_for_both(void **state)
{
	have_returned(1);
	assert_true(is_sent_back(PID));
	assert_true(is_sent_back(PID + 1));
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(is_sent_back(PID + 1));
	assert_false(is_sent_back(PID));
	close_and_return(1);
}

/* The appender's answer waits for ranges that are being dropped, of whatever file: that dropping
 * could make the kernel forget what it learned before. */
static void append__that_is_being_sent_back__has_not_begun_to_look(void **state)
{
	have_returned(1);
	pthread_mutex_lock(&fx.inode->lock);
	assert_true(kernel_pages_sends_back_locked(fx.inode, PID));
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(size_of_entry(), PAGE);
	assert_true(is_sent_back(PID + 1));
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(is_sent_back(PID + 1));
	/* Nor is the kernel told anything else until the appender has come. */
	read_again(2);
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(2, LEASE_NONE, RETURN_PIN), 0);
	kernel_pages_sent_back(fx.inode, PID);
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(append_is_sent_back());
	close_and_return(2);
}

/* The kernel does not look up the target of /proc/self/fd. */
static void append__of_what_is_not_looked_up__is_sent_back_once(void **state)
{
	have_returned(1);
	assert_true(append_is_sent_back());
	assert_false(append_is_sent_back());
	assert_true(append_is_sent_back());
	close_and_return(1);
}

/* The last appender has closed it. */
static void close_appender(void)
{
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->cached->nappenders--;
	kernel_pages_append_ended_locked(fx.inode, &fx.thread);
	pthread_mutex_unlock(&fx.inode->lock);
}

static void append__that_has_ended__leaves_a_mapping_without_an_end(void **state)
{
	open_with(LEASE_SHARED, 1);
	fx.inode->cached->nappenders += 2;
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(size_of_entry(), PAGE);
	close_appender();
	assert_true(list_empty(&fx.fs.giver.jobs));
	close_appender();
	told_that_it_is_endless();
	assert_true(size_of_entry() > INT32_MAX);
	close_and_return(1);
}

/* It has learned the true end, and no lease came with it. */
static void append__that_was_sent_back_and_has_ended__leaves_a_mapping_without_an_end(void **state)
{
	have_returned(1);
	assert_true(append_is_sent_back());
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(append_is_sent_back());
	fx.inode->cached->nappenders++;
	close_appender();
	told_that_it_is_endless();
	assert_true(size_of_entry() > INT32_MAX);
	close_and_return(1);
}

/* The first one opens and closes the file before the second has come, which has looked it up,
 * too. */
static void append__by_two_at_once__leaves_each_the_end_he_found(void **state)
{
	have_returned(1);
	assert_true(is_sent_back(PID));
	assert_true(is_sent_back(PID + 1));
	assert_int_equal(size_of_entry(), PAGE);
	assert_false(is_sent_back(PID));
	fx.inode->cached->nappenders++;
	close_appender();
	assert_true(list_empty(&fx.fs.giver.jobs));
	assert_false(is_sent_back(PID + 1));
	fx.inode->cached->nappenders++;
	close_appender();
	told_that_it_is_endless();
	close_and_return(1);
}

static void append__that_comes_late__is_not_sent_back_again(void **state)
{
	have_returned(1);
	assert_true(append_is_sent_back());
	fx.inode->cached->pages->lookers[0].until_ms = now_ms();
	read_again(2);
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	give_back(2);
	assert_false(append_is_sent_back());
	assert_true(append_is_sent_back());
	close_and_return(2);
}

static void append__that_was_sent_back__is_not_waited_for_long(void **state)
{
	have_returned(1);
	assert_true(append_is_sent_back());
	fx.inode->cached->pages->lookers[0].until_ms = now_ms();
	assert_true(size_of_entry() > INT32_MAX);
	read_again(2);
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	return_and_close(2);
}

/* The kernel has appended at the end that it was told, in vain. */
static void cut__to_the_end_that_was_told__is_none(void **state)
{
	const uint64_t end = UINT64_C(1) << 47;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	assert_false(kernel_pages_is_raised_end(fx.inode, end));
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(1);
	assert_true(kernel_pages_is_raised_end(fx.inode, end));
	assert_true(kernel_pages_is_raised_end(fx.inode, end + PAGE));
	assert_false(kernel_pages_is_raised_end(fx.inode, end - 1));
	close_and_return(1);
}

/* The kernel uses the size in the answer, so nobody may move the end unseen after it. */
static void getattr__of_what_is_mapped__takes_a_lease(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(1);
	begin(0, OP_GETATTR, 0);
	assert_int_equal(fx.went[0], 0);
	grant(take_lease(LEASE_SHARED, 0), LEASE_LAYOUT, 2);
	assert_int_equal(size_of_entry(), PAGE);
	end(0);
	recall(2, LEASE_NONE);
	return_and_close(2);
}

static void getattr__under_a_lease_that_stays__has_the_next_recall_tell_again(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	fx.inode->cached->nappenders++;
	recall(1, LEASE_LAYOUT);
	dropped(take_dropped(0, 2));
	answer(take_return(1, LEASE_LAYOUT, 0), 0);
	close_appender();
	told_that_it_is_endless();
	begin(0, OP_GETATTR, 0);
	assert_int_equal(fx.went[0], 1);
	end(0);
	assert_int_equal(size_of_entry(), PAGE);
	recall(2, LEASE_NONE);
	give_back(2);
	close_and_return(1);
}

/* The server may make it wait for other clients, and these may wait for the lease that it would
 * use. */
static void getattr__of_what_is_leased__uses_nothing_of_it(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	begin(0, OP_GETATTR, 0);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(1);
	end(0);
	close_and_return(1);
}

static void getattr__of_what_nobody_has_mapped__takes_none(void **state)
{
	fx.inode->cached->pages->mapped = false;
	open_with(LEASE_SHARED, 1);
	recall(1, LEASE_NONE);
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	begin(0, OP_GETATTR, 0);
	end(0);
	close_and_return(1);
}

static void recall__a_second_time__drops_what_was_read_since(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	give_back(1);
	begin_cached(0, OP_READ, 5, 1);
	grant(take_strict_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	end(0);
	recall(2, LEASE_NONE);
	dropped(take_dropped(5, 1));
	return_and_close(2);
}

static void read__of_what_is_being_dropped__is_answered_and_dropped_again(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 4);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 4);
	read_pages(3, 2);
	dropped(job);
	job = take_dropped(3, 2);
	read_pages(4, 1);
	dropped(job);
	dropped(take_dropped(4, 1));
	return_and_close(1);
}

static void read__of_other_pages__waits_for_the_next_lease(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 2);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 2);
	begin_cached(0, OP_READ, 2, 1);
	assert_int_equal(fx.went[0], 0);
	dropped(job);
	give_back(1);
	grant(take_strict_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	end(0);
	close_file();
	recall(2, LEASE_NONE);
	dropped(take_dropped(2, 1));
	answer(take_return(2, LEASE_NONE, RETURN_UNPIN), 0);
}

/* The kernel has dropped its pages by itself before, or asked for them in vain. */
static void read__that_waits__has_nothing_to_be_dropped(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 1);
	read_pages(100, 10);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 1);
	begin_cached(1, OP_READ, 107, 5);
	begin_cached(2, OP_READ, 98, 4);
	begin_cached(3, OP_READ, 104, 1);
	dropped(job);
	dropped(take_dropped(102, 2));
	dropped(take_dropped(105, 2));
	give_back(1);
	grant(take_strict_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	end(1);
	end(2);
	end(3);
	recall(2, LEASE_NONE);
	dropped_all();
	answer(take_return(2, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(2);
}

static void read__scattered__is_all_dropped(void **state)
{
	enum { READS = 5 * CACHED_RANGES };
	bool gone[READS] = {0};

	open_with(LEASE_SHARED, 1);
	for (unsigned i = 0; i < READS; i++)
		read_pages((i * 37 % READS) * 1000, 1);
	assert_true(fx.inode->cached->pages->nranges <= CACHED_RANGES);
	recall(1, LEASE_NONE);
	while (!list_empty(&fx.fs.giver.jobs)) {
		struct notifier_job *job =
			list_entry(list_pop(&fx.fs.giver.jobs), struct notifier_job, link);

		assert_nothing_sent();
		for (int64_t i = 0; i < READS; i++)
			gone[i] |= job->off <= i * 1000 * PAGE &&
				   i * 1000 * PAGE < job->off + job->len;
		dropped(job);
	}
	for (unsigned i = 0; i < READS; i++)
		assert_true(gone[i]);
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(1);
}

/* The kernel may go on taking the file for endless, and takes stores behind the end for part of
 * it. */
static void read__of_less_than_was_told__is_dropped_behind_the_end(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	read_pages(0, 8);
	answer_end(2 * PAGE - 1);
	assert_nothing_dropped();
	fx.inode->cached->pages->was_raised = true;
	assert_true(kernel_pages_answers_end(fx.inode, 2 * PAGE - 1));
	assert_nothing_dropped();
	kernel_pages_end_answered(fx.inode, &fx.thread);
	job = take_dropped(2, NO_END / PAGE - 2);
	/* Its bytes would make the stores part of the file. */
	begin(0, OP_WRITE, 0);
	assert_int_equal(fx.went[0], 0);
	/* The pages are written back, cut off, and read again. */
	begin_cached(1, OP_WRITE, 2, 1);
	assert_int_equal(fx.went[1], 1);
	end(1);
	begin_cached(1, OP_READ, 4, 4);
	assert_int_equal(fx.went[1], 1);
	answer_end(4 * PAGE);
	end(1);
	assert_nothing_dropped();
	dropped(job);
	assert_int_equal(fx.went[0], 0);
	dropped(take_dropped(4, NO_END / PAGE - 4));
	assert_int_equal(fx.went[0], 1);
	end(0);
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	return_and_close(1);
}

/* The READ's pages are locked until there is another lease. */
/* Nothing is dropped, or read meanwhile, after the kernel was told that there is no end. */
static uint64_t written_to(uint64_t end)
{
	uint64_t to;

	pthread_mutex_lock(&fx.inode->lock);
	to = kernel_pages_written_to_locked(fx.inode, end);
	pthread_mutex_unlock(&fx.inode->lock);
	return to;
}

/* The kernel takes the file for shorter, and has zeros behind that. */
static void write_back__that_stops_before_the_end__has_its_page_dropped(void **state)
{
	uint64_t size = fx.inode->attr.size;

	open_to_store(1);
	read_pages(0, 8);
	fx.inode->attr.size = 3 * PAGE;
	assert_false(kernel_pages_writes_end(fx.inode, 2 * PAGE));
	assert_false(kernel_pages_writes_end(fx.inode, 3 * PAGE));
	assert_int_equal(written_to(2 * PAGE), 2 * PAGE);
	assert_true(kernel_pages_writes_end(fx.inode, PAGE + 100));
	assert_nothing_dropped();
	assert_int_equal(written_to(PAGE + 200), PAGE + 100);
	assert_int_equal(written_to(PAGE + 50), PAGE + 50);
	assert_int_equal(written_to(3 * PAGE), 3 * PAGE);
	kernel_pages_end_answered(fx.inode, &fx.thread);
	dropped(take_dropped(1, 1));
	assert_nothing_dropped();
	assert_int_equal(written_to(PAGE + 200), PAGE + 200);
	/* A READ brings the page anew, whatever has dropped it. */
	assert_true(kernel_pages_writes_end(fx.inode, PAGE + 100));
	read_pages(1, 1);
	assert_int_equal(written_to(PAGE + 200), PAGE + 200);
	kernel_pages_end_answered(fx.inode, &fx.thread);
	dropped(take_dropped(1, 1));
	fx.inode->attr.size = size;
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 1));
	dropped(take_dropped(2, 6));
	return_and_close(1);
}

static bool drops_written(uint64_t page)
{
	bool drops;

	pthread_mutex_lock(&fx.inode->lock);
	drops = kernel_pages_drop_written_locked(fx.inode, &fx.thread, page * PAGE + 5, 2 * PAGE);
	pthread_mutex_unlock(&fx.inode->lock);
	return drops;
}

/* Where no range is free for what is left on both sides, others are joined, but never over it. */
static void write__into_one_of_many_ranges__has_its_pages_dropped_once(void **state)
{
	open_to_store(1);
	for (unsigned i = 0; i < CACHED_RANGES; i++)
		read_pages(100 * i, 50);
	for (unsigned i = 0; i < CACHED_RANGES; i++) {
		uint64_t page = 100 * i + 20;

		assert_true(drops_written(page));
		dropped(take_dropped(page, 3));
		assert_false(drops_written(page));
	}
	/* The kernel may have all others. */
	for (unsigned i = 0; i < CACHED_RANGES; i++) {
		assert_true(drops_written(100 * i));
		dropped(take_dropped(100 * i, 3));
		assert_true(drops_written(100 * i + 47));
		dropped(take_dropped(100 * i + 47, 3));
	}
	recall(1, LEASE_NONE);
	dropped_all();
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	fx.inode->cached->nstorers = 0;
	close_and_return(1);
}

/* A READ may bring them again meanwhile. */
static void write__of_pages_that_may_be_stored_into__has_them_dropped_before(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	assert_true(kernel_pages_may_be_stored_into_locked(fx.inode));
	read_pages(0, 8);
	assert_false(drops_written(8));
	assert_true(drops_written(2));
	job = take_dropped(2, 3);
	assert_true(drops_written(4));
	assert_true(kernel_pages_drops_behind_locked(fx.inode));
	begin_cached(1, OP_READ, 3, 1);
	assert_int_equal(fx.went[1], 1);
	end(1);
	dropped(job);
	dropped(take_dropped(4, 3));
	assert_false(drops_written(4));
	assert_true(drops_written(2));
	dropped(take_dropped(2, 3));
	assert_false(drops_written(2));
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	dropped(take_dropped(7, 1));
	return_and_close(1);
}

static void recall__of_what_is_behind_the_end__drops_it_with_all_else(void **state)
{
	open_to_store(1);
	read_pages(0, 1);
	fx.inode->cached->pages->was_raised = true;
	recall(1, LEASE_NONE);
	begin_cached(0, OP_READ, 8, 2);
	assert_int_equal(fx.went[0], 0);
	answer_end(PAGE);
	dropped(take_dropped(0, 1));
	told_that_it_is_endless();
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 2);
	assert_int_equal(fx.went[0], 1);
	end(0);
	recall(2, LEASE_NONE);
	dropped(take_dropped(8, 2));
	return_and_close(2);
}

static void write_back__while_it_is_dropped__is_done_and_committed(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	read_pages(0, 4);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 4);
	begin_cached(0, OP_WRITE, 1, 1);
	begin(1, OP_WRITE, 0);
	assert_int_equal(fx.went[1], 0);
	make_dirty();
	end(0);
	dropped(job);
	told_that_it_is_endless();
	answer(take_commit(), 0);
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	list_none_dirty();
	grant(take_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 2);
	end(1);
	close_to_leave(2);
}

/* The kernel sends no page that is written back before the cut is answered. */
static void cut__while_stores_are_dropped__is_done(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	read_pages(0, 4);
	recall(1, LEASE_NONE);
	job = take_dropped(0, 4);
	cut(0);
	end(0);
	dropped(job);
	return_and_close(1);
}

static void cut__of_what_is_cached_shared__waits(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 4);
	cut(0);
	assert_int_equal(fx.went[0], 0);
	grant(take_strict_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_SHARED, 1);
	assert_int_equal(fx.went[0], 0);
	dropped(take_dropped(0, 4));
	give_back(1);
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 2);
	end(0);
	close_and_leave(2);
}

static void read__beside_who_may_store__needs_the_file_alone(void **state)
{
	open_with(LEASE_SHARED, 1);
	begin(1, OP_OPEN, O_RDWR);
	assert_int_equal(fx.went[1], 1);
	begin_cached(0, OP_READ, 0, 1);
	assert_int_equal(fx.went[0], 0);
	assert_nothing_dropped();
	grant(take_strict_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 2);
	end(0);
	end(1);
	assert_int_equal(fx.inode->cached->nstorers, 0);
	close_file();
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(2, LEASE_NONE, RETURN_UNPIN), 0);
}

/* No page may stay that was read while others could change it. */
static void open_to_store__of_what_is_cached_shared__drops_it_first(void **state)
{
	struct notifier_job *job;

	open_with(LEASE_SHARED, 1);
	read_pages(0, 1);
	begin(1, OP_OPEN, O_RDWR);
	assert_int_equal(fx.went[1], 0);
	grant(take_strict_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_SHARED, 1);
	assert_int_equal(fx.went[1], 0);
	job = take_dropped(0, 1);
	read_pages(0, 1);
	dropped(job);
	assert_int_equal(fx.went[1], 0);
	dropped(take_dropped(0, 1));
	assert_int_equal(fx.went[1], 1);
	end(1);
	close_and_leave(1);
}

static void open_to_store__where_nobody_else_has_it__drops_nothing(void **state)
{
	open_with(LEASE_SHARED, 1);
	read_pages(0, 1);
	begin(1, OP_OPEN, O_RDWR);
	grant(take_strict_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 2);
	end(1);
	assert_nothing_dropped();
	close_file();
	recall(2, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(2, LEASE_NONE, RETURN_UNPIN), 0);
}

static void open_to_store__where_the_kernel_maps_nothing_shared__drops_nothing(void **state)
{
	fx.fs.features.direct_io_allow_mmap = false;
	open_with(LEASE_SHARED, 1);
	read_pages(0, 1);
	begin(1, OP_OPEN, O_RDWR);
	end(1);
	read_pages(1, 1);
	assert_nothing_dropped();
	close_file();
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 2));
	answer(take_return(1, LEASE_NONE, RETURN_UNPIN), 0);
}

static void recall__of_a_writer__drops_what_may_be_stored_into(void **state)
{
	open_to_store(1);
	read_pages(0, 1);
	recall(1, LEASE_SHARED);
	dropped(take_dropped(0, 1));
	answer(take_return(1, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	close_to_leave(1);
}

static void recall__of_a_writer__leaves_what_nobody_can_store_into(void **state)
{
	open_with(LEASE_EXCLUSIVE, 1);
	read_pages(0, 1);
	recall(1, LEASE_SHARED);
	assert_nothing_dropped();
	answer(take_return(1, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	close_file();
	recall(1, LEASE_NONE);
	dropped(take_dropped(0, 1));
	answer(take_return(1, LEASE_NONE, RETURN_UNPIN), 0);
}

/* Bytes that other clients overwrite beside us are not cached, but may be mapped. */
static void cut__while_the_kernel_is_told_of_no_end__waits(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	read_pages(0, 4);
	recall(1, LEASE_LAYOUT);
	dropped(take_dropped(0, 4));
	told_that_it_is_endless();
	answer(take_return(1, LEASE_LAYOUT, 0), 0);
	recall(2, LEASE_NONE);
	job = list_entry(list_pop(&fx.fs.giver.jobs), struct notifier_job, link);
	assert_true(job->size > INT32_MAX);
	cut(0);
	run_calls();
	assert_int_equal(fx.went[0], 0);
	dropped(job);
	answer(take_return(2, LEASE_NONE, RETURN_PIN), 0);
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 3);
	assert_int_equal(fx.went[0], 1);
	end(0);
	close_to_leave(3);
}

static void lost__is_dropped_and_nothing_of_it_written(void **state)
{
	struct notifier_job *job;

	open_to_store(1);
	read_pages(0, 2);
	pthread_mutex_lock(&fx.inode->lock);
	inode_unlease_locked(fx.inode);
	lease_forget_locked(fx.inode);
	kernel_pages_drop_locked(fx.inode, &fx.thread, LEASE_NONE);
	pthread_mutex_unlock(&fx.inode->lock);
	job = take_dropped(0, 2);
	begin_cached(0, OP_WRITE, 0, 1);
	assert_int_equal(fx.went[0], -EIO);
	begin_cached(0, OP_READ, 0, 1);
	assert_int_equal(fx.went[0], -EIO);
	cut(0);
	run_calls();
	assert_int_equal(fx.went[0], -EIO);
	begin_cached(1, OP_READ, 2, 1);
	assert_int_equal(fx.went[1], 0);
	assert_nothing_sent();
	dropped(job);
	told_that_it_is_endless();
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 1);
	end(1);
	recall(1, LEASE_NONE);
	dropped(take_dropped(2, 1));
	return_and_close(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_mapping, teardown)
		CASE(recall__of_what_nobody_has_mapped__drops_nothing),
		CASE(read__after_others_made_it_longer__has_the_kernel_told_of_no_end),
		CASE(read__of_the_first_page_again__has_the_kernel_told_of_no_end),
		CASE(read__under_what_is_recalled__has_the_kernel_told_again),
		CASE(recall__of_what_is_cached__drops_it_first),
		CASE(recall__of_what_the_server_has_refused__drops_what_is_cached),
		CASE(recall__whose_commit_is_refused__drops_what_is_cached),
		CASE(recall__while_somebody_appends__leaves_the_end_as_it_is),
		CASE(entry__of_what_is_mapped__has_no_end_without_a_lease),
		CASE(append__of_what_was_told_no_end__is_sent_back_once),
		CASE(append__of_what_was_told_no_end__is_sent_back_under_the_next_lease),
		CASE(append__that_was_sent_back__finds_the_true_end_until_it_comes),
		CASE(append__by_two_at_once__is_sent_back_for_both),
		CASE(append__by_two_at_once__leaves_each_the_end_he_found),
		CASE(append__that_is_being_sent_back__has_not_begun_to_look),
		CASE(append__of_what_is_not_looked_up__is_sent_back_once),
		CASE(append__that_has_ended__leaves_a_mapping_without_an_end),
		CASE(append__that_was_sent_back_and_has_ended__leaves_a_mapping_without_an_end),
		CASE(append__that_was_sent_back__is_not_waited_for_long),
		CASE(append__that_comes_late__is_not_sent_back_again),
		CASE(cut__to_the_end_that_was_told__is_none),
		CASE(getattr__of_what_is_mapped__takes_a_lease),
		CASE(getattr__under_a_lease_that_stays__has_the_next_recall_tell_again),
		CASE(getattr__of_what_is_leased__uses_nothing_of_it),
		CASE(getattr__of_what_nobody_has_mapped__takes_none),
		CASE(recall__a_second_time__drops_what_was_read_since),
		CASE(read__of_what_is_being_dropped__is_answered_and_dropped_again),
		CASE(read__of_other_pages__waits_for_the_next_lease),
		CASE(read__that_waits__has_nothing_to_be_dropped),
		CASE(read__scattered__is_all_dropped),
		CASE(read__of_less_than_was_told__is_dropped_behind_the_end),
		CASE(write_back__that_stops_before_the_end__has_its_page_dropped),
		CASE(write__into_one_of_many_ranges__has_its_pages_dropped_once),
		CASE(write__of_pages_that_may_be_stored_into__has_them_dropped_before),
		CASE(recall__of_what_is_behind_the_end__drops_it_with_all_else),
		CASE(write_back__while_it_is_dropped__is_done_and_committed),
		CASE(cut__while_stores_are_dropped__is_done),
		CASE(cut__of_what_is_cached_shared__waits),
		CASE(cut__while_the_kernel_is_told_of_no_end__waits),
		CASE(read__beside_who_may_store__needs_the_file_alone),
		CASE(open_to_store__of_what_is_cached_shared__drops_it_first),
		CASE(open_to_store__where_nobody_else_has_it__drops_nothing),
		CASE(open_to_store__where_the_kernel_maps_nothing_shared__drops_nothing),
		CASE(recall__of_a_writer__drops_what_may_be_stored_into),
		CASE(recall__of_a_writer__leaves_what_nobody_can_store_into),
		CASE(lost__is_dropped_and_nothing_of_it_written),
#undef CASE
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
