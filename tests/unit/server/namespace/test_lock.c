/* test_lock.c - locks as they are stored: conflicts, ranges that split and merge, the order of
 * waits, and the locks that are left when a session or the server ends. */
#include "tests/unit/server/sharing_fixture.h"

#include "server/record/lock.h"

enum { PATIENCE_MS = 300 };

static uint64_t file;

static int set_up(void **state)
{
	set_up_sessions(state);
	fx.ctx.lock_limit = SESSION_LOCKS_MAX;
	file = fx_file(ROOT_INO, "file");
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The three sessions use the same numbers for owners that are not the same. */
/* Added to an owner: the same process's owner at another file. */
enum { ANOTHER_FILE = 1 << LOCK_PROCESS_BITS };

static struct rpc_lock record(uint8_t type, uint64_t start, uint64_t end)
{
	return (struct rpc_lock){.ino = file,
		.owner = 1,
		.start = start,
		.end = end,
		.pid = 100,
		.kind = LOCK_KIND_POSIX,
		.type = type};
}

static int lock(unsigned session, struct rpc_lock lk)
{
	fx.ctx.session = sessions[session];
	return FX_RUN(.op = RPC_LOCK, .lock = lk);
}

static int set(unsigned session, uint8_t type, uint64_t start, uint64_t end)
{
	return lock(session, record(type, start, end));
}

static int await(unsigned session, uint64_t number, uint8_t type, uint64_t start, uint64_t end)
{
	struct rpc_lock lk = record(type, start, end);

	lk.wait = number;
	return lock(session, lk);
}

static int whole(unsigned session, uint8_t type, uint64_t number)
{
	return lock(session, (struct rpc_lock){.ino = file,
				     .owner = 1,
				     .wait = number,
				     .end = LOCK_END_MAX,
				     .kind = LOCK_KIND_FLOCK,
				     .type = type});
}

/* Bytes 0 to 19 as another session finds them locked: '.', 'r' or 'w' each. */
static void expect_seen(const char *seen)
{
	fx.ctx.session = sessions[SESSIONS - 1];
	for (uint64_t i = 0; seen[i]; i++) {
		static const char letters[] = ".rw";

		assert_int_equal(FX_RUN(.op = RPC_GETLK, .lock = record(LOCK_EXCLUSIVE, i, i)), 0);
		assert_int_equal(letters[fx.rep.getlk.type], seen[i]);
	}
}

/* The waits that were told, as "session:number" each. */
static char told[128];

static bool note_told(uint64_t ino, uint64_t number, void *arg)
{
	size_t len = strlen(told);

	assert_int_equal(ino, file);
	snprintf(told + len, sizeof(told) - len, "%s%u:%u", len ? " " : "", *(unsigned *)arg,
		(unsigned)number);
	return true;
}

static void rung(uint64_t session, void *arg)
{
	++*(unsigned *)arg;
}

static void expect_told(unsigned rings, const char *expected)
{
	unsigned n = 0;
	int64_t next;

	if (meta_locks_due(fx.m, &next))
		assert_int_equal(meta_locks_look(fx.m, rung, &n), 0);
	assert_int_equal(n, rings);
	told[0] = '\0';
	for (unsigned i = 0; i < SESSIONS; i++)
		meta_locks_told(fx.m, sessions[i], note_told, &i);
	assert_string_equal(told, expected);
}

/* ---- grants ---------------------------------------------------------------------------------- */

static void lock__split_and_merge(void **state)
{
	static const struct {
		uint8_t type;
		uint64_t start, end;
		const char *after;
	} steps[] = {
		{LOCK_EXCLUSIVE, 5, 14, ".....wwwwwwwwww....."},
		{LOCK_FREE, 8, 9, ".....www..wwwww....."},
		{LOCK_SHARED, 6, 6, ".....wrw..wwwww....."},
		{LOCK_SHARED, 7, 11, ".....wrrrrrrwww....."},
		{LOCK_EXCLUSIVE, 8, 9, ".....wrrwwrrwww....."},
		{LOCK_SHARED, 0, 19, "rrrrrrrrrrrrrrrrrrrr"},
		{LOCK_FREE, 3, 5, "rrr...rrrrrrrrrrrrrr"},
		{LOCK_EXCLUSIVE, 4, LOCK_END_MAX, "rrr.wwwwwwwwwwwwwwww"},
		{LOCK_FREE, 10, LOCK_END_MAX, "rrr.wwwwww.........."},
		{LOCK_FREE, 0, LOCK_END_MAX, "...................."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		assert_int_equal(set(0, steps[i].type, steps[i].start, steps[i].end), 0);
		expect_seen(steps[i].after);
		fx_check();
	}
}

static void lock__conflicts(void **state)
{
	assert_int_equal(set(0, LOCK_SHARED, 10, 19), 0);
	assert_int_equal(set(1, LOCK_SHARED, 0, 30), 0);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 0, 10), -EAGAIN);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 31, 31), 0);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 10, 19), -EAGAIN);
	assert_int_equal(set(1, LOCK_FREE, 5, 25), 0);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 10, 19), 0);
	assert_int_equal(set(1, LOCK_SHARED, 19, 19), -EAGAIN);
	assert_true(meta_lock_holder(fx.m) == sessions[0]);
	assert_int_equal(meta_lock_holder(fx.m), 0);
	/* A lock of the whole file (flock) is another kind. */
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(2, LOCK_SHARED, 0), -EAGAIN);
}

