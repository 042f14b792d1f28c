/* Addresses and networks that clients may come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "common/base/util.h"
#include "server/access/hosts.h"

static char must[256];

static struct host parsed(const char *text)
{
	struct host host;

	if (hosts_parse(text, &host, must, sizeof(must)))
		fail_msg("%s: %s", text, must);
	return host;
}

static void peer_of(const char *text, struct sockaddr_storage *peer)
{
	struct sockaddr_in *in = (void *)peer;
	struct sockaddr_in6 *in6 = (void *)peer;

	memset(peer, 0, sizeof(*peer));
	peer->ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (peer->ss_family == AF_INET)
		assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	else
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
}

static bool match(const char *network, const char *peer)
{
	struct sockaddr_storage address;
	struct host host = parsed(network);

	peer_of(peer, &address);
	return hosts_match(&host, 1, (const struct sockaddr *)&address);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void parse__takes_and_shortens(void **state)
{
	static const struct {
		const char *text, *format;
	} cases[] = {
		{"10.0.0.7", "10.0.0.7"},
		{"10.0.0.7/32", "10.0.0.7"},
		{"10.0.0.0/24", "10.0.0.0/24"},
		{"10.0.0.128/25", "10.0.0.128/25"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"128.0.0.0/1", "128.0.0.0/1"},
		{"::", "::"},
		{"::/0", "::/0"},
		{"2001:0DB8::0/32", "2001:db8::/32"},
		{"2001:db8::1/128", "2001:db8::1"},
		{"fe80::1", "fe80::1"},
		{"::ffff:10.0.0.7", "10.0.0.7"},
		{"::ffff:a00:0/104", "10.0.0.0/8"},
		{"::ffff:0:0/96", "0.0.0.0/0"},
		{"::ffff:0.0.0.0/97", "0.0.0.0/1"},
		{"0:0:0:0:0:ffff:255.255.255.255/128", "255.255.255.255"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"},
	};
	char format[HOSTS_TEXT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host host = parsed(cases[i].text), again;

		assert_string_equal(hosts_format(&host, format), cases[i].format);
		again = parsed(format);
		assert_int_equal(host.family, again.family);
		assert_int_equal(host.prefix, again.prefix);
		assert_memory_equal(host.bytes, again.bytes, sizeof(host.bytes));
	}
}

#define MUST_BE "must be an address or a network, as in 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32"
#define NO_NAME "host names are not looked up: " MUST_BE
#define BEHIND  "has bits behind its prefix: must be "

static void parse__refuses_and_says_why(void **state)
{
	static const struct {
		const char *text, *must;
	} cases[] = {
		{"", MUST_BE},
		{"/8", MUST_BE},
		{"*", MUST_BE "; leave hosts out for any address"},
		{"web1", NO_NAME},
		{"web1.example.net/24", NO_NAME},
		{"localhost", NO_NAME},
		{"10.0.0.x", NO_NAME},
		{"a-name-that-is-longer-than-any-address-of-the-world-can-be.example", NO_NAME},
		{"10.0.0", MUST_BE},
		{"10.0.0.256", MUST_BE},
		{"010.0.0.1", MUST_BE},
		{"10.0.0.1:7470", MUST_BE},
		{"1::2::3", MUST_BE},
		{"[::1]", "must have no brackets and no port"},
		{"[::1]:7470", "must have no brackets and no port"},
		{"fe80::1%eth0", "must have no zone: leave out the '%' and the rest"},
		{"10.0.0.0/", "must have a whole number from 0 to 32 after the '/'"},
		{"10.0.0.0/33", "must have a whole number from 0 to 32 after the '/'"},
		{"10.0.0.0/255.255.255.0", "must have a whole number from 0 to 32 after the '/'"},
		{"10.0.0.0/+8", "must have a whole number from 0 to 32 after the '/'"},
		{"10.0.0.0/8/8", "must have a whole number from 0 to 32 after the '/'"},
		{"10.0.0.0/4294967304", "must have a whole number from 0 to 32 after the '/'"},
		{"::/129", "must have a whole number from 0 to 128 after the '/'"},
		{"::/256", "must have a whole number from 0 to 128 after the '/'"},
		{"10.0.0.7/24", BEHIND "10.0.0.0/24 for the network, or 10.0.0.7 for the address"},
		{"10.0.0.129/25",
			BEHIND "10.0.0.128/25 for the network, or 10.0.0.129 for the address"},
		{"10.0.0.1/0", BEHIND "0.0.0.0/0 for the network, or 10.0.0.1 for the address"},
		{"2001:db8::1/32",
			BEHIND "2001:db8::/32 for the network, or 2001:db8::1 for the address"},
		{"::ffff:10.0.0.7/120",
			BEHIND "::ffff:10.0.0.0/120 for the network, or ::ffff:10.0.0.7 for the "
			       "address"},
		{"::ffff:0:0/80", BEHIND "::/80 for the network, or ::ffff:0:0 for the address"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host host = {.prefix = 77};

		if (!hosts_parse(cases[i].text, &host, must, sizeof(must)))
			fail_msg("taken: %s", cases[i].text);
		assert_string_equal(must, cases[i].must);
		assert_int_equal(host.prefix, 77);
	}
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void match__first_and_last_address_and_those_beside(void **state)
{
	assert_true(match("10.0.0.0/24", "10.0.0.0"));
	assert_true(match("10.0.0.0/24", "10.0.0.255"));
	assert_false(match("10.0.0.0/24", "10.0.1.0"));
	assert_false(match("10.0.0.0/24", "9.255.255.255"));
	assert_true(match("10.0.0.128/25", "10.0.0.128"));
	assert_false(match("10.0.0.128/25", "10.0.0.127"));
	assert_true(match("10.0.0.6/31", "10.0.0.7"));
	assert_false(match("10.0.0.6/31", "10.0.0.8"));
	assert_true(match("10.0.0.7", "10.0.0.7"));
	assert_false(match("10.0.0.7", "10.0.0.6"));
	assert_true(match("0.0.0.0/0", "255.255.255.255"));
	assert_true(match("0.0.0.0/1", "127.255.255.255"));
	assert_false(match("0.0.0.0/1", "128.0.0.0"));
	assert_true(match("2001:db8::/33", "2001:db8:7fff:ffff::1"));
	assert_false(match("2001:db8::/33", "2001:db8:8000::"));
	assert_true(match("2001:db8::1", "2001:db8::1"));
	assert_false(match("2001:db8::1", "2001:db8::2"));
	assert_true(match("::/0", "ffff::1"));
}

static void match__mapped_address_is_its_ipv4_address(void **state)
{
	assert_true(match("10.0.0.0/24", "::ffff:10.0.0.7"));
	assert_false(match("10.0.0.0/24", "::ffff:10.0.1.7"));
	assert_true(match("::ffff:10.0.0.0/120", "10.0.0.7"));
	assert_true(match("::ffff:10.0.0.0/120", "::ffff:10.0.0.7"));
	assert_true(match("0.0.0.0/0", "::ffff:1.2.3.4"));
}

static void match__families_have_nothing_in_common(void **state)
{
	assert_false(match("::/0", "10.0.0.7"));
	assert_false(match("::/0", "::ffff:10.0.0.7"));
	assert_false(match("::/80", "::ffff:10.0.0.7"));
	assert_false(match("0.0.0.0/0", "::1"));
	assert_false(match("0.0.0.0/0", "::10.0.0.7"));
	/* The same bytes. */
	assert_false(match("10.0.0.0/8", "a00::"));
	assert_false(match("a00::/8", "10.0.0.0"));
}

