/* driver_convert.c - sessions that have an export for themselves until another client comes, and share
 * it from then on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/driver/holder.h"
#include "tests/unit/driver/sharers.h"

enum { ALONE = ATTACH_CONVERTS, BESIDE = ATTACH_CONVERTS | ATTACH_SHARED };

static struct rpc_request convert_request(enum rpc_convert_state state)
{
	return (struct rpc_request){.op = RPC_CONVERT, .convert = {(uint8_t)state}};
}

static int convert(unsigned i, enum rpc_convert_state state)
{
	struct rpc_request req = convert_request(state);
	struct rpc_reply rep;

	return client_call(&clients[i], 15, &req, &rep);
}

/* A client that is not let in at once. */
static void come(unsigned i, uint32_t flags)
{
	char owner[16];

	snprintf(owner, sizeof(owner), "client %u", i);
	client_init(&clients[i], &server, owner, 1);
	clients[i].flags = flags;
	client_connect(&clients[i]);
}

static int attach(unsigned i, uint32_t flags)
{
	clients[i].flags = flags;
	return client_attach(&clients[i], "default", 0, 0, text);
}

/* Another try: the server takes one ATTACH after the other on a channel. */
static void expect_attach(unsigned i, uint32_t flags, int status)
{
	assert_int_equal(attach(i, flags), status);
}

/* A client that waits. */
static void send_attach_as(unsigned i, uint32_t flags)
{
	struct rpc_request req = {.op = RPC_ATTACH, .slot = RPC_NO_SLOT};

	req.attach = (struct rpc_attach){.instance = 1,
		.nchannels = 1,
		.flags = flags,
		.wait_ms = WAIT_MS,
		.export_name = str("default"),
		.client = str("client that waits")};
	memcpy(req.attach.owner, clients[i].owner, OWNER_BYTES);
	client_send(&clients[i], &req);
}

static void send_attach(unsigned i)
{
	send_attach_as(i, BESIDE);
}

static void expect_let_in(unsigned i)
{
	struct rpc_reply rep;

	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, RPC_ATTACH);
	assert_int_equal(rep.status, 0);
}

static void expect_asked_to_share(unsigned i)
{
	expect_recall(i, 0, 0, RECALL_SHARE);
}

static void end(unsigned n)
{
	while (n)
		client_fini(&clients[--n]);
}

/* ---- one that is alone ----------------------------------------------------------------------- */

static void alone__needs_no_lease_and_gets_none(void **state)
{
	struct rpc_request lease,
		make = {.op = RPC_CREATE,
			.create = {
				.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = str("file")}};
	struct rpc_reply rep;

	begin(0, ALONE);
	assert_int_equal(client_call(&clients[0], 0, &make, &rep), 0);
	lease = lease_request(rep.entry.attr.ino, LEASE_EXCLUSIVE);
	assert_int_equal(client_call(&clients[0], 0, &lease, &rep), -EINVAL);
	expect_no_recall(0);
	end(1);
}

static void alone__beside_others_that_only_read(void **state)
{
	begin(0, ALONE | ATTACH_READ_ONLY);
	begin(1, ALONE | ATTACH_READ_ONLY);
	begin(2, ATTACH_READ_ONLY);
	expect_no_recall(0);
	end(3);
}

static void convert__not_of_one_that_does_not_convert(void **state)
{
	begin(0, ATTACH_SHARED);
	assert_int_equal(convert(0, CONVERT_SHARES), -EINVAL);
	assert_int_equal(convert(0, CONVERT_FORGOT), -EINVAL);
	end(1);
}

static void convert__one_state_after_the_other(void **state)
{
	begin(0, ALONE);
	assert_int_equal(convert(0, CONVERT_FORGOT), -EINVAL);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_SHARES), -EINVAL);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	assert_int_equal(convert(0, CONVERT_FORGOT), -EINVAL);
	end(1);
}

