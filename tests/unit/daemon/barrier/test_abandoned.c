/* Operations that go on after their callers got an answer: the requests that they hold up, and for
 * how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/barrier/abandoned.h"
#include "daemon/file/op_inode.h"
#include "daemon/lease/lease.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/interrupt.h"
#include "daemon/serve/way.h"

enum { BYTES = 4096, VALUE_BYTES = 100, AWAY_MS = 10, WAITS = FIXTURE_WAITS };

static struct fs_fixture fx;

static int setup(void **state)
{
	return fs_fixture_init(&fx);
}

static int teardown(void **state)
{
	assert_int_equal(fx.fs.abandoned->n, 0);
	assert_int_equal(fx.inode->refs, 2);
	fs_fixture_fini(&fx);
	return 0;
}

/* ---- the loops ------------------------------------------------------------------------------- */

static void tick(unsigned i)
{
	fs_tick(fx.threads[i], 0);
	fs_fixture_turn(&fx, i);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void append(unsigned i, unsigned thread, uint64_t offset)
{
	struct request *req = fs_fixture_make(&fx, i, thread, OP_WRITE);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	req->args.flags = O_WRONLY | O_APPEND;
	req->args.offset = offset;
	req->args.size = BYTES;
	way_barrier(req);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void ended(struct request *req, const struct rpc_reply *rep)
{
	op_finish(req, rep->status);
}

/* The call is in flight when this returns. */
static struct request *send_op(unsigned i, enum request_op op, enum rpc_op rpc,
	void (*then)(struct request *req, const struct rpc_reply *rep))
{
	struct request *req = fs_fixture_make(&fx, i, 0, op);
	struct remote *r = &fx.remotes[0];

	op_begin(req)->call.req.op = rpc;
	op_rpc(req, then);
	assert_ptr_equal(list_pop(&r->rpc_waiting), &op_of(req)->call.link);
	op_of(req)->call.sent = true;
	r->slots[0].call = &op_of(req)->call;
	r->free_slots = 0;
	return req;
}

static void answer(struct request *req, int status)
{
	struct rpc_call *call = &op_of(req)->call;

	fx.remotes[0].slots[0].call = NULL;
	fx.remotes[0].free_slots = 1;
	fx.remotes[0].unsent_slots = 0;
	fx.remotes[0].unwanted_slots = fx.remotes[0].cancel_slots = 0;
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
}

static void lose(void)
{
	slots_channel_lost(&fx.remotes[0]);
	fx.remotes[0].missed = true;
}

/* The calls in flight have reached the server again. */
static void come_back(void)
{
	fx.remotes[0].unsent_slots = 0;
	fx.remotes[0].missed = false;
}

static bool is_withdrawn(void)
{
	return fx.remotes[0].cancel_slots == 1;
}

/* ---- what goes on ---------------------------------------------------------------------------- */

static void leftover__that_may_wait_for_others__is_withdrawn_when_the_server_is_back(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	assert_int_equal(fx.fs.abandoned->n, 1);
	tick(0);
	assert_false(is_withdrawn());
	come_back();
	tick(0);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
}

/* Again on each connection, since the server may go again. */
static void leftover__is_withdrawn_on_each_connection(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	interrupt_request(req);
	for (unsigned n = 0; n < 3; n++) {
		come_back();
		tick(0);
		assert_true(is_withdrawn());
		lose();
	}
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
}

static void leftover__of_a_soft_mount__is_withdrawn_when_the_server_is_back(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	fx.session.soft_ms = AWAY_MS;
	fx.remotes[0].mute_ms = AWAY_MS;
	tick(0);
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_int_equal(fx.fs.abandoned->n, 1);
	fx.session.soft_ms = 0;
	come_back();
	tick(0);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
}

static void lease_taken(struct request *req, int status)
{
	op_finish(req, status);
}

static void take_file(struct request *req, const struct rpc_reply *rep)
{
	assert_false(lease_take(req, op_of(req)->inode, LEASE_EXCLUSIVE, lease_taken));
}

static void leftover__that_comes_to_wait_for_a_lease__ends(void **state)
{
	struct request *req = send_op(0, OP_WRITE, RPC_SETATTR, take_file);

	lose();
	interrupt_request(req);
	come_back();
	answer(req, 0);
	assert_int_equal(op_of(req)->wait, OP_AT_LEASE);
	tick(0);
	assert_int_equal(fx.fs.abandoned->n, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
}

/* It changes nothing, so it is no leftover, but it has a slot. */
static void abandoned__is_withdrawn_on_each_connection(void **state)
{
	struct request *req = send_op(0, OP_GETATTR, RPC_GETATTR, ended);

	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	assert_true(is_withdrawn());
	lose();
	tick(0);
	assert_int_equal(fx.fs.abandoned->n, 0);
	assert_false(is_withdrawn());
	come_back();
	tick(0);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
}

/* ---- what waits for it ----------------------------------------------------------------------- */

/* The second thread is the first to see that the barrier is over. */
static void appends__that_were_held__keep_their_order(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	append(1, 0, 0);
	append(2, 1, BYTES);
	assert_int_equal(op_of(fx.requests[1])->wait, OP_AT_ABANDONED);
	assert_int_equal(op_of(fx.requests[2])->wait, OP_AT_ABANDONED);
	come_back();
	answer(req, 0);
	fs_fixture_turn(&fx, 1);
	assert_int_equal(op_of(fx.requests[2])->wait, OP_AT_APPEND);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(op_of(fx.requests[1])->wait, OP_AT_LEASE);
	assert_true(op_cancel(fx.requests[1], -EINTR));
	assert_int_equal(fs_fixture_told(&fx, 1), -EINTR);
	fs_fixture_turn(&fx, 1);
	assert_int_equal(op_of(fx.requests[2])->wait, OP_AT_LEASE);
	assert_true(op_cancel(fx.requests[2], -EINTR));
	assert_int_equal(fs_fixture_told(&fx, 2), -EINTR);
}

static struct data_buffer *free_buffer(unsigned thread)
{
	struct list *free = &fx.threads[thread]->priv->free_buffers;

	return list_empty(free) ? NULL : list_entry(free->next, struct data_buffer, link);
}

static void take_buffer(struct request *req)
{
	struct data_buffer *buf = free_buffer(req->thread->index);

	assert_non_null(buf);
	list_del(&buf->link);
	req->buf = buf;
}

/* The operation that goes on, or one behind it, may need them. */
static void write__that_is_held__keeps_neither_buffer_nor_request(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended), *held;
	struct data_buffer *buf;
	unsigned nused = fx.threads[0]->priv->nused;

	lose();
	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	held = fs_fixture_make(&fx, 1, 0, OP_WRITE);
	held->args.has_fh = true;
	held->args.fh = handle_number(&fx.handle);
	held->args.size = BYTES;
	take_buffer(held);
	buf = held->buf;
	memset(buf->data, 'x', BYTES);
	way_barrier(held);
	assert_int_equal(op_of(held)->wait, OP_AT_ABANDONED);
	assert_ptr_equal(free_buffer(0), buf);
	assert_int_equal(fx.threads[0]->priv->nused, nused);
	memset(buf->data, 'y', BYTES);
	come_back();
	answer(req, 0);
	fs_fixture_turn(&fx, 0);
	assert_int_equal(op_of(held)->wait, OP_AT_LEASE);
	assert_int_equal(held->stowed[0], 'x');
	assert_int_equal(held->stowed[BYTES - 1], 'x');
	assert_true(op_cancel(held, -EINTR));
	assert_int_equal(fs_fixture_told(&fx, 1), -EINTR);
}

/* Its name and value were in the buffer, which other requests have used meanwhile. */
static void setxattr__that_was_held__sets_what_it_was_given(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended), *held;
	struct remote *r = &fx.remotes[0];
	struct data_buffer *buf;
	struct rpc_call *call;

	lose();
	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	held = fs_fixture_make(&fx, 1, 0, OP_SETXATTR);
	take_buffer(held);
	buf = held->buf;
	memset(buf->data, 'x', VALUE_BYTES);
	held->args.value = buf->data;
	held->args.size = VALUE_BYTES;
	held->args.name = strcpy((char *)buf->data + VALUE_BYTES, "user.name");
	way_barrier(held);
	assert_int_equal(op_of(held)->wait, OP_AT_ABANDONED);
	assert_null(held->buf);
	memset(buf->data, 'y', BYTES);
	come_back();
	answer(req, 0);
	fs_fixture_turn(&fx, 0);
	call = &op_of(held)->call;
	assert_ptr_equal(list_pop(&r->rpc_waiting), &call->link);
	assert_int_equal(call->req.op, RPC_SETXATTR);
	assert_memory_equal(call->req.setxattr.name.s, "user.name", strlen("user.name"));
	assert_int_equal(call->req.setxattr.tail.len, VALUE_BYTES);
	for (unsigned i = 0; i < VALUE_BYTES; i++)
		assert_int_equal(((const uint8_t *)call->req.setxattr.tail.data)[i], 'x');
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = -EPERM});
	assert_int_equal(fs_fixture_told(&fx, 1), -EPERM);
}

