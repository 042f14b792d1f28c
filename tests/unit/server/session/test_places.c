/* test_places.c - which channels may be open without a key, and which ones wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/transport_ops.h"
#include "server/serve/control.h"
#include "server/session/places.h"
#include "server/session/session.h"

enum { CHANNELS = PLACES_QUEUE + PLACES + 100 };

static struct server server;
static struct port port;
static struct channel channels[CHANNELS];
static unsigned nchannels;

/* ---- a transport that does nothing ----------------------------------------------------------- */

static int accept_one(struct channel *ch)
{
	return 0;
}

/* A rejected channel is gone: its state tells the tests. */
static void reject_one(struct channel *ch)
{
	ch->state = CH_CLOSED;
}

static void disconnect_one(struct channel *ch)
{
}

static int fence_one(struct channel *ch)
{
	return 0;
}

static void delete_one(struct channel *ch)
{
	ch->state = CH_CLOSED;
}

static void recv_done(struct channel *ch, const void *data)
{
}

static struct transport_ops ops = {.accept = accept_one,
	.reject = reject_one,
	.fence = fence_one,
	.disconnect = disconnect_one,
	.delete = delete_one,
	.recv_done = recv_done};
static struct transport transport = {.ops = &ops};

static int set_up(void **state)
{
	struct list *const lists[] = {&server.sessions, &server.unattached, &server.visitors,
		&server.conns, &server.waiting, &server.ready};

	memset(channels, 0, sizeof(channels));
	nchannels = 0;
	server = (struct server){.events = &control_events, .judge_ms = INT64_MAX};
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		list_init(lists[i]);
	ops.kind = transport.address.kind = TRANSPORT_TCP;
	port = (struct port){.server = &server, .transport = &transport};
	return 0;
}

static void end_fenced(void)
{
	struct event event = {.type = EV_FENCED};

	list_for_each_safe (pos, &server.conns) {
		struct conn *c = list_entry(pos, struct conn, all);

		if (c->state != CONN_FENCING)
			continue;
		c->channel->state = CH_FENCED;
		conn_event(c, &event);
	}
}

static int tear_down(void **state)
{
	places_close(&server);
	end_fenced();
	conns_delete(&server);
	return server.nconns || server.nunattached || server.nvisitors;
}

static struct channel *arrive(const char *from)
{
	struct channel *ch = &channels[nchannels++];
	struct sockaddr_in6 *in6 = (void *)&ch->peer_address;

	*ch = (struct channel){.transport = &transport, .server = true, .state = CH_INCOMING};
	ch->peer_address.ss_family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET6, from, &in6->sin6_addr), 1);
	places_incoming(&port, ch);
	return ch;
}

static struct channel *arrive_many(const char *from, unsigned n)
{
	struct channel *first = &channels[nchannels];

	while (n--)
		arrive(from);
	return first;
}

static struct conn *conn_of(const struct channel *ch)
{
	return channel_user(ch);
}

/* The peer has sent a request that is not answered. */
static struct client_request *asks(const struct channel *ch, unsigned op)
{
	struct client_request *req = &conn_of(ch)->controls[0];

	req->msg = "";
	req->rpc = (struct rpc_request){.op = (uint16_t)op};
	return req;
}

static bool is_in(const struct channel *ch)
{
	return ch->state == CH_CONNECTING;
}

static bool waits(const struct channel *ch)
{
	return ch->state == CH_INCOMING;
}

/* Each peer's step has been due for so long. */
static void pass(int64_t ms)
{
	list_for_each (pos, &server.unattached)
		list_entry(pos, struct conn, link)->step_ms -= ms;
	server.visitors_ms = 0;
}

static int64_t tick(void)
{
	return places_tick(&server, now_ms());
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void incoming__so_many_of_an_address(void **state)
{
	struct channel *first = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);

	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++)
		assert_true(is_in(&first[i]));
	assert_true(waits(arrive("::ffff:10.0.0.1")));
	assert_true(is_in(arrive("::ffff:10.0.0.2")));
	arrive_many("2001:db8:0:1::1", PLACES_OF_ADDRESS);
	assert_true(waits(arrive("2001:db8:0:1:ffff::2")));
	assert_true(is_in(arrive("2001:db8:0:2::1")));
}