/* ---- another one comes ----------------------------------------------------------------------- */

static void second__gets_in_when_the_first_has_forgotten(void **state)
{
	uint64_t ino;

	begin(0, ALONE);
	come(1, ALONE);
	expect_attach(1, ALONE, -EALREADY);
	expect_no_recall(0);
	expect_attach(1, BESIDE, -EBUSY);
	assert_non_null(strstr(text, "it is about to share the export"));
	expect_asked_to_share(0);
	expect_asked_to_share(0);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	expect_no_recall(0);
	expect_attach(1, BESIDE, -EBUSY);
	ino = make_file(0, "file");
	take(0, ino, LEASE_EXCLUSIVE);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	expect_attach(1, BESIDE, 0);
	expect_no_recall(1);
	server_logs(&server, "goes by leases from now on");
	server_logs(&server, "lets other mounts in from now on");
	end(2);
}

/* A client that came with share from the start. */
static void second__with_share_only(void **state)
{
	begin(0, ALONE);
	come(1, ATTACH_SHARED);
	expect_attach(1, ATTACH_SHARED, -EBUSY);
	expect_asked_to_share(0);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	expect_attach(1, ATTACH_SHARED, 0);
	end(2);
}

/* It waits for as long as it said, and is let in by the first one's CONVERT. */
static void second__that_waits_is_let_in_at_once(void **state)
{
	int64_t began;

	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	send_attach(1);
	began = now_ms();
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	expect_let_in(1);
	assert_true(now_ms() - began < LEASE_MS);
	end(2);
}

static void third__asks_nothing_of_those_that_share(void **state)
{
	begin(0, BESIDE);
	begin(1, BESIDE);
	come(2, ALONE);
	expect_attach(2, ALONE, -EALREADY);
	expect_attach(2, BESIDE, 0);
	expect_no_recall(0);
	end(3);
}

static void writer__has_all_readers_converted(void **state)
{
	begin(0, ALONE | ATTACH_READ_ONLY);
	begin(1, ALONE | ATTACH_READ_ONLY);
	come(2, ALONE);
	expect_attach(2, ALONE, -EALREADY);
	expect_attach(2, BESIDE, -EBUSY);
	for (unsigned i = 0; i < 2; i++) {
		expect_asked_to_share(i);
		assert_int_equal(convert(i, CONVERT_SHARES), 0);
		expect_attach(2, BESIDE, -EBUSY);
		assert_int_equal(convert(i, CONVERT_FORGOT), 0);
	}
	expect_attach(2, BESIDE, 0);
	end(3);
}

static int attach_to_write(unsigned i)
{
	client_drop(&clients[i]);
	client_connect(&clients[i]);
	clients[i].flags = BESIDE;
	return client_attach(&clients[i], "default", clients[i].attached.session, 0, text);
}

static void begin_two_readers_of_which_one_shares(void)
{
	begin(0, ALONE | ATTACH_READ_ONLY);
	begin(1, ALONE | ATTACH_READ_ONLY);
	come(2, ALONE);
	expect_attach(2, BESIDE, -EBUSY);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
}

static void reader__writes_when_all_share(void **state)
{
	begin_two_readers_of_which_one_shares();
	assert_int_equal(convert(1, CONVERT_SHARES), 0);
	assert_int_equal(attach_to_write(0), -EROFS);
	assert_int_equal(convert(1, CONVERT_FORGOT), 0);
	assert_int_equal(attach_to_write(0), 0);
	end(3);
}

/* The other one goes by what it has read, and would not learn what this one writes. */
static void reader__does_not_write_beside_one_that_is_alone(void **state)
{
	begin_two_readers_of_which_one_shares();
	assert_int_equal(attach_to_write(0), -EROFS);
	assert_non_null(strstr(text, "has 1 more readers"));
	assert_int_equal(convert(1, CONVERT_SHARES), 0);
	assert_int_equal(convert(1, CONVERT_FORGOT), 0);
	assert_int_equal(attach_to_write(0), 0);
	end(3);
}

