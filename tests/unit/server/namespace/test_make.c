/* test_make.c - lent inode numbers, and files that are made by MAKE. */
#include "tests/unit/server/meta_fixture.h"

#include "server/meta/lent_numbers.h"

static uint64_t dir;

/* Makes a file by CREATE, and returns the first of the numbers that came along. */
static uint64_t lend(uint8_t numbers)
{
	static unsigned n;
	char name[16];
	struct rpc_create create = {
		.parent = ROOT_INO, .mode = S_IFREG | 0644, .exclusive = true, .numbers = numbers};

	snprintf(name, sizeof(name), "asks%u", n++);
	create.name = fx_str(name);
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = create), 0);
	return fx.rep.entry.lent.n ? fx.rep.entry.lent.first : 0;
}

static struct rpc_commit making(uint64_t ino, const char *name)
{
	return (struct rpc_commit){.ino = ino,
		.make = {.parent = dir,
			.time = fx.ctx.now - 10,
			.mode = S_IFREG | 0666,
			.umask = 022,
			.uid = 10,
			.gid = 20,
			.name = fx_str(name)}};
}

static int make(uint64_t ino, const char *name)
{
	return FX_RUN(.op = RPC_MAKE, .commit = making(ino, name));
}

static int set_up(void **state)
{
	fx_set_up(state);
	dir = fx_dir(ROOT_INO, "dir");
	return 0;
}

static void numbers__are_lent_when_asked_for(void **state)
{
	uint64_t first, second;

	assert_int_equal(lend(NUMBERS_NONE), 0);
	first = lend(NUMBERS_MORE);
	assert_int_not_equal(first, 0);
	assert_int_equal(fx.rep.entry.lent.n, NUMBERS_LENT);
	second = lend(NUMBERS_MORE);
	assert_true(second >= first + NUMBERS_LENT);
	/* Nobody else gets one of them. */
	assert_true(fx_file(ROOT_INO, "later") >= second + NUMBERS_LENT);
	/* No more than two windows are lent. */
	assert_int_equal(lend(NUMBERS_MORE), 0);
}

static void numbers__come_again_when_used_up(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), second = lend(NUMBERS_MORE);
	struct rpc_commit commit;
	char name[16];

	for (unsigned i = 0; i < NUMBERS_LENT; i++) {
		snprintf(name, sizeof(name), "%u", i);
		commit = making(first + i, name);
		commit.make.numbers = NUMBERS_MORE;
		assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), 0);
		assert_int_equal(fx.rep.attr.lent.n, i + 1 < NUMBERS_LENT ? 0 : NUMBERS_LENT);
	}
	assert_true(fx.rep.attr.lent.first >= second + NUMBERS_LENT);
	assert_int_equal(make(fx.rep.attr.lent.first, "more"), 0);
}

static void numbers__anew_end_those_from_before(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), again;

	lend(NUMBERS_MORE);
	again = lend(NUMBERS_ANEW);
	assert_int_not_equal(again, 0);
	assert_int_equal(make(first, "a"), -EINVAL);
	assert_int_equal(make(again, "a"), 0);
}

static void numbers__are_of_one_session(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), here = fx.ctx.session;

	fx.ctx.session = fx_new_session();
	assert_int_equal(make(first, "a"), -EINVAL);
	fx.ctx.session = here;
	assert_int_equal(make(first, "a"), 0);
}

static void numbers__outlive_the_server(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);

	assert_int_equal(make(first, "a"), 0);
	fx_reopen();
	assert_int_equal(make(first, "b"), -EINVAL);
	assert_int_equal(make(first + 1, "b"), 0);
	assert_true(fx_file(ROOT_INO, "later") >= first + NUMBERS_LENT);
}

