/* inspect.c - see inspect.h. */
#include "common/transport/verbs/inspect.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "common/base/util.h"

enum { GIDS_MAX = 256 };

/* ---- devices --------------------------------------------------------------------------------- */

/* enum ibv_mtu counts from 256 bytes on. */
static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static const char *state_name(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_DOWN:
		return "down";
	case IBV_PORT_INIT:
		return "init";
	case IBV_PORT_ARMED:
		return "armed";
	case IBV_PORT_ACTIVE:
	case IBV_PORT_ACTIVE_DEFER:
		return "active";
	default:
		return "unknown";
	}
}

/* Each bit stands for a rate of one lane, and for a number of lanes (InfiniBand Architecture
 * Specification, PortInfo). */
static uint32_t rate_mbit(uint8_t speed, uint8_t width)
{
	static const struct {
		uint8_t bit;
		uint32_t value;
	} lanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
	  rates[] = {{1, 2500}, {2, 5000}, {4, 10000}, {8, 10000}, {16, 14000}, {32, 25000},
		  {64, 50000}, {128, 100000}};
	uint32_t n = 0, mbit = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lanes); i++)
		if (lanes[i].bit == width)
			n = lanes[i].value;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].bit == speed)
			mbit = rates[i].value;
	return n * mbit;
}

/* A GID of the link alone (fe80::/10) leads through no router. RoCE makes the others of the
 * interface's addresses. */
static bool is_routed(const union ibv_gid *gid)
{
	return !(gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80);
}

static void note_gid(const struct ibv_gid_entry *entry, struct verbs_port *port)
{
	bool v2 = entry->gid_type == IBV_GID_TYPE_ROCE_V2;
	bool routed = v2 && is_routed(&entry->gid);
	bool first = routed && !port->nrouted;

	port->ngids++;
	port->nroce_v2 += v2;
	port->nrouted += routed;
	if (entry->ndev_ifindex)
		port->interface = entry->ndev_ifindex;
	if (first || !port->gid[0])
		inet_ntop(AF_INET6, entry->gid.raw, port->gid, sizeof(port->gid));
}

static void inspect_gids(struct ibv_context *context, struct verbs_device *device)
{
	autofree struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
	ssize_t n = entries ? ibv_query_gid_table(context, entries, GIDS_MAX, 0) : 0;

	for (ssize_t i = 0; i < n; i++) {
		unsigned index = entries[i].port_num - 1;

		if (index < device->nports)
			note_gid(&entries[i], &device->ports[index]);
	}
}

static void inspect_port(struct ibv_context *context, uint8_t number, struct verbs_port *port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(context, number, &attr)) {
		snprintf(port->state, sizeof(port->state), "unknown");
		return;
	}
	snprintf(port->state, sizeof(port->state), "%s", state_name(attr.state));
	port->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->active_mtu = mtu_bytes(attr.active_mtu);
	port->max_mtu = mtu_bytes(attr.max_mtu);
	port->mbit = rate_mbit(attr.active_speed, attr.active_width);
}

static int inspect_context(struct ibv_context *context, struct verbs_device *device)
{
	const unsigned type2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(context, NULL, &attr))
		return -EIO;
	device->guid = be64toh(attr.orig_attr.node_guid);
	snprintf(device->firmware, sizeof(device->firmware), "%s", attr.orig_attr.fw_ver);
	device->windows = (attr.orig_attr.device_cap_flags & type2) && attr.orig_attr.max_mw > 0;
	device->odp = attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
	device->nports = (unsigned)min_u64(attr.orig_attr.phys_port_cnt, VERBS_PORTS_MAX);
	for (unsigned i = 0; i < device->nports; i++)
		inspect_port(context, (uint8_t)(i + 1), &device->ports[i]);
	inspect_gids(context, device);
	return 0;
}

static void inspect_device(struct ibv_device *from, struct verbs_device *device)
{
	struct ibv_context *context;

	*device = (struct verbs_device){
		.iwarp = from->transport_type == IBV_TRANSPORT_IWARP,
		.adapter = from->node_type == IBV_NODE_CA,
	};
	snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(from));
	context = ibv_open_device(from);
	if (!context) {
		device->err = errno ? -errno : -EIO;
		return;
	}
	device->err = inspect_context(context, device);
	ibv_close_device(context);
}

int verbs_inspect_devices(struct verbs_device *devices, unsigned max, unsigned *n)
{
	int found = 0;
	struct ibv_device **list = ibv_get_device_list(&found);

	*n = 0;
	if (!list)
		return errno == ENOSYS ? 0 : -errno; /* ENOSYS: the kernel has no RDMA */
	for (unsigned i = 0; i < (unsigned)found && i < max; i++)
		inspect_device(list[i], &devices[i]);
	*n = (unsigned)found;
	ibv_free_device_list(list);
	return 0;
}

/* ---- the way to a peer ----------------------------------------------------------------------- */

static int await(struct rdma_event_channel *cm, enum rdma_cm_event_type want, int timeout_ms)
{
	struct pollfd pfd = {.fd = cm->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int n = poll(&pfd, 1, timeout_ms), err;

	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	if (rdma_get_cm_event(cm, &event))
		return -errno;
	err = event->event == want ? 0 : event->status < 0 ? event->status : -EHOSTUNREACH;
	rdma_ack_cm_event(event);
	return err;
}

static int resolve(struct rdma_event_channel *cm, struct rdma_cm_id *id,
	const struct transport_address *address, int timeout_ms, struct verbs_path *path)
{
	struct sockaddr_storage addr = address->addr;
	int err;

	path->step = VERBS_STEP_ADDRESS;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, timeout_ms))
		return -errno;
	err = await(cm, RDMA_CM_EVENT_ADDR_RESOLVED, timeout_ms);
	if (err)
		return err;
	if (!id->verbs)
		return -ENODEV;
	snprintf(path->device, sizeof(path->device), "%s", ibv_get_device_name(id->verbs->device));
	path->port = id->port_num;
	path->step = VERBS_STEP_ROUTE;
	if (rdma_resolve_route(id, timeout_ms))
		return -errno;
	err = await(cm, RDMA_CM_EVENT_ROUTE_RESOLVED, timeout_ms);
	if (err)
		return err;
	if (id->route.num_paths > 0)
		path->mtu = mtu_bytes((enum ibv_mtu)id->route.path_rec[0].mtu);
	path->step = VERBS_STEP_DONE;
	return 0;
}

bool verbs_any_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

int verbs_inspect_path(
	const struct transport_address *address, int timeout_ms, struct verbs_path *path)
{
	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	int err;

	*path = (struct verbs_path){.step = VERBS_STEP_MANAGER};
	if (!verbs_any_device())
		return -ENODEV;
	cm = rdma_create_event_channel();
	if (!cm)
		return errno ? -errno : -ENODEV;
	err = rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) ? -errno : 0;
	if (!err) {
		err = resolve(cm, id, address, timeout_ms, path);
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(cm);
	return err;
}
