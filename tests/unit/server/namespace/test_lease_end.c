/* test_lease_end.c - leases at the ends of sessions: what they leave behind, also in a full store,
 * after random operations, and beside sessions that do not share. */
#include "tests/unit/server/lease_fixture.h"

/* ---- the end of a session -------------------------------------------------------------------- */

static void end_session(unsigned i, bool clean)
{
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(clean ? meta_session_leave(fx.m, 0, sessions[i])
			       : meta_session_end(fx.m, 0, sessions[i]),
		0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void end__takes_all_that_the_session_had(void **state)
{
	enum { N = 100 };
	uint64_t unlinked = make_file("unlinked"), ended = meta_leases_ended(fx.m);
	uint64_t ino, inodes;
	char name[16];

	inodes = fx_usage().inodes;
	take(0, unlinked, LEASE_SHARED, LEASE_PIN);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "unlinked"), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ino = make_file(name);
		take(0, ino, LEASE_SHARED, i % 2 ? LEASE_PIN : 0);
		take(1, ino, LEASE_SHARED, 0);
	}
	end_session(0, false);
	as(1);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), WAITS);
	fx_check();
	fx_settle();
	assert_int_equal(meta_leases_ended(fx.m) - ended, N + 1);
	assert_int_equal(fx_usage().shared, N - 1);
	assert_int_equal(fx_usage().pins, 0);
	assert_int_equal(fx_getattr(unlinked), -ESTALE);
	assert_int_equal(fx_usage().inodes, inodes - 1 + N);
	assert_int_equal(lease(ino, LEASE_EXCLUSIVE, 0), 0);
}

static void end__of_who_may_have_written_touches_the_file(void **state)
{
	uint64_t first = make_file("first"), second = make_file("second"),
		 third = make_file("third");

	take(0, first, LEASE_EXCLUSIVE, LEASE_PIN);
	take(0, second, LEASE_SHARED, LEASE_PIN);
	take(1, third, LEASE_EXCLUSIVE, LEASE_PIN);
	end_session(0, false);
	end_session(1, true);
	fx_settle();
	as(2);
	assert_true(fx_attr(first).mtime > 1000 && fx_attr(first).ctime > 1000);
	assert_int_equal(fx_attr(second).mtime, 1000);
	assert_int_equal(fx_attr(third).mtime, 1000);
}

/* The COMMIT at its last writer's close has lowered the lease. */
static void end__of_who_has_closed_what_he_wrote_leaves_its_times(void **state)
{
	uint64_t ino = make_file("file"), number = take(0, ino, LEASE_EXCLUSIVE, 0);
	struct rpc_commit commit = {.ino = ino,
		.flags = COMMIT_SIZE | COMMIT_MTIME,
		.size = 3,
		.mtime = 4000,
		.ctime = 5000,
		.lease = number - 1,
		.keep = LEASE_SHARED};

	/* With the number of an older grant it lowers nothing. */
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(record(0, ino).type, LEASE_EXCLUSIVE);
	as(1);
	assert_int_equal(lease(ino, LEASE_SHARED, 0), WAITS);
	as(0);
	commit.lease = number;
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(record(0, ino).type, LEASE_SHARED);
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), -ESTALE);
	take(1, ino, LEASE_SHARED, 0);
	end_session(0, false);
	fx_settle();
	as(1);
	assert_int_equal(fx_attr(ino).mtime, 4000);
	assert_int_equal(fx_attr(ino).ctime, 5000);
	assert_int_equal(fx_attr(ino).size, 3);
	fx_check();
}

static void end__goes_on_after_a_restart(void **state)
{
	uint64_t ino = make_file("file"), inodes = fx_usage().inodes;

	take(0, ino, LEASE_EXCLUSIVE, LEASE_PIN);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	end_session(0, false);
	fx_reopen();
	fx_settle();
	as(1);
	expect_gone(ino, inodes - 1);
}

