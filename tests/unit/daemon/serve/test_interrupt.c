/* Signals to callers that can be seen, and to others: the waits that they end, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/op_inode.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/interrupt.h"
#include "daemon/serve/way.h"

enum { WAITS = FIXTURE_WAITS, UNSEEN = 0, READ_AT_MS = 500, WAIT_MS = 3000 };
enum {
	NOTE_MS = 200,
	UNTOLD_MS = 500,
	SIGNALLED_AT_MS = 1000,
	OVER_MS = SIGNALLED_AT_MS + WAIT_MS
};

static struct fs_fixture fx;

static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.requests.interrupt_wait_ms = WAIT_MS;
	fx.threads[0]->priv->now = READ_AT_MS;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fx.fs.abandoned->n, 0);
	assert_int_equal(fx.inode->refs, 2);
	fs_fixture_fini(&fx);
	return 0;
}

/* Thread 0's turn at that time. */
static void tick_at(int64_t now)
{
	fx.threads[0]->priv->now = now;
	fs_tick(fx.threads[0], now);
	fs_fixture_turn(&fx, 0);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void ended(struct request *req, const struct rpc_reply *rep)
{
	op_finish(req, rep->status);
}

/* The call is in flight when this returns. */
static struct request *send_it(struct request *req, enum rpc_op rpc, uint32_t pid)
{
	struct remote *r = &fx.remotes[0];
	struct list *link;

	req->pid = pid;
	req->process = pid == FIXTURE_ENDED ? FIXTURE_ENDED_PROCESS : 0;
	op_begin(req)->call.req.op = rpc;
	op_rpc(req, ended);
	link = list_pop(&r->rpc_waiting);
	if (!link)
		link = list_pop(&r->rpc_waiting_nested);
	assert_ptr_equal(link, &op_of(req)->call.link);
	op_of(req)->call.sent = true;
	r->slots[0].call = &op_of(req)->call;
	r->free_slots = 0;
	return req;
}

static struct request *send_op(enum request_op op, enum rpc_op rpc, uint32_t pid)
{
	return send_it(fs_fixture_make(&fx, 0, 0, op), rpc, pid);
}

/* cached: for the page cache, or from it. */
static struct request *send_io(enum request_op op, bool cached, uint32_t pid)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, op);

	req->args.cached = cached;
	return send_it(req, RPC_GETATTR, pid);
}

static void answer(struct request *req, int status)
{
	struct rpc_call *call = &op_of(req)->call;
	struct remote *r = &fx.remotes[0];

	r->slots[0].call = NULL;
	r->free_slots = 1;
	r->unsent_slots = r->unwanted_slots = r->cancel_slots = 0;
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
}

static void lose(void)
{
	slots_channel_lost(&fx.remotes[0]);
	fx.remotes[0].missed = true;
}

static void come_back(void)
{
	fx.remotes[0].unsent_slots = 0;
	fx.remotes[0].missed = false;
}

static bool is_withdrawn(void)
{
	return fx.remotes[0].cancel_slots == 1;
}

static void interrupt_at(struct request *req, int64_t now)
{
	fx.threads[0]->priv->now = now;
	interrupt_request(req);
}

/* ---- without the server ---------------------------------------------------------------------- */

static void interrupt__of_one_that_is_killed__ends_its_wait_at_once(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, FIXTURE_ENDED);

	lose();
	interrupt_at(req, SIGNALLED_AT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	answer(req, 0);
}

