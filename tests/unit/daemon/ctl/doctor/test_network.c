/* Judgements of the route, and of packets of full size. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>

#include "daemon/ctl/doctor/network.h"

static void route__found(void **state)
{
	const struct network_route route = {.peer = "10.0.0.1:7470",
		.source = "10.0.0.2",
		.interface = "eth1",
		.mtu = 9000,
		.path_mtu = 9000,
		.mbit = 25000};

	network_judge_route(&route, judge_anew());
	assert_int_equal(judged.n, 2);
	assert_among(VERDICT_OK, "to 10.0.0.1:7470 by eth1 from 10.0.0.2, MTU 9000", NULL);
	assert_among(VERDICT_OK, "25000 Mbit/s", NULL);
}

static void route__to_this_machine(void **state)
{
	const struct network_route route = {.peer = "127.0.0.1:7470", .local = true};

	network_judge_route(&route, judge_anew());
	assert_judged(VERDICT_OK, "of this machine", NULL);
}

static void route__missing(void **state)
{
	const struct network_route route = {.peer = "10.0.0.1:7470", .err = -ENETUNREACH};

	network_judge_route(&route, judge_anew());
	assert_judged(VERDICT_FAILURE, "Network is unreachable", "ip route get");
}

static void route__with_a_narrow_place(void **state)
{
	const struct network_route route = {
		.peer = "10.0.0.1:7470", .interface = "eth1", .mtu = 9000, .path_mtu = 1400};

	network_judge_route(&route, judge_anew());
	assert_among(VERDICT_WARNING, "packets of 1400 bytes", "MTU of the smallest");
}

static void packets__arrive(void **state)
{
	const struct network_packets packets = {
		.interface = "eth1", .mtu = 9000, .small = PACKET_ARRIVED, .full = PACKET_ARRIVED};

	network_judge_packets(&packets, judge_anew());
	assert_judged(VERDICT_OK, "packets of 9000 bytes, the MTU of eth1, arrive", NULL);
}

static void packets__get_lost(void **state)
{
	const struct network_packets packets = {.interface = "eth1",
		.mtu = 9000,
		.small = PACKET_ARRIVED,
		.full = PACKET_SILENCE,
		.largest = 1500};

	network_judge_packets(&packets, judge_anew());
	assert_judged(VERDICT_FAILURE, "1500 bytes arrive", "ip link set eth1 mtu 1500; or give each switch between");
	assert_has(judged.findings[0].remedy, "ip link set eth1 mtu 1500");
}

static void packets__are_refused_on_the_way(void **state)
{
	const struct network_packets packets = {.interface = "eth1",
		.mtu = 9000,
		.small = PACKET_ARRIVED,
		.full = PACKET_TOO_BIG,
		.path_mtu = 1500};

	network_judge_packets(&packets, judge_anew());
	assert_judged(VERDICT_WARNING, "the way takes 1500", "ip link set eth1 mtu 1500");
}

static void packets__are_not_answered(void **state)
{
	const struct network_packets packets = {.interface = "eth1", .mtu = 9000};

	network_judge_packets(&packets, judge_anew());
	assert_judged(VERDICT_NOTE, "not measured", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(route__found),
		cmocka_unit_test(route__to_this_machine),
		cmocka_unit_test(route__missing),
		cmocka_unit_test(route__with_a_narrow_place),
		cmocka_unit_test(packets__arrive),
		cmocka_unit_test(packets__get_lost),
		cmocka_unit_test(packets__are_refused_on_the_way),
		cmocka_unit_test(packets__are_not_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
