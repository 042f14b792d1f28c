/* client.c - a client that does one thing at a time, for tests. */
#include "tests/unit/driver/client.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "common/auth/handshake.h"
#include "common/transport/address.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/transport/kinds.h"

void server_address(const struct test_server *s, struct transport_address *address)
{
	char why[256];

	if (address_parse_listen(s->listen, address, why, sizeof(why)))
		fail_msg("%s", why);
}

void client_init(struct rpc_client *c, struct test_server *s, const char *owner, uint64_t instance)
{
	struct transport_address address;
	struct transport_config config;

	*c = (struct rpc_client){.server = s, .instance = instance, .nchannels = 1};
	snprintf((char *)c->owner, sizeof(c->owner), "%s", owner);
	transport_config_default(&config);
	server_address(s, &address);
	assert_int_equal(transport_open(&address, &config, WAIT_MS, &c->transport), 0);
	assert_int_equal(evq_new(c->transport, &c->q), 0);
	c->memory = mmap(NULL, CLIENT_MEMORY, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(c->memory, MAP_FAILED);
	assert_int_equal(buffer_register(c->transport, c->memory, CLIENT_MEMORY, &c->buffer), 0);
}

void client_fini(struct rpc_client *c)
{
	client_drop(c);
	evq_delete(c->q);
	buffer_deregister(c->buffer);
	transport_close(c->transport);
	munmap(c->memory, CLIENT_MEMORY);
}

/* ---- events ---------------------------------------------------------------------------------- */

void client_event(struct rpc_client *c, struct event *event)
{
	struct pollfd fd = {.fd = evq_fd(c->q), .events = POLLIN};
	int64_t until = now_ms() + WAIT_MS;

	for (;;) {
		int n = evq_poll(c->q, event, 1);

		if (!n) {
			assert_int_equal(evq_arm(c->q), 0);
			n = evq_poll(c->q, event, 1);
		}
		assert_true(n >= 0);
		if (n)
			return;
		if (now_ms() >= until)
			fail_msg("the server does not answer");
		poll(&fd, 1, (int)(until - now_ms()));
	}
}

void client_connect(struct rpc_client *c)
{
	struct transport_address address;
	struct event event;
	char log[LOG_BYTES];

	server_address(c->server, &address);
	assert_int_equal(channel_connect(c->q, &address, &c->channel), 0);
	if (c->version)
		channel_ask_version(c->channel, c->version);
	client_event(c, &event);
	if (event.type != EV_OPEN) {
		server_read_log(c->server, log, sizeof(log));
		fprintf(stderr, "%s", log);
		fail_msg("no channel: event %d, %s", event.type, errno_text(event.status));
	}
	c->proven = false;
}

void client_drop(struct rpc_client *c)
{
	channel_delete(c->channel);
	c->channel = NULL;
}

void client_wait_closed(struct rpc_client *c)
{
	struct event event;

	do {
		client_event(c, &event);
	} while (event.type != EV_CLOSED);
	client_drop(c);
}

/* ---- messages -------------------------------------------------------------------------------- */

void client_send_bytes(struct rpc_client *c, const void *data, size_t len)
{
	void *buf = channel_send_buffer(c->channel);

	assert_non_null(buf);
	memcpy(buf, data, len);
	assert_int_equal(channel_send(c->channel, buf, (uint32_t)len, 0, 0), 0);
}

void client_send(struct rpc_client *c, const struct rpc_request *req)
{
	uint8_t msg[RPC_MSG_BYTES];
	size_t len;

	assert_int_equal(
		rpc_request_encode(req, channel_version(c->channel), msg, sizeof(msg), &len), 0);
	client_send_bytes(c, msg, len);
}

/* A client that shares an export gets rings. Its tests look for recalls by PINGs of their own. */
static bool is_expected_ring(const struct rpc_client *c, const struct event *event)
{
	return c->flags & (ATTACH_SHARED | ATTACH_CONVERTS) && event->type == EV_RECV &&
	       !event->len && event->has_imm && event->imm == RPC_RING;
}

void client_receive(struct rpc_client *c, struct rpc_reply *rep)
{
	struct event event;

	client_event(c, &event);
	for (;;) {
		if (is_expected_ring(c, &event))
			channel_recv_done(c->channel, event.data);
		else if (event.channel == c->channel)
			break;
		client_event(c, &event);
	}
	assert_int_equal(event.type, EV_RECV);
	assert_true(event.len <= sizeof(c->reply));
	memcpy(c->reply, event.data, event.len);
	c->reply_len = event.len;
	channel_recv_done(c->channel, event.data);
	assert_int_equal(
		rpc_reply_decode(rep, channel_version(c->channel), c->reply, c->reply_len), 0);
}

void client_number(struct rpc_client *c, unsigned slot, struct rpc_request *req)
{
	req->slot = (uint16_t)(c->index * CLIENT_SLOTS + slot);
	req->seq = ++c->seq[slot];
}

int client_call(struct rpc_client *c, unsigned slot, struct rpc_request *req, struct rpc_reply *rep)
{
	client_number(c, slot, req);
	client_send(c, req);
	client_receive(c, rep);
	assert_int_equal(rep->op, req->op);
	assert_int_equal(rep->slot, req->slot);
	assert_int_equal(rep->seq, req->seq);
	return rep->status;
}

void client_ask_status(struct rpc_client *c, uint32_t offset)
{
	struct rpc_request req = {.op = RPC_STATUS, .slot = RPC_NO_SLOT, .status.offset = offset};

	client_send(c, &req);
}

struct rpc_reply client_status(struct rpc_client *c, uint32_t offset)
{
	struct rpc_reply rep;

	client_ask_status(c, offset);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_STATUS);
	return rep;
}

