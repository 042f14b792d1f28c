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

static struct rpc_making making(uint64_t ino, const char *name)
{
	return (struct rpc_making){.commit.ino = ino,
		.make = {.parent = dir,
			.time = fx.ctx.now - 10,
			.mode = S_IFREG | 0666,
			.umask = 022,
			.uid = 10,
			.gid = 20,
			.name = fx_str(name)}};
}

/* Sends them in one request; its status. */
static int send_makings(const struct rpc_making *v, unsigned n, uint8_t numbers)
{
	static uint8_t tail[RPC_MSG_BYTES];
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	for (unsigned i = 0; i < n; i++)
		assert_true(rpc_put_making(&w, &v[i]));
	return FX_RUN(.op = RPC_MAKE,
		.makes = {numbers, {tail, (uint32_t)wire_out_len(&w), RMEMFS_WIRE_VERSION}});
}

/* Sends one; its own status, or the request's. */
static int send_making(struct rpc_making m, uint8_t numbers)
{
	int err = send_makings(&m, 1, numbers);

	if (!err)
		assert_int_equal(fx.rep.makes.n, 1);
	return err ? err : fx.rep.makes.status[0];
}

static int make(uint64_t ino, const char *name)
{
	return send_making(making(ino, name), NUMBERS_NONE);
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
	struct rpc_making m;
	char name[16];

	for (unsigned i = 0; i < NUMBERS_LENT; i++) {
		snprintf(name, sizeof(name), "%u", i);
		m = making(first + i, name);
		assert_int_equal(send_making(m, NUMBERS_MORE), 0);
		assert_int_equal(fx.rep.makes.lent.n, i + 1 < NUMBERS_LENT ? 0 : NUMBERS_LENT);
	}
	assert_true(fx.rep.makes.lent.first >= second + NUMBERS_LENT);
	assert_int_equal(make(fx.rep.makes.lent.first, "more"), 0);
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
	struct rpc_making m = making(ino, "made");
	struct attr was = fx_attr(dir), is;

	e.fpage = 0;
	m.commit.flags = COMMIT_SIZE | COMMIT_MTIME;
	m.commit.size = 3 * PAGE_BYTES - 5;
	m.commit.mtime = m.commit.ctime = fx.ctx.now - 3;
	m.commit.tail = fx_extents_tail(&e, 1);
	fx.ctx.now += 100;
	assert_int_equal(send_making(m, NUMBERS_NONE), 0);
	assert_int_equal(fx_lookup(dir, "made"), 0);
	is = fx.rep.entry.attr;
	assert_int_equal(fx.rep.entry.nextents, 1);
	assert_memory_equal(&fx.rep.entry.head[0], &e, sizeof(e));
	assert_int_equal(is.ino, ino);
	assert_int_equal(is.mode, S_IFREG | 0644);
	assert_int_equal(is.nlink, 1);
	assert_int_equal(is.uid, 10);
	assert_int_equal(is.gid, 20);
	assert_int_equal(is.size, m.commit.size);
	assert_int_equal(is.npages, 3);
	assert_int_equal(is.mtime, m.commit.mtime);
	assert_int_equal(is.ctime, m.commit.mtime);
	assert_int_equal(is.btime, m.make.time);
	assert_int_equal(is.atime, m.make.time);
	assert_int_equal(fx_usage().inodes, inodes + 1);
	is = fx_attr(dir);
	assert_int_equal(is.mtime, max_u64((uint64_t)was.mtime, (uint64_t)m.make.time));
}

