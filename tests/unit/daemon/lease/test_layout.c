/* Files that several clients read and overwrite at the same time: the leases that this client asks
 * for, and the leases that are left when others want more. */
#include "tests/unit/daemon/lease_client.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/lease.h"

static enum lease_type type(void)
{
	return fx.inode->lease_type;
}

static void write_at(int64_t mtime)
{
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->attr.mtime = fx.inode->attr.ctime = mtime;
	fx.inode->commit.times_dirty = true;
	commit_dirty_locked(fx.inode, &fx.thread);
	pthread_mutex_unlock(&fx.inode->lock);
}

static void go_on(unsigned i)
{
	assert_int_equal(fx.went[i], 1);
}

static void waits(unsigned i)
{
	assert_int_equal(fx.went[i], 0);
}

static struct rpc_call *take_lowering(uint64_t number, enum lease_type keep)
{
	struct rpc_call *call = take_commit();

	assert_int_equal(call->req.commit.flags, COMMIT_MTIME);
	assert_int_equal(call->req.commit.lease, number);
	assert_int_equal(call->req.commit.keep, keep);
	return call;
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void layout__is_enough_to_read_and_overwrite(void **state)
{
	open_with(LEASE_OVERWRITE, 5);
	begin(1, OP_READ, O_RDWR);
	begin(2, OP_WRITE, O_RDWR);
	go_on(2);
	assert_false(lease_is_alone(&fx.ops[2]));
	end(1);
	end(2);
	assert_nothing_sent();
	close_and_return(5);
}

/* Such a write may make the file grow, or be answered early. */
static void write__under_all_there_is__takes_that_for_granted(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	begin(1, OP_WRITE, O_RDWR);
	assert_true(lease_is_alone(&fx.ops[1]));
	recall(5, LEASE_OVERWRITE);
	begin(2, OP_WRITE, O_RDWR);
	waits(2);
	assert_nothing_sent();
	end(1);
	answer(take_return(5, LEASE_OVERWRITE, RETURN_PIN_AS_IT_IS), 0);
	go_on(2);
	assert_false(lease_is_alone(&fx.ops[2]));
	end(2);
	assert_nothing_sent();
	close_and_return(5);
}

static void read__into_the_cache__lets_nobody_write(void **state)
{
	struct request *req = &fx.ops[1];

	open_with(LEASE_LAYOUT, 5);
	*req = (struct request){.thread = &fx.thread, .op = OP_READ, .node = INO};
	req->args.cached = true;
	fx.went[1] = 0;
	assert_false(lease_admit(req, op_went));
	grant(take_strict_lease(LEASE_SHARED, LEASE_IF_FREE), LEASE_LAYOUT, 6);
	answer(take_return(6, LEASE_NONE, RETURN_PIN), 0);
	fx.inode->cached->pages->mapped = true; /* not the first READ */
	grant(take_strict_lease(LEASE_SHARED, 0), LEASE_SHARED, 7);
	end(1);
	close_and_leave(7);
}

static void write__that_makes_it_grow__gives_up_what_it_has_first(void **state)
{
	open_with(LEASE_OVERWRITE, 5);
	begin(1, OP_WRITE, O_RDWR);
	begin(2, OP_WRITE, O_RDWR);
	lease_leave(&fx.ops[1]);
	fx.went[1] = 0;
	assert_false(lease_take(&fx.ops[1], fx.inode, LEASE_EXCLUSIVE, op_went));
	assert_nothing_sent(); /* the other operation goes on */
	end(2);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	grant_size(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 7, 4711);
	go_on(1);
	assert_int_equal(fx.inode->attr.size, 4711);
	end(1);
	close_and_leave(7);
}

/* Grants the requested exclusive lease, number 6; other clients have set mode and times. */
static void grant_with_attributes(uint32_t mode)
{
	struct rpc_reply rep = {.op = RPC_LEASE};

	rep.entry.attr = (struct attr){.ino = INO,
		.mode = S_IFREG | mode,
		.nlink = 1,
		.size = 7,
		.mtime = 900,
		.ctime = 901};
	rep.entry.lease = (struct lease){.type = LEASE_EXCLUSIVE, .number = 6};
	take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE)->done(&fx.inode->lease->call, &rep);
	run_calls();
}

/* No other client has moved its pages, but some have written to them. */
static void write__of_who_is_alone_again__learns_the_times(void **state)
{
	open_with(LEASE_LAYOUT, 5);
	fx.inode->nwriters++;
	begin(1, OP_WRITE, O_RDWR);
	grant_with_attributes(0644);
	end(1);
	assert_int_equal(fx.inode->attr.size, 100);
	assert_int_equal(fx.inode->attr.mtime, 900);
	assert_int_equal(fx.inode->map.known_end, UINT64_MAX);
	assert_true(fx.inode->sure);
	close_and_leave(6);
}

