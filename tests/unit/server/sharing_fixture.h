/* sharing_fixture.h - sessions at a shared export of the metadata core. */
#ifndef RMEMFS_TESTS_SHARING_FIXTURE_H
#define RMEMFS_TESTS_SHARING_FIXTURE_H

#include "tests/unit/server/meta_fixture.h"

enum { SESSIONS = 3 };

static uint64_t sessions[SESSIONS];

static inline uint64_t new_session(uint32_t flags)
{
	struct meta_session s = {
		.flags = flags, .instance = 7, .nchannels = 1, .client = "test:/mnt"};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return s.id;
}

/* These sessions replace the fixture's own; requests are the first one's. */
static inline void set_up_sessions(void **state)
{
	fx_set_up(state);
	fx_end_session();
	fx_settle();
	for (unsigned i = 0; i < SESSIONS; i++)
		sessions[i] = new_session(ATTACH_SHARED);
	fx.ctx.shared = true;
	fx.ctx.session = sessions[0];
}

#endif
