/* test_give_up.c - CONVERT_ALONE: what a session has of inodes that goes without leases from then on. */
#include "tests/unit/server/lease_fixture.h"

static int set_up_alone(void **state)
{
	set_up(state);
	fx.ctx.flags = ATTACH_CONVERTS | ATTACH_SHARED;
	fx.ctx.lonely = true;
	return 0;
}

static int convert(void)
{
	int err;

	as(0);
	err = FX_RUN(.op = RPC_CONVERT, .convert = {CONVERT_ALONE});
	fx.ctx.shared = err;
	return err;
}

/* A file that the session has open, and whose last name it or another one takes. */
static uint64_t make_nameless(const char *name, unsigned remover)
{
	uint64_t ino = make_file(name);

	take(0, ino, LEASE_NONE, LEASE_PIN);
	as(remover);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	if (remover)
		assert_int_equal(fx_return_inode(ino), 0);
	return ino;
}

static uint64_t count_leases(void)
{
	struct meta_usage n = fx_usage();

	return n.layouts + n.shared + n.exclusive + n.pins;
}

static void expect_returned(uint64_t ino)
{
	uint64_t inodes = fx_usage().inodes;

	as(0);
	assert_int_equal(fx_return_inode(ino), 0);
	expect_gone(ino, inodes - 1);
}

static void alone__has_no_lease_and_keeps_what_has_no_name(void **state)
{
	uint64_t named = make_file("named"), leased = make_file("leased");
	uint64_t own = make_nameless("own", 0), taken = make_nameless("taken", 1);
	uint64_t inodes = fx_usage().inodes;

	take(0, named, LEASE_NONE, LEASE_PIN);
	take(0, leased, LEASE_EXCLUSIVE, LEASE_PIN);
	/* A lease keeps it, too. */
	take(0, taken, LEASE_EXCLUSIVE, LEASE_PIN);
	assert_int_equal(convert(), 0);
	assert_int_equal(count_leases(), 0);
	assert_int_equal(fx_usage().inodes, inodes);
	fx_check();
	fx_reopen();
	assert_int_equal(fx_usage().inodes, inodes);
	expect_returned(own);
	expect_returned(taken);
	assert_int_equal(fx_lookup(ROOT_INO, "named"), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "leased"), 0);
	expect_returned(leased);
	fx_check();
}

/* Its records are deleted soon. All that keeps an inode is of one kind. */
static void alone__beside_what_an_ended_session_has_left(void **state)
{
	uint64_t named = make_file("named"), nameless = make_nameless("nameless", 1);
	uint64_t inodes = fx_usage().inodes;

	take(0, named, LEASE_SHARED, LEASE_PIN);
	take(2, named, LEASE_SHARED, LEASE_PIN);
	take(2, nameless, LEASE_SHARED, LEASE_PIN);
	assert_int_equal(convert(), 0);
	assert_false(record(0, named).number);
	assert_true(record(0, nameless).pinned);
	assert_int_equal(record(0, nameless).type, LEASE_NONE);
	fx_check();
	as(0);
	assert_int_equal(fx_return_inode(nameless), 0);
	assert_int_equal(fx_usage().inodes, inodes);
	as(2);
	fx_end_session();
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes - 1);
	fx_check();
}

static void alone__not_beside_others(void **state)
{
	uint64_t ino = make_file("file");

	take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);
	fx.ctx.lonely = false;
	assert_int_equal(convert(), -EBUSY);
	assert_int_equal(record(0, ino).type, LEASE_EXCLUSIVE);
	fx.ctx.lonely = true;
	assert_int_equal(convert(), 0);
	assert_int_equal(count_leases(), 0);
}

static void alone__not_with_too_much(void **state)
{
	uint64_t last = 0;
	char name[16];

	for (unsigned i = 0; i <= CONVERT_ALONE_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		last = make_file(name);
		take(0, last, LEASE_NONE, LEASE_PIN);
	}
	assert_int_equal(convert(), -EBUSY);
	assert_int_equal(count_leases(), CONVERT_ALONE_MAX + 1);
	give_back(0, last, UINT64_MAX, LEASE_NONE, true);
	assert_int_equal(convert(), 0);
	assert_int_equal(count_leases(), 0);
	fx_check();
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up_alone, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(alone__has_no_lease_and_keeps_what_has_no_name),
		CASE(alone__beside_what_an_ended_session_has_left),
		CASE(alone__not_beside_others),
		CASE(alone__not_with_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
