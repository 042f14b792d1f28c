/* test_layout.c - files that several sessions read and overwrite at the same time: the stored
 * leases. */
#include "tests/unit/server/lease_fixture.h"

enum { READS = LEASE_SHARED, WRITES = LEASE_EXCLUSIVE };

static int ask(unsigned i, uint64_t ino, uint8_t type, uint8_t flags)
{
	as(i);
	return lease(ino, type, (uint8_t)(flags | LEASE_OR_LAYOUT));
}

static uint64_t gets(unsigned i, uint64_t ino, uint8_t asked, uint8_t flags, uint8_t type)
{
	assert_int_equal(ask(i, ino, asked, flags), 0);
	expect_lease(type);
	return fx.rep.entry.lease.number;
}

/* A file that the first two sessions overwrite. */
static uint64_t make_common(const char *name)
{
	uint64_t ino = make_file(name), number = take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);

	assert_int_equal(ask(1, ino, WRITES, 0), WAITS);
	expect_waits_for(ino, LEASE_OVERWRITE);
	give_back(0, ino, number, LEASE_OVERWRITE, false);
	gets(1, ino, WRITES, 0, LEASE_OVERWRITE);
	return ino;
}

static int commit_times(unsigned i, uint64_t ino, int64_t mtime, int64_t ctime)
{
	as(i);
	return FX_RUN(.op = RPC_COMMIT,
		.commit = {.ino = ino, .flags = COMMIT_MTIME, .mtime = mtime, .ctime = ctime});
}

/* ---- grants ---------------------------------------------------------------------------------- */

static void or_layout__is_all_where_nobody_is_in_the_way(void **state)
{
	uint64_t ino = make_file("file");

	gets(0, ino, WRITES, 0, LEASE_EXCLUSIVE);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, false);
	gets(0, ino, READS, 0, LEASE_SHARED);
	gets(1, ino, READS, 0, LEASE_SHARED);
	assert_int_equal(fx_usage().layouts, 0);
}

static void or_layout__waits_for_less(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);

	assert_int_equal(ask(1, ino, READS, 0), WAITS);
	expect_waits_for(ino, LEASE_LAYOUT);
	give_back(0, ino, number, LEASE_OVERWRITE, false);
	gets(1, ino, READS, 0, LEASE_LAYOUT);
	gets(2, ino, WRITES, 0, LEASE_OVERWRITE);
	assert_int_equal(fx_usage().layouts, 3);
	fx_check();
}

static void or_layout__of_a_writer_waits_for_those_who_keep_what_they_read(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_SHARED, LEASE_PIN);

	assert_int_equal(ask(1, ino, WRITES, 0), WAITS);
	expect_waits_for(ino, LEASE_OVERWRITE);
	give_back(0, ino, number, LEASE_LAYOUT, false);
	gets(1, ino, WRITES, 0, LEASE_OVERWRITE);
	assert_int_equal(ask(2, ino, READS, 0), 0);
	expect_lease(LEASE_LAYOUT);
	as(2);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), WAITS);
	expect_waits_for(ino, LEASE_SHARED);
}

static void if_free__never_takes_away(void **state)
{
	uint64_t ino = make_common("file");

	/* Growth needs the whole lease. The session keeps what it has, so its dirty data stays
	 * committable. */
	as(0);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, LEASE_IF_FREE), 0);
	expect_lease(LEASE_OVERWRITE);
	give_back(1, ino, UINT64_MAX, LEASE_LAYOUT, false);
	as(0);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, LEASE_IF_FREE), 0);
	expect_lease(LEASE_OVERWRITE);
	gets(1, ino, WRITES, LEASE_IF_FREE, LEASE_OVERWRITE);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, false);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_EXCLUSIVE);
	assert_int_equal(ask(2, ino, READS, LEASE_IF_FREE | LEASE_PIN), 0);
	expect_lease(LEASE_NONE);
}

static void if_free__is_behind_those_who_wait(void **state)
{
	uint64_t ino = make_common("file");

	give_back(0, ino, UINT64_MAX, LEASE_LAYOUT, false);
	others_want(LEASE_SHARED);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_LAYOUT);
	others_want(LEASE_OVERWRITE);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_OVERWRITE);
	others_want(LEASE_NONE);
}