static void make__takes_what_was_set_meanwhile(void **state)
{
	struct rpc_making m = making(lend(NUMBERS_MORE), "set");

	m.commit.flags = COMMIT_MODE | COMMIT_UID | COMMIT_GID | COMMIT_ATIME | COMMIT_MTIME;
	m.commit.mode = 04755;
	m.commit.uid = 7;
	m.commit.gid = 8;
	m.commit.atime = 3;
	m.commit.mtime = 4;
	m.commit.ctime = fx.ctx.now;
	assert_int_equal(send_making(m, NUMBERS_NONE), 0);
	assert_int_equal(fx_lookup(dir, "set"), 0);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 04755);
	assert_int_equal(fx.rep.entry.attr.uid, 7);
	assert_int_equal(fx.rep.entry.attr.gid, 8);
	assert_int_equal(fx.rep.entry.attr.atime, 3);
	assert_int_equal(fx.rep.entry.attr.mtime, 4);
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
	assert_int_equal(fx_lookup(dir, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.gid, 77);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 0644);
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
	struct rpc_making m = making(first, "a");

	wrong.page += 1;
	fx_file(dir, "taken");
	inodes = fx_usage().inodes;
	assert_int_equal(make(first, "taken"), -EEXIST);
	m.commit.tail = fx_extents_tail(&wrong, 1);
	assert_true(send_making(m, NUMBERS_NONE) < 0);
	m = making(first, "a");
	m.make.parent = 12345;
	assert_int_equal(send_making(m, NUMBERS_NONE), -ESTALE);
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

static void assert_statuses(const int *want, unsigned n)
{
	assert_int_equal(fx.rep.makes.n, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(fx.rep.makes.status[i], want[i]);
}

/* Until nothing can grow. The names are as long as possible. */
static char long_name[256];

static void fill_store(void)
{
	int err = 0;

	memset(long_name, 'n', sizeof(long_name));
	long_name[250] = 0;
	for (unsigned i = 0; !err; i++) {
		long_name[snprintf(long_name, sizeof(long_name), "%u", i)] = '-';
		err = fx_make(RPC_CREATE, dir, long_name, S_IFREG | 0644);
	}
	assert_int_equal(err, -ENOSPC);
}

/* Numbers that are lent are as good as room: only growth is refused. */
static void make__finds_room_in_a_full_store(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), second = lend(NUMBERS_MORE);

	fill_store();
	for (unsigned i = 0; i < 2 * NUMBERS_LENT; i++) {
		uint64_t ino = i < NUMBERS_LENT ? first + i : second + i - NUMBERS_LENT;

		long_name[snprintf(long_name, sizeof(long_name), "made %u", i)] = '-';
		assert_int_equal(send_making(making(ino, long_name), NUMBERS_MORE), 0);
		assert_int_equal(fx.rep.makes.lent.n, 0);
	}
}

static void makes__find_room_in_a_full_store(void **state)
{
	static const int good[MAKES_MAX];
	uint64_t first = lend(NUMBERS_MORE);
	struct rpc_making v[MAKES_MAX];
	char names[MAKES_MAX][256];

	fill_store();
	for (unsigned i = 0; i < NUMBERS_LENT; i += MAKES_MAX) {
		for (unsigned k = 0; k < MAKES_MAX; k++) {
			memcpy(names[k], long_name, sizeof(long_name));
			names[k][snprintf(names[k], sizeof(names[k]), "made %u", i + k)] = '-';
			v[k] = making(first + i + k, names[k]);
		}
		assert_int_equal(send_makings(v, MAKES_MAX, NUMBERS_NONE), 0);
		assert_statuses(good, MAKES_MAX);
	}
}

/* The server squashes since then: what was told cannot be refused, but becomes less. */
static void make__of_users_that_are_squashed_by_now(void **state)
{
	struct rpc_making m = making(lend(NUMBERS_MORE), "a");

	m.make.uid = m.make.gid = 0;
	m.make.mode = S_IFREG | 06755;
	fx.ctx.squash = (struct squash){SQUASH_ROOT, 65534, 65533};
	assert_int_equal(send_making(m, NUMBERS_NONE), 0);
	assert_int_equal(fx_lookup(dir, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.uid, 65534);
	assert_int_equal(fx.rep.entry.attr.gid, 65533);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 0755);
}

/* ---- many in one request --------------------------------------------------------------------- */

static void assert_made(uint64_t parent, const char *name, uint64_t ino)
{
	assert_int_equal(fx_lookup(parent, name), 0);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
}

