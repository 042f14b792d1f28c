/* test_removal.c - an export goes with all its records, and nothing of others does. */
#include "tests/unit/server/reconfigure_fixture.h"

#include "server/meta/removal.h"

static int set_up(void **state)
{
	reconfigure_set_up(state);
	assert_int_equal(reconfigure(&none), 0);
	return 0;
}

static int set(const char *name)
{
	fx.exports[1].name = name;
	return reconfigure(&none);
}

static void end(uint64_t session)
{
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 1, session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void set_value(uint64_t ino)
{
	static const uint8_t value[300] = "value";

	assert_int_equal(FX_RUN(.op = RPC_SETXATTR, .setxattr = {.ino = ino,
							    .name = fx_str("user.a"),
							    .total = sizeof(value),
							    .tail = {value, sizeof(value)}}),
		0);
}

static void reply(uint64_t session)
{
	assert_int_equal(meta_begin(fx.m), 0);
	volume_charge(fx.m->volumes[1]);
	assert_int_equal(meta_reply_store(fx.m, session, 0, 1, "reply", 5), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

/* Files with pages, names, attributes, a target, an unlinked one that is kept; the number of the
 * last one. The session stays. */
static uint64_t fill(uint64_t session)
{
	uint64_t ino = 0, dir = fx_dir(ROOT_INO, "dir");
	char name[16];

	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		ino = fx_file(dir, name);
	}
	fx_fragmented("pieces", 60);
	set_value(dir);
	assert_int_equal(fx_make(RPC_SYMLINK, ROOT_INO, "link", S_IFLNK | 0777), 0);
	ino = fx_file(ROOT_INO, "kept");
	fx_fill(ino, 0, 20);
	fx_grant_run(30);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "kept"), 0);
	reply(session);
	return ino;
}

/* Records of the export in all tables, and of the session. */
static unsigned count(uint16_t id, uint64_t session)
{
	unsigned n = 0;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	for (enum store_table t = STORE_INODE; t < STORE_TABLES; t++) {
		bool by_session = t == STORE_SESSION || t == STORE_ORPHAN || t == STORE_REPLY ||
				  t == STORE_STAGE || t == STORE_HELD;
		struct store_key key;
		int err = store_seek(fx.m->store, t, STORE_KEY(0), &key, NULL);

		while (!err) {
			n += by_session ? key.hi == session : key.hi >> INO_BITS == id;
			err = store_next(fx.m->store, t, &key, NULL);
		}
		assert_int_equal(err, -ENOENT);
	}
	store_abort(fx.m->store);
	return n;
}

static void purge(void)
{
	bool more;

	while (fx.m->now.removed)
		fx_reclaim(&more);
}

static void remove__takes_all_records_of_one_export(void **state)
{
	uint16_t id = fx.m->volumes[1]->id;
	uint64_t session, other = fx.ctx.session;
	struct extent e;
	uint64_t ino = fx_file(ROOT_INO, "stays");

	e = fx_fill(ino, 0, 3);
	memset(fx_page(&e, 0), 7, PAGE_BYTES);
	session = use(1);
	fill(session);
	end(session);
	assert_true(count(id, session) > 600);
	assert_int_equal(set(NULL), 0);
	assert_false(knows("more"));
	assert_int_equal(fx.m->now.nending, 0);
	assert_true(count(id, session) > 600);
	purge();
	assert_int_equal(count(id, session), 0);
	fx.ctx.export_index = 0;
	fx.ctx.session = other;
	assert_int_equal(fx_lookup(ROOT_INO, "stays"), 0);
	assert_int_equal(fx_page(&e, 0)[5], 7);
	fx_settle();
}

static void remove__with_a_session_is_refused(void **state)
{
	use(1);
	fx_file(ROOT_INO, "file");
	assert_int_equal(set(NULL), -EBUSY);
	assert_true(knows("more"));
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
}

/* The store has its name and its place again, and a client's old inodes are not found in it. */
static void remove__and_add_again_is_empty(void **state)
{
	uint64_t session = use(1), ino = fill(session);

	end(session);
	assert_int_equal(set(NULL), 0);
	assert_int_equal(set("more"), 0);
	assert_int_equal(fx.m->nvolumes, 2);
	use(1);
	assert_int_equal(fx_lookup(ROOT_INO, "dir"), -ENOENT);
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_true(fx_file(ROOT_INO, "new") > ino);
	assert_int_equal(fx.m->now.removed, 1);
	purge();
	assert_int_equal(fx_lookup(ROOT_INO, "new"), 0);
	fx_check();
}

