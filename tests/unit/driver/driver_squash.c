/* driver_squash.c - a client whose users the server squashes: what ATTACH tells it, and by which
 * configuration its requests run, after a restart and a reload, too. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

#define ROOT_TO_7 "squash = \"root\"; anonuid = 7; anongid = 8;"
#define ALL_TO_9  "squash = \"all\"; anonuid = 9;"

static struct test_server server;
static struct rpc_client client, other;

static struct rpc_request make_request(uint16_t op, const char *name, uint32_t mode)
{
	return (struct rpc_request){.op = op,
		.create = {.parent = ROOT_INO,
			.mode = mode,
			.rdev = S_ISCHR(mode) ? 0x103 : 0,
			.name = {name, (uint16_t)strlen(name)}}};
}

static void start_with(const char *settings)
{
	server_configure(&server, settings);
	server_start(&server);
}

static void restart_with(const char *settings)
{
	server_kill(&server);
	start_with(settings);
}

static void reload_with(const char *settings)
{
	server_configure(&server, settings);
	server_reload(&server);
}

static bool status_says(const char *words)
{
	static char json[RPC_MSG_BYTES];

	server_status(&server, json);
	return strstr(json, words);
}

/* The client was told this, and what it makes as root belongs to these. */
static void expect_squash(
	struct rpc_client *c, const char *name, uint8_t kind, uint32_t uid, uint32_t gid)
{
	struct rpc_request req = make_request(RPC_MKDIR, name, S_IFDIR | 0755);
	struct rpc_reply rep;

	assert_int_equal(c->attached.squash.kind, kind);
	assert_int_equal(c->attached.squash.anonuid, uid);
	assert_int_equal(c->attached.squash.anongid, gid);
	assert_int_equal(client_call(c, 0, &req, &rep), 0);
	assert_int_equal(rep.entry.attr.uid, uid);
	assert_int_equal(rep.entry.attr.gid, gid);
}

/* ---- one configuration ----------------------------------------------------------------------- */

static void attach__tells_the_squash(void **state)
{
	start_with(ROOT_TO_7);
	client_begin(&client);
	expect_squash(&client, "a", SQUASH_ROOT, 7, 8);
	server_logs(&server, ", root counts as 7:8\n");
	assert_true(status_says("\"squash\":{\"kind\":\"root\",\"anonuid\":7,\"anongid\":8}"));
}

static void attach__without_squash(void **state)
{
	start_with("squash = \"none\";");
	client_begin(&client);
	expect_squash(&client, "a", SQUASH_NONE, 0, 0);
	assert_false(server_logged(&server, "count"));
	assert_true(status_says("\"squash\":{\"kind\":\"none\",\"anonuid\":0,\"anongid\":0}"));
}

/* Over shm the peer is root, or the server's user. */
static void attach__over_shm_squashes_nobody(void **state)
{
	start_with(ALL_TO_9);
	client_begin(&client);
	expect_squash(&client, "a", SQUASH_NONE, 0, 0);
}

static void refuse__tells_why(void **state)
{
	struct rpc_request req = make_request(RPC_MKNOD, "null", S_IFCHR | 0666);
	struct rpc_reply rep;

	start_with(ALL_TO_9);
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), -EPERM);
	assert_non_null(memmem(rep.text.s, rep.text.len, "no devices", 10));
	/* The answer was stored. */
	client_send(&client, &req);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, -EPERM);
}

static void join__channel_is_squashed_too(void **state)
{
	start_with(ALL_TO_9);
	client.nchannels = other.nchannels = 2;
	client_begin(&client);
	other.attached = client.attached;
	other.instance = client.instance;
	other.index = 1;
	memcpy(other.owner, client.owner, sizeof(other.owner));
	client_resume(&other);
	assert_int_equal(other.attached.session, client.attached.session);
	expect_squash(&other, "a", SQUASH_ALL, 9, 65534);
	expect_squash(&client, "b", SQUASH_ALL, 9, 65534);
}

/* ---- a change of it -------------------------------------------------------------------------- */

static void resume_after_restart(const char *settings)
{
	restart_with(settings);
	client_wait_closed(&client);
	assert_true(status_says("\"squash\":null"));
	client_resume(&client);
	assert_true(client.attached.resumed);
}

