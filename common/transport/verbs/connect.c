/* connect.c - connections by the RDMA connection manager.
 *
 * The hellos of transport_ops.h travel as private data of the request and of its answer, also in a
 * refusal. Events of the manager are copied and acknowledged before they are handled, since an id
 * cannot be destroyed while one of its events is held. */
#include "common/transport/verbs/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "common/transport/address.h"
#include "common/base/util.h"

enum { LISTEN_BACKLOG = 128 };

/* Reasons of a rejection that we distinguish; the InfiniBand specification's numbers. */
enum { REJ_STALE_CONNECTION = 10, REJ_CONSUMER_DEFINED = 28 };

/* An event of the manager without its claims on the id. */
struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id, *listen_id;
	uint8_t read_depth_out, read_depth_in; /* from us, to us */
	uint8_t hello[TRANSPORT_HELLO_BYTES];
	bool has_hello;
};

static void set_peer(struct verbs_channel *ch)
{
	struct transport_address peer = {.kind = TRANSPORT_VERBS};
	struct sockaddr *sa = rdma_get_peer_addr(ch->id);
	char text[64];

	peer.addrlen = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						 : sizeof(struct sockaddr_in);
	memcpy(&peer.addr, sa, peer.addrlen);
	ch->base.peer_address = peer.addr;
	address_format(&peer, text, sizeof(text));
	snprintf(ch->base.peer, sizeof(ch->base.peer), "verbs %.63s on %.40s", text,
		ch->base.transport->device);
}

/* RoCE's own timeout is 2 s per lost packet. librdmacm accepts another one only before the route is
 * resolved, or before the connection is accepted. */
static void set_ack_timeout(struct verbs_channel *ch)
{
	static struct log_ratelimit limit;
	uint8_t timeout = (uint8_t)ch->base.transport->config.ack_timeout;

	if (rdma_set_option(ch->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
		    sizeof(timeout)) &&
		log_ratelimit_ok(&limit, VERBS_LOG_MS))
		log_warning("%s: cannot set the ACK timeout: %s", ch->base.peer, errno_text(errno));
}

/* ---- hellos ---------------------------------------------------------------------------------- */

static void hello_encode(
	const struct transport *t, uint32_t version, int status, uint8_t out[TRANSPORT_HELLO_BYTES])
{
	struct transport_hello hello = {
		.version = version,
		.msg_bytes = t->config.msg_bytes,
		.nrecv = t->config.nrecv,
		.nwork = t->config.nwork,
		.status = status,
	};

	transport_hello_encode(&hello, out);
}

/* Whether a server may log a line about this peer; a client's caller reports on its one server. */
static bool may_tell(const struct verbs_channel *ch)
{
	return ch->base.server && log_ratelimit_ok(&verbs_evq(ch->base.q)->strangers, VERBS_LOG_MS);
}

/* Settles the sizes with the peer's. Client: -EPROTO also for a version that it did not ask for. */
static int hello_settle(struct verbs_channel *ch, const struct cm_event *event)
{
	const struct transport_config *config = &ch->base.transport->config;
	struct channel_limits *limits = &ch->base.limits;
	struct transport_hello hello;

	if (transport_hello_decode(event->hello, &hello))
		return -EPROTO;
	ch->base.peer_version = hello.version;
	if (hello.version != ch->base.version)
		return -EPROTO;
	if (!hello.msg_bytes || !hello.nrecv || !hello.nwork)
		return -EPROTO;
	limits->msg_bytes = (uint32_t)min_u64(config->msg_bytes, hello.msg_bytes);
	limits->peer_nrecv = hello.nrecv;
	ch->max_works = (uint32_t)min_u64(config->nwork, hello.nwork);
	channel_keep_hello(&ch->base, !ch->base.server, event->hello);
	return 0;
}

static void reject_id(
	const struct transport *t, struct rdma_cm_id *id, uint32_t version, int status)
{
	uint8_t hello[TRANSPORT_HELLO_BYTES];

	hello_encode(t, version, status, hello);
	rdma_reject(id, hello, sizeof(hello));
}

/* ---- listening and accepting ----------------------------------------------------------------- */

/* Makes the shared receives. If the device can't, that is logged, and each channel gets receives of
 * its own. */
static void share_receives(struct verbs_evq *q)
{
	struct verbs_transport *t = verbs_transport(q->base.transport);
	int err;

	if (q->srq || !t->shares_receives)
		return;
	err = verbs_srq_new(t, &q->srq);
	if (!err)
		err = verbs_evq_watch_device(q);
	if (!err)
		return;
	log_warning(
		"verbs: %s makes no shared receive queue: %s; each channel gets receives of its "
		"own",
		t->base.device, errno_text(err));
	verbs_srq_delete(q->srq);
	q->srq = NULL;
}

int verbs_probe(struct transport *base, const struct transport_address *address)
{
	struct verbs_transport *t = verbs_transport(base);
	struct sockaddr_storage addr = address->addr;
	struct rdma_cm_id *id;
	int err = 0;

	if (rdma_create_id(t->cm, &id, NULL, RDMA_PS_TCP))
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		err = -errno;
	else if (id->verbs != t->context)
		err = -ENODEV;
	rdma_destroy_id(id);
	return err;
}

