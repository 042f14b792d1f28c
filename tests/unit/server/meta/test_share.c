/* test_share.c - two exports of one store: one takes all that it can, and the other has what it
 * had. */
#include "tests/unit/server/xattr_fixture.h"

#include "server/record/lock.h"

enum { U, T }; /* the exports */
enum { SHARE_MIB = 4, STORE_MIB = 2 * SHARE_MIB };
enum { REPLIES = 64, REPLY_BYTES = 3000, MARGIN = 100 };

static uint64_t sessions[2], files; /* how many each case has made in u */

static void as(unsigned i)
{
	fx.ctx.export_index = i;
	fx.ctx.session = sessions[i];
}

static int begin_session(unsigned i, uint64_t *session)
{
	struct meta_session s = {
		.export_index = i, .flags = ATTACH_SHARED, .nchannels = 4, .client = "test:/mnt"};
	int err;

	assert_int_equal(meta_begin(fx.m), 0);
	err = meta_session_new(fx.m, &s);
	*session = s.id;
	if (err)
		meta_abort(fx.m);
	else
		assert_int_equal(meta_commit(fx.m), 0);
	return err;
}

static void open_both(uint64_t mib)
{
	fx.exports[T] = fx.exports[U];
	fx.exports[T].name = "t";
	fx.exports[T].bases = &fx.bases[2];
	fx.exports[U].metadata_bytes = fx.exports[T].metadata_bytes = mib << 20;
	fx.config.nexports = 2;
	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(fx_open(), 0);
}

static int set_up(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, (uint64_t)STORE_MIB << 20);
	fx_end_session();
	fx_settle();
	open_both(SHARE_MIB);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(begin_session(i, &sessions[i]), 0);
	fx.ctx.shared = true;
	fx.ctx.lease_limit = fx.ctx.lock_limit = UINT32_MAX;
	files = 0;
	as(U);
	return 0;
}

static uint64_t used(unsigned i)
{
	return share_used(fx.m->volumes[i]);
}

static uint64_t growth(unsigned i)
{
	return fx.m->volumes[i]->share.growth;
}

static uint64_t left(unsigned i)
{
	struct meta_usage usage;

	meta_usage(fx.m, i, &usage);
	return usage.share_left_bytes / PAGE_BYTES;
}

static uint64_t free_inodes(unsigned i)
{
	uint64_t session = fx.ctx.session;
	unsigned was = fx.ctx.export_index;

	as(i);
	assert_int_equal(FX_RUN(.op = RPC_STATFS), 0);
	as(was);
	fx.ctx.session = session;
	return fx.rep.statfs.free_inodes;
}

/* Makes files until there is no room, and returns how many. */
static uint64_t fill_with_files(void)
{
	uint64_t n = 0;
	char name[32];
	int status;

	do {
		snprintf(name, sizeof(name), "file.%06u", (unsigned)files++);
		status = fx_make(RPC_MKNOD, ROOT_INO, name, S_IFREG | 0644);
		n += !status;
	} while (!status);
	assert_int_equal(status, -ENOSPC);
	assert_non_null(strstr(fx.rep.text.s, "share of the memory for metadata"));
	return n;
}

/* u has taken what it could. t has what it had, and takes as much. */
static void expect_that_t_has_its_share(uint64_t before)
{
	assert_int_equal(free_inodes(T), before);
	as(T);
	assert_true(fill_with_files() > 1000);
	assert_true(used(T) + MARGIN >= growth(T));
}

/* ---- u is filled ----------------------------------------------------------------------------- */

static void inodes__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), left_before = left(T);

	assert_int_equal(used(U) + left(U), growth(U));
	fill_with_files();
	assert_in_range(used(U), growth(U) - MARGIN, growth(U));
	assert_true(left(U) <= MARGIN);
	assert_int_equal(left(T), left_before);
	assert_true(free_inodes(U) < 1000);
	expect_that_t_has_its_share(before);
}

static void attributes__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), ino = fx_file(ROOT_INO, "file");
	static uint8_t value[FX_LAST_BYTES];
	char name[32];
	int status = 0;

	for (unsigned i = 0; !status; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		status = fx_setxattr(ino, name, value, sizeof(value), 0);
	}
	assert_int_equal(status, -ENOSPC);
	expect_that_t_has_its_share(before);
}

