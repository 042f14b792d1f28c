/* The lease of a written file after its writers have closed it. */
#include "tests/unit/daemon/lease_client.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"

static struct handle handle;

/* As close(2) does before the last RELEASE. */
static void flush(void)
{
	lease_note_closing(fx.inode, &handle);
	commit_start(fx.inode, &fx.thread);
}

static struct rpc_call *take_lowering(uint64_t number)
{
	struct rpc_call *call = take_commit();

	assert_int_equal(call->req.commit.lease, number);
	assert_int_equal(call->req.commit.keep, LEASE_SHARED);
	return call;
}

static struct rpc_call *take_plain_commit(void)
{
	struct rpc_call *call = take_commit();

	assert_int_equal(call->req.commit.lease, 0);
	assert_int_equal(call->req.commit.keep, LEASE_NONE);
	return call;
}

/* The file is open for writing, has something to commit, and was never flushed. */
static void written(uint64_t number)
{
	handle = (struct handle){.writes = true};
	open_with(LEASE_EXCLUSIVE, number);
	make_dirty();
}

static enum lease_type type(void)
{
	return fx.inode->lease_type;
}

/* ---- with COMMIT ----------------------------------------------------------------------------- */

static void flush__of_the_last_writer__lowers_with_its_commit(void **state)
{
	written(5);
	flush();
	answer(take_lowering(5), 0);
	assert_int_equal(type(), LEASE_SHARED);
	assert_int_equal(fx.inode->attr.size, 5000);
	close_file();
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	begin(1, OP_READ, O_RDONLY);
	end(1);
	list_none_dirty();
	leave(5);
}

static void flush__holds_writers_up_until_it_is_committed(void **state)
{
	struct rpc_call *call;

	written(5);
	flush();
	call = take_lowering(5);
	begin(1, OP_READ, O_RDWR);
	end(1);
	begin(2, OP_WRITE, O_RDWR);
	assert_int_equal(fx.went[2], 0);
	assert_nothing_sent();
	answer(call, 0);
	assert_int_equal(fx.went[2], 0);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 6);
	end(2);
	assert_nothing_sent();
	list_none_dirty();
	close_and_leave(6);
}

static void flush__that_is_refused__leaves_it_as_it_is(void **state)
{
	struct rpc_call *call;

	written(5);
	flush();
	call = take_lowering(5);
	begin(2, OP_WRITE, O_RDWR);
	answer(call, -EIO);
	assert_int_equal(fx.went[2], 1);
	assert_int_equal(type(), LEASE_EXCLUSIVE);
	end(2);
	close_file();
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	list_none_dirty();
	assert_true(is_left());
}

static void flush__of_one_of_two__lowers_nothing(void **state)
{
	written(5);
	fx.inode->nwriters = 2;
	flush();
	answer(take_plain_commit(), 0);
	assert_int_equal(type(), LEASE_EXCLUSIVE);
	list_none_dirty();
	close_and_leave(5);
}