static void lock__of_other_owners_of_a_session(void **state)
{
	struct rpc_lock other = record(LOCK_SHARED, 0, 0);

	other.owner = 2;
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 5), 0);
	assert_int_equal(lock(0, other), -EAGAIN);
	other.start = other.end = 6;
	assert_int_equal(lock(0, other), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
	expect_seen("......r.");
}

static void getlk__names_the_lock(void **state)
{
	struct rpc_lock another = record(LOCK_SHARED, 0, 100);

	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 9), 0);
	fx.ctx.session = sessions[1];
	assert_int_equal(FX_RUN(.op = RPC_GETLK, .lock = record(LOCK_SHARED, 0, 100)), 0);
	assert_int_equal(fx.rep.getlk.type, LOCK_EXCLUSIVE);
	assert_int_equal(fx.rep.getlk.pid, 0); /* a pid of another machine means nothing here */
	assert_int_equal(fx.rep.getlk.start, 5);
	assert_int_equal(fx.rep.getlk.end, 9);
	fx.ctx.session = sessions[0];
	assert_int_equal(FX_RUN(.op = RPC_GETLK, .lock = record(LOCK_SHARED, 0, 100)), 0);
	assert_int_equal(fx.rep.getlk.type, LOCK_FREE);
	another.owner = 2;
	assert_int_equal(FX_RUN(.op = RPC_GETLK, .lock = another), 0);
	assert_int_equal(fx.rep.getlk.pid, 100);
}

static void flock__converts(void **state)
{
	assert_int_equal(whole(0, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
	/* A failed conversion loses the old lock. So one of two sessions that keep trying gets
	 * it. */
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(0, LOCK_SHARED, 0), -EAGAIN);
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(whole(1, LOCK_FREE, 0), 0);
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), -EAGAIN);
	assert_int_equal(whole(0, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
}

/* Otherwise each session would wait for the other's shared lock. */
static void flock__is_given_up_while_more_is_waited_for(void **state)
{
	assert_int_equal(whole(0, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 7), -EINPROGRESS);
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 8), -EINPROGRESS);
	expect_told(1, "0:7");
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 7), 0);
}

static void lock__is_refused(void **state)
{
	struct rpc_lock gone = record(LOCK_SHARED, 0, 0);

	gone.ino = 4711;
	assert_int_equal(lock(0, gone), -ESTALE);
	gone.ino = UINT64_MAX;
	assert_int_equal(lock(0, gone), -ESTALE);
	fx.ctx.shared = false;
	assert_int_equal(set(0, LOCK_SHARED, 0, 0), -EINVAL);
	assert_true(fx.rep.text.len);
	fx.ctx.shared = true;
	/* A lock does not change the file. */
	fx.ctx.read_only = true;
	assert_int_equal(set(0, LOCK_SHARED, 0, 0), 0);
	fx.ctx.read_only = false;
}

/* ---- read-only sessions ---------------------------------------------------------------------- */

/* Does the same in a read-only session. */
static int ro_set(unsigned session, uint8_t type, uint64_t start, uint64_t end)
{
	int err;

	fx.ctx.read_only = true;
	err = set(session, type, start, end);
	fx.ctx.read_only = false;
	return err;
}

