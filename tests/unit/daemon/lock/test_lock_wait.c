/* Waits for locks: the requests to the server and their repetition, the effect of a signal, the
 * owners of locks, and what a close gives up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/remote/remote_private.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_register.h"
#include "daemon/file/inode_return.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/serve/fs_block.h"
#include "daemon/lease/lease.h"
#include "daemon/file/op_inode.h"
#include "daemon/serve/fs.h"
#include "daemon/remote/session.h"

enum { INO = 71, OWNER = 9, OPS = 5, HANDLES = 2, UNIQUE = 100, NOBODY = INT32_MAX };

/* One thread, whose remote sends nothing: calls stay with it until the test answers.
 */
struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct remote remote;
	struct io_thread thread;
	struct io_thread_private priv;
	struct inode *inode;
	struct handle handles[HANDLES];
	struct request ops[OPS];
	int kernel[2];
};

static struct fixture fx;
static int caller;         /* a process's number */
static uint64_t at_server; /* the owner of the last LOCK that was sent */

static int setup(void **state)
{
	struct fs_thread *ft = &fx.fs.threads[0];

	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks) || pipe2(fx.kernel, O_NONBLOCK))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.requests.sharing = true;
	fx.fs.sharing = true;
	fx.session.sharing = true;
	fx.fs.options.session.io_threads = 1;
	locks_init(fx.fs.locks);
	grants_init(fx.fs.grants);
	quota_allowance_init(fx.fs.allowances);
	inode_return_init(fx.fs.returns);
	fx.thread = (struct io_thread){.fs = &fx.fs,
		.shared = &fx.fs.requests,
		.ops = &fs_fuse_ops,
		.priv = &fx.priv,
		.remote = &fx.remote};
	pthread_mutex_init(&fx.priv.inbox_lock, NULL);
	list_init(&fx.priv.inbox);
	list_init(&fx.priv.free_requests);
	list_init(&fx.priv.used_requests);
	fx.priv.wake_fd = -1;
	fx.priv.fuse_fd = fx.kernel[1];
	fx.remote.thread = &fx.thread;
	fx.remote.session = &fx.session;
	slots_init(&fx.remote);
	ft->thread = &fx.thread;
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	list_init(&ft->lock_waits);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	inode_remember(fx.inode);
	for (unsigned i = 0; i < HANDLES; i++)
		fx.handles[i].inode = fx.inode;
	caller = getpid();
	return 0;
}

static int teardown(void **state)
{
	assert_true(list_empty(&fx.fs.threads[0].lock_waits));
	assert_true(list_empty(&fx.fs.locks->waits));
	assert_true(list_empty(&fx.priv.inbox));
	assert_true(list_empty(&fx.inode->locks->leaving));
	inode_forget(fx.inode, 1);
	inode_put(fx.inode);
	inode_table_fini(fx.fs.inodes);
	inode_return_fini(fx.fs.returns);
	quota_allowance_fini(fx.fs.allowances);
	grants_fini(fx.fs.grants);
	locks_fini(fx.fs.locks);
	close(fx.kernel[0]);
	close(fx.kernel[1]);
	return 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct request *make(unsigned i, enum request_op op)
{
	struct request *req = &fx.ops[i];

	*req = (struct request){.thread = &fx.thread,
		.op = op,
		.node = INO,
		.unique = UNIQUE + i,
		.pid = (uint32_t)caller};
	list_init(&req->link);
	list_init(&req->all);
	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handles[0]);
	req->args.lock_owner = OWNER;
	req->args.lock.kind = LOCK_KIND_POSIX;
	req->args.lock.type = LOCK_EXCLUSIVE;
	req->args.lock.end = 99;
	return req;
}

static void lock(unsigned i)
{
	op_setlk(make(i, OP_SETLK));
}

