/* When a mount stands still, and how it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "common/rpc/lease_type.h"
#include "daemon/barrier/remount.h"
#include "daemon/file/commit.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/fuse/receive.h"
#include "daemon/lease/keep.h"
#include "daemon/lease/lease_private.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/pause.h"
#include "tests/unit/daemon/fs_fixture.h"

static struct fs_fixture fx;
static char why[256];

static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = fx.fs.requests.sharing = false;
	fs_fixture_notifier(&fx.fs.dropper);
	fs_fixture_notifier(&fx.fs.giver);
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fx.remotes[i].state = REMOTE_READY;
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static void share(void)
{
	fx.fs.sharing = fx.session.sharing = fx.fs.requests.sharing = true;
}

/* The inode's lease is to go with the next batch. */
static void lease_leaves(void)
{
	pthread_mutex_lock(&fx.inode->lock);
	lease_set_type_locked(fx.inode, fx.threads[0], LEASE_SHARED);
	fx.inode->attr.nlink = 1;
	fx.inode->lease_number = 4;
	fx.inode->lease->evicted = true;
	lease_step_locked(fx.inode, fx.threads[0]);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(fx.fs.leases->nleaving, 1);
}

static void lease_stays(void)
{
	assert_int_equal(fx.fs.leases->nleaving, 1);
	assert_int_equal(fx.inode->lease_type, LEASE_SHARED);
	pthread_mutex_lock(&fx.inode->lock);
	list_del(&fx.inode->lease->leaving);
	fx.fs.leases->nleaving = 0;
	fx.inode->lease->evicted = false;
	lease_set_type_locked(fx.inode, fx.threads[0], LEASE_NONE);
	pthread_mutex_unlock(&fx.inode->lock);
	inode_put(fx.inode);
}

static enum pause_phase phase(void)
{
	return atomic_load(&fx.fs.pause->phase);
}

static void turn_all(void)
{
	for (unsigned turns = 0; turns < 6; turns++)
		for (unsigned i = 0; i < FIXTURE_THREADS; i++)
			if (fs_is_paused(&fx.fs))
				pause_step(fx.threads[i]);
}

static int begin(void)
{
	return pause_begin(&fx.fs, fx.threads[0], why, sizeof(why));
}

static void stands(void)
{
	turn_all();
	assert_int_equal(phase(), PAUSE_STANDS);
	assert_int_equal(pause_await(&fx.fs, 1000, why, sizeof(why)), 0);
}

static void does_not_stand(void)
{
	turn_all();
	assert_int_equal(phase(), PAUSE_DRAINS);
	assert_int_equal(pause_await(&fx.fs, 1, why, sizeof(why)), -ETIMEDOUT);
}

static void runs(void)
{
	pause_end(&fx.fs, fx.threads[0]);
	turn_all();
	assert_int_equal(phase(), PAUSE_RUNS);
	assert_false(fs_is_paused(&fx.fs));
	assert_false(atomic_load(&fx.fs.committing_all));
}

static void pause__of_an_idle_mount__stands_and_goes_on(void **state)
{
	assert_int_equal(begin(), 0);
	assert_true(fs_is_paused(&fx.fs));
	stands();
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		assert_int_equal(fx.remotes[i].state, REMOTE_AT_REST);
	runs();
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		assert_int_equal(fx.remotes[i].state, REMOTE_DOWN);
}

static void pause__a_second_time__works_as_the_first(void **state)
{
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(begin(), 0);
		stands();
		runs();
		for (unsigned i = 0; i < FIXTURE_THREADS; i++)
			fx.remotes[i].state = REMOTE_READY;
	}
}

static void pause__waits_for_each_request_of_each_thread(void **state)
{
	struct request *first = fs_fixture_make(&fx, 0, 1, OP_STATFS);
	struct request *second = fs_fixture_make(&fx, 1, 2, OP_STATFS);

	assert_int_equal(begin(), 0);
	does_not_stand();
	request_end(first);
	does_not_stand();
	request_end(second);
	stands();
	runs();
}

static void pause__waits_for_what_was_read_and_has_no_room(void **state)
{
	struct fs_fixture_parked parked;

	fs_fixture_park(&fx, 1, &parked);
	assert_int_equal(begin(), 0);
	does_not_stand();
	fs_fixture_unpark(&fx, 1, &parked);
	stands();
	runs();
}

/* A message that was read for a drop, which did not wait for it. */
static void pause__leaves_what_was_read_since(void **state)
{
	struct fs_fixture_parked parked;

	fs_fixture_park(&fx, 1, &parked);
	parked.stays = true;
	assert_int_equal(begin(), 0);
	stands();
	runs();
	fs_fixture_unpark(&fx, 1, &parked);
}

