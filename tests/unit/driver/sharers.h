/* sharers.h - for test_rpc_driver: clients that share one server's export, and their requests. Each
 * file that includes it has a server and clients of its own.
 *
 * Failures end the running cmocka test.
 */
#ifndef RMEMFS_TESTS_RPC_SHARERS_H
#define RMEMFS_TESTS_RPC_SHARERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"

enum { CLIENTS = 3, LEASE_MS = 3000 };

static struct test_server server;
static struct rpc_client clients[CLIENTS];
static char text[RPC_TEXT_MAX + 1] __attribute__((unused));

static inline int sharers_set_up(void **state)
{
	server_init_timed(&server, driver_kind, LEASE_MS / 1000, 3600);
	return 0;
}

static inline int sharers_tear_down(void **state)
{
	server_fini(&server);
	return 0;
}

#define SHARERS_TEST(test) cmocka_unit_test_setup_teardown(test, sharers_set_up, sharers_tear_down)

/* ---- requests -------------------------------------------------------------------------------- */

static inline struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static inline void begin(unsigned i, uint32_t flags)
{
	char owner[16];

	snprintf(owner, sizeof(owner), "client %u", i);
	client_init(&clients[i], &server, owner, 1);
	clients[i].flags = flags;
	client_begin(&clients[i]);
}

static inline struct rpc_request lease_request(uint64_t ino, uint8_t type)
{
	return (struct rpc_request){.op = RPC_LEASE, .lease = {ino, type, 0}};
}

static inline uint64_t take(unsigned i, uint64_t ino, uint8_t type)
{
	struct rpc_request req = lease_request(ino, type);
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[i], 0, &req, &rep), 0);
	assert_int_equal(rep.entry.lease.type, type);
	assert_int_equal(rep.entry.lease.ms, LEASE_MS);
	return rep.entry.lease.number;
}

/* Sends a request that is expected to wait. */
static inline void ask(unsigned i, unsigned slot, struct rpc_request req)
{
	client_number(&clients[i], slot, &req);
	client_send(&clients[i], &req);
}

static inline struct rpc_reply expect(unsigned i, uint16_t op, unsigned slot)
{
	struct rpc_reply rep;

	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, op);
	assert_int_equal(rep.slot, slot);
	assert_int_equal(rep.status, 0);
	return rep;
}

static inline void send_return(
	unsigned i, unsigned slot, uint64_t ino, uint64_t number, uint8_t keep, enum return_pin pin)
{
	uint8_t buf[RPC_RETURNED_BYTES];
	struct rpc_request req = {.op = RPC_RETURN, .ret = {RETURN_LEASES, {buf, sizeof(buf)}}};
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	rpc_put_returned(&w, &(struct rpc_returned){ino, number, keep, pin});
	ask(i, slot, req);
}

static inline void give_back(unsigned i, uint64_t ino, uint64_t number, uint8_t keep)
{
	send_return(i, 15, ino, number, keep, RETURN_PIN_AS_IT_IS);
	expect(i, RPC_RETURN, 15);
}

/* Makes a file. The client has it open, and returns its lease. */
static inline uint64_t make_file(unsigned i, const char *name)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = str(name)}};
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[i], 0, &req, &rep), 0);
	assert_int_equal(rep.entry.lease.type, LEASE_EXCLUSIVE);
	give_back(i, rep.entry.attr.ino, rep.entry.lease.number, LEASE_NONE);
	return rep.entry.attr.ino;
}

/* Returns the number of recalls in the PING reply, and the first of them. */
static inline unsigned ping(unsigned i, struct rpc_recall *recall)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	struct rpc_recall more;
	struct rpc_reply rep;
	struct wire_in r;
	unsigned n = 0;

	client_send(&clients[i], &req);
	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, RPC_PING);
	r = rpc_tail_reader(&rep.ping.tail);
	while (rpc_get_recall(&r, n ? &more : recall))
		n++;
	assert_false(r.truncated);
	return n;
}

static inline void expect_recall(unsigned i, uint64_t ino, uint64_t number, uint8_t keep)
{
	struct rpc_recall recall;

	assert_int_equal(ping(i, &recall), 1);
	assert_int_equal(recall.ino, ino);
	assert_int_equal(recall.number, number);
	assert_int_equal(recall.keep, keep);
}

static inline void expect_no_recall(unsigned i)
{
	struct rpc_recall recall;

	assert_int_equal(ping(i, &recall), 0);
}

static inline struct rpc_request getattr_request(uint64_t ino)
{
	return (struct rpc_request){.op = RPC_GETATTR, .ino = {ino}};
}

static inline struct rpc_request commit_request(uint64_t ino, uint64_t size)
{
	return (struct rpc_request){
		.op = RPC_COMMIT, .commit = {.ino = ino, .flags = COMMIT_SIZE, .size = size}};
}

static inline void cancel(unsigned i, unsigned slot, uint64_t seq)
{
	struct rpc_request req = {
		.op = RPC_CANCEL, .slot = RPC_NO_SLOT, .cancel = {(uint16_t)slot, seq}};

	client_send(&clients[i], &req);
}

static inline void expect_cancelled(unsigned i)
{
	struct rpc_reply rep;

	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, RPC_CANCEL);
	assert_int_equal(rep.status, 0);
}

static inline bool status_says(const char *words)
{
	static char json[RPC_MSG_BYTES];

	server_status(&server, json);
	return strstr(json, words);
}

#endif
