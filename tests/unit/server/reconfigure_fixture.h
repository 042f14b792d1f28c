/* reconfigure_fixture.h - a store whose configuration changes while it is open: the second export
 * has the last two regions. */
#ifndef RMEMFS_TESTS_RECONFIGURE_FIXTURE_H
#define RMEMFS_TESTS_RECONFIGURE_FIXTURE_H

#include "tests/unit/server/meta_fixture.h"

#include "server/store/store.h"

static struct store_growth none;

/* The configuration has both exports; the store has the first one. */
static inline void reconfigure_set_up(void **state)
{
	fx_set_up(state);
	fx.exports[1] = fx.exports[0];
	fx.exports[1].name = "more";
	fx.exports[1].bases = &fx.bases[2];
	fx.config.nexports = 2;
}

static inline int reconfigure(struct store_growth *growth)
{
	return meta_reconfigure(fx.m, &fx.config, growth, fx.why, sizeof(fx.why));
}

static inline bool knows(const char *name)
{
	bool known;

	assert_int_equal(meta_knows(fx.m, name, &known), 0);
	return known;
}

/* Requests are of a new session of this export from now on. Returns its id. */
static inline uint64_t use(unsigned export_index)
{
	struct meta_session s = {.export_index = export_index, .instance = 9, .nchannels = 1};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx.ctx.export_index = export_index;
	fx.ctx.session = s.id;
	return s.id;
}

#endif
