/* driver_auth.c - who gets in: keys, their handshake by messages, tokens of sessions. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/auth/handshake.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "server/admin/status.h"
#include "server/session/auth_budget.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

static struct test_server server;
static struct rpc_client client, other;
static struct handshake_context *context;
static char text[RPC_TEXT_MAX + 1];

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct rpc_request attach_request(const struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};

	req.attach = (struct rpc_attach){
		.instance = 1, .nchannels = 1, .export_name = str("default"), .client = str("raw")};
	memcpy(req.attach.owner, c->owner, OWNER_BYTES);
	return req;
}

static void send_flight(struct rpc_client *c, uint8_t step, const void *flight, size_t len)
{
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};

	req.auth = (struct rpc_auth){step, {flight, (uint32_t)len}};
	client_send(c, &req);
}

static struct handshake *new_handshake(const struct auth_key *key)
{
	struct handshake *h;

	assert_int_equal(handshake_client_new(context, key, &h), 0);
	return h;
}

/* The first flight of a handshake with that key. */
static struct handshake *begin_handshake(const struct auth_key *key, uint8_t *flight, size_t *len)
{
	struct handshake *h = new_handshake(key);

	assert_int_equal(
		handshake_step(h, NULL, 0, flight, HANDSHAKE_FLIGHT_MAX, len), HANDSHAKE_MORE);
	return h;
}

/* The one answer to all that is refused, and the channel's end. */
static void expect_refusal(struct rpc_client *c)
{
	struct rpc_reply rep;

	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_AUTH);
	assert_int_equal(rep.status, -EACCES);
	assert_int_equal(rep.text.len, strlen("not accepted"));
	assert_memory_equal(rep.text.s, "not accepted", rep.text.len);
	client_wait_closed(c);
}

/* One was refused, and nobody else has noticed. */
static void expect_others_work(void)
{
	client_connect(&other);
	assert_int_equal(client_attach(&other, "default", 0, 0, text), 0);
	client_bye(&other);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void attach__with_the_key(void **state)
{
	client_connect(&client);
	assert_int_equal(client_prove(&client, &server.key), 0);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	server_logs(&server, server.key.id);
	server_logs(&server, "session 1 of ");
}

static void attach__without_a_key__is_refused_with_the_remedies(void **state)
{
	struct rpc_request req = attach_request(&client);
	struct rpc_reply rep;

	client_connect(&client);
	client_send(&client, &req);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, -EACCES);
	assert_non_null(memmem(rep.text.s, rep.text.len, "key=FILE", 8));
	assert_non_null(memmem(rep.text.s, rep.text.len, "rmemfsctl keygen", 16));
	server_logs(&server, "it has no key, and export 'default' lets nobody in");
	/* The channel is there, and may still prove a key. */
	assert_int_equal(client_prove(&client, &server.key), 0);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
}

static void prove__key_of_other_bytes__is_refused(void **state)
{
	struct auth_key wrong = server.key;

	wrong.secret[31] ^= 1;
	client_connect(&client);
	assert_int_equal(client_prove(&client, &wrong), -EACCES);
	client_wait_closed(&client);
	server_logs(&server, "has other bytes than ours");
	expect_others_work();
}

static void prove__unknown_id__is_refused_alike(void **state)
{
	struct auth_key unknown = server.key;
	struct handshake *h;
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	unknown.id[0] = 'z';
	client_connect(&client);
	h = begin_handshake(&unknown, flight, &len);
	send_flight(&client, 1, flight, len);
	expect_refusal(&client);
	handshake_delete(h);
	server_logs(&server, "no key z");
	expect_others_work();
}

/* ---- the order of messages ------------------------------------------------------------------- */

/* Waits for the server's flight, and takes it. The flight in answer is the last plain message. */
static struct handshake *reach_last_flight(uint8_t *flight, size_t *len)
{
	struct rpc_reply rep;
	struct handshake *h;

	client_connect(&client);
	h = begin_handshake(&server.key, flight, len);
	send_flight(&client, 1, flight, *len);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
	assert_int_equal(handshake_step(h, rep.auth.tail.data, rep.auth.tail.len, flight,
				 HANDSHAKE_FLIGHT_MAX, len),
		HANDSHAKE_DONE);
	return h;
}