/* ---- the session ----------------------------------------------------------------------------- */

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* Takes a flight, and sends ours. */
static void send_flight(
	struct rpc_client *c, struct handshake *h, uint8_t step, const struct rpc_tail *in)
{
	struct rpc_request req = {.op = RPC_AUTH, .slot = RPC_NO_SLOT};
	uint8_t flight[HANDSHAKE_FLIGHT_MAX];
	size_t len;

	assert_int_not_equal(handshake_step(h, in->data, in->len, flight, sizeof(flight), &len),
		HANDSHAKE_REFUSED);
	req.auth = (struct rpc_auth){step, {flight, (uint32_t)len}};
	client_send(c, &req);
}

static int auth_answer(struct rpc_client *c, struct rpc_reply *rep)
{
	client_receive(c, rep);
	assert_int_equal(rep->op, RPC_AUTH);
	return rep->status;
}

/* The handshake's last flight, and the protection that follows. */
static int prove_last(struct rpc_client *c, struct handshake *h, struct rpc_reply *rep)
{
	struct channel_keys keys;

	send_flight(c, h, 2, &rep->auth.tail);
	assert_int_equal(handshake_keys(h, channel_client_hello(c->channel),
				 channel_server_hello(c->channel), c->server->kind, &keys),
		0);
	assert_int_equal(channel_protect(c->channel, PROTECT_IN, &keys), 0);
	assert_int_equal(auth_answer(c, rep), 0);
	assert_int_equal(channel_protect(c->channel, PROTECT_OUT, &keys), 0);
	return 0;
}

