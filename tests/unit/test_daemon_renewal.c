/* When the server has ended the session: when it is forgotten, what is held meanwhile, and who is
 * told.
 */
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
#include "daemon/op.h"
#include "daemon/remote_private.h"

enum {
	INO = 71,
	THREADS = 2,
	OPS = 3,
	OLD = 7,
	NEW = 8,
	QUOTAS = 5,
	UNIQUE = 100,
	WAITS = INT32_MAX
};

/* Threads whose loops are the test's to turn, and whose remotes have ended. */
struct fixture {
	struct fs fs;
	struct session session;
	struct remote remotes[THREADS];
	struct io_thread threads[THREADS];
	struct io_thread_private privs[THREADS];
	struct inode *inode;
	struct handle handle;
	struct request ops[OPS];
	int began[OPS]; /* 1: it did, -errno: it was taken back, 0: it is held */
	int kernel[2];
};

static struct fixture fx;

static void begin(struct request *req, int status)
{
	fx.began[req - fx.ops] = status ? status : 1;
}

static void set_up_thread(unsigned i)
{
	struct fs_thread *ft = &fx.fs.threads[i];
	struct io_thread_private *priv = &fx.privs[i];

	fx.threads[i] = (struct io_thread){
		.index = i, .fs = &fx.fs, .priv = priv, .remote = &fx.remotes[i]};
	pthread_mutex_init(&priv->inbox_lock, NULL);
	list_init(&priv->inbox);
	list_init(&priv->free_requests);
	list_init(&priv->used_requests);
	priv->wake_fd = -1;
	priv->fuse_fd = fx.kernel[1];
	fx.remotes[i].thread = &fx.threads[i];
	fx.remotes[i].session = &fx.session;
	slots_init(&fx.remotes[i]);
	transfers_init(&fx.remotes[i]);
	fx.session.remotes[i] = &fx.remotes[i];
	ft->thread = &fx.threads[i];
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	list_init(&ft->lock_waits);
	freeze_thread_init(&ft->freeze, &fx.threads[i]);
	renewal_thread_init(&ft->renewal);
}

static int setup(void **state)
{
	memset(&fx, 0, sizeof(fx));
	if (inode_table_init(&fx.fs.inodes) || pipe2(fx.kernel, O_NONBLOCK) ||
		notifier_start(&fx.fs.dropper))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.options.sharing = fx.session.sharing = true;
	fx.fs.options.io_threads = fx.session.nchannels = THREADS;
	fx.session.id = OLD;
	pthread_mutex_init(&fx.session.lock, NULL);
	grants_init(&fx.fs.grants);
	allowances_init(&fx.fs.allowances);
	returns_init(&fx.fs.returns);
	lease_keeper_init(&fx.fs.leases);
	freeze_init(&fx.fs.freeze, &fx.fs);
	remount_init(&fx.fs.remount, false);
	renewal_init(&fx.fs.renewal, begin);
	for (unsigned i = 0; i < THREADS; i++)
		set_up_thread(i);
	for (unsigned i = 0; i < OPS; i++)
		list_init(&fx.ops[i].all);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	fx.handle.inode = fx.inode;
	renewal_handle_opened(&fx.fs, &fx.handle);
	return 0;
}

static int teardown(void **state)
{
	notifier_stop(&fx.fs.dropper);
	inode_put(fx.inode);
	renewal_fini(&fx.fs.renewal);
	remount_fini(&fx.fs.remount);
	freeze_fini(&fx.fs.freeze);
	lease_keeper_fini(&fx.fs.leases);
	returns_fini(&fx.fs.returns);
	allowances_fini(&fx.fs.allowances);
	grants_fini(&fx.fs.grants);
	inode_table_fini(&fx.fs.inodes);
	close(fx.kernel[0]);
	close(fx.kernel[1]);
	return 0;
}

/* ---- the loops ------------------------------------------------------------------------------- */

