/* test_lease.c - leases as they are stored: grants, waits, and what keeps a file. */
#include "tests/unit/server/lease_fixture.h"

#include "common/base/clock.h"
#include "server/record/holders.h"

/* ---- counts ---------------------------------------------------------------------------------- */

static void expect_holder(unsigned i, uint64_t shared, uint64_t exclusive, uint64_t pins)
{
	struct holder_counts n = meta_holder(fx.m, 0, sessions[i]);

	assert_int_equal(n.shared, shared);
	assert_int_equal(n.exclusive, exclusive);
	assert_int_equal(n.pins, pins);
}

static void counts__are_of_each_session(void **state)
{
	uint64_t a = make_file("a"), b = make_file("b"), number;

	take(0, a, LEASE_SHARED, LEASE_PIN);
	take(0, b, LEASE_EXCLUSIVE, 0);
	number = take(1, a, LEASE_SHARED, 0);
	expect_holder(0, 1, 1, 1);
	expect_holder(1, 1, 0, 0);
	expect_holder(2, 0, 0, 0);
	give_back(1, a, number, LEASE_NONE, false);
	expect_holder(1, 0, 0, 0);
	fx_reopen();
	expect_holder(0, 1, 1, 1);
	as(0);
	fx_end_session();
	fx_settle();
	expect_holder(0, 0, 0, 0);
}

static void counts__of_a_batch_go_with_it(void **state)
{
	uint64_t a = make_file("a");
	const struct rpc_request req = {.op = RPC_LEASE, .lease = {a, LEASE_SHARED, LEASE_PIN}};

	take(1, a, LEASE_SHARED, 0);
	assert_int_equal(meta_begin(fx.m), 0);
	as(0);
	assert_int_equal(fx_execute(&req), 0);
	as(1);
	assert_int_equal(fx_execute(&req), 0);
	meta_abort(fx.m);
	expect_holder(0, 0, 0, 0);
	expect_holder(1, 1, 0, 0);
}

/* `since` changes only when the session gets another type. */
static void since__is_when_it_became_what_it_is(void **state)
{
	uint64_t a = make_file("a");
	uint32_t before = (uint32_t)(realtime_ns() / 1000000000), since;

	take(0, a, LEASE_SHARED, 0);
	since = record(0, a).since;
	assert_in_range(since, before, before + 60);
	while ((uint32_t)(realtime_ns() / 1000000000) == since)
		usleep(10000);
	take(0, a, LEASE_SHARED, 0);
	assert_int_equal(record(0, a).since, since);
	take(0, a, LEASE_EXCLUSIVE, 0);
	assert_true(record(0, a).since > since);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { MANY_FILES = 100, MANY_SESSIONS = 100 };

static int set_up_large(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, UINT64_C(64) << 20);
	fx.ctx.shared = true;
	return 0;
}

static uint64_t store_used(void)
{
	return fx_usage().store_used_bytes;
}

/* 10,000 leases take so much in either order: in the table's, or across it. */
static void store__bytes_of_a_lease(void **state)
{
	uint64_t files[MANY_FILES], who[MANY_SESSIONS], before, bytes;
	char name[16];

	for (unsigned i = 0; i < MANY_SESSIONS; i++)
		who[i] = new_session(ATTACH_SHARED);
	fx.ctx.session = who[0];
	for (unsigned i = 0; i < 2 * MANY_FILES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		files[i % MANY_FILES] = fx_file(ROOT_INO, name);
		if (i % MANY_FILES != MANY_FILES - 1)
			continue;
		before = store_used();
		for (unsigned k = 0; k < MANY_FILES * MANY_SESSIONS; k++) {
			bool across = i >= MANY_FILES;
			unsigned file = across ? k % MANY_FILES : k / MANY_SESSIONS;

			fx.ctx.session = who[across ? k / MANY_FILES : k % MANY_SESSIONS];
			assert_int_equal(lease(files[file], LEASE_SHARED, LEASE_PIN), 0);
		}
		bytes = (store_used() - before) / (MANY_FILES * MANY_SESSIONS);
		print_message("a lease takes %llu bytes of the store\n", (unsigned long long)bytes);
		assert_in_range(bytes, 1, LEASE_STORE_BYTES);
		fx.ctx.session = who[0];
	}
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void lease__is_shared_by_many(void **state)
{
	uint64_t ino = make_file("file"), last = 0;

	for (unsigned i = 0; i < SESSIONS; i++) {
		uint64_t number = take(i, ino, LEASE_SHARED, 0);

		assert_true(number > last);
		last = number;
		assert_int_equal(fx.rep.entry.attr.ino, ino);
	}
	assert_int_equal(fx_usage().shared, SESSIONS);
	as(0);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), WAITS);
	expect_waits_for(ino, LEASE_EXCLUSIVE);
	/* The waiting session has lost its own lease, so others need not wait for that. */
	assert_int_equal(record(0, ino).type, LEASE_NONE);
	assert_int_equal(fx_usage().shared, SESSIONS - 1);
}