/* The client that it began to share for has gone again. */
static void reader__that_is_to_write_has_the_others_asked(void **state)
{
	begin(0, ALONE | ATTACH_READ_ONLY);
	begin(1, ALONE | ATTACH_READ_ONLY);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	expect_no_recall(1);
	assert_int_equal(attach_to_write(0), -EROFS);
	expect_asked_to_share(1);
	end(2);
}

/* Clients of the release before, with `noshare`, and with cache=exclusive. */
static void old__are_refused_and_not_waited_for(void **state)
{
	static const uint32_t lone[] = {0, ATTACH_EXCLUSIVE, ATTACH_READ_ONLY};

	for (unsigned i = 0; i < ARRAY_SIZE(lone); i++) {
		begin(0, ALONE);
		come(1, lone[i]);
		expect_attach(1, lone[i], -EBUSY);
		expect_no_recall(0);
		client_bye(&clients[0]);
		end(2);
		begin(0, lone[i]);
		come(1, ALONE);
		expect_attach(1, ALONE, -EBUSY);
		expect_attach(1, BESIDE, -EBUSY);
		expect_no_recall(0);
		client_bye(&clients[0]);
		end(2);
	}
}

/* ---- not now --------------------------------------------------------------------------------- */

static void not_now__it_stays_alone_and_is_asked_again(void **state)
{
	struct rpc_recall recall = {0};
	int64_t said;

	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	expect_asked_to_share(0);
	assert_int_equal(convert(0, CONVERT_NOT_NOW), 0);
	said = now_ms();
	expect_attach(1, BESIDE, -EBUSY);
	assert_non_null(strstr(text, "has files open for writing that it can't share"));
	expect_no_recall(0);
	send_attach(1);
	while (!ping(0, &recall))
		usleep(20000);
	assert_int_equal(recall.keep, RECALL_SHARE);
	assert_true(now_ms() - said >= 900);
	assert_int_equal(convert(0, CONVERT_NOT_NOW), 0);
	while (!ping(0, &recall))
		usleep(20000);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_NOT_NOW), -EINVAL);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	expect_let_in(1);
	end(2);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* It comes in the moment between the end of umount(8) and BYE. */
static void leaving__the_next_has_the_export_alone(void **state)
{
	struct rpc_reply rep;

	begin(0, ALONE);
	come(1, ALONE);
	expect_attach(1, 0, -EBUSY);
	send_attach_as(1, ALONE);
	client_bye(&clients[0]);
	expect_let_in(1);
	client_fini(&clients[0]);
	come(0, ALONE);
	expect_attach(0, 0, -EBUSY);
	send_attach_as(0, ALONE);
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.status, -EALREADY);
	expect_no_recall(1);
	end(2);
}

/* ---- back ------------------------------------------------------------------------------------ */

/* The server forgets the lease and the pin. */
static void back__not_beside_others_and_without_leases(void **state)
{
	uint64_t ino, number;

	begin(0, ALONE);
	assert_int_equal(convert(0, CONVERT_ALONE), -EINVAL);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_ALONE), -EINVAL);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	begin(1, BESIDE);
	assert_int_equal(convert(0, CONVERT_ALONE), -EBUSY);
	client_bye(&clients[1]);
	client_fini(&clients[1]);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	assert_int_equal(convert(0, CONVERT_ALONE), 0);
	/* It was on its way meanwhile. */
	send_return(0, 14, ino, number, LEASE_NONE, RETURN_UNPIN);
	expect(0, RPC_RETURN, 14);
	server_logs(&server, "is alone, and needs no lease from now on");
	come(1, ALONE);
	expect_attach(1, ALONE, -EALREADY);
	expect_attach(1, BESIDE, -EBUSY);
	expect_asked_to_share(0);
	client_bye(&clients[0]);
	end(2);
	server_check(&server);
}