static void makes__are_files_of_any_directory(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), other = fx_dir(ROOT_INO, "other");
	uint64_t inodes = fx_usage().inodes;
	static const int good[MAKES_MAX];
	struct rpc_making v[MAKES_MAX];
	char names[MAKES_MAX][8];

	for (unsigned i = 0; i < MAKES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i);
		v[i] = making(first + i, names[i]);
		/* There and back. */
		if (i % 5 == 4)
			v[i].make.parent = other;
		v[i].make.time += i;
	}
	fx.ctx.now += 100;
	assert_int_equal(send_makings(v, MAKES_MAX, NUMBERS_MORE), 0);
	assert_statuses(good, MAKES_MAX);
	assert_int_equal(fx.rep.makes.lent.n, NUMBERS_LENT);
	for (unsigned i = 0; i < MAKES_MAX; i++)
		assert_made(v[i].make.parent, names[i], first + i);
	assert_int_equal(fx_usage().inodes, inodes + MAKES_MAX);
	assert_int_equal(fx_attr(dir).mtime, v[15].make.time);
	assert_int_equal(fx_attr(other).mtime, v[14].make.time);
	fx_reopen();
	assert_made(dir, "3", first + 3);
	assert_int_equal(make(first + 3, "used"), -EINVAL);
	assert_int_equal(make(first + 16, "next"), 0);
}

static struct rpc_tail tail_of(uint8_t *buf, const struct extent *e, unsigned n)
{
	struct wire_out w;

	wire_out_init(&w, buf, n * RPC_EXTENT_BYTES);
	for (unsigned i = 0; i < n; i++)
		rpc_put_extent(&w, &e[i]);
	return (struct rpc_tail){buf, (uint32_t)wire_out_len(&w), RMEMFS_WIRE_VERSION};
}

static void makes__that_are_refused_leave_the_others_alone(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);
	struct extent e = fx_grant_run(2), wrong = {.npages = 1, .page = e.page + 7};
	struct rpc_making v[] = {
		making(first, "first"),
		making(first, "number twice"),
		making(first + 1, "first"), /* the name twice */
		making(first + 2, "taken"),
		making(first + 3, "pages"),
		making(first + 4, "pages twice"),
		making(first + 5, "not granted"),
		making(first + NUMBERS_LENT, "not lent"),
		making(first + 6, "nowhere"),
		making(first + 7, "last"),
	};
	static const int want[] = {
		0, -EINVAL, -EEXIST, -EEXIST, 0, -EINVAL, -EINVAL, -EINVAL, -ESTALE, 0};
	uint8_t good_tail[RPC_EXTENT_BYTES], wrong_tail[RPC_EXTENT_BYTES];

	fx_file(dir, "taken");
	v[4].commit.tail = v[5].commit.tail = tail_of(good_tail, &e, 1);
	v[6].commit.tail = tail_of(wrong_tail, &wrong, 1);
	v[8].make.parent = 12345;
	assert_int_equal(send_makings(v, ARRAY_SIZE(v), NUMBERS_NONE), 0);
	assert_statuses(want, ARRAY_SIZE(v));
	assert_made(dir, "first", first);
	assert_made(dir, "pages", first + 3);
	assert_int_equal(fx.rep.entry.attr.npages, 2);
	assert_made(dir, "last", first + 7);
	/* The refused ones are not there, and have used no number. */
	assert_int_equal(fx_lookup(dir, "pages twice"), -ENOENT);
	assert_int_equal(make(first + 1, "a"), 0);
	assert_int_equal(make(first + 2, "b"), 0);
	assert_int_equal(make(first + 4, "pages twice"), 0);
	assert_int_equal(make(first + 5, "c"), 0);
	assert_int_equal(make(first + 6, "d"), 0);
}