/* A request that was executed has the answer of then. New ones run by the present configuration. */
static void restart__uses_the_present_squash(void **state)
{
	struct rpc_request req = make_request(RPC_MKDIR, "a", S_IFDIR | 0755);
	struct rpc_reply rep;
	uint64_t session;

	start_with("");
	client_begin(&client);
	session = client.attached.session;
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	resume_after_restart(ALL_TO_9);
	assert_int_equal(client.attached.session, session);
	client_send(&client, &req);
	client_receive(&client, &rep);
	assert_int_equal(rep.status, 0);
	assert_int_equal(rep.entry.attr.uid, 0);
	expect_squash(&client, "b", SQUASH_ALL, 9, 65534);
	resume_after_restart(ROOT_TO_7);
	expect_squash(&client, "c", SQUASH_ROOT, 7, 8);
	resume_after_restart("");
	expect_squash(&client, "d", SQUASH_NONE, 0, 0);
}

static void reload__of_another_squash_makes_the_client_attach_again(void **state)
{
	static const struct {
		const char *settings;
		uint8_t kind;
		uint32_t uid, gid;
	} cases[] = {
		{ROOT_TO_7, SQUASH_ROOT, 7, 8},
		{"squash = \"root\"; anonuid = 6; anongid = 8;", SQUASH_ROOT, 6, 8},
		{ALL_TO_9, SQUASH_ALL, 9, 65534},
		{"", SQUASH_NONE, 0, 0},
	};
	char name[8];

	start_with("");
	client_begin(&client);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t session = client.attached.session;

		reload_with(cases[i].settings);
		client_wait_closed(&client);
		client_resume(&client);
		assert_int_equal(client.attached.session, session);
		snprintf(name, sizeof(name), "%zu", i);
		expect_squash(&client, name, cases[i].kind, cases[i].uid, cases[i].gid);
	}
	server_logs(&server, "squash, anonuid or anongid of client test has changed");
}

static void reload__of_the_same_squash_closes_nothing(void **state)
{
	start_with(ROOT_TO_7);
	client_begin(&client);
	reload_with(ROOT_TO_7 " sessions = 3;");
	expect_squash(&client, "a", SQUASH_ROOT, 7, 8);
	server_logs(&server, "0 channels closed");
}

/* It is let in after the reload, by what holds then. */
static void reload__while_an_attach_waits(void **state)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};
	struct rpc_reply rep;

	start_with("");
	client_begin(&client);
	client_connect(&other);
	assert_int_equal(client_prove(&other, &server.key), 0);
	req.attach = (struct rpc_attach){.instance = 2,
		.nchannels = 1,
		.wait_ms = WAIT_MS,
		.export_name = {"default", 7},
		.client = {"other", 5}};
	memcpy(req.attach.owner, other.owner, OWNER_BYTES);
	client_send(&other, &req);
	reload_with(ROOT_TO_7);
	client_wait_closed(&client);
	client_resume(&client);
	client_bye(&client);
	client_receive(&other, &rep);
	assert_int_equal(rep.op, RPC_ATTACH);
	assert_int_equal(rep.status, 0);
	other.attached = rep.attach;
	expect_squash(&other, "a", SQUASH_ROOT, 7, 8);
}

/* ---- the group ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	server_prepare(&server, driver_kind, 1, 3600);
	client_init(&client, &server, "client", 1);
	client_init(&other, &server, "other", 2);
	return 0;
}

static int tear_down(void **state)
{
	client_fini(&other);
	client_fini(&client);
	server_fini(&server);
	return 0;
}

#define SQUASH_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int driver_run_squash(void)
{
	static const struct CMUnitTest tests[] = {
		SQUASH_TEST(attach__tells_the_squash),
		SQUASH_TEST(attach__without_squash),
		SQUASH_TEST(refuse__tells_why),
		SQUASH_TEST(join__channel_is_squashed_too),
		SQUASH_TEST(restart__uses_the_present_squash),
		SQUASH_TEST(reload__of_another_squash_makes_the_client_attach_again),
		SQUASH_TEST(reload__of_the_same_squash_closes_nothing),
		SQUASH_TEST(reload__while_an_attach_waits),
	};
	static const struct CMUnitTest shm_tests[] = {
		SQUASH_TEST(attach__over_shm_squashes_nobody),
	};

	if (driver_kind == TRANSPORT_SHM)
		return cmocka_run_group_tests_name("squash over shm", shm_tests, NULL, NULL);
	return cmocka_run_group_tests_name("squash", tests, NULL, NULL);
}
