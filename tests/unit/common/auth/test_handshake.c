/* test_handshake.c - the promises of handshake.h between our own ends, and what an attacker between
 * them can do to the flights. */
#include "tests/unit/common/auth/handshake_ends.h"

#include <pthread.h>
#include <errno.h>

static const uint8_t client_hello[HANDSHAKE_HELLO_BYTES] = {1},
		     server_hello[] = {[HANDSHAKE_HELLO_BYTES - 1] = 2};
enum { KIND = 1 };

static struct channel_keys keys_of(const struct handshake *h)
{
	struct channel_keys made;

	assert_int_equal(handshake_keys(h, client_hello, server_hello, KIND, &made), 0);
	return made;
}

/* ---- both ends are ours ---------------------------------------------------------------------- */

static void handshake_step__both_prove_each_key(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct channel_keys at_client, at_server;
		struct ends e;

		finish_ends(&e, &keys[i]);
		assert_string_equal(handshake_key_id(e.server), keys[i].id);
		assert_null(handshake_key_id(e.client));
		at_client = keys_of(e.client);
		at_server = keys_of(e.server);
		assert_memory_equal(&at_client, &at_server, sizeof(at_client));
		delete_ends(&e);
	}
}

static void handshake_step__wrong_key_and_unknown_id_look_the_same(void **state)
{
	static const struct {
		struct auth_key key;
		enum handshake_reason reason;
		const char *why;
	} wrong[] = {
		{{"web1-k7q2", {1, 2, 4}}, HANDSHAKE_OTHER_BYTES,
			"its key web1-k7q2 has other bytes than ours"},
		{{"web1-zzzz", {1, 2, 3}}, HANDSHAKE_UNKNOWN_KEY, "no key web1-zzzz here"},
		{{"web", {1, 2, 3}}, HANDSHAKE_UNKNOWN_KEY, "no key web here"},
		{{"web1-k7q2x", {1, 2, 3}}, HANDSHAKE_UNKNOWN_KEY, "no key web1-k7q2x here"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ends e;

		run_ends(&e, &wrong[i].key, 1);
		assert_int_equal(step(e.server, &e.flights[0], &e.none), HANDSHAKE_REFUSED);
		assert_int_equal(handshake_reason(e.server), wrong[i].reason);
		assert_string_equal(handshake_refusal(e.server), wrong[i].why);
		delete_ends(&e);
	}
}

/* The server's own keys are another's at the same id. */
static bool find_other_bytes(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES])
{
	memset(secret, 0x55, AUTH_KEY_BYTES);
	return true;
}

static void handshake_step__server_with_other_bytes_gives_nothing(void **state)
{
	struct flight out;
	struct ends e;

	run_ends(&e, &keys[0], 1);
	handshake_delete(e.server);
	assert_int_equal(
		handshake_server_new(server_context, find_other_bytes, NULL, &e.server), 0);
	assert_int_equal(step(e.server, &e.flights[0], &out), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(e.server), HANDSHAKE_OTHER_BYTES);
	delete_ends(&e);
}

static void handshake_step__flight_too_many(void **state)
{
	for (unsigned flight = 0; flight < 3; flight++) {
		struct handshake *both[2];
		struct flight out;
		struct ends e;

		finish_ends(&e, &keys[0]);
		both[0] = e.client;
		both[1] = e.server;
		for (int i = 0; i < 2; i++) {
			uint8_t bytes[16];

			assert_int_equal(
				step(both[i], &e.flights[flight], &out), HANDSHAKE_REFUSED);
			assert_int_equal(handshake_reason(both[i]), HANDSHAKE_NOT_DUE);
			assert_int_equal(handshake_export(both[i], NULL, 0, bytes, sizeof(bytes)),
				-ENOTCONN);
		}
		delete_ends(&e);
	}
}

static void handshake_step__client_begins_without_input(void **state)
{
	struct handshake *h = new_client(&keys[0]);
	struct flight out;

	assert_int_equal(step_bytes(h, (const uint8_t *)"x", 1, &out), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(h), HANDSHAKE_NOT_DUE);
	handshake_delete(h);
}

static void handshake_step__output_does_not_fit(void **state)
{
	struct handshake *h = new_client(&keys[0]);
	uint8_t out[10] = {0};
	size_t len;

	assert_int_equal(handshake_step(h, NULL, 0, out, sizeof(out), &len), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(h), HANDSHAKE_FAILED);
	assert_int_equal(len, 0);
	handshake_delete(h);
}