static int ro_whole(unsigned session, uint8_t type, uint64_t number)
{
	int err;

	fx.ctx.read_only = true;
	err = whole(session, type, number);
	fx.ctx.read_only = false;
	return err;
}

static uint8_t type_in_way(unsigned session, bool read_only)
{
	fx.ctx.session = sessions[session];
	fx.ctx.read_only = read_only;
	assert_int_equal(FX_RUN(.op = RPC_GETLK, .lock = record(LOCK_EXCLUSIVE, 0, 0)), 0);
	fx.ctx.read_only = false;
	return fx.rep.getlk.type;
}

static void read_only__exclusive_lock_keeps_out_those_who_read(void **state)
{
	assert_int_equal(ro_whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(ro_whole(1, LOCK_SHARED, 0), -EAGAIN);
	assert_int_equal(whole(2, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), -EAGAIN);
	fx_check();
	assert_int_equal(ro_whole(0, LOCK_FREE, 0), 0);
	assert_int_equal(ro_whole(0, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(ro_whole(0, LOCK_SHARED, 0), -EAGAIN);
	assert_int_equal(whole(2, LOCK_SHARED, 0), 0);
	assert_int_equal(ro_whole(0, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(ro_whole(0, LOCK_SHARED, 0), 0);
}

static void read_only__record_lock_is_in_no_writers_way(void **state)
{
	assert_int_equal(ro_set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(type_in_way(1, true), LOCK_EXCLUSIVE);
	assert_int_equal(type_in_way(1, false), LOCK_FREE);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 5, 5), 0);
	fx_reopen();
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 0, 4), 0);
	assert_int_equal(ro_set(2, LOCK_SHARED, 9, 9), -EAGAIN);
	fx_check();
}

static void read_only__shared_lock_is_as_any(void **state)
{
	assert_int_equal(ro_whole(0, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 0), -EAGAIN);
}

/* A read-only session waits for a writer's lock, and writers that come later pass it. */
static void read_only__wait_has_no_writer_behind_it(void **state)
{
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 11), -EINPROGRESS);
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 12), -EINPROGRESS);
	assert_int_equal(whole(0, LOCK_FREE, 0), 0);
	expect_told(2, "1:11 2:12");
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 12), 0);
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 11), -EINPROGRESS);
	assert_int_equal(whole(2, LOCK_FREE, 0), 0);
	expect_told(1, "1:11");
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 11), 0);
}

/* Other sessions may have conflicting locks by now. The lock stays a reader's until it is taken
 * anew. */
static void read_only__lock_of_a_session_that_may_write_now(void **state)
{
	assert_int_equal(ro_whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(whole(1, LOCK_FREE, 0), 0);
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 0), -EAGAIN);
	/* The same holds for a session that only reads now. */
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 0), -EAGAIN);
	fx_check();
}

static void read_only__lock_holds_among_the_owners_of_a_session(void **state)
{
	struct rpc_lock other = record(LOCK_EXCLUSIVE, 0, 0);

	other.owner = 2;
	assert_int_equal(ro_set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(lock(0, other), -EAGAIN);
}

static void read_only__part_that_is_taken_anew(void **state)
{
	assert_int_equal(ro_set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 5, 14), 0);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 4, 4), 0);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 5, 5), -EAGAIN);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 14, 14), -EAGAIN);
	assert_int_equal(meta_holder(fx.m, 0, sessions[0]).locks, 2);
	fx_check();
	assert_int_equal(set(1, LOCK_FREE, 4, 4), 0);
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 14), 0);
	assert_int_equal(meta_holder(fx.m, 0, sessions[0]).locks, 1);
}

static void read_only__wait_of_a_session_that_may_write_now(void **state)
{
	assert_int_equal(ro_whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(ro_whole(1, LOCK_EXCLUSIVE, 11), -EINPROGRESS);
	expect_told(0, "");
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_set_flags(fx.m, sessions[1], ATTACH_SHARED), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	expect_told(1, "1:11");
	assert_int_equal(whole(1, LOCK_EXCLUSIVE, 11), 0);
}

static void lock__too_many(void **state)
{
	for (uint64_t i = 0; i < LOCKS_MAX; i++)
		assert_int_equal(set(0, LOCK_SHARED, 2 * i, 2 * i), 0);
	assert_int_equal(set(0, LOCK_SHARED, 2 * LOCKS_MAX, 2 * LOCKS_MAX), -ENOLCK);
	assert_int_equal(set(1, LOCK_SHARED, 0, LOCK_END_MAX), 0);
	assert_int_equal(set(1, LOCK_FREE, 5, 5), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 5, 5), 0);
}

