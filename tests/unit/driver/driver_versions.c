/* driver_versions.c - a server of the next release, with clients of this one and of its own: each
 * channel speaks its version, also after restarts, and a session can be taken over by a client of
 * another version. */
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
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

static struct test_server server;
static struct rpc_client client, second;

/* Only the server gets this environment, not this process's channels. */
static void start_of(uint32_t version)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", version);
	setenv("RMEMFS_WIRE", text, 1);
	server_start(&server);
	unsetenv("RMEMFS_WIRE");
}

static void restart_of(uint32_t version)
{
	server_kill(&server);
	client_drop(&client);
	start_of(version);
}

static void expect_session(const struct rpc_client *c, uint32_t version)
{
	static char json[RPC_MSG_BYTES];
	char id[40], wire[40];
	const char *at;

	snprintf(id, sizeof(id), "{\"id\":%llu,", (unsigned long long)c->attached.session);
	snprintf(wire, sizeof(wire), "\"wire_version\":%u,", version);
	server_status(&server, json);
	at = strstr(json, id);
	assert_non_null(at);
	at = strstr(at, "\"wire_version\":");
	assert_non_null(at);
	assert_memory_equal(at, wire, strlen(wire));
}

/* Sends the request as it is, and returns the length of its reply. */
static size_t send_again(const struct rpc_request *req, struct rpc_reply *rep)
{
	client_send(&client, req);
	client_receive(&client, rep);
	assert_int_equal(rep->op, req->op);
	assert_int_equal(rep->seq, req->seq);
	assert_int_equal(rep->status, 0);
	return client.reply_len;
}

static struct rpc_request create_request(const char *name)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO,
			.mode = S_IFREG | 0600,
			.exclusive = true,
			.name = {name, (uint16_t)strlen(name)}}};

	client_number(&client, 0, &req);
	return req;
}

static int try_trial(struct rpc_client *c)
{
	struct rpc_request req = {.op = RPC_TRIAL, .slot = RPC_NO_SLOT, .seq = 7};
	struct rpc_reply rep;

	client_send(c, &req);
	client_receive(c, &rep);
	assert_int_equal(rep.op, RPC_TRIAL);
	return rep.status;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The messages of the one differ from those of the other, on one server at the same time. */
static void versions__of_two_clients(void **state)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT, .seq = 1};
	struct rpc_reply rep;

	start_of(RMEMFS_WIRE_NEXT);
	second.version = RMEMFS_WIRE_NEXT;
	client.flags = second.flags = ATTACH_READ_ONLY;
	client_begin(&client);
	client_begin(&second);
	expect_session(&client, RMEMFS_WIRE_VERSION);
	expect_session(&second, RMEMFS_WIRE_NEXT);
	client_send(&client, &req);
	client_receive(&client, &rep);
	client_send(&second, &req);
	client_receive(&second, &rep);
	assert_int_equal(second.reply_len, client.reply_len + sizeof(uint32_t));
	assert_int_equal(try_trial(&second), 0);
}

/* A request that its version has not is no request. */
static void versions__a_later_request_ends_the_channel(void **state)
{
	uint8_t msg[64];
	struct rpc_request req = {.op = RPC_TRIAL, .slot = RPC_NO_SLOT, .seq = 7};
	size_t len;

	start_of(RMEMFS_WIRE_NEXT);
	client_begin(&client);
	assert_int_equal(rpc_request_encode(&req, RMEMFS_WIRE_NEXT, msg, sizeof(msg), &len), 0);
	client_send_bytes(&client, msg, len);
	client_wait_closed(&client);
	server_logs(&server, "a malformed message");
}

static void upgrade__the_session_and_its_replies_stay_as_they_are(void **state)
{
	struct rpc_reply first, again;
	struct rpc_request req;
	size_t len;

	server_start(&server);
	client_begin(&client);
	req = create_request("file");
	len = send_again(&req, &first);
	restart_of(RMEMFS_WIRE_NEXT);
	client_resume(&client);
	assert_true(client.attached.resumed);
	expect_session(&client, RMEMFS_WIRE_VERSION);
	assert_int_equal(send_again(&req, &again), len);
	assert_int_equal(again.entry.attr.ino, first.entry.attr.ino);
}

/* Another program goes on with the session: what the server has stored is told in its version. */
static void takeover__by_another_version(void **state)
{
	struct rpc_reply first, again;
	struct rpc_request req;
	size_t len;

	start_of(RMEMFS_WIRE_NEXT);
	client_begin(&client);
	req = create_request("file");
	len = send_again(&req, &first);
	client_drop(&client);
	client.version = RMEMFS_WIRE_NEXT;
	client_resume(&client);
	expect_session(&client, RMEMFS_WIRE_NEXT);
	assert_int_equal(send_again(&req, &again), len + sizeof(uint32_t));
	assert_int_equal(again.entry.attr.ino, first.entry.attr.ino);
	/* It is stored, too. The one before would not be spoken with any more. */
	restart_of(RMEMFS_WIRE_NEXT + 1);
	client_resume(&client);
	assert_true(client.attached.resumed);
	assert_int_equal(send_again(&req, &again), len + sizeof(uint32_t));
	assert_int_equal(again.entry.attr.ino, first.entry.attr.ino);
}

/* All channels of a session speak one version. */
static void takeover__ends_the_other_channels(void **state)
{
	char words[64];

	start_of(RMEMFS_WIRE_NEXT);
	client.nchannels = second.nchannels = 2;
	client_begin(&client);
	second.index = 1;
	second.instance = client.instance;
	memcpy(second.owner, client.owner, sizeof(second.owner));
	second.attached = client.attached;
	client_resume(&second);
	client_drop(&client);
	client.version = RMEMFS_WIRE_NEXT;
	client_resume(&client);
	client_wait_closed(&second);
	expect_session(&client, RMEMFS_WIRE_NEXT);
	snprintf(words, sizeof(words), "speaks version %d of the protocol now", RMEMFS_WIRE_NEXT);
	server_logs(&server, words);
	second.version = RMEMFS_WIRE_NEXT;
	client_resume(&second);
	assert_int_equal(try_trial(&client), 0);
	assert_int_equal(try_trial(&second), 0);
}

/* ---- the group ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	server_prepare(&server, driver_kind, 1, 3600);
	client_init(&client, &server, "client", 1);
	client_init(&second, &server, "second", 2);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&second);
	client_fini(&client);
	server_fini(&server);
	return 0;
}

#define VERSIONS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int driver_run_versions(void)
{
	static const struct CMUnitTest tests[] = {
		VERSIONS_TEST(versions__of_two_clients),
		VERSIONS_TEST(versions__a_later_request_ends_the_channel),
		VERSIONS_TEST(upgrade__the_session_and_its_replies_stay_as_they_are),
		VERSIONS_TEST(takeover__by_another_version),
		VERSIONS_TEST(takeover__ends_the_other_channels),
	};

#ifndef RMEMFS_CRASH_POINTS
	return 0; /* such a server has one version alone */
#endif
	return cmocka_run_group_tests_name("versions", tests, NULL, NULL);
}
