/* remote_script.h - a memory server over tcp that keeps only the rules of sessions and slots. On
 * order it breaks connections, falls silent or breaks rules. It runs in a thread of the test.
 *
 * THREADS    The orders and counts are atomics; all else belongs to the server's thread.
 */
#ifndef RMEMFS_TESTS_REMOTE_SCRIPT_H
#define RMEMFS_TESTS_REMOTE_SCRIPT_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/address.h"
#include "tests/unit/daemon/remote_drive.h"
#include "common/transport/kinds.h"

enum {
	SCRIPT_CHANNELS = 2,
	SCRIPT_SLOTS = 16,
	SCRIPT_RESERVED = 2,
	SCRIPT_REGIONS = 3,
	SCRIPT_REGION_BYTES = 2 << 20,
	SCRIPT_LEASE_MS = 10000,
	SCRIPT_SESSION = 77,
};

/* Sent on channel 0. */
enum script_ring { SCRIPT_RING = 1, SCRIPT_RING_OF_ANOTHER_NUMBER, SCRIPT_RING_WITH_BYTES };

struct script_slot {
	uint64_t seq;
	size_t len;
	uint8_t reply[1024];
};

struct script_channel {
	struct channel *ch;        /* attached now */
	struct channel *fencing;   /* the one before, until EV_FENCED */
	struct rpc_request attach; /* answered after EV_FENCED */
	bool ping_owed;            /* to ch */
	uint64_t ping, answered;   /* number of the last PING; of the last answered one */
};

struct script {
	struct transport *transport;
	struct evq *evq;
	struct listener *listener;
	struct region *regions[SCRIPT_REGIONS];
	int fd;
	uint8_t *memory;
	pthread_t thread;
	struct script_channel channels[SCRIPT_CHANNELS];
	struct script_slot slots[SCRIPT_CHANNELS * SCRIPT_SLOTS];
	struct channel *doomed; /* to end after this event */

	/* Orders. */
	atomic_bool stop;
	atomic_uint drop_every;   /* end the channel instead of every nth reply */
	atomic_uint cut_once;     /* end all channels now */
	atomic_bool hold;         /* answer only COMMITs */
	atomic_bool silent;       /* answer no PING before this ends */
	atomic_bool garbage_once; /* answer the next PING with garbage */
	atomic_bool again_once;   /* repeat the answer to the last answered PING */
	atomic_uint recall_bytes; /* of zeros, behind the answers to PINGs */
	atomic_uint ring_once;    /* enum script_ring */
	atomic_int refuse;        /* status of the next ATTACHs */
	atomic_uint nended;       /* sessions before this one */
	atomic_uint timeout_ms;   /* told to those that attach */
	atomic_uint nregions;     /* the same; SCRIPT_REGIONS of them can be asked for */
	atomic_uint nhidden;      /* of these, so many are not there yet when REGIONS is answered */
	atomic_uint refuse_writes; /* so many connections refuse them to region 0, unannounced */
	/* ATTACH's answer tells these: enum squash_kind, the anonymous user and group. */
	atomic_uint squash_kind, squash_id;
	atomic_bool restart; /* each ATTACH is answered as by another incarnation */

	/* Counts of events. */
	atomic_uint nattached, nrefused, nexecuted, nreplayed, nviolations, nbyes;
	atomic_uint npings[SCRIPT_CHANNELS];
	struct rpc_counters bye; /* after the thread was joined */
};

static inline void script_reply(struct channel *ch, struct rpc_reply *rep)
{
	void *buf = channel_send_buffer(ch);
	size_t len = 0;

	if (!buf)
		return;
	if (rpc_reply_encode(rep, RMEMFS_WIRE_VERSION, buf, channel_limits(ch)->msg_bytes, &len) !=
		0)
		abort();
	channel_send(ch, buf, (uint32_t)len, 0, 0);
}

static inline void script_attach_answer(struct script *sc, unsigned index)
{
	struct script_channel *c = &sc->channels[index];
	struct rpc_reply rep = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};

	rep.status = atomic_load(&sc->refuse);
	if (rep.status) {
		rep.text = (struct rpc_str){.s = "not today", .len = 9};
		atomic_fetch_add(&sc->nrefused, 1);
	} else {
		rep.attach = (struct rpc_attach_reply){
			.session = SCRIPT_SESSION + atomic_load(&sc->nended),
			.store_id = "a store",
			.incarnation = 1 + atomic_load(&sc->restart) * atomic_load(&sc->nattached),
			.resumed = c->attach.attach.session != 0,
			.nslots = SCRIPT_SLOTS,
			.nreserved = SCRIPT_RESERVED,
			.lease_ms = SCRIPT_LEASE_MS,
			.peer_timeout_ms = atomic_load(&sc->timeout_ms),
			.server_time = realtime_ns(),
			.nregions = atomic_load(&sc->nregions),
			.npages = SCRIPT_REGIONS * (SCRIPT_REGION_BYTES / PAGE_BYTES),
			.squash = {(uint8_t)atomic_load(&sc->squash_kind),
				atomic_load(&sc->squash_id), atomic_load(&sc->squash_id)},
			.root = {.ino = ROOT_INO, .mode = 040755},
		};
		atomic_fetch_add(&sc->nattached, 1);
	}
	script_reply(c->ch, &rep);
}

