/* When a client asks for a lease, when it returns one, and which operations go on meanwhile. */
#include "tests/unit/daemon/lease_client.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode_return.h"
#include "daemon/lease/lease.h"
#include "daemon/serve/fs.h"

/* ---- asking ---------------------------------------------------------------------------------- */

static void open__brings_a_lease_that_is_kept(void **state)
{
	open_with(LEASE_SHARED, 5);
	assert_int_equal(fx.inode->attr.size, 100);
	assert_int_equal(fx.inode->map.known_end, UINT64_MAX);
	begin(1, OP_READ, O_RDONLY);
	end(1);
	assert_nothing_sent();
	close_and_leave(5);
	assert_int_equal(fx.inode->map.known_end, 0);
}

static void open__of_a_file_whose_lease_is_kept__asks_nothing(void **state)
{
	open_with(LEASE_SHARED, 5);
	close_file();
	lease_keep_flush(&fx.thread);
	begin(1, OP_OPEN, O_RDONLY);
	end(1);
	begin(1, OP_READ, O_RDONLY);
	end(1);
	assert_nothing_sent();
	leave(5);
}

static void open__of_an_open_file_asks_nothing(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	begin(1, OP_OPEN, O_RDONLY);
	end(1);
	assert_nothing_sent();
	close_and_leave(5);
}

/* The opener knows no size, and nothing of the file's pages. */
static void open__where_another_writes__a_pin_alone(void **state)
{
	begin(0, OP_OPEN, O_RDONLY);
	grant(take_lease(LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), LEASE_NONE, 5);
	fx.inode->nopen++;
	end(0);
	assert_false(fx.inode->sized);
	begin(1, OP_READ, O_RDONLY);
	assert_int_equal(fx.went[1], 0);
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 6);
	end(1);
	close_and_leave(6);
}

static void open__refused__says_so(void **state)
{
	begin(0, OP_OPEN, O_RDONLY);
	answer(take_lease(LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), -ESTALE);
	assert_int_equal(fx.went[0], -ESTALE);
	assert_nothing_sent();
	assert_int_equal(fx.inode->lease->state, LEASE_IDLE);
	assert_false(lease_is_used_locked(fx.inode));
}

static void close__while_it_is_opened_again__keeps_the_pin(void **state)
{
	open_with(LEASE_SHARED, 5);
	begin(1, OP_OPEN, O_RDONLY);
	close_file();
	assert_nothing_sent();
	fx.inode->nopen++;
	end(1);
	assert_nothing_sent();
	close_and_leave(5);
}

static void open__behind_a_return__pins_anew(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	close_file();
	recall(5, LEASE_NONE);
	call = take_return(5, LEASE_NONE, RETURN_UNPIN);
	begin(1, OP_OPEN, O_RDONLY);
	assert_int_equal(fx.went[1], 0);
	assert_nothing_sent();
	answer(call, 0);
	grant(take_lease(LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), LEASE_SHARED, 6);
	fx.inode->nopen++;
	end(1);
	close_and_leave(6);
}

/* Two clients that wait for each other's lower lease would wait for ever. */
static void write__returns_what_it_read_under_first(void **state)
{
	open_with(LEASE_SHARED, 5);
	begin(1, OP_READ, O_RDWR);
	begin(2, OP_WRITE, O_RDWR);
	assert_int_equal(fx.went[2], 0);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_SHARED, 6);
	assert_int_equal(fx.went[2], 0);
	assert_nothing_sent(); /* the read goes on */
	begin(3, OP_READ, O_RDWR);
	assert_int_equal(fx.went[3], 0); /* not past the write */
	end(1);
	answer(take_return(6, LEASE_NONE, RETURN_PIN), 0);
	grant(take_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 7);
	end(2);
	end(3);
	close_and_leave(7);
}