static void lease__exclusive_is_one_sessions(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_EXCLUSIVE, 0);

	as(1);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), WAITS);
	expect_waits_for(ino, LEASE_SHARED);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), WAITS);
	assert_int_equal(fx_usage().exclusive, 1);
	give_back(0, ino, number, LEASE_SHARED, false);
	assert_int_equal(fx_usage().shared, 1);
	take(1, ino, LEASE_SHARED, 0);
	give_back(0, ino, number, LEASE_NONE, false);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, false);
	take(2, ino, LEASE_EXCLUSIVE, 0);
	assert_int_equal(fx_volume()->now.leases.records, 1);
}

static void lease__of_its_own_is_replaced(void **state)
{
	uint64_t ino = make_file("file"), first = take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);

	assert_true(take(0, ino, LEASE_SHARED, 0) > first);
	assert_true(record(0, ino).pinned);
	take(0, ino, LEASE_EXCLUSIVE, 0);
	/* A request for a pin alone leaves the lease as it is. */
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	expect_lease(LEASE_EXCLUSIVE);
}

static void lease__if_free_takes_what_there_is(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_SHARED, 0);

	as(1);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, LEASE_IF_FREE | LEASE_PIN), 0);
	expect_lease(LEASE_SHARED);
	give_back(1, ino, fx.rep.entry.lease.number, LEASE_NONE, true);
	give_back(0, ino, number, LEASE_NONE, false);
	take(0, ino, LEASE_EXCLUSIVE, 0);
	as(1);
	assert_int_equal(lease(ino, LEASE_SHARED, LEASE_IF_FREE | LEASE_PIN), 0);
	expect_lease(LEASE_NONE);
	assert_true(record(1, ino).pinned);
	assert_int_equal(lease(ino, LEASE_SHARED, LEASE_IF_FREE), 0);
	expect_lease(LEASE_NONE);
}

static void lease__is_behind_those_who_came_before(void **state)
{
	uint64_t ino = make_file("file");

	others_want(LEASE_EXCLUSIVE);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), WAITS);
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, LEASE_IF_FREE), 0);
	expect_lease(LEASE_NONE);
	others_want(LEASE_SHARED);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), WAITS);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), 0);
	others_want(LEASE_NONE);
}

static void lease__is_refused(void **state)
{
	uint64_t ino = make_file("file"), dir = fx_dir(ROOT_INO, "dir");

	assert_int_equal(lease(4711, LEASE_SHARED, 0), -ESTALE);
	assert_int_equal(lease(dir, LEASE_SHARED, 0), -EINVAL);
	fx.ctx.read_only = true;
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), -EROFS);
	assert_int_equal(lease(ino, LEASE_SHARED, LEASE_PIN), 0);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, true);
	fx.ctx.read_only = false;
	fx.ctx.shared = false;
	assert_int_equal(lease(ino, LEASE_SHARED, 0), -EINVAL);
	assert_true(fx.rep.text.len);
}

static void lease__outlives_a_restart_and_numbers_go_on(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);

	fx_reopen();
	assert_int_equal(fx_usage().exclusive, 1);
	assert_int_equal(fx_usage().pins, 1);
	assert_int_equal(record(0, ino).number, number);
	as(1);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), WAITS);
	ino = make_file("other");
	assert_true(take(1, ino, LEASE_SHARED, 0) > number);
}

