/* contract_protect.c - channels that are protected: what is not the peer's ends them. */
#include "tests/unit/common/transport/contract.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cut_guard.h"

struct channel_keys contract_keys(uint64_t number)
{
	struct channel_keys keys;

	memset(&keys.client, (int)(2 * number), sizeof(keys.client));
	memset(&keys.server, (int)(2 * number + 1), sizeof(keys.server));
	return keys;
}

static void protect__says_what_it_protects(void **state)
{
	static const enum channel_protection most[] = {
		[TRANSPORT_VERBS] = CHANNEL_MESSAGES,
		[TRANSPORT_TCP] = CHANNEL_ALL,
		[TRANSPORT_SHM] = CHANNEL_LOCAL,
	};
	struct fixture *f = *state;

	assert_int_equal(channel_protection(f->ch),
		contract_kind == TRANSPORT_SHM ? CHANNEL_LOCAL : CHANNEL_PLAIN);
	protect_channel(f, f->ch);
	assert_int_equal(channel_protection(f->ch),
		contract_messages_only ? CHANNEL_MESSAGES : most[contract_kind]);
}

/* The server's answer is by other keys than ours: it comes from somebody else. */
static void protect__other_keys__nothing_comes_in(void **state)
{
	struct fixture *f = *state;

	begin_protection(f->ch, 1, 2);
	expect_event(f->q, EV_CLOSED, -EBADMSG);
	assert_int_equal(channel_protection(f->ch), CHANNEL_PLAIN);
}

static void protect__other_keys__nothing_goes_out(void **state)
{
	struct fixture *f = *state;
	struct channel_keys keys = contract_keys(2);

	begin_protection(f->ch, 1, 1);
	expect_ask(f->q);
	assert_int_equal(channel_protect(f->ch, PROTECT_OUT, &keys), 0);
	send_message(f->ch, "a message", 9, 0, 0);
	assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, -EBADMSG);
	assert_int_equal(next_event(f->q).type, EV_CLOSED);
}

/* An attacker that has come between can't go on in the place of the client. */
static void protect__plain_message__ends_the_channel(void **state)
{
	struct fixture *f = *state;
	struct peer_note closed;

	begin_protection(f->ch, 1, 1);
	expect_ask(f->q);
	send_message(f->ch, "a message that is long enough to be a record of some kind", 57, 0, 0);
	closed = peer_expect(&f->peer, PEER_CLOSED);
	assert_int_equal(closed.status, -EBADMSG);
	assert_int_equal(next_event(f->q).type, EV_CLOSED);
}

/* A message that came plain would pass for a proven one. */
static void protect__server_holds_a_plain_message__is_refused(void **state)
{
	struct fixture *f = *state;

	send_ask(f->ch, (struct ask){.op = ASK_HOLD});
	send_ask(f->ch, (struct ask){.op = ASK_PROTECT, .value = 1});
	assert_int_equal(expect_ask(f->q).count, EPROTO);
}

static void protect__client_holds_a_plain_message__is_refused(void **state)
{
	struct fixture *f = *state;
	struct channel_keys keys = contract_keys(1);
	struct event first, second;

	send_ask(f->ch, (struct ask){.op = ASK_FLOOD, .count = 2});
	first = expect_event(f->q, EV_RECV, 0);
	second = expect_event(f->q, EV_RECV, 0);
	assert_int_equal(channel_protect(f->ch, PROTECT_IN, &keys), -EPROTO);
	channel_recv_done(f->ch, second.data);
	assert_int_equal(channel_protect(f->ch, PROTECT_IN, &keys), 0);
	channel_recv_done(f->ch, first.data);
}

/* Both ends of a channel in this process. */
static void open_pair(struct fixture *f, struct channel **client, struct channel **server)
{
	assert_int_equal(channel_connect(f->q, &f->address, client), 0);
	*server = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(*server), 0);
	expect_event(f->q, EV_OPEN, 0);
	expect_event(f->q, EV_OPEN, 0);
}

static void protect_pair(struct fixture *f, struct channel *client, struct channel *server)
{
	struct channel_keys keys = contract_keys(3);
	struct event event;

	send_message(client, "last", 4, 0, 0);
	assert_int_equal(channel_protect(client, PROTECT_IN, &keys), 0);
	event = expect_event(f->q, EV_RECV, 0);
	assert_int_equal(channel_protect(server, PROTECT_IN | PROTECT_OUT, &keys), 0);
	channel_recv_done(server, event.data);
	publish_all(server, f->regions);
	take_keys(f, client, f->keys);
	assert_int_equal(channel_protect(client, PROTECT_OUT, &keys), 0);
}

/* Another process has cut the file of a region. By the records' cipher the server's I/O thread
 * itself touches the lost memory, and neither ends nor takes zeros for the region's bytes. */