/* Nothing had to be returned first, since nobody waited, and what is known stays known. */
static void write__of_what_nobody_else_reads__costs_one_lease(void **state)
{
	open_with(LEASE_SHARED, 5);
	begin(1, OP_READ, O_RDWR);
	begin(2, OP_WRITE, O_RDWR);
	assert_int_equal(fx.went[2], 0);
	grant_size(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 6, 7);
	end(2);
	end(1);
	assert_int_equal(fx.inode->attr.size, 100);
	assert_int_equal(fx.inode->map.known_end, UINT64_MAX);
	close_and_leave(6);
}

static void truncate__of_a_file_that_is_not_open__keeps_less(void **state)
{
	struct request *req = &fx.ops[0];

	*req = (struct request){.thread = &fx.thread, .op = OP_SETATTR, .node = INO};
	req->args.set.valid = SET_SIZE;
	assert_false(lease_admit(req, op_went));
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 5);
	end(0);
	assert_nothing_sent();
	lease_keep_flush(&fx.thread);
	answer(take_return(5, LEASE_SHARED, RETURN_PIN_AS_IT_IS), 0);
	assert_int_equal(fx.inode->lease_type, LEASE_SHARED);
	leave(5);
}

static void setattr__of_mode__needs_none(void **state)
{
	struct request *req = &fx.ops[0];

	*req = (struct request){.thread = &fx.thread, .op = OP_SETATTR, .node = INO};
	req->args.set.valid = SET_MODE;
	assert_true(lease_admit(req, op_went));
	assert_nothing_sent();
	lease_leave(req);
}

/* Reads and writes wait until it is answered. */
static void setattr__of_times__needs_the_file_alone(void **state)
{
	struct request *req = &fx.ops[0];

	*req = (struct request){.thread = &fx.thread, .op = OP_SETATTR, .node = INO};
	req->args.set.valid = SET_MTIME;
	assert_false(lease_admit(req, op_went));
	grant(take_strict_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 5);
	recall(5, LEASE_NONE);
	assert_nothing_sent();
	end(0);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	assert_true(is_left());
}

/* ---- recalls --------------------------------------------------------------------------------- */

static void recall__idle__returned_at_once(void **state)
{
	open_with(LEASE_SHARED, 5);
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(fx.inode->map.known_end, 0);
	close_and_return(5);
}

static void recall__waits_for_its_users_and_keeps_new_ones_out(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	begin(1, OP_WRITE, O_RDWR);
	recall(5, LEASE_NONE);
	assert_nothing_sent();
	begin(2, OP_READ, O_RDWR);
	assert_int_equal(fx.went[2], 0);
	end(1);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 7);
	end(2);
	close_and_leave(7);
}

static void recall__of_a_writer__commits_first_and_may_go_on_reading(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	begin(1, OP_READ, O_RDWR);
	make_dirty();
	recall(5, LEASE_SHARED);
	answer(take_commit(), 0);
	assert_nothing_sent(); /* the COMMIT returns the lease, too */
	assert_int_equal(fx.inode->lease_type, LEASE_SHARED);
	assert_true(fx.inode->sized);
	assert_int_equal(fx.inode->attr.size, 5000);
	begin(2, OP_READ, O_RDWR);
	end(2);
	end(1);
	list_none_dirty();
	close_and_leave(5);
}

static void recall__of_what_the_server_does_not_take__forgets_it_and_returns(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	make_dirty();
	recall(5, LEASE_SHARED);
	answer(take_commit(), -EIO);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(fx.inode->commit.error, -EIO);
	list_none_dirty();
	assert_nothing_sent();
	close_and_return(5);
}

/* The operation that waited for the grant is served once under it. */
static void recall__before_its_grant__after_who_waited_for_it(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	begin(1, OP_READ, O_RDONLY);
	call = take_lease(LEASE_SHARED, 0);
	recall(6, LEASE_NONE);
	assert_nothing_sent();
	grant(call, LEASE_SHARED, 6);
	assert_int_equal(fx.went[1], 1);
	begin(2, OP_READ, O_RDONLY);
	assert_int_equal(fx.went[2], 0);
	end(1);
	answer(take_return(6, LEASE_NONE, RETURN_PIN), 0);
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 8);
	end(2);
	close_and_leave(8);
}