/* The limit counts locks of all inodes together. A lock that is given up is never refused for
 * it. */
static void lock__too_many_of_a_session(void **state)
{
	uint64_t first = file;

	fx.ctx.lock_limit = 3;
	assert_int_equal(set(0, LOCK_SHARED, 0, 9), 0);
	file = fx_file(ROOT_INO, "second");
	assert_int_equal(set(0, LOCK_SHARED, 0, 0), 0);
	assert_int_equal(set(0, LOCK_SHARED, 2, 2), 0);
	assert_int_equal(set(0, LOCK_SHARED, 4, 4), -ENOLCK);
	/* Another type of an existing lock is no additional lock. */
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 2, 2), 0);
	assert_int_equal(set(0, LOCK_SHARED, 2, 2), 0);
	assert_int_equal(await(0, 7, LOCK_SHARED, 4, 4), -ENOLCK);
	assert_int_equal(set(1, LOCK_SHARED, 4, 4), 0);
	file = first;
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
	assert_int_equal(set(0, LOCK_SHARED, 0, 0), 0);
	assert_int_equal(set(0, LOCK_SHARED, 2, 2), -ENOLCK);
}

/* Each such unlock makes two locks of one. */
static void unlock__of_the_middle__is_bounded(void **state)
{
	fx.ctx.lock_limit = 3;
	assert_int_equal(set(0, LOCK_SHARED, 0, 99), 0);
	for (uint64_t i = 1; i < 6; i++)
		assert_int_equal(set(0, LOCK_FREE, 2 * i, 2 * i), 0);
	assert_int_equal(set(0, LOCK_FREE, 50, 50), -ENOLCK);
	assert_int_equal(set(0, LOCK_FREE, 50, 99), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
}

/* The locks that an unlock makes must not use the reserve, which is for deletes and ends. */
static void unlock__of_the_middle__leaves_the_reserve(void **state)
{
	uint64_t reserve = fx.m->reserve;

	assert_int_equal(set(0, LOCK_SHARED, 10, 19), 0);
	fx.m->reserve = UINT32_MAX;
	assert_int_equal(set(0, LOCK_FREE, 15, 15), -ENOLCK);
	assert_int_equal(set(0, LOCK_FREE, 10, 11), 0);
	assert_int_equal(set(0, LOCK_FREE, 19, 19), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
	fx.m->reserve = reserve;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait__is_told_in_the_order_of_coming(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 13, LOCK_SHARED, 5, 5), -EINPROGRESS);
	expect_told(0, "");
	assert_int_equal(set(0, LOCK_FREE, 0, 9), 0);
	expect_told(1, "1:11");
	expect_told(0, "1:11"); /* in each PING */
	/* A new wait is behind them; a try without waiting is not. */
	assert_int_equal(await(0, 14, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), 0);
	expect_told(0, "");
	assert_int_equal(set(1, LOCK_FREE, 0, 9), 0);
	/* Both waits are one owner's, so they do not conflict. */
	expect_told(2, "2:12 2:13");
	assert_int_equal(set(0, LOCK_SHARED, 0, 0), 0);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	/* An owner that has a lock is behind no other wait any more. */
	expect_told(1, "0:14 2:13");
}

static void wait__what_can_be_had_is_granted_at_once(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 10, 19), 0);
	assert_int_equal(meta_locks_waiting(fx.m), 1);
}

static void wait__withdrawn(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(1, 11, LOCK_FREE, 0, 9), 0);
	assert_int_equal(await(1, 99, LOCK_FREE, 0, 9), 0);
	assert_int_equal(meta_locks_waiting(fx.m), 0);
	assert_int_equal(set(0, LOCK_FREE, 0, 9), 0);
	expect_told(0, "");
}

/* A client that was told and does not ask again holds up the next one for a limited time. */
static void wait__patience_ends(void **state)
{
	fx.m->lock_waits.patience_ms = PATIENCE_MS;
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 0, 9), 0);
	expect_told(1, "1:11");
	usleep((PATIENCE_MS + 5) * 1000);
	expect_told(1, "1:11 2:12");
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 0, 9), 0);
}