static inline void script_attach(
	struct script *sc, struct channel *ch, const struct rpc_request *req)
{
	struct script_channel *c = &sc->channels[req->attach.channel];

	c->attach = *req;
	if (!req->attach.session)
		memset(sc->slots, 0, sizeof(sc->slots));
	if (c->ch && c->ch != ch && !c->fencing) {
		c->fencing = c->ch;
		channel_fence(c->fencing);
	}
	c->ch = ch;
	c->ping_owed = false;
	if (!c->fencing)
		script_attach_answer(sc, req->attach.channel);
}

/* There are no more than the client knows. */
static inline void script_no_region(struct channel *ch, uint32_t nregions)
{
	struct rpc_reply rep = {.op = RPC_REGIONS,
		.slot = RPC_NO_SLOT,
		.regions = {.version = 1, .nregions = nregions}};

	script_reply(ch, &rep);
}

/* One region per reply, so that the client has to ask again. */
static inline void script_regions(
	struct script *sc, struct channel *ch, const struct rpc_request *req)
{
	uint32_t nregions = SCRIPT_REGIONS - atomic_load(&sc->nhidden);
	struct rpc_reply rep = {.op = RPC_REGIONS, .slot = RPC_NO_SLOT};
	uint8_t tail[RPC_REGION_BYTES];
	struct rpc_region entry = {.index = req->regions.first};
	unsigned access = REGION_READ | REGION_WRITE;
	struct region_key key;
	struct wire_out out;

	if (entry.index >= nregions) {
		script_no_region(ch, nregions);
		return;
	}
	if (entry.index == 0 && atomic_load(&sc->refuse_writes)) {
		atomic_fetch_sub(&sc->refuse_writes, 1);
		access = REGION_READ;
	}
	if (channel_publish(ch, sc->regions[entry.index], access, &key) != 0)
		return;
	entry.addr = key.addr;
	entry.len = key.len;
	entry.rkey = key.rkey;
	entry.access = REGION_READ | REGION_WRITE;
	wire_out_init(&out, tail, sizeof(tail));
	rpc_put_region(&out, &entry);
	rep.regions = (struct rpc_regions_reply){
		.version = 1,
		.nregions = nregions,
		.tail = {.data = tail, .len = (uint32_t)wire_out_len(&out)},
	};
	script_reply(ch, &rep);
}

static inline void script_pong(struct script *sc, const struct script_channel *c, uint64_t number)
{
	static const uint8_t zeros[100];
	struct rpc_reply rep = {.op = RPC_PING, .slot = RPC_NO_SLOT, .seq = number};

	rep.ping.server_time = realtime_ns();
	rep.ping.tail = (struct rpc_tail){zeros, atomic_load(&sc->recall_bytes)};
	script_reply(c->ch, &rep);
}

static inline void script_answer_ping(struct script *sc, struct script_channel *c)
{
	c->ping_owed = false;
	c->answered = c->ping;
	script_pong(sc, c, c->ping);
}

static inline void script_ping(struct script *sc, struct script_channel *c, uint64_t number)
{
	void *buf;

	c->ping = number;
	atomic_fetch_add(&sc->npings[c - sc->channels], 1);
	if (atomic_exchange(&sc->garbage_once, false)) {
		buf = channel_send_buffer(c->ch);
		memset(buf, 0xa5, 40);
		channel_send(c->ch, buf, 40, 0, 0);
	} else if (atomic_load(&sc->silent)) {
		c->ping_owed = true;
	} else {
		script_answer_ping(sc, c);
	}
}

static inline void script_speak_again(struct script *sc)
{
	for (unsigned i = 0; i < SCRIPT_CHANNELS && !atomic_load(&sc->silent); i++)
		if (sc->channels[i].ping_owed)
			script_answer_ping(sc, &sc->channels[i]);
}