/* While a request waits to look at the file, a writer gets nothing that other writers would wait
 * for. */
static void if_free__of_a_writer_is_in_no_writers_way(void **state)
{
	uint64_t ino = make_common("file");

	give_back(0, ino, UINT64_MAX, LEASE_LAYOUT, false);
	give_back(1, ino, UINT64_MAX, LEASE_LAYOUT, false);
	others_want(LEASE_SHARED);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_LAYOUT);
	gets(2, ino, WRITES, LEASE_IF_FREE, LEASE_LAYOUT);
	others_want(LEASE_NONE);
	gets(1, ino, WRITES, 0, LEASE_OVERWRITE);
	/* It keeps the lease that it has from reading. */
	give_back(1, ino, UINT64_MAX, LEASE_LAYOUT, false);
	gets(0, ino, READS, LEASE_IF_FREE, LEASE_SHARED);
	others_want(LEASE_SHARED);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_SHARED);
	others_want(LEASE_NONE);
}

static void return__keeps_what_both_have(void **state)
{
	uint64_t ino = make_common("file");

	give_back(0, ino, UINT64_MAX, LEASE_SHARED, false);
	assert_int_equal(record(0, ino).type, LEASE_LAYOUT);
	give_back(1, ino, UINT64_MAX, LEASE_OVERWRITE, false);
	assert_int_equal(record(1, ino).type, LEASE_OVERWRITE);
	fx_check();
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void getattr__waits_for_those_who_may_have_written(void **state)
{
	uint64_t ino = make_common("file");

	as(2);
	assert_int_equal(fx_getattr(ino), WAITS);
	expect_waits_for(ino, LEASE_SHARED);
	give_back(0, ino, UINT64_MAX, LEASE_LAYOUT, false);
	as(2);
	assert_int_equal(fx_getattr(ino), WAITS);
	give_back(1, ino, UINT64_MAX, LEASE_LAYOUT, false);
	as(2);
	assert_int_equal(fx_getattr(ino), 0);
	/* A session with a layout waits for the other writers, too, but not for itself. */
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_OVERWRITE);
	as(0);
	assert_int_equal(fx_getattr(ino), 0);
	as(1);
	assert_int_equal(fx_getattr(ino), WAITS);
}

static void change__waits_for_all_who_have_it(void **state)
{
	uint64_t ino = make_common("file");

	give_back(0, ino, UINT64_MAX, LEASE_LAYOUT, false);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, false);
	as(2);
	assert_int_equal(
		FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_MODE, .mode = 0600}),
		WAITS);
	expect_waits_for(ino, LEASE_EXCLUSIVE);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), WAITS);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), WAITS);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, false);
	as(2);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
}

