/* The addresses that users write, right and wrong. Only numeric ones: no test asks a name
 * server. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/un.h>

#include <cmocka.h>

#include "common/transport/address.h"
#include "common/base/util.h"

static void check_listen(const char *text, enum transport_kind kind, const char *formatted)
{
	struct transport_address address;
	char why[256] = "", buf[128];

	assert_int_equal(address_parse_listen(text, &address, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	assert_int_equal(address.kind, kind);
	address_format(&address, buf, sizeof(buf));
	assert_string_equal(buf, formatted);
}

static void parse_listen__takes_each_kind(void **state)
{
	check_listen("tcp:127.0.0.1:7000", TRANSPORT_TCP, "127.0.0.1:7000");
	check_listen("tcp:127.0.0.1", TRANSPORT_TCP, "127.0.0.1:7470");
	check_listen("tcp:0.0.0.0:65535", TRANSPORT_TCP, "0.0.0.0:65535");
	check_listen("tcp:[::1]:7000", TRANSPORT_TCP, "[::1]:7000");
	check_listen("tcp:[::1]", TRANSPORT_TCP, "[::1]:7470");
	check_listen("verbs:10.9.0.1", TRANSPORT_VERBS, "10.9.0.1:7470");
	check_listen("verbs:10.9.0.1:18515", TRANSPORT_VERBS, "10.9.0.1:18515");
	check_listen("shm:/run/x/a.sock", TRANSPORT_SHM, "/run/x/a.sock");
}

static void parse_listen__refuses_and_says_why(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "must be verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH"},
		{"udp:1.2.3.4", "must be verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH"},
		{"tcp", "must be verbs:HOST[:PORT], tcp:HOST[:PORT] or shm:/PATH"},
		{"tcp:", "no host is named"},
		{"tcp::7470", "no host is named"},
		{"tcp:[]", "no host is named"},
		{"tcp:127.0.0.1:", "port '' is not in 1..65535"},
		{"tcp:127.0.0.1:0", "port '0' is not in 1..65535"},
		{"tcp:127.0.0.1:65536", "port '65536' is not in 1..65535"},
		{"tcp:127.0.0.1:99999999999", "port '99999999999' is not in 1..65535"},
		{"tcp:127.0.0.1:7a", "port '7a' is not in 1..65535"},
		{"tcp:127.0.0.1:-1", "port '-1' is not in 1..65535"},
		{"tcp:::1", "an IPv6 address stands in brackets, as in [::1]"},
		{"tcp:[::1", "an IPv6 address stands in brackets, as in [::1]"},
		{"tcp:[::1]x:5", "an IPv6 address stands in brackets, as in [::1]"},
		{"tcp:a]b", "'a]b' is no host"},
		{"shm:run/a", "a socket's path begins with /"},
		{"shm:", "a socket's path begins with /"},
	};
	struct transport_address address;
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			address_parse_listen(cases[i].text, &address, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

static void parse_listen__refuses_what_is_too_long(void **state)
{
	struct transport_address address;
	char text[512], why[256];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "shm:/", 5);
	text[200] = '\0';
	assert_int_equal(address_parse_listen(text, &address, why, sizeof(why)), -ENAMETOOLONG);
	assert_non_null(strstr(why, "a socket's path has at most 107 bytes"));
	memset(text + 200, 'a', sizeof(text) - 201);
	memcpy(text, "tcp:a", 5);
	assert_int_equal(address_parse_listen(text, &address, why, sizeof(why)), -ENAMETOOLONG);
	assert_string_equal(why, "a host's name has at most 255 bytes");
}

static void resolve__gives_address_and_port(void **state)
{
	struct transport_address address;
	const struct sockaddr_in *in = (const void *)&address.addr;
	char why[256];

	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "127.0.0.9", 81, &address, why, sizeof(why)), 0);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(ntohs(in->sin_port), 81);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0x7f000009);
	assert_int_equal(address.addrlen, sizeof(*in));
	assert_int_equal(
		address_resolve(TRANSPORT_VERBS, "127.0.0.9", 0, &address, why, sizeof(why)), 0);
	assert_int_equal(ntohs(in->sin_port), RMEMFS_DEFAULT_PORT);
}

static void resolve__localhost_is_where_servers_listen(void **state)
{
	struct transport_address address;
	char why[256], buf[128];

	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "localhost", 0, &address, why, sizeof(why)), 0);
	address_format(&address, buf, sizeof(buf));
	assert_string_equal(buf, "127.0.0.1:7470");
}

static void resolve__refuses_a_port_beyond_16_bits(void **state)
{
	struct transport_address address;
	char why[256];

	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "127.0.0.1", 65536, &address, why, sizeof(why)),
		-EINVAL);
	assert_string_equal(why, "port 65536 is not in 1..65535");
}

static void resolve__names_the_host_that_is_none(void **state)
{
	struct transport_address address;
	char why[256];

	/* No host name has a space, so the resolver asks no server. */
	assert_true(address_resolve(TRANSPORT_TCP, "no such", 0, &address, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "no such"));
}