/* ---- what it had ----------------------------------------------------------------------------- */

/* Files and directories whose last name it took while it was alone. */
static void convert__what_it_keeps_without_a_name(void **state)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = str("file")}};
	uint64_t file, folder, number;
	struct rpc_reply rep;

	begin(0, ALONE);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	file = rep.entry.attr.ino;
	req = (struct rpc_request){.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = 0755, .name = str("folder")}};
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	folder = rep.entry.attr.ino;
	req = (struct rpc_request){
		.op = RPC_UNLINK, .name = {.parent = ROOT_INO, .name = str("file")}};
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	req = (struct rpc_request){
		.op = RPC_RMDIR, .name = {.parent = ROOT_INO, .name = str("folder")}};
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	number = take(0, file, LEASE_EXCLUSIVE);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	req = getattr_request(file);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	assert_int_equal(rep.attr.attr.nlink, 0);
	send_return(0, 14, file, number, LEASE_NONE, RETURN_UNPIN);
	expect(0, RPC_RETURN, 14);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ESTALE);
	req = getattr_request(folder);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	send_return(0, 14, folder, 0, LEASE_NONE, RETURN_UNPIN);
	expect(0, RPC_RETURN, 14);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), -ESTALE);
	client_bye(&clients[0]);
	end(1);
	server_check(&server);
}

static struct rpc_request lock_request(uint64_t ino, uint64_t owner)
{
	return (struct rpc_request){.op = RPC_LOCK,
		.lock = {.ino = ino,
			.owner = owner,
			.end = LOCK_END_MAX,
			.kind = LOCK_KIND_FLOCK,
			.type = LOCK_EXCLUSIVE}};
}

static void convert__its_locks_stay(void **state)
{
	struct rpc_request lock,
		req = {.op = RPC_CREATE,
			.create = {
				.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = str("file")}};
	struct rpc_reply rep;

	begin(0, ALONE);
	assert_int_equal(client_call(&clients[0], 0, &req, &rep), 0);
	lock = lock_request(rep.entry.attr.ino, 1 << LOCK_PROCESS_BITS);
	assert_int_equal(client_call(&clients[0], 0, &lock, &rep), 0);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	begin(1, BESIDE);
	assert_int_equal(client_call(&clients[1], 0, &lock, &rep), -EAGAIN);
	end(2);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The server was killed when it had stored the change, and before its client had the answer. */
static void server_killed__nobody_is_let_in_before_it_has_forgotten(void **state)
{
	struct rpc_request req = convert_request(CONVERT_SHARES);
	struct rpc_reply rep;

	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	server_kill(&server);
	client_wait_closed(&clients[0]);
	client_wait_closed(&clients[1]);
	server_start(&server);
	client_connect(&clients[1]);
	expect_attach(1, BESIDE, -EBUSY);
	client_resume(&clients[0]);
	req.slot = 15;
	req.seq = clients[0].seq[15];
	client_send(&clients[0], &req);
	client_receive(&clients[0], &rep);
	assert_int_equal(rep.op, RPC_CONVERT);
	assert_int_equal(rep.status, 0);
	expect_attach(1, BESIDE, -EBUSY);
	assert_int_equal(convert(0, CONVERT_FORGOT), 0);
	expect_attach(1, BESIDE, 0);
	end(2);
}

static void server_killed__it_is_asked_again(void **state)
{
	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	expect_asked_to_share(0);
	server_kill(&server);
	client_wait_closed(&clients[0]);
	client_wait_closed(&clients[1]);
	server_start(&server);
	client_resume(&clients[0]);
	expect_no_recall(0);
	client_connect(&clients[1]);
	expect_attach(1, BESIDE, -EBUSY);
	expect_asked_to_share(0);
	end(2);
}

static void resume__not_as_one_that_converts_no_more(void **state)
{
	begin(0, ALONE);
	client_drop(&clients[0]);
	client_connect(&clients[0]);
	clients[0].flags = ATTACH_SHARED;
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, 0, text),
		-EINVAL);
	clients[0].flags = 0;
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, 0, text),
		-EINVAL);
	clients[0].flags = ALONE | ATTACH_READ_ONLY;
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, WAIT_MS, text),
		0);
	end(1);
}