static int stage_much(uint64_t session)
{
	static uint8_t value[FX_STAGE_BYTES];
	int status = 0;

	fx.ctx.session = session;
	for (uint32_t stage = 1; !status && stage <= 8; stage++)
		for (uint32_t at = 0; !status && at < 64000; at += sizeof(value))
			status = fx_stage(stage, at, value, sizeof(value));
	return status;
}

static void stages__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), session;
	int status = 0;

	while (!status) {
		assert_int_equal(begin_session(U, &session), 0);
		status = stage_much(session);
	}
	assert_int_equal(status, -ENOSPC);
	expect_that_t_has_its_share(before);
}

static int lock_one(uint64_t ino, uint64_t at)
{
	struct rpc_lock lock = {.ino = ino,
		.owner = 1,
		.start = 2 * at,
		.end = 2 * at,
		.kind = LOCK_KIND_POSIX,
		.type = LOCK_SHARED};

	return FX_RUN(.op = RPC_LOCK, .lock = lock);
}

static void locks__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), ino = 0;
	int status = 0;
	char name[32];

	for (unsigned i = 0; !status; i++) {
		if (i % 400 == 0) {
			snprintf(name, sizeof(name), "locked.%u", i);
			ino = fx_file(ROOT_INO, name);
		}
		status = lock_one(ino, i);
	}
	assert_int_equal(status, -ENOLCK);
	assert_true(used(U) <= growth(U));
	expect_that_t_has_its_share(before);
}

/* Leases may be taken of u's part of the reserve, and of no more. */
static void leases__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), session, n = fill_with_files(), last = 0;
	const struct volume *u = fx.m->volumes[U];
	int status = 0;

	while (!status) {
		assert_int_equal(begin_session(U, &session), 0);
		fx.ctx.session = session;
		for (uint64_t ino = ROOT_INO + 1; !status && ino < ROOT_INO + n; ino++)
			status = FX_RUN(.op = RPC_LEASE, .lease = {ino, LEASE_SHARED, LEASE_PIN});
		assert_true(u->now.leases.records > last);
		last = u->now.leases.records;
	}
	assert_int_equal(status, -ENOSPC);
	assert_true(used(U) <= u->share.most + MARGIN);
	expect_that_t_has_its_share(before);
}

static int store_replies(uint64_t session)
{
	static const uint8_t reply[REPLY_BYTES];
	int err;

	assert_int_equal(meta_begin(fx.m), 0);
	volume_charge(fx.m->volumes[U]);
	err = meta_room(fx.m, REPLIES, false);
	for (unsigned slot = 0; !err && slot < REPLIES; slot++)
		err = meta_reply_store(fx.m, session, slot, 1, reply, sizeof(reply));
	assert_int_equal(err, 0);
	return meta_commit(fx.m);
}

static void sessions__leave_the_other_export_its_share(void **state)
{
	uint64_t before = free_inodes(T), session;
	int err;

	while (!(err = begin_session(U, &session)))
		assert_int_equal(store_replies(session), 0);
	assert_int_equal(err, -ENOSPC);
	assert_true(used(U) <= fx.m->volumes[U]->share.most + MARGIN);
	as(U);
	assert_int_equal(fx_make(RPC_MKDIR, ROOT_INO, "dir", 0755), -ENOSPC);
	expect_that_t_has_its_share(before);
}

/* ---- room comes back ------------------------------------------------------------------------- */

static void full_share__lets_go_of_files(void **state)
{
	uint64_t n = fill_with_files(), again;
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "file.%06u", i);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
		assert_int_equal(fx_return_inode(fx.rep.entry.attr.ino), 0);
	}
	again = fill_with_files();
	assert_in_range(again, n * 9 / 10, n * 11 / 10);
}

static void remove_but_each_fourth(uint64_t first)
{
	char name[32];

	for (uint64_t i = first; i + 1 < files; i++) {
		snprintf(name, sizeof(name), "file.%06u", (unsigned)i);
		if (i % 4)
			assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	}
}

