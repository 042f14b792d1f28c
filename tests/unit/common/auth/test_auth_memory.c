/* test_auth_memory.c - no key that OpenSSL works with gets into a core dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/auth/auth_memory.h"
#include "common/auth/handshake.h"
#include "common/auth/record.h"
#include "common/base/sanitized.h"
#include "tests/unit/dumped.h"

/* All secrets of the test lie here, and here alone. */
struct secrets {
	struct auth_key key;
	struct channel_keys at_client, at_server;
	uint8_t flights[2][HANDSHAKE_FLIGHT_MAX];
};

static bool find_key(void *user, const char *id, uint8_t secret[AUTH_KEY_BYTES])
{
	const struct auth_key *key = user;

	memcpy(secret, key->secret, AUTH_KEY_BYTES);
	return true;
}

static struct handshake_context *new_context(enum handshake_role role)
{
	struct handshake_context *context;
	char why[256] = "";

	if (handshake_context_new(role, &context, why, sizeof(why)))
		fail_msg("%s", why);
	return context;
}

static size_t step(struct handshake *h, const uint8_t *in, size_t len, uint8_t *out)
{
	size_t outlen;

	assert_int_not_equal(
		handshake_step(h, in, len, out, HANDSHAKE_FLIGHT_MAX, &outlen), HANDSHAKE_REFUSED);
	return outlen;
}

static void agree(struct secrets *s, struct handshake *client, struct handshake *server)
{
	static const uint8_t hello[HANDSHAKE_HELLO_BYTES];
	size_t len = step(client, NULL, 0, s->flights[0]);

	len = step(server, s->flights[0], len, s->flights[1]);
	len = step(client, s->flights[1], len, s->flights[0]);
	step(server, s->flights[0], len, s->flights[1]);
	assert_int_equal(handshake_keys(client, hello, hello, 1, &s->at_client), 0);
	assert_int_equal(handshake_keys(server, hello, hello, 1, &s->at_server), 0);
	assert_memory_equal(&s->at_client, &s->at_server, sizeof(s->at_client));
}

static void assert_not_dumped(const struct secrets *s)
{
	const struct {
		const char *name;
		const uint8_t *bytes;
	} all[] = {
		{"the key", s->key.secret},
		{"the client's key of the channel", s->at_client.client.key},
		{"the server's key of the channel", s->at_client.server.key},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const char *where = dumped_where(all[i].bytes, AUTH_KEY_BYTES);

		if (where && !IS_SANITIZED)
			fail_msg("%s is in %s", all[i].name, where);
	}
}

static void auth_memory__keys_at_work_are_not_dumped(void **state)
{
	struct handshake_context *contexts[] = {
		new_context(HANDSHAKE_CLIENT), new_context(HANDSHAKE_SERVER)};
	struct secrets *s = nodump_map(sizeof(*s));
	uint8_t *data = nodump_alloc(RECORD_BYTES_MAX), *sealed = nodump_alloc(RECORD_BYTES_MAX);
	struct handshake *client, *server;
	struct record_out out;
	struct record_in in;
	struct iovec iov = {data, 1000};
	size_t plain;
	char why[256];

	assert_int_equal(auth_key_generate("test", &s->key, why, sizeof(why)), 0);
	assert_int_equal(handshake_client_new(contexts[0], &s->key, &client), 0);
	assert_int_equal(handshake_server_new(contexts[1], find_key, &s->key, &server), 0);
	agree(s, client, server);
	assert_not_dumped(s);
	handshake_delete(client);
	handshake_delete(server);
	assert_int_equal(record_out_init(&out, &s->at_client.client), 0);
	assert_int_equal(record_in_init(&in, &s->at_client.server, sealed, RECORD_BYTES_MAX), 0);
	assert_true(record_out_seal(&out, &iov, 1, sealed, RECORD_BYTES_MAX, &plain) > 0);
	assert_not_dumped(s);
	record_in_fini(&in);
	record_out_fini(&out);
	handshake_context_delete(contexts[0]);
	handshake_context_delete(contexts[1]);
	assert_not_dumped(s);
	nodump_free(data);
	nodump_free(sealed);
	nodump_unmap(s, sizeof(*s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auth_memory__keys_at_work_are_not_dumped),
	};

	auth_memory_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