static void incoming__so_many_in_all(void **state)
{
	char from[32];

	for (unsigned i = 0; i < PLACES; i++) {
		snprintf(from, sizeof(from), "2001:db8:%x::1", i);
		assert_true(is_in(arrive(from)));
	}
	assert_true(waits(arrive("2001:db8:ffff::1")));
	assert_int_equal(server.nunattached, PLACES);
}

/* Over shm the user counts. */
static void incoming__shm_needs_no_place(void **state)
{
	arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	ops.kind = transport.address.kind = TRANSPORT_SHM;
	assert_true(is_in(arrive("::")));
	ops.kind = transport.address.kind = TRANSPORT_TCP;
	assert_true(waits(arrive("::ffff:10.0.0.1")));
}

static void incoming__those_above_the_queue_are_refused_the_oldest_first(void **state)
{
	struct rlimit before, few;
	struct channel *first;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){8 * PLACES_QUEUE_SHARE, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	first = arrive_many("::ffff:10.0.0.1", 9);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(first[0].state, CH_CLOSED);
	for (unsigned i = 1; i < 9; i++)
		assert_true(waits(&first[i]));
	arrive_many("::ffff:10.0.0.1", PLACES_QUEUE);
	assert_int_equal(server.nvisitors, min_u64(PLACES_QUEUE, before.rlim_cur / 8));
}

/* ---- one goes, one comes --------------------------------------------------------------------- */

static void tick__place_of_one_that_goes__is_the_newests(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	struct channel *old = arrive("::ffff:10.0.0.1"), *new = arrive("::ffff:10.0.0.1");

	assert_true(tick() > 0);
	conn_fence(conn_of(&in[3]));
	tick();
	assert_true(waits(old) && is_in(new));
	conn_fence(conn_of(&in[4]));
	assert_int_equal(tick(), -1);
	assert_true(is_in(old));
}

static void tick__proof_leaves_a_place(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	struct channel *next = arrive("::ffff:10.0.0.1");

	tick();
	assert_true(waits(next));
	conn_of(in)->has_proof = true;
	server.visitors_ms = 0;
	tick();
	assert_true(is_in(next) && is_in(in));
}

static void tick__place_of_one_that_is_slow(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	struct channel *next = arrive("::ffff:10.0.0.1");
	int64_t now = now_ms();

	assert_true(tick() <= now + PLACE_MS + 1000);
	pass(PLACE_MS - 100);
	tick();
	assert_true(waits(next));
	pass(100);
	tick();
	assert_true(is_in(next));
	assert_int_equal(in[0].state, CH_FENCING);
	for (unsigned i = 1; i < PLACES_OF_ADDRESS; i++)
		assert_true(is_in(&in[i]));
}

/* Nobody is closed for being slow while nobody waits. */
/* The server's step ends: the peer's begins, and the next look is when that is over. */
static void tick__place_of_one_that_was_refused_and_stays(void **state)
{
	struct channel *first = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS), *late;
	static const unsigned steps[] = {RPC_AUTH, RPC_ATTACH};

	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++)
		asks(&first[i], steps[i % 2]);
	pass(PLACE_MS);
	late = arrive("::ffff:10.0.0.1");
	assert_true(tick() > now_ms() + PLACE_MS);
	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++) {
		client_request_drop(&conn_of(&first[i])->controls[0]);
		if (i % 4 < 2)
			conn_disconnect(conn_of(&first[i]));
	}
	assert_true(tick() <= now_ms() + PLACE_MS);
	assert_true(waits(late));
	pass(PLACE_MS);
	tick();
	assert_true(is_in(late));
}