static void transfer_to_lost_memory(struct fixture *f, enum io_dir dir)
{
	static uint8_t bytes[PAGE_BYTES];
	struct channel *client, *server;
	struct buffer *buffer;
	struct cut_guard guard;
	struct sge sge = {.addr = bytes, .len = sizeof(bytes)};
	struct work work = {.sge = &sge, .nsge = 1};
	struct event event;
	bool ended = false;

	assert_int_equal(buffer_register(f->t, bytes, sizeof(bytes), &buffer), 0);
	sge.buffer = buffer;
	open_pair(f, &client, &server);
	protect_pair(f, client, server);
	assert_int_equal(
		cut_guard_add(&guard, f->memory[0].fd, f->memory[0].addr, REGION_BYTES, NULL), 0);
	assert_int_equal(ftruncate(f->memory[0].fd, 0), 0);
	assert_int_equal(channel_post(client, dir, &work, 1, f), 0);
	while (!ended) {
		event = next_event(f->q);
		if (event.type == EV_DONE)
			assert_int_not_equal(event.status, 0);
		ended = event.channel == server && event.type == EV_CLOSED;
	}
	assert_int_equal(event.status, -EFAULT);
	channel_delete(client);
	channel_delete(server);
	buffer_deregister(buffer);
	cut_guard_remove(&guard);
}

static void protect__read_of_lost_memory__ends_the_channel(void **state)
{
	transfer_to_lost_memory(*state, IO_READ);
}

static void protect__write_to_lost_memory__ends_the_channel(void **state)
{
	transfer_to_lost_memory(*state, IO_WRITE);
}

/* tcp: a message behind the last plain one, which the server's I/O thread has read already. */
static void protect__plain_message_on_its_way__is_never_given(void **state)
{
	struct fixture *f = *state;
	struct channel_keys keys = contract_keys(1);
	struct channel *client, *server;
	struct event event;
	uint64_t before;
	int err;

	open_pair(f, &client, &server);
	before = channel_progress(server);
	send_message(client, "last", 4, 0, 0);
	event = expect_event(f->q, EV_RECV, 0);
	assert_ptr_equal(event.channel, server);
	before = 2 * channel_progress(server) - before;
	send_message(client, "late", 4, 0, 0);
	while (channel_progress(server) < before)
		sched_yield();
	err = channel_protect(server, PROTECT_IN | PROTECT_OUT, &keys);
	channel_recv_done(server, event.data);
	assert_true(err == 0 || err == -EPROTO);
	if (!err) {
		event = next_event(f->q);
		assert_int_equal(event.type, EV_CLOSED);
		assert_int_equal(event.status, -EPROTO);
	}
	channel_delete(client);
	channel_delete(server);
}

/* tcp: a WRITE by other keys never reaches the region. */
static void protect__other_keys__no_byte_is_written(void **state)
{
	struct fixture *f = *state;
	struct channel_keys keys = contract_keys(2);

	memset(f->buf, 'x', 1 << 20);
	memset(f->memory[0].addr, 'a', 1 << 20);
	begin_protection(f->ch, 1, 1);
	expect_ask(f->q);
	assert_int_equal(channel_protect(f->ch, PROTECT_OUT, &keys), 0);
	assert_int_equal(post_one(f, IO_WRITE, 0, 1 << 20, 0, 0, f), 0);
	assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, -EBADMSG);
	for (size_t i = 0; i < 1 << 20; i++)
		assert_int_equal(f->memory[0].addr[i], 'a');
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(protect__says_what_it_protects),
	CHANNEL_CASE(protect__server_holds_a_plain_message__is_refused),
	CHANNEL_CASE(protect__client_holds_a_plain_message__is_refused),
};

static const struct CMUnitTest network_tests[] = {
	CHANNEL_CASE(protect__other_keys__nothing_comes_in),
	CHANNEL_CASE(protect__other_keys__nothing_goes_out),
	CHANNEL_CASE(protect__plain_message__ends_the_channel),
};

static const struct CMUnitTest tcp_tests[] = {
	CHANNEL_CASE(protect__other_keys__no_byte_is_written),
	SERVER_CASE(protect__read_of_lost_memory__ends_the_channel),
	SERVER_CASE(protect__write_to_lost_memory__ends_the_channel),
	SERVER_CASE(protect__plain_message_on_its_way__is_never_given),
};

enum { NETWORK_KINDS = 1 << TRANSPORT_TCP | 1 << TRANSPORT_VERBS };

const struct cases protect_cases = {"protect", tests, ARRAY_SIZE(tests), ALL_KINDS};
const struct cases protect_network_cases = {
	"protect", network_tests, ARRAY_SIZE(network_tests), NETWORK_KINDS};
const struct cases protect_tcp_cases = {
	"protect", tcp_tests, ARRAY_SIZE(tcp_tests), 1 << TRANSPORT_TCP};
