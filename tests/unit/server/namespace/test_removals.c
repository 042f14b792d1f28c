/* test_removals.c - REMOVALS: names that a client has taken away by itself. */
#include "tests/unit/server/meta_fixture.h"

static uint64_t dir;
static struct wire_out w;

static int set_up(void **state)
{
	fx_set_up(state);
	dir = fx_dir(ROOT_INO, "dir");
	wire_out_init(&w, fx.out, sizeof(fx.out));
	return 0;
}

static void add_at(uint64_t parent, const char *name, uint64_t ino, bool keep)
{
	const struct rpc_removal removal = {parent, ino, fx.ctx.now - 5, keep, fx_str(name)};

	assert_true(rpc_put_removal(&w, &removal));
}

static void add(const char *name, uint64_t ino)
{
	add_at(dir, name, ino, false);
}

static int run(void)
{
	struct rpc_tail tail = {fx.out, (uint32_t)wire_out_len(&w)};
	int err = FX_RUN(.op = RPC_REMOVALS, .removals = {tail});

	wire_out_init(&w, fx.out, sizeof(fx.out));
	return err;
}

static void assert_ran(unsigned done, int refused)
{
	assert_int_equal(run(), 0);
	assert_int_equal(fx.rep.removals.done, done);
	assert_int_equal(fx.rep.removals.refused, refused);
}

static void removals__take_effect_at_once_and_end_the_inodes(void **state)
{
	uint64_t inodes = fx_usage().inodes, a = fx_file(dir, "a"), b = fx_file(dir, "b");
	struct attr was, is;

	fx_fill(a, 0, 5);
	fx_file(dir, "other");
	was = fx_attr(dir);
	fx.ctx.now += 100;
	add("a", a);
	add("b", b);
	assert_ran(2, 0);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "b"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "other"), 0);
	assert_int_equal(fx_getattr(a), -ESTALE);
	assert_int_equal(fx_usage().inodes, inodes + 1);
	is = fx_attr(dir);
	assert_true(is.mtime > was.mtime);
	assert_int_equal(is.mtime, fx.ctx.now - 5);
	assert_int_equal(is.ctime, fx.ctx.now - 5);
	fx_settle();
}

static void removal__of_a_file_in_use_keeps_it_until_it_is_returned(void **state)
{
	uint64_t inodes = fx_usage().inodes, ino = fx_file(dir, "a");

	add_at(dir, "a", ino, true);
	assert_ran(1, 0);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	assert_int_equal(fx_attr(ino).nlink, 0);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_usage().inodes, inodes);
	assert_int_equal(fx_getattr(ino), -ESTALE);
}

static void removal__of_one_of_two_names(void **state)
{
	uint64_t ino = fx_file(dir, "a");

	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, dir, fx_str("b")}), 0);
	add("a", ino);
	assert_ran(1, 0);
	assert_int_equal(fx_attr(ino).nlink, 1);
	assert_int_equal(fx_lookup(dir, "b"), 0);
}

static void removals__of_a_directory_that_they_have_emptied(void **state)
{
	uint64_t inodes = fx_usage().inodes, sub = fx_dir(dir, "sub"), in = fx_dir(sub, "in");
	uint64_t a = fx_file(in, "a");
	uint32_t nlink = fx_attr(dir).nlink;

	fx.ctx.now += 100;
	add_at(in, "a", a, false);
	add_at(sub, "in", in, false);
	add_at(dir, "sub", sub, true);
	assert_ran(3, 0);
	assert_int_equal(fx_lookup(dir, "sub"), -ENOENT);
	assert_int_equal(fx_attr(dir).nlink, nlink - 1);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_getattr(in), -ESTALE);
	assert_int_equal(fx_attr(sub).nlink, 0);
	assert_int_equal(fx_return_inode(sub), 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes);
}

static void removal__of_a_special_file(void **state)
{
	uint64_t inodes = fx_usage().inodes;

	assert_int_equal(fx_make(RPC_MKNOD, dir, "pipe", S_IFIFO | 0644), 0);
	add("pipe", fx.rep.entry.attr.ino);
	assert_ran(1, 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes);
}

/* The client sends again those that come behind it. */
static void removals__end_before_one_that_is_refused(void **state)
{
	uint64_t a = fx_file(dir, "a"), b = fx_file(dir, "b"), c = fx_dir(dir, "c");

	add("a", a);
	add("b", a);
	add("b", b);
	assert_ran(1, ESTALE);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "b"), 0);
	fx_file(c, "full");
	add("c", c);
	assert_ran(0, ENOTEMPTY);
	add("missing", b);
	assert_ran(0, ENOENT);
	add_at(12345, "b", b, false);
	assert_ran(0, ESTALE);
	add_at(b, "b", b, false);
	assert_ran(0, ENOTDIR);
	add("b", b);
	assert_ran(1, 0);
}

/* A name that comes again in one message is looked at anew. */
static void removals__follow_each_other(void **state)
{
	uint64_t a = fx_file(dir, "a");

	add("a", a);
	add("a", a);
	assert_ran(1, ENOENT);
}

static void removals__are_of_a_session_that_is_alone_and_may_write(void **state)
{
	uint64_t a = fx_file(dir, "a");

	fx.ctx.shared = true;
	add("a", a);
	assert_int_equal(run(), -EINVAL);
	fx.ctx.shared = false;
	fx.ctx.read_only = true;
	add("a", a);
	assert_int_equal(run(), -EROFS);
	fx.ctx.read_only = false;
	assert_int_equal(fx_lookup(dir, "a"), 0);
}

static void removals__find_room_in_a_full_store(void **state)
{
	enum { N = 40 };
	uint64_t inos[N], inodes;
	char name[256];
	int err = 0;

	memset(name, 'n', sizeof(name));
	name[250] = 0;
	for (unsigned i = 0; i < N; i++) {
		name[snprintf(name, sizeof(name), "%u", i)] = '-';
		inos[i] = fx_file(dir, name);
	}
	for (unsigned i = N; !err; i++) {
		name[snprintf(name, sizeof(name), "%u", i)] = '-';
		err = fx_make(RPC_CREATE, dir, name, S_IFREG | 0644);
	}
	assert_int_equal(err, -ENOSPC);
	inodes = fx_usage().inodes;
	memset(name, 'n', 250);
	for (unsigned i = 0; i < N; i++) {
		name[snprintf(name, sizeof(name), "%u", i)] = '-';
		add(name, inos[i]);
	}
	assert_ran(N, 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes - N);
}

#define REMOVALS_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REMOVALS_TEST(removals__take_effect_at_once_and_end_the_inodes),
		REMOVALS_TEST(removal__of_a_file_in_use_keeps_it_until_it_is_returned),
		REMOVALS_TEST(removal__of_one_of_two_names),
		REMOVALS_TEST(removals__of_a_directory_that_they_have_emptied),
		REMOVALS_TEST(removal__of_a_special_file),
		REMOVALS_TEST(removals__end_before_one_that_is_refused),
		REMOVALS_TEST(removals__follow_each_other),
		REMOVALS_TEST(removals__are_of_a_session_that_is_alone_and_may_write),
		REMOVALS_TEST(removals__find_room_in_a_full_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
