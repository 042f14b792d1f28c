/* transport.c - the wrapper around the table of transport_ops.h. It checks and counts, once for all
 * implementations, everything that the contract in transport.h forbids or counts. */
#include "common/transport/transport_ops.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/crash_point.h"
#include "common/transport/fence_off.h"
#include "common/base/types.h"
#include "common/base/util.h"
#include "common/rpc/wire_version.h"

/* Bounds for a configuration: enough for any use, and their sums fit 32 bits. */
enum {
	MSG_BYTES_MIN = 64,
	MSG_BYTES_MAX = 1 << 20,
	DEPTH_MAX = 1 << 15,
	REGIONS_MAX = 1 << 16,
	IO_THREADS_MAX = 256,
};

const char *transport_kind_name(enum transport_kind kind)
{
	static const char *const names[TRANSPORT_NKINDS] = {
		[TRANSPORT_VERBS] = "verbs",
		[TRANSPORT_TCP] = "tcp",
		[TRANSPORT_SHM] = "shm",
	};

	return (unsigned)kind < TRANSPORT_NKINDS ? names[kind] : "unknown";
}

/* ---- transport and memory -------------------------------------------------------------------- */

void transport_config_default(struct transport_config *config)
{
	*config = (struct transport_config){
		.msg_bytes = 16384,
		.nrecv = 64,
		.nsend = 64,
		.nwork = 256,
		.max_regions = EXPORT_REGIONS_MAX,
		.io_threads = 1,
		.ack_timeout = 14,
	};
}

static bool depth_ok(uint32_t depth)
{
	return depth >= 1 && depth <= DEPTH_MAX;
}

static bool config_ok(const struct transport_config *config)
{
	return config->msg_bytes >= MSG_BYTES_MIN && config->msg_bytes <= MSG_BYTES_MAX &&
	       depth_ok(config->nrecv) && depth_ok(config->nsend) && depth_ok(config->nwork) &&
	       config->max_regions >= 1 && config->max_regions <= REGIONS_MAX &&
	       config->io_threads <= IO_THREADS_MAX;
}

int transport_open_with(const struct transport_ops *ops, const struct transport_address *address,
	const struct transport_config *config, int timeout_ms, struct transport **out)
{
	struct transport *t = NULL;
	int err;

	if (!config_ok(config))
		return -EINVAL;
	err = ops->open(address, config, timeout_ms, &t);
	if (err)
		return err;
	assert(t->config.msg_bytes);
	t->ops = ops;
	t->address = *address;
	if (!t->device[0])
		snprintf(t->device, sizeof(t->device), "%s", transport_kind_name(address->kind));
	*out = t;
	return 0;
}

void transport_close(struct transport *t)
{
	if (t)
		t->ops->close(t);
}

enum transport_kind transport_kind_of(const struct transport *t)
{
	return t->ops->kind;
}

const char *transport_device(const struct transport *t)
{
	return t->device;
}

bool transport_memory_ok(const void *addr, uint64_t len)
{
	return addr && len && len <= UINTPTR_MAX - (uintptr_t)addr;
}

int region_register(
	struct transport *t, int fd, int rofd, void *addr, uint64_t len, struct region **out)
{
	struct region *r = NULL;
	int err;

	if (!transport_memory_ok(addr, len))
		return -EINVAL;
	err = t->ops->region_register(t, fd, rofd, addr, len, &r);
	if (err)
		return err;
	r->transport = t;
	r->fd = fd;
	r->rofd = rofd;
	r->addr = addr;
	r->len = len;
	*out = r;
	return 0;
}

void region_deregister(struct region *r)
{
	if (r)
		r->transport->ops->region_deregister(r);
}

/* ---- events ---------------------------------------------------------------------------------- */

int evq_new(struct transport *t, struct evq **out)
{
	struct evq *q = NULL;
	int err = t->ops->evq_new(t, &q);

	if (err)
		return err;
	q->transport = t;
	*out = q;
	return 0;
}

void evq_delete(struct evq *q)
{
	if (!q)
		return;
	fence_off_end(q);
	q->transport->ops->evq_delete(q);
}

/* Applies the event to its channel's state; false: the caller shall not see the event. */
static bool event_apply(const struct event *event)
{
	struct channel *ch = event->channel;

	if (ch->state >= CH_FENCING && event->type != EV_FENCED)
		return false;
	switch (event->type) {
	case EV_OPEN:
		ch->state = CH_OPEN;
		break;
	case EV_CLOSED:
		ch->state = CH_CLOSED;
		break;
	case EV_FENCED:
		ch->state = CH_FENCED;
		break;
	case EV_RECV:
		ch->counters.recvs++;
		ch->counters.recv_bytes += event->len;
		ch->held++;
		break;
	case EV_INCOMING:
	case EV_DONE:
		break;
	}
	return true;
}

