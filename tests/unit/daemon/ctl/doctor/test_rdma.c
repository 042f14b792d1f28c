/* Judgements of RDMA devices. */
#include "tests/unit/daemon/ctl/doctor/judged.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/ctl/doctor/rdma.h"

static struct rdma_seen seen;

/* One device as it should be: RoCE v2 with an address, and packets of 4096 bytes. */
static struct verbs_port *one_good_device(void)
{
	struct verbs_device *device = &seen.devices[0];

	memset(&seen, 0, sizeof(seen));
	seen.n = seen.nheld = seen.nkernel = 1;
	*device = (struct verbs_device){
		.name = "mlx5_0",
		.guid = 0x9803,
		.firmware = "16.35",
		.adapter = true,
		.windows = true,
		.nports = 1,
		.ports = {{.ethernet = true,
			.state = "active",
			.active_mtu = 4096,
			.max_mtu = 4096,
			.mbit = 100000,
			.ngids = 4,
			.nroce_v2 = 2,
			.nrouted = 1,
			.gid = "::ffff:10.0.0.1"}},
	};
	snprintf(seen.interfaces[0][0], sizeof(seen.interfaces[0][0]), "eth1");
	return &device->ports[0];
}

static void judge__a_good_device(void **state)
{
	one_good_device();
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
	assert_int_equal(judged.n, 2);
	assert_among(VERDICT_OK, "node GUID 0000000000009803", NULL);
	assert_among(VERDICT_OK,
		"mlx5_0 port 1, eth1: RoCE, active, MTU 4096, 100000 Mbit/s, GID ::ffff:10.0.0.1",
		NULL);
}

static void judge__no_device(void **state)
{
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_NOTE, "no RDMA device", NULL);
}

static void judge__device_that_programs_do_not_see(void **state)
{
	memset(&seen, 0, sizeof(seen));
	seen.nkernel = 1;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_FAILURE, "programs see none", "modprobe ib_uverbs");
}

static void judge__port_that_is_down(void **state)
{
	struct verbs_port *port = one_good_device();

	strcpy(port->state, "down");
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_among(VERDICT_WARNING, "is down", "ip link set eth1 up");
	port->ethernet = false;
	strcpy(port->state, "init");
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_among(VERDICT_WARNING, "is init", "opensm");
}

static void judge__port_without_an_address(void **state)
{
	struct verbs_port *port = one_good_device();

	port->nrouted = 0;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_among(VERDICT_WARNING, "2 of 4 GIDs", "ip addr add ADDRESS/24 dev eth1");
	/* InfiniBand has GIDs of its own. */
	port->ethernet = false;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
}

static void judge__small_packets(void **state)
{
	struct verbs_port *port = one_good_device();

	port->active_mtu = 1024;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
	assert_among(VERDICT_WARNING, "packets of 1024 bytes", "ip link set eth1 mtu 9000");
	port->ethernet = false;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
	assert_among(VERDICT_WARNING, "packets of 1024 bytes", "partitions.conf");
	/* It can do no more. */
	port->max_mtu = 1024;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
	assert_int_equal(report_count(&judged, VERDICT_WARNING), 0);
}

static void judge__devices_of_no_use(void **state)
{
	one_good_device();
	seen.devices[0].iwarp = true;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_WARNING, "an iWARP device", "transport=tcp");
	seen.devices[0].iwarp = false;
	seen.devices[0].adapter = false;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_WARNING, "no channel adapter", "transport=tcp");
	seen.devices[0].err = -EACCES;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_WARNING, "can't be opened", "chmod 666 /dev/infiniband");
	seen.devices[0].err = -ENODEV;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 0);
	assert_judged(VERDICT_WARNING, "can't be opened", "ibverbs-providers");
}

static void judge__more_devices_than_places(void **state)
{
	one_good_device();
	seen.n = 3;
	assert_int_equal(rdma_judge(&seen, judge_anew()), 1);
	assert_among(VERDICT_NOTE, "2 more devices", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__a_good_device),
		cmocka_unit_test(judge__no_device),
		cmocka_unit_test(judge__device_that_programs_do_not_see),
		cmocka_unit_test(judge__port_that_is_down),
		cmocka_unit_test(judge__port_without_an_address),
		cmocka_unit_test(judge__small_packets),
		cmocka_unit_test(judge__devices_of_no_use),
		cmocka_unit_test(judge__more_devices_than_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
