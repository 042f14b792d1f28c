/* test_look.c - leases that LOOKUP and GETATTR bring along, and the changes that wait for all their
 * holders. */
#include "tests/unit/server/lease_fixture.h"

static const uint8_t BOTH = LOOK_LEASE | LOOK_LEASE_DIR;

static int look_up(uint64_t dir, const char *name, uint8_t look)
{
	return FX_RUN(.op = RPC_LOOKUP, .name = {dir, fx_str(name), look});
}

static struct lease look_at(uint64_t ino)
{
	assert_int_equal(FX_RUN(.op = RPC_GETATTR, .ino = {ino, LOOK_LEASE}), 0);
	assert_int_equal(fx.rep.attr.attr.ino, ino);
	return fx.rep.attr.lease;
}

static void expect_stored(unsigned i, uint64_t ino, const struct lease *lease)
{
	struct lease_record stored = record(i, ino);

	assert_int_equal(stored.type, lease->type);
	assert_int_equal(stored.number, lease->number);
}

/* ---- grants ---------------------------------------------------------------------------------- */

static void look__brings_a_lease_of_any_inode(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = make_file_in(dir, "file");
	struct lease first, again;

	assert_int_equal(fx_make(RPC_SYMLINK, dir, "link", 0), 0);
	assert_int_equal(look_up(dir, "link", BOTH), 0);
	expect_lease(LEASE_SHARED);
	expect_stored(0, fx.rep.entry.attr.ino, &fx.rep.entry.lease);
	assert_int_equal(fx.rep.entry.parent.ino, dir);
	first = fx.rep.entry.parent_lease;
	assert_int_equal(first.type, LEASE_SHARED);
	expect_stored(0, dir, &first);
	as(1);
	first = look_at(file);
	assert_int_equal(first.type, LEASE_SHARED);
	/* A lease that the session has stays as it is. */
	again = look_at(file);
	assert_int_equal(again.number, first.number);
	expect_stored(1, file, &again);
	as(2);
	assert_int_equal(look_at(file).type, LEASE_SHARED);
	assert_int_equal(look_at(ROOT_INO).type, LEASE_SHARED);
}

static void look__brings_what_it_asks_for_only(void **state)
{
	uint64_t file = make_file("file");

	as(1);
	assert_int_equal(look_up(ROOT_INO, "file", 0), 0);
	assert_int_equal(look_up(ROOT_INO, "file", LOOK_LEASE), 0);
	assert_int_equal(fx.rep.entry.parent.ino, 0);
	assert_int_equal(fx.rep.entry.parent_lease.type, LEASE_NONE);
	assert_int_equal(record(1, ROOT_INO).type, LEASE_NONE);
	as(2);
	assert_int_equal(look_up(ROOT_INO, "file", LOOK_LEASE_DIR), 0);
	assert_int_equal(fx.rep.entry.lease.type, LEASE_NONE);
	assert_int_equal(record(2, file).type, LEASE_NONE);
	assert_int_equal(fx.rep.entry.parent_lease.type, LEASE_SHARED);
}

static void look__finds_what_is_missing(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(look_up(dir, "none", LOOK_LEASE), -ENOENT);
	assert_int_equal(look_up(dir, "none", BOTH), 0);
	assert_int_equal(fx.rep.entry.attr.ino, 0);
	assert_int_equal(fx.rep.entry.parent.ino, dir);
	assert_int_equal(fx.rep.entry.parent_lease.type, LEASE_SHARED);
	/* In a directory that is gone no name is found, and nothing is leased. */
	as(1);
	give_back(0, dir, UINT64_MAX, LEASE_NONE, false);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	assert_int_equal(look_up(dir, "none", BOTH), -ENOENT);
	assert_int_equal(look_at(dir).type, LEASE_NONE);
}

static void look__tells_of_more_than_it_asks_for(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);
	struct lease lease = look_at(ino);

	assert_int_equal(lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(lease.number, number);
	give_back(0, ino, number, LEASE_NONE, false);
	assert_int_equal(look_at(ino).type, LEASE_SHARED);
	assert_true(record(0, ino).pinned);
}