static void append__that_is_taken_back_while_it_is_held__leaves_its_place(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	interrupt_request(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	append(1, 0, 0);
	append(2, 1, BYTES);
	assert_true(op_cancel(fx.requests[1], -EINTR));
	assert_int_equal(fs_fixture_told(&fx, 1), -EINTR);
	come_back();
	answer(req, 0);
	fs_fixture_turn(&fx, 1);
	assert_int_equal(op_of(fx.requests[2])->wait, OP_AT_LEASE);
	assert_true(op_cancel(fx.requests[2], -EINTR));
	assert_int_equal(fs_fixture_told(&fx, 2), -EINTR);
	fs_fixture_turn(&fx, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(leftover__that_may_wait_for_others__is_withdrawn_when_the_server_is_back),
		CASE(leftover__is_withdrawn_on_each_connection),
		CASE(leftover__of_a_soft_mount__is_withdrawn_when_the_server_is_back),
		CASE(leftover__that_comes_to_wait_for_a_lease__ends),
		CASE(abandoned__is_withdrawn_on_each_connection),
		CASE(appends__that_were_held__keep_their_order),
		CASE(write__that_is_held__keeps_neither_buffer_nor_request),
		CASE(setxattr__that_was_held__sets_what_it_was_given),
		CASE(append__that_is_taken_back_while_it_is_held__leaves_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
