/* test_page_recall.c - which clients are asked for unused pages, and how long others wait for
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/meta/meta_internal.h"
#include "server/recall/page_recall.h"
#include "server/serve/control.h"
#include "server/session/session.h"

enum { SESSIONS = 4, REQUESTS = 4, LEASE_MS = 10000 };

/* Sessions of one export without channels: ring_wanted shows that one would be rung. */
static struct {
	struct server server;
	struct export exports[2];
	struct meta meta;
	struct volume volumes[2], *listed[2];
	struct space_grantee granted[SESSIONS]; /* of the first export */
	struct client_session *sessions[SESSIONS];
	struct conn conns[SESSIONS];
	struct client_request requests[REQUESTS];
} fx;

static int set_up(void **state)
{
	struct meta_session stored = {.nchannels = 1, .flags = ATTACH_SHARED};

	memset(&fx, 0, sizeof(fx));
	list_init(&fx.server.sessions);
	fx.server.lease_ms = LEASE_MS;
	fx.server.events = &control_events;
	fx.server.meta = &fx.meta;
	fx.listed[0] = &fx.volumes[0];
	fx.listed[1] = &fx.volumes[1];
	fx.meta.volumes = fx.listed;
	fx.volumes[0].space.grantees = fx.granted;
	fx.volumes[0].space.ngrantees = SESSIONS;
	fx.exports[1].index = 1;
	for (unsigned i = 0; i < SESSIONS; i++) {
		stored.id = i + 1;
		fx.granted[i].session = stored.id;
		fx.sessions[i] = client_session_new(&fx.server, &stored, &fx.exports[0]);
		assert_non_null(fx.sessions[i]);
		fx.sessions[i]->heard_ms -= 10;
		fx.conns[i] = (struct conn){.server = &fx.server, .session = fx.sessions[i]};
	}
	return 0;
}

static int tear_down(void **state)
{
	sessions_delete(&fx.server);
	return 0;
}

/* ---- helpers --------------------------------------------------------------------------------- */

/* Makes request k, of session i. */
static struct client_request *request(unsigned k, unsigned i, enum rpc_op op)
{
	struct client_request *req = &fx.requests[k];

	*req = (struct client_request){.conn = &fx.conns[i], .rpc = {.op = op}};
	req->rpc.grant.wait = op == RPC_GRANT;
	return req;
}

/* Runs it again: must it wait? */
static bool waits(unsigned k)
{
	return page_recall_may_come(&fx.requests[k]);
}

/* Request k of session i lacks pages. Returns whether it must wait; then it does. */
static bool lacks(unsigned k, unsigned i, enum rpc_op op)
{
	bool waits = page_recall_may_come(request(k, i, op));

	if (waits)
		page_recall_wait(&fx.requests[k]);
	return waits;
}

static void executed(unsigned i, enum rpc_op op, int status)
{
	struct client_request *req = request(REQUESTS - 1, i, op);

	req->status = status;
	page_recall_executed(req);
}

static void returns(unsigned i, uint64_t answers)
{
	struct client_request *req = request(REQUESTS - 1, i, RPC_RETURN);

	req->rpc.ret = (struct rpc_return){.kind = RETURN_GRANTS, .answers = answers};
	page_recall_executed(req);
}

/* The number that PING tells. */
static uint64_t told(unsigned i)
{
	return fx.sessions[i]->spare.asked;
}

/* Was it rung since the last call? */
static bool is_rung(unsigned i)
{
	bool rung = fx.sessions[i]->ring_wanted;

	fx.sessions[i]->ring_wanted = false;
	return rung;
}

static void all_answer(void)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		if (told(i))
			returns(i, told(i));
}

/* ---- the clients that are asked -------------------------------------------------------------- */

static void ask__is_of_all_others_who_write_the_export(void **state)
{
	fx.sessions[2]->stored.flags |= ATTACH_READ_ONLY;
	fx.sessions[3]->export = &fx.exports[1];
	assert_true(lacks(0, 0, RPC_GRANT));
	assert_false(is_rung(0));
	assert_true(is_rung(1));
	assert_false(is_rung(2));
	assert_false(is_rung(3));
}