/* By flock(2) through either handle; the kernel gives both the same owner. */
static void whole(unsigned i, unsigned handle, bool wait)
{
	struct request *req = make(i, OP_SETLK);

	req->args.fh = handle_number(&fx.handles[handle]);
	req->args.lock.kind = LOCK_KIND_FLOCK;
	req->args.lock.wait = wait;
	op_setlk(req);
}

static void await(unsigned i)
{
	struct request *req = make(i, OP_SETLK);

	req->args.lock.wait = true;
	op_setlk(req);
}

static void assert_not_told(void)
{
	struct fuse_out_header h;

	assert_int_equal(read(fx.kernel[0], &h, sizeof(h)), -1);
}

static void assert_told(unsigned i, int error)
{
	struct fuse_out_header h;

	assert_int_equal(read(fx.kernel[0], &h, sizeof(h)), sizeof(h));
	assert_int_equal(h.unique, UNIQUE + i);
	assert_int_equal(h.error, error);
	assert_not_told();
}

static void signal_caller(unsigned i)
{
	assert_true(lock_interrupt(&fx.thread, UNIQUE + i));
}

static void run_calls(void)
{
	struct list *link;

	while ((link = list_pop(&fx.priv.inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
}

/* ---- the server ------------------------------------------------------------------------------ */

static struct rpc_call *take_any(void)
{
	struct list *link = list_pop(&fx.remote.rpc_waiting_nested);

	if (!link)
		link = list_pop(&fx.remote.rpc_waiting);
	return link ? list_entry(link, struct rpc_call, link) : NULL;
}

/* Sends the next call, which must be this; from then on it can't be taken back. */
static struct rpc_call *take(uint8_t type, bool waits)
{
	struct rpc_call *call = take_any();

	assert_non_null(call);
	call->sent = true;
	assert_int_equal(call->req.op, RPC_LOCK);
	assert_int_equal(call->req.lock.ino, INO);
	assert_true(call->req.lock.owner);
	at_server = call->req.lock.owner;
	assert_int_equal(call->req.lock.type, type);
	assert_int_equal(call->req.lock.wait != 0, waits);
	return call;
}

static void assert_nothing_sent(void)
{
	assert_null(take_any());
}

static void answer(struct rpc_call *call, int status)
{
	call->done(call, &(struct rpc_reply){.op = RPC_LOCK, .status = status});
	run_calls();
}

static void get_lock(unsigned i)
{
	lock(i);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_told(i, 0);
}

static uint64_t note(unsigned i)
{
	struct rpc_call *call;
	uint64_t number;

	await(i);
	call = take(LOCK_EXCLUSIVE, true);
	number = call->req.lock.wait;
	answer(call, -EINPROGRESS);
	assert_not_told();
	assert_nothing_sent();
	return number;
}

static void tell_of(uint64_t number)
{
	struct rpc_recall recall = {INO, number, RECALL_LOCKS};
	uint8_t tail[RPC_RECALL_BYTES];
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	rpc_put_recall(&w, &recall);
	fs_session_events.news(&fx.thread, &(struct rpc_tail){.data = tail, .len = sizeof(tail)});
	run_calls();
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait__free__answered(void **state)
{
	await(0);
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(0, 0);
}

static void wait__told__asks_again_by_the_same_number(void **state)
{
	uint64_t one = note(0), two = note(1);
	struct rpc_call *call;

	assert_true(one != two);
	tell_of(two);
	call = take(LOCK_EXCLUSIVE, true);
	assert_int_equal(call->req.lock.wait, two);
	assert_nothing_sent();
	answer(call, 0);
	assert_told(1, 0);
	tell_of(two); /* it was in flight */
	assert_nothing_sent();
	tell_of(one);
	answer(take(LOCK_EXCLUSIVE, true), -EINPROGRESS);
	assert_not_told();
	tell_of(one);
	answer(take(LOCK_EXCLUSIVE, true), -EDEADLK);
	assert_told(0, -EDEADLK);
}

/* The news may come through another channel. */
static void wait__told_before_it_is_answered__asks_again(void **state)
{
	struct rpc_call *call;

	await(0);
	call = take(LOCK_EXCLUSIVE, true);
	tell_of(call->req.lock.wait);
	assert_nothing_sent();
	answer(call, -EINPROGRESS);
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(0, 0);
}

static void wait__server_started_again__asks_again(void **state)
{
	note(0);
	note(1);
	lock_look_at_all(&fx.thread);
	run_calls();
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(0, 0);
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(1, 0);
}

static void wait__session_lost__says_so(void **state)
{
	note(0);
	atomic_store(&fx.session.lost, true);
	lock_tick(&fx.thread);
	assert_told(0, -ESTALE);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void signal__withdraws_first(void **state)
{
	uint64_t number = note(0);
	struct rpc_call *call;

	signal_caller(0);
	assert_not_told();
	call = take(LOCK_FREE, true);
	assert_int_equal(call->req.lock.wait, number);
	tell_of(number);
	assert_nothing_sent();
	answer(call, 0);
	assert_told(0, -EINTR);
	assert_false(lock_interrupt(&fx.thread, UNIQUE));
}

static void signal__before_it_was_sent__at_once(void **state)
{
	await(0);
	signal_caller(0);
	assert_told(0, -EINTR);
	assert_nothing_sent();
}

static void signal__while_it_is_on_its_way__waits_for_the_answer(void **state)
{
	struct rpc_call *call;

	await(0);
	call = take(LOCK_EXCLUSIVE, true);
	signal_caller(0);
	assert_not_told();
	answer(call, 0);
	assert_told(0, 0);
	await(1);
	call = take(LOCK_EXCLUSIVE, true);
	signal_caller(1);
	answer(call, -EINPROGRESS);
	answer(take(LOCK_FREE, true), 0);
	assert_told(1, -EINTR);
}

static void signal__without_the_server__at_once(void **state)
{
	struct rpc_call *call;

	note(0);
	fx.remote.missed = true;
	signal_caller(0);
	assert_told(0, -EINTR);
	call = take(LOCK_FREE, true);
	lock_tick(&fx.thread);
	assert_nothing_sent();
	answer(call, 0);
	assert_not_told();
}

static void signal__that_kills__does_not_wait_for_the_answer(void **state)
{
	struct rpc_call *call;

	await(0);
	call = take(LOCK_EXCLUSIVE, true);
	fx.remote.missed = true;
	signal_caller(0);
	assert_not_told();
	answer(call, 0);
	assert_told(0, 0);
	caller = NOBODY;
	await(1);
	call = take(LOCK_EXCLUSIVE, true);
	signal_caller(1);
	assert_told(1, -EINTR);
	/* The lock was granted, but nobody waits for it. */
	answer(call, 0);
	answer(take(LOCK_FREE, false), 0);
	assert_not_told();
}

/* A caught signal ends a wait for a lock as well, so nothing is lost if it is one. */
static void signal__of_who_cannot_be_seen__does_not_wait_for_the_answer(void **state)
{
	struct rpc_call *call;

	fx.fs.requests.interrupt_wait_ms = 30000;
	caller = 0;
	await(0);
	call = take(LOCK_EXCLUSIVE, true);
	fx.remote.missed = true;
	signal_caller(0);
	assert_told(0, -EINTR);
	answer(call, 0);
	answer(take(LOCK_FREE, false), 0);
	assert_not_told();
}

/* ---- closing --------------------------------------------------------------------------------- */

static void flushed(struct request *req, int status)
{
	fx.ops[OPS - 1].taken_back = status ? status : 1;
}

static void flush(unsigned i)
{
	struct request *req = make(i, OP_FLUSH);

	fx.ops[OPS - 1].taken_back = 0;
	op_begin(req);
	if (lock_flush(req, flushed))
		flushed(req, 0);
}

static void release(unsigned i)
{
	lock_handle_closed(make(i, OP_RELEASE), fx.inode, &fx.handles[0]);
}

static void flush__gives_up_what_its_owner_may_have(void **state)
{
	struct rpc_call *call;

	flush(0);
	assert_nothing_sent();
	assert_int_equal(fx.ops[OPS - 1].taken_back, 1);
	op_end(&fx.ops[0]);
	lock(1);
	answer(take(LOCK_EXCLUSIVE, false), -EAGAIN);
	assert_told(1, -EAGAIN);
	flush(0);
	assert_nothing_sent();
	op_end(&fx.ops[0]);
	get_lock(1);
	flush(0);
	assert_int_equal(fx.ops[OPS - 1].taken_back, 0);
	call = take(LOCK_FREE, false);
	assert_true(call->req.lock.end == LOCK_END_MAX);
	answer(call, 0);
	assert_int_equal(fx.ops[OPS - 1].taken_back, 1);
	op_end(&fx.ops[0]);
	flush(0);
	assert_nothing_sent();
	op_end(&fx.ops[0]);
}

/* Another thread of the process closes the file. Then the process still gets the lock. */
static void flush__before_it_is_answered__remembers_the_owner(void **state)
{
	struct rpc_call *call;
	uint64_t number;

	lock(1);
	call = take(LOCK_EXCLUSIVE, false);
	flush(0);
	assert_nothing_sent();
	op_end(&fx.ops[0]);
	answer(call, 0);
	assert_told(1, 0);
	flush(0);
	answer(take(LOCK_FREE, false), 0);
	op_end(&fx.ops[0]);

	number = note(2);
	flush(0);
	assert_nothing_sent();
	op_end(&fx.ops[0]);
	tell_of(number);
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(2, 0);
	flush(0);
	answer(take(LOCK_FREE, false), 0);
	op_end(&fx.ops[0]);
}

/* The closing process may be killed; the lock goes all the same. */
static void flush__taken_back__goes_on_by_itself(void **state)
{
	get_lock(1);
	flush(0);
	assert_true(op_cancel(&fx.ops[0], -EINTR));
	assert_int_equal(fx.ops[OPS - 1].taken_back, -ECANCELED);
	op_end(&fx.ops[0]);
	answer(take(LOCK_FREE, false), 0);
}

static void release__gives_up_what_is_the_handles(void **state)
{
	struct rpc_call *call;

	get_lock(1);
	whole(2, 0, false);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_told(2, 0);
	release(0);
	call = take(LOCK_FREE, false);
	assert_int_equal(call->req.lock.kind, LOCK_KIND_POSIX);
	answer(call, 0);
	call = take(LOCK_FREE, false);
	assert_int_equal(call->req.lock.kind, LOCK_KIND_FLOCK);
	answer(call, 0);
	assert_nothing_sent();
}

/* The kernel gives another file the owner of a closed one, before it sends the close. */
static void release__late__is_of_no_other_file(void **state)
{
	struct rpc_call *call;
	uint64_t first;

	whole(1, 0, false);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_told(1, 0);
	first = at_server;
	whole(2, 1, true);
	call = take(LOCK_EXCLUSIVE, true);
	assert_true(at_server != first);
	release(0);
	answer(take(LOCK_FREE, false), 0);
	assert_true(at_server == first);
	answer(call, 0);
	assert_told(2, 0);
	assert_nothing_sent();
}

static void flush__owner_is_another_afterwards(void **state)
{
	struct rpc_call *call;
	uint64_t first;

	get_lock(1);
	first = at_server;
	get_lock(1);
	assert_true(at_server == first);
	flush(0);
	call = take(LOCK_FREE, false);
	assert_true(at_server == first);
	await(1);
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(1, 0);
	assert_true(at_server != first);
	answer(call, 0);
	op_end(&fx.ops[0]);
}

static void unlock__of_who_has_nothing__is_nothing(void **state)
{
	struct request *req = make(0, OP_SETLK);

	req->args.lock.type = LOCK_FREE;
	op_setlk(req);
	assert_told(0, 0);
	assert_nothing_sent();
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Threads overtake each other: all locks of earlier closes must have gone. */
static void try__comes_after_what_was_closed_before(void **state)
{
	struct rpc_call *first, *second;

	get_lock(1);
	whole(2, 0, false);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_told(2, 0);
	release(0);
	first = take(LOCK_FREE, false);
	second = take(LOCK_FREE, false);
	lock(1);
	op_getlk(make(2, OP_GETLK));
	assert_nothing_sent();
	answer(second, 0);
	assert_nothing_sent();
	answer(first, 0);
	answer(take(LOCK_EXCLUSIVE, false), -EAGAIN);
	assert_told(1, -EAGAIN);
	first = take_any();
	assert_int_equal(first->req.op, RPC_GETLK);
	assert_true(first->req.lock.owner == at_server);
	answer(first, -EIO);
	assert_told(2, -EIO);
}

static void try__taken_back_before_it_was_sent(void **state)
{
	struct rpc_call *call;

	get_lock(1);
	release(0);
	call = take(LOCK_FREE, false);
	lock(2);
	assert_nothing_sent();
	assert_true(op_cancel(&fx.ops[2], -EINTR));
	assert_told(2, -EINTR);
	answer(call, 0);
	assert_nothing_sent();
}

static void try__comes_after_a_wait_whose_caller_was_killed(void **state)
{
	struct rpc_call *call;

	caller = NOBODY;
	await(1);
	call = take(LOCK_EXCLUSIVE, true);
	fx.remote.missed = true;
	signal_caller(1);
	assert_told(1, -EINTR);
	fx.remote.missed = false;
	lock(2);
	assert_nothing_sent();
	answer(call, 0);
	call = take(LOCK_FREE, false);
	assert_nothing_sent();
	answer(call, 0);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_told(2, 0);
}

/* Its caller was told that it failed. */
static void lock__granted_to_nobody__is_given_up(void **state)
{
	struct rpc_call *call;

	lock(0);
	call = take(LOCK_EXCLUSIVE, false);
	request_abandon(&fx.ops[0], -EINTR);
	assert_told(0, -EINTR);
	answer(call, 0);
	call = take(LOCK_FREE, false);
	assert_int_equal(call->req.lock.end, 99);
	answer(call, 0);
	assert_not_told();
}

/* ---- a mount that is alone ------------------------------------------------------------------- */

static void be_alone(void)
{
	fx.fs.options.session.converts = true;
	fx.fs.sharing = fx.session.sharing = false;
	local_locks_adopt(&fx.fs, true);
}

static void await_as_other(unsigned i)
{
	struct request *req = make(i, OP_SETLK);

	req->args.lock.wait = true;
	req->args.lock_owner = OWNER + 1;
	op_setlk(req);
}

static void alone__locks_and_waits__send_nothing(void **state)
{
	be_alone();
	lock(0);
	assert_told(0, 0);
	await_as_other(1);
	assert_not_told();
	flush(2);
	op_end(&fx.ops[2]);
	run_calls();
	assert_told(1, 0);
	lock(0);
	assert_told(0, -EAGAIN);
	release(3);
	lock(0);
	assert_told(0, 0);
	assert_nothing_sent();
	release(3);
}

static void alone__signal__ends_the_wait_at_once(void **state)
{
	be_alone();
	lock(0);
	assert_told(0, 0);
	await_as_other(1);
	signal_caller(1);
	assert_told(1, -EINTR);
	flush(2);
	op_end(&fx.ops[2]);
	run_calls();
	assert_not_told();
	assert_nothing_sent();
}

static void alone__session_lost__ends_the_wait(void **state)
{
	be_alone();
	lock(0);
	assert_told(0, 0);
	await_as_other(1);
	atomic_store(&fx.session.lost, true);
	lock_tick(&fx.thread);
	assert_told(1, -ESTALE);
	lock(0);
	assert_told(0, -ESTALE);
	release(3);
}

static void share(void)
{
	fx.fs.sharing = fx.session.sharing = true;
}

static void register__then_the_wait_asks_the_server(void **state)
{
	struct rpc_call *call;

	be_alone();
	lock(0);
	assert_told(0, 0);
	await_as_other(1);
	assert_int_equal(lock_register_all(&fx.fs), 1);
	call = take(LOCK_EXCLUSIVE, false);
	assert_int_equal(call->req.lock.end, 99);
	assert_int_equal(call->req.lock.kind, LOCK_KIND_POSIX);
	assert_nothing_sent();
	answer(call, 0);
	assert_int_equal(lock_register_all(&fx.fs), 0);
	assert_nothing_sent();
	share();
	lock_register_end(&fx.fs);
	run_calls();
	answer(take(LOCK_EXCLUSIVE, true), -EINPROGRESS);
	assert_not_told();
	flush(2);
	answer(take(LOCK_FREE, false), 0);
	op_end(&fx.ops[2]);
	lock_look_at_all(&fx.thread);
	run_calls();
	answer(take(LOCK_EXCLUSIVE, true), 0);
	assert_told(1, 0);
	assert_false(atomic_load(&fx.handles[0].unlocked));
}

static void register__signal__the_wait_does_not_come_to_the_server(void **state)
{
	be_alone();
	lock(0);
	assert_told(0, 0);
	await_as_other(1);
	assert_int_equal(lock_register_all(&fx.fs), 1);
	signal_caller(1);
	assert_told(1, -EINTR);
	answer(take(LOCK_EXCLUSIVE, false), 0);
	assert_int_equal(lock_register_all(&fx.fs), 0);
	lock_register_end(&fx.fs);
	run_calls();
	assert_nothing_sent();
}

/* The handle is of no use any more, and its close gives up what the server may have. */
static void register__refused__its_handle_is_unlocked(void **state)
{
	be_alone();
	lock(0);
	assert_told(0, 0);
	assert_int_equal(lock_register_all(&fx.fs), 1);
	answer(take(LOCK_EXCLUSIVE, false), -ENOLCK);
	assert_true(atomic_load(&fx.handles[0].unlocked));
	assert_int_equal(lock_register_all(&fx.fs), 0);
	share();
	lock_register_end(&fx.fs);
	release(3);
	answer(take(LOCK_FREE, false), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(wait__free__answered),
		CASE(wait__told__asks_again_by_the_same_number),
		CASE(wait__told_before_it_is_answered__asks_again),
		CASE(wait__server_started_again__asks_again),
		CASE(wait__session_lost__says_so),
		CASE(signal__withdraws_first),
		CASE(signal__before_it_was_sent__at_once),
		CASE(signal__while_it_is_on_its_way__waits_for_the_answer),
		CASE(signal__without_the_server__at_once),
		CASE(signal__that_kills__does_not_wait_for_the_answer),
		CASE(signal__of_who_cannot_be_seen__does_not_wait_for_the_answer),
		CASE(flush__gives_up_what_its_owner_may_have),
		CASE(flush__before_it_is_answered__remembers_the_owner),
		CASE(flush__taken_back__goes_on_by_itself),
		CASE(flush__owner_is_another_afterwards),
		CASE(release__gives_up_what_is_the_handles),
		CASE(release__late__is_of_no_other_file),
		CASE(unlock__of_who_has_nothing__is_nothing),
		CASE(try__comes_after_what_was_closed_before),
		CASE(try__taken_back_before_it_was_sent),
		CASE(try__comes_after_a_wait_whose_caller_was_killed),
		CASE(lock__granted_to_nobody__is_given_up),
		CASE(alone__locks_and_waits__send_nothing),
		CASE(alone__signal__ends_the_wait_at_once),
		CASE(alone__session_lost__ends_the_wait),
		CASE(register__then_the_wait_asks_the_server),
		CASE(register__signal__the_wait_does_not_come_to_the_server),
		CASE(register__refused__its_handle_is_unlocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