static void incoming__finds_one_that_is_slow(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);

	pass(2 * PLACE_MS);
	assert_int_equal(tick(), -1);
	assert_true(is_in(in));
	assert_true(is_in(arrive("::ffff:10.0.0.1")));
	assert_int_equal(in[0].state, CH_FENCING);
}

/* The server's own step, and an ATTACH that waits, take as long as they take. */
static void incoming__waits_for_the_servers_steps(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	struct client_request *attach = asks(&in[1], RPC_ATTACH);

	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++)
		conn_of(&in[i])->auth_waits = i != 1;
	pass(2 * PLACE_MS);
	assert_true(waits(arrive("::ffff:10.0.0.1")));
	attach->rpc.op = RPC_STATUS; /* no step of a handshake */
	assert_true(is_in(arrive("::ffff:10.0.0.1")));
	assert_int_equal(in[1].state, CH_FENCING);
}

/* If all places are taken, the network that has most gives one. */
static void incoming__takes_from_those_that_have_most(void **state)
{
	struct channel *lone = arrive("2001:db8:1::1"), *few, *many, *next;

	few = arrive_many("2001:db8:2::1", PLACES_OF_ADDRESS - 1);
	arrive_many("2001:db8:3::1", PLACES_OF_ADDRESS - 1);
	arrive_many("2001:db8:4::1", PLACES_OF_ADDRESS - 1);
	many = arrive_many("2001:db8:5::1", PLACES_OF_ADDRESS);
	arrive("2001:db8:6::1");
	arrive("2001:db8:7::1");
	assert_int_equal(server.nunattached, PLACES);
	pass(2 * PLACE_MS);
	next = arrive("2001:db8:8::1");
	assert_true(is_in(next) && is_in(lone) && is_in(few));
	assert_int_equal(many[0].state, CH_FENCING);
	assert_true(is_in(&many[1]));
}

static void take_step(const struct channel *first, unsigned n, bool is_servers)
{
	for (unsigned i = 0; i < n; i++)
		conn_of(&first[i])->auth_waits = is_servers;
}

/* All of these take the server's time, so none of them is slow. */
static struct channel *crowd(const char *from)
{
	struct channel *first = arrive_many(from, PLACES_OF_ADDRESS);

	take_step(first, PLACES_OF_ADDRESS, true);
	return first;
}

/* Networks 1 to 4 have all places. Returns the first one's channels. */
static struct channel *full_house(void)
{
	struct channel *first = crowd("2001:db8:1::1");

	crowd("2001:db8:2::1");
	crowd("2001:db8:3::1");
	crowd("2001:db8:4::1");
	return first;
}

/* The newest can get none of the slow ones' places. Another one can, which has waited longer. */
static void tick__one_that_gets_none_keeps_none_out(void **state)
{
	struct channel *slow = full_house(), *client, *one_more;

	client = arrive("2001:db8:5::1");
	one_more = arrive("2001:db8:4::2");
	auth_budget_give_back(&server.auth_budget, &one_more->peer_address, now_ms());
	tick();
	assert_true(waits(client) && waits(one_more));
	take_step(slow, PLACES_OF_ADDRESS, false);
	pass(PLACE_MS);
	tick();
	assert_true(is_in(client) && waits(one_more));
	assert_int_equal(slow[0].state, CH_FENCING);
}

/* A network without any place comes before those that have most. */
static void tick__free_place_is_for_those_without(void **state)
{
	struct channel *in = full_house(), *client, *one_more;

	client = arrive("2001:db8:5::1");
	one_more = arrive("2001:db8:1::2");
	conn_fence(conn_of(&in[0]));
	tick();
	assert_true(is_in(client) && waits(one_more));
}

/* So does one that a client was let in from. */
static void tick__free_place_is_for_those_that_are_known(void **state)
{
	struct channel *in = crowd("2001:db8:1::1"), *client, *one_more;

	crowd("2001:db8:2::1");
	crowd("2001:db8:3::1");
	arrive("2001:db8:5::1");
	take_step(arrive_many("2001:db8:4::1", PLACES_OF_ADDRESS - 1), PLACES_OF_ADDRESS - 1, true);
	client = arrive("2001:db8:5::1");
	auth_budget_give_back(&server.auth_budget, &client->peer_address, now_ms());
	one_more = arrive("2001:db8:1::2");
	conn_fence(conn_of(&in[0]));
	tick();
	assert_true(is_in(client) && waits(one_more));
}