static void recall__told_again__answered_once(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	recall(5, LEASE_NONE);
	call = take_return(5, LEASE_NONE, RETURN_PIN);
	recall(5, LEASE_NONE);
	assert_nothing_sent();
	answer(call, 0);
	recall(5, LEASE_NONE);
	assert_nothing_sent();
	close_and_return(5);
}

static void recall__of_an_older_grant__is_none(void **state)
{
	open_with(LEASE_SHARED, 5);
	recall(4, LEASE_NONE);
	assert_nothing_sent();
	close_and_leave(5);
}

/* A CREATE that opens an existing file gives its pin a number. A RETURN of the number before has no
 * effect, so the server recalls again. */
static void recall__of_a_pin_s_number__returns_again(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	create_pins(1, 6);
	recall(6, LEASE_NONE);
	answer(take_return(6, LEASE_NONE, RETURN_PIN), 0);
	end(1);
	close_and_return(6);
}

/* The pin's answer is still in flight. The lease is returned by that number; the answer's pin is
 * then asked for anew. */
static void recall__of_a_number_that_is_to_come__returns_once(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	close_file();
	recall(6, LEASE_NONE);
	answer(take_return(6, LEASE_NONE, RETURN_PIN_AS_IT_IS), 0);
	assert_nothing_sent();
	create_pins(1, 6);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_PIN | LEASE_IF_FREE), LEASE_NONE, 7);
	end(1);
	answer(take_return(7, LEASE_NONE, RETURN_UNPIN), 0);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	assert_true(is_left());
}

/* It asks once, for all that it needs: if it held a part already, it would wait for itself. */
static void create__of_what_is_there_and_cut__waits_for_all(void **state)
{
	open_with(LEASE_SHARED, 5);
	create_with_answered(
		1, O_WRONLY | O_TRUNC, &(struct lease){.number = 6}, false, lease_notes(&fx.fs));
	assert_int_equal(fx.went[1], 0);
	grant(take_strict_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_EXCLUSIVE, 7);
	end(1);
	close_and_leave(7);
}

static void create__that_asks_again__leaves_no_pin(void **state)
{
	const struct rpc_entry_reply entry = {.lease.number = 6};

	lease_not_opened(fx.inode, &fx.thread, &entry);
	answer(take_return(6, LEASE_NONE, RETURN_UNPIN), 0);
	assert_nothing_sent();
	assert_true(is_left());
}

/* Answers of two channels may arrive in another order than they were made. */
static void grant__behind_a_later_pin__keeps_its_number(void **state)
{
	struct rpc_call *call;

	begin(0, OP_OPEN, O_RDONLY);
	call = take_lease(LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE);
	create_pins(1, 6);
	run_calls();
	grant(call, LEASE_SHARED, 5);
	fx.inode->nopen++;
	end(0);
	end(1);
	close_and_leave(6);
}

/* Other operations that wait for this client may need their results. */
static void rpc__that_waits_for_no_lease__has_slots_of_its_own(void **state)
{
	static const enum rpc_op free[] = {RPC_GRANT, RPC_QUOTA, RPC_EXTENTS, RPC_FROZEN};
	struct rpc_call calls[5] = {0};

	for (unsigned i = 0; i < ARRAY_SIZE(free); i++) {
		calls[i].req.op = (uint16_t)free[i];
		rpc_start(&fx.thread, &calls[i]);
		assert_ptr_equal(take(&fx.remote.rpc_waiting_nested), &calls[i]);
	}
	calls[4].req.op = RPC_GETATTR;
	rpc_start(&fx.thread, &calls[4]);
	assert_ptr_equal(take(&fx.remote.rpc_waiting), &calls[4]);
	/* An operation that has a lease and waits for another one gets only some of those slots. */
	calls[4].req.op = RPC_LEASE;
	calls[4].nested = true;
	calls[4].req.lease.flags = LEASE_IF_FREE;
	rpc_start(&fx.thread, &calls[4]);
	assert_ptr_equal(take(&fx.remote.rpc_waiting_nested), &calls[4]);
	calls[4].req.lease.flags = 0;
	rpc_start(&fx.thread, &calls[4]);
	assert_ptr_equal(take(&fx.remote.rpc_waiting_second), &calls[4]);
}

