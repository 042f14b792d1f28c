/* handshakes.c - what clients that come cost: one process is many clients of a server, each with its
 * own channels.
 *
 *     handshakes ADDRESS KEYFILE attach CLIENTS CHANNELS   so many clients attach at once to export
 *                                    "default", with so many channels each. Prints the seconds
 *                                    until all have, and how often a channel had to come again
 *     handshakes ADDRESS KEYFILE getattr SECONDS           one client asks for the root's
 * attributes, one request after the other. Prints how many, and the median and the 99th percentile
 * in microseconds handshakes ADDRESS KEYFILE prove RATE SECONDS        so many channels a second
 * prove the key and go. Prints how many did, and how many were closed before
 *
 * ADDRESS as with --listen. All share the export, and prove the first key of the file.
 *
 * THREADS  One.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/auth_key_file.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/proof/key_proof.h"
#include "common/rpc/rpc.h"
#include "common/transport/address.h"
#include "common/transport/kinds.h"
#include "common/transport/transport.h"

enum { AGAIN_MS = 20, OPEN_MS = 5000, CHANNELS_MAX = 4096, SAMPLES_MAX = 4 << 20 };

enum state { ABSENT, CONNECTING, PROVING, ATTACHING, READY, GONE };

struct client {
	uint8_t owner[OWNER_BYTES];
	struct rpc_attach_reply attached;
	bool has_session;
};

struct seat {
	struct channel *channel;
	struct client *client;
	unsigned index;
	enum state state;
	struct key_proof proof;
	int64_t due_ms; /* ABSENT: when it connects */
};

static struct transport_address address;
static struct transport *transport;
static struct evq *q;
static struct auth_key_file keys;
static struct handshake_context *handshakes;
static const char *server;
static struct seat seats[CHANNELS_MAX];
static unsigned nseats, nchannels = 1, nready, nagain, nproven;
static bool attaches = true;

/* ---- one channel ----------------------------------------------------------------------------- */

static int send_request(void *user, const struct rpc_request *req)
{
	struct seat *seat = user;
	void *buf = channel_send_buffer(seat->channel);
	size_t len;

	if (!buf || rpc_request_encode(req, RMEMFS_WIRE_VERSION, buf, RPC_MSG_BYTES, &len))
		return -EPROTO;
	return channel_send(seat->channel, buf, (uint32_t)len, 0, 0);
}

static struct key_proof_channel channel_of(struct seat *seat)
{
	return (struct key_proof_channel){
		seat->channel, transport_kind_of(transport), send_request, seat, server};
}

static void leave(struct seat *seat, enum state state)
{
	key_proof_forget(&seat->proof);
	channel_delete(seat->channel);
	seat->channel = NULL;
	seat->state = state;
}

static void come_again(struct seat *seat)
{
	if (seat->state == READY)
		errx(1, "%s: an attached channel was closed; %u of %u are attached, and %u came again",
			server, nready, nseats, nagain);
	leave(seat, ABSENT);
	seat->due_ms = now_ms() + AGAIN_MS;
	nagain++;
}

static void sit_down(struct seat *seat)
{
	int e = channel_connect(q, &address, &seat->channel);

	if (e)
		errx(1, "%s: %s", server, strerror(-e));
	seat->state = CONNECTING;
}

static void attach(struct seat *seat)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	struct client *c = seat->client;

	req.attach = (struct rpc_attach){
		.instance = 1,
		.session = c->has_session ? c->attached.session : 0,
		.store_id = c->attached.store_id,
		.token = c->attached.token,
		.channel = (uint16_t)seat->index,
		.nchannels = (uint16_t)nchannels,
		.flags = ATTACH_SHARED,
		.wait_ms = OPEN_MS,
		.export_name = {"default", 7},
		.client = {"bench", 5},
	};
	memcpy(req.attach.owner, c->owner, OWNER_BYTES);
	seat->state = ATTACHING;
	if (send_request(seat, &req))
		come_again(seat);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void opened(struct seat *seat)
{
	struct key_proof_channel on = channel_of(seat);
	char why[256];

	seat->state = PROVING;
	if (key_proof_begin(&seat->proof, handshakes, &keys.v[0], &on, why, sizeof(why)))
		errx(1, "%s", why);
}

static void proven(struct seat *seat)
{
	nproven++;
	if (attaches)
		attach(seat);
	else
		leave(seat, GONE);
}

static void answered(struct seat *seat, const struct rpc_reply *rep)
{
	struct key_proof_channel on = channel_of(seat);
	char why[256];
	int done;

	if (rep->op == RPC_AUTH) {
		done = key_proof_answered(&seat->proof, &on, rep, why, sizeof(why));
		if (done < 0)
			come_again(seat);
		else if (done)
			proven(seat);
		return;
	}
	if (rep->status)
		errx(1, "%s: %.*s", server, rep->text.len, rep->text.s);
	seat->client->attached = rep->attach;
	seat->client->has_session = true;
	seat->state = READY;
	nready++;
}

static struct seat *seat_of(const struct channel *channel)
{
	for (unsigned i = 0; i < nseats; i++)
		if (seats[i].channel == channel)
			return &seats[i];
	return NULL;
}

/* True, and the reply, if an attached channel got one. */
static bool take(const struct event *event, struct rpc_reply *rep)
{
	struct seat *seat = seat_of(event->channel);
	bool is_for_us = false;

	if (!seat)
		return false;
	if (event->type == EV_OPEN) {
		opened(seat);
	} else if (event->type == EV_CLOSED) {
		come_again(seat);
	} else if (event->type == EV_RECV) {
		if (event->len &&
			rpc_reply_decode(rep, RMEMFS_WIRE_VERSION, event->data, event->len))
			errx(1, "%s: a malformed message", server);
		is_for_us = seat->state == READY && event->len;
		if (event->len && !is_for_us)
			answered(seat, rep);
		if (seat->channel)
			channel_recv_done(seat->channel, event->data);
	}
	return is_for_us;
}