static void pause__waits_for_calls_and_writes_without_a_request(void **state)
{
	assert_int_equal(begin(), 0);
	fx.fs.threads[2].nbackground = 1;
	does_not_stand();
	fx.fs.threads[2].nbackground = 0;
	fx.fs.threads[1].nacked = 1;
	does_not_stand();
	fx.fs.threads[1].nacked = 0;
	stands();
	runs();
}

static void pause__waits_for_the_server(void **state)
{
	fx.remotes[1].state = REMOTE_DOWN;
	assert_int_equal(begin(), 0);
	does_not_stand();
	fx.remotes[1].state = REMOTE_READY;
	stands();
	runs();
}

/* The kernel drops pages, and may wait for a message that no thread has read. */
static void pause__waits_for_pages_that_are_dropped(void **state)
{
	assert_int_equal(begin(), 0);
	fuse_receive_drop_begins(fx.threads[0]);
	does_not_stand();
	fuse_receive_drop_ended(fx.threads[0]);
	stands();
	runs();
}

/* A notifier, or another thread, puts something into the inbox of a thread that has drained. */
static void pause__looks_again_at_what_came_last(void **state)
{
	assert_int_equal(begin(), 0);
	for (unsigned i = FIXTURE_THREADS; i-- > 0;)
		pause_step(fx.threads[i]);
	assert_int_equal(phase(), PAUSE_DRAINS);
	fx.fs.threads[2].nbackground = 1; /* the thread finds it there */
	does_not_stand();
	fx.fs.threads[2].nbackground = 0;
	stands();
	runs();
}

static void tell_of_recall(unsigned thread)
{
	struct rpc_recall recall = {.ino = 999, .number = 5, .keep = LEASE_NONE};
	uint8_t tail[RPC_RECALL_BYTES];
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	rpc_put_recall(&w, &recall);
	fs_session_events.news(
		fx.threads[thread], &(struct rpc_tail){.data = tail, .len = sizeof(tail)});
}

/* The disclaimer of a recall, whose inode is not here. */
static struct rpc_call *answer_due(unsigned thread)
{
	struct list *link = list_pop(&fx.remotes[thread].rpc_waiting_reserved);

	return link ? list_entry(link, struct rpc_call, link) : NULL;
}

static void recall__while_it_drains__is_served_before_it_rests(void **state)
{
	struct rpc_call *call;

	share();
	assert_int_equal(begin(), 0);
	for (unsigned turns = 0; turns < 2; turns++)
		for (unsigned i = 0; i < FIXTURE_THREADS; i++)
			pause_step(fx.threads[i]);
	assert_int_equal(phase(), PAUSE_DRAINS);
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fx.remotes[i].free_slots = 0; /* calls wait */
	tell_of_recall(1);
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fx.remotes[i].free_slots = 1;
	does_not_stand();
	call = answer_due(1);
	assert_non_null(call);
	assert_int_equal(call->req.op, RPC_RETURN);
	call->done(call, &(struct rpc_reply){.op = RPC_RETURN});
	stands();
	runs();
}

/* Nothing is sent from RESTS on, though it is due: another process has the slots. */
static void rest__sends_nothing(void **state)
{
	share();
	assert_int_equal(begin(), 0);
	stands();
	tell_of_recall(1);
	fs_session_events.pages_wanted(fx.threads[2], 7);
	inode_return_add(fx.threads[0], 998, 3);
	lease_leaves();
	for (unsigned i = 0; i < FIXTURE_THREADS; i++) {
		fx.fs.threads[i].next_commit_ms = fx.fs.threads[i].next_idle_ms = 0;
		fs_tick(fx.threads[i], now_ms());
		pause_step(fx.threads[i]);
		assert_true(remote_has_no_calls(fx.threads[i]));
	}
	assert_int_equal(phase(), PAUSE_STANDS);
	lease_stays();
	runs();
	inode_return_flush(fx.threads[0]);
	assert_non_null(answer_due(0));
	fx.fs.returns->nsent = 0;
}