static void recall__of_an_unknown_inode__is_disclaimed(void **state)
{
	struct rpc_call *call;
	struct rpc_returned r;
	struct wire_in in;

	recall_of(999, 4, LEASE_SHARED);
	call = take(&fx.remote.rpc_waiting_reserved);
	assert_non_null(call);
	in = rpc_tail_reader(&call->req.ret.tail);
	assert_true(rpc_get_returned(&in, &r));
	assert_int_equal(r.ino, 999);
	assert_int_equal(r.number, 4);
	assert_int_equal(r.keep, LEASE_NONE);
	assert_int_equal(r.pin, RETURN_PIN_AS_IT_IS);
	answer(call, 0);
}

/* The server may have granted it until it got the RETURN. */
static void look__while_a_lease_is_disclaimed__is_not_believed(void **state)
{
	struct rpc_call *call;
	uint64_t notes;

	recall_of(999, 4, LEASE_SHARED);
	call = take(&fx.remote.rpc_waiting_reserved);
	assert_non_null(call);
	notes = lease_notes(&fx.fs);
	answer(call, 0);
	assert_true(lease_noted_since(&fx.fs, notes, 999));
}

/* The server grants it before, and the answer arrives before the RETURN's. */
static void look__that_is_answered_before_the_disclaimer_is__gives_back_what_it_brings(void **state)
{
	static const struct lease lease = {.type = LEASE_SHARED, .number = 4};
	static const struct attr attr = {.ino = 999, .mode = S_IFREG | 0644, .nlink = 1};
	struct lease_look look = {.lease = &lease, .attr = &attr};
	struct rpc_call *call;
	struct inode *inode;

	recall_of(999, 4, LEASE_SHARED);
	call = take(&fx.remote.rpc_waiting_reserved);
	look.notes = lease_notes(&fx.fs);
	look.epoch = inode_epoch(&fx.fs);
	inode = inode_get(&fx.fs, 999);
	assert_true(lease_looked(inode, &fx.thread, &look));
	answer(call, 0);
	call = take(&fx.remote.rpc_waiting_reserved);
	assert_non_null(call);
	assert_int_equal(call->req.op, RPC_RETURN);
	assert_int_equal(inode->lease_type, LEASE_NONE);
	assert_false(inode->sure);
	answer(call, 0);
	inode_put(inode);
}

/* ---- CREATE ---------------------------------------------------------------------------------- */

static const struct lease made = {.type = LEASE_EXCLUSIVE, .number = 5};

static void create__brings_a_lease_that_is_kept(void **state)
{
	create_answered(0, &made, true, lease_notes(&fx.fs));
	fx.inode->nopen++;
	end(0);
	fx.inode->nwriters++;
	begin(1, OP_WRITE, O_RDWR);
	end(1);
	assert_true(fx.inode->sized);
	assert_nothing_sent();
	close_and_leave(5);
}

/* Its answer comes later, and none of it is believed. */
static void create__whose_lease_was_recalled_before__asks_anew(void **state)
{
	uint64_t notes = lease_notes(&fx.fs);

	recall(5, LEASE_SHARED);
	answer(take_return(5, LEASE_NONE, RETURN_PIN_AS_IT_IS), 0);
	create_answered(0, &made, true, notes);
	assert_int_equal(fx.went[0], 0);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_PIN | LEASE_IF_FREE), LEASE_SHARED, 7);
	end(0);
	leave(7);
}

