/* test_names.c - NAMES: changes of names that a client has made by itself. */
#include "common/rpc/set_attr.h"
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
	const struct rpc_name_change removal = {parent, ino, fx.ctx.now - 5, keep, fx_str(name)};

	assert_true(rpc_put_name_change(&w, &removal));
}

static void add(const char *name, uint64_t ino)
{
	add_at(dir, name, ino, false);
}

/* Asks for numbers by a MKDIR; the first one. */
static uint64_t lend(void)
{
	struct rpc_create create = {.parent = ROOT_INO,
		.mode = S_IFDIR | 0755,
		.numbers = NUMBERS_MORE,
		.name = fx_str("asks")};

	assert_int_equal(FX_RUN(.op = RPC_MKDIR, .create = create), 0);
	assert_int_equal(fx.rep.entry.lent.n, NUMBERS_LENT);
	return fx.rep.entry.lent.first;
}

static void add_mkdir(uint64_t parent, const char *name, uint64_t ino)
{
	const struct rpc_name_change change = {
		parent, ino, fx.ctx.now - 5, false, fx_str(name), NAME_MKDIR, 0777, 022, 10, 20};

	assert_true(rpc_put_name_change(&w, &change));
}

static int run(void)
{
	struct rpc_tail tail = {fx.out, (uint32_t)wire_out_len(&w)};
	int err = FX_RUN(.op = RPC_NAMES, .names = {tail});

	wire_out_init(&w, fx.out, sizeof(fx.out));
	return err;
}

static void assert_ran(unsigned done, int refused)
{
	assert_int_equal(run(), 0);
	assert_int_equal(fx.rep.names.done, done);
	assert_int_equal(fx.rep.names.refused, refused);
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

static void mkdirs__are_as_the_server_makes_them(void **state)
{
	uint64_t first = lend(), there = fx_dir(dir, "there");
	uint32_t nlink = fx_attr(dir).nlink;
	struct attr was = fx_attr(there), is;

	fx.ctx.now += 100;
	add_mkdir(dir, "a", first);
	add_mkdir(first, "b", first + 1);
	assert_ran(2, 0);
	assert_int_equal(fx_lookup(first, "b"), 0);
	is = fx_attr(first + 1);
	assert_int_equal(is.mode, S_IFDIR | 0755);
	assert_int_equal(is.uid, 10);
	assert_int_equal(is.gid, 20);
	assert_int_equal(is.nlink, 2);
	assert_int_equal(is.size, was.size);
	assert_int_equal(is.generation, was.generation);
	assert_int_equal(is.btime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(first).nlink, 3);
	assert_int_equal(fx_attr(dir).nlink, nlink + 1);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_lookup(first, "b"), 0);
}

static void mkdir__in_a_directory_with_set_group_id(void **state)
{
	uint64_t first = lend(), parent;

	assert_int_equal(fx_make(RPC_MKDIR, dir, "sgid", S_IFDIR | 02777), 0);
	parent = fx.rep.entry.attr.ino;
	add_mkdir(parent, "a", first);
	assert_ran(1, 0);
	assert_int_equal(fx_attr(first).mode, S_IFDIR | S_ISGID | 0755);
	assert_int_equal(fx_attr(first).gid, fx_attr(parent).gid);
}

static void mkdirs__use_a_number_and_a_name_once(void **state)
{
	uint64_t first = lend(), file = fx_file(dir, "file");

	add_mkdir(dir, "a", first);
	add_mkdir(dir, "b", first);
	assert_ran(1, EINVAL);
	add_mkdir(dir, "a", first + 1);
	assert_ran(0, EEXIST);
	add_mkdir(dir, "b", first + NUMBERS_LENT);
	assert_ran(0, EINVAL);
	add_mkdir(file, "b", first + 1);
	assert_ran(0, ENOTDIR);
	add_mkdir(dir, "b", first + 1);
	assert_ran(1, 0);
	fx_reopen();
	add_mkdir(dir, "c", first + 1);
	assert_ran(0, EINVAL);
}