static inline void script_answer_again(struct script *sc)
{
	struct script_channel *c = &sc->channels[0];

	if (c->ch && c->answered && atomic_exchange(&sc->again_once, false))
		script_pong(sc, c, c->answered);
}

static inline void script_ring(struct script *sc)
{
	unsigned how = atomic_exchange(&sc->ring_once, 0);
	struct channel *ch = sc->channels[0].ch;
	uint8_t *buf = how && ch ? channel_send_buffer(ch) : NULL;

	if (!buf)
		return;
	buf[0] = 0;
	channel_send(ch, buf, how == SCRIPT_RING_WITH_BYTES, SEND_IMM,
		how == SCRIPT_RING_OF_ANOTHER_NUMBER ? RPC_RING + 1 : RPC_RING);
}

static inline void script_bye(struct script *sc, struct channel *ch, const struct rpc_request *req)
{
	struct rpc_reply rep = {.op = RPC_BYE, .slot = RPC_NO_SLOT};

	sc->bye = req->bye.counters;
	atomic_fetch_add(&sc->nbyes, 1);
	script_reply(ch, &rep);
}

/* "Executes" a request: its number among all becomes the inode that it makes. The reply is kept. */
static inline void script_execute(
	struct script *sc, struct script_slot *slot, const struct rpc_request *req)
{
	struct rpc_reply rep = {.op = req->op, .slot = req->slot, .seq = req->seq};
	unsigned n = atomic_fetch_add(&sc->nexecuted, 1) + 1;

	if (req->op == RPC_CREATE)
		rep.entry.attr.ino = n;
	else if (req->op == RPC_COMMIT)
		rep.attr.attr.ino = req->commit.ino;
	slot->seq = req->seq;
	if (rpc_reply_encode(
		    &rep, RMEMFS_WIRE_VERSION, slot->reply, sizeof(slot->reply), &slot->len) != 0)
		abort();
}

static inline void script_slotted(
	struct script *sc, struct channel *ch, const struct rpc_request *req)
{
	struct script_slot *slot = &sc->slots[req->slot % ARRAY_SIZE(sc->slots)];
	unsigned local = req->slot % SCRIPT_SLOTS;
	unsigned every = atomic_load(&sc->drop_every);
	void *buf;

	if (local >= SCRIPT_SLOTS - SCRIPT_RESERVED && req->op != RPC_COMMIT)
		atomic_fetch_add(&sc->nviolations, 1);
	if (atomic_load(&sc->hold) && req->op != RPC_COMMIT)
		return;
	if (req->seq == slot->seq + 1) {
		script_execute(sc, slot, req);
		if (every && atomic_load(&sc->nexecuted) % every == 0) {
			sc->doomed = ch;
			return;
		}
	} else if (req->seq == slot->seq) {
		atomic_fetch_add(&sc->nreplayed, 1);
	} else {
		atomic_fetch_add(&sc->nviolations, 1);
	}
	buf = channel_send_buffer(ch);
	if (!buf)
		return;
	memcpy(buf, slot->reply, slot->len);
	channel_send(ch, buf, (uint32_t)slot->len, 0, 0);
}

static inline struct script_channel *script_find(struct script *sc, struct channel *ch)
{
	for (unsigned i = 0; i < SCRIPT_CHANNELS; i++)
		if (sc->channels[i].ch == ch || sc->channels[i].fencing == ch)
			return &sc->channels[i];
	return NULL;
}

static inline void script_message(struct script *sc, const struct event *ev)
{
	struct script_channel *c = script_find(sc, ev->channel);
	struct rpc_request req;

	if (c && c->ch != ev->channel)
		return;
	if (rpc_request_decode(&req, RMEMFS_WIRE_VERSION, ev->data, ev->len) != 0)
		atomic_fetch_add(&sc->nviolations, 1);
	else if (req.op == RPC_ATTACH)
		script_attach(sc, ev->channel, &req);
	else if (req.op == RPC_REGIONS)
		script_regions(sc, ev->channel, &req);
	else if (req.op == RPC_PING && c)
		script_ping(sc, c, req.seq);
	else if (req.op == RPC_BYE)
		script_bye(sc, ev->channel, &req);
	else
		script_slotted(sc, ev->channel, &req);
	channel_recv_done(ev->channel, ev->data);
}

static inline void script_end(struct script *sc, struct channel *ch)
{
	struct script_channel *c = script_find(sc, ch);

	if (!c) {
		channel_delete(ch);
		return;
	}
	if (c->ch != ch || c->fencing)
		return;
	c->fencing = ch;
	c->ch = NULL;
	c->ping_owed = false;
	channel_fence(ch);
}