/* New readers don't keep a writer out. But a reader that could have its lock does not wait for ever
 * behind a writer that can't. */
static void wait__of_a_reader_behind_a_writer(void **state)
{
	fx.m->lock_waits.patience_ms = PATIENCE_MS;
	assert_int_equal(set(0, LOCK_SHARED, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_SHARED, 0, 9), -EINPROGRESS);
	expect_told(0, "");
	usleep((PATIENCE_MS + 5) * 1000);
	expect_told(1, "2:12");
	assert_int_equal(await(2, 12, LOCK_SHARED, 0, 9), 0);
}

/* Otherwise each would wait for the other: one for the other's lock, the other for its turn. */
static void wait__of_one_who_has_some__is_behind_nobody(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_EXCLUSIVE, 0, 19), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 10, 19), -EINPROGRESS);
	assert_int_equal(await(0, 13, LOCK_SHARED, 0, 9), 0);
	assert_int_equal(await(0, 14, LOCK_EXCLUSIVE, 15, 19), 0);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 20, 20), 0);
	assert_int_equal(set(0, LOCK_FREE, 15, 19), 0);
	expect_told(1, "2:12");
}

/* The limit keeps one session from making other sessions' waits fail, or their checks slow. */
static void wait__too_many(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	for (unsigned i = 1; i <= LOCK_WAITS_MAX; i++)
		assert_int_equal(await(1, i, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(1, LOCK_WAITS_MAX + 1, LOCK_EXCLUSIVE, 0, 9), -ENOLCK);
	assert_int_equal(await(1, 1, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(2, 1, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
	assert_int_equal(await(1, 7, LOCK_FREE, 0, 9), 0);
	assert_int_equal(await(1, LOCK_WAITS_MAX + 1, LOCK_EXCLUSIVE, 0, 9), -EINPROGRESS);
}

enum { MANY = 100, ROOM = 40 };

static bool room_for_some(uint64_t ino, uint64_t number, void *arg)
{
	unsigned *n = arg;

	if (*n == ROOM)
		return false;
	++*n;
	assert_in_range(number, 1, MANY);
	told[number]++;
	return true;
}

/* A PING has room for ROOM of them. */
static bool tell_some(void)
{
	unsigned n = 0;
	bool all = meta_locks_told(fx.m, sessions[1], room_for_some, &n);

	assert_int_equal(n, ROOM);
	return all;
}

static void wait__of_many_is_told_of_by_turns(void **state)
{
	unsigned rings = 0;

	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	for (unsigned i = 1; i <= MANY; i++)
		assert_int_equal(await(1, i, LOCK_SHARED, 0, 9), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 0, 9), 0);
	assert_int_equal(meta_locks_look(fx.m, rung, &rings), 0);
	assert_int_equal(rings, MANY);
	memset(told, 0, sizeof(told));
	assert_false(tell_some());
	assert_false(tell_some());
	assert_true(tell_some());
	for (unsigned i = 1; i <= MANY; i++)
		assert_in_range(told[i], 1, 2);
	/* No wait is urgent now, and all are told again. */
	for (unsigned i = 0; i < MANY / ROOM + 1; i++)
		assert_true(tell_some());
	for (unsigned i = 1; i <= MANY; i++)
		assert_in_range(told[i], 2, 3);
}

static void wait__in_a_circle(void **state)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		assert_int_equal(set(i, LOCK_EXCLUSIVE, i, i), 0);
	assert_int_equal(await(0, 1, LOCK_EXCLUSIVE, 1, 1), -EINPROGRESS);
	assert_int_equal(await(1, 2, LOCK_SHARED, 2, 2), -EINPROGRESS);
	assert_int_equal(await(2, 3, LOCK_SHARED, 0, 0), -EDEADLK);
	assert_int_equal(meta_locks_waiting(fx.m), 2);
	assert_int_equal(set(2, LOCK_FREE, 2, 2), 0);
	assert_int_equal(await(2, 3, LOCK_SHARED, 0, 0), -EINPROGRESS);
}

static void wait__in_a_circle_over_two_files(void **state)
{
	struct rpc_lock other = record(LOCK_EXCLUSIVE, 0, 0);

	other.ino = fx_file(ROOT_INO, "other");
	other.owner += ANOTHER_FILE;
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(lock(1, other), 0);
	assert_int_equal(await(1, 1, LOCK_EXCLUSIVE, 0, 0), -EINPROGRESS);
	other.wait = 2;
	assert_int_equal(lock(0, other), -EDEADLK);
}

/* The lock is one that the same process has closed; another request is about to give it up. */
static void wait__for_a_lock_that_is_leaving__is_no_circle(void **state)
{
	struct rpc_lock again = record(LOCK_EXCLUSIVE, 0, 0);

	again.owner += ANOTHER_FILE;
	again.wait = 1;
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(lock(0, again), -EINPROGRESS);
	assert_int_equal(set(0, LOCK_FREE, 0, 0), 0);
	expect_told(1, "0:1");
	assert_int_equal(lock(0, again), 0);
}

/* Another thread of a waiting process takes the lock that closes the circle. That ends no wait, so
 * without a ring no client would ask again. */
static void wait__in_a_circle_closed_by_a_lock(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(set(2, LOCK_EXCLUSIVE, 1, 1), 0);
	assert_int_equal(await(0, 11, LOCK_EXCLUSIVE, 1, 1), -EINPROGRESS);
	assert_int_equal(await(1, 12, LOCK_EXCLUSIVE, 0, 0), -EINPROGRESS);
	expect_told(0, "");
	assert_int_equal(set(2, LOCK_FREE, 1, 1), 0);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 1, 1), 0);
	expect_told(1, "1:12");
	assert_int_equal(await(1, 12, LOCK_EXCLUSIVE, 0, 0), -EDEADLK);
	expect_told(0, "");
	assert_int_equal(set(1, LOCK_FREE, 1, 1), 0);
	expect_told(1, "0:11");
	assert_int_equal(await(0, 11, LOCK_EXCLUSIVE, 1, 1), 0);
}