/* Only `known` waits have a place at the server. */
static void pause__waits_for_waits_for_locks_that_are_not_known(void **state)
{
	const struct lock_wait_kept kept = {.unique = 5,
		.pid = 1,
		.lock = {.ino = FIXTURE_INO,
			.owner = 256,
			.wait = 3,
			.end = 9,
			.kind = LOCK_KIND_POSIX,
			.type = LOCK_EXCLUSIVE}};
	const struct lock_owner_kept owner = {.number = 256, .kernel = 7, .kind = LOCK_KIND_POSIX};
	struct rpc_call *call;

	share();
	pthread_mutex_lock(&fx.inode->lock);
	assert_int_equal(lock_owner_adopt_locked(fx.inode, &owner), 0);
	pthread_mutex_unlock(&fx.inode->lock);
	assert_int_equal(lock_wait_adopt(fx.threads[1], &kept), 0);
	assert_int_equal(begin(), 0);
	stands();
	/* Each thread that has rested asks anew. */
	runs();
	fs_fixture_turn(&fx, 1);
	call = list_entry(list_pop(&fx.remotes[1].rpc_waiting_nested), struct rpc_call, link);
	assert_int_equal(call->req.lock.wait, 3);
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fx.remotes[i].state = REMOTE_READY;
	assert_int_equal(begin(), 0);
	does_not_stand();
	call->done(call, &(struct rpc_reply){.op = RPC_LOCK, .status = -EINPROGRESS});
	stands();
	runs();
	fs_fixture_turn(&fx, 1);
	call = list_entry(list_pop(&fx.remotes[1].rpc_waiting_nested), struct rpc_call, link);
	call->done(call, &(struct rpc_reply){.op = RPC_LOCK, .status = -EDEADLK});
	assert_true(list_empty(&fx.fs.locks->waits));
}

static void pause__waits_for_snapshots_and_notifications(void **state)
{
	atomic_store(&fx.session.snapshot, 7);
	assert_int_equal(begin(), 0);
	does_not_stand();
	atomic_store(&fx.session.snapshot, 0);
	fx.fs.dropper.busy = true;
	does_not_stand();
	fx.fs.dropper.busy = false;
	stands();
	runs();
}

static void pause__that_is_given_up__goes_on_from_any_phase(void **state)
{
	struct request *req = fs_fixture_make(&fx, 0, 1, OP_STATFS);

	assert_int_equal(begin(), 0);
	does_not_stand();
	runs();
	request_end(req);
	/* Some threads rest already. */
	assert_int_equal(begin(), 0);
	for (unsigned turns = 0; turns < 2; turns++) {
		assert_int_equal(phase(), PAUSE_DRAINS);
		for (unsigned i = FIXTURE_THREADS; i-- > 0;)
			pause_step(fx.threads[i]);
	}
	assert_int_equal(phase(), PAUSE_RESTS);
	pause_step(fx.threads[1]);
	assert_int_equal(fx.remotes[1].state, REMOTE_AT_REST);
	runs();
	assert_int_equal(fx.remotes[1].state, REMOTE_DOWN);
	assert_int_equal(fx.remotes[2].state, REMOTE_READY);
}

static void pause__during_a_remount__is_refused(void **state)
{
	atomic_store(&fx.fs.remount->phase, REMOUNT_COMMITS);
	assert_int_equal(begin(), -EBUSY);
	assert_false(fs_is_paused(&fx.fs));
	atomic_store(&fx.fs.remount->phase, REMOUNT_DONE);
}

static void pause__before_the_last_one_has_ended__is_refused(void **state)
{
	assert_int_equal(begin(), 0);
	stands();
	pause_end(&fx.fs, fx.threads[0]);
	assert_int_equal(begin(), -EBUSY);
	turn_all();
	assert_int_equal(phase(), PAUSE_RUNS);
}

static void begin_standing__ends_as_a_pause_does(void **state)
{
	pause_begin_standing(&fx.fs);
	assert_true(fs_is_paused(&fx.fs));
	turn_all();
	assert_int_equal(phase(), PAUSE_STANDS);
	runs();
	assert_int_equal(fx.remotes[0].state, REMOTE_READY);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(pause__of_an_idle_mount__stands_and_goes_on),
		CASE(pause__a_second_time__works_as_the_first),
		CASE(pause__waits_for_each_request_of_each_thread),
		CASE(pause__waits_for_what_was_read_and_has_no_room),
		CASE(pause__leaves_what_was_read_since),
		CASE(pause__waits_for_calls_and_writes_without_a_request),
		CASE(pause__waits_for_the_server),
		CASE(pause__waits_for_pages_that_are_dropped),
		CASE(pause__looks_again_at_what_came_last),
		CASE(recall__while_it_drains__is_served_before_it_rests),
		CASE(rest__sends_nothing),
		CASE(pause__waits_for_waits_for_locks_that_are_not_known),
		CASE(pause__waits_for_snapshots_and_notifications),
		CASE(pause__that_is_given_up__goes_on_from_any_phase),
		CASE(pause__during_a_remount__is_refused),
		CASE(pause__before_the_last_one_has_ended__is_refused),
		CASE(begin_standing__ends_as_a_pause_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