int verbs_listen(struct evq *base, const struct transport_address *address, struct listener **out)
{
	struct verbs_evq *q = verbs_evq(base);
	struct verbs_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage addr = address->addr;
	int err;

	if (!l)
		return -ENOMEM;
	/* The listener's id has no context, which distinguishes its events from a channel's. */
	if (rdma_create_id(q->cm, &l->id, NULL, RDMA_PS_TCP)) {
		err = -errno;
		goto err_free;
	}
	if (rdma_bind_addr(l->id, (struct sockaddr *)&addr) || rdma_listen(l->id, LISTEN_BACKLOG)) {
		err = -errno;
		goto err_id;
	}
	if (l->id->verbs != verbs_transport(base->transport)->context) {
		err = -ENODEV;
		goto err_id;
	}
	l->base.address = *address;
	memcpy(&l->base.address.addr, rdma_get_local_addr(l->id), address->addrlen);
	share_receives(q);
	*out = &l->base;
	return 0;

err_id:
	rdma_destroy_id(l->id);
err_free:
	free(l);
	return err;
}

void verbs_listener_delete(struct listener *base)
{
	struct verbs_listener *l = container_of(base, struct verbs_listener, base);
	struct verbs_evq *q = verbs_evq(base->q);

	/* Channels that the caller has not seen yet are still ours. */
	list_for_each_safe (node, &q->ready) {
		struct verbs_channel *ch = list_entry(node, struct verbs_channel, ready_node);

		if ((ch->pending & PENDING_INCOMING) && ch->listen_id == l->id)
			verbs_reject(&ch->base);
	}
	rdma_destroy_id(l->id);
	free(l);
}

static void tell_unspoken(const struct verbs_channel *ch, int err, const char *why)
{
	static struct log_ratelimit versions = {.burst = HELLO_LOG_BURST};

	if (err == -EPROTONOSUPPORT ? log_ratelimit_ok(&versions, HELLO_LOG_MS) : may_tell(ch))
		log_warning("%s: refused: %s", ch->base.peer, why);
}

static void incoming(struct verbs_evq *q, const struct cm_event *event)
{
	struct verbs_transport *t = verbs_transport(q->base.transport);
	struct verbs_channel *ch;
	char why[HELLO_WHY_BYTES];
	uint32_t version;
	int unspoken = transport_hello_judge(event->hello, &version, why);
	int err = verbs_channel_new(&q->base, true, CH_INCOMING, &ch);

	if (err) {
		reject_id(&t->base, event->id, version, err);
		rdma_destroy_id(event->id);
		return;
	}
	ch->id = event->id;
	ch->id->context = ch;
	ch->listen_id = event->listen_id;
	ch->phase = PHASE_INCOMING;
	ch->read_depth_out = (uint8_t)min_u64(t->read_depth_out, event->read_depth_out);
	ch->read_depth_in = (uint8_t)min_u64(t->read_depth_in, event->read_depth_in);
	set_peer(ch);
	ch->base.version = version;
	if (unspoken)
		tell_unspoken(ch, unspoken, why);
	err = unspoken ? -EPROTO : 0;
	if (!err)
		err = ch->id->verbs == t->context ? hello_settle(ch, event) : -ENODEV;
	if (err) {
		reject_id(&t->base, ch->id, version, err);
		verbs_channel_free(ch);
		return;
	}
	ch->pending = PENDING_INCOMING;
	verbs_evq_ready(ch);
}

static struct rdma_conn_param conn_param(
	const struct verbs_channel *ch, const uint8_t hello[TRANSPORT_HELLO_BYTES])
{
	return (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = TRANSPORT_HELLO_BYTES,
		.initiator_depth = ch->read_depth_out,
		.responder_resources = ch->read_depth_in,
		.retry_count = VERBS_RETRIES,
		.rnr_retry_count = VERBS_RNR_RETRIES,
	};
}

int verbs_accept(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);
	uint8_t hello[TRANSPORT_HELLO_BYTES] = {0};
	struct rdma_conn_param param = conn_param(ch, hello);
	int err;

	hello_encode(base->transport, base->version, 0, hello);
	channel_keep_hello(base, true, hello);
	set_ack_timeout(ch);
	err = verbs_channel_build(ch);
	if (err)
		return err;
	if (rdma_accept(ch->id, &param)) {
		err = -errno;
		verbs_channel_unbuild(ch);
		return err;
	}
	ch->phase = PHASE_CONNECTING;
	return 0;
}

void verbs_reject(struct channel *base)
{
	struct verbs_channel *ch = verbs_channel(base);

	reject_id(base->transport, ch->id, base->version, -ECONNREFUSED);
	verbs_channel_free(ch);
}

/* ---- connecting ------------------------------------------------------------------------------ */

