/* open.c - the device behind an address, what it can do, and the table of operations. */
#include "common/transport/verbs/inspect.h"
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>

#include "common/base/util.h"

/* A client with transport=auto opens the device each minute. */
static struct log_change refusal = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits for one event of the transport's id. */
static int cm_await(struct rdma_event_channel *cm, enum rdma_cm_event_type want, int timeout_ms)
{
	struct pollfd pfd = {.fd = cm->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int n, err;

	do
		n = poll(&pfd, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	if (rdma_get_cm_event(cm, &event))
		return -errno;
	err = event->event == want ? 0 : event->status < 0 ? event->status : -EHOSTUNREACH;
	rdma_ack_cm_event(event);
	return err;
}

/* A server's own address finds its device by binding, a peer's by resolving the route. */
static int bind_device(
	struct verbs_transport *t, const struct transport_address *address, int timeout_ms)
{
	struct sockaddr_storage addr = address->addr;
	struct sockaddr *sa = (struct sockaddr *)&addr;
	int err;

	if (addr.ss_family == AF_INET)
		((struct sockaddr_in *)&addr)->sin_port = 0;
	else if (addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr)->sin6_port = 0;
	else
		return -EINVAL;
	/* Bound without a device: any address, or one of another interface of ours. */
	if (rdma_bind_addr(t->id, sa) == 0)
		return t->id->verbs ? 0 : -ENODEV;
	if (rdma_resolve_addr(t->id, NULL, sa, timeout_ms))
		return -errno;
	err = cm_await(t->cm, RDMA_CM_EVENT_ADDR_RESOLVED, timeout_ms);
	if (err)
		return err;
	return t->id->verbs ? 0 : -ENODEV;
}

static uint8_t read_depth(int granted)
{
	return (uint8_t)min_u64(granted > 0 ? (uint64_t)granted : 0, RDMA_MAX_INIT_DEPTH - 1);
}

/* Windows are used only if every region of at least one channel can have one. An administrator may
 * switch them off, where a device's windows misbehave. */
static bool windows_usable(const struct verbs_transport *t)
{
	const unsigned type2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	const char *env = getenv("RMEMFS_VERBS_WINDOWS");

	return (t->device.device_cap_flags & type2) && t->device.max_mw > 0 &&
	       (uint32_t)t->device.max_mw >= t->base.config.max_regions &&
	       !(env && strcmp(env, "off") == 0);
}

/* Reduces the configuration to what a queue pair and a completion queue can hold. */
static int apply_depths(struct verbs_transport *t)
{
	struct transport_config *config = &t->base.config;
	uint32_t max_wr =
		(uint32_t)min_u64((uint64_t)t->device.max_qp_wr, (uint64_t)t->device.max_cqe / 2);
	uint32_t fixed = config->nsend + verbs_send_slack(config) + VERBS_NBIND + 1;

	if (config->nrecv + 1 > max_wr || fixed >= max_wr) {
		log_if_changed(&refusal, LOG_LEVEL_ERROR,
			"verbs: %s allows %u work requests a queue, %u receives and %u sends are "
			"configured; lower them",
			t->base.device, max_wr, config->nrecv, config->nsend);
		return -EOPNOTSUPP;
	}
	config->nwork = (uint32_t)min_u64(config->nwork, max_wr - fixed);
	return 0;
}

static int query_limits(struct verbs_transport *t)
{
	struct ibv_port_attr port;
	uint32_t sge;

	if (ibv_query_device(t->context, &t->device))
		return -EIO;
	if (ibv_query_port(t->context, t->id->port_num, &port))
		return -EIO;
	sge = (uint32_t)min_u64((uint64_t)t->device.max_sge, VERBS_MAX_SGE);
	t->max_sge_write = sge;
	t->max_sge_read = t->device.max_sge_rd > 0
				  ? (uint32_t)min_u64(sge, (uint64_t)t->device.max_sge_rd)
				  : sge;
	t->max_work_bytes = (uint32_t)min_u64(port.max_msg_sz, VERBS_MAX_WORK);
	t->read_depth_out = read_depth(t->device.max_qp_init_rd_atom);
	t->read_depth_in = read_depth(t->device.max_qp_rd_atom);
	t->windows = windows_usable(t);
	t->shares_receives = verbs_srq_usable(t);
	return apply_depths(t);
}

static int check_device(const struct verbs_transport *t)
{
	/* On iWARP a WRITE's completion says only that the local TCP has its bytes. */
	if (t->context->device->transport_type == IBV_TRANSPORT_IWARP) {
		log_if_changed(&refusal, LOG_LEVEL_ERROR,
			"verbs: %s is an iWARP device, which cannot tell when a WRITE has arrived; "
			"use tcp on this network",
			t->base.device);
		return -EOPNOTSUPP;
	}
	if (t->context->device->node_type != IBV_NODE_CA) {
		log_if_changed(&refusal, LOG_LEVEL_ERROR,
			"verbs: %s is no RDMA channel adapter; use tcp on this network",
			t->base.device);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int open_device(struct verbs_transport *t)
{
	int err;

	t->context = t->id->verbs;
	snprintf(t->base.device, sizeof(t->base.device), "%s",
		ibv_get_device_name(t->context->device));
	err = check_device(t);
	if (err)
		return err;
	err = query_limits(t);
	if (err)
		return err;
	t->pd = ibv_alloc_pd(t->context);
	if (!t->pd)
		return -errno;
	log_debug("verbs: %s port %u: %u SGEs (READ %u), %u READs in flight, %s, %s receives",
		t->base.device, t->id->port_num, t->max_sge_write, t->max_sge_read,
		t->read_depth_out, t->windows ? "memory windows" : "registration by channel",
		t->shares_receives ? "shared" : "the channels' own");
	return 0;
}

static int verbs_open(const struct transport_address *address,
	const struct transport_config *config, int timeout_ms, struct transport **out)
{
	struct verbs_transport *t;
	int err;

	if (!verbs_any_device())
		return -ENODEV;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base.config = *config;
	t->cm = rdma_create_event_channel();
	if (!t->cm) {
		err = errno == ENOENT ? -ENODEV : -errno;
		log_if_changed(&refusal, LOG_LEVEL_ERROR,
			"verbs: no connection manager: %s (modprobe rdma_ucm)", errno_text(err));
		goto err_free;
	}
	if (rdma_create_id(t->cm, &t->id, NULL, RDMA_PS_TCP)) {
		err = -errno;
		goto err_cm;
	}
	err = bind_device(t, address, timeout_ms);
	if (err)
		goto err_id;
	err = open_device(t);
	if (err)
		goto err_id;
	log_change_forget(&refusal);
	*out = &t->base;
	return 0;

err_id:
	rdma_destroy_id(t->id);
err_cm:
	rdma_destroy_event_channel(t->cm);
err_free:
	free(t);
	return err;
}

static void verbs_close(struct transport *base)
{
	struct verbs_transport *t = verbs_transport(base);

	ibv_dealloc_pd(t->pd);
	rdma_destroy_id(t->id);
	rdma_destroy_event_channel(t->cm);
	free(t);
}

const struct transport_ops verbs_transport_ops = {
	.kind = TRANSPORT_VERBS,
	.open = verbs_open,
	.close = verbs_close,
	.buffer_register = verbs_buffer_register,
	.buffer_deregister = verbs_buffer_deregister,
	.region_register = verbs_region_register,
	.region_deregister = verbs_region_deregister,
	.evq_new = verbs_evq_new,
	.evq_delete = verbs_evq_delete,
	.evq_poll = verbs_evq_poll,
	.evq_fd = verbs_evq_fd,
	.evq_arm = verbs_evq_arm,
	.probe = verbs_probe,
	.listen = verbs_listen,
	.listener_delete = verbs_listener_delete,
	.connect = verbs_connect,
	.accept = verbs_accept,
	.reject = verbs_reject,
	.disconnect = verbs_disconnect,
	.delete = verbs_delete,
	.fence = verbs_fence,
	.send_buffer = verbs_send_buffer,
	.send_cancel = verbs_send_cancel,
	.send = verbs_send,
	.protect = verbs_protect,
	.protection = CHANNEL_MESSAGES,
	.worn = verbs_worn,
	.recv_done = verbs_recv_done,
	.publish = verbs_publish,
	.keys_left = verbs_keys_left,
	.post = verbs_post,
};