/* Another session has such a lock, too; its end would not end the circle. */
static void wait__in_a_circle_closed_by_a_lock_beside_another(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(set(2, LOCK_SHARED, 1, 1), 0);
	assert_int_equal(await(0, 11, LOCK_EXCLUSIVE, 1, 1), -EINPROGRESS);
	assert_int_equal(await(1, 12, LOCK_EXCLUSIVE, 0, 0), -EINPROGRESS);
	expect_told(0, "");
	assert_int_equal(set(1, LOCK_SHARED, 1, 1), 0);
	expect_told(1, "1:12");
	assert_int_equal(await(1, 12, LOCK_EXCLUSIVE, 0, 0), -EDEADLK);
}

/* A waiting process gets a lock that conflicts with no wait, or only with one that can go on. */
static void wait__is_not_asked_again_without_a_circle(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 0), 0);
	assert_int_equal(await(1, 12, LOCK_EXCLUSIVE, 0, 0), -EINPROGRESS);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 1, 1), 0);
	assert_int_equal(await(2, 13, LOCK_EXCLUSIVE, 1, 1), -EINPROGRESS);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 2, 2), 0);
	expect_told(0, "");
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void session__ends_with_its_locks_and_waits(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(whole(0, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(await(1, 11, LOCK_SHARED, 5, 5), -EINPROGRESS);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 5, 5), -EINPROGRESS);
	fx.ctx.session = sessions[1];
	fx_end_session();
	fx.ctx.session = sessions[0];
	fx_end_session();
	fx_settle();
	assert_int_equal(meta_locks_waiting(fx.m), 1);
	expect_told(1, "2:12");
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 0), 0);
	assert_int_equal(await(2, 12, LOCK_EXCLUSIVE, 5, 5), 0);
}

static void session__somebody_wants_what_it_has(void **state)
{
	struct rpc_lock own = record(LOCK_SHARED, 5, 5);
	bool wanted;

	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(await(1, 11, LOCK_SHARED, 5, 5), -EINPROGRESS);
	assert_int_equal(meta_locks_wanted(fx.m, sessions[0], &wanted), 0);
	assert_true(wanted);
	assert_int_equal(meta_locks_wanted(fx.m, sessions[1], &wanted), 0);
	assert_false(wanted);
	/* The session's own waits do not count. */
	own.owner = 2;
	own.wait = 12;
	assert_int_equal(await(1, 11, LOCK_FREE, 5, 5), 0);
	assert_int_equal(lock(0, own), -EINPROGRESS);
	assert_int_equal(meta_locks_wanted(fx.m, sessions[0], &wanted), 0);
	assert_false(wanted);
}