static void add_symlink(uint64_t parent, const char *name, uint64_t ino, const char *target)
{
	const struct rpc_name_change change = {parent, ino, fx.ctx.now - 5, false, fx_str(name),
		NAME_SYMLINK, .uid = 10, .gid = 20, .target = fx_str(target)};

	assert_true(rpc_put_name_change(&w, &change));
}

static void assert_target(uint64_t ino, const char *target)
{
	struct rpc_str *is = &fx.rep.readlink.target;

	assert_int_equal(FX_RUN(.op = RPC_READLINK, .ino = {.ino = ino}), 0);
	assert_int_equal(is->len, strlen(target));
	assert_memory_equal(is->s, target, is->len);
}

/* By the server's own SYMLINK, and by a client's. */
static void symlinks__are_as_the_server_makes_them(void **state)
{
	uint64_t first = lend(), inodes;
	struct rpc_create own = {.parent = dir,
		.mode = S_IFLNK | 0777,
		.uid = 10,
		.gid = 20,
		.name = fx_str("own"),
		.target = fx_str("../there")};
	struct attr here, there;
	uint32_t nlink = fx_attr(dir).nlink;

	assert_int_equal(FX_RUN(.op = RPC_SYMLINK, .create = own), 0);
	there = fx.rep.entry.attr;
	inodes = fx_usage().inodes;
	fx.ctx.now = there.mtime + 5;
	add_symlink(dir, "a", first, "../there");
	assert_ran(1, 0);
	here = fx_attr(first);
	there.ino = first;
	fx_assert_same(&here, &there);
	assert_target(first, "../there");
	assert_int_equal(fx_attr(dir).nlink, nlink);
	fx.ctx.now += 100;
	add_symlink(dir, "b", first + 1, "b");
	assert_ran(1, 0);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_usage().inodes, inodes + 2);
	add("a", first);
	add("b", first + 1);
	assert_ran(2, 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes);
}

static void symlink__in_a_directory_with_set_group_id(void **state)
{
	uint64_t first = lend(), parent;

	assert_int_equal(fx_make(RPC_MKDIR, dir, "sgid", S_IFDIR | 02777), 0);
	parent = fx.rep.entry.attr.ino;
	add_symlink(parent, "a", first, "there");
	assert_ran(1, 0);
	assert_int_equal(fx_attr(first).mode, S_IFLNK | 0777);
	assert_int_equal(fx_attr(first).gid, fx_attr(parent).gid);
}

static void symlinks__use_a_number_and_a_name_once(void **state)
{
	uint64_t first = lend();

	add_symlink(dir, "a", first, "there");
	add_symlink(dir, "b", first, "there");
	assert_ran(1, EINVAL);
	add_symlink(dir, "a", first + 1, "there");
	assert_ran(0, EEXIST);
	add_symlink(first, "b", first + 1, "there");
	assert_ran(0, ENOTDIR);
}

static void add_link(uint64_t parent, const char *name, uint64_t ino, uint64_t lent)
{
	const struct rpc_name_change change = {
		parent, ino, fx.ctx.now - 5, false, fx_str(name), NAME_LINK, .lent = lent};

	assert_true(rpc_put_name_change(&w, &change));
}

/* By the server's own LINK, and by a client's. */
static void links__are_as_the_server_makes_them(void **state)
{
	uint64_t first = lend(), a = fx_file(dir, "a"), b = fx_file(dir, "b"), inodes;
	struct rpc_link own = {a, dir, fx_str("a2")};
	uint32_t nlink = fx_attr(dir).nlink;
	struct attr here, there;

	inodes = fx_usage().inodes;
	fx.ctx.now += 100;
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = own), 0);
	there = fx.rep.entry.attr;
	fx.ctx.now = there.ctime + 5;
	add_link(dir, "b2", b, first);
	assert_ran(1, 0);
	here = fx_attr(b);
	there.ino = b;
	there.btime = here.btime;
	there.atime = here.atime;
	there.mtime = here.mtime;
	fx_assert_same(&here, &there);
	assert_int_equal(fx_lookup(dir, "b2"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, b);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(dir).nlink, nlink);
	assert_int_equal(fx_usage().inodes, inodes);
	add("b", b);
	assert_ran(1, 0);
	assert_int_equal(fx_attr(b).nlink, 1);
	assert_int_equal(fx_lookup(dir, "b2"), 0);
}