static void check_source(const char *text, const char *host, const char *export_name)
{
	struct source source;
	char why[256] = "";

	assert_int_equal(address_parse_source(text, &source, why, sizeof(why)), 0);
	assert_string_equal(source.host, host);
	assert_string_equal(source.export_name, export_name);
}

static void parse_source__splits(void **state)
{
	check_source("box:/default", "box", "default");
	check_source("10.0.0.1:/a", "10.0.0.1", "a");
	check_source("[fe80::1%eth0]:/a", "fe80::1%eth0", "a");
	check_source("/run/rmemfs/server.sock:/a.b", "/run/rmemfs/server.sock", "a.b");
	check_source("/run/odd:/dir/s:/x", "/run/odd:/dir/s", "x");
}

static void parse_source__refuses_and_says_why(void **state)
{
	static const char with_port[] = "a source has no port: rmemfs takes it as -o port=, "
					"rmemfsctl as HOST:PORT without the export";
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "must be HOST:/EXPORT or /SOCKET:/EXPORT"},
		{"box", "must be HOST:/EXPORT or /SOCKET:/EXPORT"},
		{"box:default", "must be HOST:/EXPORT or /SOCKET:/EXPORT"},
		{"/some/path", "must be HOST:/EXPORT or /SOCKET:/EXPORT"},
		{"box:/", "no export is named after :/"},
		{":/a", "no host is named"},
		{"[]:/a", "no host is named"},
		{"box:/a/b", "an export's name has no /"},
		{"box:7470:/a", with_port},
		{"[::1]:7470:/a", with_port},
		{"::1:/a", "an IPv6 address stands in brackets, as in [::1]"},
	};
	struct source source;
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			address_parse_source(cases[i].text, &source, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

static void parse_source__bounds_both_parts(void **state)
{
	struct source source;
	char text[512], why[256];

	memset(text, 'a', sizeof(text));
	memcpy(text + 1, ":/", 2);
	text[3 + 63] = '\0';
	assert_int_equal(address_parse_source(text, &source, why, sizeof(why)), 0);
	assert_int_equal(strlen(source.export_name), 63);
	text[3 + 63] = 'a';
	text[3 + 64] = '\0';
	assert_int_equal(address_parse_source(text, &source, why, sizeof(why)), -ENAMETOOLONG);
	assert_string_equal(why, "an export's name has at most 63 bytes");

	memset(text, 'a', sizeof(text));
	memcpy(text + 256, ":/a", 4);
	assert_int_equal(address_parse_source(text, &source, why, sizeof(why)), -ENAMETOOLONG);
	text[0] = '/';
	assert_int_equal(address_parse_source(text, &source, why, sizeof(why)), -ENAMETOOLONG);
	assert_string_equal(why, "a socket's path has at most 107 bytes");
}

static bool is_local(enum transport_kind kind, const char *host)
{
	struct transport_address address;
	char why[256];

	assert_int_equal(address_resolve(kind, host, 0, &address, why, sizeof(why)), 0);
	return address_is_local(&address);
}

static void is_local__knows_this_machine(void **state)
{
	assert_true(is_local(TRANSPORT_TCP, "127.0.0.1"));
	assert_true(is_local(TRANSPORT_TCP, "127.44.0.1"));
	assert_true(is_local(TRANSPORT_TCP, "::1"));
	assert_true(is_local(TRANSPORT_SHM, "/run/a"));
	/* Documentation addresses, RFC 5737 and 3849: no machine has them. */
	assert_false(is_local(TRANSPORT_TCP, "192.0.2.1"));
	assert_false(is_local(TRANSPORT_TCP, "2001:db8::1"));
}

static void interface__that_has_the_address(void **state)
{
	char name[ADDRESS_INTERFACE_BYTES] = "none", why[256];
	struct transport_address address;

	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "192.0.2.1", 0, &address, why, sizeof(why)), 0);
	assert_false(address_interface(&address.addr, name));
	assert_false(address_is_loopback(&address));
	assert_string_equal(name, "none");
	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "127.0.0.1", 0, &address, why, sizeof(why)), 0);
	assert_true(address_is_loopback(&address));
	assert_true(address_interface(&address.addr, name));
	assert_string_equal(name, "lo");
}

static void format__is_cut_to_the_buffer(void **state)
{
	struct transport_address address;
	char why[256], buf[8];

	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "127.0.0.1", 1, &address, why, sizeof(why)), 0);
	address_format(&address, buf, sizeof(buf));
	assert_string_equal(buf, "127.0.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_listen__takes_each_kind),
		cmocka_unit_test(parse_listen__refuses_and_says_why),
		cmocka_unit_test(parse_listen__refuses_what_is_too_long),
		cmocka_unit_test(resolve__gives_address_and_port),
		cmocka_unit_test(resolve__localhost_is_where_servers_listen),
		cmocka_unit_test(resolve__refuses_a_port_beyond_16_bits),
		cmocka_unit_test(resolve__names_the_host_that_is_none),
		cmocka_unit_test(parse_source__splits),
		cmocka_unit_test(parse_source__refuses_and_says_why),
		cmocka_unit_test(parse_source__bounds_both_parts),
		cmocka_unit_test(is_local__knows_this_machine),
		cmocka_unit_test(interface__that_has_the_address),
		cmocka_unit_test(format__is_cut_to_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