/* It is heard all the time. Not over shm: a session ends with its process there. A kernel may take
 * one more lease time to forget. */
static void expect_late_is_ended(bool shares, const char *words)
{
	int64_t began, allowed_ms = (shares ? 2 : 1) * LEASE_MS - LEASE_MS / 3;
	struct rpc_recall recall;

	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	if (shares)
		assert_int_equal(convert(0, CONVERT_SHARES), 0);
	began = now_ms();
	send_attach(1);
	while (now_ms() - began < allowed_ms) {
		ping(0, &recall);
		usleep(50000);
	}
	expect_let_in(1);
	assert_true(now_ms() - began >= allowed_ms);
	client_wait_closed(&clients[0]);
	server_logs(&server, words);
	client_connect(&clients[0]);
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, 0, text),
		-EIDRM);
	end(2);
}

static void late__with_what_it_was_at(void **state)
{
	expect_late_is_ended(
		false, "is ended: it has not ended and committed what it was at in time");
}

static void late__with_forgetting(void **state)
{
	expect_late_is_ended(true, "is ended: it has not had its kernel forget names in time");
}

static void gone__the_second_gets_in(void **state)
{
	begin(0, ALONE);
	come(1, BESIDE);
	expect_attach(1, BESIDE, -EBUSY);
	assert_int_equal(convert(0, CONVERT_SHARES), 0);
	client_bye(&clients[0]);
	assert_int_equal(client_attach(&clients[1], "default", 0, WAIT_MS, text), 0);
	end(2);
}

int driver_run_convert(void)
{
	static const struct CMUnitTest tests[] = {
		SHARERS_TEST(alone__needs_no_lease_and_gets_none),
		SHARERS_TEST(alone__beside_others_that_only_read),
		SHARERS_TEST(convert__not_of_one_that_does_not_convert),
		SHARERS_TEST(convert__one_state_after_the_other),
		SHARERS_TEST(second__gets_in_when_the_first_has_forgotten),
		SHARERS_TEST(second__with_share_only),
		SHARERS_TEST(second__that_waits_is_let_in_at_once),
		SHARERS_TEST(third__asks_nothing_of_those_that_share),
		SHARERS_TEST(writer__has_all_readers_converted),
		SHARERS_TEST(reader__writes_when_all_share),
		SHARERS_TEST(reader__does_not_write_beside_one_that_is_alone),
		SHARERS_TEST(reader__that_is_to_write_has_the_others_asked),
		SHARERS_TEST(old__are_refused_and_not_waited_for),
		SHARERS_TEST(not_now__it_stays_alone_and_is_asked_again),
		SHARERS_TEST(leaving__the_next_has_the_export_alone),
		SHARERS_TEST(back__not_beside_others_and_without_leases),
		SHARERS_TEST(convert__what_it_keeps_without_a_name),
		SHARERS_TEST(convert__its_locks_stay),
		SHARERS_TEST(server_killed__nobody_is_let_in_before_it_has_forgotten),
		SHARERS_TEST(server_killed__it_is_asked_again),
		SHARERS_TEST(resume__not_as_one_that_converts_no_more),
		SHARERS_TEST(gone__the_second_gets_in),
	};
	static const struct CMUnitTest late[] = {
		SHARERS_TEST(late__with_what_it_was_at),
		SHARERS_TEST(late__with_forgetting),
	};
	int failed = cmocka_run_group_tests_name("convert", tests, NULL, NULL);

	if (driver_kind != TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("late conversion", late, NULL, NULL);
	return failed;
}