/* The same for an inode that was unknown then. */
static void create__that_was_disclaimed__asks_anew(void **state)
{
	uint64_t notes = lease_notes(&fx.fs);

	for (unsigned i = 0; i < LEASES_NOTED; i++)
		lease_note(&fx.fs, 1000 + i);
	assert_true(lease_noted_since(&fx.fs, notes, 1000));
	assert_false(lease_noted_since(&fx.fs, notes, INO));
	assert_false(lease_noted_since(&fx.fs, lease_notes(&fx.fs), 1000));
	lease_note(&fx.fs, 999);
	/* It may have been noted before those that are remembered. */
	assert_true(lease_noted_since(&fx.fs, notes, INO));
	create_answered(0, &made, true, notes);
	assert_int_equal(fx.went[0], 0);
	answer(take_lease(LEASE_EXCLUSIVE, LEASE_PIN | LEASE_IF_FREE), -ESTALE);
	assert_int_equal(fx.went[0], -ESTALE);
	/* Nobody knows whether it is pinned. */
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	assert_true(is_left());
}

static void create__behind_what_came_later__changes_nothing(void **state)
{
	open_with(LEASE_SHARED, 6);
	create_answered(1, &made, true, lease_notes(&fx.fs));
	end(1);
	assert_int_equal(fx.inode->lease_type, LEASE_SHARED);
	assert_int_equal(fx.inode->attr.size, 100);
	close_and_leave(6);
}

/* ---- keeping --------------------------------------------------------------------------------- */

static void forgotten__and_looked_up_again__stays(void **state)
{
	open_with(LEASE_SHARED, 5);
	close_file();
	forget();
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	assert_int_equal(fx.fs.leases->nleaving, 0);
	begin(1, OP_READ, O_RDONLY);
	end(1);
	assert_nothing_sent();
	leave(5);
}

static void forgotten__is_recalled_as_any_other(void **state)
{
	open_with(LEASE_SHARED, 5);
	close_file();
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	inode_remember(fx.inode);
	assert_true(is_left());
}

static void forgotten__is_recalled_when_it_has_left(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	close_file();
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	lease_keep_flush(&fx.thread);
	call = take_return(5, LEASE_NONE, RETURN_UNPIN);
	recall(5, LEASE_NONE);
	inode_remember(fx.inode);
	begin(1, OP_OPEN, O_RDONLY);
	assert_int_equal(fx.went[1], 0);
	assert_nothing_sent();
	answer(call, 0);
	grant(take_lease(LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), LEASE_SHARED, 6);
	end(1);
	leave(6);
}

/* The mount is about to be alone again. */
static void forgotten__while_leases_are_held__stays(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	close_file();
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	lease_keep_hold(&fx.fs, true);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
	lease_keep_hold(&fx.fs, false);
	recall(5, LEASE_NONE);
	call = take_return(5, LEASE_NONE, RETURN_UNPIN);
	inode_remember(fx.inode);
	answer(call, 0);
}

/* It is alone then, and who has asked is gone. */
static void recall__while_leases_are_held__is_over_with_them(void **state)
{
	open_with(LEASE_SHARED, 5);
	close_file();
	lease_keep_hold(&fx.fs, true);
	recall(5, LEASE_NONE);
	lease_evict(inode_ref(fx.inode), &fx.thread);
	assert_nothing_sent();
	pthread_mutex_lock(&fx.inode->lock);
	lease_end_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	lease_keep_hold(&fx.fs, false);
	lease_settle(fx.inode, &fx.thread);
	lease_keep_flush(&fx.thread);
	assert_nothing_sent();
}

static void forgotten__with_something_to_commit__leaves_after_that(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	make_dirty();
	close_file();
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	lease_keep_flush(&fx.thread);
	answer(take_commit(), 0);
	lease_keep_flush(&fx.thread);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
	list_none_dirty();
	inode_remember(fx.inode);
	assert_true(is_left());
}