static void handshake_delete__in_every_state(void **state)
{
	for (unsigned nflights = 1; nflights <= 3; nflights++) {
		struct ends e;

		run_ends(&e, &keys[0], nflights);
		delete_ends(&e);
	}
	handshake_delete(new_client(&keys[0]));
	handshake_delete(NULL);
	handshake_context_delete(NULL);
}

/* ---- results --------------------------------------------------------------------------------- */

static void handshake_export__only_in_done(void **state)
{
	struct channel_keys made;
	struct ends e;

	run_ends(&e, &keys[0], 3);
	assert_int_equal(handshake_keys(e.client, client_hello, server_hello, KIND, &made), 0);
	assert_int_equal(
		handshake_keys(e.server, client_hello, server_hello, KIND, &made), -ENOTCONN);
	assert_null(handshake_key_id(e.server));
	delete_ends(&e);
}

static void handshake_export__differs_by_context_and_handshake(void **state)
{
	static const uint8_t context[] = {1, 2};
	uint8_t bytes[2][4][48];
	struct ends e;

	for (int i = 0; i < 2; i++) {
		finish_ends(&e, &keys[0]);
		assert_int_equal(handshake_export(e.client, context, 1, bytes[i][0], 48), 0);
		assert_int_equal(handshake_export(e.client, context, 2, bytes[i][1], 48), 0);
		assert_int_equal(handshake_export(e.client, NULL, 0, bytes[i][2], 48), 0);
		assert_int_equal(handshake_export(e.server, context, 2, bytes[i][3], 48), 0);
		assert_memory_equal(bytes[i][1], bytes[i][3], 48);
		assert_memory_not_equal(bytes[i][0], bytes[i][1], 48);
		assert_memory_not_equal(bytes[i][0], bytes[i][2], 48);
		delete_ends(&e);
	}
	for (int i = 0; i < 4; i++)
		assert_memory_not_equal(bytes[0][i], bytes[1][i], 48);
}

static void expect_all_differ(const struct channel_keys *a, const struct channel_keys *b)
{
	assert_memory_not_equal(a->client.key, b->client.key, CHANNEL_KEY_BYTES);
	assert_memory_not_equal(a->client.iv, b->client.iv, CHANNEL_IV_BYTES);
	assert_memory_not_equal(a->server.key, b->server.key, CHANNEL_KEY_BYTES);
	assert_memory_not_equal(a->server.iv, b->server.iv, CHANNEL_IV_BYTES);
}

static void handshake_keys__are_bound_to_hellos_and_kind(void **state)
{
	uint8_t changed[HANDSHAKE_HELLO_BYTES];
	struct channel_keys same, other;
	struct ends e;

	finish_ends(&e, &keys[0]);
	same = keys_of(e.client);
	for (size_t i = 0; i < sizeof(changed); i++) {
		memcpy(changed, client_hello, sizeof(changed));
		changed[i] ^= 1;
		assert_int_equal(handshake_keys(e.server, changed, server_hello, KIND, &other), 0);
		expect_all_differ(&same, &other);
		memcpy(changed, server_hello, sizeof(changed));
		changed[i] ^= 1;
		assert_int_equal(handshake_keys(e.server, client_hello, changed, KIND, &other), 0);
		expect_all_differ(&same, &other);
	}
	assert_int_equal(handshake_keys(e.server, server_hello, client_hello, KIND, &other), 0);
	expect_all_differ(&same, &other);
	assert_int_equal(handshake_keys(e.server, client_hello, server_hello, KIND + 1, &other), 0);
	expect_all_differ(&same, &other);
	delete_ends(&e);
}

static void handshake_keys__differ_by_direction_and_handshake(void **state)
{
	struct channel_keys first, second;
	struct ends e;

	finish_ends(&e, &keys[0]);
	first = keys_of(e.client);
	delete_ends(&e);
	finish_ends(&e, &keys[0]);
	second = keys_of(e.client);
	delete_ends(&e);
	expect_all_differ(&first, &second);
	assert_memory_not_equal(first.client.key, first.server.key, CHANNEL_KEY_BYTES);
	assert_memory_not_equal(first.client.iv, first.server.iv, CHANNEL_IV_BYTES);
}

