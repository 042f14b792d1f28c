/* driver_sweep.c - every message that a client may send, with every field wrong: in turn each byte of
 * it is changed, and it is cut at each length. The server refuses it, does it, or closes the
 * channel. Its memory stays whole, and a client of another export notices nothing.
 *
 * At night each byte gets all changes, and by day every fourth byte gets one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "tests/changed_byte.h"
#include "tests/unit/common/rpc/samples.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

/* So many files that the inode numbers of the samples are there. The server hands them out from 2
 * on. */
enum { FILES = 50, CHANGES = BYTE_CHANGES };

static struct test_server server;
static struct rpc_client hostile, victim;
static struct attr known[FILES]; /* the victim's files */
static bool at_night;

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* ---- the victim ------------------------------------------------------------------------------ */

static struct rpc_entry_reply name_call(struct rpc_client *c, unsigned op, unsigned i)
{
	struct rpc_request req = {.op = (uint16_t)op};
	struct rpc_reply rep;
	char name[16];

	snprintf(name, sizeof(name), "file%u", i);
	if (op == RPC_LOOKUP)
		req.name = (struct rpc_name_request){.parent = ROOT_INO, .name = str(name)};
	else
		req.create = (struct rpc_create){
			.parent = ROOT_INO, .mode = S_IFREG | 0600, .name = str(name)};
	assert_int_equal(client_call(c, 0, &req, &rep), 0);
	return rep.entry;
}

static void make_files(struct rpc_client *c)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct attr attr = name_call(c, RPC_CREATE, i).attr;

		if (c == &victim)
			known[i] = attr;
	}
}

static void stay_alive(struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	client_send(c, &req);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_PING);
	assert_int_equal(rep.status, 0);
}

static void assert_unharmed(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct attr attr = name_call(&victim, RPC_LOOKUP, i).attr;

		assert_int_equal(attr.ino, known[i].ino);
		assert_int_equal(attr.mode, known[i].mode);
		assert_int_equal(attr.nlink, 1);
		assert_int_equal(attr.ctime, known[i].ctime);
	}
}

static void begin_at(struct rpc_client *c, const char *export)
{
	char text[RPC_TEXT_MAX + 1] = "";

	client_connect(c);
	if (client_attach(c, export, 0, WAIT_MS, text))
		fail_msg("%s", text);
}

/* ---- the hostile client ---------------------------------------------------------------------- */

/* A new session in the place of the one before. */
static void begin_hostile(void)
{
	if (hostile.channel)
		client_drop(&hostile);
	hostile.ended = hostile.attached.session;
	memset(hostile.seq, 0, sizeof(hostile.seq));
	begin_at(&hostile, "default");
}

/* False: the channel is closed. */
static bool try_to_send(const void *data, size_t len)
{
	void *buf = channel_send_buffer(hostile.channel);

	if (!buf)
		return false;
	memcpy(buf, data, len);
	return !channel_send(hostile.channel, buf, (uint32_t)len, 0, 0);
}

/* The channel's next message. False: the server has closed the channel. Its messages are
 * always well-formed. */
static bool next_reply(struct rpc_reply *rep)
{
	struct event event;

	for (;;) {
		client_event(&hostile, &event);
		if (event.channel != hostile.channel)
			continue;
		if (event.type == EV_CLOSED)
			return false;
		if (event.type != EV_RECV)
			continue;
		if (event.len) { /* else a ring */
			memcpy(hostile.reply, event.data, event.len);
			channel_recv_done(hostile.channel, event.data);
			assert_int_equal(rpc_reply_decode(rep, RMEMFS_WIRE_VERSION, hostile.reply,
						 event.len),
				0);
			return true;
		}
		channel_recv_done(hostile.channel, event.data);
	}
}

/* Whether the channel still answers. */
static bool goes_on(void)
{
	static uint64_t number = 1ull << 63;
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT, .seq = ++number};
	uint8_t msg[256];
	struct rpc_reply rep;
	size_t len;

	assert_int_equal(rpc_request_encode(&req, RMEMFS_WIRE_VERSION, msg, sizeof(msg), &len), 0);
	try_to_send(msg, len);
	while (next_reply(&rep))
		if (rep.op == RPC_PING && rep.seq == number)
			return !rep.status;
	return false;
}

/* Says it, and begins anew if that has ended the channel. The victim stays alive meanwhile. */
static void say(const uint8_t *msg, size_t len)
{
	static unsigned n;

	if (++n % 64 == 0)
		stay_alive(&victim);
	server_heard(&server);
	if (!try_to_send(msg, len) || !goes_on())
		begin_hostile();
}

/* By day. Over verbs channels are slow to begin. */
static unsigned stride(void)
{
	return driver_kind == TRANSPORT_VERBS ? 32 : 4;
}

static bool is_due(size_t n, unsigned change)
{
	return at_night || n % (CHANGES * stride()) == change * stride();
}

/* The sample with the next number of a slot, and names of files that are there. A snapshot would
 * have a place below the server's own directory, whichever one byte of its path is changed. */