/* Before that none of its pages would be freed. */
static void close__of_a_file_without_a_name__returns_at_once(void **state)
{
	open_with(LEASE_SHARED, 5);
	fx.inode->attr.nlink = 0;
	close_and_return(5);
}

static void close__of_what_may_not_be_kept__returns_at_once(void **state)
{
	open_with(LEASE_SHARED, 5);
	fx.inode->lease->passing = true;
	close_and_return(5);
}

/* For a file whose last name we removed everything is returned at once, with the number from the
 * reply. */
static void close__of_one_that_was_unlinked_here__returns_it_all(void **state)
{
	open_with(LEASE_EXCLUSIVE, 5);
	inode_return_orphan(fx.inode, 5, &fx.thread);
	assert_nothing_sent();
	fx.inode->nopen--;
	lease_settle(fx.inode, &fx.thread);
	inode_return_settle(fx.inode, &fx.thread);
	assert_nothing_sent();
	assert_true(is_left());
	inode_return_flush(&fx.thread);
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), 0);
}

/* ---- too many -------------------------------------------------------------------------------- */

enum { FIRST = 1000 };

static struct inode *others[2 * LIMIT];

static void have_another(unsigned i)
{
	struct inode *inode = others[i] = inode_get(&fx.fs, FIRST + i);

	assert_non_null(inode);
	inode->type = S_IFREG;
	inode_remember(inode);
	pthread_mutex_lock(&inode->lock);
	inode->attr.nlink = 1;
	inode->lease_type = LEASE_SHARED;
	inode->lease_number = FIRST + i;
	lease_list_locked(inode, &fx.thread);
	pthread_mutex_unlock(&inode->lock);
}

/* Takes the next batch of inodes and answers it. */
static unsigned take_batch(uint64_t first)
{
	struct rpc_call *call = take(&fx.remote.rpc_waiting_reserved);
	struct rpc_returned r;
	struct wire_in in;
	unsigned n = 0;

	assert_non_null(call);
	in = rpc_tail_reader(&call->req.ret.tail);
	for (; rpc_get_returned(&in, &r); n++) {
		assert_int_equal(r.ino, first + n);
		assert_int_equal(r.number, first + n);
		assert_int_equal(r.keep, LEASE_NONE);
	}
	assert_false(in.truncated);
	answer(call, 0);
	return n;
}

static void drop_others(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		inode_forget(others[i], 1);
		lease_settle(others[i], &fx.thread);
	}
	lease_keep_flush(&fx.thread);
	while (!list_empty(&fx.remote.rpc_waiting_reserved))
		answer(take(&fx.remote.rpc_waiting_reserved), 0);
	assert_int_equal(fx.fs.leases->nlisted, 0);
	for (unsigned i = 0; i < n; i++)
		inode_put(others[i]);
}

static void too_many__those_leave_that_were_not_used(void **state)
{
	for (unsigned i = 0; i < LIMIT - 1; i++)
		have_another(i);
	run_calls();
	assert_nothing_sent();
	others[0]->lease->used = true;
	have_another(LIMIT - 1);
	run_calls();
	assert_true(take_batch(FIRST + 1) >= 2);
	assert_int_equal(others[0]->lease_type, LEASE_SHARED);
	assert_true(fx.fs.leases->nlisted < LIMIT);
	assert_nothing_sent();
	drop_others(LIMIT);
}

/* An open file's lease goes like any other; the file is then pinned. */
static void too_many__who_is_open_is_pinned_and_who_is_used_stays(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	begin(1, OP_READ, O_RDONLY);
	fx.inode->lease->used = false;
	for (unsigned i = 0; i < LIMIT - 1; i++)
		have_another(i);
	run_calls();
	call = take(&fx.remote.rpc_waiting_reserved);
	assert_non_null(call);
	answer(call, 0);
	assert_int_equal(fx.inode->lease_type, LEASE_SHARED);
	end(1);
	lease_keep_flush(&fx.thread);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	drop_others(LIMIT - 1);
	close_and_return(5);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void cancel__of_who_waits__leaves_no_lease_behind(void **state)
{
	struct rpc_call *call;

	open_with(LEASE_SHARED, 5);
	recall(5, LEASE_NONE);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), 0);
	begin(1, OP_WRITE, O_RDWR);
	call = take_lease(LEASE_EXCLUSIVE, 0);
	assert_true(op_cancel(&fx.ops[1], -EINTR));
	assert_int_equal(fx.went[1], -ECANCELED);
	close_file();
	assert_nothing_sent();
	grant(call, LEASE_EXCLUSIVE, 6);
	leave(6);
}

