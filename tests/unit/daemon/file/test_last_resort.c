/* All that must happen before a caller gets ENOSPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/file/fill_holes.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/threads.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_private.h"
#include "daemon/file/inode_return.h"
#include "daemon/serve/fs_block.h"
#include "daemon/lease/keep.h"
#include "daemon/file/last_resort.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/serve/fs.h"

enum { THREADS = 2, OPS = 3, INO = 71, USER = 1000 };

/* Threads that run when the test makes them, and whose remotes are down: sent calls stay with them
 * until the test answers. */
struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct io_threads *group;
	struct io_thread *threads[THREADS];
	struct remote remotes[THREADS];
	struct inode *inode;
	struct request ops[OPS];
	int went[OPS]; /* 1: went on, -errno: failed, 0: waits */
};

static struct fixture fx;

static void set_up_thread(unsigned i)
{
	struct io_thread *thread = io_threads_thread(fx.group, i);

	fx.threads[i] = thread;
	fx.fs.threads[i].thread = thread;
	list_init(&fx.fs.threads[i].dirty);
	thread->fs = &fx.fs;
	thread->shared = &fx.fs.requests;
	thread->ops = &fs_fuse_ops;
	thread->remote = &fx.remotes[i];
	fx.remotes[i].thread = thread;
	fx.remotes[i].session = &fx.session;
	slots_init(&fx.remotes[i]);
}

static int setup(void **state)
{
	struct spinning none = {0};

	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks) ||
		io_threads_new(THREADS, 1, &none, &fx.group))
		return -1;
	fx.fs.session = &fx.session;
	grants_init(fx.fs.grants);
	grant_refill_init(fx.fs.refill, &inode_return_refill_holders);
	fx.fs.refill->hold_ms = INT64_MAX;
	inode_return_init(fx.fs.returns);
	last_resort_init(fx.fs.releases);
	quota_allowance_init(fx.fs.allowances);
	lease_keeper_init(fx.fs.leases);
	for (unsigned i = 0; i < THREADS; i++)
		set_up_thread(i);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < THREADS; i++) {
		assert_true(list_empty(&fx.threads[i]->priv->when_read));
		assert_true(list_empty(&fx.threads[i]->priv->inbox));
		assert_true(list_empty(&fx.remotes[i].rpc_waiting_nested));
		assert_true(list_empty(&fx.remotes[i].rpc_waiting_reserved));
		assert_int_equal(fx.fs.threads[i].nbackground, 0);
	}
	assert_false(fx.fs.releases->running);
	assert_int_equal(fx.fs.returns->nleaving, 0);
	inode_put(fx.inode);
	io_threads_delete(fx.group);
	inode_table_fini(fx.fs.inodes);
	quota_allowance_fini(fx.fs.allowances);
	lease_keeper_fini(fx.fs.leases);
	last_resort_fini(fx.fs.releases);
	inode_return_fini(fx.fs.returns);
	grants_fini(fx.fs.grants);
	return 0;
}

/* ---- threads, operations, the server --------------------------------------------------------- */