int verbs_connect(struct evq *base, const struct transport_address *address, struct channel **out)
{
	struct verbs_evq *q = verbs_evq(base);
	struct sockaddr_storage addr = address->addr;
	struct verbs_channel *ch;
	int err = verbs_channel_new(base, false, CH_CONNECTING, &ch);

	if (err)
		return err;
	ch->phase = PHASE_CONNECTING;
	ch->read_depth_out = verbs_transport(base->transport)->read_depth_out;
	ch->read_depth_in = verbs_transport(base->transport)->read_depth_in;
	if (rdma_create_id(q->cm, &ch->id, ch, RDMA_PS_TCP)) {
		err = -errno;
		goto err_free;
	}
	set_ack_timeout(ch);
	if (rdma_resolve_addr(ch->id, NULL, (struct sockaddr *)&addr, VERBS_RESOLVE_MS)) {
		err = -errno;
		goto err_free;
	}
	set_peer(ch);
	*out = &ch->base;
	return 0;

err_free:
	verbs_channel_free(ch);
	return err;
}

static int address_resolved(struct verbs_channel *ch)
{
	if (ch->id->verbs != verbs_transport(ch->base.transport)->context)
		return -EHOSTUNREACH;
	return rdma_resolve_route(ch->id, VERBS_RESOLVE_MS) ? -errno : 0;
}

static int route_resolved(struct verbs_channel *ch)
{
	uint8_t hello[TRANSPORT_HELLO_BYTES] = {0};
	struct rdma_conn_param param = conn_param(ch, hello);
	int err;

	hello_encode(ch->base.transport, ch->base.version, 0, hello);
	channel_keep_hello(&ch->base, false, hello);
	err = verbs_channel_build(ch);
	if (err)
		return err;
	return rdma_connect(ch->id, &param) ? -errno : 0;
}

static int rejected(struct verbs_channel *ch, const struct cm_event *event)
{
	struct transport_hello hello;

	if (event->status == REJ_STALE_CONNECTION)
		return -ECONNRESET;
	if (event->status != REJ_CONSUMER_DEFINED || !event->has_hello)
		return -ECONNREFUSED;
	if (transport_hello_decode(event->hello, &hello))
		return -EPROTO;
	ch->base.peer_version = hello.version;
	if (hello.version != ch->base.version)
		return -EPROTO;
	return hello.status == -EPROTO ? -EPROTO : -ECONNREFUSED;
}

static int established(struct verbs_channel *ch, const struct cm_event *event)
{
	int err;

	if (!ch->base.server) {
		err = hello_settle(ch, event);
		if (err)
			return err;
		ch->read_depth_out = (uint8_t)min_u64(ch->read_depth_out, event->read_depth_out);
		if (!ch->read_depth_out) {
			log_warning("%s allows no READ", ch->base.peer);
			return -EPROTO;
		}
	}
	verbs_channel_opened(ch);
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int unreachable(const struct cm_event *event)
{
	return event->status == -ETIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH;
}

/* Returns 0 if the channel goes on, else the cause of its end. */
static int connecting_event(struct verbs_channel *ch, const struct cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return address_resolved(ch);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return route_resolved(ch);
	case RDMA_CM_EVENT_ESTABLISHED:
		return established(ch, event);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return unreachable(event);
	case RDMA_CM_EVENT_REJECTED:
		return rejected(ch, event);
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ECONNRESET;
	default:
		return 0;
	}
}

static void channel_event(struct verbs_channel *ch, const struct cm_event *event)
{
	int cause;

	if (ch->phase == PHASE_CONNECTING) {
		cause = connecting_event(ch, event);
		if (cause)
			verbs_channel_fail(ch, cause);
	} else if (ch->phase == PHASE_OPEN) {
		ch->hung_up = event->type == RDMA_CM_EVENT_DISCONNECTED;
		if (ch->hung_up)
			verbs_channel_fail(ch, 0);
		else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			verbs_channel_fail(ch, -ECONNRESET);
	}
}

/* In one of the two directions the manager names its parameters from the peer's side, but librdmacm
 * has swapped them already. */
static void copy_event(const struct rdma_cm_event *from, struct cm_event *to)
{
	const struct rdma_conn_param *conn = &from->param.conn;

	*to = (struct cm_event){.type = from->event,
		.status = from->status,
		.id = from->id,
		.listen_id = from->listen_id};
	if (from->event != RDMA_CM_EVENT_CONNECT_REQUEST &&
		from->event != RDMA_CM_EVENT_ESTABLISHED && from->event != RDMA_CM_EVENT_REJECTED)
		return;
	to->read_depth_out = conn->initiator_depth;
	to->read_depth_in = conn->responder_resources;
	/* Without one it is zeros, which have not the magic. */
	to->has_hello = conn->private_data && conn->private_data_len >= TRANSPORT_HELLO_BYTES;
	if (to->has_hello)
		memcpy(to->hello, conn->private_data, TRANSPORT_HELLO_BYTES);
}

int verbs_connect_poll(struct verbs_evq *q)
{
	struct rdma_cm_event *raw;
	struct cm_event event;

	while (rdma_get_cm_event(q->cm, &raw) == 0) {
		copy_event(raw, &event);
		rdma_ack_cm_event(raw);
		if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			incoming(q, &event);
		else if (event.id->context)
			channel_event(event.id->context, &event);
	}
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}
