/* When another client comes to a mount that is alone: which requests are held, what is waited for,
 * and for how long the kernel may keep answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/barrier/conversion.h"
#include "daemon/file/name_queue.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/append_order.h"
#include "daemon/lease/lease.h"
#include "daemon/lock/local_locks.h"
#include "daemon/record/record.h"
#include "daemon/serve/way.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { LEASE_MS = 8000 };

static struct fs_fixture fx;
/* For each request. 1: it began, -errno: it was taken back, 0: it is held. */
static int began[FIXTURE_REQUESTS];

static void begin(struct request *req, int status)
{
	began[req->unique - 1] = status ? status : 1;
}

static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fs_fixture_notifier(&fx.fs.dropper);
	fx.fs.options.session.converts = fx.session.converts = true;
	atomic_store(&fx.fs.sharing, false);
	atomic_store(&fx.session.sharing, false);
	atomic_store(&fx.session.lease_ms, LEASE_MS);
	atomic_store(&fx.session.renewed_ms, now_ms());
	fx.session.id = 1;
	fx.fs.conversion->begin = begin;
	memset(began, 0, sizeof(began));
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static enum conversion_phase phase(void)
{
	return atomic_load(&fx.fs.conversion->phase);
}

static void step_all(void)
{
	for (unsigned i = FIXTURE_THREADS; i-- > 0;)
		conversion_step(fx.threads[i]);
}

static struct request *make(unsigned i, unsigned thread, enum request_op op, bool cached)
{
	struct request *req = fs_fixture_make(&fx, i, thread, op);

	req->args.cached = cached;
	return req;
}

static void turn_all(void)
{
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		fs_fixture_turn(&fx, i);
}

static void end(unsigned i)
{
	request_end(fx.requests[i]);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void enter__nobody_has_come__begins(void **state)
{
	assert_true(conversion_enter(make(0, 0, OP_WRITE, false)));
	end(0);
}

static void enter__drains__only_the_kernels_own_begin(void **state)
{
	conversion_wanted(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_DRAINS);
	assert_false(conversion_enter(make(0, 0, OP_WRITE, false)));
	assert_false(conversion_enter(make(1, 1, OP_LOOKUP, false)));
	assert_true(conversion_enter(make(2, 1, OP_READ, true)));
	assert_true(conversion_enter(make(3, 1, OP_STATFS, false)));
	conversion_is_over(&fx.fs);
	turn_all();
	assert_int_equal(began[0], 1);
	assert_int_equal(began[1], 1);
	for (unsigned i = 0; i < 4; i++)
		end(i);
}

static void append(unsigned i, unsigned thread, uint64_t offset)
{
	struct request *req = make(i, thread, OP_WRITE, false);

	req->args.has_fh = true;
	req->args.fh = handle_number(&fx.handle);
	req->args.flags = O_WRONLY | O_APPEND;
	req->args.offset = offset;
	req->args.size = 4096;
	assert_false(conversion_enter(req));
}

static uint64_t next_place(const struct list *pos)
{
	return list_entry(pos->next, struct op_append, link)->offset;
}

/* Two threads have read the pieces of one append. They begin anew in any order. */
static void enter__appends_that_are_held_have_their_places(void **state)
{
	const struct list *waiting = &fx.inode->appends->waiting;

	atomic_store(&fx.fs.has_shared, false);
	conversion_wanted(fx.threads[0]);
	append(0, 1, 4096);
	append(1, 0, 0);
	assert_false(list_empty(waiting));
	assert_int_equal(next_place(waiting), 0);
	assert_int_equal(next_place(waiting->next), 4096);
	conversion_is_over(&fx.fs);
	turn_all();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(began[i], 1);
		append_order_leave(fx.requests[i], 0);
		end(i);
	}
	assert_true(list_empty(waiting));
}

static void step__waits_for_what_has_begun(void **state)
{
	assert_true(conversion_enter(make(0, 1, OP_WRITE, false)));
	conversion_wanted(fx.threads[0]);
	step_all();
	step_all();
	assert_int_equal(phase(), CONVERSION_DRAINS);
	end(0);
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
}

static void step__held_and_the_kernels_own__are_not_waited_for_to_drain(void **state)
{
	conversion_wanted(fx.threads[0]);
	assert_false(conversion_enter(make(0, 0, OP_WRITE, false)));
	assert_true(conversion_enter(make(1, 1, OP_READ, true)));
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
	assert_false(conversion_enter(make(2, 1, OP_READ, true)));
	conversion_is_over(&fx.fs);
	turn_all();
	assert_int_equal(began[0], 1);
	assert_int_equal(began[2], 1);
	for (unsigned i = 0; i < 3; i++)
		end(i);
}