static int keep_events(struct event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (!event_apply(&events[i]))
			continue;
		if (kept != i)
			events[kept] = events[i];
		kept++;
	}
	return kept;
}

/* If all events of a round are hidden from the caller, it polls again: there may be more, and a
 * caller that gets 0 goes to sleep. */
int evq_poll(struct evq *q, struct event *events, int max)
{
	int n, kept;

	do {
		n = q->transport->ops->evq_poll(q, events, max);
		if (n < 0)
			return n;
		n += fence_off_poll(q, events + n, max - n);
		kept = keep_events(events, n);
	} while (n && !kept);
	return kept;
}

bool evq_pending(const struct evq *q)
{
	return !q->transport->ops->evq_pending || q->transport->ops->evq_pending(q);
}

int evq_fd(const struct evq *q)
{
	return q->transport->ops->evq_fd(q);
}

int evq_arm(struct evq *q)
{
	return q->transport->ops->evq_arm(q);
}

/* ---- channels -------------------------------------------------------------------------------- */

int transport_probe(struct transport *t, const struct transport_address *address)
{
	return address->kind == t->ops->kind ? t->ops->probe(t, address) : -EINVAL;
}

int transport_listen(struct evq *q, const struct transport_address *address, struct listener **out)
{
	struct listener *l = NULL;
	int err;

	if (address->kind != q->transport->ops->kind)
		return -EINVAL;
	err = q->transport->ops->listen(q, address, &l);
	if (err)
		return err;
	l->q = q;
	if (!l->address.addrlen)
		l->address = *address;
	*out = l;
	return 0;
}

const struct transport_address *listener_address(const struct listener *l)
{
	return &l->address;
}

void listener_delete(struct listener *l)
{
	if (l)
		l->q->transport->ops->listener_delete(l);
}

int channel_base_init(struct channel *ch, struct evq *q, bool server, enum channel_state state)
{
	if (!server) {
		ch->keys = calloc(q->transport->config.max_regions, sizeof(*ch->keys));
		if (!ch->keys)
			return -ENOMEM;
	}
	ch->transport = q->transport;
	ch->q = q;
	ch->server = server;
	ch->state = state;
	ch->version = wire_version();
	return 0;
}

void channel_base_fini(struct channel *ch)
{
	free(ch->keys);
	ch->keys = NULL;
}

int channel_connect(struct evq *q, const struct transport_address *address, struct channel **out)
{
	if (address->kind != q->transport->ops->kind)
		return -EINVAL;
	return q->transport->ops->connect(q, address, out);
}

int channel_accept(struct channel *ch)
{
	int err;

	assert(ch->state == CH_INCOMING);
	err = ch->transport->ops->accept(ch);
	if (!err)
		ch->state = CH_CONNECTING;
	return err;
}

void channel_reject(struct channel *ch)
{
	assert(ch->state == CH_INCOMING);
	ch->transport->ops->reject(ch);
}

void channel_ask_messages_only(struct channel *ch)
{
	assert(!ch->server && ch->state == CH_CONNECTING);
	ch->asks_messages_only = true;
}

void channel_ask_version(struct channel *ch, uint32_t version)
{
	assert(!ch->server && ch->state == CH_CONNECTING);
	ch->version = version;
}

uint32_t channel_version(const struct channel *ch)
{
	return ch->version;
}

void channel_set_user(struct channel *ch, void *user)
{
	ch->user = user;
}

void *channel_user(const struct channel *ch)
{
	return ch->user;
}

const char *channel_peer(const struct channel *ch)
{
	return ch->peer;
}

bool channel_peer_address(const struct channel *ch, struct sockaddr_storage *address)
{
	if (!ch->server || ch->transport->address.kind == TRANSPORT_SHM)
		return false;
	*address = ch->peer_address;
	return true;
}

int channel_protect(struct channel *ch, unsigned directions, const struct channel_keys *keys)
{
	int err = 0;

	if (ch->state != CH_OPEN)
		return -ENOTCONN;
	assert(!(ch->is_protected & directions));
	/* Only the peer's last plain message can be in the caller's hands. */
	if (directions & PROTECT_IN && ch->held > 1)
		return -EPROTO;
	if (ch->transport->ops->protect)
		err = ch->transport->ops->protect(ch, directions, keys);
	if (!err)
		ch->is_protected |= directions;
	return err;
}

enum channel_protection channel_protection(const struct channel *ch)
{
	if (!ch->transport->ops->protect)
		return CHANNEL_LOCAL;
	if (ch->is_protected != (PROTECT_IN | PROTECT_OUT))
		return CHANNEL_PLAIN;
	return ch->messages_only ? CHANNEL_MESSAGES : ch->transport->ops->protection;
}

