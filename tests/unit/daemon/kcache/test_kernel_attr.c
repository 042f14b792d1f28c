/* test_kernel_attr.c - attributes that the kernel may cache for a time: how long, and that they are
 * invalidated before the lease goes under which the kernel got them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/fuse/port.h"
#include "daemon/fuse/private.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_private.h"
#include "daemon/kcache/kernel_attr.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode_return.h"
#include "daemon/serve/fs_block.h"
#include "daemon/lease/lease.h"
#include "daemon/serve/fs.h"
#include "daemon/remote/session.h"

enum { INO = 71, NUMBER = 5, LEASE_MS = 8000 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct remote remote;
	struct io_thread thread;
	struct io_thread_private priv;
	struct fuse_port port;
	struct inode *inode;
	struct request req;
	unsigned ntaken; /* notifications */
	int known;       /* their result: 0, or -ENOENT */
};

static struct fixture fx;

int __wrap_fuse_port_inval_inode(struct fuse_port *port, uint64_t node, int64_t off, int64_t len);
int __wrap_fuse_port_inval_inode(struct fuse_port *port, uint64_t node, int64_t off, int64_t len)
{
	assert_ptr_equal(port, &fx.port);
	assert_int_equal(node, INO);
	assert_int_equal(off, -1);
	fx.ntaken++;
	return fx.known;
}

/* One thread, whose remote is down, and an inode with a shared lease that the kernel knows. */
static int set_up(void **state)
{
	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.requests.sharing = true;
	fx.fs.sharing = true;
	fx.session.sharing = true;
	fx.fs.features.evictions_seen = true;
	grants_init(fx.fs.grants);
	quota_allowance_init(fx.fs.allowances);
	inode_return_init(fx.fs.returns);
	lease_keeper_init(fx.fs.leases);
	fx.session.lease_limit = 16;
	fx.session.lease_ms = LEASE_MS;
	fx.session.renewed_ms = now_ms();
	fx.thread = (struct io_thread){.fs = &fx.fs,
		.shared = &fx.fs.requests,
		.ops = &fs_fuse_ops,
		.priv = &fx.priv,
		.remote = &fx.remote,
		.port = &fx.port};
	pthread_mutex_init(&fx.priv.inbox_lock, NULL);
	list_init(&fx.priv.inbox);
	list_init(&fx.priv.later);
	fx.priv.wake_fd = -1;
	fx.remote.thread = &fx.thread;
	fx.remote.session = &fx.session;
	slots_init(&fx.remote);
	fx.fs.threads[0].thread = &fx.thread;
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFDIR;
	fx.inode->attr = (struct attr){.ino = INO, .mode = S_IFDIR | 0755, .nlink = 2};
	fx.inode->lease_type = LEASE_SHARED;
	fx.inode->lease_number = NUMBER;
	pthread_mutex_lock(&fx.inode->lock);
	lease_list_locked(fx.inode, &fx.thread);
	pthread_mutex_unlock(&fx.inode->lock);
	inode_remember(fx.inode);
	fx.inode->told->number = NUMBER;
	return 0;
}

static int tear_down(void **state)
{
	inode_table_fini(fx.fs.inodes);
	lease_keeper_fini(fx.fs.leases);
	inode_return_fini(fx.fs.returns);
	quota_allowance_fini(fx.fs.allowances);
	grants_fini(fx.fs.grants);
	return 0;
}

static uint32_t tell(enum request_op op)
{
	uint32_t ms;

	fx.req = (struct request){.thread = &fx.thread, .op = op, .node = INO};
	pthread_mutex_lock(&fx.inode->lock);
	ms = kernel_attr_attr_locked(fx.inode, &fx.req);
	pthread_mutex_unlock(&fx.inode->lock);
	return ms;
}

static bool take_back(void)
{
	bool taken;

	pthread_mutex_lock(&fx.inode->lock);
	taken = kernel_attr_take_back_locked(fx.inode, &fx.thread);
	pthread_mutex_unlock(&fx.inode->lock);
	return taken;
}

/* The next try; it makes no thread poll. */
static struct thread_call *next_try(void)
{
	assert_true(list_empty(&fx.priv.inbox));
	assert_false(list_empty(&fx.priv.later));
	return list_entry(fx.priv.later.next, struct thread_call, link);
}

