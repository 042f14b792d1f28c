/* lease_fixture.h - sessions at a shared export of the metadata core, and their requests for
 * leases. */
#ifndef RMEMFS_TESTS_LEASE_FIXTURE_H
#define RMEMFS_TESTS_LEASE_FIXTURE_H

#include "server/record/lease.h"
#include "tests/unit/server/sharing_fixture.h"

/* ---- sessions at a shared export ------------------------------------------------------------- */

enum { LIMIT = 2000 };

static inline int set_up(void **state)
{
	set_up_sessions(state);
	fx.ctx.lease_limit = LIMIT;
	return 0;
}

static inline void as(unsigned i)
{
	fx.ctx.session = sessions[i];
}

/* ---- requests -------------------------------------------------------------------------------- */

enum { WAITS = -EAGAIN };

static inline int lease(uint64_t ino, uint8_t type, uint8_t flags)
{
	int status = FX_RUN(.op = RPC_LEASE, .lease = {ino, type, flags});

	if (status == WAITS)
		assert_int_equal(fx.result, OUTCOME_WAIT);
	return status;
}

static inline void expect_lease(uint8_t type)
{
	assert_int_equal(fx.rep.entry.lease.type, type);
	assert_true(fx.rep.entry.lease.number);
}

static inline uint64_t take(unsigned i, uint64_t ino, uint8_t type, uint8_t flags)
{
	as(i);
	assert_int_equal(lease(ino, type, flags), 0);
	expect_lease(type);
	return fx.rep.entry.lease.number;
}

static inline void give_back_pinned(
	unsigned i, uint64_t ino, uint64_t number, uint8_t keep, enum return_pin pin)
{
	const struct rpc_returned returned = {ino, number, keep, pin};
	struct wire_out w;

	as(i);
	wire_out_init(&w, fx.out, sizeof(fx.out));
	rpc_put_returned(&w, &returned);
	assert_int_equal(FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_LEASES,
							  .tail = {fx.out, RPC_RETURNED_BYTES}}),
		0);
}

static inline void give_back(unsigned i, uint64_t ino, uint64_t number, uint8_t keep, bool unpin)
{
	give_back_pinned(i, ino, number, keep, unpin ? RETURN_UNPIN : RETURN_PIN_AS_IT_IS);
}

/* The type that earlier requests want of every inode. */
static uint8_t wanted_by_others;

static inline uint8_t what_others_want(const void *asker, uint64_t ino)
{
	return wanted_by_others;
}

static inline void others_want(uint8_t type)
{
	wanted_by_others = lease_bit(type);
	fx.ctx.wanted = what_others_want;
}

/* Returns the stored lease. */
static inline struct lease_record record(unsigned i, uint64_t ino)
{
	struct lease_record r;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(lease_get(fx_volume(), inode_key(fx_volume(), ino), sessions[i], &r), 0);
	store_abort(fx.m->store);
	return r;
}

static inline void expect_waits_for(uint64_t ino, uint8_t type)
{
	assert_int_equal(fx.result, OUTCOME_WAIT);
	assert_int_equal(meta_wait(fx.m).ino, ino);
	assert_int_equal(meta_wait(fx.m).type, type);
}

static inline void expect_gone(uint64_t ino, uint64_t inodes)
{
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_usage().inodes, inodes);
	assert_int_equal(fx_volume()->now.leases.records, 0);
}

/* Session 0 makes a file that no session has open or leased. */
static inline uint64_t make_file_in(uint64_t dir, const char *name)
{
	uint64_t ino;

	as(0);
	ino = fx_file(dir, name);
	give_back(0, ino, fx.rep.entry.lease.number, LEASE_NONE, true);
	assert_false(record(0, ino).number);
	return ino;
}

static inline uint64_t make_file(const char *name)
{
	return make_file_in(ROOT_INO, name);
}

#endif
