/* test_auth_budget.c - handshakes are charged, and given back when they succeed. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "server/session/auth_budget.h"

static struct auth_budget budget;
enum { NOW = 1000000 };

static int empty(void **state)
{
	memset(&budget, 0, sizeof(budget));
	return 0;
}

static struct sockaddr_storage v4(uint32_t number)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 + number);
	in->sin_port = htons((uint16_t)(1000 + number));
	return a;
}

static struct sockaddr_storage v6(const char *text)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;

	in6->sin6_family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	return a;
}

static bool takes(const struct sockaddr_storage *a, int64_t now)
{
	int64_t again = -1;
	bool taken = auth_budget_take(&budget, a, now, &again);

	assert_int_equal(taken, again == -1);
	assert_true(taken || again > now);
	return taken;
}

static unsigned taken_in_a_row(const struct sockaddr_storage *a, int64_t now)
{
	unsigned n = 0;

	while (n < 1000 && takes(a, now))
		n++;
	return n;
}

static void take__a_burst_of_one_address_then_so_many_a_second(void **state)
{
	struct sockaddr_storage a = v4(1);

	assert_int_equal(taken_in_a_row(&a, NOW), AUTH_BUDGET_BURST);
	assert_int_equal(taken_in_a_row(&a, NOW + 1000), AUTH_BUDGET_ADDRESS);
	assert_int_equal(taken_in_a_row(&a, NOW + 1040), 0);
	assert_int_equal(taken_in_a_row(&a, NOW + 3600000), AUTH_BUDGET_BURST);
}

static void take__tells_when_to_come_again(void **state)
{
	struct sockaddr_storage a = v4(1);
	int64_t again;

	taken_in_a_row(&a, NOW);
	assert_false(auth_budget_take(&budget, &a, NOW, &again));
	assert_false(takes(&a, again - 2));
	assert_true(takes(&a, again));
}

static void take__of_many_addresses__is_bounded_in_all(void **state)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < 2000; i++) {
		struct sockaddr_storage a = v4(i);

		n += takes(&a, NOW);
	}
	assert_int_equal(n, AUTH_BUDGET_BURST);
	for (uint32_t i = 0; i < 2000; i++) {
		struct sockaddr_storage a = v4(10000 + i);

		n += takes(&a, NOW + i);
	}
	assert_true(n >= AUTH_BUDGET_BURST + 2 * AUTH_BUDGET_ALL - 1);
	assert_true(n <= AUTH_BUDGET_BURST + 2 * AUTH_BUDGET_ALL + 1);
}

static void give_back__as_many_as_succeed(void **state)
{
	struct sockaddr_storage a = v4(1);

	for (unsigned i = 0; i < 1024; i++) {
		assert_true(takes(&a, NOW));
		auth_budget_give_back(&budget, &a, NOW);
	}
}

/* Two thousand addresses ask as fast as they may, and are forgotten in turn. */
static void known__is_let_in_beside_a_crowd(void **state)
{
	struct sockaddr_storage friend = v4(1);

	assert_true(takes(&friend, NOW));
	auth_budget_give_back(&budget, &friend, NOW);
	for (uint32_t i = 0; i < 2000; i++) {
		struct sockaddr_storage a = v4(10000 + i);

		takes(&a, NOW + 1000);
	}
	assert_int_equal(taken_in_a_row(&friend, NOW + 1000), AUTH_BUDGET_BURST);
}

static void known__for_a_day(void **state)
{
	struct sockaddr_storage friend = v4(1), other = v4(2);

	assert_true(takes(&friend, NOW));
	auth_budget_give_back(&budget, &friend, NOW);
	taken_in_a_row(&other, NOW + AUTH_BUDGET_KNOWN_MS);
	assert_false(takes(&friend, NOW + AUTH_BUDGET_KNOWN_MS));
}

static void address__of_ipv6_is_its_network(void **state)
{
	struct sockaddr_storage a = v6("2001:db8:1:2::1"), b = v6("2001:db8:1:2:ffff::9");
	struct sockaddr_storage c = v6("2001:db8:1:3::1");

	auth_budget_give_back(&budget, &c, NOW); /* known: the bound of all is not its affair */
	assert_int_equal(taken_in_a_row(&a, NOW), AUTH_BUDGET_BURST);
	assert_false(takes(&b, NOW));
	assert_true(takes(&c, NOW));
}

static void address__of_ipv4_may_be_mapped(void **state)
{
	struct sockaddr_storage a = v4(1), mapped = v6("::ffff:10.0.0.1");

	assert_int_equal(taken_in_a_row(&a, NOW), AUTH_BUDGET_BURST);
	assert_false(takes(&mapped, NOW));
}

#define CASE(name) cmocka_unit_test_setup(name, empty)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(take__a_burst_of_one_address_then_so_many_a_second),
		CASE(take__tells_when_to_come_again),
		CASE(take__of_many_addresses__is_bounded_in_all),
		CASE(give_back__as_many_as_succeed),
		CASE(known__is_let_in_beside_a_crowd),
		CASE(known__for_a_day),
		CASE(address__of_ipv6_is_its_network),
		CASE(address__of_ipv4_may_be_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