static void lease__of_an_aborted_batch_is_none(void **state)
{
	uint64_t ino = make_file("file");

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(fx_execute(&(struct rpc_request){
				 .op = RPC_LEASE, .lease = {ino, LEASE_EXCLUSIVE, LEASE_PIN}}),
		0);
	meta_abort(fx.m);
	assert_int_equal(fx_usage().exclusive + fx_usage().pins, 0);
	take(1, ino, LEASE_EXCLUSIVE, 0);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void return__of_an_old_number_is_ignored(void **state)
{
	uint64_t ino = make_file("file"), old = take(0, ino, LEASE_SHARED, LEASE_PIN), number;

	number = take(0, ino, LEASE_EXCLUSIVE, 0);
	give_back(0, ino, old, LEASE_NONE, true);
	assert_int_equal(record(0, ino).type, LEASE_EXCLUSIVE);
	assert_true(record(0, ino).pinned);
	give_back(0, ino, number, LEASE_SHARED, false);
	assert_int_equal(record(0, ino).type, LEASE_SHARED);
	give_back(0, ino, number, LEASE_NONE, false);
	assert_int_equal(record(0, ino).type, LEASE_NONE);
	assert_true(record(0, ino).pinned);
	give_back(0, ino, number, LEASE_SHARED, true);
	assert_int_equal(fx_volume()->now.leases.records, 0);
}

static void return__that_is_malformed_changes_nothing(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_SHARED, LEASE_PIN);
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	rpc_put_returned(&w, &(struct rpc_returned){ino, number, LEASE_NONE, RETURN_UNPIN});
	rpc_put_returned(&w, &(struct rpc_returned){ino, number, 9, RETURN_UNPIN});
	assert_int_equal(
		FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_LEASES,
						 .tail = {fx.out, (uint32_t)wire_out_len(&w)}}),
		-EINVAL);
	assert_true(record(0, ino).pinned);
}

static void return__of_what_it_has_not_is_nothing(void **state)
{
	uint64_t ino = make_file("file");

	take(1, ino, LEASE_SHARED, LEASE_PIN);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, true);
	give_back(0, 4711, UINT64_MAX, LEASE_NONE, true);
	give_back(0, UINT64_MAX, UINT64_MAX, LEASE_NONE, true);
	assert_true(record(1, ino).pinned);
}

static void return__takes_as_many_as_a_message_has(void **state)
{
	enum { N = 600 };
	char name[16];
	uint64_t first = 0, inodes = fx_usage().inodes;
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	for (unsigned i = 0; i < N; i++) {
		uint64_t ino;

		snprintf(name, sizeof(name), "%u", i);
		ino = fx_file(ROOT_INO, name);
		first = i ? first : ino;
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
		rpc_put_returned(
			&w, &(struct rpc_returned){ino, UINT64_MAX, LEASE_NONE, RETURN_UNPIN});
	}
	assert_int_equal(fx_usage().pins, N);
	assert_int_equal(
		FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_LEASES,
						 .tail = {fx.out, (uint32_t)wire_out_len(&w)}}),
		0);
	expect_gone(first, inodes);
}

/* ---- pins ------------------------------------------------------------------------------------ */

static void create__pins_what_it_opens_and_leases_what_it_makes(void **state)
{
	uint64_t ino, number;

	ino = fx_file(ROOT_INO, "file");
	expect_lease(LEASE_EXCLUSIVE);
	assert_false(fx.rep.entry.lease.passing);
	number = fx.rep.entry.lease.number;
	as(1);
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = {.parent = ROOT_INO,
							  .name = fx_str("file"),
							  .mode = S_IFREG | 0644}),
		WAITS);
	expect_waits_for(ino, LEASE_SHARED);
	give_back(0, ino, number, LEASE_SHARED, false);
	as(1);
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = {.parent = ROOT_INO,
							  .name = fx_str("file"),
							  .mode = S_IFREG | 0644}),
		0);
	assert_false(fx.rep.entry.created);
	expect_lease(LEASE_NONE);
	assert_true(fx.rep.entry.lease.number > number);
	assert_int_equal(fx_usage().pins, 2);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.lease.type, LEASE_NONE);
	assert_int_equal(fx.rep.entry.attr.ino, ino);
}