bool channel_is_worn(const struct channel *ch)
{
	return ch->transport->ops->worn && ch->transport->ops->worn(ch);
}

const char *channel_protection_name(enum channel_protection protection)
{
	static const char *const names[] = {"plain", "messages", "all", "local"};

	return names[protection];
}

const char *channel_protection_note(enum channel_protection protection)
{
	static const char *const notes[] = {", nothing protected",
		", messages protected, file bytes plain", ", all bytes protected", ""};

	return notes[protection];
}

const uint8_t *channel_client_hello(const struct channel *ch)
{
	return ch->hellos[0];
}

const uint8_t *channel_server_hello(const struct channel *ch)
{
	return ch->hellos[1];
}

void channel_keep_hello(struct channel *ch, bool server, const uint8_t hello[TRANSPORT_HELLO_BYTES])
{
	memcpy(ch->hellos[server], hello, TRANSPORT_HELLO_BYTES);
}

uint64_t channel_progress(const struct channel *ch)
{
	return atomic_load_explicit(&ch->progress, memory_order_relaxed);
}

uint64_t channel_refused(const struct channel *ch)
{
	return atomic_load_explicit(&ch->refused, memory_order_relaxed);
}

uint32_t channel_peer_version(const struct channel *ch)
{
	return ch->peer_version;
}

int channel_peer_pid(const struct channel *ch)
{
	return ch->peer_pid;
}

bool channel_peer_uid(const struct channel *ch, uid_t *uid)
{
	*uid = ch->peer_uid;
	return ch->peer_uid_known;
}

const struct channel_limits *channel_limits(const struct channel *ch)
{
	return &ch->limits;
}

const struct channel_counters *channel_counters(const struct channel *ch)
{
	return &ch->counters;
}

void channel_disconnect(struct channel *ch)
{
	if (ch->ending || (ch->state != CH_OPEN && ch->state != CH_CONNECTING))
		return;
	ch->ending = true;
	ch->transport->ops->disconnect(ch);
}

void channel_delete(struct channel *ch)
{
	if (!ch)
		return;
	assert(ch->state != CH_FENCING);
	if (!fence_off_keeps(ch))
		ch->transport->ops->delete (ch);
}

int channel_fence(struct channel *ch)
{
	enum channel_state before = ch->state;
	int err;

	assert(before != CH_INCOMING && before != CH_FENCING && before != CH_FENCED);
	if (!ch->server)
		return -EINVAL;
	ch->state = CH_FENCING;
	err = fence_off_takes(ch) ? 0 : ch->transport->ops->fence(ch);
	if (err)
		ch->state = before;
	return err;
}

void channel_fence_at_once(struct channel *ch)
{
	if (ch->state == CH_FENCING && ch->transport->ops->fence_at_once)
		ch->transport->ops->fence_at_once(ch);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool channel_usable(const struct channel *ch)
{
	return ch->state == CH_OPEN && !ch->ending;
}

void *channel_send_buffer(struct channel *ch)
{
	return channel_usable(ch) ? ch->transport->ops->send_buffer(ch) : NULL;
}

void channel_send_cancel(struct channel *ch, void *buf)
{
	if (buf)
		ch->transport->ops->send_cancel(ch, buf);
}

int channel_send(struct channel *ch, void *buf, uint32_t len, unsigned flags, uint32_t imm)
{
	int err = 0;

	if (len > ch->limits.msg_bytes || (flags & ~(unsigned)SEND_IMM))
		err = -EINVAL;
	else if (!channel_usable(ch))
		err = -ENOTCONN;
	if (err) {
		channel_send_cancel(ch, buf);
		return err;
	}
	err = ch->transport->ops->send(ch, buf, len, flags, imm);
	if (err)
		return err;
	ch->counters.sends++;
	ch->counters.send_bytes += len;
	return 0;
}

void channel_recv_done(struct channel *ch, const void *data)
{
	ch->held--;
	ch->transport->ops->recv_done(ch, data);
}

/* ---- one-sided I/O --------------------------------------------------------------------------- */

static bool access_ok(unsigned access)
{
	return access && !(access & ~(unsigned)(REGION_READ | REGION_WRITE));
}

int channel_publish(struct channel *ch, struct region *r, unsigned access, struct region_key *key)
{
	struct region_key made;
	int err;

	if (!ch->server || !access_ok(access) || r->transport != ch->transport)
		return -EINVAL;
	if (!channel_usable(ch))
		return -ENOTCONN;
	err = ch->transport->ops->publish(ch, r, access, &made);
	if (!err)
		*key = made;
	return err;
}

uint64_t transport_keys_left(const struct transport *t)
{
	return t->ops->keys_left ? t->ops->keys_left(t) : UINT64_MAX;
}

int channel_set_key(struct channel *ch, uint32_t index, const struct region_key *key)
{
	int err = 0;

	if (ch->server || index >= ch->transport->config.max_regions || !key->len ||
		key->len > UINT64_MAX - key->addr || !access_ok(key->access))
		return -EINVAL;
	if (!channel_usable(ch))
		return -ENOTCONN;
	if (ch->transport->ops->set_key)
		err = ch->transport->ops->set_key(ch, index, key);
	if (!err)
		ch->keys[index] = *key;
	return err;
}

uint64_t work_bytes(const struct work *work)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < work->nsge; i++)
		bytes += work->sge[i].len;
	return bytes;
}

