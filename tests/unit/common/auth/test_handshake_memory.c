/* test_handshake_memory.c - how much memory handshakes have, that they give all of it back, and
 * that no secret stays in it. All of OpenSSL's memory, and so all of a handshake's, goes through
 * the functions here. */
#include "tests/unit/common/auth/handshake_ends.h"

#include <malloc.h>

#include <openssl/crypto.h>

/* The programs run one thread. */
static struct {
	size_t bytes; /* of all blocks */
	size_t most;
	uint8_t secret[CHANNEL_KEY_BYTES];
	bool is_watched;    /* whether freed blocks are searched for the secret */
	unsigned nleftover; /* so many had it */
	long nuntil;        /* so many allocations until one fails; 0: none does */
} memory;

static void *count(void *block)
{
	memory.bytes += malloc_usable_size(block);
	memory.most = memory.bytes > memory.most ? memory.bytes : memory.most;
	return block;
}

static void *counted_malloc(size_t size, const char *file, int line)
{
	if (memory.nuntil && --memory.nuntil == 0)
		return NULL;
	return size ? count(malloc(size)) : NULL;
}

static void counted_free(void *block, const char *file, int line)
{
	size_t size = malloc_usable_size(block);

	if (memory.is_watched && block && memmem(block, size, memory.secret, sizeof(memory.secret)))
		memory.nleftover++;
	memory.bytes -= size;
	free(block);
}

/* The block moves, so that its old place is seen. */
static void *counted_realloc(void *block, size_t size, const char *file, int line)
{
	size_t old = block ? malloc_usable_size(block) : 0;
	void *moved = counted_malloc(size, file, line);

	if (moved && block)
		memcpy(moved, block, min_u64(old, size));
	if (moved || !size)
		counted_free(block, file, line);
	return moved;
}

/* ---- tests ----------------------------------------------------------------------------------- */

enum { MANY = 100 };

/* OpenSSL makes some things once, at their first use. */
static void warm_up(void)
{
	struct ends e;

	for (int i = 0; i < 3; i++) {
		finish_ends(&e, &keys[0]);
		delete_ends(&e);
	}
}

/* handshake.h has the figures of one version of OpenSSL. */
static void handshake__memory_of_one_that_waits(void **state)
{
	static struct ends ends[MANY];
	size_t before;

	warm_up();
	before = memory.bytes;
	for (int i = 0; i < MANY; i++)
		ends[i].server = new_server();
	print_message(
		"%zu bytes for a server before its first flight\n", (memory.bytes - before) / MANY);
	for (int i = 0; i < MANY; i++)
		handshake_delete(ends[i].server);
	for (int i = 0; i < MANY; i++)
		run_ends(&ends[i], &keys[0], 2);
	print_message(
		"%zu bytes for a client and a server that wait\n", (memory.bytes - before) / MANY);
	assert_true((memory.bytes - before) / MANY < 2 * 64 * 1024);
	for (int i = 0; i < MANY; i++)
		delete_ends(&ends[i]);
	assert_int_equal(memory.bytes, before);
}

/* One that a peer has made fail keeps its reason, and nothing else. */
static void handshake__memory_of_a_refused_one(void **state)
{
	static const struct auth_key wrong = {"web1-k7q2", {9}};
	struct handshake *refused[MANY];
	size_t before;

	warm_up();
	before = memory.bytes;
	for (int i = 0; i < MANY; i++) {
		struct ends e;

		run_ends(&e, &wrong, 1);
		assert_int_equal(step(e.server, &e.flights[0], &e.none), HANDSHAKE_REFUSED);
		handshake_delete(e.client);
		refused[i] = e.server;
	}
	assert_true((memory.bytes - before) / MANY < 512);
	for (int i = 0; i < MANY; i++)
		handshake_delete(refused[i]);
	assert_int_equal(memory.bytes, before);
}

/* The most that a server has while it takes this first flight. */
static size_t most_for(const struct flight *first)
{
	struct handshake *server;
	size_t before = memory.bytes;
	struct flight out;

	memory.most = before;
	server = new_server();
	step(server, first, &out);
	handshake_delete(server);
	assert_int_equal(memory.bytes, before);
	return memory.most - before;
}

/* Lengths in the first flight that promise far more than comes. */
static void handshake__memory_is_not_what_a_peer_claims(void **state)
{
	static const struct auth_key other = {"x", {9}};
	struct flight claims;
	size_t usual;
	struct ends e;

	warm_up();
	run_ends(&e, &other, 1);
	usual = most_for(&e.flights[0]);
	for (unsigned at = 3; at + 1 < e.flights[0].len; at++) {
		claims = e.flights[0];
		claims.bytes[at] = 0xff;
		claims.bytes[at + 1] = 0xff;
		assert_true(most_for(&claims) <= usual + 1024);
		claims.bytes[at] = 1;
		assert_true(most_for(&claims) <= usual + 1024);
	}
	delete_ends(&e);
}