static void match__any_of_the_list(void **state)
{
	struct host list[] = {parsed("10.0.0.0/24"), parsed("2001:db8::/32"), parsed("10.9.0.2")};
	struct sockaddr_storage peer;

	peer_of("10.9.0.2", &peer);
	assert_true(hosts_match(list, 3, (const struct sockaddr *)&peer));
	assert_false(hosts_match(list, 2, (const struct sockaddr *)&peer));
	assert_false(hosts_match(list, 0, (const struct sockaddr *)&peer));
	peer_of("2001:db8::9", &peer);
	assert_true(hosts_match(list, 3, (const struct sockaddr *)&peer));
}

static void match__peer_without_an_address(void **state)
{
	struct host list[] = {parsed("0.0.0.0/0"), parsed("::/0")};
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	assert_false(hosts_match(list, 2, NULL));
	assert_false(hosts_match(list, 2, (const struct sockaddr *)&un));
}

/* The zone and the port say nothing of the host. */
static void match__ignores_zone_and_port(void **state)
{
	struct host host = parsed("fe80::/64");
	struct sockaddr_storage peer;

	peer_of("fe80::1", &peer);
	((struct sockaddr_in6 *)&peer)->sin6_scope_id = 3;
	((struct sockaddr_in6 *)&peer)->sin6_port = 7470;
	assert_true(hosts_match(&host, 1, (const struct sockaddr *)&peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__takes_and_shortens),
		cmocka_unit_test(parse__refuses_and_says_why),
		cmocka_unit_test(match__first_and_last_address_and_those_beside),
		cmocka_unit_test(match__mapped_address_is_its_ipv4_address),
		cmocka_unit_test(match__families_have_nothing_in_common),
		cmocka_unit_test(match__any_of_the_list),
		cmocka_unit_test(match__peer_without_an_address),
		cmocka_unit_test(match__ignores_zone_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
