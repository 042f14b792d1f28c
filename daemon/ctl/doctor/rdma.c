#include "daemon/ctl/doctor/rdma.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/doctor/procfile.h"
#include "daemon/ctl/doctor/quiet.h"

/* RoCE carries at most 4096 bytes of data a packet. Its headers take less than 104 more. */
enum { MTU_BEST = 4096, MTU_INTERFACE = 4200 };

/* ---- the judgement --------------------------------------------------------------------------- */

static const char *interface_or(const char *interface, const char *other)
{
	return interface[0] ? interface : other;
}

static bool judge_state(
	const char *name, const struct verbs_port *port, const char *interface, struct report *r)
{
	if (strcmp(port->state, "active") == 0)
		return true;
	report_found(r, VERDICT_WARNING, "%s is %s", name, port->state);
	if (port->ethernet) {
		report_cause(r, "its network interface is down, or has no link");
		report_remedy(r, "ip link set %s up; then check the cable: ethtool %s",
			interface_or(interface, "INTERFACE"), interface_or(interface, "INTERFACE"));
	} else {
		report_cause(r, "there is no link, or no subnet manager runs in this fabric");
		report_remedy(r,
			"check the cable; on one machine of the fabric: systemctl enable --now "
			"opensm");
	}
	return false;
}

static bool judge_gids(
	const char *name, const struct verbs_port *port, const char *interface, struct report *r)
{
	if (!port->ethernet || port->nrouted)
		return true;
	report_found(r, VERDICT_WARNING,
		"%s has no RoCE v2 GID of an address: %u of %u GIDs are "
		"RoCE v2",
		name, port->nroce_v2, port->ngids);
	report_cause(r, "its network interface has no IP address, or the device does RoCE v1 only");
	report_remedy(r, "ip addr add ADDRESS/24 dev %s", interface_or(interface, "INTERFACE"));
	return false;
}

static void judge_mtu(
	const char *name, const struct verbs_port *port, const char *interface, struct report *r)
{
	if (!port->active_mtu || port->active_mtu >= MTU_BEST || port->active_mtu >= port->max_mtu)
		return;
	report_found(r, VERDICT_WARNING, "%s sends packets of %u bytes; it could send %u", name,
		port->active_mtu, port->max_mtu);
	if (port->ethernet) {
		report_cause(r, "the interface's MTU is less than %d", MTU_INTERFACE);
		report_remedy(r,
			"ip link set %s mtu 9000, and the same at the switch and at the other end",
			interface_or(interface, "INTERFACE"));
	} else {
		report_cause(r, "the other end of the link, or the subnet manager, allows no more");
		report_remedy(r, "set the partition's MTU in the subnet manager: mtu=5 in "
				 "/etc/opensm/partitions.conf");
	}
}

/* True: a connection can go by this port. */
static bool judge_port(
	const struct verbs_device *device, unsigned index, const char *interface, struct report *r)
{
	const struct verbs_port *port = &device->ports[index];
	char name[VERBS_NAME_BYTES + 64];
	bool usable;

	snprintf(name, sizeof(name), "%s port %u%s%s", device->name, index + 1,
		interface[0] ? ", " : "", interface);
	usable = judge_state(name, port, interface, r) && judge_gids(name, port, interface, r);
	if (!usable)
		return false;
	report_found(r, VERDICT_OK, "%s: %s, active, MTU %u, %u Mbit/s, GID %s", name,
		port->ethernet ? "RoCE" : "InfiniBand", port->active_mtu, port->mbit, port->gid);
	judge_mtu(name, port, interface, r);
	return true;
}

static bool judge_kind(const struct verbs_device *device, struct report *r)
{
	if (device->err) {
		report_found(r, VERDICT_WARNING, "%s can't be opened: %s", device->name,
			errno_text(device->err));
		report_cause(r, device->err == -EACCES || device->err == -EPERM
					? "this user may not open /dev/infiniband/uverbs*"
					: "its driver, or the driver's library, does not answer");
		report_remedy(r, device->err == -EACCES || device->err == -EPERM
					 ? "chmod 666 /dev/infiniband/uverbs*; package rdma-core "
					   "has a udev rule for it"
					 : "apt-get install ibverbs-providers; then see dmesg");
		return false;
	}
	if (!device->iwarp && device->adapter)
		return true;
	report_found(r, VERDICT_WARNING, "%s is %s: rmemfs does not use it", device->name,
		device->iwarp ? "an iWARP device" : "no channel adapter");
	report_cause(r, device->iwarp ? "iWARP does not tell when a WRITE has arrived"
				      : "it is a switch, a router or a device of another kind");
	report_remedy(r, "mount with transport=tcp on this network");
	return false;
}

static bool judge_device(const struct verbs_device *device,
	const char interfaces[VERBS_PORTS_MAX][16], struct report *r)
{
	unsigned usable = 0;

	if (!judge_kind(device, r))
		return false;
	report_found(r, VERDICT_OK,
		"%s: node GUID %016llx, firmware %s; memory windows: %s; on-demand paging: %s",
		device->name, (unsigned long long)device->guid, device->firmware,
		device->windows ? "yes" : "no, each channel registers the regions anew",
		device->odp ? "yes (rmemfs does not use it)" : "no");
	for (unsigned i = 0; i < device->nports; i++)
		usable += judge_port(device, i, interfaces[i], r);
	return usable > 0;
}

static void judge_none(const struct rdma_seen *seen, struct report *r)
{
	if (!seen->nkernel && !seen->err) {
		report_found(r, VERDICT_NOTE,
			"no RDMA device: connections go over tcp, or on one machine over shm");
		return;
	}
	report_found(r, VERDICT_FAILURE,
		"the kernel has %u RDMA devices, and programs see none%s%s", seen->nkernel,
		seen->err ? ": " : "", seen->err ? errno_text(seen->err) : "");
	report_cause(r, "the module ib_uverbs is not loaded, or the device's library is missing");
	report_remedy(r, "modprobe ib_uverbs; apt-get install rdma-core ibverbs-providers");
}

unsigned rdma_judge(const struct rdma_seen *seen, struct report *r)
{
	unsigned usable = 0;

	if (!seen->n)
		judge_none(seen, r);
	for (unsigned i = 0; i < seen->nheld; i++)
		usable += judge_device(&seen->devices[i], seen->interfaces[i], r);
	if (seen->n > seen->nheld)
		report_found(r, VERDICT_NOTE, "%u more devices were not looked at",
			seen->n - seen->nheld);
	return usable;
}

/* ---- the probe ------------------------------------------------------------------------------- */

static void find_interfaces(struct rdma_seen *seen)
{
	char name[IF_NAMESIZE];

	for (unsigned i = 0; i < seen->nheld; i++)
		for (unsigned k = 0; k < seen->devices[i].nports; k++)
			if (if_indextoname(seen->devices[i].ports[k].interface, name))
				snprintf(seen->interfaces[i][k], sizeof(seen->interfaces[i][k]),
					"%s", name);
}

void rdma_check(struct doctor *d)
{
	autofree struct rdma_seen *seen = calloc(1, sizeof(*seen));

	if (!seen)
		return;
	quiet_begin();
	seen->nkernel = procfile_entries("/sys/class/infiniband");
	seen->err = verbs_inspect_devices(seen->devices, VERBS_DEVICES_MAX, &seen->n);
	seen->nheld = (unsigned)min_u64(seen->n, VERBS_DEVICES_MAX);
	find_interfaces(seen);
	d->ndevices = rdma_judge(seen, &d->report);
}
