/* test_check_leases.c - corruptions of leases, each named by the check; see corruption.h. */
#include "tests/unit/server/corruption.h"

#include "common/rpc/wire.h"
#include "server/record/lease.h"

enum { STORE_BYTES = 4 << 20 };

/* ---- the store ------------------------------------------------------------------------------- */

static uint64_t dir, file, unlinked, alone, first, second;

static uint64_t new_session(uint32_t flags)
{
	struct meta_session s = {.flags = flags, .instance = 7, .nchannels = 1, .client = "c"};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return s.id;
}

static void lease(uint64_t session, uint64_t ino, uint8_t type, uint8_t flags)
{
	fx.ctx.session = session;
	assert_int_equal(FX_RUN(.op = RPC_LEASE, .lease = {ino, type, flags}), 0);
}

static int set_up(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	alone = fx.ctx.session;
	first = new_session(ATTACH_SHARED);
	second = new_session(ATTACH_SHARED);
	fx.ctx.shared = true;
	fx.ctx.session = first;
	dir = fx_dir(ROOT_INO, "dir");
	file = fx_file(dir, "file");
	unlinked = fx_file(dir, "unlinked");
	assert_int_equal(fx_name(RPC_UNLINK, dir, "unlinked"), 0);
	lease(first, file, LEASE_SHARED, 0);
	lease(second, file, LEASE_SHARED, LEASE_PIN);
	keep_image();
	return 0;
}

static int tear_down(void **state)
{
	free(image);
	return fx_tear_down(state);
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_lease(uint64_t key, uint64_t session, uint8_t type, uint8_t pinned, uint64_t number)
{
	uint8_t buf[14];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u8(&w, type);
	wire_put_u8(&w, pinned);
	wire_put_u64(&w, number);
	wire_put_u32(&w, 1);
	put(STORE_LEASE, key, session, buf, sizeof(buf));
}

static void of_nobody(void)
{
	put_lease(key_of(file), 77, LEASE_SHARED, 0, 1);
}

static void of_one_alone(void)
{
	put_lease(key_of(file), alone, LEASE_SHARED, 0, 1);
}

static void of_no_inode(void)
{
	put_lease(key_of(999), first, LEASE_SHARED, 0, 1);
}

static void of_directory(void)
{
	put_lease(key_of(dir), first, LEASE_EXCLUSIVE, 0, 1);
}

static void layout_of_directory(void)
{
	put_lease(key_of(dir), first, LEASE_LAYOUT, 0, 1);
}

static void of_no_export(void)
{
	put_lease(UINT64_C(9) << INO_BITS | file, first, LEASE_SHARED, 0, 1);
}

static void beside_exclusive(void)
{
	put_lease(key_of(file), first, LEASE_EXCLUSIVE, 0, 1);
}

static void beside_shared(void)
{
	put_lease(key_of(file), second, LEASE_EXCLUSIVE, 0, 1);
}

static void written_beside_shared(void)
{
	put_lease(key_of(file), second, LEASE_OVERWRITE, 0, 1);
}

static void of_nothing(void)
{
	put_lease(key_of(file), first, LEASE_NONE, 0, 1);
}

static void of_no_number(void)
{
	put_lease(key_of(file), first, LEASE_SHARED, 0, 0);
}

static void of_a_number_to_come(void)
{
	put_lease(key_of(file), first, LEASE_SHARED, 0, 4711);
}

static void of_impossible_type(void)
{
	put_lease(key_of(file), first, 9, 0, 1);
}

static void of_no_name(void)
{
	put_lease(key_of(unlinked), second, LEASE_SHARED, 0, 1);
}

static void unpinned(void)
{
	del(STORE_LEASE, key_of(unlinked), first);
}

static const struct corruption corruptions[] = {
	{of_nobody, "inode N is leased to session 77, which is not there"},
	{of_one_alone, "inode N is leased to session N, which is not shared"},
	{of_no_inode, "session N has a lease of inode 999, which is not there"},
	{of_directory,
		"session N has more than a shared lease of inode N, which is no regular file"},
	{layout_of_directory,
		"session N has more than a shared lease of inode N, which is no regular file"},
	{of_no_export, "table lease has records of export 9, which is not there"},
	{beside_exclusive,
		"inode N is leased to session N and to session N, who can't both have what they have"},
	{beside_shared,
		"inode N is leased to session N and to session N, who can't both have what they have"},
	{written_beside_shared,
		"inode N is leased to session N and to session N, who can't both have what they have"},
	{of_nothing, "the record of inode N and session N says nothing"},
	{of_no_number, "the lease of inode N for session N has a number that was not given out"},
	{of_a_number_to_come,
		"the lease of inode N for session N has a number that was not given out"},
	{of_impossible_type, "of table lease can't be read"},
	{of_no_name, "session N has a lease of inode N, which has no name, and does not keep it"},
	{unpinned, "inode N has no links and no session keeps it"},
};

/* ---- cases ----------------------------------------------------------------------------------- */

static void check__whole_leases_have_no_problem(void **state)
{
	assert_whole();
}

static void check__names_each_corruption_of_leases(void **state)
{
	assert_all_named(corruptions, ARRAY_SIZE(corruptions));
}

static void check__counts_leases(void **state)
{
	const struct check_report report = {.problem = collect};
	uint64_t nproblems;

	assert_int_equal(fx_open(), 0);
	fx_volume()->now.leases.pins++;
	nlines = 0;
	assert_int_equal(meta_check(fx.m, &report, &nproblems), 0);
	assert_int_equal(nproblems, 1);
	assert_true(is_named("3 records of leases are counted, and 3 were found, or they say"));
	meta_close(fx.m);
	fx.m = NULL;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check__whole_leases_have_no_problem),
		CASE(check__names_each_corruption_of_leases),
		CASE(check__counts_leases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
