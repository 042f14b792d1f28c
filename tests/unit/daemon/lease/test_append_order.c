/* The order of WRITEs that append to a file of a sharing mount: it follows the kernel's offsets,
 * whichever threads have read the WRITEs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/pages/grant_refill.h"
#include "daemon/lease/append_order.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/way.h"

enum { BYTES = 4096 };

static struct fs_fixture fx;
/* For each request. 1: it went on, -errno: it failed, 0: it waits. */
static int went[FIXTURE_REQUESTS];

static int setup(void **state)
{
	return fs_fixture_init(&fx);
}

static int teardown(void **state)
{
	assert_false(fx.inode->appends->inside);
	assert_true(list_empty(&fx.inode->appends->waiting));
	for (unsigned i = 0; i < FIXTURE_THREADS; i++) {
		assert_true(list_empty(&fx.threads[i]->priv->inbox));
		assert_true(list_empty(&fx.threads[i]->priv->later));
	}
	assert_int_equal(fx.inode->refs, 2);
	fs_fixture_fini(&fx);
	return 0;
}

/* ---- threads and operations ------------------------------------------------------------------ */

static void turn(unsigned thread)
{
	fs_fixture_turn(&fx, thread);
}

static void turn_later(unsigned thread)
{
	struct io_thread_private *priv = fx.threads[thread]->priv;

	assert_false(list_empty(&priv->later));
	list_splice_tail(&priv->inbox, &priv->later);
	turn(thread);
}

static void went_on(struct request *req, int status)
{
	went[req->unique - 1] = status ? status : 1;
}

static void receive(unsigned i, unsigned thread, uint64_t offset, uint32_t flags)
{
	struct request *req = fs_fixture_make(&fx, i, thread, OP_WRITE);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	req->args.flags = flags;
	req->args.offset = offset;
	req->args.size = BYTES;
	went[i] = 0;
}

static void queue(unsigned i, unsigned thread, uint64_t offset, uint32_t flags)
{
	receive(i, thread, offset, flags);
	append_order_queue(fx.requests[i]);
}

static void enter(unsigned i)
{
	if (append_order_enter(fx.requests[i], went_on))
		went[i] = 1;
}

/* The thread that reads the append makes the other threads read and check their own messages
 * first. */
static void begin(unsigned i, unsigned thread, uint64_t offset, uint32_t flags)
{
	queue(i, thread, offset, flags);
	enter(i);
}

static void append(unsigned i, unsigned thread, uint64_t offset)
{
	begin(i, thread, offset, O_WRONLY | O_APPEND);
}

/* Another request must end before it begins: enter(). */
static void hold(unsigned i, unsigned thread, uint64_t offset)
{
	queue(i, thread, offset, O_WRONLY | O_APPEND);
}

static void leave(unsigned i, int status)
{
	append_order_leave(fx.requests[i], status);
	request_end(fx.requests[i]);
}

static void end(unsigned i, int status)
{
	leave(i, status);
	for (unsigned t = 0; t < FIXTURE_THREADS; t++)
		turn(t);
}