/* ---- a full store ---------------------------------------------------------------------------- */

static int set_up_small(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, 4 << 20);
	for (unsigned i = 0; i < SESSIONS; i++)
		sessions[i] = new_session(ATTACH_SHARED);
	fx.ctx.shared = true;
	fx.ctx.lease_limit = LIMIT;
	as(0);
	return 0;
}

static void full_store__still_opens_returns_and_ends(void **state)
{
	enum { N = 900 };
	uint8_t tail[N * RPC_RETURNED_BYTES];
	uint64_t inos[N];
	struct wire_out w;
	char name[128];

	wire_out_init(&w, tail, sizeof(tail));
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		inos[i] = make_file(name);
		rpc_put_returned(
			&w, &(struct rpc_returned){inos[i], UINT64_MAX, LEASE_NONE, RETURN_UNPIN});
	}
	for (unsigned i = 0; !fx.rep.status; i++) {
		snprintf(name, sizeof(name), "a-name-of-some-length-%0100u", i);
		fx_make(RPC_MKDIR, ROOT_INO, name, 0755);
	}
	assert_int_equal(fx.rep.status, -ENOSPC);
	for (unsigned i = 0; i < N; i++) {
		take(0, inos[i], LEASE_SHARED, LEASE_PIN);
		take(1, inos[i], LEASE_NONE, LEASE_PIN);
	}
	as(0);
	assert_int_equal(FX_RUN(.op = RPC_RETURN,
				 .ret = {.kind = RETURN_LEASES, .tail = {tail, sizeof(tail)}}),
		0);
	assert_int_equal(fx_usage().pins, N);
	for (unsigned i = 0; i < N; i++) {
		give_back_pinned(1, inos[i], UINT64_MAX, LEASE_NONE, RETURN_PIN);
		as(0);
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	}
	end_session(0, false);
	end_session(1, false);
	fx_settle();
	assert_int_equal(fx_volume()->now.leases.records, 0);
	as(2);
	assert_int_equal(fx_getattr(inos[0]), -ESTALE);
}

static int open_by_name(const char *name)
{
	return FX_RUN(.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = fx_str(name)});
}

/* The reserve has room for so many open files, whichever request opens them. */
static void full_store__opens_no_more_than_it_keeps_room_for(void **state)
{
	uint64_t *records = &fx_volume()->now.leases.records, n, reserve = fx.m->reserve;

	make_file("file");
	n = *records;
	as(1);
	fx.m->reserve = UINT32_MAX;
	*records = UINT64_MAX;
	assert_int_equal(open_by_name("file"), -ENOSPC);
	*records = n;
	assert_int_equal(open_by_name("file"), 0);
	fx.m->reserve = reserve;
}

/* ---- a large store --------------------------------------------------------------------------- */

enum { MANY = 65536, MANY_STORE_MIB = 150, MANY_BATCH = 64 };

static int set_up_large(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, (uint64_t)MANY_STORE_MIB << 20);
	fx.ctx.shared = true;
	fx.ctx.lease_limit = MANY;
	sessions[0] = new_session(ATTACH_SHARED);
	as(0);
	return 0;
}

static uint8_t create_one(unsigned i)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .exclusive = true}};
	char name[16];

	snprintf(name, sizeof(name), "%u", i);
	req.create.name = fx_str(name);
	assert_int_equal(fx_execute(&req), 0);
	return fx.rep.entry.lease.type;
}

/* MANY is the default of lease_limit. The server's memory for metadata bounds all clients
 * together. */
static void large_store__lets_one_client_keep_as_many_as_it_may(void **state)
{
	for (unsigned i = 0; i < MANY; i++) {
		if (i % MANY_BATCH == 0)
			assert_int_equal(meta_begin(fx.m), 0);
		assert_int_equal(create_one(i), LEASE_EXCLUSIVE);
		if (i % MANY_BATCH == MANY_BATCH - 1)
			assert_int_equal(meta_commit(fx.m), 0);
	}
	assert_int_equal(fx_usage().exclusive, MANY);
	fx_file(ROOT_INO, "one more");
	expect_lease(LEASE_NONE);
}

