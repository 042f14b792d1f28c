/* When a mount stands still, and how it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/barrier/remount.h"
#include "daemon/file/commit.h"
#include "daemon/file/inode.h"
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

static enum pause_phase phase(void)
{
	return atomic_load(&fx.fs.pause->phase);
}

static void turn_all(void)
{
	for (unsigned turns = 0; turns < 3; turns++)
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
	for (unsigned i = FIXTURE_THREADS; i-- > 0;)
		pause_step(fx.threads[i]);
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
		CASE(pause__waits_for_calls_and_writes_without_a_request),
		CASE(pause__waits_for_the_server),
		CASE(pause__waits_for_snapshots_and_notifications),
		CASE(pause__that_is_given_up__goes_on_from_any_phase),
		CASE(pause__during_a_remount__is_refused),
		CASE(pause__before_the_last_one_has_ended__is_refused),
		CASE(begin_standing__ends_as_a_pause_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