/* Empty pieces are refused, since devices read a length of 0 as 2 GiB. */
static bool sge_ok(const struct channel *ch, const struct sge *sge)
{
	const struct buffer *b = sge->buffer ? buffer_at(sge->buffer, ch->transport) : NULL;

	return b && sge->len &&
	       range_within((uintptr_t)sge->addr - (uintptr_t)b->addr, sge->len, b->len);
}

static bool key_allows(
	const struct channel *ch, enum io_dir dir, uint32_t region, uint64_t offset, uint64_t bytes)
{
	unsigned access = dir == IO_READ ? REGION_READ : REGION_WRITE;

	return region < ch->transport->config.max_regions && (ch->keys[region].access & access) &&
	       range_within(offset, bytes, ch->keys[region].len);
}

static bool work_ok(const struct channel *ch, enum io_dir dir, const struct work *work)
{
	uint32_t max_sge = dir == IO_READ ? ch->limits.max_sge_read : ch->limits.max_sge_write;
	uint64_t bytes;

	if (work->nsge < 1 || work->nsge > max_sge)
		return false;
	for (uint32_t i = 0; i < work->nsge; i++)
		if (!sge_ok(ch, &work->sge[i]))
			return false;
	bytes = work_bytes(work);
	return bytes <= ch->limits.max_work_bytes &&
	       key_allows(ch, dir, work->region, work->offset, bytes);
}

static int check_post(
	const struct channel *ch, enum io_dir dir, const struct work *works, uint32_t nworks)
{
	uint32_t max_works =
		dir == IO_READ ? ch->limits.max_works_read : ch->limits.max_works_write;

	if (!channel_usable(ch))
		return -ENOTCONN;
	if (ch->server || nworks < 1 || nworks > max_works)
		return -EINVAL;
	for (uint32_t i = 0; i < nworks; i++)
		if (!work_ok(ch, dir, &works[i]))
			return -EINVAL;
	return 0;
}

int channel_post(struct channel *ch, enum io_dir dir, const struct work *works, uint32_t nworks,
	void *cookie)
{
	int err = check_post(ch, dir, works, nworks);

	if (err)
		return err;
	if (dir == IO_WRITE)
		CRASH_POINT("write.post");
	err = ch->transport->ops->post(ch, dir, works, nworks, cookie);
	if (!err)
		ch->counters.batches++;
	return err;
}

int channel_post_piped(struct channel *ch, const struct work *works, uint32_t nworks,
	const void *head, uint32_t headlen, void *cookie)
{
	int err;

	if (!headlen || headlen > CHANNEL_HEAD_MAX)
		return -EINVAL;
	if (!ch->transport->ops->post_piped)
		return channel_post(ch, IO_READ, works, nworks, cookie);
	err = check_post(ch, IO_READ, works, nworks);
	if (err)
		return err;
	err = ch->transport->ops->post_piped(ch, works, nworks, head, headlen, cookie);
	if (!err)
		ch->counters.batches++;
	return err;
}

int channel_pipe(const struct channel *ch)
{
	return ch->transport->ops->pipe(ch);
}

bool transport_maps_regions(const struct transport *t)
{
	return t->ops->mapped;
}

void *channel_mapped(
	struct channel *ch, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	if (!ch->transport->ops->mapped || ch->server || !channel_usable(ch) || !len ||
		!key_allows(ch, dir, region, offset, len))
		return NULL;
	return ch->transport->ops->mapped(ch, dir, region, offset, len);
}

void channel_count_mapped(struct channel *ch, enum io_dir dir, uint64_t bytes)
{
	struct channel_counters *counters = &ch->counters;

	if (dir == IO_READ) {
		counters->reads++;
		counters->read_bytes += bytes;
	} else {
		counters->writes++;
		counters->write_bytes += bytes;
	}
}