/* A page from which most records have gone is a page still. */
static void thin_pages__count_whole(void **state)
{
	uint64_t before = free_inodes(T);

	for (unsigned i = 0; i < 4; i++) {
		uint64_t first = files;

		fill_with_files();
		remove_but_each_fourth(first);
	}
	fill_with_files();
	expect_that_t_has_its_share(before);
}

/* An export that is not served has pages that nobody else can have. */
static void export_that_is_left_out__makes_less_of_the_shares(void **state)
{
	uint64_t before = growth(U), had, n;

	as(T);
	fill_with_files();
	had = used(T);
	fx.config.nexports = 1;
	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(fx_open(), 0);
	assert_in_range(before - growth(U), had / 2 - 20, had / 2 + 20);
	as(U);
	n = fill_with_files();
	assert_true(n > 100);
	assert_true(used(U) + MARGIN >= growth(U));
	open_both(SHARE_MIB);
}

static void smaller_share__refuses_growth_only(void **state)
{
	for (unsigned i = 0; i < 4000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file.%06u", i);
		assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, name, S_IFREG | 0644), 0);
	}
	open_both(1);
	assert_true(used(U) > fx.m->volumes[U]->share.pages);
	as(U);
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "more", S_IFREG | 0644), -ENOSPC);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file.000001"), 0);
	assert_int_equal(free_inodes(U), 0);
	as(T);
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "more", S_IFREG | 0644), 0);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The store has each export's records apart, so that only pages where these meet may count to the
 * other one after a start. */
static void start__counts_what_was_counted(void **state)
{
	uint64_t before[2];

	for (unsigned i = 0; i < 2; i++) {
		as(i);
		for (unsigned k = 0; k < 700u << i; k++) {
			char name[32];

			snprintf(name, sizeof(name), "file.%06u", k);
			fx_fill(fx_file(ROOT_INO, name), 0, 1);
			if (k % 3 == 0)
				assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
			if (k == 600)
				fx_settle();
		}
		before[i] = used(i);
	}
	fx_check();
	open_both(SHARE_MIB);
	for (unsigned i = 0; i < 2; i++)
		assert_in_range(used(i), before[i] - 20, before[i] + 20);
	assert_true(used(T) > used(U));
}

/* A batch that is undone has taken nothing. */
static void abort__takes_the_count_back(void **state)
{
	uint64_t before = used(U);

	assert_int_equal(meta_begin(fx.m), 0);
	for (unsigned i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof(name), "file.%06u", i);
		assert_int_equal(fx_execute(&(struct rpc_request){.op = RPC_MKNOD,
					 .create = {.parent = ROOT_INO,
						 .name = fx_str(name),
						 .mode = S_IFREG | 0644}}),
			0);
	}
	assert_true(used(U) > before);
	meta_abort(fx.m);
	assert_int_equal(used(U), before);
}

/* Each granted page may become an extent. */
static void grants__keep_room_for_their_commit(void **state)
{
	struct volume *u = fx.m->volumes[U];
	uint64_t with, without;

	fx_grant_run(FX_REGION_PAGES);
	without = u->share.growth - used(U);
	with = without - u->space.now.granted / PAGES_PER_STORE_PAGE;
	assert_int_equal(share_room(u, with, true), 0);
	assert_int_equal(share_room(u, with + 1, true), -ENOSPC);
	assert_true(share_has_room_but_for_grants(u, without));
	assert_false(share_has_room_but_for_grants(u, without + 1));
	assert_int_equal(share_room(u, with + 1, false), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(inodes__leave_the_other_export_its_share),
		CASE(attributes__leave_the_other_export_its_share),
		CASE(stages__leave_the_other_export_its_share),
		CASE(locks__leave_the_other_export_its_share),
		CASE(leases__leave_the_other_export_its_share),
		CASE(sessions__leave_the_other_export_its_share),
		CASE(full_share__lets_go_of_files),
		CASE(thin_pages__count_whole),
		CASE(export_that_is_left_out__makes_less_of_the_shares),
		CASE(smaller_share__refuses_growth_only),
		CASE(start__counts_what_was_counted),
		CASE(abort__takes_the_count_back),
		CASE(grants__keep_room_for_their_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