/* ---- at random ------------------------------------------------------------------------------- */

enum { RANDOM_STEPS = 8000, RANDOM_NAMES = 6, RANDOM_INOS = 12, RANDOM_CHECK = 200 };

static uint64_t random_inos[RANDOM_INOS];

static unsigned chance(unsigned n)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

static struct rpc_str random_name(void)
{
	static const char *const names[RANDOM_NAMES] = {"a", "b", "c", "d", "e", "f"};

	return fx_str(names[chance(RANDOM_NAMES)]);
}

static void remember(uint64_t ino)
{
	random_inos[chance(RANDOM_INOS)] = ino;
}

/* If the request waits, the other sessions return their leases, and ended sessions are
 * reclaimed. */
static int run_alone(const struct rpc_request *req)
{
	uint64_t session = fx.ctx.session;
	bool more;
	int status;

	while ((status = fx_run(req)) == WAITS && fx.result == OUTCOME_WAIT) {
		uint64_t ino = meta_wait(fx.m).ino;

		for (unsigned i = 0; i < SESSIONS; i++)
			if (sessions[i] != session)
				give_back(i, ino, UINT64_MAX, LEASE_NONE, false);
		fx.ctx.session = session;
		fx_reclaim(&more);
	}
	return status;
}

static void random_create(void)
{
	const struct rpc_request create = {.op = chance(4) ? RPC_CREATE : RPC_TMPFILE,
		.create = {.parent = ROOT_INO, .name = random_name(), .mode = S_IFREG | 0600}};

	if (!run_alone(&create))
		remember(fx.rep.entry.attr.ino);
}

static void random_look(void)
{
	FX_RUN(.op = RPC_LOOKUP,
		.name = {ROOT_INO, random_name(), (uint8_t)chance(LOOK_LEASE | LOOK_LEASE_DIR)});
}

static void random_removal(void)
{
	const struct rpc_request unlink = {.op = RPC_UNLINK, .name = {ROOT_INO, random_name()}};
	const struct rpc_request rename = {
		.op = RPC_RENAME, .rename = {ROOT_INO, ROOT_INO, 0, random_name(), random_name()}};
	uint64_t ino = 0;

	if (chance(2)) {
		if (!run_alone(&unlink))
			ino = fx.rep.remove.child.nlink ? 0 : fx.rep.remove.child.ino;
	} else if (!run_alone(&rename)) {
		ino = fx.rep.rename.other.nlink ? 0 : fx.rep.rename.other.ino;
	}
	if (ino && chance(2))
		fx_return_inode(ino);
}

static void random_end(unsigned i)
{
	end_session(i, chance(2));
	sessions[i] = new_session(ATTACH_SHARED);
}

/* A session that does not share comes and goes, while leases of ended sessions are still
 * reclaimed. */
static void random_visit(void)
{
	bool more;

	for (unsigned i = 0; i < SESSIONS; i++)
		end_session(i, chance(2));
	fx.ctx.session = new_session(0);
	fx.ctx.shared = false;
	for (unsigned n = chance(30); n; n--) {
		if (chance(2))
			random_removal();
		else if (chance(4))
			random_create();
		else if (chance(2))
			FX_RUN(.op = RPC_LINK, .link = {random_inos[chance(RANDOM_INOS)], ROOT_INO,
						       random_name()});
		else
			fx_reclaim(&more);
	}
	fx_end_session();
	fx.ctx.shared = true;
	for (unsigned i = 0; i < SESSIONS; i++)
		sessions[i] = new_session(ATTACH_SHARED);
}