static void interrupt__of_one_that_lives__never_ends_its_wait(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, (uint32_t)getpid());

	lose();
	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(10 * OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void interrupt__of_an_unseen_one__ends_its_wait_later(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, UNSEEN);

	lose();
	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(OVER_MS - 1);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	tick_at(OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	assert_int_equal(fx.fs.abandoned->n, 1);
	answer(req, 0);
}

static void interrupt__of_an_unseen_one__counts_from_the_first_signal(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, UNSEEN);

	interrupt_at(req, SIGNALLED_AT_MS);
	lose();
	interrupt_at(req, SIGNALLED_AT_MS + 1);
	tick_at(OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	answer(req, 0);
}

static void interrupt__of_an_unseen_one__ends_nothing_when_the_server_is_back(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, UNSEEN);

	lose();
	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(OVER_MS - 1);
	come_back();
	answer(req, 0);
	tick_at(OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void wait__of_an_unseen_one__without_a_signal__never_ends(void **state)
{
	struct request *req = send_op(OP_FSYNC, RPC_GETATTR, UNSEEN);

	op_watch(req);
	lose();
	tick_at(10 * OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* Files of a process that exits are closed without a signal. */
static void flush__of_an_unseen_one__ends_later(void **state)
{
	struct request *req = send_op(OP_FLUSH, RPC_GETATTR, UNSEEN);

	lose();
	tick_at(READ_AT_MS + WAIT_MS - 1);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	tick_at(READ_AT_MS + WAIT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	answer(req, 0);
}

/* So does asynchronous direct I/O wait. */
static void assert_ends_untold(enum request_op op)
{
	struct request *req = send_io(op, false, FIXTURE_ENDED);

	lose();
	tick_at(READ_AT_MS + UNTOLD_MS - 1);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	tick_at(READ_AT_MS + UNTOLD_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	answer(req, 0);
}

static void direct_read__of_one_that_is_killed__ends_without_a_signal(void **state)
{
	assert_ends_untold(OP_READ);
}

static void direct_write__of_one_that_is_killed__ends_without_a_signal(void **state)
{
	assert_ends_untold(OP_WRITE);
}

static void assert_waits(struct request *req)
{
	lose();
	tick_at(10 * OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void direct_read__of_one_that_lives__never_ends(void **state)
{
	assert_waits(send_io(OP_READ, false, (uint32_t)getpid()));
}

static void direct_read__of_an_unseen_one__never_ends(void **state)
{
	assert_waits(send_io(OP_READ, false, UNSEEN));
}

/* Its thread was there when the connection was lost, and has ended since. */
static void direct_read__of_a_thread_that_ends__never_ends(void **state)
{
	struct request *req = send_io(OP_READ, false, (uint32_t)getpid());

	lose();
	tick_at(READ_AT_MS + 1);
	assert_int_equal(req->process, getpid());
	req->pid = FIXTURE_ENDED;
	tick_at(10 * OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* While the server answers, /proc is not read for each request. */
static void direct_read__is_looked_at_late_while_the_server_answers(void **state)
{
	struct request *req = send_io(OP_READ, false, (uint32_t)getpid());

	tick_at(READ_AT_MS + NOTE_MS - 1);
	assert_int_equal(req->process, 0);
	tick_at(READ_AT_MS + NOTE_MS);
	assert_int_equal(req->process, getpid());
	answer(req, 0);
}

/* Others may wait for the page. */
static void read_for_the_cache__of_one_that_is_killed__waits_for_a_signal(void **state)
{
	assert_waits(send_io(OP_READ, true, FIXTURE_ENDED));
}

/* A program's leftovers end before the next run of it begins: its end is the answer. */
static void held__behind_what_an_unseen_one_has_left__waits_for_its_end(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, UNSEEN), *next;

	lose();
	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	next = fs_fixture_make(&fx, 1, 0, OP_LOOKUP);
	next->pid = UNSEEN;
	way_barrier(next);
	assert_int_equal(op_of(next)->wait, OP_AT_ABANDONED);
	interrupt_at(next, OVER_MS + SIGNALLED_AT_MS);
	tick_at(OVER_MS + OVER_MS - 1);
	assert_int_equal(fs_fixture_told(&fx, 1), WAITS);
	tick_at(OVER_MS + OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 1), -EINTR);
	answer(req, 0);
}

/* A program that was killed closes its files. */
static void close_held_at_conversion(uint64_t owner)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_FLUSH);

	req->args.has_fh = true;
	req->args.fh = (uint64_t)(uintptr_t)&fx.handle;
	req->args.lock_owner = owner;
	req->pid = FIXTURE_ENDED;
	req->process = FIXTURE_ENDED_PROCESS;
	fx.fs.options.session.converts = true;
	atomic_store(&fx.fs.conversion->phase, CONVERSION_DRAINS);
	way_barrier(req);
	assert_int_equal(op_of(req)->wait, OP_AT_CONVERSION);
}

static void held__close_of_one_that_is_killed__ends(void **state)
{
	close_held_at_conversion(5);
	tick_at(SIGNALLED_AT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	atomic_store(&fx.fs.conversion->phase, CONVERSION_NONE);
}

/* Else its locks would stay for as long as another process has the file open by that handle. */
static void held__close_that_gives_up_locks__waits(void **state)
{
	struct lock_owner *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	*o = (struct lock_owner){.kernel = 5, .number = 1, .kind = LOCK_KIND_POSIX, .has = true};
	list_add_tail(&fx.inode->locks->owners, &o->link);
	close_held_at_conversion(5);
	tick_at(SIGNALLED_AT_MS);
	tick_at(SIGNALLED_AT_MS + WAIT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	lose();
	tick_at(SIGNALLED_AT_MS + 2 * WAIT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	come_back();
	atomic_store(&fx.fs.conversion->phase, CONVERSION_NONE);
	list_del(&o->link);
	free(o);
}

/* ---- with the server ------------------------------------------------------------------------- */

static void interrupt__of_an_unseen_one_that_waits_for_others__ends_its_wait_later(void **state)
{
	struct request *req = send_op(OP_GETATTR, RPC_GETATTR, UNSEEN);

	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(OVER_MS - 1);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	assert_false(is_withdrawn());
	tick_at(OVER_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
}

/* A change has happened or has not: the caller waits for the answer. */
static void interrupt__of_an_unseen_one_that_changes_something__takes_it_back_later(void **state)
{
	struct request *req = send_op(OP_UNLINK, RPC_UNLINK, UNSEEN);

	interrupt_at(req, SIGNALLED_AT_MS);
	tick_at(OVER_MS - 1);
	assert_false(is_withdrawn());
	tick_at(OVER_MS);
	assert_true(is_withdrawn());
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	answer(req, -EINTR);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
}

/* Else bytes would be lost that the caller was promised. */
static void write__that_was_acknowledged__is_not_taken_back(void **state)
{
	struct request *req = send_io(OP_WRITE, false, FIXTURE_ENDED);

	op_of(req)->acked = true;
	req->replied = true;
	tick_at(READ_AT_MS + UNTOLD_MS);
	assert_false(is_withdrawn());
	op_of(req)->acked = req->replied = false;
	tick_at(READ_AT_MS + UNTOLD_MS);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
}

/* No signal has come, and no other client is waited for. */
static void statfs__that_takes_its_time__is_answered(void **state)
{
	struct request *req = send_op(OP_STATFS, RPC_STATFS, (uint32_t)getpid());

	op_watch(req);
	tick_at(SIGNALLED_AT_MS);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	assert_false(is_withdrawn());
	answer(req, 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(interrupt__of_one_that_is_killed__ends_its_wait_at_once),
		CASE(interrupt__of_one_that_lives__never_ends_its_wait),
		CASE(interrupt__of_an_unseen_one__ends_its_wait_later),
		CASE(interrupt__of_an_unseen_one__counts_from_the_first_signal),
		CASE(interrupt__of_an_unseen_one__ends_nothing_when_the_server_is_back),
		CASE(wait__of_an_unseen_one__without_a_signal__never_ends),
		CASE(flush__of_an_unseen_one__ends_later),
		CASE(direct_read__of_one_that_is_killed__ends_without_a_signal),
		CASE(direct_write__of_one_that_is_killed__ends_without_a_signal),
		CASE(direct_read__of_one_that_lives__never_ends),
		CASE(direct_read__of_an_unseen_one__never_ends),
		CASE(direct_read__of_a_thread_that_ends__never_ends),
		CASE(direct_read__is_looked_at_late_while_the_server_answers),
		CASE(read_for_the_cache__of_one_that_is_killed__waits_for_a_signal),
		CASE(held__behind_what_an_unseen_one_has_left__waits_for_its_end),
		CASE(interrupt__of_an_unseen_one_that_waits_for_others__ends_its_wait_later),
		CASE(interrupt__of_an_unseen_one_that_changes_something__takes_it_back_later),
		CASE(write__that_was_acknowledged__is_not_taken_back),
		CASE(held__close_of_one_that_is_killed__ends),
		CASE(held__close_that_gives_up_locks__waits),
		CASE(statfs__that_takes_its_time__is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