/* The server has to know them before it lets others in. */
static void step__waits_for_names_that_were_removed_here(void **state)
{
	struct inode *gone = inode_get(&fx.fs, 100);

	gone->type = S_IFREG;
	conversion_wanted(fx.threads[0]);
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
	pthread_mutex_lock(&gone->lock);
	name_queue_add_locked(fx.fs.name_queue, name_change_new(gone, fx.inode, "gone", 1));
	pthread_mutex_unlock(&gone->lock);
	step_all();
	/* It is on its way. */
	assert_int_equal(fs_thread_of(fx.threads[2])->nbackground, 1);
	assert_int_equal(phase(), CONVERSION_STILL);
	assert_true(name_queue_any(fx.fs.name_queue));
	fx.session.ended = true;
	for (unsigned i = 0; i < FIXTURE_THREADS; i++)
		remote_tick(fx.threads[i], now_ms());
	assert_false(name_queue_any(fx.fs.name_queue));
	conversion_is_over(&fx.fs);
	inode_put(gone);
}

/* An answer may wait until the kernel has dropped pages. */
static void step__waits_for_the_kernel(void **state)
{
	struct notifier_job job = {0};

	conversion_wanted(fx.threads[0]);
	list_add_tail(&fx.fs.dropper.jobs, &job.link);
	step_all();
	assert_int_equal(phase(), CONVERSION_DRAINS);
	list_del(&job.link);
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
}

/* Nothing is told without the server, but all goes on as before when it is over. */
static void step__without_the_server__stands_still(void **state)
{
	conversion_wanted(fx.threads[0]);
	step_all();
	step_all();
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
	assert_false(atomic_load(&fx.fs.sharing));
	atomic_store(&fx.session.lost, true);
	step_all();
	assert_int_equal(phase(), CONVERSION_NONE);
}

static void wanted__while_it_shares__is_no_news(void **state)
{
	atomic_store(&fx.fs.sharing, true);
	conversion_wanted(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_NONE);
}

static void wanted__again__changes_nothing(void **state)
{
	conversion_wanted(fx.threads[0]);
	step_all();
	assert_int_equal(phase(), CONVERSION_STILL);
	conversion_wanted(fx.threads[1]);
	assert_int_equal(phase(), CONVERSION_STILL);
}

/* ---- back ------------------------------------------------------------------------------------ */

static void back__a_file_is_open__waits(void **state)
{
	atomic_store(&fx.fs.sharing, true);
	fx.inode->nopen = 1;
	conversion_back_wanted(fx.threads[1]);
	assert_int_equal(phase(), CONVERSION_NONE);
	fx.inode->nopen = 0;
	/* It was tried just now. */
	conversion_back_wanted(fx.threads[1]);
	assert_int_equal(phase(), CONVERSION_NONE);
	fx.fs.conversion->back_ms = 0;
	conversion_back_wanted(fx.threads[1]);
	assert_int_equal(phase(), CONVERSION_DRAINS);
	conversion_is_over(&fx.fs);
}

static void back__while_it_is_alone__is_no_news(void **state)
{
	conversion_back_wanted(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_NONE);
}

/* The next conversion is one to share. */
static void back__is_over__leaves_nothing(void **state)
{
	atomic_store(&fx.fs.sharing, true);
	conversion_back_wanted(fx.threads[0]);
	assert_true(fx.fs.conversion->back);
	conversion_is_over(&fx.fs);
	atomic_store(&fx.fs.sharing, false);
	conversion_wanted(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_DRAINS);
	assert_false(fx.fs.conversion->back);
	conversion_is_over(&fx.fs);
}

/* It begins and can't be done in time; the request that runs does not end. Returns after how long
 * it is tried again. */
static int64_t fail_back(void)
{
	struct conversion *c = fx.fs.conversion;

	c->back_ms = 0;
	conversion_back_wanted(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_DRAINS);
	c->began_ms -= 2000;
	step_all();
	assert_int_equal(phase(), CONVERSION_NONE);
	return c->back_ms - now_ms();
}

static void back__takes_too_long__is_tried_ever_later(void **state)
{
	int64_t first, second, last = 0;

	atomic_store(&fx.fs.sharing, true);
	assert_true(conversion_enter(make(0, 1, OP_WRITE, false)));
	first = fail_back();
	second = fail_back();
	assert_in_range(first, 1, 20000);
	assert_in_range(second, first + first / 2, 3 * first);
	for (unsigned i = 0; i < 20; i++)
		last = fail_back();
	assert_in_range(last, 1, 300000);
	end(0);
}

static void ttl__is_short_and_none_when_another_comes(void **state)
{
	assert_int_equal(conversion_ttl_ms(&fx.fs, LEASE_MS), LEASE_MS / 4);
	assert_int_equal(conversion_ttl_ms(&fx.fs, 1000), 1000);
	conversion_wanted(fx.threads[0]);
	assert_int_equal(conversion_ttl_ms(&fx.fs, LEASE_MS), 0);
	conversion_is_over(&fx.fs);
	fx.fs.options.session.converts = false;
	assert_int_equal(conversion_ttl_ms(&fx.fs, LEASE_MS), LEASE_MS);
}