/* A crowd that fills the queue loses its own. */
static void incoming__queue_of_a_crowd_has_room_for_others(void **state)
{
	struct channel *client, *first;

	full_house();
	client = arrive("2001:db8:5::1");
	first = arrive_many("2001:db8:1::1", PLACES_QUEUE + 1);
	assert_true(waits(client));
	assert_int_equal(first[0].state, CH_CLOSED);
}

/* A flight that lies here unread is no longer the peer's step. */
static void incoming__waits_for_a_flight_that_has_come(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);

	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++)
		asks(&in[i], RPC_AUTH);
	pass(2 * PLACE_MS);
	assert_true(waits(arrive("::ffff:10.0.0.1")));
}

/* ---- time ------------------------------------------------------------------------------------ */

static void tick__none_waits_for_ever(void **state)
{
	struct channel *in = arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	struct channel *next = arrive("::ffff:10.0.0.1");
	int64_t now = now_ms();

	for (unsigned i = 0; i < PLACES_OF_ADDRESS; i++)
		conn_of(&in[i])->auth_waits = true;
	places_tick(&server, now);
	assert_true(waits(next));
	places_tick(&server, now + UNATTACHED_MS);
	assert_int_equal(next->state, CH_CLOSED);
}

/* The time counts from the hello on, whatever the peer asks meanwhile. An ATTACH that waits has a
 * time of its own. */
static void judge__time_to_attach(void **state)
{
	struct channel *ch = arrive_many("::ffff:10.0.0.1", 4);
	int64_t now = now_ms();

	asks(&ch[1], RPC_STATUS);
	conn_of(&ch[2])->auth_waits = true;
	asks(&ch[3], RPC_ATTACH);
	sessions_judge(&server, now + UNATTACHED_MS - 1000);
	for (unsigned i = 0; i < 4; i++)
		assert_true(is_in(&ch[i]));
	sessions_judge(&server, now + UNATTACHED_MS + 1000);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ch[i].state, CH_FENCING);
	assert_true(is_in(&ch[3]));
}

static void close__refuses_all_that_wait(void **state)
{
	struct channel *next;

	arrive_many("::ffff:10.0.0.1", PLACES_OF_ADDRESS);
	next = arrive("::ffff:10.0.0.1");
	places_close(&server);
	assert_int_equal(next->state, CH_CLOSED);
	assert_int_equal(tick(), -1);
	server.stopping = true;
	assert_int_equal(arrive("::ffff:10.0.0.2")->state, CH_CLOSED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(incoming__so_many_of_an_address),
		CASE(incoming__so_many_in_all),
		CASE(incoming__shm_needs_no_place),
		CASE(incoming__those_above_the_queue_are_refused_the_oldest_first),
		CASE(tick__place_of_one_that_goes__is_the_newests),
		CASE(tick__proof_leaves_a_place),
		CASE(tick__place_of_one_that_is_slow),
		CASE(tick__place_of_one_that_was_refused_and_stays),
		CASE(incoming__finds_one_that_is_slow),
		CASE(incoming__waits_for_the_servers_steps),
		CASE(incoming__takes_from_those_that_have_most),
		CASE(tick__one_that_gets_none_keeps_none_out),
		CASE(tick__free_place_is_for_those_without),
		CASE(tick__free_place_is_for_those_that_are_known),
		CASE(incoming__queue_of_a_crowd_has_room_for_others),
		CASE(incoming__waits_for_a_flight_that_has_come),
		CASE(tick__none_waits_for_ever),
		CASE(judge__time_to_attach),
		CASE(close__refuses_all_that_wait),
	};

	log_init("test_places", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