static void links__use_a_number_and_a_name_once(void **state)
{
	uint64_t first = lend(), a = fx_file(dir, "a"), sub = fx_dir(dir, "sub");
	uint64_t gone = fx_file(dir, "gone");

	add_link(dir, "b", a, first);
	add_link(dir, "c", a, first);
	assert_ran(1, EINVAL);
	add_link(dir, "b", a, first + 1);
	assert_ran(0, EEXIST);
	add_link(dir, "c", a, first + NUMBERS_LENT);
	assert_ran(0, EINVAL);
	add_link(a, "c", a, first + 1);
	assert_ran(0, ENOTDIR);
	add_link(dir, "c", sub, first + 1);
	assert_ran(0, EPERM);
	add_link(dir, "c", 12345, first + 1);
	assert_ran(0, ESTALE);
	add_at(dir, "gone", gone, true);
	add_link(dir, "c", gone, first + 1);
	assert_ran(1, ENOENT);
	assert_int_equal(fx_attr(a).nlink, 2);
	add_mkdir(dir, "c", first + 1);
	add_link(dir, "d", a, first + 1);
	assert_ran(1, EINVAL);
	assert_int_equal(fx_return_inode(gone), 0);
}

static void changes__take_effect_in_their_order(void **state)
{
	uint64_t first = lend(), inodes = fx_usage().inodes, a = fx_file(dir, "a");

	add("a", a);
	add_mkdir(dir, "a", first);
	add("a", first);
	add_mkdir(dir, "a", first + 1);
	assert_ran(4, 0);
	assert_int_equal(fx_lookup(dir, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, first + 1);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes + 1);
}

static void add_move(const char *name, uint64_t ino, uint64_t new_parent, const char *new_name,
	uint64_t replaced, bool keep)
{
	const struct rpc_name_change change = {dir, ino, fx.ctx.now - 5, keep, fx_str(name),
		NAME_MOVE, .new_parent = new_parent, .replaced = replaced,
		.new_name = fx_str(new_name)};

	assert_true(rpc_put_name_change(&w, &change));
}

