/* test_check_locks.c - corruptions of locks, each named by the check; see corruption.h. */
#include "tests/unit/server/corruption.h"

#include "common/rpc/wire.h"
#include "server/record/lock.h"

enum { STORE_BYTES = 4 << 20, LOCKS = 2 };

/* ---- the store ------------------------------------------------------------------------------- */

static uint64_t file, alone, first, second, third;

static uint64_t new_session(uint32_t flags)
{
	struct meta_session s = {.flags = flags, .instance = 7, .nchannels = 1, .client = "c"};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return s.id;
}

static void lock(uint64_t session, uint8_t kind, uint64_t start, uint64_t end)
{
	struct rpc_lock lk = {.ino = file,
		.owner = 5,
		.start = start,
		.end = end,
		.kind = kind,
		.type = LOCK_EXCLUSIVE};

	fx.ctx.session = session;
	assert_int_equal(FX_RUN(.op = RPC_LOCK, .lock = lk), 0);
}

static int set_up(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, STORE_BYTES);
	alone = fx.ctx.session;
	first = new_session(ATTACH_SHARED);
	second = new_session(ATTACH_SHARED);
	third = new_session(ATTACH_SHARED | ATTACH_READ_ONLY);
	fx.ctx.shared = true;
	fx.ctx.lock_limit = SESSION_LOCKS_MAX;
	fx.ctx.session = first;
	file = fx_file(ROOT_INO, "file");
	lock(first, LOCK_KIND_POSIX, 10, 19);
	lock(first, LOCK_KIND_POSIX, 30, 39);
	lock(first, LOCK_KIND_FLOCK, 0, LOCK_END_MAX);
	lock(second, LOCK_KIND_POSIX, 20, 29);
	fx.ctx.read_only = true;
	lock(third, LOCK_KIND_POSIX, 50, 59);
	fx.ctx.read_only = false;
	lock(second, LOCK_KIND_POSIX, 55, 65);
	keep_image();
	return 0;
}

static int tear_down(void **state)
{
	free(image);
	return fx_tear_down(state);
}

/* ---- records --------------------------------------------------------------------------------- */

struct stored {
	uint64_t owner, start, end;
	uint8_t kind, type;
};

static void put_locks(uint64_t key, uint64_t session, const struct stored *locks, unsigned n)
{
	uint8_t buf[LOCKS * LOCK_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	for (unsigned i = 0; i < n; i++) {
		wire_put_u64(&w, locks[i].owner);
		wire_put_u64(&w, locks[i].start);
		wire_put_u64(&w, locks[i].end);
		wire_put_u32(&w, 0);
		wire_put_u8(&w, locks[i].kind);
		wire_put_u8(&w, locks[i].type);
	}
	put(STORE_LOCK, key, session, buf, wire_out_len(&w));
}

static void put_one(uint64_t key, uint64_t session, struct stored lock)
{
	put_locks(key, session, &lock, 1);
}

static const struct stored sound = {1, 50, 59, LOCK_KIND_POSIX, LOCK_EXCLUSIVE};

static void of_nobody(void)
{
	put_one(key_of(file), 77, sound);
}

static void of_one_alone(void)
{
	put_one(key_of(file), alone, sound);
}

static void of_no_export(void)
{
	put_one(UINT64_C(9) << INO_BITS | file, first, sound);
}

static void in_anothers_way(void)
{
	put_one(key_of(file), second, (struct stored){5, 15, 25, LOCK_KIND_POSIX, LOCK_SHARED});
}

enum { READ_ONLY = 128 };

/* Beside one session's exclusive lock a read-only session may have one, but not two of them. */
static void of_two_who_read(void)
{
	put_one(key_of(file), first,
		(struct stored){5, 10, 19, LOCK_KIND_POSIX, LOCK_EXCLUSIVE | READ_ONLY});
	put_one(key_of(file), second,
		(struct stored){5, 15, 25, LOCK_KIND_POSIX, LOCK_EXCLUSIVE | READ_ONLY});
}

static void out_of_order(void)
{
	const struct stored locks[LOCKS] = {{1, 60, 69, LOCK_KIND_POSIX, LOCK_EXCLUSIVE}, sound};

	put_locks(key_of(file), second, locks, LOCKS);
}

static void in_two(void)
{
	const struct stored locks[LOCKS] = {sound, {1, 60, 69, LOCK_KIND_POSIX, LOCK_EXCLUSIVE}};

	put_locks(key_of(file), second, locks, LOCKS);
}

static void of_half_a_file(void)
{
	put_one(key_of(999), second, (struct stored){1, 0, 9, LOCK_KIND_FLOCK, LOCK_SHARED});
}

static void of_no_kind(void)
{
	put_one(key_of(file), second, (struct stored){1, 0, 9, 0, LOCK_SHARED});
}

static void of_no_type(void)
{
	put_one(key_of(file), second, (struct stored){1, 0, 9, LOCK_KIND_POSIX, LOCK_FREE});
}

static void of_no_type_that_reads(void)
{
	put_one(key_of(file), second,
		(struct stored){1, 0, 9, LOCK_KIND_POSIX, LOCK_FREE | READ_ONLY});
}

static void backwards(void)
{
	put_one(key_of(file), second, (struct stored){1, 9, 8, LOCK_KIND_POSIX, LOCK_SHARED});
}

static void empty(void)
{
	put_locks(key_of(file), second, NULL, 0);
}

static const struct corruption corruptions[] = {
	{of_nobody, "inode N is locked by session 77, which is not there"},
	{of_one_alone, "inode N is locked by session N, which is not shared"},
	{of_no_export, "table lock has records of export 9, which is not there"},
	{in_anothers_way,
		"inode N is locked by session N and by session N, and one has that alone"},
	{of_two_who_read,
		"inode N is locked by session N and by session N, and one has that alone"},
	{out_of_order, "the locks of inode N for session N are out of order, or not whole"},
	{in_two, "the locks of inode N for session N are out of order, or not whole"},
	{of_half_a_file, "the locks of inode 999 for session N are out of order, or not whole"},
	{of_no_kind, "of table lock can't be read"},
	{of_no_type, "of table lock can't be read"},
	{of_no_type_that_reads, "of table lock can't be read"},
	{backwards, "of table lock can't be read"},
	{empty, "of table lock can't be read"},
};

/* ---- cases ----------------------------------------------------------------------------------- */

static void check__whole_locks_have_no_problem(void **state)
{
	assert_whole();
}

static void check__names_each_corruption_of_locks(void **state)
{
	assert_all_named(corruptions, ARRAY_SIZE(corruptions));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(check__whole_locks_have_no_problem),
		CASE(check__names_each_corruption_of_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