/* A client may hold pages for its writes that its other operations lack. */
static void ask__is_of_itself_where_it_lacks_none_for_writes(void **state)
{
	assert_true(lacks(0, 0, RPC_FALLOCATE));
	assert_true(is_rung(0));
	for (unsigned i = 1; i < SESSIONS; i++)
		returns(i, told(i));
	assert_true(waits(0));
	returns(0, told(0));
	assert_false(waits(0));
}

static void ask__is_of_nobody_who_has_said_that_he_has_none(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	all_answer();
	for (unsigned i = 0; i < SESSIONS; i++)
		is_rung(i);
	executed(2, RPC_COMMIT, -ENOSPC);
	assert_false(lacks(1, 1, RPC_GRANT));
	executed(2, RPC_COMMIT, 0);
	assert_true(lacks(2, 3, RPC_GRANT));
	assert_true(is_rung(2));
	assert_false(is_rung(0));
}

/* That request had arrived before the session's answer was run. */
static void ask__is_of_who_was_given_some_by_what_was_queued(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	fx.sessions[1]->requests += 2;
	all_answer();
	assert_false(waits(0));
	page_recall_leave(&fx.requests[0]);
	executed(1, RPC_GRANT, 0);
	assert_true(lacks(1, 0, RPC_GRANT));
	is_rung(1);
	assert_int_not_equal(told(1), 0);
	assert_int_equal(told(2), 0);
}