/* The first one that is looked at is done, or refused for good. */
static void makes__that_find_no_room_beside_others_come_again(void **state)
{
	enum { EXTENTS = 200 };
	static uint8_t tails[2][EXTENTS * RPC_EXTENT_BYTES];
	static const int full[] = {-EEXIST, 0, -EAGAIN, -EAGAIN};
	uint64_t first = lend(NUMBERS_MORE);
	struct extent run = fx_grant_run(2 * EXTENTS), e[EXTENTS];
	struct rpc_making v[] = {making(first, "taken"), making(first, "a"), making(first + 1, "b"),
		making(first + 2, "c")};

	fx_file(dir, "taken");
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < EXTENTS; i++)
			e[i] = (struct extent){.fpage = 2 * i,
				.npages = 1,
				.page = run.page + 2 * i + k,
				.region = run.region};
		v[1 + k].commit.tail = tail_of(tails[k], e, EXTENTS);
	}
	fill_store();
	assert_int_equal(send_makings(v, 4, NUMBERS_NONE), 0);
	assert_statuses(full, 4);
	assert_int_equal(fx_lookup(dir, "b"), -ENOENT);
	assert_int_equal(send_makings(v + 2, 2, NUMBERS_NONE), 0);
	assert_int_equal(fx.rep.makes.status[0], 0);
	assert_made(dir, "b", first + 1);
}

/* Names are still made, and data is refused. */
static void makes__with_data_are_refused_where_memory_is_lost(void **state)
{
	static const int want[] = {0, -EIO, -EIO, 0};
	uint64_t first = lend(NUMBERS_MORE);
	struct rpc_making v[] = {making(first, "empty"), making(first + 1, "size"),
		making(first + 2, "time"), making(first + 3, "too")};
	atomic_bool lost = true;

	v[1].commit.flags = COMMIT_SIZE;
	v[1].commit.size = 7;
	v[2].commit.flags = COMMIT_MTIME;
	fx_volume()->lost = &lost;
	assert_int_equal(send_makings(v, 4, NUMBERS_MORE), 0);
	fx_volume()->lost = NULL;
	assert_statuses(want, 4);
	assert_int_equal(fx.rep.makes.lent.n, 0);
	assert_made(dir, "too", first + 3);
	assert_int_equal(fx_lookup(dir, "size"), -ENOENT);
}

/* Sends the name changes of w and a file behind them. */
static int send_behind(const struct wire_out *names, struct rpc_making m)
{
	static uint8_t tail[RPC_MSG_BYTES];
	size_t n = wire_out_len(names);
	struct wire_out w;

	memcpy(tail, fx.out, n);
	wire_out_init(&w, tail + n, sizeof(tail) - n);
	assert_true(rpc_put_making(&w, &m));
	return FX_RUN(.op = RPC_MAKE,
		.makes = {NUMBERS_NONE,
			{tail, (uint32_t)(n + wire_out_len(&w)), RMEMFS_WIRE_VERSION},
			(uint16_t)n});
}

static void make__comes_behind_the_names_before_it(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), old = fx_file(dir, "old");
	struct rpc_name_change gone = {dir, old, fx.ctx.now, .name = fx_str("old")};
	struct rpc_name_change sub = {
		dir, first, fx.ctx.now, .name = fx_str("old"), .kind = NAME_MKDIR, .mode = 0755};
	struct rpc_making m = making(first + 1, "in");
	struct wire_out w;

	m.make.parent = first;
	wire_out_init(&w, fx.out, sizeof(fx.out));
	assert_true(rpc_put_name_change(&w, &gone));
	assert_true(rpc_put_name_change(&w, &sub));
	assert_int_equal(send_behind(&w, m), 0);
	assert_int_equal(fx.rep.makes.names.done, 2);
	assert_int_equal(fx.rep.makes.names.refused, 0);
	assert_int_equal(fx.rep.makes.n, 1);
	assert_int_equal(fx.rep.makes.status[0], 0);
	assert_int_equal(fx_lookup(first, "in"), 0);
}

static void make__is_not_looked_at_behind_a_name_that_is_refused(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);
	struct rpc_name_change sub = {
		dir, first, fx.ctx.now, .name = fx_str("sub"), .kind = NAME_MKDIR, .mode = 0755};
	struct rpc_name_change gone = {dir, 77, fx.ctx.now, .name = fx_str("missing")};
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	assert_true(rpc_put_name_change(&w, &sub));
	assert_true(rpc_put_name_change(&w, &gone));
	assert_int_equal(send_behind(&w, making(first + 1, "a")), 0);
	assert_int_equal(fx.rep.makes.names.done, 1);
	assert_int_equal(fx.rep.makes.names.refused, ENOENT);
	assert_int_equal(fx.rep.makes.n, 0);
	assert_int_equal(fx_lookup(dir, "sub"), 0);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	/* The number of the directory is used up. */
	assert_int_equal(make(first, "a"), -EINVAL);
	assert_int_equal(make(first + 1, "a"), 0);
}