static void expect_breach(const char *words)
{
	client_wait_closed(&client);
	server_logs(&server, words);
	expect_others_work();
}

/* It would be the first message that nothing protects. */
static void attach__amid_the_handshake__closes_the_channel(void **state)
{
	struct rpc_request req = attach_request(&client);
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct rpc_reply rep;
	struct handshake *h;
	size_t len;

	client_connect(&client);
	h = begin_handshake(&server.key, flight, &len);
	send_flight(&client, 1, flight, len);
	client_receive(&client, &rep);
	client_send(&client, &req);
	expect_breach("ATTACH before the end of its handshake");
	handshake_delete(h);
}

/* An ATTACH that nobody has protected, behind the proof: whoever sends it may have come between. */
static void attach__plain_behind_the_proof__closes_the_channel(void **state)
{
	struct rpc_request req = attach_request(&client);
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct handshake *h;
	size_t len;

	h = reach_last_flight(flight, &len);
	send_flight(&client, 2, flight, len);
	client_send(&client, &req);
	client_wait_closed(&client);
	handshake_delete(h);
	expect_others_work();
}

/* Its end is plain, and the server expects protected bytes. */
static void auth__client_goes_behind_its_proof__accuses_nobody(void **state)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct channel_keys keys;
	struct handshake *h;
	struct rpc_reply rep;
	char log[LOG_BYTES];
	size_t len;

	h = reach_last_flight(flight, &len);
	send_flight(&client, 2, flight, len);
	assert_int_equal(handshake_keys(h, channel_client_hello(client.channel),
				 channel_server_hello(client.channel), server.kind, &keys),
		0);
	assert_int_equal(channel_protect(client.channel, PROTECT_IN, &keys), 0);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
	channel_disconnect(client.channel);
	client_wait_closed(&client);
	handshake_delete(h);
	expect_others_work();
	server_read_log(&server, log, sizeof(log));
	assert_null(strstr(log, "warning"));
}

static void auth__step_2_first__closes_the_channel(void **state)
{
	client_connect(&client);
	send_flight(&client, 2, "x", 1);
	expect_breach("a flight of the handshake that is not due");
}

static void auth__step_1_twice__closes_the_channel(void **state)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct handshake *h;
	struct rpc_reply rep;
	size_t len;

	client_connect(&client);
	h = begin_handshake(&server.key, flight, &len);
	send_flight(&client, 1, flight, len);
	client_receive(&client, &rep);
	send_flight(&client, 1, flight, len);
	expect_breach("a flight of the handshake that is not due");
	handshake_delete(h);
}

static void auth__a_second_key__closes_the_channel(void **state)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct handshake *h;
	size_t len;

	client_connect(&client);
	assert_int_equal(client_prove(&client, &server.key), 0);
	h = begin_handshake(&server.key, flight, &len);
	send_flight(&client, 1, flight, len);
	expect_breach("a second key");
	handshake_delete(h);
}

static void auth__after_attach__closes_the_channel(void **state)
{
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	send_flight(&client, 1, "x", 1);
	client_wait_closed(&client);
	server_logs(&server, "a key that is proven after it has attached");
}

static void auth__garbage__is_refused(void **state)
{
	static uint8_t flight[HANDSHAKE_FLIGHT_MAX];

	for (size_t len = 1; len <= sizeof(flight); len = len * 3 + 1) {
		memset(flight, (int)len, len);
		client_connect(&client);
		send_flight(&client, 1, flight, len);
		expect_refusal(&client);
	}
	expect_others_work();
}

/* Takes the next event of many channels. Counts those that end. */
static struct event next_of_many(unsigned *ended)
{
	struct event event;

	client_event(&other, &event);
	*ended += event.type == EV_CLOSED;
	if (event.type == EV_RECV)
		channel_recv_done(event.channel, event.data);
	return event;
}

/* More strangers than an address may have at once. Those above that wait for their turn, and so
 * does the client, which is at the same address. */