/* Waits for events at most until then, and takes them. True: see take(). */
static bool turn(int64_t until_ms, struct rpc_reply *rep)
{
	struct pollfd fd = {.fd = evq_fd(q), .events = POLLIN};
	struct event event;
	int n = evq_poll(q, &event, 1);
	int64_t left_ms = until_ms - now_ms();

	if (!n && left_ms > 0 && !evq_arm(q)) {
		poll(&fd, 1, (int)left_ms);
		n = evq_poll(q, &event, 1);
	}
	if (n < 0)
		errx(1, "%s: %s", server, strerror(-n));
	return n && take(&event, rep);
}

/* A client's first channel begins the session, which the others join. */
static void seat_those_due(void)
{
	for (unsigned i = 0; i < nseats; i++) {
		struct seat *seat = &seats[i];

		if (seat->state == ABSENT && seat->due_ms <= now_ms() &&
			(seat->index == 0 || seat->client->has_session))
			sit_down(seat);
	}
}

/* ---- works ----------------------------------------------------------------------------------- */

static void attach_all(unsigned nclients)
{
	struct client *clients = calloc(nclients, sizeof(*clients));
	struct rpc_reply rep;

	if (!clients)
		errx(1, "no memory");
	nseats = nclients * nchannels;
	for (unsigned i = 0; i < nseats; i++) {
		seats[i].client = &clients[i / nchannels];
		seats[i].index = i % nchannels;
		snprintf((char *)seats[i].client->owner, OWNER_BYTES, "%u", i / nchannels);
	}
	while (nready < nseats) {
		seat_those_due();
		turn(now_ms() + AGAIN_MS, &rep);
	}
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void getattr(double seconds)
{
	struct rpc_request req = {.op = RPC_GETATTR, .seq = 0, .ino = {.ino = ROOT_INO}};
	int64_t *took = calloc(SAMPLES_MAX, sizeof(*took));
	int64_t end = now_ms() + (int64_t)(seconds * 1000);
	unsigned n = 0, half, last;

	if (!took)
		errx(1, "no memory");
	for (; now_ms() < end && n < SAMPLES_MAX; n++) {
		int64_t began = clock_ns(CLOCK_MONOTONIC);
		struct rpc_reply rep;

		req.seq++;
		if (send_request(&seats[0], &req))
			errx(1, "%s: can't send", server);
		while (!turn(now_ms() + OPEN_MS, &rep))
			continue;
		took[n] = clock_ns(CLOCK_MONOTONIC) - began;
	}
	qsort(took, n, sizeof(*took), compare);
	half = n / 2;
	last = n - n / 100 - 1;
	printf("getattr %u p50 %.1f p99 %.1f us\n", n, (double)took[half] / 1000,
		(double)took[last] / 1000);
}

static void prove(unsigned rate, double seconds)
{
	int64_t began = now_ms(), end = began + (int64_t)(seconds * 1000);
	struct rpc_reply rep;
	unsigned begun = 0;

	attaches = false;
	nseats = CHANNELS_MAX;
	for (unsigned i = 0; i < nseats; i++)
		seats[i].state = GONE;
	while (now_ms() < end) {
		int64_t due = began + (int64_t)begun * 1000 / rate;

		if (now_ms() >= due) {
			struct seat *seat = &seats[begun++ % CHANNELS_MAX];

			if (seat->state != GONE)
				errx(1, "%s: handshakes take too long", server);
			sit_down(seat);
		}
		turn(due, &rep);
		for (unsigned i = 0; nagain && i < nseats; i++)
			if (seats[i].state == ABSENT)
				seats[i].state = GONE;
	}
	printf("prove %u of %u, closed %u\n", nproven, begun, nagain);
}

static double seconds_since(int64_t began)
{
	return (double)(clock_ns(CLOCK_MONOTONIC) - began) / 1e9;
}

static void begin(const char *where, const char *key_file)
{
	struct transport_config config;
	char why[400];
	int e;

	server = where;
	transport_config_default(&config);
	config.io_threads = 0;
	config.msg_bytes = RPC_MSG_BYTES;
	if (address_parse_listen(where, &address, why, sizeof(why)) ||
		auth_key_file_read(key_file, &keys, why, sizeof(why)) ||
		handshake_context_new(HANDSHAKE_CLIENT, &handshakes, why, sizeof(why)))
		errx(1, "%s", why);
	e = transport_open(&address, &config, OPEN_MS, &transport);
	if (!e)
		e = evq_new(transport, &q);
	if (e)
		errx(1, "%s: %s", where, strerror(-e));
}

int main(int argc, char **argv)
{
	int64_t began;

	if (argc < 5)
		errx(2, "see handshakes.c");
	begin(argv[1], argv[2]);
	began = clock_ns(CLOCK_MONOTONIC);
	if (strcmp(argv[3], "attach") == 0 && argc == 6) {
		nchannels = (unsigned)atoi(argv[5]);
		if (atoi(argv[4]) * atoi(argv[5]) > CHANNELS_MAX)
			errx(2, "too many channels");
		attach_all((unsigned)atoi(argv[4]));
		printf("attach %u channels %.3f s, again %u\n", nready, seconds_since(began),
			nagain);
	} else if (strcmp(argv[3], "getattr") == 0) {
		attach_all(1);
		getattr(atof(argv[4]));
	} else if (strcmp(argv[3], "prove") == 0 && argc == 6) {
		prove((unsigned)atoi(argv[4]), atof(argv[5]));
	} else {
		errx(2, "see handshakes.c");
	}
	return 0;
}