static inline void script_fenced(struct script *sc, struct channel *ch)
{
	struct script_channel *c = script_find(sc, ch);

	c->fencing = NULL;
	channel_delete(ch);
	if (c->ch)
		script_attach_answer(sc, (unsigned)(c - sc->channels));
}

static inline void script_event(struct script *sc, const struct event *ev)
{
	switch (ev->type) {
	case EV_INCOMING:
		channel_accept(ev->channel);
		break;
	case EV_RECV:
		script_message(sc, ev);
		break;
	case EV_CLOSED:
		script_end(sc, ev->channel);
		break;
	case EV_FENCED:
		script_fenced(sc, ev->channel);
		break;
	default:
		break;
	}
}

static inline void script_cut(struct script *sc)
{
	if (sc->doomed)
		script_end(sc, sc->doomed);
	sc->doomed = NULL;
	if (!atomic_exchange(&sc->cut_once, 0))
		return;
	for (unsigned i = 0; i < SCRIPT_CHANNELS; i++)
		if (sc->channels[i].ch)
			script_end(sc, sc->channels[i].ch);
}

static inline void *script_run(void *arg)
{
	struct script *sc = arg;
	struct event events[16];

	while (!atomic_load(&sc->stop)) {
		struct pollfd pfd = {.fd = evq_fd(sc->evq), .events = POLLIN};
		int n;

		evq_arm(sc->evq);
		n = evq_poll(sc->evq, events, ARRAY_SIZE(events));
		if (n == 0)
			poll(&pfd, 1, 5);
		for (int i = 0; i < n; i++) {
			script_event(sc, &events[i]);
			script_cut(sc);
		}
		script_cut(sc);
		script_ring(sc);
		script_speak_again(sc);
		script_answer_again(sc);
	}
	return NULL;
}

/* Binds and registers; serves from script_start() on. */
static inline void script_init(struct script *sc, unsigned port)
{
	struct transport_address address;
	struct transport_config config;
	char why[128];

	*sc = (struct script){.nregions = SCRIPT_REGIONS};
	transport_config_default(&config);
	assert_int_equal(
		address_resolve(TRANSPORT_TCP, "127.0.0.1", 7470, &address, why, sizeof(why)), 0);
	((struct sockaddr_in *)&address.addr)->sin_port = htons((uint16_t)port);
	assert_int_equal(transport_open(&address, &config, 1000, &sc->transport), 0);
	sc->fd = memfd_create("script", MFD_CLOEXEC);
	assert_int_equal(ftruncate(sc->fd, SCRIPT_REGIONS * SCRIPT_REGION_BYTES), 0);
	sc->memory = mmap(NULL, SCRIPT_REGIONS * SCRIPT_REGION_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED, sc->fd, 0);
	assert_ptr_not_equal(sc->memory, MAP_FAILED);
	for (unsigned i = 0; i < SCRIPT_REGIONS; i++)
		assert_int_equal(region_register(sc->transport, sc->fd, sc->fd,
					 sc->memory + (size_t)i * SCRIPT_REGION_BYTES,
					 SCRIPT_REGION_BYTES, &sc->regions[i]),
			0);
	assert_int_equal(evq_new(sc->transport, &sc->evq), 0);
	assert_int_equal(transport_listen(sc->evq, &address, &sc->listener), 0);
}

static inline void script_start(struct script *sc)
{
	assert_int_equal(pthread_create(&sc->thread, NULL, script_run, sc), 0);
}

static inline unsigned script_port(const struct script *sc)
{
	const struct transport_address *address = listener_address(sc->listener);

	return ntohs(((const struct sockaddr_in *)&address->addr)->sin_port);
}

/* Fences and deletes the remaining channels, as a server does at its end. */
static inline void script_fini(struct script *sc)
{
	atomic_store(&sc->stop, true);
	pthread_join(sc->thread, NULL);
	for (unsigned i = 0; i < SCRIPT_CHANNELS; i++)
		if (sc->channels[i].ch)
			script_end(sc, sc->channels[i].ch);
	for (unsigned i = 0; i < SCRIPT_CHANNELS; i++)
		while (sc->channels[i].fencing) {
			struct event ev;

			if (evq_poll(sc->evq, &ev, 1) == 1 && ev.type == EV_FENCED)
				script_fenced(sc, ev.channel);
		}
	listener_delete(sc->listener);
	evq_delete(sc->evq);
	for (unsigned i = 0; i < SCRIPT_REGIONS; i++)
		region_deregister(sc->regions[i]);
	transport_close(sc->transport);
	munmap(sc->memory, SCRIPT_REGIONS * SCRIPT_REGION_BYTES);
	close(sc->fd);
}

#endif