static void auth__crowd_of_forged__is_answered_and_keeps_nobody_out(void **state)
{
	enum { MANY = AUTH_BUDGET_BURST + 10 };
	static struct channel *many[MANY];
	struct transport_address address;
	unsigned ended = 0;

	server_address(&server, &address);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(channel_connect(other.q, &address, &many[i]), 0);
		while (next_of_many(&ended).channel != many[i])
			continue;
		other.channel = many[i];
		send_flight(&other, 1, "forged", 6);
	}
	client_connect(&client);
	assert_int_equal(client_prove(&client, &server.key), 0);
	while (ended < MANY)
		next_of_many(&ended);
	for (unsigned i = 0; i < MANY; i++)
		channel_delete(many[i]);
	other.channel = NULL;
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
}

/* A flight that was recorded does not let in who plays it again. */
static void auth__replayed_flights__are_refused(void **state)
{
	uint8_t first[HANDSHAKE_FLIGHT_MAX], last[HANDSHAKE_FLIGHT_MAX];
	size_t first_len, last_len;
	struct rpc_reply rep;
	struct handshake *h;

	client_connect(&client);
	h = begin_handshake(&server.key, first, &first_len);
	send_flight(&client, 1, first, first_len);
	client_receive(&client, &rep);
	assert_int_equal(handshake_step(h, rep.auth.tail.data, rep.auth.tail.len, last,
				 sizeof(last), &last_len),
		HANDSHAKE_DONE);
	handshake_delete(h);
	client_drop(&client);
	client_connect(&client);
	send_flight(&client, 1, first, first_len);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
	send_flight(&client, 2, last, last_len);
	expect_refusal(&client);
	expect_others_work();
}

/* Its channel ends while the authenticator has its flight. */
static void auth__peer_goes_amid_its_handshake(void **state)
{
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	struct handshake *h;
	size_t len;

	for (unsigned i = 0; i < 20; i++) {
		client_connect(&client);
		h = begin_handshake(&server.key, flight, &len);
		send_flight(&client, 1, flight, len);
		client_drop(&client);
		handshake_delete(h);
	}
	expect_others_work();
}

/* ---- the state ------------------------------------------------------------------------------- */

static bool has_text(const struct rpc_reply *rep, const char *words)
{
	return memmem(rep->status_text.tail.data, rep->status_text.tail.len, words, strlen(words));
}

/* how: of fopen(3): replaces the server's keys, or adds one. */
static void write_other_key(const char *how, struct auth_key *key)
{
	FILE *f = fopen(server.key_file, how);
	char why[256];

	assert_non_null(f);
	assert_int_equal(auth_key_generate("other", key, why, sizeof(why)), 0);
	assert_int_equal(auth_key_write(key, fileno(f)), 0);
	assert_int_equal(fclose(f), 0);
}

static void reload(void)
{
	assert_int_equal(kill(server.pid, SIGHUP), 0);
	server_logs(&server, "reloaded the clients");
}

/* Neither a stranger nor a key that was taken away gets a piece of a text that was made for it. */
static void status__goes_by_the_key_in_force(void **state)
{
	struct rpc_reply rep;
	struct auth_key key;
	uint32_t total;

	client_connect(&other);
	rep = client_status(&other, 0);
	assert_true(has_text(&rep, "wire_version") && !has_text(&rep, "exports"));
	client_connect(&client);
	assert_int_equal(client_prove(&client, &server.key), 0);
	rep = client_status(&client, 0);
	assert_true(has_text(&rep, "\"exports\":[{\"name\":\"default\""));
	assert_true(has_text(&rep, server.key.id));
	assert_false(has_text(&rep, "memory_dir"));
	total = rep.status_text.total;
	assert_int_equal(client_status(&client, 7).status_text.total, total);
	write_other_key("w", &key);
	reload();
	rep = client_status(&client, 7);
	assert_true(rep.status_text.total < total);
	assert_false(has_text(&rep, "exports"));
	rep = client_status(&client, 0);
	assert_true(has_text(&rep, "wire_version") && !has_text(&rep, "exports"));
}

/* They ask more at once than the answers of a second and the places of one key, while the server
 * does not look. */