/* Takes the LEASE that is at the server. */
static struct rpc_call *sent_lease(void)
{
	struct rpc_call *call = take_lease(LEASE_EXCLUSIVE, 0);

	fx.remote.slots[0].call = call;
	return call;
}

static bool is_taken_back(void)
{
	return fx.remote.cancel_slots == 1;
}

static void cancel__of_the_last_who_waits__is_told_the_server(void **state)
{
	struct rpc_call *call;

	begin(0, OP_WRITE, O_RDWR);
	call = sent_lease();
	begin(1, OP_WRITE, O_RDWR);
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_false(is_taken_back());
	assert_true(op_cancel(&fx.ops[1], -EINTR));
	assert_true(is_taken_back());
	/* An operation that comes before the answer is not affected. */
	begin(2, OP_WRITE, O_RDWR);
	assert_nothing_sent();
	answer(call, -EINTR);
	assert_int_equal(fx.went[2], 0);
	grant(take_lease(LEASE_EXCLUSIVE, 0), LEASE_EXCLUSIVE, 6);
	end(2);
	leave(6);
}

static void lose_channel(void)
{
	slots_channel_lost(&fx.remote);
}

/* The calls in flight have reached the server again. */
static void come_back(void)
{
	fx.remote.unsent_slots = 0;
	slots_tick(&fx.remote);
}

static void cancel__while_the_server_is_away__is_told_when_it_is_back(void **state)
{
	struct rpc_call *call;

	begin(0, OP_WRITE, O_RDWR);
	call = sent_lease();
	lose_channel();
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_false(is_taken_back());
	come_back();
	assert_true(is_taken_back());
	answer(call, -EINTR);
	assert_nothing_sent();
	assert_true(is_left());
}

/* Before, the LEASE may not have come to wait at the server. */
static void cancel__of_what_is_not_answered__is_told_on_each_connection(void **state)
{
	struct rpc_call *call;

	begin(0, OP_WRITE, O_RDWR);
	call = sent_lease();
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	for (unsigned n = 0; n < 2; n++) {
		lose_channel();
		assert_false(is_taken_back());
		come_back();
		assert_true(is_taken_back());
	}
	answer(call, -EINTR);
	assert_true(is_left());
}

static void cancel__before_it_was_sent__sends_nothing(void **state)
{
	begin(0, OP_WRITE, O_RDWR);
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_nothing_sent();
	assert_true(is_left());
}

static void cancel__by_another_thread__is_the_askers(void **state)
{
	struct io_thread_private priv = {.wake_fd = -1};
	struct io_thread asker = {.fs = &fx.fs,
		.shared = &fx.fs.requests,
		.ops = &fs_fuse_ops,
		.priv = &priv,
		.remote = &fx.remote};
	struct rpc_call *call;

	pthread_mutex_init(&priv.inbox_lock, NULL);
	list_init(&priv.inbox);
	begin(0, OP_WRITE, O_RDWR);
	call = sent_lease();
	fx.inode->lease->thread = &asker;
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_false(is_taken_back());
	run_calls_of(&priv);
	assert_true(is_taken_back());
	fx.inode->lease->thread = &fx.thread;
	answer(call, -EINTR);
	assert_nothing_sent();
	assert_true(is_left());
}