static void remove__goes_on_at_the_next_open(void **state)
{
	uint16_t id = fx.m->volumes[1]->id;
	uint64_t session = use(1);
	bool more;

	fill(session);
	end(session);
	assert_int_equal(set(NULL), 0);
	fx_reclaim(&more);
	fx_reclaim(&more);
	fx.config.nexports = 1;
	fx_reopen();
	assert_int_equal(fx.m->nvolumes, 1);
	assert_int_equal(fx.m->now.removed, 1);
	assert_true(count(id, session) > 0);
	purge();
	assert_int_equal(count(id, session), 0);
	fx_reopen();
	assert_int_equal(fx.m->now.removed, 0);
}

static void remove__leaves_one_record_however_often(void **state)
{
	unsigned n = 0;
	struct store_key key;
	uint64_t first, last = 0;
	int err;

	for (unsigned i = 0; i < 5; i++) {
		first = fx.m->volumes[1]->now.next_ino;
		assert_true(first > last || !i);
		end(use(1));
		use(1);
		fx_file(ROOT_INO, "file");
		end(fx.ctx.session);
		last = fx.m->volumes[1]->now.next_ino;
		assert_int_equal(set(NULL), 0);
		if (i % 2)
			purge();
		assert_int_equal(set("more"), 0);
		assert_true(fx.m->volumes[1]->now.next_ino >= last);
		last = first;
	}
	purge();
	assert_int_equal(store_begin_read(fx.m->store), 0);
	err = store_seek(fx.m->store, STORE_META, STORE_KEY(1), &key, NULL);
	for (; !err; n++)
		err = store_next(fx.m->store, STORE_META, &key, NULL);
	store_abort(fx.m->store);
	assert_int_equal(n, 3); /* two exports, and the removed one with the highest number */
	assert_true(key.hi <= 8);
}

/* The scrubber has jobs of the export, at work and finished ones. */
static void remove__while_its_pages_are_scrubbed(void **state)
{
	uint64_t session = use(1), ino;
	uint8_t *page;
	bool more;

	ino = fx_file(ROOT_INO, "file");
	for (unsigned i = 0; i < 100; i++)
		fx_fill(ino, 2 * i, 1);
	end(session);
	meta_allow_reuse(fx.m, 1);
	session = use(1);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	end(session);
	while (!fx.m->volumes[1]->space.now.dirty)
		fx_reclaim(&more);
	fx_reclaim(&more);
	assert_int_equal(set(NULL), 0);
	page = fx.bases[2];
	memset(page, 1, FX_REGION_PAGES * PAGE_BYTES);
	purge();
	fx_reclaim(&more);
	for (size_t i = 0; i < (size_t)FX_REGION_PAGES * PAGE_BYTES; i++)
		if (page[i] != 1)
			fail_msg("byte %zu was scrubbed after the end", i);
	memset(page, 0, FX_REGION_PAGES * PAGE_BYTES);
	assert_int_equal(set("more"), 0);
	fx_settle();
}

/* Also of a store that nobody has open. */
static void stored__tells_of_removed_ones(void **state)
{
	bool stored;

	assert_int_equal(set(NULL), 0);
	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(meta_stored(fx.dir, "more", &stored, fx.why, sizeof(fx.why)), 0);
	assert_false(stored);
	assert_int_equal(meta_stored(fx.dir, "default", &stored, fx.why, sizeof(fx.why)), 0);
	assert_true(stored);
	assert_int_equal(
		meta_stored("/nonexistent", "default", &stored, fx.why, sizeof(fx.why)), 0);
	assert_false(stored);
	fx.config.nexports = 1;
	assert_int_equal(fx_open(), 0);
	purge();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(remove__takes_all_records_of_one_export),
		TEST(remove__with_a_session_is_refused),
		TEST(remove__and_add_again_is_empty),
		TEST(remove__goes_on_at_the_next_open),
		TEST(remove__leaves_one_record_however_often),
		TEST(remove__while_its_pages_are_scrubbed),
		TEST(stored__tells_of_removed_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