static void move__gives_another_name(void **state)
{
	uint64_t a = fx_file(dir, "a"), other = fx_dir(ROOT_INO, "other");
	uint64_t inodes = fx_usage().inodes;

	fx.ctx.now += 100;
	add_move("a", a, dir, "b", 0, false);
	assert_ran(1, 0);
	assert_int_equal(fx_lookup(dir, "a"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "b"), 0);
	assert_int_equal(fx_attr(a).ctime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	fx.ctx.now += 100;
	add_move("b", a, other, "a", 0, false);
	assert_ran(1, 0);
	assert_int_equal(fx_lookup(dir, "b"), -ENOENT);
	assert_int_equal(fx_lookup(other, "a"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, a);
	assert_int_equal(fx_attr(dir).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(other).mtime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(a).nlink, 1);
	assert_int_equal(fx_usage().inodes, inodes);
}

static void move__replaces(void **state)
{
	uint64_t a = fx_file(dir, "a"), b = fx_file(dir, "b"), c = fx_file(dir, "c");
	uint64_t inodes = fx_usage().inodes;

	add_move("a", a, dir, "b", b, false);
	add_move("b", a, dir, "c", c, true);
	assert_ran(2, 0);
	fx_settle();
	assert_int_equal(fx_getattr(b), -ESTALE);
	assert_int_equal(fx_attr(c).nlink, 0);
	assert_int_equal(fx_usage().inodes, inodes - 1);
	assert_int_equal(fx_return_inode(c), 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes - 2);
	assert_int_equal(fx_lookup(dir, "b"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "c"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, a);
}

static void move__is_refused_where_names_are_others(void **state)
{
	uint64_t a = fx_file(dir, "a"), b = fx_file(dir, "b"), sub = fx_dir(dir, "sub");

	add_move("a", b, dir, "new", 0, false);
	assert_ran(0, ESTALE);
	add_move("none", a, dir, "new", 0, false);
	assert_ran(0, ENOENT);
	add_move("a", a, dir, "b", 0, false);
	assert_ran(0, EEXIST);
	add_move("a", a, dir, "b", a, false);
	assert_ran(0, EINVAL);
	add_move("a", a, dir, "none", b, false);
	assert_ran(0, ESTALE);
	add_move("a", a, dir, "sub", sub, false);
	assert_ran(0, EISDIR);
	add_move("a", a, b, "new", 0, false);
	assert_ran(0, ENOTDIR);
	assert_int_equal(fx_lookup(dir, "a"), 0);
	assert_int_equal(fx_attr(a).nlink, 1);
	add_move("a", a, dir, "b", b, false);
	assert_ran(1, 0);
}

static void move__of_a_directory_in_its_parent(void **state)
{
	uint64_t sub = fx_dir(dir, "sub"), in = fx_dir(sub, "in"), other = fx_dir(dir, "other");
	uint64_t file = fx_file(dir, "file");
	struct attr was = fx_attr(dir), is;

	fx.ctx.now += 100;
	add_move("sub", sub, dir, "new", 0, false);
	assert_ran(1, 0);
	assert_int_equal(fx_lookup(dir, "sub"), -ENOENT);
	assert_int_equal(fx_lookup(dir, "new"), 0);
	assert_int_equal(fx_lookup(sub, "in"), 0);
	assert_int_equal(fx.rep.entry.attr.ino, in);
	is = fx_attr(dir);
	assert_int_equal(is.nlink, was.nlink);
	assert_int_equal(is.mtime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(sub).ctime, fx.ctx.now - 5);
	/* It could come below itself, or count as a link of the wrong directory. */
	add_move("new", sub, other, "new", 0, false);
	assert_ran(0, EISDIR);
	add_move("new", sub, sub, "new", 0, false);
	assert_ran(0, EISDIR);
	add_move("new", sub, dir, "other", other, false);
	assert_ran(0, EISDIR);
	add_move("new", sub, dir, "file", file, false);
	assert_ran(0, EISDIR);
	assert_int_equal(fx_lookup(dir, "new"), 0);
}

static void add_set(uint64_t ino, uint32_t valid, uint32_t mode, uint32_t uid, uint32_t gid)
{
	const struct rpc_name_change change = {.ino = ino,
		.time = fx.ctx.now - 5,
		.kind = NAME_SET,
		.valid = valid,
		.mode = mode,
		.uid = uid,
		.gid = gid,
		.atime = 10,
		.mtime = 20};

	assert_true(rpc_put_name_change(&w, &change));
}

/* As a client does it: what it has made of the attributes is told. */
static void add_set_of(uint64_t ino, const struct attr *attr, uint32_t valid)
{
	struct rpc_name_change change = {.ino = ino,
		.time = attr->ctime,
		.kind = NAME_SET,
		.valid = valid & (SET_MODE | SET_OWNERS),
		.mode = attr->mode & 07777,
		.uid = attr->uid,
		.gid = attr->gid,
		.atime = attr->atime,
		.mtime = attr->mtime};

	change.valid |= valid & SET_ATIMES ? SET_ATIME : 0;
	change.valid |= valid & SET_MTIMES ? SET_MTIME : 0;
	assert_true(rpc_put_name_change(&w, &change));
}

/* By every combination of flags: the server's own SETATTR, and a client's change of its own. */
static void set__makes_of_a_directory_what_setattr_makes(void **state)
{
	static const uint32_t flags[] = {
		SET_MODE, SET_UID, SET_GID, SET_ATIME, SET_MTIME, SET_ATIME_NOW, SET_MTIME_NOW};
	uint64_t a = fx_dir(ROOT_INO, "a"), b = fx_dir(ROOT_INO, "b");
	struct attr here, there;

	for (unsigned bits = 1; bits < 1u << ARRAY_SIZE(flags); bits++) {
		struct rpc_setattr set = {.ino = a,
			.mode = 02000 | bits,
			.uid = bits,
			.gid = 1000 - bits,
			.atime = bits % 3 ? bits : INT64_MAX - bits,
			.mtime = bits % 5 ? fx.ctx.now + bits : bits};

		for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
			set.valid |= bits & 1u << i ? flags[i] : 0;
		fx.ctx.now += 10;
		here = fx_attr(b);
		set_attr(&here, &set, fx.ctx.now);
		add_set_of(b, &here, set.valid);
		assert_ran(1, 0);
		assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = set), 0);
		there = fx_attr(b);
		fx_assert_same(&here, &there);
		there = fx_attr(a);
		there.ino = b;
		there.btime = here.btime;
		fx_assert_same(&here, &there);
	}
}

static void set__of_a_directory_that_was_made_just_before(void **state)
{
	uint64_t first = lend();
	struct attr attr;

	fx.ctx.now += 100;
	add_mkdir(dir, "a", first);
	add_set(first, SET_MODE | SET_UID, 02700, 77, 0);
	add_set(first, SET_MTIME | SET_ATIME, 0, 0, 0);
	add_mkdir(first, "in", first + 1);
	assert_ran(4, 0);
	attr = fx_attr(first);
	assert_int_equal(attr.mode, S_IFDIR | 02700);
	assert_int_equal(attr.uid, 77);
	assert_int_equal(attr.gid, 20);
	assert_int_equal(attr.atime, 10);
	/* The folder in it came later. */
	assert_int_equal(attr.mtime, fx.ctx.now - 5);
	assert_int_equal(fx_attr(first + 1).mode, S_IFDIR | 02755);
	assert_int_equal(fx_attr(first + 1).gid, 20);
}

static void set__of_a_directory_without_a_name(void **state)
{
	uint64_t inodes = fx_usage().inodes, sub = fx_dir(dir, "sub");

	add_at(dir, "sub", sub, true);
	add_set(sub, SET_MODE, 0700, 0, 0);
	assert_ran(2, 0);
	assert_int_equal(fx_attr(sub).mode, S_IFDIR | 0700);
	assert_int_equal(fx_return_inode(sub), 0);
	fx_settle();
	assert_int_equal(fx_usage().inodes, inodes);
}

static void set__of_a_symlink_that_was_made_just_before(void **state)
{
	uint64_t first = lend();
	struct attr attr;

	add_symlink(dir, "a", first, "there");
	add_set(first, SET_OWNERS, 0, 77, 88);
	add_set(first, SET_MTIME | SET_ATIME, 0, 0, 0);
	add_set(first, SET_MODE, 0600, 0, 0);
	assert_ran(3, EINVAL);
	attr = fx_attr(first);
	assert_int_equal(attr.mode, S_IFLNK | 0777);
	assert_int_equal(attr.uid, 77);
	assert_int_equal(attr.gid, 88);
	assert_int_equal(attr.atime, 10);
	assert_int_equal(attr.mtime, 20);
	assert_int_equal(attr.size, strlen("there"));
	assert_target(first, "there");
}

static void set__is_refused_of_a_file(void **state)
{
	uint64_t file = fx_file(dir, "file");

	add_set(dir, SET_MODE, 0700, 0, 0);
	add_set(file, SET_MODE, 0700, 0, 0);
	add_set(dir, SET_MODE, 0711, 0, 0);
	assert_ran(1, EINVAL);
	assert_int_equal(fx_attr(file).mode, S_IFREG | 0644);
	assert_int_equal(fx_attr(dir).mode, S_IFDIR | 0700);
	add_set(12345, SET_MODE, 0700, 0, 0);
	assert_ran(0, ESTALE);
}

static void set__does_not_take_the_ctime_back(void **state)
{
	int64_t was = fx_attr(dir).ctime;

	add_set(dir, SET_MTIME, 0, 0, 0);
	assert_ran(1, 0);
	assert_int_equal(fx_attr(dir).ctime, was);
	assert_int_equal(fx_attr(dir).mtime, 20);
}

/* Those that SETATTR would refuse are left out, and those behind them take effect. */
static void set__of_users_that_are_squashed_by_now(void **state)
{
	uint64_t roots = dir, users = fx_dir(ROOT_INO, "users");
	int64_t mtime = fx_attr(roots).mtime;

	add_set(roots, SET_OWNERS, 0, 0, 0);
	add_set(users, SET_OWNERS, 0, 1000, 50);
	assert_ran(2, 0);
	fx.ctx.squash = (struct squash){SQUASH_ROOT, 65534, 65533};
	add_set(roots, NAME_SET_ALL, 0777, 1000, 50);
	add_set(users, SET_MODE | SET_OWNERS, 02770, 0, 0);
	assert_ran(2, 0);
	fx.ctx.squash = (struct squash){SQUASH_ALL, 1000, 51};
	add_set(users, SET_OWNERS | SET_MODE, 02777, 1000, 51);
	assert_ran(1, 0);
	fx.ctx.squash = (struct squash){0};
	assert_int_equal(fx_attr(roots).mode, S_IFDIR | 0755);
	assert_int_equal(fx_attr(roots).uid, 0);
	assert_int_equal(fx_attr(roots).mtime, mtime);
	assert_int_equal(fx_attr(users).uid, 65534);
	assert_int_equal(fx_attr(users).gid, 65533);
	assert_int_equal(fx_attr(users).mode, S_IFDIR | 02770);
}

static void mkdir_and_symlink__of_users_that_are_squashed_by_now(void **state)
{
	uint64_t first = lend();
	const struct rpc_name_change changes[] = {
		{dir, first, fx.ctx.now, false, fx_str("a"), NAME_MKDIR, 0777, 0, 0, 0},
		{dir, first + 1, fx.ctx.now, false, fx_str("b"), NAME_SYMLINK,
			.target = fx_str("there")}};

	fx.ctx.squash = (struct squash){SQUASH_ROOT, 65534, 65533};
	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++)
		assert_true(rpc_put_name_change(&w, &changes[i]));
	assert_ran(2, 0);
	fx.ctx.squash = (struct squash){0};
	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++) {
		assert_int_equal(fx_attr(first + i).uid, 65534);
		assert_int_equal(fx_attr(first + i).gid, 65533);
	}
}

