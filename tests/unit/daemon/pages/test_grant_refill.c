/* test_grant_refill.c - when unused pages are given back to clients that lack some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/threads.h"
#include "daemon/op/op.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/remote/remote_private.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode_return.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/fs.h"

enum { INO = 71, ASK = 1000, APART = 100000 };

/* One thread, whose remote is down: calls stay with it until the test answers. */
static struct {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct io_threads *group;
	struct io_thread *thread;
	struct remote remote;
	struct inode *inode;
	struct request op;
	int went;       /* 1: went on, -errno: failed, 0: waits */
	uint64_t found; /* number of pages in the pool by then */
} fx;

static int setup(void **state)
{
	struct spinning none = {0};

	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks) ||
		io_threads_new(1, 1, &none, &fx.group))
		return -1;
	fx.thread = io_threads_thread(fx.group, 0);
	fx.thread->fs = &fx.fs;
	fx.thread->shared = &fx.fs.requests;
	fx.thread->ops = &fs_fuse_ops;
	fx.thread->remote = &fx.remote;
	fx.fs.session = &fx.session;
	fx.fs.threads[0].thread = fx.thread;
	fx.remote.thread = fx.thread;
	fx.remote.session = &fx.session;
	slots_init(&fx.remote);
	grants_init(fx.fs.grants);
	grant_refill_init(fx.fs.refill, &inode_return_refill_holders);
	inode_return_init(fx.fs.returns);
	quota_allowance_init(fx.fs.allowances);
	lease_keeper_init(fx.fs.leases);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	return 0;
}

static int teardown(void **state)
{
	assert_true(list_empty(&fx.remote.rpc_waiting));
	assert_true(list_empty(&fx.remote.rpc_waiting_nested));
	assert_true(list_empty(&fx.remote.rpc_waiting_reserved));
	assert_int_equal(fx.fs.threads[0].nbackground, 0);
	assert_false(fx.fs.refill->busy);
	assert_int_equal(fx.fs.refill->wanted, 0);
	inode_put(fx.inode);
	io_threads_delete(fx.group);
	inode_table_fini(fx.fs.inodes);
	lease_keeper_fini(fx.fs.leases);
	quota_allowance_fini(fx.fs.allowances);
	inode_return_fini(fx.fs.returns);
	grants_fini(fx.fs.grants);
	return 0;
}

/* ---- the pool, the server -------------------------------------------------------------------- */

static void add_pages(uint32_t page, uint32_t npages)
{
	grants_add(fx.fs.grants, &(struct extent){.page = page, .npages = npages});
}

static void asked(void)
{
	grant_refill_give_back(fx.thread, ASK);
}

static bool any_sent(void)
{
	return !list_empty(&fx.remote.rpc_waiting) || !list_empty(&fx.remote.rpc_waiting_nested) ||
	       !list_empty(&fx.remote.rpc_waiting_reserved);
}

static struct rpc_call *take(enum rpc_op op)
{
	struct list *lists[] = {&fx.remote.rpc_waiting, &fx.remote.rpc_waiting_nested,
		&fx.remote.rpc_waiting_reserved};
	struct list *link = NULL;
	struct rpc_call *call;

	for (unsigned i = 0; i < 3 && !link; i++)
		link = list_pop(lists[i]);
	assert_non_null(link);
	call = list_entry(link, struct rpc_call, link);
	assert_int_equal(call->req.op, op);
	return call;
}

/* A RETURN of so many runs. */
static struct rpc_call *take_return(unsigned nruns, uint64_t answers)
{
	struct rpc_call *call = take(RPC_RETURN);

	assert_int_equal(call->req.ret.kind, RETURN_GRANTS);
	assert_int_equal(call->req.ret.tail.len, nruns * RPC_EXTENT_BYTES);
	assert_int_equal(call->req.ret.answers, answers);
	return call;
}

static void answer(struct rpc_call *call, int status)
{
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
}

static void answer_grant(struct rpc_call *call, uint32_t npages, uint64_t answers)
{
	struct rpc_reply rep = {
		.op = RPC_GRANT, .grant = {1, {{.page = APART, .npages = npages}}, answers}};

	call->done(call, &rep);
}

static void op_went(struct request *req, int status)
{
	fx.went = status ? status : 1;
	fx.found = grants_count(fx.fs.grants);
}

static void lack_pages(bool released)
{
	fx.op = (struct request){.thread = fx.thread, .op = OP_WRITE};
	op_of(&fx.op)->inode = fx.inode;
	op_of(&fx.op)->released = released;
	fx.went = 0;
	assert_false(grant_refill_wait(&fx.op, op_went));
}