static void random_step(void)
{
	unsigned i = chance(SESSIONS);
	uint64_t ino = random_inos[chance(RANDOM_INOS)];
	bool more;

	as(i);
	switch (chance(40)) {
	case 0:
		random_end(i);
		break;
	case 1:
		fx_reclaim(&more);
		break;
	case 2:
		if (chance(2))
			random_visit();
		else
			fx_reopen();
		break;
	case 3 ... 9:
		random_create();
		break;
	case 10 ... 15:
		random_removal();
		break;
	case 16:
		FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, random_name()});
		break;
	case 17 ... 19:
		random_look();
		break;
	case 20 ... 27:
		give_back(i, ino, UINT64_MAX, chance(2) ? LEASE_SHARED : LEASE_NONE, chance(2));
		break;
	default:
		lease(ino, chance(2) ? LEASE_SHARED : LEASE_EXCLUSIVE, (uint8_t)chance(4));
		break;
	}
}

static void random__records_agree_and_nothing_is_left(void **state)
{
	uint64_t named = 1;

	for (unsigned step = 0; step < RANDOM_STEPS; step++) {
		random_step();
		if (step % RANDOM_CHECK == 0)
			fx_check();
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		end_session(i, false);
	fx_settle();
	assert_int_equal(fx_volume()->now.leases.records, 0);
	fx.ctx.session = new_session(ATTACH_SHARED);
	assert_int_equal(
		FX_RUN(.op = RPC_READDIR, .readdir = {ROOT_INO, 0, RPC_MSG_BYTES, false}), 0);
	for (struct wire_in r = rpc_tail_reader(&fx.rep.readdir.tail); wire_in_left(&r); named++) {
		struct rpc_dirent d;

		assert_true(rpc_get_dirent(&r, &d, false));
	}
	/* Several names may belong to one file. */
	assert_true(fx_usage().inodes <= named);
}

/* ---- beside sessions of the other kind ------------------------------------------------------- */

/* The records of an ended session stay for a while. */
static void others__keep_what_ended_sessions_have_records_of(void **state)
{
	uint64_t ino = make_file("file"), inodes = fx_usage().inodes, alone;

	take(0, ino, LEASE_SHARED, LEASE_PIN);
	for (unsigned i = 0; i < SESSIONS; i++)
		end_session(i, false);
	alone = new_session(0);
	fx.ctx.shared = false;
	fx.ctx.session = alone;
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	fx_check();
	while (fx_usage().shared) {
		bool more;

		fx_reclaim(&more);
	}
	fx_check();
	assert_int_equal(fx_getattr(ino), 0);
	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {ino, ROOT_INO, fx_str("again")}), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "again"), 0);
	assert_int_equal(fx_return_inode(ino), 0);
	expect_gone(ino, inodes - 1);
}

static void others__have_no_records(void **state)
{
	fx.ctx.session = new_session(0);
	fx.ctx.shared = false;
	fx_file(ROOT_INO, "file");
	assert_int_equal(fx.rep.entry.lease.type, LEASE_EXCLUSIVE);
	assert_int_equal(fx.rep.entry.lease.number, 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_volume()->now.leases.records, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, fx_tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(end__takes_all_that_the_session_had),
		CASE(end__of_who_may_have_written_touches_the_file),
		CASE(end__of_who_has_closed_what_he_wrote_leaves_its_times),
		CASE(end__goes_on_after_a_restart),
		cmocka_unit_test_setup_teardown(
			full_store__still_opens_returns_and_ends, set_up_small, fx_tear_down),
		cmocka_unit_test_setup_teardown(full_store__opens_no_more_than_it_keeps_room_for,
			set_up_small, fx_tear_down),
		cmocka_unit_test_setup_teardown(large_store__lets_one_client_keep_as_many_as_it_may,
			set_up_large, fx_tear_down),
		CASE(random__records_agree_and_nothing_is_left),
		CASE(others__keep_what_ended_sessions_have_records_of),
		CASE(others__have_no_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
