/* When the server has ended the session: when the client forgets it, which requests are held
 * meanwhile, and which callers get an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/lease/local_answer.h"
#include "daemon/ops/statfs.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/lease/append_order.h"
#include "daemon/ops/finish.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/way.h"

enum { OLD = 7, NEW = 8, QUOTAS = 5, AWAY_MS = 1000, WAITS = FIXTURE_WAITS };

static struct fs_fixture fx;
/* For each request. 1: it began, -errno: it was taken back, 0: it is held. */
static int began[FIXTURE_REQUESTS];

static void begin(struct request *req, int status)
{
	began[req->unique - 1] = status ? status : 1;
	if (status == -EIO)
		op_refuse(req, status);
}

static int setup(void **state)
{
	if (fs_fixture_init(&fx) || notifier_start(&fx.fs.dropper))
		return -1;
	fx.session.id = OLD;
	fx.fs.renewal->begin = begin;
	session_renewal_handle_opened(&fx.fs, &fx.handle);
	return 0;
}

static int teardown(void **state)
{
	notifier_stop(&fx.fs.dropper);
	fs_fixture_fini(&fx);
	return 0;
}

/* ---- the loops ------------------------------------------------------------------------------- */

static void turn(unsigned i)
{
	fs_fixture_turn(&fx, i);
	session_renewal_step(fx.threads[i]);
}