static int went(void)
{
	struct list *link;

	while ((link = list_pop(&fx.thread->priv->inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
	return fx.went;
}

/* ---- pages asked for ------------------------------------------------------------------------- */

static void give_back__returns_what_the_pool_and_inodes_have(void **state)
{
	struct extent run;

	add_pages(0, 100);
	assert_true(window_take(&fx.inode->window, fx.fs.grants, 3, &run));
	add_pages(1000, 1);
	asked();
	answer(take_return(2, ASK), 0);
	assert_int_equal(fx.inode->window.rest.npages, 0);
	assert_int_equal(grants_count(fx.fs.grants), 0);
}

static void give_back__of_nothing_is_an_answer(void **state)
{
	asked();
	answer(take_return(0, ASK), 0);
}

/* Other clients get ENOSPC only when there are no pages. */
static void give_back__is_answered_by_the_last_of_several(void **state)
{
	for (unsigned i = 0; i < RETURN_EXTENTS + 1; i++)
		add_pages(2 * i, 1);
	asked();
	answer(take_return(RETURN_EXTENTS, 0), 0);
	answer(take_return(1, ASK), 0);
}

static void give_back__unasked_answers_nothing(void **state)
{
	add_pages(0, 10);
	fx.fs.refill->idle = true;
	grant_refill_tick(fx.thread, 0);
	answer(take_return(1, 0), 0);
}

/* The RETURN sent before names no number, so another one follows as the answer. */
static void give_back__follows_what_is_on_its_way(void **state)
{
	struct rpc_call *call;

	add_pages(0, 10);
	fx.fs.refill->idle = true;
	grant_refill_tick(fx.thread, 0);
	call = take_return(1, 0);
	asked();
	assert_false(any_sent());
	answer(call, 0);
	answer(take_return(0, ASK), 0);
}

/* PINGs of two channels are answered in any order. */
static void give_back__answers_the_newest_ask(void **state)
{
	struct rpc_call *call;

	add_pages(0, 10);
	fx.fs.refill->idle = true;
	grant_refill_tick(fx.thread, 0);
	call = take_return(1, 0);
	asked();
	grant_refill_give_back(fx.thread, ASK - 1);
	answer(call, 0);
	answer(take_return(0, ASK), 0);
}

/* ---- calls it does not wait for -------------------------------------------------------------- */

/* Such a call may wait for other clients; the server counts its pages when it executes the call. */
static void give_back__goes_past_an_rpc_that_asks_by_the_way(void **state)
{
	assert_int_not_equal(grant_refill_along(fx.thread), 0);
	asked();
	answer(take_return(0, ASK), 0);
	grant_refill_along_done(fx.thread, NULL, 0);
}

/* Pages from that answer are needed; the rest goes back. */
static void give_back__is_not_forgotten_by_who_lacks_pages(void **state)
{
	struct rpc_call *call;

	lack_pages(true);
	call = take(RPC_GRANT);
	assert_true(call->req.grant.wait);
	asked();
	assert_false(any_sent());
	answer_grant(call, 10, 0);
	assert_false(any_sent());
	assert_int_equal(went(), 1);
	assert_int_equal(fx.found, 10);
	answer(take_return(1, ASK), 0);
}

/* The server asked before, and does not any more. */
static void give_back__is_forgotten_where_grant_was_the_answer(void **state)
{
	struct rpc_call *call;

	lack_pages(true);
	call = take(RPC_GRANT);
	asked();
	answer_grant(call, 10, ASK - 1);
	assert_int_equal(went(), 1);
	answer(take_return(1, ASK), 0);
	lack_pages(true);
	call = take(RPC_GRANT);
	asked();
	answer_grant(call, 10, ASK + 1);
	assert_int_equal(went(), 1);
	assert_false(any_sent());
	assert_int_equal(grants_count(fx.fs.grants), 10);
}

/* A waiter of that length uses no pages meanwhile. */
static void give_back__of_what_is_idle_is_of_nothing_that_was_waited_for(void **state)
{
	lack_pages(true);
	fx.fs.refill->idle = true;
	answer_grant(take(RPC_GRANT), 10, 0);
	grant_refill_tick(fx.thread, 0);
	assert_false(any_sent());
	assert_int_equal(went(), 1);
	assert_int_equal(fx.found, 10);
	grant_refill_tick(fx.thread, 0);
	answer(take_return(1, 0), 0);
}

static void give_back__is_of_nothing_that_came_by_the_way_for_who_waits(void **state)
{
	const struct extent grant = {.page = APART, .npages = 10};
	struct rpc_call *call;

	assert_int_not_equal(grant_refill_along(fx.thread), 0);
	lack_pages(false);
	call = take(RPC_GRANT);
	asked();
	grant_refill_along_done(fx.thread, &grant, 1);
	answer(call, -ENOSPC);
	assert_false(any_sent());
	assert_int_equal(went(), 1);
	assert_int_equal(fx.found, 10);
	answer(take_return(1, ASK), 0);
}

static void give_back__of_who_lacks_pages_in_vain_is_of_none(void **state)
{
	struct rpc_call *call;

	lack_pages(true);
	call = take(RPC_GRANT);
	asked();
	answer(call, -ENOSPC);
	assert_int_equal(went(), -ENOSPC);
	answer(take_return(0, ASK), 0);
}

/* The server asks other clients only for a client that has released all it could. */
static void grant__waits_only_for_who_has_released_what_he_could(void **state)
{
	struct rpc_call *call;

	lack_pages(false);
	call = take(RPC_GRANT);
	assert_false(call->req.grant.wait);
	answer(call, -ENOSPC);
	assert_int_equal(went(), -ENOSPC);
	lack_pages(true);
	call = take(RPC_GRANT);
	assert_true(call->req.grant.wait);
	answer(call, -ENOSPC);
	assert_int_equal(went(), -ENOSPC);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(give_back__returns_what_the_pool_and_inodes_have),
		CASE(give_back__of_nothing_is_an_answer),
		CASE(give_back__is_answered_by_the_last_of_several),
		CASE(give_back__unasked_answers_nothing),
		CASE(give_back__follows_what_is_on_its_way),
		CASE(give_back__answers_the_newest_ask),
		CASE(give_back__goes_past_an_rpc_that_asks_by_the_way),
		CASE(give_back__is_not_forgotten_by_who_lacks_pages),
		CASE(give_back__is_forgotten_where_grant_was_the_answer),
		CASE(give_back__of_what_is_idle_is_of_nothing_that_was_waited_for),
		CASE(give_back__is_of_nothing_that_came_by_the_way_for_who_waits),
		CASE(give_back__of_who_lacks_pages_in_vain_is_of_none),
		CASE(grant__waits_only_for_who_has_released_what_he_could),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