static void session_lost__whoever_waits_is_told(void **state)
{
	open_with(LEASE_SHARED, 5);
	begin(1, OP_WRITE, O_RDWR);
	grant(take_lease(LEASE_EXCLUSIVE, LEASE_IF_FREE), LEASE_SHARED, 5);
	answer(take_return(5, LEASE_NONE, RETURN_PIN), -ESTALE);
	answer(take_lease(LEASE_EXCLUSIVE, 0), -ESTALE);
	assert_int_equal(fx.went[1], -ESTALE);
	assert_nothing_sent();
	close_file();
	answer(take_return(5, LEASE_NONE, RETURN_UNPIN), -ESTALE);
	assert_nothing_sent();
	assert_true(is_left());
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(open__brings_a_lease_that_is_kept),
		CASE(open__of_a_file_whose_lease_is_kept__asks_nothing),
		CASE(open__of_an_open_file_asks_nothing),
		CASE(open__where_another_writes__a_pin_alone),
		CASE(open__refused__says_so),
		CASE(close__while_it_is_opened_again__keeps_the_pin),
		CASE(open__behind_a_return__pins_anew),
		CASE(write__returns_what_it_read_under_first),
		CASE(write__of_what_nobody_else_reads__costs_one_lease),
		CASE(truncate__of_a_file_that_is_not_open__keeps_less),
		CASE(setattr__of_mode__needs_none),
		CASE(setattr__of_times__needs_the_file_alone),
		CASE(recall__idle__returned_at_once),
		CASE(recall__waits_for_its_users_and_keeps_new_ones_out),
		CASE(recall__of_a_writer__commits_first_and_may_go_on_reading),
		CASE(recall__of_what_the_server_does_not_take__forgets_it_and_returns),
		CASE(recall__before_its_grant__after_who_waited_for_it),
		CASE(recall__told_again__answered_once),
		CASE(recall__of_an_older_grant__is_none),
		CASE(recall__of_a_pin_s_number__returns_again),
		CASE(recall__of_a_number_that_is_to_come__returns_once),
		CASE(create__of_what_is_there_and_cut__waits_for_all),
		CASE(create__that_asks_again__leaves_no_pin),
		CASE(grant__behind_a_later_pin__keeps_its_number),
		CASE(rpc__that_waits_for_no_lease__has_slots_of_its_own),
		CASE(recall__of_an_unknown_inode__is_disclaimed),
		CASE(look__while_a_lease_is_disclaimed__is_not_believed),
		CASE(look__that_is_answered_before_the_disclaimer_is__gives_back_what_it_brings),
		CASE(create__brings_a_lease_that_is_kept),
		CASE(create__whose_lease_was_recalled_before__asks_anew),
		CASE(create__that_was_disclaimed__asks_anew),
		CASE(create__behind_what_came_later__changes_nothing),
		CASE(forgotten__and_looked_up_again__stays),
		CASE(forgotten__is_recalled_as_any_other),
		CASE(forgotten__is_recalled_when_it_has_left),
		CASE(forgotten__while_leases_are_held__stays),
		CASE(recall__while_leases_are_held__is_over_with_them),
		CASE(forgotten__with_something_to_commit__leaves_after_that),
		CASE(close__of_a_file_without_a_name__returns_at_once),
		CASE(close__of_what_may_not_be_kept__returns_at_once),
		CASE(close__of_one_that_was_unlinked_here__returns_it_all),
		CASE(too_many__those_leave_that_were_not_used),
		CASE(too_many__who_is_open_is_pinned_and_who_is_used_stays),
		CASE(cancel__of_who_waits__leaves_no_lease_behind),
		CASE(cancel__of_the_last_who_waits__is_told_the_server),
		CASE(cancel__while_the_server_is_away__is_told_when_it_is_back),
		CASE(cancel__of_what_is_not_answered__is_told_on_each_connection),
		CASE(cancel__before_it_was_sent__sends_nothing),
		CASE(cancel__by_another_thread__is_the_askers),
		CASE(session_lost__whoever_waits_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