static void handshake__many_leak_nothing(void **state)
{
	size_t before;

	warm_up();
	before = memory.bytes;
	for (int i = 0; i < 3 * MANY; i++) {
		struct ends e;

		finish_ends(&e, &keys[i % ARRAY_SIZE(keys)]);
		delete_ends(&e);
		run_ends(&e, &keys[0], 1 + i % 3);
		e.flights[i % 3].bytes[i % 80] ^= 4;
		if (i % 3 == 0)
			step(e.server, &e.flights[0], &e.none);
		else if (i % 3 == 1)
			step(e.client, &e.flights[1], &e.none);
		else
			step(e.server, &e.flights[2], &e.none);
		delete_ends(&e);
		assert_int_equal(memory.bytes, before);
	}
}

/* All steps of both ends, up to one that is refused. */
static bool all_steps_done(const struct ends *e)
{
	struct flight flights[2] = {{.len = 0}};
	enum handshake_state state = HANDSHAKE_MORE;

	for (int i = 0; i < 4 && state != HANDSHAKE_REFUSED; i++)
		state = handshake_step(i % 2 ? e->server : e->client, flights[i % 2].bytes,
			flights[i % 2].len, flights[!(i % 2)].bytes, HANDSHAKE_FLIGHT_MAX,
			&flights[!(i % 2)].len);
	return state == HANDSHAKE_DONE;
}

static void expect_equal_keys(const struct ends *e)
{
	static const uint8_t hello[HANDSHAKE_HELLO_BYTES];
	struct channel_keys at_client, at_server;

	if (handshake_keys(e->client, hello, hello, 0, &at_client) == 0 &&
		handshake_keys(e->server, hello, hello, 0, &at_server) == 0)
		assert_memory_equal(&at_client, &at_server, sizeof(at_client));
}

/* Each allocation of a handshake fails once. It is refused then, or does without the memory. */
static void handshake__memory_runs_out(void **state)
{
	bool has_failed = true;
	size_t before;

	warm_up();
	before = memory.bytes;
	for (long n = 1; has_failed; n++) {
		struct ends e = {0};

		memory.nuntil = n;
		if (handshake_client_new(client_context, &keys[0], &e.client) == 0 &&
			handshake_server_new(server_context, find_key, (void *)keys, &e.server) ==
				0 &&
			all_steps_done(&e))
			expect_equal_keys(&e);
		has_failed = memory.nuntil == 0;
		memory.nuntil = 0;
		delete_ends(&e);
	}
	/* OpenSSL keeps the room for the texts of its errors. */
	assert_true(memory.bytes <= before + 1024);
}

static void watch(const uint8_t secret[CHANNEL_KEY_BYTES])
{
	memcpy(memory.secret, secret, sizeof(memory.secret));
	memory.nleftover = 0;
	memory.is_watched = true;
}

static unsigned leftovers(void)
{
	memory.is_watched = false;
	return memory.nleftover;
}

static void handshake__no_secret_in_freed_memory(void **state)
{
	static const uint8_t hello[HANDSHAKE_HELLO_BYTES];
	static struct auth_key long_key = {"web1-k7q2"};
	struct channel_keys made;
	struct ends e;

	for (unsigned nflights = 1; nflights <= 3; nflights++) {
		watch(keys[0].secret);
		run_ends(&e, &keys[0], nflights);
		delete_ends(&e);
		assert_int_equal(leftovers(), 0);
	}
	memset(long_key.secret, 0x77, sizeof(long_key.secret));
	watch(long_key.secret);
	run_ends(&e, &long_key, 1);
	assert_int_equal(step(e.server, &e.flights[0], &e.none), HANDSHAKE_REFUSED);
	delete_ends(&e);
	assert_int_equal(leftovers(), 0);
	finish_ends(&e, &keys[0]);
	watch(keys[0].secret);
	assert_int_equal(handshake_keys(e.client, hello, hello, 0, &made), 0);
	assert_int_equal(leftovers(), 0);
	watch(made.client.key);
	assert_int_equal(handshake_keys(e.server, hello, hello, 0, &made), 0);
	delete_ends(&e);
	assert_int_equal(leftovers(), 0);
}

/* That the search finds something at all. */
static void handshake__search_finds_a_secret(void **state)
{
	static const uint8_t secret[CHANNEL_KEY_BYTES] = {1, 2, 3, 4};
	uint8_t *block = OPENSSL_malloc(100);

	watch(secret);
	memcpy(block + 20, secret, sizeof(secret));
	OPENSSL_free(block);
	assert_int_equal(leftovers(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake__memory_of_one_that_waits),
		cmocka_unit_test(handshake__memory_of_a_refused_one),
		cmocka_unit_test(handshake__memory_is_not_what_a_peer_claims),
		cmocka_unit_test(handshake__many_leak_nothing),
		cmocka_unit_test(handshake__memory_runs_out),
		cmocka_unit_test(handshake__no_secret_in_freed_memory),
		cmocka_unit_test(handshake__search_finds_a_secret),
	};

	if (!CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free))
		return 1;
	return cmocka_run_group_tests(tests, make_contexts, end_contexts);
}