static void turn_all(void)
{
	for (unsigned n = 0; n < 3; n++)
		for (unsigned i = 0; i < FIXTURE_THREADS; i++)
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

/* All threads become idle, and another session begins. */
static void renew(void)
{
	turn_all();
	assert_true(is_forgotten());
	fx.session.id = NEW;
	turn_all();
	assert_false(fs_is_renewing(&fx.fs));
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct request *make(unsigned i, enum request_op op)
{
	began[i] = 0;
	return fs_fixture_make(&fx, i, i % FIXTURE_THREADS, op);
}

static struct request *make_by_handle(unsigned i, enum request_op op)
{
	struct request *req = make(i, op);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	return req;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void renewal__is_when_all_threads_are_idle(void **state)
{
	struct request *req = make(1, OP_WRITE);

	turn_all();
	assert_false(fs_is_renewing(&fx.fs));
	op_of(req)->wait = OP_RUNS; /* for example a transfer that has begun */
	end_session();
	turn_all();
	assert_true(fs_is_renewing(&fx.fs));
	assert_false(is_forgotten());
	request_end(req);
	turn_all();
	assert_true(is_forgotten());
	turn_all();
	assert_true(fs_is_renewing(&fx.fs));
	fx.session.id = NEW;
	turn_all();
	assert_false(fs_is_renewing(&fx.fs));
}

/* On a soft mount: no held request has an inode yet. */
static void renewal__without_a_server__ends_what_is_held(void **state)
{
	struct request *req = make_by_handle(0, OP_FLUSH);

	end_session();
	turn(0);
	fx.session.soft_ms = AWAY_MS;
	fx.remotes[0].mute_ms = AWAY_MS;
	way_barrier(req);
	assert_int_equal(began[0], -ECANCELED);
	assert_int_equal(req->taken_back, -EIO);
	request_end(req);
}

/* Else the file would stay open for good. */
static void renewal__without_a_server__keeps_what_closes(void **state)
{
	struct request *req = make_by_handle(0, OP_RELEASE);

	end_session();
	turn(0);
	fx.session.soft_ms = AWAY_MS;
	fx.remotes[0].mute_ms = AWAY_MS;
	way_barrier(req);
	assert_int_equal(began[0], 0);
	renew();
	assert_int_equal(began[0], 1);
	request_end(req);
}

static void assert_told_of_100_blocks(void)
{
	struct {
		struct fuse_out_header head;
		struct fuse_statfs_out out;
	} told;

	assert_int_equal(read(fx.kernel[0], &told, sizeof(told)), sizeof(told));
	assert_int_equal(told.head.error, 0);
	assert_int_equal(told.out.st.blocks, 100);
}

/* umount(8) sends it first. It gets the last known numbers, also if it was in flight. */
static void renewal__answers_statfs_meanwhile(void **state)
{
	struct request *sent = make(0, OP_STATFS);
	struct rpc_call *call = &op_of(sent)->call;

	fx.fs.statfs->last = (struct statfs_values){.blocks = 100, .bfree = 7};
	way_barrier(sent);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	list_del(&call->link);
	end_session();
	call->done(call, &(struct rpc_reply){.op = RPC_STATFS, .status = -ESTALE});
	assert_told_of_100_blocks();
	turn(0);
	way_barrier(make(0, OP_STATFS));
	assert_told_of_100_blocks();
}

static void renewal__holds_what_comes_meanwhile(void **state)
{
	end_session();
	turn(0);
	assert_false(session_renewal_enter(make(0, OP_LOOKUP)));
	assert_false(session_renewal_enter(make(1, OP_UNLINK)));
	assert_false(session_renewal_enter(make(2, OP_LOOKUP)));
	assert_true(op_cancel(fx.requests[2], -EINTR));
	assert_int_equal(began[2], -ECANCELED);
	request_end(fx.requests[2]);
	renew();
	assert_int_equal(began[0], 1);
	assert_int_equal(began[1], 1);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	assert_true(session_renewal_enter(make(2, OP_LOOKUP)));
}

static void append_behind(unsigned i, uint64_t offset)
{
	struct request *req = make_by_handle(i, OP_WRITE);

	req->args.flags = O_WRONLY | O_APPEND;
	req->args.offset = offset;
	append_order_queue(req);
	assert_false(append_order_enter(req, op_refuse));
}

/* A parked message gets no room before the renewal is over. */
static void renewal__does_not_wait_for_what_is_parked_before_an_append(void **state)
{
	struct io_thread_private *priv = fx.threads[1]->priv;
	struct fs_fixture_parked parked;

	fs_fixture_park(&fx, 1, &parked);
	append_behind(0, 10);
	turn(1);
	end_session();
	turn_all();
	assert_false(is_forgotten());
	list_splice_tail(&priv->inbox, &priv->later);
	turn_all();
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_true(is_forgotten());
	fs_fixture_unpark(&fx, 1, &parked);
}

static void handle__of_the_old_session_fails_once(void **state)
{
	end_session();
	renew();
	assert_false(session_renewal_enter(make_by_handle(0, OP_READ)));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_true(session_renewal_enter(make_by_handle(1, OP_READ)));
}

/* The kernel asks for attributes by any handle, and closes a handle whatever the answer is. */
static void handle__of_the_old_session_is_good_for_what_is_no_data(void **state)
{
	end_session();
	renew();
	assert_true(session_renewal_enter(make_by_handle(0, OP_GETATTR)));
	assert_true(session_renewal_enter(make_by_handle(1, OP_FLUSH)));
	assert_true(session_renewal_enter(make_by_handle(2, OP_RELEASE)));
}

/* It reports lost data, and nothing else. */
static void fsync__by_a_handle_of_the_old_session_tells_what_is_lost(void **state)
{
	end_session();
	renew();
	assert_true(session_renewal_enter(make_by_handle(0, OP_FSYNC)));
	pthread_mutex_lock(&fx.inode->lock);
	commit_failed_locked(fx.inode, -EIO);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_false(session_renewal_enter(make_by_handle(1, OP_FSYNC)));
	assert_int_equal(fs_fixture_told(&fx, 1), -EIO);
	assert_true(session_renewal_enter(make_by_handle(1, OP_READ)));
}

static struct rpc_call *waiting_commit(unsigned thread)
{
	struct list *waiting = &fx.remotes[thread].rpc_waiting_reserved;
	struct rpc_call *call;

	assert_false(list_empty(waiting));
	call = list_entry(list_pop(waiting), struct rpc_call, link);
	assert_int_equal(call->req.op, RPC_COMMIT);
	return call;
}

/* It does not end when it learns of the loss: it begins anew, and then must report it. */
static void fsync__under_way_when_the_session_ends_tells_what_is_lost(void **state)
{
	struct request *req = make_by_handle(0, OP_FSYNC);
	struct rpc_call *call;

	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->commit.size_dirty = true;
	commit_dirty_locked(fx.inode, fx.threads[0]);
	pthread_mutex_unlock(&fx.inode->lock);
	way_barrier(req);
	end_session();
	call = waiting_commit(0);
	call->done(call, &(struct rpc_reply){.op = RPC_COMMIT, .status = -ESTALE});
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	renew();
	assert_int_equal(began[0], 1);
	way_barrier(req);
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
}

static void copy__by_two_handles_of_the_old_session_fails_once(void **state)
{
	struct handle target = {.inode = fx.inode};

	session_renewal_handle_opened(&fx.fs, &target);
	end_session();
	renew();
	session_renewal_handle_opened(&fx.fs, &fx.handle);
	for (unsigned i = 0; i < 2; i++)
		make_by_handle(i, OP_COPY)->args.fh2 = handle_number(&target);
	assert_false(session_renewal_enter(fx.requests[0]));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_true(session_renewal_enter(fx.requests[1]));
	target.unlocked = true;
	assert_false(session_renewal_enter(fx.requests[1]));
	assert_int_equal(fs_fixture_told(&fx, 1), -EIO);
}

static void handle__that_had_a_lock_fails_for_good(void **state)
{
	fx.handle.unlocked = true;
	for (unsigned n = 0; n < 2; n++) {
		assert_false(session_renewal_enter(make_by_handle(0, OP_WRITE)));
		assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	}
}

static void append__by_a_handle_of_the_old_session__leaves_its_place(void **state)
{
	struct request *req;

	end_session();
	renew();
	req = make_by_handle(0, OP_WRITE);
	req->args.flags = O_WRONLY | O_APPEND;
	append_order_queue(req);
	assert_false(list_empty(&fx.inode->appends->waiting));
	assert_false(session_renewal_enter(req));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_true(list_empty(&fx.inode->appends->waiting));
}

static struct request *make_for_cache(unsigned i, enum request_op op)
{
	struct request *req = make_by_handle(i, op);

	req->args.cached = true;
	return req;
}

/* A page's READ or WRITE gets an error at once: requests that must end first may wait for the
 * page. */
static void page__is_neither_read_nor_written_while_the_session_ends(void **state)
{
	end_session();
	turn(0);
	assert_false(session_renewal_enter(make_for_cache(0, OP_READ)));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_false(session_renewal_enter(make_for_cache(0, OP_WRITE)));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
}

/* The kernel reads ahead and writes back by any handle, unseen by the handle's user. */
static void page__tells_no_user_of_a_handle(void **state)
{
	int error = -ESTALE;

	end_session();
	turn(0);
	assert_false(session_renewal_enter(make_for_cache(0, OP_READ)));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_false(session_renewal_takes_back(make_for_cache(0, OP_READ), &error));
	assert_int_equal(error, -EIO);
	request_end(fx.requests[0]);
	renew();
	assert_true(session_renewal_enter(make_for_cache(0, OP_READ)));
	assert_true(session_renewal_enter(make_for_cache(1, OP_WRITE)));
	assert_false(session_renewal_enter(make_by_handle(2, OP_READ)));
	assert_int_equal(fs_fixture_told(&fx, 2), -EIO);
	assert_true(session_renewal_enter(make_by_handle(2, OP_READ)));
}

/* Another handle's page may be written back by it. */
static void page__of_a_handle_that_had_a_lock_is_not_read(void **state)
{
	fx.handle.unlocked = true;
	assert_false(session_renewal_enter(make_for_cache(0, OP_READ)));
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
	assert_true(session_renewal_enter(make_for_cache(0, OP_WRITE)));
}

static void error__of_the_end_begins_anew_what_changed_nothing(void **state)
{
	int error = -ESTALE;

	end_session();
	assert_true(session_renewal_takes_back(make(0, OP_LOOKUP), &error));
	error = -EIO;
	op_of(make(1, OP_UNLINK))->changing = true;
	assert_false(session_renewal_takes_back(fx.requests[1], &error));
	assert_int_equal(error, -EIO);
	request_end(fx.requests[1]);
	error = -ENOENT;
	assert_false(session_renewal_takes_back(make(1, OP_LOOKUP), &error));
	assert_int_equal(error, -ENOENT);
	request_end(fx.requests[1]);
	error = -ESTALE;
	assert_false(session_renewal_takes_back(make_by_handle(1, OP_WRITE), &error));
	assert_int_equal(error, -EIO);
	request_end(fx.requests[1]);
	renew();
	assert_int_equal(began[0], 1);
}

/* ---- a mount that was alone, and changed names by itself ------------------------------------- */

enum { NEW_INO = 100, GONE_INO = 101 };

static struct inode *add_new(void)
{
	const struct rpc_make make = {.parent = FIXTURE_INO, .name = {"new", 3}};
	struct inode *inode = inode_get(&fx.fs, NEW_INO);

	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NEW_INO, 2});
	unmade_take_number(fx.fs.unmade);
	pthread_mutex_lock(&inode->lock);
	inode->type = S_IFREG;
	inode->unmade = unmade_new(NEW_INO, &make);
	unmade_add(fx.fs.unmade, inode->unmade);
	commit_dirty_locked(inode, fx.threads[1]);
	pthread_mutex_unlock(&inode->lock);
	return inode;
}

static struct inode *add_gone(void)
{
	struct inode *inode = inode_get(&fx.fs, GONE_INO);

	inode->type = S_IFREG;
	inode->orphan = true;
	pthread_mutex_lock(&inode->lock);
	name_queue_add_locked(fx.fs.name_queue, name_change_new(inode, fx.inode, "gone", 1));
	pthread_mutex_unlock(&inode->lock);
	return inode;
}

/* The server ended the session before it learned of them. */
static void names__that_were_changed_here_are_as_the_server_has_them(void **state)
{
	struct inode *new, *gone;

	atomic_store(&fx.fs.sharing, false);
	fx.fs.options.session.converts = true;
	fx.fs.options.names = NAMES_LOCAL;
	new = add_new();
	gone = add_gone();
	end_session();
	turn_all();
	/* Its call ends with the session. */
	assert_false(is_forgotten());
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		remote_tick(fx.threads[i], now_ms());
	renew();
	assert_true(atomic_load(&fx.fs.sharing));
	assert_false(name_queue_any(fx.fs.name_queue));
	assert_false(gone->orphan);
	assert_false(unmade_any(fx.fs.unmade));
	assert_null(new->unmade);
	assert_int_equal(new->commit.nfailures, 1);
	assert_int_equal(unmade_take_number(fx.fs.unmade), 0);
	inode_put(gone);
	inode_put(new);
}

/* The server knows a name that was changed here, or does not. */
static void lose_name(bool loses)
{
	struct inode *gone;

	atomic_store(&fx.fs.sharing, false);
	fx.fs.options.session.converts = true;
	fx.fs.options.names = NAMES_LOCAL;
	gone = loses ? add_gone() : NULL;
	end_session();
	turn_all();
	if (gone)
		inode_put(gone);
}

static void lose_names_and_renew(void)
{
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		remote_tick(fx.threads[i], now_ms());
	renew();
}

/* It can't know which names it was to make durable. */
static void fsync_and_close__while_the_session_is_renewed_tell_that_names_are_lost(void **state)
{
	fx.handle.writes = true;
	lose_name(true);
	way_barrier(make_by_handle(0, OP_FSYNC));
	way_barrier(make_by_handle(1, OP_FLUSH));
	lose_names_and_renew();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(began[i], 1);
		way_barrier_over(fx.requests[i], 0);
		assert_int_equal(fs_fixture_told(&fx, i), -EIO);
	}
	way_barrier(make_by_handle(0, OP_FSYNC));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* The mount is lost before the loss is noted, as where the kernel can't share a file that is open
 * for writing, or after it. */
static void sync_on_a_lost_mount(bool loses, bool forgets, int expected)
{
	lose_name(loses);
	way_barrier(make_by_handle(0, OP_FSYNC));
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		remote_tick(fx.threads[i], now_ms());
	fs_fixture_turn(&fx, 0);
	fs_fixture_turn(&fx, 1);
	assert_false(name_queue_any(fx.fs.name_queue));
	if (forgets)
		turn_all();
	assert_int_equal(is_forgotten(), forgets);
	session_lose(&fx.session, "test");
	turn_all();
	assert_int_equal(began[0], 1);
	way_barrier_over(fx.requests[0], 0);
	assert_int_equal(fs_fixture_told(&fx, 0), expected);
}

static void fsync__tells_that_names_are_lost_if_there_is_no_other_session(void **state)
{
	sync_on_a_lost_mount(true, false, -EIO);
}

static void fsync__tells_that_names_are_lost_if_the_next_session_does_not_come(void **state)
{
	sync_on_a_lost_mount(true, true, -EIO);
}

static void fsync__on_a_lost_mount_that_has_lost_no_names(void **state)
{
	sync_on_a_lost_mount(false, true, 0);
	/* Where the kernel can't share a file, the old session's end is the last there is. */
	end_session();
	way_barrier(make_by_handle(0, OP_FSYNC));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* Another thread may have ended the names already, and this one has not seen that the session ends.
 */
static void fsync__that_ends_while_the_session_does_begins_anew(void **state)
{
	struct inode *gone;

	atomic_store(&fx.fs.sharing, false);
	fx.fs.options.session.converts = true;
	fx.fs.options.names = NAMES_LOCAL;
	gone = add_gone();
	end_session();
	fx.handle.writes = true;
	way_barrier(make_by_handle(0, OP_FLUSH));
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	inode_put(gone);
	turn_all();
	lose_names_and_renew();
	assert_int_equal(began[0], 1);
	way_barrier_over(fx.requests[0], 0);
	assert_int_equal(fs_fixture_told(&fx, 0), -EIO);
}

static void fsync__while_the_session_is_renewed_without_a_loss(void **state)
{
	fx.handle.writes = true;
	lose_name(false);
	way_barrier(make_by_handle(0, OP_FSYNC));
	lose_names_and_renew();
	way_barrier_over(fx.requests[0], 0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

/* ---- beside other things --------------------------------------------------------------------- */

static void quotas__what_was_reserved_is_not_had_any_more(void **state)
{
	fx.session.quotas = QUOTAS;
	fx.inode->share = (struct share){.npages = 100, .user = true, .epoch = QUOTAS};
	pthread_mutex_lock(&fx.inode->lock);
	assert_int_equal(
		quota_allowance_ready_locked(fx.inode->fs, &fx.inode->share, &fx.inode->attr, 10),
		10);
	pthread_mutex_unlock(&fx.inode->lock);
	end_session();
	renew();
	pthread_mutex_lock(&fx.inode->lock);
	assert_int_equal(
		quota_allowance_ready_locked(fx.inode->fs, &fx.inode->share, &fx.inode->attr, 10),
		0);
	/* Nor is it given back. */
	quota_allowance_return_locked(fx.inode->fs, &fx.inode->share, &fx.inode->attr);
	assert_int_equal(
		quota_allowance_ready_locked(fx.inode->fs, &fx.inode->share, &fx.inode->attr, 10),
		0);
	pthread_mutex_unlock(&fx.inode->lock);
}

static void resumed(struct request *req, int status)
{
	began[req->unique - 1] = status;
	request_end(req);
}

static void snapshot__holds_up_no_renewal(void **state)
{
	struct request *req = make(0, OP_WRITE);

	fx.fs.threads[0].freeze->id = 1;
	assert_false(snapshot_freeze_enter(req, resumed));
	end_session();
	renew();
	assert_int_equal(began[0], -ECANCELED);
}

/* It goes on in the other session. */
static void remount__waits_for_the_end_of_a_renewal(void **state)
{
	struct request *req = make(0, OP_REMOUNT);

	op_of(req)->wait = OP_AT_REMOUNT;
	end_session();
	renew();
	assert_int_equal(op_of(req)->wait, OP_AT_REMOUNT);
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
}

/* RMDIR by a thread whose kernel takes the name to be that directory's. */
static int remove_directory(struct look_change *change, int status)
{
	const struct attr attr = {.ino = FIXTURE_INO, .mode = S_IFDIR | 0755};
	struct request *req = make(0, OP_RMDIR);

	req->pid = 1;
	req->args.name = "name";
	local_answer_up_shown(req, fx.inode, fx.inode, &attr);
	local_answer_change_begin(req, fx.inode, req->args.name, LOOK_ENDS, change);
	assert_int_equal(change->expected.ino, FIXTURE_INO);
	status = local_answer_change_status(req, change, status);
	local_answer_change_end_unknown(req, change);
	return status;
}

/* That the server has once refused the name is known when the operation begins anew. The end of its
 * session is no refusal. */
static void name__that_was_refused__is_so_in_the_other_session(void **state)
{
	struct look_change change;

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
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(renewal__is_when_all_threads_are_idle),
		CASE(fsync_and_close__while_the_session_is_renewed_tell_that_names_are_lost),
		CASE(fsync__tells_that_names_are_lost_if_there_is_no_other_session),
		CASE(fsync__tells_that_names_are_lost_if_the_next_session_does_not_come),
		CASE(fsync__on_a_lost_mount_that_has_lost_no_names),
		CASE(fsync__that_ends_while_the_session_does_begins_anew),
		CASE(fsync__while_the_session_is_renewed_without_a_loss),
		CASE(names__that_were_changed_here_are_as_the_server_has_them),
		CASE(renewal__without_a_server__ends_what_is_held),
		CASE(renewal__without_a_server__keeps_what_closes),
		CASE(renewal__answers_statfs_meanwhile),
		CASE(renewal__holds_what_comes_meanwhile),
		CASE(renewal__does_not_wait_for_what_is_parked_before_an_append),
		CASE(handle__of_the_old_session_fails_once),
		CASE(handle__of_the_old_session_is_good_for_what_is_no_data),
		CASE(fsync__by_a_handle_of_the_old_session_tells_what_is_lost),
		CASE(fsync__under_way_when_the_session_ends_tells_what_is_lost),
		CASE(copy__by_two_handles_of_the_old_session_fails_once),
		CASE(handle__that_had_a_lock_fails_for_good),
		CASE(append__by_a_handle_of_the_old_session__leaves_its_place),
		CASE(page__is_neither_read_nor_written_while_the_session_ends),
		CASE(page__tells_no_user_of_a_handle),
		CASE(page__of_a_handle_that_had_a_lock_is_not_read),
		CASE(error__of_the_end_begins_anew_what_changed_nothing),
		CASE(quotas__what_was_reserved_is_not_had_any_more),
		CASE(snapshot__holds_up_no_renewal),
		CASE(remount__waits_for_the_end_of_a_renewal),
		CASE(name__that_was_refused__is_so_in_the_other_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