/* Many handles write, and close one after the other. */
static void flush__the_second_time__lowers_nothing(void **state)
{
	written(5);
	flush();
	answer(take_lowering(5), 0);
	begin(1, OP_WRITE, O_RDWR);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 6);
	make_dirty();
	end(1);
	flush();
	answer(take_plain_commit(), 0);
	list_none_dirty();
	close_file();
	lease_keep_flush(&fx.thread);
	answer(take_return(6, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	leave(6);
}

/* A shell does so before any program writes. */
static void flush__of_nothing__is_none(void **state)
{
	handle = (struct handle){.writes = true};
	open_with(LEASE_EXCLUSIVE, 5);
	flush();
	assert_nothing_sent();
	make_dirty();
	flush();
	answer(take_lowering(5), 0);
	list_none_dirty();
	close_and_leave(5);
}

static void flush__of_what_is_written_meanwhile__lowers_nothing(void **state)
{
	written(5);
	begin(1, OP_WRITE, O_RDWR);
	flush();
	answer(take_plain_commit(), 0);
	end(1);
	make_dirty();
	lease_note_closing(fx.inode, &(struct handle){.writes = true});
	begin(1, OP_WRITE, O_RDWR);
	end(1);
	commit_start(fx.inode, &fx.thread);
	answer(take_plain_commit(), 0);
	list_none_dirty();
	close_and_leave(5);
}

/* A store into a mapping is not announced. */
static void flush__of_what_may_be_mapped__lowers_nothing(void **state)
{
	written(5);
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->cached->nstorers++;
	assert_true(kernel_pages_make_locked(fx.inode));
	fx.inode->cached->pages->mapped = true;
	kernel_pages_note_locked(fx.inode, &fx.thread, (struct cached_range){0, 4096}, true);
	pthread_mutex_unlock(&fx.inode->lock);
	flush();
	answer(take_plain_commit(), 0);
	list_none_dirty();
	fx.inode->cached->nstorers = fx.inode->cached->pages->nranges = 0;
	close_and_leave(5);
}

/* The access time is set by hand while the COMMIT is in flight: that is one more change, but not of
 * the data, which nobody may change any more. */
static void flush__with_a_change_of_none_of_the_data_behind_it__is_the_last(void **state)
{
	struct rpc_call *call;

	written(5);
	fx.inode->access.dirty = true;
	fx.inode->commit.times_dirty = true;
	flush();
	call = take_lowering(5);
	access_time_hold(fx.inode);
	answer(call, 0);
	commit_start(fx.inode, &fx.thread);
	assert_nothing_sent();
	access_time_release(fx.inode, NULL);
	list_none_dirty();
	close_and_leave(5);
}

/* ---- beside recalls -------------------------------------------------------------------------- */

static void recall__of_what_is_lowered_just_now__is_answered_by_that(void **state)
{
	struct rpc_call *call;

	written(5);
	flush();
	call = take_lowering(5);
	recall(5, LEASE_SHARED);
	answer(call, 0);
	assert_nothing_sent();
	recall(5, LEASE_SHARED);
	assert_nothing_sent();
	list_none_dirty();
	close_and_leave(5);
}

static void recall__of_all__follows_the_lowering(void **state)
{
	struct rpc_call *call;

	written(5);
	flush();
	call = take_lowering(5);
	recall(5, LEASE_NONE);
	assert_nothing_sent();
	answer(call, 0);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	list_none_dirty();
	close_and_return(5);
}

static void recall__of_all_but_reading__lowers_with_the_commit(void **state)
{
	written(5);
	recall(5, LEASE_SHARED);
	answer(take_lowering(5), 0);
	assert_nothing_sent();
	assert_int_equal(type(), LEASE_SHARED);
	list_none_dirty();
	close_and_leave(5);
}

/* ---- without --------------------------------------------------------------------------------- */

static void close__with_nothing_to_commit__lowers_with_others(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	close_file();
	assert_nothing_sent();
	lease_keep_flush(&fx.thread);
	answer(take_return(5, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	assert_int_equal(type(), LEASE_SHARED);
	assert_true(fx.inode->sized);
	leave(5);
}

static void close__and_opened_again__keeps_it(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	close_file();
	begin(1, OP_OPEN, O_RDWR);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	fx.inode->nopen++;
	fx.inode->nwriters++;
	end(1);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	assert_int_equal(type(), LEASE_EXCLUSIVE);
	close_and_leave(5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(flush__of_the_last_writer__lowers_with_its_commit),
		CASE(flush__holds_writers_up_until_it_is_committed),
		CASE(flush__that_is_refused__leaves_it_as_it_is),
		CASE(flush__of_one_of_two__lowers_nothing),
		CASE(flush__the_second_time__lowers_nothing),
		CASE(flush__of_nothing__is_none),
		CASE(flush__of_what_is_written_meanwhile__lowers_nothing),
		CASE(flush__of_what_may_be_mapped__lowers_nothing),
		CASE(flush__with_a_change_of_none_of_the_data_behind_it__is_the_last),
		CASE(recall__of_what_is_lowered_just_now__is_answered_by_that),
		CASE(recall__of_all__follows_the_lowering),
		CASE(recall__of_all_but_reading__lowers_with_the_commit),
		CASE(close__with_nothing_to_commit__lowers_with_others),
		CASE(close__and_opened_again__keeps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