static void restart__forgets_waits_and_no_locks(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
	assert_int_equal(await(1, 11, LOCK_SHARED, 5, 5), -EINPROGRESS);
	fx_reopen();
	assert_int_equal(meta_locks_waiting(fx.m), 0);
	assert_int_equal(await(1, 11, LOCK_SHARED, 5, 5), -EINPROGRESS);
	assert_int_equal(whole(2, LOCK_EXCLUSIVE, 0), -EAGAIN);
	assert_int_equal(set(0, LOCK_FREE, 0, 9), 0);
	expect_told(1, "1:11");
}

static void expect_counts(uint64_t first, uint64_t second, unsigned waits)
{
	assert_int_equal(meta_holder(fx.m, 0, sessions[0]).locks, first);
	assert_int_equal(meta_holder(fx.m, 0, sessions[1]).locks, second);
	assert_int_equal(fx_usage().locks, first + second);
	assert_int_equal(fx_usage().lock_waits, waits);
}

static void counts__are_of_each_session(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(set(0, LOCK_SHARED, 20, 29), 0);
	assert_int_equal(whole(1, LOCK_SHARED, 0), 0);
	expect_counts(2, 1, 0);
	assert_int_equal(set(0, LOCK_FREE, 5, 5), 0);
	expect_counts(3, 1, 0);
	assert_int_equal(await(1, 11, LOCK_SHARED, 0, 0), -EINPROGRESS);
	expect_counts(3, 1, 1);
	fx_reopen();
	expect_counts(3, 1, 0);
	fx.ctx.session = sessions[0];
	fx_end_session();
	fx_settle();
	expect_counts(0, 1, 0);
	assert_int_equal(whole(1, LOCK_FREE, 0), 0);
	expect_counts(0, 0, 0);
}

static void file__goes_before_its_lock(void **state)
{
	assert_int_equal(set(0, LOCK_EXCLUSIVE, 0, 9), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_return_inode(file), 0);
	fx_settle();
	assert_int_equal(fx_getattr(file), -ESTALE);
	assert_int_equal(set(1, LOCK_EXCLUSIVE, 0, 9), -ESTALE);
	fx_check();
	assert_int_equal(set(0, LOCK_FREE, 0, LOCK_END_MAX), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(lock__split_and_merge),
		CASE(lock__conflicts),
		CASE(lock__of_other_owners_of_a_session),
		CASE(getlk__names_the_lock),
		CASE(flock__converts),
		CASE(flock__is_given_up_while_more_is_waited_for),
		CASE(lock__is_refused),
		CASE(read_only__exclusive_lock_keeps_out_those_who_read),
		CASE(read_only__record_lock_is_in_no_writers_way),
		CASE(read_only__shared_lock_is_as_any),
		CASE(read_only__wait_has_no_writer_behind_it),
		CASE(read_only__lock_of_a_session_that_may_write_now),
		CASE(read_only__lock_holds_among_the_owners_of_a_session),
		CASE(read_only__part_that_is_taken_anew),
		CASE(read_only__wait_of_a_session_that_may_write_now),
		CASE(lock__too_many),
		CASE(lock__too_many_of_a_session),
		CASE(unlock__of_the_middle__is_bounded),
		CASE(unlock__of_the_middle__leaves_the_reserve),
		CASE(wait__is_told_in_the_order_of_coming),
		CASE(wait__what_can_be_had_is_granted_at_once),
		CASE(wait__withdrawn),
		CASE(wait__patience_ends),
		CASE(wait__of_a_reader_behind_a_writer),
		CASE(wait__of_one_who_has_some__is_behind_nobody),
		CASE(wait__too_many),
		CASE(wait__of_many_is_told_of_by_turns),
		CASE(wait__in_a_circle),
		CASE(wait__in_a_circle_over_two_files),
		CASE(wait__for_a_lock_that_is_leaving__is_no_circle),
		CASE(wait__in_a_circle_closed_by_a_lock),
		CASE(wait__in_a_circle_closed_by_a_lock_beside_another),
		CASE(wait__is_not_asked_again_without_a_circle),
		CASE(session__ends_with_its_locks_and_waits),
		CASE(session__somebody_wants_what_it_has),
		CASE(restart__forgets_waits_and_no_locks),
		CASE(counts__are_of_each_session),
		CASE(file__goes_before_its_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