static void unlink__leaves_a_file_to_those_who_pin_it(void **state)
{
	uint64_t ino = make_file("file"), inodes = fx_usage().inodes;

	as(0);
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	as(1);
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	as(2);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.remove.child.nlink, 0);
	/* The session that has removed the file keeps it, too, until it returns the inode. */
	assert_int_equal(fx.rep.remove.number, record(2, ino).number);
	assert_int_equal(fx_usage().pins, 3);
	fx_check();
	give_back(0, ino, UINT64_MAX, LEASE_NONE, true);
	as(2);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_usage().inodes, inodes);
	/* A session that takes a lease from then on keeps the file by that. */
	take(2, ino, LEASE_SHARED, LEASE_IF_FREE);
	assert_true(record(2, ino).pinned);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, true);
	give_back(2, ino, UINT64_MAX, LEASE_SHARED, true);
	assert_int_equal(fx_usage().inodes, inodes);
	fx_check();
	give_back(2, ino, UINT64_MAX, LEASE_NONE, true);
	expect_gone(ino, inodes - 1);
	as(0);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), -ESTALE);
}

/* The holders may have opened the file without telling the server. */
static void unlink__of_the_last_name_waits_for_others_leases(void **state)
{
	uint64_t ino = make_file("file"), inodes = fx_usage().inodes;
	uint64_t first = take(0, ino, LEASE_SHARED, 0), second = take(1, ino, LEASE_SHARED, 0);

	take(2, ino, LEASE_SHARED, 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), WAITS);
	expect_waits_for(ino, LEASE_EXCLUSIVE);
	give_back_pinned(0, ino, first, LEASE_NONE, RETURN_PIN);
	as(2);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), WAITS);
	give_back_pinned(1, ino, second, LEASE_NONE, RETURN_UNPIN);
	as(2);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_true(record(0, ino).pinned);
	assert_false(record(1, ino).number);
	fx_check();
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_usage().inodes, inodes);
	give_back_pinned(0, ino, first, LEASE_NONE, RETURN_UNPIN);
	expect_gone(ino, inodes - 1);
}

static void rename__over_the_last_name_waits_for_others_leases(void **state)
{
	uint64_t ino = make_file("file"), number;

	make_file("new");
	number = take(1, ino, LEASE_EXCLUSIVE, 0);
	as(0);
	assert_int_equal(fx_rename(ROOT_INO, "new", ROOT_INO, "file", 0), WAITS);
	expect_waits_for(ino, LEASE_EXCLUSIVE);
	assert_int_equal(fx_rename(ROOT_INO, "new", ROOT_INO, "file", RENAME_NOREPLACE), -EEXIST);
	give_back_pinned(1, ino, number, LEASE_NONE, RETURN_PIN);
	as(0);
	assert_int_equal(fx_rename(ROOT_INO, "new", ROOT_INO, "file", 0), 0);
	assert_int_equal(fx.rep.rename.other.nlink, 0);
	assert_int_equal(fx.rep.rename.number, record(0, ino).number);
	assert_true(record(1, ino).pinned);
}

/* A session without a lease can't make a pin by a RETURN. */
static void return__pins_only_what_was_leased(void **state)
{
	uint64_t ino = make_file("file"), number;

	give_back_pinned(1, ino, UINT64_MAX, LEASE_NONE, RETURN_PIN);
	assert_false(record(1, ino).number);
	number = take(1, ino, LEASE_SHARED, 0);
	give_back_pinned(1, ino, number - 1, LEASE_NONE, RETURN_PIN);
	assert_false(record(1, ino).pinned);
	give_back_pinned(1, ino, number, LEASE_NONE, RETURN_PIN);
	assert_int_equal(record(1, ino).type, LEASE_NONE);
	assert_true(record(1, ino).pinned);
	give_back_pinned(1, ino, number, LEASE_NONE, RETURN_PIN_AS_IT_IS);
	assert_true(record(1, ino).pinned);
	give_back_pinned(1, ino, number, LEASE_NONE, RETURN_UNPIN);
	assert_int_equal(fx_usage().pins, 0);
}