/* A daemon that takes over waits for what is left, and for no more the next time. */
static void adopt__has_what_the_kernel_was_told(void **state)
{
	struct conversion_told told = {.ttl_ms = 100, .left_ms = 60000};

	conversion_adopt(&fx.fs, told);
	told = conversion_told(&fx.fs);
	assert_int_equal(told.ttl_ms, 100);
	assert_in_range(told.left_ms, 50000, 60000);
	conversion_adopt(&fx.fs, (struct conversion_told){.ttl_ms = 100});
	told = conversion_told(&fx.fs);
	assert_int_equal(told.ttl_ms, 100);
	assert_int_equal(told.left_ms, 0);
}

/* The server answers the LEASE that thread 0 has asked for. */
static void answer_pin(int status)
{
	struct inode_lease *l = fx.inode->lease;
	const struct rpc_reply rep = {.op = RPC_LEASE,
		.status = status,
		.entry = {.attr = {.ino = FIXTURE_INO, .mode = S_IFREG | 0600, .nlink = 1},
			.lease = {.type = LEASE_EXCLUSIVE, .number = 1}}};

	assert_int_equal(l->state, LEASE_ASKING);
	assert_true(l->call.req.lease.flags & LEASE_PIN);
	assert_true(rpc_cancel(fx.threads[0], &l->call));
	l->call.done(&l->call, &rep);
}

static void step__a_pin_is_refused__is_asked_for_again(void **state)
{
	atomic_store(&fx.fs.sharing, true);
	atomic_store(&fx.fs.conversion->phase, CONVERSION_PINS);
	fx.inode->nopen = 1;
	step_all();
	assert_int_equal(phase(), CONVERSION_PINS);
	answer_pin(-ENOSPC);
	step_all();
	assert_int_equal(phase(), CONVERSION_PINS);
	answer_pin(0);
	step_all();
	assert_int_equal(phase(), CONVERSION_FORGETS);
	conversion_is_over(&fx.fs);
	fx.inode->nopen = 0;
}

/* Even where the session has as many leases as it may keep. */
static void pin__pages_are_cached__needs_the_lease(void **state)
{
	struct inode_lease *l = fx.inode->lease;

	atomic_store(&fx.fs.sharing, true);
	atomic_store(&fx.fs.conversion->phase, CONVERSION_PINS);
	fx.inode->nopen = 1;
	assert_true(kernel_pages_make_locked(fx.inode));
	fx.inode->cached->pages->nranges = 1;
	step_all();
	assert_int_equal(l->call.req.lease.type, LEASE_EXCLUSIVE);
	assert_false(l->call.req.lease.flags & LEASE_IF_FREE);
	answer_pin(0);
	conversion_is_over(&fx.fs);
	fx.inode->cached->pages->nranges = 0;
	fx.inode->nopen = 0;
}

/* Some are at the server from then on. A daemon that is killed meanwhile has no successor. */
static void locks__are_told_before_a_remount__nobody_takes_over(void **state)
{
	assert_int_equal(record_new(&fx.fs.record), 0);
	atomic_store(&record_head(fx.fs.record)->lives, RECORD_LIVES);
	fx.fs.options.session.converts = true;
	local_locks_begin(&fx.fs);
	assert_true(record_can_go_on(record_head(fx.fs.record)));
	atomic_store(&fx.fs.remount->phase, REMOUNT_COMMITS);
	conversion_step(fx.threads[0]);
	assert_int_equal(phase(), CONVERSION_DRAINS);
	assert_false(record_can_go_on(record_head(fx.fs.record)));
	conversion_is_over(&fx.fs);
	assert_true(record_can_go_on(record_head(fx.fs.record)));
	local_locks_end(&fx.fs);
	record_delete(steal_ptr(&fx.fs.record));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(enter__nobody_has_come__begins),
		TEST(enter__drains__only_the_kernels_own_begin),
		TEST(enter__appends_that_are_held_have_their_places),
		TEST(step__waits_for_what_has_begun),
		TEST(step__waits_for_names_that_were_removed_here),
		TEST(step__held_and_the_kernels_own__are_not_waited_for_to_drain),
		TEST(step__waits_for_the_kernel),
		TEST(step__without_the_server__stands_still),
		TEST(wanted__while_it_shares__is_no_news),
		TEST(wanted__again__changes_nothing),
		TEST(step__a_pin_is_refused__is_asked_for_again),
		TEST(pin__pages_are_cached__needs_the_lease),
		TEST(back__a_file_is_open__waits),
		TEST(back__while_it_is_alone__is_no_news),
		TEST(back__is_over__leaves_nothing),
		TEST(back__takes_too_long__is_tried_ever_later),
		TEST(locks__are_told_before_a_remount__nobody_takes_over),
		TEST(ttl__is_short_and_none_when_another_comes),
		TEST(adopt__has_what_the_kernel_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