/* The batch may not be stored; then no client has been asked. */
static void ask__is_by_who_waits_and_not_by_the_question(void **state)
{
	assert_true(page_recall_may_come(request(0, 0, RPC_GRANT)));
	for (unsigned i = 0; i < SESSIONS; i++) {
		assert_false(is_rung(i));
		assert_int_equal(told(i), 0);
		assert_false(fx.sessions[i]->spare.none);
		assert_int_equal(fx.sessions[i]->spare.nlacking, 0);
	}
	assert_false(fx.server.reclaim);
	page_recall_wait(&fx.requests[0]);
	for (unsigned i = 1; i < SESSIONS; i++)
		assert_true(is_rung(i));
	assert_true(fx.sessions[0]->spare.none);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answer__of_each_is_waited_for(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	for (unsigned i = 1; i < SESSIONS; i++) {
		assert_true(waits(0));
		fx.server.reclaim = false;
		returns(i, told(i));
		assert_true(fx.server.reclaim);
		assert_int_equal(told(i), 0);
	}
	assert_false(waits(0));
}

/* Another answer was sent before the client knew of the request, or is not the last of several. */
static void answer__is_what_names_the_ask(void **state)
{
	uint64_t first;

	assert_true(lacks(0, 0, RPC_GRANT));
	first = told(1);
	all_answer();
	page_recall_leave(&fx.requests[0]);
	executed(1, RPC_CREATE, 0);
	assert_true(lacks(0, 0, RPC_GRANT));
	fx.server.reclaim = false;
	returns(1, 0);
	returns(1, first);
	assert_false(fx.server.reclaim);
	assert_true(waits(0));
	returns(1, told(1));
	assert_false(waits(0));
}

static void answer__is_a_grant_that_has_waited_in_vain(void **state)
{
	struct client_request *req = request(1, 1, RPC_GRANT);

	assert_true(lacks(0, 0, RPC_FALLOCATE));
	returns(0, told(0));
	returns(2, told(2));
	returns(3, told(3));
	req->status = -ENOSPC;
	req->rpc.grant.wait = false;
	page_recall_executed(req);
	assert_true(waits(0));
	req->rpc.grant.wait = true;
	page_recall_executed(req);
	assert_false(waits(0));
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Otherwise each would wait for the others. */
static void wait__is_not_for_who_lacks_pages_himself(void **state)
{
	for (unsigned i = 0; i < SESSIONS - 1; i++) {
		assert_true(lacks(i, i, RPC_GRANT));
		/* Its other requests that are executed meanwhile bring it no pages. */
		for (unsigned k = 0; k <= i; k++)
			fx.sessions[k]->spare.none = false;
	}
	returns(SESSIONS - 1, told(SESSIONS - 1));
	for (unsigned i = 0; i < SESSIONS - 1; i++) {
		assert_int_equal(told(i), 0);
		assert_false(waits(i));
	}
}

/* Both are in one batch: otherwise each would have been asked by the other. */
static void wait__of_those_who_come_to_lack_pages_together__is_over_at_once(void **state)
{
	assert_true(lacks(0, 2, RPC_GRANT));
	all_answer();
	executed(0, RPC_COMMIT, 0);
	executed(1, RPC_COMMIT, 0);
	assert_true(page_recall_may_come(request(0, 0, RPC_GRANT)));
	assert_true(page_recall_may_come(request(1, 1, RPC_GRANT)));
	fx.server.reclaim = false;
	page_recall_wait(&fx.requests[0]);
	assert_false(fx.server.reclaim);
	page_recall_wait(&fx.requests[1]);
	assert_true(fx.server.reclaim);
	for (unsigned i = 0; i < SESSIONS; i++)
		assert_int_equal(told(i), 0);
	assert_false(waits(0));
	assert_false(waits(1));
}

/* Its request is gone, since its channel was lost. */
static void wait__is_for_who_lacks_none_any_more(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	assert_true(lacks(1, 1, RPC_GRANT));
	all_answer();
	assert_false(lacks(2, 2, RPC_FALLOCATE));
	page_recall_leave(&fx.requests[1]);
	executed(1, RPC_GETATTR, 0);
	assert_true(lacks(2, 2, RPC_FALLOCATE));
	assert_int_not_equal(told(1), 0);
}

/* Requests that come later and ask again do not hold up this one's answer. */
static void wait__is_for_those_who_were_asked_until_then(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	all_answer();
	executed(1, RPC_GRANT, 0);
	assert_true(lacks(1, 2, RPC_GRANT));
	assert_false(waits(0));
	assert_true(waits(1));
}

static void wait__ends_for_who_is_late(void **state)
{
	int64_t began = now_ms(), next;

	assert_true(lacks(0, 0, RPC_GRANT));
	fx.server.reclaim = false;
	next = page_recall_tick(&fx.server, began);
	assert_in_range(next, began + GIVE_PAGES_MS, now_ms() + GIVE_PAGES_MS);
	assert_true(waits(0));
	assert_false(fx.server.reclaim);
	assert_int_equal(page_recall_tick(&fx.server, next), -1);
	assert_true(fx.server.reclaim);
	assert_false(waits(0));
}

/* A waiting client may have a lease that others want within that time. */
static void wait__is_as_short_as_leases_ask_for(void **state)
{
	fx.server.lease_ms = 1000;
	assert_true(lacks(0, 0, RPC_GRANT));
	assert_int_equal(page_recall_tick(&fx.server, now_ms() + 250), -1);
	assert_true(fx.server.reclaim);
	assert_false(waits(0));
}

/* The client was stopped: nobody waits for it again, and it is asked anew when it goes on. */
static void wait__is_not_again_for_who_has_not_been_heard(void **state)
{
	uint64_t first;

	assert_true(lacks(0, 0, RPC_GRANT));
	first = told(1);
	returns(2, told(2));
	returns(3, told(3));
	page_recall_tick(&fx.server, now_ms() + GIVE_PAGES_MS);
	is_rung(1);
	assert_false(lacks(1, 2, RPC_GRANT));
	assert_false(is_rung(1));
	assert_int_equal(told(1), first);
	fx.sessions[1]->heard_ms = fx.sessions[1]->spare.since_ms + GIVE_PAGES_MS;
	assert_true(lacks(2, 3, RPC_GRANT));
	assert_true(is_rung(1));
	assert_int_not_equal(told(1), first);
	assert_false(waits(0));
	assert_true(waits(2));
	returns(1, told(1));
	assert_false(waits(2));
}

static void wait__is_not_for_who_is_ended(void **state)
{
	assert_true(lacks(0, 0, RPC_GRANT));
	for (unsigned i = 1; i < SESSIONS; i++)
		fx.sessions[i]->ending = true;
	assert_false(waits(0));
}

/* ---- pages that are kept --------------------------------------------------------------------- */

/* Time passes. */
static void pass(int64_t ms)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		fx.sessions[i]->spare.kept_ms -= ms;
}

/* The session is connected, as far as these tests go. */
static void comes(unsigned i)
{
	list_init(&fx.conns[i].link);
	list_add_tail(&fx.sessions[i]->conns, &fx.conns[i].link);
}

static void goes(unsigned i)
{
	list_del(&fx.conns[i].link);
}

static void has_pages(unsigned i, uint64_t npages)
{
	fx.granted[i].npages = npages;
}

static void gives(unsigned i, uint64_t npages)
{
	fx.granted[i].npages -= npages;
	fx.granted[i].left += npages;
}

/* Session 0 lacks pages while all say that they have none, and is refused. */
static void is_refused(void)
{
	struct client_request *req = request(REQUESTS - 1, 0, RPC_FALLOCATE);

	req->status = -ENOSPC;
	req->lacks_pages = true;
	page_recall_executed(req);
}

static void all_say_none(void)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		fx.sessions[i]->spare.none = true;
}