static void unlink__of_what_nobody_has_open_is_the_sessions_to_return(void **state)
{
	uint64_t ino = make_file("file"), dir = fx_dir(ROOT_INO, "dir"), inodes = fx_usage().inodes;

	as(1);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_name(RPC_RMDIR, ROOT_INO, "dir"), 0);
	assert_int_equal(fx_usage().pins, 2);
	fx_check();
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_return_inode(dir), 0);
	assert_int_equal(fx_return_inode(dir), 0);
	expect_gone(ino, inodes - 2);
}

static void rename__over_a_file_leaves_it_to_those_who_pin_it(void **state)
{
	uint64_t ino = make_file("file"), inodes = fx_usage().inodes;

	make_file("new");
	as(1);
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	as(0);
	assert_int_equal(fx_rename(ROOT_INO, "new", ROOT_INO, "file", 0), 0);
	assert_int_equal(fx.rep.rename.other.nlink, 0);
	assert_int_equal(fx_return_inode(ino), 0);
	take(1, ino, LEASE_EXCLUSIVE, 0);
	fx_fill(ino, 0, 3);
	give_back(1, ino, UINT64_MAX, LEASE_NONE, true);
	expect_gone(ino, inodes);
}

static void tmpfile__is_its_sessions_and_can_get_a_name(void **state)
{
	uint64_t ino, inodes = fx_usage().inodes;

	assert_int_equal(
		FX_RUN(.op = RPC_TMPFILE, .create = {.parent = ROOT_INO, .mode = S_IFREG}), 0);
	expect_lease(LEASE_EXCLUSIVE);
	ino = fx.rep.entry.attr.ino;
	as(1);
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("name")}), -ENOENT);
	as(0);
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("name")}), 0);
	give_back(0, ino, UINT64_MAX, LEASE_NONE, true);
	assert_int_equal(fx_usage().inodes, inodes + 1);
	assert_int_equal(fx_lookup(ROOT_INO, "name"), 0);
}

/* The session's kernel found the file by a name that another session has removed. */
static void unlinked__gets_no_name_again(void **state)
{
	uint64_t ino = make_file("file");

	as(0);
	assert_int_equal(lease(ino, LEASE_NONE, LEASE_PIN), 0);
	take(1, ino, LEASE_SHARED, LEASE_PIN);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	for (unsigned i = 0; i < 2; i++) {
		as(i);
		assert_int_equal(
			FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("again")}), -ENOENT);
	}
	/* Nor does a file that was made without a name, once it has lost the name that it got. */
	as(0);
	assert_int_equal(
		FX_RUN(.op = RPC_TMPFILE, .create = {.parent = ROOT_INO, .mode = S_IFREG}), 0);
	ino = fx.rep.entry.attr.ino;
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("name")}), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "name"), 0);
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("again")}), -ENOENT);
}

/* ---- attributes that others may change ------------------------------------------------------- */

static void attributes__wait_for_who_may_change_them(void **state)
{
	uint64_t ino = make_file("file");
	const struct rpc_request requests[] = {
		{.op = RPC_GETATTR, .ino = {ino}},
		{.op = RPC_LOOKUP, .name = {ROOT_INO, fx_str("file")}},
		{.op = RPC_LOOKUP, .name = {ino, fx_str(".")}},
		{.op = RPC_CREATE,
			.create = {.parent = ROOT_INO, .name = fx_str("file"), .mode = S_IFREG}},
	};
	uint64_t number = take(1, ino, LEASE_EXCLUSIVE, 0);

	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
		as(1);
		if (requests[i].op != RPC_CREATE)
			assert_int_equal(fx_run(&requests[i]), 0);
		as(0);
		assert_int_equal(fx_run(&requests[i]), WAITS);
		expect_waits_for(ino, LEASE_SHARED);
	}
	give_back(1, ino, number, LEASE_SHARED, false);
	as(0);
	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++)
		assert_int_equal(fx_run(&requests[i]), 0);
}

static void attributes__are_those_of_the_commit(void **state)
{
	uint64_t ino = make_file("file"), number = take(1, ino, LEASE_EXCLUSIVE, 0);

	as(0);
	assert_int_equal(fx_getattr(ino), WAITS);
	as(1);
	fx_fill(ino, 0, 3);
	give_back(1, ino, number, LEASE_SHARED, false);
	as(0);
	assert_int_equal(fx_attr(ino).size, 3 * PAGE_BYTES);
}