/* Its OVERWRITE lease is more than the lease that GETATTR brings. */
static void look__leaves_it_what_it_has(void **state)
{
	uint64_t ino = make_common("file");

	give_back(1, ino, UINT64_MAX, LEASE_NONE, false);
	as(0);
	assert_int_equal(FX_RUN(.op = RPC_GETATTR, .ino = {.ino = ino, .look = LOOK_LEASE}), 0);
	assert_int_equal(fx.rep.attr.lease.type, LEASE_OVERWRITE);
	assert_int_equal(record(0, ino).type, LEASE_OVERWRITE);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void commit__tells_times_alone_and_none_that_are_over(void **state)
{
	uint64_t ino = make_common("file");

	fx.ctx.now = 100000;
	assert_int_equal(commit_times(0, ino, 5000, 6000), 0);
	assert_int_equal(commit_times(1, ino, 4000, 7000), 0);
	give_back(0, ino, UINT64_MAX, LEASE_LAYOUT, false);
	assert_int_equal(commit_times(0, ino, 9000, 9000), -ESTALE);
	as(1);
	assert_int_equal(
		FX_RUN(.op = RPC_COMMIT, .commit = {.ino = ino, .flags = COMMIT_SIZE, .size = 9}),
		-ESTALE);
	assert_int_equal(fx_getattr(ino), 0);
	assert_int_equal(fx.rep.attr.attr.mtime, 5000);
	assert_int_equal(fx.rep.attr.attr.ctime, 7000);
	/* The other client's clock may be behind the one of the write before. */
	give_back(0, ino, UINT64_MAX, LEASE_NONE, false);
	gets(1, ino, WRITES, LEASE_IF_FREE, LEASE_EXCLUSIVE);
	assert_int_equal(commit_times(1, ino, 4500, 6500), 0);
	assert_int_equal(fx.rep.attr.attr.mtime, 5000);
	assert_int_equal(fx.rep.attr.attr.ctime, 7000);
}

/* A time in the future, which was set by hand, ends with the next write. */
static void commit__makes_a_time_of_the_future_one_of_now(void **state)
{
	uint64_t ino = make_common("file");
	int64_t now = fx.ctx.now;

	assert_int_equal(commit_times(0, ino, now + 5000000000, now), 0);
	assert_int_equal(commit_times(1, ino, now - 1, now - 1), 0);
	assert_int_equal(fx.rep.attr.attr.mtime, now - 1);
	assert_int_equal(fx.rep.attr.attr.ctime, now);
}

/* Another client may have seen that time. */
static void commit__keeps_the_time_of_a_client_that_is_a_little_ahead(void **state)
{
	uint64_t ino = make_common("file");
	int64_t now = fx.ctx.now;

	assert_int_equal(commit_times(0, ino, now + 100000, now + 100000), 0);
	assert_int_equal(commit_times(1, ino, now + 5, now + 5), 0);
	assert_int_equal(fx.rep.attr.attr.mtime, now + 100000);
	assert_int_equal(fx.rep.attr.attr.ctime, now + 100000);
}

/* Nor does the server's own clock set a time back. */
static void truncate__behind_the_clock_of_a_client_that_is_a_little_ahead(void **state)
{
	uint64_t ino = make_common("file");
	int64_t now = fx.ctx.now;

	assert_int_equal(commit_times(0, ino, now + 100000, now + 100000), 0);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, false);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, false);
	gets(0, ino, WRITES, LEASE_IF_FREE, LEASE_EXCLUSIVE);
	assert_int_equal(FX_RUN(.op = RPC_SETATTR,
				 .setattr = {.ino = ino, .valid = SET_SIZE | SET_MTIME_NOW}),
		0);
	assert_int_equal(fx.rep.attr.attr.mtime, now + 100000);
	assert_int_equal(fx.rep.attr.attr.ctime, now + 100000);
	fx.ctx.now = now + 200000;
	assert_int_equal(FX_RUN(.op = RPC_SETATTR,
				 .setattr = {.ino = ino, .valid = SET_SIZE | SET_MTIME_NOW}),
		0);
	assert_int_equal(fx.rep.attr.attr.mtime, now + 200000);
}

static void end__of_who_may_have_written_there_touches_the_file(void **state)
{
	uint64_t written = make_common("written"), read = make_common("read");

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(commit_times(i, written, 5000, 6000), 0);
		assert_int_equal(commit_times(i, read, 5000, 6000), 0);
		give_back(i, read, UINT64_MAX, LEASE_LAYOUT, false);
	}
	as(0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, sessions[0]), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	as(1);
	assert_int_equal(fx_getattr(written), 0);
	assert_true(fx.rep.attr.attr.mtime > 6000);
	assert_int_equal(fx_getattr(read), 0);
	assert_int_equal(fx.rep.attr.attr.mtime, 5000);
	assert_int_equal(fx_usage().layouts, 2);
	fx_reopen();
	assert_int_equal(fx_usage().layouts, 2);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, fx_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(or_layout__is_all_where_nobody_is_in_the_way),
		CASE(or_layout__waits_for_less),
		CASE(or_layout__of_a_writer_waits_for_those_who_keep_what_they_read),
		CASE(if_free__never_takes_away),
		CASE(if_free__is_behind_those_who_wait),
		CASE(if_free__of_a_writer_is_in_no_writers_way),
		CASE(return__keeps_what_both_have),
		CASE(getattr__waits_for_those_who_may_have_written),
		CASE(change__waits_for_all_who_have_it),
		CASE(look__leaves_it_what_it_has),
		CASE(commit__tells_times_alone_and_none_that_are_over),
		CASE(commit__makes_a_time_of_the_future_one_of_now),
		CASE(commit__keeps_the_time_of_a_client_that_is_a_little_ahead),
		CASE(truncate__behind_the_clock_of_a_client_that_is_a_little_ahead),
		CASE(end__of_who_may_have_written_there_touches_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