static size_t encode(unsigned op, uint8_t msg[RPC_MSG_BYTES])
{
	static char path[96];
	struct rpc_request req = request_of(op);
	size_t len;

	snprintf(path, sizeof(path), "%s/a/b", server.dir);
	if (op == RPC_SNAPSHOT)
		req.snapshot.dir = str(path);
	if (op == RPC_ATTACH)
		req.attach.export_name = str("default");
	if (op == RPC_LOOKUP || op == RPC_UNLINK || op == RPC_RMDIR)
		req.name.name = str("file7");
	if (op == RPC_RENAME)
		req.rename.name = str("file8");
	if (rpc_op_info(op)->slotted)
		client_number(&hostile, op % CLIENT_SLOTS, &req);
	assert_int_equal(
		rpc_request_encode(&req, RMEMFS_WIRE_VERSION, msg, RPC_MSG_BYTES, &len), 0);
	return len;
}

/* ---- the sweeps ------------------------------------------------------------------------------ */

static void end_sweep(void)
{
	assert_unharmed();
	client_bye(&victim);
	if (hostile.channel)
		client_drop(&hostile);
	server_check(&server);
}

static void bytes__of_an_attached_client(void **state)
{
	uint8_t msg[RPC_MSG_BYTES];

	begin_hostile();
	make_files(&hostile);
	for_each_op(op)
	{
		size_t len = encode(op, msg);

		for (size_t at = 0; at < len; at++) {
			for (unsigned change = 0; change < CHANGES; change++) {
				if (!is_due(op + at, change))
					continue;
				encode(op, msg);
				msg[at] = changed_byte(msg[at], change);
				say(msg, len);
			}
		}
	}
	end_sweep();
}

static void lengths__of_an_attached_client(void **state)
{
	uint8_t msg[RPC_MSG_BYTES];

	begin_hostile();
	make_files(&hostile);
	for_each_op(op)
	{
		size_t len = encode(op, msg);

		for (size_t cut = at_night ? 0 : op % 4; cut <= len;
			cut += at_night ? 1 : stride()) {
			encode(op, msg);
			say(msg, cut);
		}
		encode(op, msg);
		memset(msg + len, 0xff, sizeof(msg) - len);
		say(msg, len + 1);
		encode(op, msg);
		say(msg, sizeof(msg));
	}
	end_sweep();
}

/* Without a key, and with one: no request of a session gets more than a refusal. */
static void requests__before_attach(void **state)
{
	uint8_t msg[RPC_MSG_BYTES];

	for (unsigned proven = 0; proven < 2; proven++) {
		for_each_op(op)
		{
			struct rpc_reply rep;
			size_t len;

			if (proven && driver_kind == TRANSPORT_SHM)
				continue;
			client_connect(&hostile);
			if (proven)
				assert_int_equal(client_prove(&hostile, &server.key), 0);
			len = encode(op, msg);
			stay_alive(&victim);
			if (try_to_send(msg, len) && next_reply(&rep) &&
				(rpc_op_info(op)->slotted || op == RPC_ATTACH || op == RPC_AUTH))
				assert_int_not_equal(rep.status, 0);
			client_drop(&hostile);
		}
	}
	end_sweep();
}

/* The first message of a channel, whose key is proven. It waits for no other mount: all share. */
static void bytes__of_attach(void **state)
{
	uint8_t msg[RPC_MSG_BYTES];
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	size_t len;

	req.attach = (struct rpc_attach){.owner = "an owner",
		.instance = 1,
		.nchannels = 1,
		.flags = ATTACH_SHARED,
		.export_name = str("default"),
		.client = str("a stranger")};
	assert_int_equal(rpc_request_encode(&req, RMEMFS_WIRE_VERSION, msg, sizeof(msg), &len), 0);
	for (size_t at = 0; at < len; at++) {
		for (unsigned change = 0; change < CHANGES; change++) {
			uint8_t right = msg[at];

			if (!is_due(at, change))
				continue;
			client_connect(&hostile);
			if (driver_kind != TRANSPORT_SHM)
				assert_int_equal(client_prove(&hostile, &server.key), 0);
			stay_alive(&victim);
			msg[at] = changed_byte(right, change);
			if (try_to_send(msg, len))
				goes_on();
			msg[at] = right;
			client_drop(&hostile);
		}
	}
	end_sweep();
}

/* ---- main ------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	const char *night = getenv("RMEMFS_TEST_NIGHTLY");

	at_night = night && strcmp(night, "0") != 0;
	server_init(&server, driver_kind);
	server_export_too(&server, "other:64MiB");
	client_init(&hostile, &server, "hostile", 1);
	client_init(&victim, &server, "victim", 1);
	hostile.flags = ATTACH_SHARED;
	begin_at(&victim, "other");
	make_files(&victim);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&victim);
	client_fini(&hostile);
	server_fini(&server);
	return 0;
}

int driver_run_sweep(void)
{
#define SWEEP_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		SWEEP_TEST(bytes__of_an_attached_client),
		SWEEP_TEST(lengths__of_an_attached_client),
		SWEEP_TEST(requests__before_attach),
		SWEEP_TEST(bytes__of_attach),
	};

	return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