/* The answer of a change was not accepted, since another lease came meanwhile. */
static void write__of_what_is_in_doubt__learns_it(void **state)
{
	open_with(LEASE_SHARED, 5);
	fx.inode->nwriters++;
	fx.inode->attr_valid = fx.inode->sure = false;
	begin(1, OP_WRITE, O_RDWR);
	grant_with_attributes(0600);
	end(1);
	assert_int_equal(fx.inode->attr.mtime, 900);
	assert_int_equal(fx.inode->attr.mode, S_IFREG | 0600);
	assert_int_equal(fx.inode->attr.size, 100);
	assert_true(fx.inode->sure);
	close_and_leave(6);
}

/* ---- recalls --------------------------------------------------------------------------------- */

static void recall__of_a_writer__commits_and_goes_on_writing(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	write_at(700);
	recall(5, LEASE_OVERWRITE);
	answer(take_lowering(5, LEASE_OVERWRITE), 0);
	assert_int_equal(type(), LEASE_OVERWRITE);
	assert_int_equal(fx.inode->map.known_end, UINT64_MAX);
	assert_false(fx.inode->sure);
	assert_int_equal(lease_known_locked(fx.inode), 0);
	begin(1, OP_WRITE, O_RDWR);
	end(1);
	list_none_dirty();
	assert_nothing_sent();
	close_and_return(5);
}

static void recall__for_who_looks__commits_the_times_and_goes_on_reading(void **state)
{
	open_with(LEASE_OVERWRITE, 5);
	write_at(700);
	begin(1, OP_WRITE, O_RDWR);
	recall(5, LEASE_LAYOUT);
	begin(2, OP_READ, O_RDWR);
	end(2);
	assert_nothing_sent();
	end(1);
	answer(take_lowering(5, LEASE_LAYOUT), 0);
	assert_int_equal(type(), LEASE_LAYOUT);
	begin(2, OP_READ, O_RDWR);
	end(2);
	begin(1, OP_WRITE, O_RDWR);
	waits(1);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_OVERWRITE, 6);
	end(1);
	list_none_dirty();
	close_and_return(6);
}

static void recall__of_what_is_kept_unused__returns_all(void **state)
{
	open_with(LEASE_SHARED, 5);
	close_file();
	recall(5, LEASE_LAYOUT);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	assert_true(is_left());
}

static void recall__of_a_reader__leaves_the_layout(void **state)
{
	open_with(LEASE_SHARED, 5);
	begin(1, OP_READ, O_RDONLY);
	recall(5, LEASE_LAYOUT);
	answer(take_return(5, LEASE_LAYOUT, RETURN_PIN_AS_IT_IS), 0);
	end(1);
	begin(1, OP_READ, O_RDONLY);
	end(1);
	assert_nothing_sent();
	recall(5, LEASE_LAYOUT);
	assert_nothing_sent();
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(5);
}

static void recall__of_who_may_not_write_any_more__leaves_the_layout(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	fx.inode->nwriters = 0;
	recall(5, LEASE_OVERWRITE);
	answer(take_return(5, LEASE_LAYOUT, RETURN_PIN_AS_IT_IS), 0);
	close_and_return(5);
}

/* The writer goes on only with its next LEASE, behind a client that has waited for it. */
static void recall__of_two_kinds__leaves_what_is_in_nobodys_way(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	begin(1, OP_WRITE, O_RDWR);
	recall(5, LEASE_OVERWRITE);
	recall(5, LEASE_SHARED);
	end(1);
	answer(take_return(5, LEASE_LAYOUT, RETURN_PIN_AS_IT_IS), 0);
	close_and_return(5);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void times__are_the_last_of_ours_and_others(void **state)
{
	struct attr told = {
		.ino = INO, .mode = S_IFREG | 0644, .nlink = 1, .size = 7, .mtime = 600};
	struct attr seen;

	open_with(LEASE_OVERWRITE, 5);
	write_at(700);
	inode_see(fx.inode, &told, &seen);
	assert_int_equal(seen.mtime, 700);
	assert_int_equal(seen.size, 100);
	told.mtime = 800;
	inode_see(fx.inode, &told, &seen);
	assert_int_equal(seen.mtime, 800);
	commit_start(fx.inode, &fx.thread);
	answer(take_lowering(0, LEASE_NONE), 0);
	told.mtime = 650; /* set by hand, by another client */
	inode_see(fx.inode, &told, &seen);
	assert_int_equal(seen.mtime, 650);
	list_none_dirty();
	close_and_return(5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(layout__is_enough_to_read_and_overwrite),
		CASE(write__under_all_there_is__takes_that_for_granted),
		CASE(read__into_the_cache__lets_nobody_write),
		CASE(write__that_makes_it_grow__gives_up_what_it_has_first),
		CASE(write__of_who_is_alone_again__learns_the_times),
		CASE(write__of_what_is_in_doubt__learns_it),
		CASE(recall__of_a_writer__commits_and_goes_on_writing),
		CASE(recall__for_who_looks__commits_the_times_and_goes_on_reading),
		CASE(recall__of_what_is_kept_unused__returns_all),
		CASE(recall__of_a_reader__leaves_the_layout),
		CASE(recall__of_who_may_not_write_any_more__leaves_the_layout),
		CASE(recall__of_two_kinds__leaves_what_is_in_nobodys_way),
		CASE(times__are_the_last_of_ours_and_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
