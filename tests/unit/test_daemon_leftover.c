/* Operations that go on after their callers' end: what they hold up, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <unistd.h>

#include "daemon/fs_internal.h"
#include "daemon/handle.h"
#include "daemon/io_thread_private.h"
#include "daemon/io_threads.h"
#include "daemon/op.h"
#include "daemon/remote_private.h"

enum {
	INO = 71,
	THREADS = 2,
	OPS = 3,
	BYTES = 4096,
	NOBODY = 0, /* no process has this number */
	UNIQUE = 100,
	AWAY_MS = 10,
	WAITS = INT32_MAX
};

/* Threads whose loops are the test's to turn, and whose remotes have no channel: what was sent
 * stays with them until the test answers. */
struct fixture {
	struct fs fs;
	struct session session;
	struct remote remotes[THREADS];
	struct io_threads *group;
	struct io_thread *threads[THREADS];
	struct inode *inode;
	struct handle handle;
	struct request ops[OPS];
	int kernel[2];
};

static struct fixture fx;

static void set_up_thread(unsigned i, const struct io_thread *any)
{
	struct io_thread *thread = fx.threads[i] = io_thread_sibling(any, i);
	struct fs_thread *ft = &fx.fs.threads[i];
	struct remote *r = &fx.remotes[i];

	thread->fs = &fx.fs;
	thread->remote = r;
	thread->priv->fuse_fd = fx.kernel[1];
	*r = (struct remote){.thread = thread, .session = &fx.session, .connect_ms = INT64_MAX};
	slots_init(r);
	transfers_init(r);
	r->nslots = 1;
	fx.session.remotes[i] = r;
	ft->thread = thread;
	ft->next_commit_ms = ft->next_idle_ms = INT64_MAX;
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	list_init(&ft->lock_waits);
	freeze_thread_init(&ft->freeze, thread);
	leftover_thread_init(&ft->leftover);
	renewal_thread_init(&ft->renewal);
}

/* Nobody is told of what has changed. */
static void set_up_notifier(struct notifier *n)
{
	list_init(&n->jobs);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->filled, NULL);
}

static int setup(void **state)
{
	struct spinning none = {0};
	struct io_thread_private of_group = {0};
	struct io_thread any = {.priv = &of_group};

	memset(&fx, 0, sizeof(fx));
	if (inode_table_init(&fx.fs.inodes) || pipe2(fx.kernel, O_NONBLOCK) ||
		io_threads_new(THREADS, 1, &none, &fx.group))
		return -1;
	of_group.group = fx.group;
	fx.fs.session = &fx.session;
	fx.fs.options.sharing = fx.session.sharing = true;
	fx.fs.options.io_threads = fx.session.nchannels = THREADS;
	pthread_mutex_init(&fx.session.lock, NULL);
	grants_init(&fx.fs.grants);
	returns_init(&fx.fs.returns);
	lease_keeper_init(&fx.fs.leases);
	locks_init(&fx.fs.locks);
	freeze_init(&fx.fs.freeze, &fx.fs);
	expiries_init(&fx.fs.expiries);
	remount_init(&fx.fs.remount, false);
	renewal_init(&fx.fs.renewal, NULL);
	set_up_notifier(&fx.fs.notifier);
	set_up_notifier(&fx.fs.expirer);
	for (unsigned i = 0; i < THREADS; i++)
		set_up_thread(i, &any);
	for (unsigned i = 0; i < OPS; i++)
		list_init(&fx.ops[i].all);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	inode_remember(fx.inode);
	fx.handle.inode = fx.inode;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fx.fs.nleftovers, 0);
	assert_int_equal(fx.inode->refs, 2);
	inode_forget(fx.inode, 1);
	inode_put(fx.inode);
	renewal_fini(&fx.fs.renewal);
	remount_fini(&fx.fs.remount);
	expiries_fini(&fx.fs.expiries);
	freeze_fini(&fx.fs.freeze);
	locks_fini(&fx.fs.locks);
	lease_keeper_fini(&fx.fs.leases);
	returns_fini(&fx.fs.returns);
	grants_fini(&fx.fs.grants);
	io_threads_delete(fx.group);
	inode_table_fini(&fx.fs.inodes);
	close(fx.kernel[0]);
	close(fx.kernel[1]);
	return 0;
}

/* ---- the loops ------------------------------------------------------------------------------- */