static void try_again(void)
{
	struct thread_call *call = next_try();

	list_del(&call->link);
	call->run(call);
}

static void recall(void)
{
	struct rpc_recall recall = {.ino = INO, .number = NUMBER, .keep = LEASE_NONE};
	uint8_t tail[RPC_RECALL_BYTES];
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	rpc_put_recall(&w, &recall);
	fs_session_events.news(&fx.thread, &(struct rpc_tail){.data = tail, .len = sizeof(tail)});
}

static bool is_returned(void)
{
	return !list_empty(&fx.remote.rpc_waiting_reserved);
}

/* ---- how long -------------------------------------------------------------------------------- */

static void told_attr__ends_before_the_lease(void **state)
{
	uint32_t ms = tell(OP_GETATTR);

	assert_in_range(ms, LEASE_MS / 2, LEASE_MS - LEASE_MS / 8);
	fx.session.renewed_ms -= LEASE_MS / 2;
	assert_in_range(tell(OP_LOOKUP), 1, ms - LEASE_MS / 2);
}

static void told_attr__of_a_server_that_was_not_heard__no_time(void **state)
{
	fx.session.renewed_ms -= LEASE_MS - LEASE_MS / 8;
	assert_int_equal(tell(OP_GETATTR), 0);
	fx.session.renewed_ms -= LEASE_MS;
	assert_int_equal(tell(OP_GETATTR), 0);
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 0);
}

static void told_attr__by_lookup__only_where_the_kernel_sees_evictions(void **state)
{
	fx.fs.features.evictions_seen = false;
	assert_int_equal(tell(OP_LOOKUP), 0);
	assert_int_not_equal(tell(OP_GETATTR), 0);
}

/* It may have an access control list from before, and one in flight. */
static void told_attr__by_a_lease_that_is_new__no_time_at_first(void **state)
{
	fx.inode->told->number = NUMBER - 1;
	assert_int_equal(tell(OP_LOOKUP), 0);
	assert_int_equal(fx.ntaken, 1);
	assert_int_not_equal(tell(OP_LOOKUP), 0);
	assert_int_equal(fx.ntaken, 1);
}

/* A change of ours may remove one of its names without knowing the inode. */
static void told_attr__of_a_file_with_several_names__no_time(void **state)
{
	fx.inode->attr.mode = S_IFREG | 0644;
	assert_int_equal(tell(OP_GETATTR), 0);
	fx.inode->attr.nlink = 1;
	assert_int_not_equal(tell(OP_GETATTR), 0);
	fx.inode->attr.nlink = 0;
	assert_int_equal(tell(OP_GETATTR), 0);
}

/* ---- invalidating ---------------------------------------------------------------------------- */

static void take_back__of_what_was_told_costs_one_notification(void **state)
{
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 0);
	tell(OP_GETATTR);
	tell(OP_LOOKUP);
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 1);
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 1);
}

/* The answer to a LOOKUP is still in flight to its caller. */
static void take_back__of_what_is_not_there_yet__is_tried_until_it_is(void **state)
{
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	recall();
	assert_false(is_returned());
	try_again();
	assert_false(is_returned());
	assert_int_equal(tell(OP_GETATTR), 0);
	fx.known = 0;
	try_again();
	assert_int_equal(fx.ntaken, 3);
	assert_true(is_returned());
}

static void take_back__of_what_the_kernel_forgets__ends_with_that(void **state)
{
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	recall();
	assert_false(is_returned());
	inode_ref(fx.inode);
	inode_forget(fx.inode, 1);
	try_again();
	assert_true(is_returned());
}

static void take_back__is_not_waited_for_for_ever(void **state)
{
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	assert_false(take_back());
	assert_false(take_back());
	fx.inode->told->since_ms -= 1000;
	assert_true(take_back());
	/* A call that is already in the list still runs. */
	try_again();
	assert_true(list_empty(&fx.priv.later));
}