/* Fills the store up to what one change needs, and a MAKE needs, but not both in one request. */
static void fill_store_but_for_one(void)
{
	enum { LEFT = 75 };
	uint64_t reserve = fx.m->reserve;

	fx.m->reserve = LEFT;
	fill_store();
	fx.m->reserve = reserve;
}

/* Nothing is changed then, and the store has not failed. Apart from each other they find room. */
static void make__with_a_name_before_it_is_refused_without_room_for_both(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), old = fx_file(dir, "old");
	struct rpc_name_change gone = {dir, old, fx.ctx.now, .name = fx_str("old")};
	struct rpc_tail tail;
	struct wire_out w;

	fill_store_but_for_one();
	wire_out_init(&w, fx.out, sizeof(fx.out));
	assert_true(rpc_put_name_change(&w, &gone));
	assert_int_equal(send_behind(&w, making(first, "a")), -ENOSPC);
	assert_int_equal(fx_lookup(dir, "old"), 0);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	tail = (struct rpc_tail){fx.out, (uint32_t)wire_out_len(&w), RMEMFS_WIRE_VERSION};
	assert_int_equal(FX_RUN(.op = RPC_NAMES, .names = {.tail = tail}), 0);
	assert_int_equal(fx.rep.names.done, 1);
	assert_int_equal(make(first, "a"), 0);
}

/* The first name is changed, and the others come again, with the file. */
static void make__with_names_before_it_is_not_looked_at_without_room_for_all(void **state)
{
	uint64_t first = lend(NUMBERS_MORE), old = fx_file(dir, "old"), b = fx_file(dir, "b");
	struct rpc_name_change gone[] = {{dir, old, fx.ctx.now, .name = fx_str("old")},
		{dir, b, fx.ctx.now, .name = fx_str("b")}};
	struct wire_out w;

	fill_store_but_for_one();
	wire_out_init(&w, fx.out, sizeof(fx.out));
	for (unsigned i = 0; i < ARRAY_SIZE(gone); i++)
		assert_true(rpc_put_name_change(&w, &gone[i]));
	assert_int_equal(send_behind(&w, making(first, "a")), 0);
	assert_int_equal(fx.rep.makes.names.done, 1);
	assert_int_equal(fx.rep.makes.names.refused, 0);
	assert_int_equal(fx.rep.makes.n, 0);
	assert_int_equal(fx_lookup(dir, "old"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "b"), 0);
}

static void makes__of_squashed_users_become_less_each(void **state)
{
	uint64_t first = lend(NUMBERS_MORE);
	struct rpc_making v[] = {making(first, "a"), making(first + 1, "b")};

	fx.ctx.squash = (struct squash){SQUASH_ALL, 65534, 65533};
	v[1].make.mode = S_IFREG | 06755;
	assert_int_equal(send_makings(v, 2, NUMBERS_MORE), 0);
	assert_int_equal(fx.rep.makes.lent.n, 0);
	assert_int_equal(fx_lookup(dir, "b"), 0);
	assert_int_equal(fx.rep.entry.attr.uid, 65534);
	assert_int_equal(fx.rep.entry.attr.mode, S_IFREG | 0755);
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
		MAKE_TEST(makes__are_files_of_any_directory),
		MAKE_TEST(makes__that_are_refused_leave_the_others_alone),
		MAKE_TEST(makes__that_find_no_room_beside_others_come_again),
		MAKE_TEST(makes__find_room_in_a_full_store),
		MAKE_TEST(makes__with_data_are_refused_where_memory_is_lost),
		MAKE_TEST(make__comes_behind_the_names_before_it),
		MAKE_TEST(make__is_not_looked_at_behind_a_name_that_is_refused),
		MAKE_TEST(make__with_a_name_before_it_is_refused_without_room_for_both),
		MAKE_TEST(make__with_names_before_it_is_not_looked_at_without_room_for_all),
		MAKE_TEST(makes__of_squashed_users_become_less_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