static void run_all(struct list *calls)
{
	struct list *link;

	while ((link = list_pop(calls))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
}

static void turn(unsigned thread)
{
	run_all(&fx.threads[thread]->priv->when_read);
	run_all(&fx.threads[thread]->priv->inbox);
}

static void turns(void)
{
	for (unsigned n = 0; n < 3; n++)
		for (unsigned i = 0; i < THREADS; i++)
			turn(i);
}

static void op_went(struct request *req, int status)
{
	fx.went[req - fx.ops] = status ? status : 1;
}

static struct op *new_op(unsigned i, unsigned thread)
{
	fx.ops[i] = (struct request){.thread = fx.threads[thread], .op = OP_FALLOCATE};
	fx.went[i] = 0;
	op_of(&fx.ops[i])->inode = fx.inode;
	return op_of(&fx.ops[i]);
}

static void release(unsigned i, unsigned thread, unsigned what)
{
	new_op(i, thread);
	assert_true(last_resort_wait(&fx.ops[i], what, op_went));
}

static struct rpc_call *take(struct list *waiting, enum rpc_op op)
{
	struct list *link = list_pop(waiting);
	struct rpc_call *call;

	assert_non_null(link);
	call = list_entry(link, struct rpc_call, link);
	assert_int_equal(call->req.op, op);
	return call;
}

static struct rpc_call *take_commit(unsigned thread)
{
	return take(&fx.remotes[thread].rpc_waiting_reserved, RPC_COMMIT);
}

/* A RETURN of n inodes, the first of which is `ino`. */
static struct rpc_call *take_return(unsigned thread, uint64_t ino, size_t n)
{
	struct rpc_call *call = take(&fx.remotes[thread].rpc_waiting_reserved, RPC_RETURN);
	struct wire_in in = rpc_tail_reader(&call->req.ret.tail);

	assert_int_equal(call->req.ret.kind, RETURN_INODES);
	assert_int_equal(wire_in_left(&in), n * sizeof(uint64_t));
	assert_int_equal(wire_get_u64(&in), ino);
	return call;
}

static void answer(struct rpc_call *call, int status)
{
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
}

static void orphan(unsigned thread)
{
	inode_return_orphan(fx.inode, 1, fx.threads[thread]);
}

static void close_file(unsigned thread)
{
	fx.inode->nopen--;
	inode_return_settle(fx.inode, fx.threads[thread]);
}

static struct rpc_call *begin_commit(unsigned thread)
{
	fx.inode->commit.times_dirty = true;
	fx.inode->changed = true;
	fx.inode->commit.changes++;
	commit_start(fx.inode, fx.threads[thread]);
	return take_commit(thread);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A thread has read the RELEASE of a file that others have unlinked, and has not handled it yet. */
static void round__waits_until_each_thread_has_looked_at_what_it_has_read(void **state)
{
	fx.inode->nopen = 1;
	orphan(0);
	release(0, 0, RELEASE_NOTHING_MORE);
	turn(0);
	assert_int_equal(fx.went[0], 0);
	close_file(1);
	turn(1);
	turn(0);
	assert_int_equal(fx.went[0], 0);
	answer(take_return(1, INO, 1), 0);
	turns();
	assert_int_equal(fx.went[0], 1);
}

static void round__with_nothing_to_wait_for__goes_on_after_a_turn_of_each(void **state)
{
	release(0, 1, RELEASE_NOTHING_MORE);
	turn(1);
	assert_int_equal(fx.went[0], 0);
	turn(0);
	turn(1);
	assert_int_equal(fx.went[0], 1);
}

/* Nothing of the old session may be in progress when the new one begins. */
static void round__while_the_session_is_renewed__begins_nothing(void **state)
{
	release(0, 0, RELEASE_NOTHING_MORE);
	turn(0);
	orphan(0);
	atomic_store(&fx.fs.renewing, true);
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_true(list_empty(&fx.remotes[0].rpc_waiting_reserved));
	atomic_store(&fx.fs.renewing, false);
	inode_return_flush(fx.threads[0]);
	answer(take_return(0, INO, 1), 0);
}

/* FORGETs come after requests that were sent later. */
static void round__reads_first_what_the_kernel_has(void **state)
{
	release(0, 0, RELEASE_NOTHING_MORE);
	assert_true(list_empty(&fx.threads[1]->priv->inbox));
	inode_ref(fx.inode);
	fx.inode->type = S_IFIFO;
	orphan(0);
	inode_put(fx.inode);
	inode_put(fx.inode);
	turns();
	assert_int_equal(fx.went[0], 0);
	answer(take_return(1, INO, 1), 0);
	turns();
	assert_int_equal(fx.went[0], 1);
	fx.inode = inode_get(&fx.fs, INO);
}

static void round__waits_for_what_is_on_its_way_already(void **state)
{
	struct rpc_call *call;

	orphan(0);
	inode_return_flush(fx.threads[0]);
	call = take_return(0, INO, 1);
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	assert_int_equal(fx.went[0], 0);
	answer(call, -ESTALE);
	turns();
	assert_int_equal(fx.went[0], 1);
}

static void round__waits_for_the_commit_of_a_file_that_nobody_uses(void **state)
{
	struct rpc_call *call = begin_commit(0);

	orphan(1);
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	assert_int_equal(fx.went[0], 0);
	answer(call, 0);
	turns();
	assert_int_equal(fx.went[0], 0);
	answer(take_return(0, INO, 1), 0);
	turns();
	assert_int_equal(fx.went[0], 1);
}

/* A user of the file may go on for ever, and may itself be waiting. */
static void round__does_not_wait_for_a_file_in_use(void **state)
{
	struct rpc_call *call = begin_commit(0);

	fx.inode->nlinking = 1;
	orphan(1);
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	assert_int_equal(fx.went[0], 1);
	answer(call, 0);
	inode_return_link_end(fx.inode, false, fx.threads[0]);
	inode_return_flush(fx.threads[0]);
	answer(take_return(0, INO, 1), 0);
}

static void round__does_not_wait_for_a_file_that_was_opened_again(void **state)
{
	struct rpc_call *call = begin_commit(0);

	orphan(1);
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	fx.inode->nopen = 1;
	answer(call, 0);
	turns();
	assert_int_equal(fx.went[0], 1);
	close_file(0);
	inode_return_flush(fx.threads[0]);
	answer(take_return(0, INO, 1), 0);
}

static void round__does_not_wait_for_a_file_that_has_got_a_name(void **state)
{
	struct rpc_call *call = begin_commit(0);

	inode_return_nameless(fx.inode);
	inode_return_settle(fx.inode, fx.threads[0]);
	assert_int_equal(fx.fs.returns->nleaving, 1);
	assert_true(inode_return_link_begin(fx.inode));
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	assert_int_equal(fx.went[0], 0);
	inode_return_link_end(fx.inode, true, fx.threads[1]);
	turns();
	assert_int_equal(fx.went[0], 1);
	answer(call, 0);
}

/* A later caller may have sent something that this round has not waited for. */
static void round__who_comes_meanwhile_gets_his_own(void **state)
{
	struct rpc_call *call;

	orphan(0);
	release(0, 0, RELEASE_NOTHING_MORE);
	release(1, 1, RELEASE_NOTHING_MORE);
	turn(0);
	turn(1);
	call = take_return(1, INO, 1);
	release(2, 1, RELEASE_NOTHING_MORE);
	answer(call, 0);
	turn(0);
	assert_int_equal(fx.went[0], 1);
	assert_int_equal(fx.went[1], 0);
	assert_int_equal(fx.went[2], 0);
	turns();
	assert_int_equal(fx.went[1], 1);
	assert_int_equal(fx.went[2], 1);
}

static void round__who_was_taken_back_is_not_waited_for(void **state)
{
	struct rpc_call *call;

	orphan(0);
	release(0, 0, RELEASE_NOTHING_MORE);
	release(1, 1, RELEASE_NOTHING_MORE);
	turn(0);
	turn(1);
	call = take_return(1, INO, 1);
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_int_equal(fx.went[0], -ECANCELED);
	assert_true(op_cancel(&fx.ops[1], -EINTR));
	assert_int_equal(fx.went[1], -ECANCELED);
	answer(call, 0);
	turns();
	release(2, 0, RELEASE_NOTHING_MORE);
	turns();
	assert_int_equal(fx.went[2], 1);
}

static void release__of_the_same__is_done_once(void **state)
{
	release(0, 0, RELEASE_WINDOWS);
	turns();
	assert_false(last_resort_wait(&fx.ops[0], RELEASE_WINDOWS, op_went));
	assert_false(last_resort_wait(&fx.ops[0], 0, op_went));
	assert_true(last_resort_wait(&fx.ops[0], RELEASE_WINDOWS | RELEASE_SHARES, op_went));
	turns();
}

/* ---- reserves -------------------------------------------------------------------------------- */

static void set_up_reserves(void)
{
	atomic_store(&fx.session.quotas, 1);
	fx.inode->attr.uid = USER;
	fx.inode->window = (struct window){.rest = {.npages = 5}, .begun = true};
	fx.inode->share = (struct share){.npages = 7, .user = true, .epoch = 1};
}

static void release__of_windows__leaves_shares(void **state)
{
	set_up_reserves();
	release(0, 0, RELEASE_WINDOWS);
	turns();
	assert_int_equal(grants_count(fx.fs.grants), 5);
	assert_int_equal(fx.inode->share.npages, 7);
}

static void release__of_shares__leaves_windows_and_pools(void **state)
{
	set_up_reserves();
	release(0, 0, RELEASE_SHARES);
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_int_equal(fx.inode->window.rest.npages, 5);
	assert_int_equal(fx.inode->share.npages, 0);
}

static void release__of_allowances__waits_until_the_server_has_them(void **state)
{
	struct rpc_call *call;

	set_up_reserves();
	release(0, 0, RELEASE_SHARES | RELEASE_ALLOWANCES);
	turns();
	assert_int_equal(fx.went[0], 0);
	call = take(&fx.remotes[1].rpc_waiting_nested, RPC_QUOTA);
	assert_true(call->req.quota.give_back);
	assert_int_equal(call->req.quota.id, USER);
	assert_int_equal(call->req.quota.npages, 7);
	answer(call, 0);
	turns();
	assert_int_equal(fx.went[0], 1);
}

/* ---- returns --------------------------------------------------------------------------------- */

/* Other processes may go on unlinking as long as they like. */
static void drain__waits_for_what_was_there_in_the_order_it_came(void **state)
{
	struct rpc_call *call;

	for (uint64_t i = 0; i < RETURNS_BATCH - 1; i++)
		inode_return_add(fx.threads[0], 1000 + i, 1);
	inode_return_flush(fx.threads[0]);
	call = take_return(0, 1000, RETURNS_BATCH - 1);
	for (uint64_t i = 0; i < RETURNS_BATCH + 1; i++)
		inode_return_add(fx.threads[0], 2000 + i, 1);
	release(0, 1, RELEASE_NOTHING_MORE);
	turns();
	for (uint64_t i = 0; i < RETURNS_BATCH + 6; i++)
		inode_return_add(fx.threads[0], 3000 + i, 1);
	answer(call, 0);
	answer(take_return(0, 2000, RETURNS_BATCH), 0);
	turns();
	assert_int_equal(fx.went[0], 0);
	call = take_return(0, 2000 + RETURNS_BATCH, RETURNS_BATCH);
	answer(call, 0);
	turns();
	assert_int_equal(fx.went[0], 1);
	inode_return_flush(fx.threads[1]);
	answer(take_return(1, 3000 + RETURNS_BATCH - 1, 7), 0);
}

/* ---- the pools ------------------------------------------------------------------------------- */

static struct rpc_call *take_grant(unsigned thread, bool wait)
{
	struct rpc_call *call = take(&fx.remotes[thread].rpc_waiting_nested, RPC_GRANT);

	assert_int_equal(call->req.grant.wait, wait);
	return call;
}

static void want_page(unsigned i, unsigned thread)
{
	new_op(i, thread);
	assert_false(fill_holes_wait(&fx.ops[i], -EAGAIN, op_went));
}

static void pages__refused__are_asked_for_once_more_when_all_is_released(void **state)
{
	want_page(0, 0);
	answer(take_grant(0, false), -ENOSPC);
	fx.inode->nopen = 1;
	orphan(0);
	turn(0);
	turn(0);
	assert_int_equal(fx.went[0], 0);
	close_file(1);
	turn(1);
	answer(take_return(1, INO, 1), 0);
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_false(fill_holes_wait(&fx.ops[0], -EAGAIN, op_went));
	answer(take_grant(0, true), -ENOSPC);
	turns();
	assert_int_equal(fx.went[0], -ENOSPC);
}

static void pages__found_in_a_window__are_not_asked_for(void **state)
{
	want_page(0, 0);
	answer(take_grant(0, false), -ENOSPC);
	fx.inode->window = (struct window){.rest = {.npages = 5}, .begun = true};
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_true(fill_holes_wait(&fx.ops[0], -EAGAIN, op_went));
}

/* The caller may have released pages after the server had looked. */
static void pages__refused_to_others_before_he_came__are_asked_for(void **state)
{
	struct rpc_call *call;

	want_page(0, 0);
	call = take_grant(0, false);
	new_op(1, 1)->released = RELEASE_WINDOWS;
	assert_false(fill_holes_wait(&fx.ops[1], -EAGAIN, op_went));
	answer(call, -ENOSPC);
	call = take_grant(0, true);
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_int_equal(fx.went[1], 0);
	answer(call, -ENOSPC);
	turns();
	assert_int_equal(fx.went[1], -ENOSPC);
}

static struct rpc_call *take_quota(unsigned thread)
{
	struct rpc_call *call = take(&fx.remotes[thread].rpc_waiting_nested, RPC_QUOTA);

	assert_false(call->req.quota.give_back);
	assert_int_equal(call->req.quota.kind, QUOTA_USER);
	assert_int_equal(call->req.quota.id, USER);
	return call;
}

static void quota__refused__is_asked_for_once_more_when_all_is_released(void **state)
{
	struct inode *other = inode_get(&fx.fs, INO + 1);

	atomic_store(&fx.session.quotas, 1);
	fx.inode->attr.uid = other->attr.uid = USER;
	other->type = S_IFREG;
	new_op(0, 0)->inode = other;
	assert_false(fill_holes_wait(&fx.ops[0], -EDQUOT, op_went));
	answer(take_quota(0), -EDQUOT);
	orphan(1);
	turns();
	answer(take_return(1, INO, 1), 0);
	turns();
	assert_int_equal(fx.went[0], 1);
	assert_false(fill_holes_wait(&fx.ops[0], -EDQUOT, op_went));
	answer(take_quota(0), -EDQUOT);
	turns();
	assert_int_equal(fx.went[0], -EDQUOT);
	inode_put(other);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(round__waits_until_each_thread_has_looked_at_what_it_has_read),
		CASE(round__with_nothing_to_wait_for__goes_on_after_a_turn_of_each),
		CASE(round__while_the_session_is_renewed__begins_nothing),
		CASE(round__reads_first_what_the_kernel_has),
		CASE(round__waits_for_what_is_on_its_way_already),
		CASE(round__waits_for_the_commit_of_a_file_that_nobody_uses),
		CASE(round__does_not_wait_for_a_file_in_use),
		CASE(round__does_not_wait_for_a_file_that_was_opened_again),
		CASE(round__does_not_wait_for_a_file_that_has_got_a_name),
		CASE(round__who_comes_meanwhile_gets_his_own),
		CASE(round__who_was_taken_back_is_not_waited_for),
		CASE(release__of_the_same__is_done_once),
		CASE(release__of_windows__leaves_shares),
		CASE(release__of_shares__leaves_windows_and_pools),
		CASE(release__of_allowances__waits_until_the_server_has_them),
		CASE(drain__waits_for_what_was_there_in_the_order_it_came),
		CASE(pages__refused__are_asked_for_once_more_when_all_is_released),
		CASE(pages__found_in_a_window__are_not_asked_for),
		CASE(pages__refused_to_others_before_he_came__are_asked_for),
		CASE(quota__refused__is_asked_for_once_more_when_all_is_released),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