/* A staged value stays for the next run of the request. */
static void setxattr__that_waits_keeps_its_stage(void **state)
{
	uint8_t value[2] = "ab";
	uint64_t ino = make_file("file"), number = take(1, ino, LEASE_EXCLUSIVE, 0);
	const struct rpc_request set = {.op = RPC_SETXATTR,
		.setxattr = {.ino = ino,
			.name = fx_str("user.a"),
			.stage = 5,
			.total = 2,
			.tail = {value + 1, 1}}};

	as(0);
	assert_int_equal(FX_RUN(.op = RPC_STAGE, .stage = {5, 0, {value, 1}}), 0);
	assert_int_equal(fx_run(&set), WAITS);
	give_back(1, ino, number, LEASE_NONE, false);
	as(0);
	assert_int_equal(fx_run(&set), 0);
}

static void readdir__says_that_attributes_are_not_known(void **state)
{
	uint64_t ino = make_file("file");
	struct rpc_dirent d;
	struct wire_in r;

	take(1, ino, LEASE_EXCLUSIVE, 0);
	for (unsigned i = 0; i < 2; i++) {
		as(i);
		assert_int_equal(
			FX_RUN(.op = RPC_READDIR, .readdir = {ROOT_INO, 0, RPC_MSG_BYTES, true}),
			0);
		r = rpc_tail_reader(&fx.rep.readdir.tail);
		assert_true(rpc_get_dirent(&r, &d, true));
		assert_int_equal(d.attr.ino, ino);
		assert_int_equal(d.attr.nlink, i);
		assert_int_equal(d.attr.mode & S_IFMT, S_IFREG);
	}
}

/* ---- changes of bytes ------------------------------------------------------------------------ */

static void change__of_bytes_needs_the_lease(void **state)
{
	uint64_t ino = make_file("file"), src = make_file("src"), number;
	const struct rpc_request requests[] = {
		{.op = RPC_COMMIT, .commit = {.ino = ino, .flags = COMMIT_SIZE, .size = 9}},
		{.op = RPC_COMMIT, .commit = {.ino = ino, .flags = COMMIT_MTIME}},
		{.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_SIZE, .size = 5}},
		{.op = RPC_FALLOCATE, .fallocate = {.ino = ino, .len = 4096}},
		{.op = RPC_COPY, .copy = {.src = src, .dst = ino, .len = 5}},
	};
	struct extent e;

	take(0, src, LEASE_EXCLUSIVE, 0);
	assert_int_equal(fx_truncate(src, 5), 0);
	number = take(0, ino, LEASE_SHARED, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
		assert_int_equal(fx_run(&requests[i]), -ESTALE);
		assert_true(fx.rep.text.len);
	}
	e = fx_grant_run(1);
	assert_int_equal(
		FX_RUN(.op = RPC_COMMIT, .commit = {.ino = ino, .tail = fx_extents_tail(&e, 1)}),
		-ESTALE);
	give_back(0, ino, number, LEASE_NONE, false);
	take(0, ino, LEASE_EXCLUSIVE, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++)
		assert_int_equal(fx_run(&requests[i]), 0);
	give_back(0, src, UINT64_MAX, LEASE_NONE, false);
	assert_int_equal(fx_run(&requests[4]), -ESTALE);
	take(0, src, LEASE_SHARED, 0);
	assert_int_equal(fx_run(&requests[4]), 0);
}