static void set_reading(unsigned thread, bool reading)
{
	__atomic_store_n(&fx.threads[thread]->priv->reading, reading, __ATOMIC_SEQ_CST);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void append__alone__goes_on(void **state)
{
	append(0, 0, 0);
	assert_int_equal(went[0], 1);
	end(0, 0);
	append(1, 1, 0);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

static void append__what_does_not_append_waits_for_nobody(void **state)
{
	append(0, 0, 0);
	begin(1, 1, 0, O_WRONLY);
	assert_int_equal(went[1], 1);
	end(1, 0);
	assert_true(fx.inode->appends->inside);
	end(0, 0);
}

static void append__others_follow_by_their_offsets(void **state)
{
	append(0, 0, 0);
	append(2, 2, 2 * BYTES);
	append(1, 1, BYTES);
	assert_int_equal(went[1], 0);
	end(0, 0);
	assert_int_equal(went[1], 1);
	assert_int_equal(went[2], 0);
	end(1, 0);
	assert_int_equal(went[2], 1);
	end(2, 0);
}

static void append__that_is_shown_lets_the_next_one_in(void **state)
{
	append(0, 0, 0);
	append(1, 1, BYTES);
	pthread_mutex_lock(&fx.inode->lock);
	append_order_done_locked(fx.requests[0]);
	pthread_mutex_unlock(&fx.inode->lock);
	turn(1);
	assert_int_equal(went[1], 1);
	end(0, -EIO);
	assert_true(fx.inode->appends->inside);
	end(1, 0);
}

/* ---- appends not yet known ------------------------------------------------------------------- */

static void append__waits_for_who_is_reading(void **state)
{
	set_reading(0, true);
	append(1, 1, BYTES);
	assert_int_equal(went[1], 0);
	/* Thread 0 has read the one before it. */
	set_reading(1, true);
	append(0, 0, 0);
	set_reading(0, false);
	set_reading(1, false);
	turn(0);
	turn(1);
	turn(0);
	assert_int_equal(went[0], 1);
	assert_int_equal(went[1], 0);
	end(0, 0);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

static void append__waits_for_all_who_are_reading(void **state)
{
	set_reading(0, true);
	set_reading(2, true);
	append(1, 1, BYTES);
	set_reading(0, false);
	turn(0);
	turn(1);
	assert_int_equal(went[1], 0);
	set_reading(2, false);
	turn(2);
	turn(1);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

static void append__waits_for_what_is_parked_before_it(void **state)
{
	struct fs_fixture_parked parked;

	fs_fixture_park(&fx, 2, &parked);
	append(1, 1, BYTES);
	turn(2);
	turn(1);
	assert_int_equal(went[1], 0);
	turn_later(2);
	turn(1);
	assert_int_equal(went[1], 0);
	/* A message behind it, or of another file, need not be waited for. */
	parked.write.offset = 2 * BYTES;
	turn_later(2);
	turn(1);
	assert_int_equal(went[1], 1);
	fs_fixture_unpark(&fx, 2, &parked);
	end(1, 0);
}

/* ---- what is held before it begins ----------------------------------------------------------- */

static void append__that_is_held__is_waited_for(void **state)
{
	hold(0, 0, 0);
	append(1, 1, BYTES);
	assert_int_equal(went[1], 0);
	enter(0);
	assert_int_equal(went[0], 1);
	end(0, 0);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

static void append__that_ends_while_it_is_held__is_not_waited_for(void **state)
{
	hold(0, 0, 0);
	append(1, 1, BYTES);
	end(0, -EINTR);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

static void append__behind_one_that_fails_while_it_is_held__fails(void **state)
{
	hold(0, 0, 0);
	append(1, 1, BYTES);
	end(0, -EIO);
	assert_int_equal(went[1], -EIO);
	end(1, -EIO);
}

static void append__that_is_held_behind_one_that_fails__fails(void **state)
{
	append(0, 0, 0);
	hold(1, 1, BYTES);
	end(0, -ENOSPC);
	enter(1);
	assert_int_equal(went[1], 0);
	turn(1);
	assert_int_equal(went[1], -ENOSPC);
	end(1, -ENOSPC);
}

/* ---- failures and those that give up --------------------------------------------------------- */

static void append__behind_one_that_fails__fails(void **state)
{
	append(0, 0, 0);
	append(1, 1, BYTES);
	append(2, 2, 2 * BYTES);
	append(3, 0, 8 * BYTES);
	end(0, -ENOSPC);
	assert_int_equal(went[1], -ENOSPC);
	end(1, -ENOSPC);
	assert_int_equal(went[2], -ENOSPC);
	end(2, -ENOSPC);
	assert_int_equal(went[3], 1);
	end(3, 0);
}

static void append__behind_one_that_was_taken_back__goes_on(void **state)
{
	append(0, 0, 0);
	append(1, 1, BYTES);
	end(0, -EINTR);
	assert_int_equal(went[1], 1);
	end(1, 0);
}

/* For example on a soft mount, which reports the error to its caller. */
static void append__behind_one_that_was_taken_back_with_an_error__fails(void **state)
{
	append(0, 0, 0);
	append(1, 1, BYTES);
	append(2, 2, 2 * BYTES);
	fx.requests[1]->taken_back = -EIO;
	assert_true(append_order_withdraw(fx.requests[1]));
	leave(1, -ECANCELED);
	end(0, 0);
	assert_int_equal(went[2], -EIO);
	end(2, -EIO);
}

/* Another request's append begins where the kernel knows the end. */
static void append__of_another_request__does_not_fail_with_it(void **state)
{
	append(0, 0, 0);
	append(1, 1, 0);
	append(2, 2, BYTES);
	end(0, -ENOSPC);
	assert_int_equal(went[1], 1);
	end(1, 0);
	assert_int_equal(went[2], 1);
	end(2, 0);
}

static void withdraw__of_one_that_waits(void **state)
{
	append(0, 0, 0);
	append(1, 1, BYTES);
	append(2, 2, 2 * BYTES);
	assert_true(append_order_withdraw(fx.requests[1]));
	leave(1, -EINTR);
	end(0, 0);
	assert_int_equal(went[1], 0);
	assert_int_equal(went[2], 1);
	assert_false(append_order_withdraw(fx.requests[2]));
	end(2, 0);
}

/* The thread that looks for earlier appends must finish first. */
static void withdraw__while_a_thread_looks__is_when_that_has(void **state)
{
	set_reading(0, true);
	set_reading(2, true);
	append(1, 1, 0);
	assert_false(append_order_withdraw(fx.requests[1]));
	turn(0);
	assert_false(append_order_withdraw(fx.requests[1]));
	turn(1);
	assert_int_equal(went[1], -ECANCELED);
	set_reading(0, false);
	set_reading(2, false);
	end(1, -ECANCELED);
}

static void withdraw__when_all_was_found__is_in_time(void **state)
{
	hold(0, 0, 0);
	set_reading(0, true);
	append(1, 1, BYTES);
	turn(0);
	set_reading(0, false);
	assert_true(append_order_withdraw(fx.requests[1]));
	end(1, -ECANCELED);
	end(0, -EINTR);
}

/* A parked message may wait for a request that ends only after this one. */
static void withdraw__does_not_wait_for_what_is_parked_before_it(void **state)
{
	struct fs_fixture_parked parked;

	fs_fixture_park(&fx, 2, &parked);
	hold(0, 0, BYTES);
	append(1, 1, 2 * BYTES);
	append(3, 1, 3 * BYTES);
	turn(2);
	fx.requests[1]->taken_back = -EIO;
	assert_false(append_order_withdraw(fx.requests[1]));
	turn_later(2);
	turn(1);
	assert_int_equal(went[1], -ECANCELED);
	fs_fixture_unpark(&fx, 2, &parked);
	end(1, -ECANCELED);
	end(0, -EINTR);
	turn_later(2);
	turn(1);
	/* It is behind the missing append. */
	assert_int_equal(went[3], -EIO);
	end(3, -EIO);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool has_filling(uint64_t fpage)
{
	struct extent_cursor cursor;
	struct mapped_extent e;

	return extent_map_seek(&fx.inode->map, fpage, &cursor, &e) && e.fpage == fpage &&
	       e.state == EXTENT_FILLING;
}

/* The kernel drops all its pages of the file. */
static void drop_all(void)
{
	struct list *link;

	while ((link = list_pop(&fx.fs.dropper.jobs))) {
		struct notifier_job *job = list_entry(link, struct notifier_job, link);

		job->done(job);
	}
}

/* It has got one page and waits for another when another request writes behind it. */
static void append__that_goes_elsewhere__leaves_its_pages_to_the_file(void **state)
{
	const struct extent run = {.page = 8, .npages = 1};
	struct grant_refill *r = fx.fs.refill;
	struct request *req;

	fx.inode->nopen = fx.inode->nwriters = 1;
	fx.inode->lease_type = LEASE_EXCLUSIVE;
	fx.inode->attr_valid = fx.inode->sized = true;
	fx.handle.writes = fx.handle.appends = true;
	extent_map_learned_all(&fx.inode->map);
	fs_fixture_notifier(&fx.fs.dropper);
	r->busy = true;
	grants_add(fx.fs.grants, &run);
	receive(0, 0, 0, O_WRONLY | O_APPEND);
	req = fx.requests[0];
	req->args.size = 2 * BYTES;
	way_barrier(req);
	assert_true(has_filling(0));
	fx.inode->attr.size = 10 * BYTES;
	waiters_wake(&r->waiters, 0);
	r->nwoken++;
	turn(0);
	assert_int_equal(req->args.offset, 10 * BYTES);
	assert_false(has_filling(0));
	assert_true(op_cancel(req, -EINTR));
	drop_all();
	turn(0);
	/* The pages will be committed. */
	assert_non_null(list_pop(&fx.fs.threads[0].dirty));
	inode_put(fx.inode);
	fx.inode->lease_type = LEASE_NONE;
	fx.inode->nopen = fx.inode->nwriters = 0;
}

/* ---- a mount that begins to share ------------------------------------------------------------ */

/* The piece between these two was written before. Those in front of the end stay where the kernel
 * has sent them, and all that come later go to the end. */
static void share__a_piece_before_the_end_stays_there(void **state)
{
	atomic_store(&fx.fs.has_shared, false);
	queue(0, 0, 0, O_WRONLY | O_APPEND);
	assert_true(list_empty(&fx.inode->appends->waiting));
	append_order_hold(fx.requests[0]);
	receive(1, 1, 2 * BYTES, O_WRONLY | O_APPEND);
	append_order_hold(fx.requests[1]);
	receive(2, 2, 0, O_WRONLY);
	append_order_hold(fx.requests[2]);
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->sized = true;
	fx.inode->attr.size = 2 * BYTES;
	append_order_share_locked(fx.inode);
	pthread_mutex_unlock(&fx.inode->lock);
	atomic_store(&fx.fs.has_shared, true);
	assert_false(append_order_appends(fx.requests[0]));
	assert_true(append_order_appends(fx.requests[1]));
	enter(1);
	assert_int_equal(went[1], 0);
	enter(2);
	assert_int_equal(went[2], 1);
	enter(0);
	assert_int_equal(went[0], 1);
	end(0, 0);
	assert_int_equal(went[1], 1);
	append(3, 0, 0);
	assert_true(append_order_appends(fx.requests[3]));
	end(1, 0);
	assert_int_equal(went[3], 1);
	end(3, 0);
	end(2, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		CASE(append__alone__goes_on),
		CASE(append__what_does_not_append_waits_for_nobody),
		CASE(append__others_follow_by_their_offsets),
		CASE(append__that_is_shown_lets_the_next_one_in),
		CASE(append__waits_for_who_is_reading),
		CASE(append__waits_for_all_who_are_reading),
		CASE(append__waits_for_what_is_parked_before_it),
		CASE(append__that_is_held__is_waited_for),
		CASE(append__that_ends_while_it_is_held__is_not_waited_for),
		CASE(append__behind_one_that_fails_while_it_is_held__fails),
		CASE(append__that_is_held_behind_one_that_fails__fails),
		CASE(append__behind_one_that_fails__fails),
		CASE(append__behind_one_that_was_taken_back__goes_on),
		CASE(append__behind_one_that_was_taken_back_with_an_error__fails),
		CASE(append__of_another_request__does_not_fail_with_it),
		CASE(append__that_goes_elsewhere__leaves_its_pages_to_the_file),
		CASE(share__a_piece_before_the_end_stays_there),
		CASE(withdraw__of_one_that_waits),
		CASE(withdraw__while_a_thread_looks__is_when_that_has),
		CASE(withdraw__when_all_was_found__is_in_time),
		CASE(withdraw__does_not_wait_for_what_is_parked_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