static void turn(unsigned i)
{
	struct list *link;

	while ((link = list_pop(&fx.privs[i].inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
	renewal_step(&fx.threads[i]);
}

static void turn_all(void)
{
	for (unsigned n = 0; n < 3; n++)
		for (unsigned i = 0; i < THREADS; i++)
			turn(i);
}

static void end_session(void)
{
	fx.session.ended = true;
}

static bool is_forgotten(void)
{
	return fx.session.ended_id == OLD;
}

/* All threads are idle, and there is another one. */
static void renew(void)
{
	turn_all();
	assert_true(is_forgotten());
	fx.session.id = NEW;
	turn_all();
	assert_false(renewal_is_running(&fx.fs.renewal));
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct request *make(unsigned i, enum request_op op)
{
	struct request *req = &fx.ops[i];

	list_del(&req->all);
	*req = (struct request){
		.thread = &fx.threads[i % THREADS], .op = op, .node = INO, .unique = UNIQUE + i};
	list_init(&req->link);
	list_init(&req->all);
	list_add_tail(&req->thread->priv->used_requests, &req->all);
	fx.began[i] = 0;
	return req;
}

static struct request *make_by_handle(unsigned i, enum request_op op)
{
	struct request *req = make(i, op);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	return req;
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

/* ---- cases ----------------------------------------------------------------------------------- */

static void renewal__is_when_all_threads_are_idle(void **state)
{
	struct request *req = make(1, OP_WRITE);

	turn_all();
	assert_false(renewal_is_running(&fx.fs.renewal));
	op_of(req)->wait = OP_RUNS; /* a transfer that has begun, for one */
	end_session();
	turn_all();
	assert_true(renewal_is_running(&fx.fs.renewal));
	assert_false(is_forgotten());
	list_del(&req->all);
	turn_all();
	assert_true(is_forgotten());
	turn_all();
	assert_true(renewal_is_running(&fx.fs.renewal));
	fx.session.id = NEW;
	turn_all();
	assert_false(renewal_is_running(&fx.fs.renewal));
}

static void renewal__holds_what_comes_meanwhile(void **state)
{
	end_session();
	turn(0);
	assert_false(renewal_enter(make(0, OP_LOOKUP)));
	assert_false(renewal_enter(make(1, OP_UNLINK)));
	assert_false(renewal_enter(make(2, OP_LOOKUP)));
	assert_true(op_cancel(&fx.ops[2], -EINTR));
	assert_int_equal(fx.began[2], -ECANCELED);
	list_del(&fx.ops[2].all);
	renew();
	assert_int_equal(fx.began[0], 1);
	assert_int_equal(fx.began[1], 1);
	assert_int_equal(told(0), WAITS);
	assert_true(renewal_enter(make(2, OP_LOOKUP)));
}

static void handle__of_the_old_session_fails_once(void **state)
{
	end_session();
	renew();
	assert_false(renewal_enter(make_by_handle(0, OP_READ)));
	assert_int_equal(told(0), -EIO);
	assert_true(renewal_enter(make_by_handle(1, OP_READ)));
}

/* The kernel asks for attributes by any handle, and closes it whatever it is told. */
static void handle__of_the_old_session_is_good_for_what_is_no_data(void **state)
{
	end_session();
	renew();
	assert_true(renewal_enter(make_by_handle(0, OP_GETATTR)));
	assert_true(renewal_enter(make_by_handle(1, OP_FLUSH)));
	assert_true(renewal_enter(make_by_handle(2, OP_RELEASE)));
}

static void handle__that_had_a_lock_fails_for_good(void **state)
{
	fx.handle.unlocked = true;
	for (unsigned n = 0; n < 2; n++) {
		assert_false(renewal_enter(make_by_handle(0, OP_WRITE)));
		assert_int_equal(told(0), -EIO);
	}
}

static void append__by_a_handle_of_the_old_session__leaves_its_place(void **state)
{
	struct request *req;

	end_session();
	renew();
	req = make_by_handle(0, OP_WRITE);
	req->args.flags = O_WRONLY | O_APPEND;
	append_queue(req);
	assert_false(list_empty(&fx.inode->appends.waiting));
	assert_false(renewal_enter(req));
	assert_int_equal(told(0), -EIO);
	assert_true(list_empty(&fx.inode->appends.waiting));
}

/* Nobody who reads a page waits: what is to end may wait for the page. */
static void read__for_the_cache_fails_while_the_session_ends(void **state)
{
	struct request *req = make_by_handle(0, OP_READ);

	req->args.cached = true;
	end_session();
	turn(0);
	list_del(&req->all);
	renewal_handle_opened(&fx.fs, &fx.handle);
	assert_false(renewal_enter(req));
	assert_int_equal(told(0), -EIO);
}

static void error__of_the_end_begins_anew_what_changed_nothing(void **state)
{
	int error = -ESTALE;

	end_session();
	assert_true(renewal_takes_back(make(0, OP_LOOKUP), &error));
	error = -EIO;
	op_of(make(1, OP_UNLINK))->changing = true;
	assert_false(renewal_takes_back(&fx.ops[1], &error));
	assert_int_equal(error, -EIO);
	list_del(&fx.ops[1].all);
	error = -ENOENT;
	assert_false(renewal_takes_back(make(1, OP_LOOKUP), &error));
	assert_int_equal(error, -ENOENT);
	list_del(&fx.ops[1].all);
	error = -ESTALE;
	assert_false(renewal_takes_back(make_by_handle(1, OP_WRITE), &error));
	assert_int_equal(error, -EIO);
	list_del(&fx.ops[1].all);
	renew();
	assert_int_equal(fx.began[0], 1);
}

/* ---- beside other things --------------------------------------------------------------------- */

static void quotas__what_was_reserved_is_not_had_any_more(void **state)
{
	fx.session.quotas = QUOTAS;
	fx.inode->share = (struct share){.npages = 100, .user = true, .epoch = QUOTAS};
	pthread_mutex_lock(&fx.inode->lock);
	assert_int_equal(allowance_ready_locked(fx.inode, 10), 10);
	pthread_mutex_unlock(&fx.inode->lock);
	end_session();
	renew();
	pthread_mutex_lock(&fx.inode->lock);
	assert_int_equal(allowance_ready_locked(fx.inode, 10), 0);
	/* Nor given back. */
	allowance_return_locked(fx.inode);
	assert_int_equal(allowance_ready_locked(fx.inode, 10), 0);
	pthread_mutex_unlock(&fx.inode->lock);
}

static void resumed(struct request *req, int status)
{
	fx.began[req - fx.ops] = status;
	list_del(&req->all);
}

static void snapshot__holds_up_no_renewal(void **state)
{
	struct request *req = make(0, OP_WRITE);

	fx.fs.threads[0].freeze.id = 1;
	assert_false(freeze_enter(req, resumed));
	end_session();
	renew();
	assert_int_equal(fx.began[0], -ECANCELED);
}

/* It goes on in the other session. */
static void remount__waits_for_the_end_of_a_renewal(void **state)
{
	struct request *req = make(0, OP_REMOUNT);

	op_of(req)->wait = OP_AT_REMOUNT;
	end_session();
	renew();
	assert_int_equal(op_of(req)->wait, OP_AT_REMOUNT);
	assert_int_equal(told(0), WAITS);
}

/* RMDIR by a thread whose kernel knows the name to be that directory's. */
static int remove_directory(struct look_change *change, int status)
{
	const struct attr attr = {.ino = INO, .mode = S_IFDIR | 0755};
	struct request *req = make(0, OP_RMDIR);

	req->pid = 1;
	req->args.name = "name";
	look_up_shown(req, fx.inode, fx.inode, &attr);
	look_change_begin(req, fx.inode, req->args.name, LOOK_ENDS, change);
	assert_int_equal(change->expected.ino, INO);
	status = look_change_status(req, change, status);
	look_change_end_unknown(req, change);
	return status;
}

/* That the server has refused the name once is known when the operation begins anew, and that its
 * session has ended is no refusal. */
static void name__that_was_refused__is_so_in_the_other_session(void **state)
{
	struct look_change change;

	assert_int_equal(looks_init(&fx.fs.looks), 0);
	end_session();
	assert_int_equal(remove_directory(&change, -ESTALE), -ESTALE);
	fx.session.ended = false;
	assert_int_equal(remove_directory(&change, -ESTALE), -ESTALE);
	assert_false(change.again);
	end_session();
	assert_int_equal(remove_directory(&change, -ESTALE), -ESTALE);
	assert_true(change.again);
	fx.session.ended = false;
	assert_int_equal(remove_directory(&change, -ESTALE), -EBUSY);
	assert_true(change.again);
	assert_int_equal(remove_directory(&change, 0), 0);
	assert_false(change.again);
	looks_fini(&fx.fs.looks);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(renewal__is_when_all_threads_are_idle),
		CASE(renewal__holds_what_comes_meanwhile),
		CASE(handle__of_the_old_session_fails_once),
		CASE(handle__of_the_old_session_is_good_for_what_is_no_data),
		CASE(handle__that_had_a_lock_fails_for_good),
		CASE(append__by_a_handle_of_the_old_session__leaves_its_place),
		CASE(read__for_the_cache_fails_while_the_session_ends),
		CASE(error__of_the_end_begins_anew_what_changed_nothing),
		CASE(quotas__what_was_reserved_is_not_had_any_more),
		CASE(snapshot__holds_up_no_renewal),
		CASE(remount__waits_for_the_end_of_a_renewal),
		CASE(name__that_was_refused__is_so_in_the_other_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
