/* test_wire_version.c - which versions two programs speak with each other, and the words where they
 * don't. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "common/rpc/wire_version.h"

static void spoken__its_own_and_the_one_before(void **state)
{
	for (uint32_t server = RMEMFS_WIRE_FIRST + 1; server < RMEMFS_WIRE_FIRST + 4; server++) {
		assert_false(wire_version_is_spoken(server, server - 2));
		assert_true(wire_version_is_spoken(server, server - 1));
		assert_true(wire_version_is_spoken(server, server));
		assert_false(wire_version_is_spoken(server, server + 1));
	}
	assert_false(wire_version_is_spoken(RMEMFS_WIRE_NEXT, 0));
	assert_false(wire_version_is_spoken(RMEMFS_WIRE_NEXT, UINT32_MAX));
}

/* Nobody has what was before the first release. */
static void spoken__nothing_before_the_first(void **state)
{
	assert_true(wire_version_is_spoken(RMEMFS_WIRE_FIRST, RMEMFS_WIRE_FIRST));
	assert_false(wire_version_is_spoken(RMEMFS_WIRE_FIRST, RMEMFS_WIRE_FIRST - 1));
	assert_int_equal(wire_version_oldest(RMEMFS_WIRE_FIRST), RMEMFS_WIRE_FIRST);
	assert_int_equal(wire_version_oldest(RMEMFS_WIRE_FIRST - 1), RMEMFS_WIRE_FIRST - 1);
}

static void own__is_that_of_the_release(void **state)
{
	assert_int_equal(wire_version(), RMEMFS_WIRE_VERSION);
	assert_true(wire_version_is_spoken(RMEMFS_WIRE_NEXT, RMEMFS_WIRE_VERSION));
}

#ifdef RMEMFS_CRASH_POINTS
static void expect_client_refused(uint32_t client, const char *words)
{
	char text[WIRE_VERSION_TEXT_BYTES];

	wire_version_refused_client(client, text);
	assert_string_equal(text, words);
}

static void expect_refused_by(uint32_t server, const char *words)
{
	char text[WIRE_VERSION_TEXT_BYTES];

	wire_version_refused_by_server(server, text);
	assert_string_equal(text, words);
}

static void refusal__names_both_and_the_one_to_upgrade(void **state)
{
	setenv("RMEMFS_WIRE", "8", 1);
	expect_client_refused(
		7, "it speaks version 7 of the protocol, this server 8: upgrade that client");
	expect_client_refused(
		9, "it speaks version 9 of the protocol, this server 8: upgrade this server first");
	expect_refused_by(
		7, "it speaks version 7 of the protocol, this client 8: upgrade the server first");
	expect_refused_by(10,
		"it speaks versions 9 and 10 of the protocol, this client 8: upgrade this client");
	setenv("RMEMFS_WIRE", "10", 1);
	expect_client_refused(8,
		"it speaks version 8 of the protocol, this server 9 and 10: upgrade that client");
	expect_client_refused(UINT32_MAX,
		"it speaks version 4294967295 of the protocol, this server 9 and 10: upgrade this "
		"server first");
	expect_refused_by(
		8, "it speaks version 8 of the protocol, this client 10: upgrade the server first");
	expect_refused_by(UINT32_MAX,
		"it speaks versions 4294967294 and 4294967295 of the protocol, this client 10: "
		"upgrade this client");
	unsetenv("RMEMFS_WIRE");
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(spoken__its_own_and_the_one_before),
		cmocka_unit_test(spoken__nothing_before_the_first),
		cmocka_unit_test(own__is_that_of_the_release),
#ifdef RMEMFS_CRASH_POINTS
		cmocka_unit_test(refusal__names_both_and_the_one_to_upgrade),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