static void status__crowd_with_one_key_keeps_no_other_key_out(void **state)
{
	enum { MANY = 8, EACH = 4 };
	static struct rpc_client many[MANY];
	struct auth_key key;

	assert_true(MANY * EACH > STATUS_PER_S + STATUS_WAITING_OF_KEY);
	assert_true(MANY * EACH < STATUS_PER_S + STATUS_WAITING);
	write_other_key("a", &key);
	reload();
	for (unsigned i = 0; i < MANY; i++) {
		client_init(&many[i], &server, "many", i + 2);
		client_connect(&many[i]);
		assert_int_equal(client_prove(&many[i], &server.key), 0);
	}
	client_connect(&client);
	assert_int_equal(client_prove(&client, &key), 0);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	for (unsigned i = 0; i < MANY * EACH; i++)
		client_ask_status(&many[i / EACH], 0);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	assert_int_equal(client_status(&client, 0).status, 0);
	server_logs(&server, "channel closed: too many ask for the status");
	for (unsigned i = 0; i < MANY; i++)
		client_fini(&many[i]);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The session's number, its owner and instance can be known by anybody. */
static void resume__without_the_sessions_token__is_refused(void **state)
{
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	client_drop(&client);
	client_connect(&other);
	memcpy(other.owner, client.owner, sizeof(other.owner));
	other.attached = client.attached;
	other.attached.token[15] ^= 1;
	assert_int_equal(
		client_attach(&other, "default", client.attached.session, 0, text), -ESTALE);
	assert_non_null(strstr(text, "belongs to another client"));
	client_drop(&other);
	client_resume(&client);
}

static void resume__after_a_restart(void **state)
{
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	server_kill(&server);
	server_start(&server);
	client_wait_closed(&client);
	client_resume(&client);
}

static int begin(void **state)
{
	server_init(&server, driver_kind);
	client_init(&client, &server, "client", 1);
	client_init(&other, &server, "other", 1);
	return 0;
}

static int end(void **state)
{
	client_fini(&other);
	client_fini(&client);
	server_fini(&server);
	return 0;
}

static int make_context(void **state)
{
	char why[256];

	return handshake_context_new(HANDSHAKE_CLIENT, &context, why, sizeof(why));
}

static int delete_context(void **state)
{
	handshake_context_delete(context);
	return 0;
}

#define AUTH_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int driver_run_auth(void)
{
	static const struct CMUnitTest tests[] = {
		AUTH_TEST(attach__with_the_key),
		AUTH_TEST(prove__key_of_other_bytes__is_refused),
		AUTH_TEST(prove__unknown_id__is_refused_alike),
		AUTH_TEST(attach__amid_the_handshake__closes_the_channel),
		AUTH_TEST(auth__client_goes_behind_its_proof__accuses_nobody),
		AUTH_TEST(auth__step_2_first__closes_the_channel),
		AUTH_TEST(auth__step_1_twice__closes_the_channel),
		AUTH_TEST(auth__a_second_key__closes_the_channel),
		AUTH_TEST(auth__after_attach__closes_the_channel),
		AUTH_TEST(auth__garbage__is_refused),
		AUTH_TEST(auth__replayed_flights__are_refused),
		AUTH_TEST(auth__peer_goes_amid_its_handshake),
		AUTH_TEST(auth__crowd_of_forged__is_answered_and_keeps_nobody_out),
		AUTH_TEST(resume__without_the_sessions_token__is_refused),
		AUTH_TEST(resume__after_a_restart),
	};
	/* Over shm the user counts, and not the key. */
	static const struct CMUnitTest address_tests[] = {
		AUTH_TEST(attach__without_a_key__is_refused_with_the_remedies),
		AUTH_TEST(attach__plain_behind_the_proof__closes_the_channel),
		AUTH_TEST(status__goes_by_the_key_in_force),
		AUTH_TEST(status__crowd_with_one_key_keeps_no_other_key_out),
	};
	int failed = cmocka_run_group_tests_name("auth", tests, make_context, delete_context);

	if (driver_kind != TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name(
			"keys", address_tests, make_context, delete_context);
	return failed;
}