static void numbers__are_not_lent_where_make_could_be_refused(void **state)
{
	fx.ctx.shared = true;
	assert_int_equal(lend(NUMBERS_MORE), 0);
	fx.ctx.shared = false;
	fx.ctx.squash = (struct squash){SQUASH_ROOT, 65534, 65534};
	assert_int_equal(lend(NUMBERS_MORE), 0);
	fx.ctx.squash = (struct squash){0};
	fx_volume()->max_inodes = fx_usage().inodes + 100;
	assert_int_equal(lend(NUMBERS_MORE), 0);
	fx_volume()->max_inodes = UINT64_MAX;
	assert_int_not_equal(lend(NUMBERS_MORE), 0);
}

/* As CREATE and COMMIT do. */
static void make__is_a_file_with_its_pages(void **state)
{
	uint64_t ino = lend(NUMBERS_MORE) + 5, inodes = fx_usage().inodes;
	struct extent e = fx_grant_run(3);
	struct rpc_commit commit = making(ino, "made");
	struct attr was = fx_attr(dir), is;

	e.fpage = 0;
	commit.flags = COMMIT_SIZE | COMMIT_MTIME;
	commit.size = 3 * PAGE_BYTES - 5;
	commit.mtime = commit.ctime = fx.ctx.now - 3;
	commit.tail = fx_extents_tail(&e, 1);
	fx.ctx.now += 100;
	assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), 0);
	is = fx.rep.attr.attr;
	assert_int_equal(fx_lookup(dir, "made"), 0);
	fx_assert_same(&fx.rep.entry.attr, &is);
	assert_int_equal(fx.rep.entry.nextents, 1);
	assert_memory_equal(&fx.rep.entry.head[0], &e, sizeof(e));
	assert_int_equal(is.ino, ino);
	assert_int_equal(is.mode, S_IFREG | 0644);
	assert_int_equal(is.nlink, 1);
	assert_int_equal(is.uid, 10);
	assert_int_equal(is.gid, 20);
	assert_int_equal(is.size, commit.size);
	assert_int_equal(is.npages, 3);
	assert_int_equal(is.mtime, commit.mtime);
	assert_int_equal(is.ctime, commit.mtime);
	assert_int_equal(is.btime, commit.make.time);
	assert_int_equal(is.atime, commit.make.time);
	assert_int_equal(fx_usage().inodes, inodes + 1);
	is = fx_attr(dir);
	assert_int_equal(is.mtime, max_u64((uint64_t)was.mtime, (uint64_t)commit.make.time));
}

static void make__takes_what_was_set_meanwhile(void **state)
{
	struct rpc_commit commit = making(lend(NUMBERS_MORE), "set");

	commit.flags = COMMIT_MODE | COMMIT_UID | COMMIT_GID | COMMIT_ATIME | COMMIT_MTIME;
	commit.mode = 04755;
	commit.uid = 7;
	commit.gid = 8;
	commit.atime = 3;
	commit.mtime = 4;
	commit.ctime = fx.ctx.now;
	assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), 0);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 04755);
	assert_int_equal(fx.rep.attr.attr.uid, 7);
	assert_int_equal(fx.rep.attr.attr.gid, 8);
	assert_int_equal(fx.rep.attr.attr.atime, 3);
	assert_int_equal(fx.rep.attr.attr.mtime, 4);
}

static void make__gets_the_group_of_a_set_group_id_directory(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);

	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = dir,
							   .valid = SET_MODE | SET_GID,
							   .mode = 02775,
							   .gid = 77}),
		0);
	assert_int_equal(make(first, "a"), 0);
	assert_int_equal(fx.rep.attr.attr.gid, 77);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 0644);
}

static void make__of_a_wrong_number_is_refused(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);

	assert_int_equal(make(first - 1, "a"), -EINVAL);
	assert_int_equal(make(first + NUMBERS_LENT, "a"), -EINVAL);
	assert_int_equal(make(0, "a"), -EINVAL);
	assert_int_equal(make(UINT64_MAX, "a"), -EINVAL);
	assert_int_equal(make(first, "a"), 0);
	assert_int_equal(make(first, "b"), -EINVAL);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "a"), 0);
	assert_int_equal(fx_return_inode(first), 0);
	assert_int_equal(make(first, "c"), -EINVAL);
}

