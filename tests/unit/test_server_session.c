/* test_server_session.c - sessions that end while the store fails. */
#include "tests/unit/meta_fixture.h"

#include "server/recall.h"
#include "server/session.h"
#include "server/snapshot.h"

enum { LEASE_MS = 10000 };

static struct server server;
static struct export export;
static struct exports exports;

static int set_up(void **state)
{
	fx_set_up(state);
	export = (struct export){.name = "default", .reuse_allowed = true};
	exports = (struct exports){.v = &export, .n = 1};
	server = (struct server){
		.meta = fx.m, .exports = &exports, .lease_ms = LEASE_MS, .judge_ms = INT64_MAX};
	list_init(&server.sessions);
	list_init(&server.peers);
	list_init(&server.unattached);
	list_init(&server.waiting);
	assert_int_equal(recalls_new(&server), 0);
	assert_int_equal(snapshot_init(&server), 0);
	assert_int_equal(sessions_restore(&server), 0);
	return 0;
}

static int tear_down(void **state)
{
	sessions_delete(&server);
	snapshot_end(&server);
	recalls_delete(&server);
	return fx_tear_down(state);
}

/* ---- the store ------------------------------------------------------------------------------- */

static uint8_t record[512];
static size_t record_len;

/* The session's record, which is what the end of it needs. */
static void put_record(const void *data, size_t len)
{
	struct store_key key = STORE_KEY(fx.ctx.session);

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(store_put(fx.m->store, STORE_SESSION, key, data, len), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void damage(void)
{
	struct store_val val;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(store_get(fx.m->store, STORE_SESSION, STORE_KEY(fx.ctx.session), &val), 0);
	assert_true(val.len <= sizeof(record));
	record_len = val.len;
	memcpy(record, val.data, val.len);
	store_abort(fx.m->store);
	put_record("x", 1);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void end__that_failed_is_tried_again(void **state)
{
	struct session *session = session_find(&server, fx.ctx.session);
	int ms;

	damage();
	session_end(session, "the test says so");
	assert_ptr_equal(session_find(&server, fx.ctx.session), session);
	assert_false(server.reclaim);
	ms = sessions_tick(&server);
	assert_true(ms > 0 && ms <= REST_MIN_MS);
	/* Not all the time. */
	put_record(record, record_len);
	sessions_tick(&server);
	assert_non_null(session_find(&server, fx.ctx.session));
	rest_end(&session->end_rest);
	sessions_tick(&server);
	assert_null(session_find(&server, fx.ctx.session));
	assert_true(server.reclaim);
	fx_settle();
}

static void end__is_not_tried_of_one_that_goes_on(void **state)
{
	assert_int_equal(sessions_tick(&server), -1);
	assert_non_null(session_find(&server, fx.ctx.session));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(end__that_failed_is_tried_again),
		CASE(end__is_not_tried_of_one_that_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