static void names__bring_numbers(void **state)
{
	uint64_t first = lend();
	struct rpc_tail tail;

	add_mkdir(dir, "a", first);
	tail = (struct rpc_tail){fx.out, (uint32_t)wire_out_len(&w)};
	assert_int_equal(FX_RUN(.op = RPC_NAMES, .names = {tail, NUMBERS_MORE}), 0);
	assert_int_equal(fx.rep.names.lent.n, NUMBERS_LENT);
	first = fx.rep.names.lent.first;
	wire_out_init(&w, fx.out, sizeof(fx.out));
	add_mkdir(dir, "b", first);
	assert_ran(1, 0);
}

static void removals__find_room_in_a_full_store(void **state)
{
	enum { N = 40 };
	uint64_t inos[N], inodes, first = lend();
	char name[256], target[SYMLINK_BYTES_SHORT + 1];
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
	/* New names with numbers from before find it, too. */
	memset(name, 'n', 250);
	memset(target, 't', SYMLINK_BYTES_SHORT);
	target[SYMLINK_BYTES_SHORT] = '\0';
	for (unsigned i = 0; i < NUMBERS_LENT; i++) {
		name[snprintf(name, sizeof(name), "d%u", i)] = '-';
		if (i % 3 == 0)
			add_mkdir(dir, name, first + i);
		else if (i % 3 == 1)
			add_symlink(dir, name, first + i, target);
		else
			add_link(dir, name, inos[i % N], first + i);
		if (i % 4 == 3)
			assert_ran(4, 0);
	}
	memset(name, 'n', 250);
	for (unsigned i = 2; i < NUMBERS_LENT; i += 3) {
		name[snprintf(name, sizeof(name), "d%u", i)] = '-';
		add(name, inos[i % N]);
		assert_ran(1, 0);
	}
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

/* Also if it takes many of them. */
static void moves__find_room_in_a_full_store(void **state)
{
	enum { N = 40, ROUNDS = 50 };
	uint64_t inos[N];
	char name[2][256];
	int err = 0;

	memset(name, 'n', sizeof(name));
	name[0][250] = name[1][250] = 0;
	for (unsigned i = 0; i < N; i++) {
		name[0][snprintf(name[0], sizeof(name[0]), "%u", i)] = '-';
		inos[i] = fx_file(dir, name[0]);
		memset(name[0], 'n', 250);
	}
	for (unsigned i = N; !err; i++) {
		name[0][snprintf(name[0], sizeof(name[0]), "%u", i)] = '-';
		err = fx_make(RPC_CREATE, dir, name[0], S_IFREG | 0644);
	}
	assert_int_equal(err, -ENOSPC);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < N; i++) {
			for (unsigned k = 0; k < 2; k++) {
				memset(name[k], 'n', 250);
				name[k][snprintf(name[k], sizeof(name[k]), "%u", i)] = '-';
				name[k][200 + snprintf(name[k] + 200, 20, "%u", round + k)] = '-';
			}
			if (!round)
				memset(name[0] + 200, 'n', 50);
			add_move(name[0], inos[i], dir, name[1], 0, false);
			assert_ran(1, 0);
		}
	}
	fx_settle();
}

