/* handshake_ends.h - a client and a server for the tests of the handshake, with some keys. A step
 * checks each time that a refusal has no output, and that OpenSSL's error queue is left empty,
 * whatever was in it before. */
#ifndef RMEMFS_TESTS_UNIT_COMMON_AUTH_HANDSHAKE_ENDS_H
#define RMEMFS_TESTS_UNIT_COMMON_AUTH_HANDSHAKE_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/err.h>

#include "common/auth/handshake.h"
#include "common/base/util.h"

struct flight {
	uint8_t bytes[2 * HANDSHAKE_FLIGHT_MAX + 1];
	size_t len;
};

static struct handshake_context *client_context, *server_context;

/* The server has these, and one of the same length as another's beginning. */
static const struct auth_key keys[] = {
	{"web1-k7q2", {1, 2, 3}},
	{"web1", {4, 5, 6}},
	{"a.key_with-all-of-its-32-letters", {7, 8, 9}},
};

static bool find_key(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES])
{
	assert_ptr_equal(user, keys);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].id, id) == 0) {
			memcpy(secret, keys[i].secret, AUTH_KEY_BYTES);
			return true;
		}
	}
	return false;
}

static int make_contexts(void **state)
{
	char why[256] = "";

	if (handshake_context_new(HANDSHAKE_CLIENT, &client_context, why, sizeof(why)) ||
		handshake_context_new(HANDSHAKE_SERVER, &server_context, why, sizeof(why)))
		fail_msg("%s", why);
	return 0;
}

static int end_contexts(void **state)
{
	handshake_context_delete(client_context);
	handshake_context_delete(server_context);
	return 0;
}

static struct handshake *new_client(const struct auth_key *key)
{
	struct handshake *h;

	assert_int_equal(handshake_client_new(client_context, key, &h), 0);
	return h;
}

static struct handshake *new_server(void)
{
	struct handshake *h;

	assert_int_equal(handshake_server_new(server_context, find_key, (void *)keys, &h), 0);
	return h;
}

/* The input is a block of its own, so that the sanitizers see a read behind it. */
static enum handshake_state step_bytes(
	struct handshake *h, const uint8_t *in, size_t len, struct flight *out)
{
	uint8_t *copy = len ? memcpy(malloc(len), in, len) : NULL;
	enum handshake_state state;

	ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);
	state = handshake_step(h, copy, len, out->bytes, HANDSHAKE_FLIGHT_MAX, &out->len);
	free(copy);
	assert_true(out->len <= HANDSHAKE_FLIGHT_MAX);
	if (state == HANDSHAKE_REFUSED) {
		assert_int_equal(out->len, 0);
		assert_int_not_equal(handshake_reason(h), HANDSHAKE_NOT_REFUSED);
		assert_string_not_equal(handshake_refusal(h), "");
		assert_null(handshake_key_id(h));
		assert_int_equal(
			handshake_step(h, NULL, 0, out->bytes, sizeof(out->bytes), &out->len),
			HANDSHAKE_REFUSED);
	} else {
		assert_string_equal(handshake_refusal(h), "");
	}
	assert_int_equal(ERR_peek_error(), 0);
	return state;
}

static enum handshake_state step(struct handshake *h, const struct flight *in, struct flight *out)
{
	return step_bytes(h, in->bytes, in->len, out);
}

/* A handshake and its flights: client's first, server's, client's second. */
struct ends {
	struct handshake *client, *server;
	struct flight flights[3];
	struct flight none;
};

static void delete_ends(struct ends *e)
{
	handshake_delete(e->client);
	handshake_delete(e->server);
}

/* Goes on until that many flights are there; none of them was given to its receiver but by the
 * making of the next. */
static void run_ends(struct ends *e, const struct auth_key *key, unsigned nflights)
{
	static const struct flight begin;

	e->client = new_client(key);
	e->server = new_server();
	assert_int_equal(step(e->client, &begin, &e->flights[0]), HANDSHAKE_MORE);
	if (nflights > 1)
		assert_int_equal(step(e->server, &e->flights[0], &e->flights[1]), HANDSHAKE_MORE);
	if (nflights > 2)
		assert_int_equal(step(e->client, &e->flights[1], &e->flights[2]), HANDSHAKE_DONE);
	for (unsigned i = 0; i < nflights; i++)
		assert_true(e->flights[i].len > 0);
}

static inline void finish_ends(struct ends *e, const struct auth_key *key)
{
	run_ends(e, key, 3);
	assert_int_equal(step(e->server, &e->flights[2], &e->none), HANDSHAKE_DONE);
	assert_int_equal(e->none.len, 0);
}

#endif