static void look__waits_for_who_changes_the_file(void **state)
{
	uint64_t ino = make_file("file"), number = take(1, ino, LEASE_EXCLUSIVE, 0);

	as(0);
	assert_int_equal(look_up(ROOT_INO, "file", BOTH), WAITS);
	expect_waits_for(ino, LEASE_SHARED);
	assert_int_equal(record(0, ROOT_INO).type, LEASE_NONE);
	give_back(1, ino, number, LEASE_SHARED, false);
	as(0);
	assert_int_equal(look_up(ROOT_INO, "file", BOTH), 0);
	expect_lease(LEASE_SHARED);
}

static bool all_are_restless(const void *asker, uint64_t ino)
{
	return true;
}

static void look__takes_nothing_that_others_want_or_that_is_restless(void **state)
{
	uint64_t ino = make_file("file");

	others_want(LEASE_EXCLUSIVE);
	assert_int_equal(look_at(ino).type, LEASE_NONE);
	others_want(LEASE_SHARED);
	assert_int_equal(look_at(ino).type, LEASE_SHARED);
	others_want(LEASE_NONE);
	fx.ctx.restless = all_are_restless;
	as(1);
	assert_int_equal(look_up(ROOT_INO, "file", BOTH), 0);
	assert_int_equal(fx.rep.entry.lease.type, LEASE_NONE);
	assert_int_equal(fx.rep.entry.parent_lease.type, LEASE_NONE);
	as(0);
	assert_int_equal(look_at(ino).type, LEASE_SHARED);
	/* A request that needs a lease gets it. */
	take(1, ino, LEASE_SHARED, LEASE_IF_FREE);
}

static void look__of_a_session_that_only_reads(void **state)
{
	uint64_t ino = make_file("file");

	fx.ctx.read_only = true;
	assert_int_equal(look_at(ino).type, LEASE_SHARED);
	fx.ctx.read_only = false;
}

/* ---- changes that wait ----------------------------------------------------------------------- */

enum { KNOWN_MAX = 4 };

/* A change, and the inodes that it changes. */
struct change {
	struct rpc_request req;
	uint64_t known[KNOWN_MAX];
};

static void expect_waits_for_each(const struct change *change)
{
	for (unsigned i = 0; i < KNOWN_MAX && change->known[i]; i++) {
		uint64_t ino = change->known[i], number;

		/* The session's own lease does not hold it up. */
		as(0);
		look_at(ino);
		as(1);
		number = look_at(ino).number;
		as(0);
		assert_int_equal(fx_run(&change->req), WAITS);
		expect_waits_for(ino, LEASE_EXCLUSIVE);
		give_back(1, ino, number, LEASE_NONE, false);
	}
	as(0);
	assert_int_equal(fx_run(&change->req), 0);
}

static struct rpc_request name_request(uint16_t op, uint64_t dir, const char *name)
{
	return (struct rpc_request){.op = op, .name = {dir, fx_str(name)}};
}

static struct rpc_request create_request(uint16_t op, uint64_t dir, const char *name, uint32_t mode)
{
	return (struct rpc_request){.op = op,
		.create = {.parent = dir,
			.name = fx_str(name),
			.mode = mode,
			.target = fx_str(op == RPC_SYMLINK ? "there" : "")}};
}

static struct rpc_request rename_request(
	uint64_t from, const char *name, uint64_t to, const char *new_name, uint32_t flags)
{
	return (struct rpc_request){
		.op = RPC_RENAME, .rename = {from, to, flags, fx_str(name), fx_str(new_name)}};
}

static void change__of_names_waits_for_who_knows_them(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), other = fx_dir(ROOT_INO, "other");
	uint64_t sub = fx_dir(dir, "sub"), empty = fx_dir(other, "empty");
	uint64_t file = make_file("file"), second = make_file("second");
	const struct change changes[] = {
		{create_request(RPC_CREATE, dir, "new", S_IFREG), {dir}},
		{create_request(RPC_MKNOD, dir, "fifo", S_IFIFO), {dir}},
		{create_request(RPC_MKDIR, dir, "folder", 0), {dir}},
		{create_request(RPC_SYMLINK, dir, "link", 0), {dir}},
		{{.op = RPC_LINK, .link = {file, dir, fx_str("a")}}, {dir, file}},
		{{.op = RPC_LINK, .link = {second, dir, fx_str("b")}}, {dir, second}},
		{rename_request(dir, "a", dir, "c", 0), {dir, file}},
		{rename_request(dir, "c", other, "a", RENAME_NOREPLACE), {dir, other, file}},
		{rename_request(dir, "b", other, "a", RENAME_EXCHANGE), {dir, other, second, file}},
		{rename_request(dir, "b", other, "a", 0), {dir, other, file, second}},
		{rename_request(dir, "sub", other, "empty", 0), {dir, other, sub, empty}},
		{name_request(RPC_UNLINK, other, "a"), {other, file}},
		{name_request(RPC_RMDIR, other, "empty"), {other, sub}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++)
		expect_waits_for_each(&changes[i]);
}