#define NAMES_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(removals__take_effect_at_once_and_end_the_inodes),
		NAMES_TEST(removal__of_a_file_in_use_keeps_it_until_it_is_returned),
		NAMES_TEST(removal__of_one_of_two_names),
		NAMES_TEST(removals__of_a_directory_that_they_have_emptied),
		NAMES_TEST(removal__of_a_special_file),
		NAMES_TEST(removals__end_before_one_that_is_refused),
		NAMES_TEST(removals__follow_each_other),
		NAMES_TEST(removals__are_of_a_session_that_is_alone_and_may_write),
		NAMES_TEST(mkdirs__are_as_the_server_makes_them),
		NAMES_TEST(mkdir__in_a_directory_with_set_group_id),
		NAMES_TEST(mkdirs__use_a_number_and_a_name_once),
		NAMES_TEST(symlinks__are_as_the_server_makes_them),
		NAMES_TEST(symlink__in_a_directory_with_set_group_id),
		NAMES_TEST(symlinks__use_a_number_and_a_name_once),
		NAMES_TEST(links__are_as_the_server_makes_them),
		NAMES_TEST(links__use_a_number_and_a_name_once),
		NAMES_TEST(changes__take_effect_in_their_order),
		NAMES_TEST(move__gives_another_name),
		NAMES_TEST(move__replaces),
		NAMES_TEST(move__is_refused_where_names_are_others),
		NAMES_TEST(set__makes_of_a_directory_what_setattr_makes),
		NAMES_TEST(set__of_a_directory_that_was_made_just_before),
		NAMES_TEST(set__of_a_directory_without_a_name),
		NAMES_TEST(move__of_a_directory_in_its_parent),
		NAMES_TEST(set__of_a_symlink_that_was_made_just_before),
		NAMES_TEST(set__is_refused_of_a_file),
		NAMES_TEST(set__does_not_take_the_ctime_back),
		NAMES_TEST(set__of_users_that_are_squashed_by_now),
		NAMES_TEST(mkdir_and_symlink__of_users_that_are_squashed_by_now),
		NAMES_TEST(names__bring_numbers),
		NAMES_TEST(removals__find_room_in_a_full_store),
		NAMES_TEST(moves__find_room_in_a_full_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