static void commit__of_all_but_the_time_of_reading_needs_the_lease(void **state)
{
	const struct rpc_commit atime = {.flags = COMMIT_ATIME, .atime = 5};
	const struct rpc_commit mode = {.flags = COMMIT_MODE, .mode = 0600};
	struct rpc_request req = {.op = RPC_COMMIT, .commit = atime};
	uint64_t ino = make_file("file"), number = take(1, ino, LEASE_EXCLUSIVE, 0);

	as(0);
	req.commit.ino = ino;
	assert_int_equal(fx_run(&req), 0);
	req.commit = mode;
	req.commit.ino = ino;
	assert_int_equal(fx_run(&req), -ESTALE);
	give_back(1, ino, number, LEASE_NONE, false);
	take(0, ino, LEASE_EXCLUSIVE, 0);
	assert_int_equal(fx_run(&req), 0);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void bound__what_is_needed_is_had_beyond_it(void **state)
{
	enum { BOUND = 5, NEEDED = 2 * BOUND + 1024 };
	char name[16];
	uint64_t ino = 0;

	fx.ctx.lease_limit = BOUND;
	for (unsigned i = 0; i < NEEDED; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ino = make_file(name);
		as(0);
		if (i >= BOUND) {
			assert_int_equal(lease(ino, LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), 0);
			expect_lease(LEASE_NONE);
			assert_true(record(0, ino).pinned);
		}
		take(0, ino, LEASE_SHARED, 0);
		assert_int_equal(fx.rep.entry.lease.passing, i >= BOUND);
	}
	/* Another type for a leased file needs no more room. */
	take(0, ino, LEASE_EXCLUSIVE, 0);
	ino = make_file("last");
	assert_int_equal(lease(ino, LEASE_SHARED, 0), -ENFILE);
	assert_true(fx.rep.text.len);
	fx_reopen();
	as(0);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), -ENFILE);
	take(1, ino, LEASE_SHARED, LEASE_IF_FREE);
	assert_false(fx.rep.entry.lease.passing);
	/* One that begins to share has the file open. */
	as(0);
	fx.ctx.flags |= SESSION_FORGETS;
	assert_int_equal(lease(ino, LEASE_SHARED, LEASE_PIN), 0);
	expect_lease(LEASE_SHARED);
}

static void bound__counts_what_is_committed(void **state)
{
	uint64_t ino = make_file("file"), other = make_file("other"), number;

	fx.ctx.lease_limit = 1;
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(fx_execute(&(struct rpc_request){
				 .op = RPC_LEASE, .lease = {ino, LEASE_EXCLUSIVE, 0}}),
		0);
	meta_abort(fx.m);
	number = take(0, ino, LEASE_SHARED, LEASE_IF_FREE);
	assert_int_equal(lease(other, LEASE_SHARED, LEASE_IF_FREE), 0);
	expect_lease(LEASE_NONE);
	give_back(0, ino, number, LEASE_NONE, true);
	take(0, other, LEASE_SHARED, LEASE_IF_FREE);
	fx_file(ROOT_INO, "third");
	expect_lease(LEASE_NONE);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, fx_tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(counts__are_of_each_session),
		CASE(counts__of_a_batch_go_with_it),
		CASE(since__is_when_it_became_what_it_is),
		cmocka_unit_test_setup_teardown(
			store__bytes_of_a_lease, set_up_large, fx_tear_down),
		CASE(lease__is_shared_by_many),
		CASE(lease__exclusive_is_one_sessions),
		CASE(lease__of_its_own_is_replaced),
		CASE(lease__if_free_takes_what_there_is),
		CASE(lease__is_behind_those_who_came_before),
		CASE(lease__is_refused),
		CASE(lease__outlives_a_restart_and_numbers_go_on),
		CASE(lease__of_an_aborted_batch_is_none),
		CASE(return__of_an_old_number_is_ignored),
		CASE(return__that_is_malformed_changes_nothing),
		CASE(return__of_what_it_has_not_is_nothing),
		CASE(return__takes_as_many_as_a_message_has),
		CASE(create__pins_what_it_opens_and_leases_what_it_makes),
		CASE(unlink__leaves_a_file_to_those_who_pin_it),
		CASE(unlink__of_what_nobody_has_open_is_the_sessions_to_return),
		CASE(unlink__of_the_last_name_waits_for_others_leases),
		CASE(rename__over_a_file_leaves_it_to_those_who_pin_it),
		CASE(rename__over_the_last_name_waits_for_others_leases),
		CASE(return__pins_only_what_was_leased),
		CASE(tmpfile__is_its_sessions_and_can_get_a_name),
		CASE(unlinked__gets_no_name_again),
		CASE(attributes__wait_for_who_may_change_them),
		CASE(attributes__are_those_of_the_commit),
		CASE(setxattr__that_waits_keeps_its_stage),
		CASE(readdir__says_that_attributes_are_not_known),
		CASE(change__of_bytes_needs_the_lease),
		CASE(commit__of_all_but_the_time_of_reading_needs_the_lease),
		CASE(bound__what_is_needed_is_had_beyond_it),
		CASE(bound__counts_what_is_committed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