static void turn(unsigned i)
{
	struct list *link;

	while ((link = list_pop(&fx.threads[i]->priv->inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
}

static void tick(unsigned i)
{
	fs_tick(fx.threads[i], 0);
	turn(i);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct request *make(unsigned i, unsigned thread, enum request_op op)
{
	struct request *req = &fx.ops[i];

	list_del(&req->all);
	*req = (struct request){.thread = fx.threads[thread],
		.op = op,
		.node = INO,
		.pid = NOBODY,
		.unique = UNIQUE + i};
	req->args.name = "name";
	list_init(&req->link);
	list_add_tail(&req->thread->priv->used_requests, &req->all);
	req->thread->priv->nused++;
	return req;
}

static void append(unsigned i, unsigned thread, uint64_t offset)
{
	struct request *req = make(i, thread, OP_WRITE);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	req->args.flags = O_WRONLY | O_APPEND;
	req->args.offset = offset;
	req->args.size = BYTES;
	fs_dispatch(req);
}

/* What its caller was told; WAITS: nothing. */
static int told(unsigned i)
{
	struct fuse_out_header h;

	if (read(fx.kernel[0], &h, sizeof(h)) < 0)
		return WAITS;
	assert_int_equal(h.unique, UNIQUE + i);
	return h.error;
}

/* ---- the server ------------------------------------------------------------------------------ */

static void ended(struct request *req, const struct rpc_reply *rep)
{
	op_finish(req, rep->status);
}

/* It is on its way when this returns. */
static struct request *send_op(unsigned i, enum request_op op, enum rpc_op rpc,
	void (*then)(struct request *req, const struct rpc_reply *rep))
{
	struct request *req = make(i, 0, op);
	struct remote *r = &fx.remotes[0];

	op_begin(req)->call.req.op = rpc;
	op_rpc(req, then);
	assert_ptr_equal(list_pop(&r->rpc_waiting), &op_of(req)->call.link);
	op_of(req)->call.sent = true;
	r->slots[0].call = &op_of(req)->call;
	return req;
}

static void answer(struct request *req, int status)
{
	struct rpc_call *call = &op_of(req)->call;

	fx.remotes[0].slots[0].call = NULL;
	fx.remotes[0].cancel_slots = 0;
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
}

static void lose(void)
{
	slots_channel_lost(&fx.remotes[0]);
	fx.remotes[0].missed = true;
}

/* What was on its way is there again. */
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
	fs_interrupt(req);
	assert_int_equal(told(0), -EINTR);
	assert_int_equal(fx.fs.nleftovers, 1);
	tick(0);
	assert_false(is_withdrawn());
	come_back();
	tick(0);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
	assert_int_equal(told(0), WAITS);
}

/* The same as often as it takes: the server may go again. */
static void leftover__is_withdrawn_on_each_connection(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	fs_interrupt(req);
	for (unsigned n = 0; n < 3; n++) {
		come_back();
		tick(0);
		assert_true(is_withdrawn());
		lose();
	}
	answer(req, 0);
	assert_int_equal(told(0), -EINTR);
}

static void leftover__of_a_soft_mount__is_withdrawn_when_the_server_is_back(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	fx.session.soft_ms = AWAY_MS;
	fx.remotes[0].mute_ms = AWAY_MS;
	tick(0);
	assert_int_equal(told(0), -EIO);
	assert_int_equal(fx.fs.nleftovers, 1);
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
	fs_interrupt(req);
	come_back();
	answer(req, 0);
	assert_int_equal(op_of(req)->wait, OP_AT_LEASE);
	tick(0);
	assert_int_equal(fx.fs.nleftovers, 0);
	assert_int_equal(told(0), -EINTR);
}

/* It is no leftover, since it changes nothing, but has a slot. */
static void abandoned__is_withdrawn_on_each_connection(void **state)
{
	struct request *req = send_op(0, OP_GETATTR, RPC_GETATTR, ended);

	fs_interrupt(req);
	assert_int_equal(told(0), -EINTR);
	assert_true(is_withdrawn());
	lose();
	tick(0);
	assert_int_equal(fx.fs.nleftovers, 0);
	assert_false(is_withdrawn());
	come_back();
	tick(0);
	assert_true(is_withdrawn());
	answer(req, -EINTR);
}

/* ---- what waits for it ----------------------------------------------------------------------- */

/* The second thread is the first to see that it is over. */
static void appends__that_were_held__keep_their_order(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	fs_interrupt(req);
	assert_int_equal(told(0), -EINTR);
	append(1, 0, 0);
	append(2, 1, BYTES);
	assert_int_equal(op_of(&fx.ops[1])->wait, OP_AT_LEFTOVERS);
	assert_int_equal(op_of(&fx.ops[2])->wait, OP_AT_LEFTOVERS);
	come_back();
	answer(req, 0);
	turn(1);
	assert_int_equal(op_of(&fx.ops[2])->wait, OP_AT_APPEND);
	turn(0);
	assert_int_equal(op_of(&fx.ops[1])->wait, OP_AT_LEASE);
	assert_true(op_cancel(&fx.ops[1], -EINTR));
	assert_int_equal(told(1), -EINTR);
	turn(1);
	assert_int_equal(op_of(&fx.ops[2])->wait, OP_AT_LEASE);
	assert_true(op_cancel(&fx.ops[2], -EINTR));
	assert_int_equal(told(2), -EINTR);
}

static void append__that_is_taken_back_while_it_is_held__leaves_its_place(void **state)
{
	struct request *req = send_op(0, OP_UNLINK, RPC_UNLINK, ended);

	lose();
	fs_interrupt(req);
	assert_int_equal(told(0), -EINTR);
	append(1, 0, 0);
	append(2, 1, BYTES);
	assert_true(op_cancel(&fx.ops[1], -EINTR));
	assert_int_equal(told(1), -EINTR);
	come_back();
	answer(req, 0);
	turn(1);
	assert_int_equal(op_of(&fx.ops[2])->wait, OP_AT_LEASE);
	assert_true(op_cancel(&fx.ops[2], -EINTR));
	assert_int_equal(told(2), -EINTR);
	turn(0);
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
		CASE(append__that_is_taken_back_while_it_is_held__leaves_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