/* Between tries its thread sleeps, longer from time to time. */
static void take_back__is_tried_rarely(void **state)
{
	unsigned n = 0;

	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	for (int64_t waited = 0; waited < 1000; n++) {
		int64_t wait;

		fx.inode->told->since_ms = waited ? now_ms() - waited : 0;
		assert_false(take_back());
		wait = next_try()->at_ms - now_ms();
		assert_in_range(wait, 0, 50);
		assert_true(wait >= waited / 2 || wait >= 40);
		fx.known = 0;
		list_del(&next_try()->link);
		inode_put(fx.inode);
		fx.inode->told->thread = NULL;
		fx.known = -ENOENT;
		waited += wait ? wait : 1;
	}
	assert_in_range(n, 5, 60);
}

/* If a change has invalidated the attributes in between, the wait begins anew. */
static void take_back__by_a_change__ends_the_wait(void **state)
{
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	assert_false(take_back());
	fx.inode->told->since_ms -= 1000;
	fx.known = 0;
	inode_change_begin(fx.inode);
	inode_change_end(fx.inode, NULL);
	try_again();
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	assert_false(take_back());
	fx.known = 0;
	try_again();
	assert_true(take_back());
}

/* The inode was used after all, and its attributes were told once more: that answer has a second of
 * its own. */
static void take_back__of_an_answer_in_between__waits_for_that_one(void **state)
{
	tell(OP_LOOKUP);
	fx.known = -ENOENT;
	assert_false(take_back());
	fx.inode->told->since_ms -= 1000;
	tell(OP_LOOKUP);
	assert_false(take_back());
	fx.known = 0;
	try_again();
	assert_true(take_back());
}

static void forget__takes_back_and_begins_anew(void **state)
{
	tell(OP_GETATTR);
	pthread_mutex_lock(&fx.inode->lock);
	kernel_attr_forget_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(fx.ntaken, 1);
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 1);
	assert_int_equal(tell(OP_GETATTR), 0);
	assert_int_equal(fx.ntaken, 2);
}

static void recall__takes_back_first(void **state)
{
	tell(OP_GETATTR);
	recall();
	assert_int_equal(fx.ntaken, 1);
	assert_true(is_returned());
}

static void recall__where_nothing_was_told__costs_no_notification(void **state)
{
	recall();
	assert_int_equal(fx.ntaken, 0);
	assert_true(is_returned());
}

/* The kernel has forgotten the inode, so its lease goes back with others. Just before, it had
 * attributes. */
static void leave__takes_back_first(void **state)
{
	struct rpc_returned returned;
	bool leaves;

	tell(OP_GETATTR);
	inode_ref(fx.inode);
	inode_forget(fx.inode, 1);
	pthread_mutex_lock(&fx.inode->lock);
	leaves = lease_leave_locked(fx.inode, &fx.thread, &returned);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_true(leaves);
	assert_int_equal(fx.ntaken, 1);
}

static void change__of_our_own_takes_back_first(void **state)
{
	inode_change_begin(fx.inode);
	assert_int_equal(fx.ntaken, 0);
	inode_change_end(fx.inode, NULL);
	tell(OP_GETATTR);
	inode_change_begin(fx.inode);
	assert_int_equal(fx.ntaken, 1);
	inode_change_end(fx.inode, NULL);
	assert_true(take_back());
	assert_int_equal(fx.ntaken, 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(told_attr__ends_before_the_lease),
		CASE(told_attr__of_a_server_that_was_not_heard__no_time),
		CASE(told_attr__by_lookup__only_where_the_kernel_sees_evictions),
		CASE(told_attr__by_a_lease_that_is_new__no_time_at_first),
		CASE(told_attr__of_a_file_with_several_names__no_time),
		CASE(take_back__of_what_was_told_costs_one_notification),
		CASE(take_back__of_what_is_not_there_yet__is_tried_until_it_is),
		CASE(take_back__of_what_the_kernel_forgets__ends_with_that),
		CASE(take_back__is_not_waited_for_for_ever),
		CASE(take_back__is_tried_rarely),
		CASE(take_back__by_a_change__ends_the_wait),
		CASE(take_back__of_an_answer_in_between__waits_for_that_one),
		CASE(forget__takes_back_and_begins_anew),
		CASE(recall__takes_back_first),
		CASE(recall__where_nothing_was_told__costs_no_notification),
		CASE(leave__takes_back_first),
		CASE(change__of_our_own_takes_back_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