/* ---- an attacker between them ---------------------------------------------------------------- */

/* The end that a flight is for, before it has come. */
static struct handshake *receiver(const struct ends *e, unsigned flight)
{
	return flight == 1 ? e->client : e->server;
}

/* Gives a changed flight to its receiver, which must refuse it. */
static void expect_refused(unsigned flight, void (*change)(struct flight *f, size_t n), size_t n)
{
	struct flight out;
	struct ends e;

	run_ends(&e, &keys[0], flight + 1);
	change(&e.flights[flight], n);
	if (step(receiver(&e, flight), &e.flights[flight], &out) != HANDSHAKE_REFUSED)
		fail_msg("flight %u is taken although it was changed at %zu", flight, n);
	delete_ends(&e);
}

static size_t flight_len(unsigned flight)
{
	struct ends e;
	size_t len;

	run_ends(&e, &keys[0], 3);
	len = e.flights[flight].len;
	delete_ends(&e);
	return len;
}

static void flip(struct flight *f, size_t n)
{
	f->bytes[n / 2] ^= n % 2 ? 0x80 : 0x01;
}

static void handshake_step__any_byte_flipped(void **state)
{
	for (unsigned flight = 0; flight < 3; flight++) {
		size_t len = flight_len(flight);

		for (size_t n = 0; n < 2 * len; n++)
			expect_refused(flight, flip, n);
	}
}

static void cut(struct flight *f, size_t n)
{
	f->len = n;
}

static void handshake_step__any_length_less(void **state)
{
	for (unsigned flight = 0; flight < 3; flight++) {
		size_t len = flight_len(flight);

		for (size_t n = 0; n < len; n++)
			expect_refused(flight, cut, n);
	}
}

static void append_byte(struct flight *f, size_t n)
{
	f->bytes[f->len++] = (uint8_t)n;
}

static void append_itself(struct flight *f, size_t n)
{
	memcpy(f->bytes + f->len, f->bytes, f->len);
	f->len *= 2;
}

/* The change of ciphers that TLS 1.3 tolerates, before and behind. */
static const uint8_t tolerated[] = {20, 3, 3, 0, 1, 1};

static void append_tolerated(struct flight *f, size_t n)
{
	memcpy(f->bytes + f->len, tolerated, sizeof(tolerated));
	f->len += sizeof(tolerated);
}

static void prepend_tolerated(struct flight *f, size_t n)
{
	memmove(f->bytes + sizeof(tolerated), f->bytes, f->len);
	memcpy(f->bytes, tolerated, sizeof(tolerated));
	f->len += sizeof(tolerated);
}

/* The lengths say that it is one record of one message. */
static void append_within(struct flight *f, size_t n)
{
	f->len = HANDSHAKE_FLIGHT_MAX;
	f->bytes[3] = (HANDSHAKE_FLIGHT_MAX - 5) >> 8;
	f->bytes[4] = (HANDSHAKE_FLIGHT_MAX - 5) & 0xff;
	f->bytes[7] = (HANDSHAKE_FLIGHT_MAX - 9) >> 8;
	f->bytes[8] = (HANDSHAKE_FLIGHT_MAX - 9) & 0xff;
}

static void handshake_step__more_bytes(void **state)
{
	for (unsigned flight = 0; flight < 3; flight++) {
		for (size_t byte = 20; byte < 24; byte++)
			expect_refused(flight, append_byte, byte);
		expect_refused(flight, append_itself, 0);
		expect_refused(flight, append_tolerated, 0);
		expect_refused(flight, prepend_tolerated, 0);
		expect_refused(flight, append_within, 0);
	}
}

static void handshake_step__too_long(void **state)
{
	struct flight out;
	struct ends e;

	run_ends(&e, &keys[0], 1);
	append_within(&e.flights[0], 0);
	e.flights[0].bytes[e.flights[0].len++] = 0;
	assert_int_equal(step(e.server, &e.flights[0], &out), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(e.server), HANDSHAKE_TOO_LONG);
	delete_ends(&e);
}