int client_prove(struct rpc_client *c, const struct auth_key *key)
{
	struct handshake_context *context;
	struct handshake *h;
	struct rpc_reply rep;
	char why[256];
	int status;

	if (handshake_context_new(HANDSHAKE_CLIENT, &context, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(handshake_client_new(context, key, &h), 0);
	send_flight(c, h, 1, &(struct rpc_tail){0});
	status = auth_answer(c, &rep);
	if (!status)
		status = prove_last(c, h, &rep);
	handshake_delete(h);
	handshake_context_delete(context);
	c->proven = !status;
	return status;
}

int client_attach(struct rpc_client *c, const char *export, uint64_t session, uint32_t wait_ms,
	char text[RPC_TEXT_MAX + 1])
{
	char name[64];
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	if (c->server->kind != TRANSPORT_SHM && !c->proven)
		assert_int_equal(client_prove(c, &c->server->key), 0);
	snprintf(name, sizeof(name), "client %s", (const char *)c->owner);
	req.attach = (struct rpc_attach){
		.instance = c->instance,
		.session = session,
		.ended = c->ended,
		.channel = c->index,
		.nchannels = c->nchannels,
		.flags = c->flags,
		.wait_ms = wait_ms,
		.export_name = str(export),
		.client = str(name),
	};
	memcpy(req.attach.owner, c->owner, OWNER_BYTES);
	req.attach.store_id = c->attached.store_id;
	req.attach.token = c->attached.token;
	client_send(c, &req);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_ATTACH);
	if (rep.status && text)
		snprintf(text, RPC_TEXT_MAX + 1, "%.*s", rep.text.len, rep.text.s);
	if (!rep.status)
		c->attached = rep.attach;
	return rep.status;
}

void server_status(struct test_server *s, char json[RPC_MSG_BYTES])
{
	struct rpc_request req = {.op = RPC_STATUS, .slot = RPC_NO_SLOT};
	struct test_server at_socket = *s;
	struct rpc_client admin;
	struct rpc_reply rep;

	memcpy(at_socket.listen, s->socket, sizeof(s->socket));
	client_init(&admin, &at_socket, "admin", 1);
	client_connect(&admin);
	client_send(&admin, &req);
	client_receive(&admin, &rep);
	assert_int_equal(rep.op, RPC_STATUS);
	assert_int_equal(rep.status, 0);
	snprintf(json, RPC_MSG_BYTES, "%.*s", (int)rep.status_text.tail.len,
		(const char *)rep.status_text.tail.data);
	client_fini(&admin);
}

void client_know_store(struct rpc_client *c)
{
	static const char key[] = "\"store_id\":\"";
	static char json[RPC_MSG_BYTES];
	const char *hex;

	server_status(c->server, json);
	hex = strstr(json, key);
	assert_non_null(hex);
	hex += sizeof(key) - 1;
	for (size_t i = 0; i < sizeof(c->attached.store_id); i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &c->attached.store_id[i]), 1);
}

void client_begin(struct rpc_client *c)
{
	char text[RPC_TEXT_MAX + 1] = "";

	client_connect(c);
	if (client_attach(c, "default", 0, WAIT_MS, text))
		fail_msg("%s", text);
}

void client_resume(struct rpc_client *c)
{
	char text[RPC_TEXT_MAX + 1] = "";

	client_connect(c);
	if (client_attach(c, "default", c->attached.session, WAIT_MS, text))
		fail_msg("%s", text);
}

void client_regions(struct rpc_client *c)
{
	uint32_t have = 0;

	while (have < c->attached.nregions) {
		struct rpc_request req = {
			.op = RPC_REGIONS, .slot = RPC_NO_SLOT, .regions.first = have};
		struct rpc_region region;
		struct rpc_reply rep;
		struct wire_in r;

		client_send(c, &req);
		client_receive(c, &rep);
		assert_int_equal(rep.status, 0);
		assert_int_equal(rep.regions.nregions, c->attached.nregions);
		r = rpc_tail_reader(&rep.regions.tail);
		while (rpc_get_region(&r, &region)) {
			struct region_key key = {
				region.addr, region.len, region.rkey, region.access};

			assert_int_equal(region.index, have);
			assert_true(have < CLIENT_REGIONS);
			c->regions[have++] = region;
			assert_int_equal(channel_set_key(c->channel, region.index, &key), 0);
		}
	}
}

void client_bye(struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_BYE, .slot = RPC_NO_SLOT, .bye.lost = c->loses};
	struct rpc_reply rep;

	client_send(c, &req);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_BYE);
	assert_int_equal(rep.status, 0);
	client_wait_closed(c);
}

int client_transfer(
	struct rpc_client *c, enum io_dir dir, uint32_t region, uint64_t offset, uint32_t len)
{
	struct sge sge = {.addr = c->memory, .len = len, .buffer = c->buffer};
	struct work work = {.sge = &sge, .nsge = 1, .region = region, .offset = offset};
	struct event event;
	int err = channel_post(c->channel, dir, &work, 1, c);

	if (err)
		return err;
	client_event(c, &event);
	assert_int_equal(event.type, EV_DONE);
	assert_ptr_equal(event.cookie, c);
	return event.status;
}