static void change__of_attributes_waits_for_who_knows_them(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = make_file("file");
	const struct rpc_setattr mode = {.ino = dir, .valid = SET_MODE, .mode = 0700};
	const struct rpc_setattr times = {.ino = file, .valid = SET_ATIME_NOW};
	const struct change changes[] = {
		{{.op = RPC_SETATTR, .setattr = mode}, {dir}},
		{{.op = RPC_SETATTR, .setattr = times}, {file}},
		{{.op = RPC_SETXATTR,
			 .setxattr = {.ino = dir,
				 .name = fx_str("user.a"),
				 .total = 1,
				 .tail = {(const uint8_t *)"1", 1}}},
			{dir}},
		{{.op = RPC_REMOVEXATTR, .removexattr = {dir, fx_str("user.a")}}, {dir}},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(changes); i++)
		expect_waits_for_each(&changes[i]);
}

static void change__of_nothing_waits_for_nobody(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = make_file_in(dir, "file");

	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {file, dir, fx_str("same")}), 0);
	as(1);
	look_at(dir);
	look_at(file);
	as(0);
	/* Changes that are refused, or do nothing. */
	assert_int_equal(fx_make(RPC_CREATE, dir, "file", S_IFREG), -EEXIST);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "none"), -ENOENT);
	assert_int_equal(fx_name(RPC_RMDIR, dir, "file"), -ENOTDIR);
	assert_int_equal(fx_rename(dir, "file", dir, "same", 0), 0);
	assert_int_equal(FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = file}), 0);
	/* A file without a name changes no directory, and a COMMIT of an access time need not
	 * wait. */
	assert_int_equal(FX_RUN(.op = RPC_TMPFILE, .create = {.parent = dir, .mode = S_IFREG}), 0);
	assert_int_equal(FX_RUN(.op = RPC_COMMIT,
				 .commit = {.ino = file, .flags = COMMIT_ATIME, .atime = 5}),
		0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end__of_who_knows_lets_changes_be_made(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = make_file_in(dir, "file");

	as(1);
	look_at(dir);
	assert_int_equal(look_up(dir, "file", BOTH), 0);
	as(0);
	assert_int_equal(fx_name(RPC_UNLINK, dir, "file"), WAITS);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, sessions[1]), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_settle();
	assert_int_equal(fx_name(RPC_UNLINK, dir, "file"), 0);
	assert_int_equal(record(1, file).number, 0);
}

/* A lease of a directory that is gone goes with it. */
static void end__of_a_directory_takes_its_lease_along(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), inodes = fx_usage().inodes;

	assert_int_equal(look_up(ROOT_INO, "dir", LOOK_LEASE), 0);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	assert_int_equal(fx_return_inode(dir), 0);
	assert_int_equal(fx_usage().inodes, inodes - 1);
	assert_int_equal(fx_volume()->now.leases.records, 0);
}

static void restart__forgets_no_lease(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir");

	as(1);
	look_at(dir);
	fx_reopen();
	as(0);
	assert_int_equal(fx_make(RPC_MKDIR, dir, "sub", 0755), WAITS);
	expect_waits_for(dir, LEASE_EXCLUSIVE);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, fx_tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(look__brings_a_lease_of_any_inode),
		CASE(look__brings_what_it_asks_for_only),
		CASE(look__finds_what_is_missing),
		CASE(look__tells_of_more_than_it_asks_for),
		CASE(look__waits_for_who_changes_the_file),
		CASE(look__takes_nothing_that_others_want_or_that_is_restless),
		CASE(look__of_a_session_that_only_reads),
		CASE(change__of_names_waits_for_who_knows_them),
		CASE(change__of_attributes_waits_for_who_knows_them),
		CASE(change__of_nothing_waits_for_nobody),
		CASE(end__of_who_knows_lets_changes_be_made),
		CASE(end__of_a_directory_takes_its_lease_along),
		CASE(restart__forgets_no_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