/* Whether session 0 would wait now, since one is about to lose its pages. */
static bool finds_a_keeper(void)
{
	return page_recall_may_come(request(0, 0, RPC_FALLOCATE));
}

static void kept__after_the_time__are_waited_for(void **state)
{
	comes(1);
	has_pages(1, 7);
	all_say_none();
	is_refused();
	assert_false(finds_a_keeper());
	pass(LEASE_MS - 1000);
	is_refused(); /* the time goes on */
	assert_false(finds_a_keeper());
	pass(1000);
	assert_true(finds_a_keeper());
	/* It is gone by itself, or ended already. */
	goes(1);
	assert_false(finds_a_keeper());
}

/* As many as it had have gone, and others came. */
static void kept__pages_that_go_in_time(void **state)
{
	comes(1);
	has_pages(1, 7);
	all_say_none();
	is_refused();
	gives(1, 4);
	has_pages(1, 3 + 20);
	gives(1, 3);
	pass(LEASE_MS);
	assert_false(finds_a_keeper());
	/* The time for those that came begins when others lack pages again. */
	is_refused();
	assert_false(finds_a_keeper());
	gives(1, 19);
	pass(LEASE_MS);
	assert_true(finds_a_keeper());
	gives(1, 1);
	assert_false(finds_a_keeper());
	goes(1);
}

static void kept__none_lacks_them(void **state)
{
	comes(1);
	has_pages(1, 7);
	all_say_none();
	pass(LEASE_MS);
	assert_false(finds_a_keeper());
	is_refused();
	assert_false(finds_a_keeper());
	goes(1);
}

/* While writes stand still, or this process was stopped, nobody could give back. */
static void kept__time_that_does_not_count(void **state)
{
	int64_t now = now_ms();

	comes(1);
	has_pages(1, 7);
	all_say_none();
	is_refused();
	fx.server.pages_ticked_ms = now;
	pass(LEASE_MS);
	fx.exports[0].snapshot.freezing = true;
	page_recall_tick(&fx.server, now);
	fx.exports[0].snapshot.freezing = false;
	assert_false(finds_a_keeper());
	pass(LEASE_MS);
	page_recall_tick(&fx.server, now + LEASE_MS);
	assert_false(finds_a_keeper());
	goes(1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(ask__is_of_all_others_who_write_the_export),
		CASE(ask__is_of_itself_where_it_lacks_none_for_writes),
		CASE(ask__is_of_nobody_who_has_said_that_he_has_none),
		CASE(ask__is_of_who_was_given_some_by_what_was_queued),
		CASE(ask__is_by_who_waits_and_not_by_the_question),
		CASE(answer__of_each_is_waited_for),
		CASE(answer__is_what_names_the_ask),
		CASE(answer__is_a_grant_that_has_waited_in_vain),
		CASE(wait__is_not_for_who_lacks_pages_himself),
		CASE(wait__of_those_who_come_to_lack_pages_together__is_over_at_once),
		CASE(wait__is_for_who_lacks_none_any_more),
		CASE(wait__is_for_those_who_were_asked_until_then),
		CASE(wait__ends_for_who_is_late),
		CASE(wait__is_as_short_as_leases_ask_for),
		CASE(wait__is_not_again_for_who_has_not_been_heard),
		CASE(wait__is_not_for_who_is_ended),
		CASE(kept__after_the_time__are_waited_for),
		CASE(kept__pages_that_go_in_time),
		CASE(kept__none_lacks_them),
		CASE(kept__time_that_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