static void make__refused_changes_nothing(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), inodes;
	struct extent e = fx_grant_run(1), wrong = e;
	struct rpc_commit commit = making(first, "a");

	wrong.page += 1;
	fx_file(dir, "taken");
	inodes = fx_usage().inodes;
	assert_int_equal(make(first, "taken"), -EEXIST);
	commit.tail = fx_extents_tail(&wrong, 1);
	assert_true(FX_RUN(.op = RPC_MAKE, .commit = commit) < 0);
	commit = making(first, "a");
	commit.make.parent = 12345;
	assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), -ESTALE);
	fx.ctx.shared = true;
	assert_int_equal(make(first, "a"), -EINVAL);
	fx.ctx.shared = false;
	fx.ctx.read_only = true;
	assert_int_equal(make(first, "a"), -EROFS);
	fx.ctx.read_only = false;
	assert_int_equal(fx_usage().inodes, inodes);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	assert_int_equal(make(first, "a"), 0);
}

/* Numbers that are lent are as good as room: only growth is refused. */
static void make__finds_room_in_a_full_store(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), second = lend(NUMBERS_MORE);
	char name[256];
	int err = 0;

	memset(name, 'n', sizeof(name));
	name[250] = 0;
	for (unsigned i = 0; !err; i++) {
		name[snprintf(name, sizeof(name), "%u", i)] = '-';
		err = fx_make(RPC_CREATE, dir, name, S_IFREG | 0644);
	}
	assert_int_equal(err, -ENOSPC);
	for (unsigned i = 0; i < 2 * NUMBERS_LENT; i++) {
		uint64_t ino = i < NUMBERS_LENT ? first + i : second + i - NUMBERS_LENT;
		struct rpc_commit commit = making(ino, name);

		name[snprintf(name, sizeof(name), "made %u", i)] = '-';
		commit.make.name = fx_str(name);
		commit.make.numbers = NUMBERS_MORE;
		assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), 0);
		assert_int_equal(fx.rep.attr.lent.n, 0);
	}
}

/* The server squashes since then: what was told cannot be refused, but becomes less. */
static void make__of_users_that_are_squashed_by_now(void **state)
{
	struct rpc_commit commit = making(lend(NUMBERS_MORE), "a");

	commit.make.uid = commit.make.gid = 0;
	commit.make.mode = S_IFREG | 06755;
	fx.ctx.squash = (struct squash){SQUASH_ROOT, 65534, 65533};
	assert_int_equal(FX_RUN(.op = RPC_MAKE, .commit = commit), 0);
	assert_int_equal(fx.rep.attr.attr.uid, 65534);
	assert_int_equal(fx.rep.attr.attr.gid, 65533);
	assert_int_equal(fx.rep.attr.attr.mode, S_IFREG | 0755);
}

#define MAKE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAKE_TEST(numbers__are_lent_when_asked_for),
		MAKE_TEST(numbers__come_again_when_used_up),
		MAKE_TEST(numbers__anew_end_those_from_before),
		MAKE_TEST(numbers__are_of_one_session),
		MAKE_TEST(numbers__outlive_the_server),
		MAKE_TEST(numbers__are_not_lent_where_make_could_be_refused),
		MAKE_TEST(make__is_a_file_with_its_pages),
		MAKE_TEST(make__takes_what_was_set_meanwhile),
		MAKE_TEST(make__gets_the_group_of_a_set_group_id_directory),
		MAKE_TEST(make__of_a_wrong_number_is_refused),
		MAKE_TEST(make__refused_changes_nothing),
		MAKE_TEST(make__finds_room_in_a_full_store),
		MAKE_TEST(make__of_users_that_are_squashed_by_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