/* A flight of another handshake, by the same key, in place of the right one. */
static void handshake_step__flight_of_another_handshake(void **state)
{
	for (unsigned flight = 1; flight < 3; flight++) {
		struct ends e, other;
		struct flight out;

		run_ends(&other, &keys[0], flight + 1);
		run_ends(&e, &keys[0], flight + 1);
		assert_int_equal(step(receiver(&e, flight), &other.flights[flight], &out),
			HANDSHAKE_REFUSED);
		assert_int_equal(handshake_reason(receiver(&e, flight)), HANDSHAKE_NOT_PROVEN);
		delete_ends(&e);
		delete_ends(&other);
	}
}

/* All that a client has sent, to a new server. */
static void handshake_step__recorded_client(void **state)
{
	struct handshake *server = new_server();
	struct flight out;
	struct ends e;

	finish_ends(&e, &keys[0]);
	assert_int_equal(step(server, &e.flights[0], &out), HANDSHAKE_MORE);
	assert_int_equal(step(server, &e.flights[2], &out), HANDSHAKE_REFUSED);
	assert_non_null(strstr(
		handshake_refusal(server), "the peer does not prove that it has key web1-k7q2 ("));
	handshake_delete(server);
	delete_ends(&e);
}

static void expect_malformed(struct handshake *h, const struct flight *in)
{
	struct flight out;

	assert_int_equal(step(h, in, &out), HANDSHAKE_REFUSED);
	assert_int_equal(handshake_reason(h), HANDSHAKE_MALFORMED);
	assert_string_equal(handshake_refusal(h), "a handshake's message is malformed");
	handshake_delete(h);
}

static void handshake_step__flights_out_of_turn(void **state)
{
	static const struct flight empty;
	struct flight begin;
	struct ends e;

	for (unsigned flight = 0; flight < 3; flight++) {
		struct handshake *client = new_client(&keys[0]);

		/* To a client that has begun; its own first flight is the reflected one. */
		run_ends(&e, &keys[0], 3);
		assert_int_equal(step(client, &empty, &begin), HANDSHAKE_MORE);
		if (flight != 1)
			expect_malformed(client, &e.flights[flight]);
		else
			handshake_delete(client);
		/* To a server that has answered. */
		if (flight != 2)
			expect_malformed(e.server, &e.flights[flight]);
		else
			handshake_delete(e.server);
		handshake_delete(e.client);
		/* To a new server. */
		if (flight)
			expect_malformed(new_server(), &e.flights[flight]);
	}
	expect_malformed(new_server(), &empty);
	run_ends(&e, &keys[0], 2);
	expect_malformed(e.client, &e.flights[0]);
	expect_malformed(e.server, &empty);
	run_ends(&e, &keys[0], 1);
	expect_malformed(e.client, &empty);
	handshake_delete(e.server);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *run_some(void *unused)
{
	for (int i = 0; i < 20; i++) {
		struct ends e;

		finish_ends(&e, &keys[i % ARRAY_SIZE(keys)]);
		delete_ends(&e);
	}
	return NULL;
}

static void handshake_context__threads_at_once(void **state)
{
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_some, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_step__both_prove_each_key),
		cmocka_unit_test(handshake_step__wrong_key_and_unknown_id_look_the_same),
		cmocka_unit_test(handshake_step__server_with_other_bytes_gives_nothing),
		cmocka_unit_test(handshake_step__flight_too_many),
		cmocka_unit_test(handshake_step__client_begins_without_input),
		cmocka_unit_test(handshake_step__output_does_not_fit),
		cmocka_unit_test(handshake_delete__in_every_state),
		cmocka_unit_test(handshake_export__only_in_done),
		cmocka_unit_test(handshake_export__differs_by_context_and_handshake),
		cmocka_unit_test(handshake_keys__are_bound_to_hellos_and_kind),
		cmocka_unit_test(handshake_keys__differ_by_direction_and_handshake),
		cmocka_unit_test(handshake_step__any_byte_flipped),
		cmocka_unit_test(handshake_step__any_length_less),
		cmocka_unit_test(handshake_step__more_bytes),
		cmocka_unit_test(handshake_step__too_long),
		cmocka_unit_test(handshake_step__flight_of_another_handshake),
		cmocka_unit_test(handshake_step__recorded_client),
		cmocka_unit_test(handshake_step__flights_out_of_turn),
		cmocka_unit_test(handshake_context__threads_at_once),
	};

	return cmocka_run_group_tests(tests, make_contexts, end_contexts);
}
