/* driver_leases.c - sessions that share an export: recalls and waits for leases. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/rpc/lease_type.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/driver/holder.h"
#include "tests/unit/driver/sharers.h"

static void begin_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		begin(i, ATTACH_SHARED);
}

static void end_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		client_fini(&clients[i]);
}

/* Repeats PING until the recall is there: the server learns of its cause by a later event. */
static void await_recall(unsigned i, uint8_t keep)
{
	int64_t until = now_ms() + WAIT_MS;
	struct rpc_recall recall;

	do {
		recall.keep = LEASE_EXCLUSIVE; /* of no recall */
		ping(i, &recall);
		assert_true(now_ms() < until);
	} while (recall.keep != keep);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* wait_ms of an ATTACH that must be refused */
enum { REFUSED_MS = 10 };

/* Returns the status of the second session's ATTACH. Both sessions end with BYE, so that the next
 * test finds none. */
static int attach_beside(uint32_t flags, uint32_t others, uint32_t wait_ms)
{
	struct holder h;
	int status;

	holder_start(&h, &server, "first", 1, others);
	client_init(&clients[0], &server, "second", 1);
	clients[0].flags = flags;
	client_connect(&clients[0]);
	status = client_attach(&clients[0], "default", 0, wait_ms, text);
	if (!status)
		client_bye(&clients[0]);
	client_fini(&clients[0]);
	close(h.go);
	holder_wait(&h);
	return status;
}

static void share__only_with_those_who_do(void **state)
{
	static const uint32_t all[] = {ATTACH_SHARED, ATTACH_SHARED | ATTACH_READ_ONLY, 0,
		ATTACH_READ_ONLY, ATTACH_EXCLUSIVE};

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(all); k++) {
			bool both = all[i] & all[k] & ATTACH_SHARED;
			bool read = all[i] == ATTACH_READ_ONLY && all[k] == ATTACH_READ_ONLY;
			int expected = both || read ? 0 : -EBUSY;

			assert_int_equal(
				attach_beside(all[i], all[k], expected ? REFUSED_MS : WAIT_MS),
				expected);
			if ((all[i] ^ all[k]) & ATTACH_SHARED &&
				!((all[i] | all[k]) & ATTACH_EXCLUSIVE))
				assert_non_null(strstr(text, "mount"));
		}
	}
}

static void share__is_refused_with_words(void **state)
{
	assert_int_equal(attach_beside(ATTACH_SHARED, 0, REFUSED_MS), -EBUSY);
	assert_non_null(strstr(text, "one of the two can't share it: unmount it there"));
	assert_int_equal(attach_beside(0, ATTACH_SHARED, REFUSED_MS), -EBUSY);
	assert_non_null(strstr(text, "one of the two can't share it: unmount it there"));
	assert_int_equal(attach_beside(ATTACH_SHARED | ATTACH_EXCLUSIVE, ATTACH_SHARED, REFUSED_MS),
		-EINVAL);
	assert_non_null(strstr(text, "not both"));
}

static void share__is_for_a_sessions_life(void **state)
{
	begin(0, ATTACH_SHARED);
	client_drop(&clients[0]);
	client_connect(&clients[0]);
	clients[0].flags = 0;
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, 0, text),
		-EINVAL);
	assert_non_null(strstr(text, "shared"));
	client_fini(&clients[0]);
}

static void share__one_becomes_a_writer_while_others_read(void **state)
{
	begin(0, ATTACH_SHARED | ATTACH_READ_ONLY);
	begin(1, ATTACH_SHARED | ATTACH_READ_ONLY);
	client_drop(&clients[0]);
	client_connect(&clients[0]);
	clients[0].flags = ATTACH_SHARED;
	assert_int_equal(
		client_attach(&clients[0], "default", clients[0].attached.session, 0, text), 0);
	take(0, make_file(0, "file"), LEASE_EXCLUSIVE);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* ---- recalls --------------------------------------------------------------------------------- */

static void recall__is_told_until_nobody_wants_it(void **state)
{
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	expect_no_recall(0);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1); /* and the server has both requests */
	expect_recall(0, ino, number, LEASE_SHARED);
	expect_recall(0, ino, number, LEASE_SHARED);
	ask(2, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(2);
	expect_recall(0, ino, number, LEASE_NONE);
	client_drop(&clients[2]);
	await_recall(0, LEASE_SHARED);
	client_drop(&clients[1]);
	await_recall(0, LEASE_EXCLUSIVE);
	end_all();
}

/* CREATE of an existing file pins it again for a client that has it already. */
static void recall__is_of_what_was_pinned_anew(void **state)
{
	struct rpc_request create = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .name = str("file")}};
	uint64_t ino, number;
	struct rpc_reply rep;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(1);
	expect_recall(0, ino, number, LEASE_NONE);
	assert_int_equal(client_call(&clients[0], 0, &create, &rep), 0);
	assert_int_equal(rep.entry.attr.ino, ino);
	assert_true(rep.entry.lease.number > number);
	expect_recall(0, ino, rep.entry.lease.number, LEASE_NONE);
	give_back(0, ino, rep.entry.lease.number, LEASE_NONE);
	expect(1, RPC_LEASE, 0);
	end_all();
}

static void recall__of_shared_ones_reaches_all(void **state)
{
	uint64_t ino, numbers[2];

	begin_all();
	ino = make_file(0, "file");
	numbers[0] = take(0, ino, LEASE_SHARED);
	numbers[1] = take(1, ino, LEASE_SHARED);
	ask(2, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(2);
	for (unsigned i = 0; i < 2; i++) {
		expect_recall(i, ino, numbers[i], LEASE_NONE);
		/* A return with an older number answers nothing. */
		give_back(i, ino, numbers[i] - 1, LEASE_NONE);
		expect_recall(i, ino, numbers[i], LEASE_NONE);
		assert_true(status_says("\"waiting\":1"));
		assert_true(status_says("\"recalls\":1"));
		give_back(i, ino, numbers[i], LEASE_NONE);
		expect_no_recall(i);
	}
	assert_int_equal(expect(2, RPC_LEASE, 0).entry.lease.type, LEASE_EXCLUSIVE);
	assert_true(status_says("\"exclusive\":1,\"pins\":1,\"waiting\":0"));
	end_all();
}

static void recall__is_of_each_file_that_is_waited_for(void **state)
{
	enum { SLOTS = 14 };
	uint64_t inos[SLOTS];
	char name[16];
	struct rpc_recall recall;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	for (unsigned i = 0; i < SLOTS; i++) {
		snprintf(name, sizeof(name), "%u", i);
		inos[i] = make_file(0, name);
		take(0, inos[i], LEASE_EXCLUSIVE);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		ask(1, i, getattr_request(inos[i]));
	expect_no_recall(1);
	assert_int_equal(ping(0, &recall), SLOTS);
	assert_int_equal(recall.ino, inos[0]);
	for (unsigned i = 0; i < SLOTS; i++) {
		give_back(0, inos[i], UINT64_MAX, LEASE_SHARED);
		expect(1, RPC_GETATTR, i);
	}
	expect_no_recall(0);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait__is_over_in_the_order_of_coming(void **state)
{
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(1);
	ask(2, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(2);
	/* The holder wants the lease again at once. */
	send_return(0, 15, ino, number, LEASE_NONE, RETURN_PIN_AS_IT_IS);
	ask(0, 1, lease_request(ino, LEASE_EXCLUSIVE));
	expect(0, RPC_RETURN, 15);
	number = expect(1, RPC_LEASE, 0).entry.lease.number;
	expect_no_recall(2);
	expect_no_recall(0);
	expect_recall(1, ino, number, LEASE_NONE);
	give_back(1, ino, number, LEASE_NONE);
	number = expect(2, RPC_LEASE, 0).entry.lease.number;
	expect_no_recall(0);
	give_back(2, ino, number, LEASE_NONE);
	expect(0, RPC_LEASE, 1);
	end_all();
}

static void wait__of_a_writer_ends_though_readers_keep_coming(void **state)
{
	struct rpc_request if_free = {.op = RPC_LEASE};
	struct rpc_reply rep;
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_SHARED);
	ask(1, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(1);
	if_free.lease = (struct rpc_lease){ino, LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE};
	assert_int_equal(client_call(&clients[2], 1, &if_free, &rep), 0);
	assert_int_equal(rep.entry.lease.type, LEASE_NONE);
	ask(2, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(2);
	give_back(0, ino, number, LEASE_NONE);
	number = expect(1, RPC_LEASE, 0).entry.lease.number;
	expect_recall(1, ino, number, LEASE_SHARED);
	give_back(1, ino, number, LEASE_SHARED);
	assert_int_equal(expect(2, RPC_LEASE, 0).entry.lease.type, LEASE_SHARED);
	end_all();
}

/* A request that waits behind one that is gone waits only for the remaining ones. */
static void wait__is_not_for_those_who_went(void **state)
{
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_SHARED);
	ask(1, 0, lease_request(ino, LEASE_EXCLUSIVE));
	expect_no_recall(1);
	ask(2, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(2);
	expect_recall(0, ino, number, LEASE_NONE);
	client_drop(&clients[1]);
	expect(2, RPC_LEASE, 0);
	expect_no_recall(0);
	end_all();
}

static void wait__brings_what_was_committed(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, getattr_request(ino));
	ask(1, 1, (struct rpc_request){.op = RPC_LOOKUP, .name = {ROOT_INO, str("file")}});
	expect_no_recall(1);
	req = commit_request(ino, 12345);
	assert_int_equal(client_call(&clients[0], 1, &req, &rep), 0);
	expect_no_recall(1);
	give_back(0, ino, number, LEASE_SHARED);
	assert_int_equal(expect(1, RPC_GETATTR, 0).attr.attr.size, 12345);
	assert_int_equal(expect(1, RPC_LOOKUP, 1).entry.attr.size, 12345);
	req = commit_request(ino, 99999);
	assert_int_equal(client_call(&clients[0], 1, &req, &rep), -ESTALE);
	assert_non_null(memmem(rep.text.s, rep.text.len, "no lease", 8));
	end_all();
}

/* Over shm both messages are in one batch. The breach closes the channel without an answer, but the
 * server has taken the return. */
static void wait__is_over_by_what_came_with_a_breach(void **state)
{
	struct rpc_request breach = {
		.op = RPC_MKDIR, .create = {.parent = ROOT_INO, .mode = 0755, .name = str("dir")}};
	uint64_t ino, number;
	int64_t began;

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	expect_recall(0, ino, number, LEASE_SHARED);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	breach.seq = clients[0].seq[0];
	client_send(&clients[0], &breach);
	send_return(0, 15, ino, number, LEASE_SHARED, RETURN_PIN_AS_IT_IS);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	began = now_ms();
	expect(1, RPC_GETATTR, 0);
	assert_true(now_ms() - began < LEASE_MS / 2);
	client_wait_closed(&clients[0]);
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

static void wait__for_a_file_that_goes_is_stale(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 0, getattr_request(ino));
	expect_no_recall(1);
	req = (struct rpc_request){.op = RPC_UNLINK, .name = {ROOT_INO, str("file")}};
	assert_int_equal(client_call(&clients[0], 1, &req, &rep), 0);
	expect_no_recall(1);
	send_return(0, 15, ino, number, LEASE_NONE, RETURN_UNPIN);
	expect(0, RPC_RETURN, 15);
	client_receive(&clients[1], &rep);
	assert_int_equal(rep.status, -ESTALE);
	end_all();
}

/* The client that has the file open says so in its RETURN, and the file stays. */
static void wait__of_who_takes_the_last_name(void **state)
{
	struct rpc_request req = {.op = RPC_UNLINK, .name = {ROOT_INO, str("file")}};
	struct rpc_reply rep;
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(1, ino, LEASE_SHARED);
	ask(2, 0, req);
	expect_no_recall(2);
	expect_recall(1, ino, number, LEASE_NONE);
	/* A later request for the lease waits behind the removal. */
	ask(0, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(0);
	send_return(1, 15, ino, number, LEASE_NONE, RETURN_PIN);
	expect(1, RPC_RETURN, 15);
	assert_int_equal(expect(2, RPC_UNLINK, 0).remove.child.nlink, 0);
	assert_int_equal(expect(0, RPC_LEASE, 0).entry.attr.nlink, 0);
	req = getattr_request(ino);
	assert_int_equal(client_call(&clients[1], 0, &req, &rep), 0);
	end_all();
}

/* Makes two files by client 0, the first with the lower number, for an exchange of names. */
static void make_two(uint64_t two[2])
{
	two[0] = make_file(0, "low");
	two[1] = make_file(0, "high");
	assert_true(two[0] < two[1]);
}

static void ask_for_exchange(unsigned slot)
{
	ask(0, slot,
		(struct rpc_request){.op = RPC_RENAME,
			.rename = {ROOT_INO, ROOT_INO, RENAME_EXCHANGE, str("high"), str("low")}});
}

static void wait__is_for_several_though_writers_keep_coming(void **state)
{
	uint64_t two[2], low, high;

	begin_all();
	make_two(two);
	low = take(1, two[0], LEASE_EXCLUSIVE);
	high = take(2, two[1], LEASE_EXCLUSIVE);
	ask_for_exchange(1);
	await_recall(1, LEASE_NONE);
	expect_no_recall(2);
	give_back(1, two[0], low, LEASE_NONE);
	await_recall(2, LEASE_NONE);
	/* A lease that the exchange has waited for is not granted again: no answer comes before
	 * PING's. */
	ask(1, 2, lease_request(two[0], LEASE_EXCLUSIVE));
	expect_no_recall(1);
	give_back(2, two[1], high, LEASE_NONE);
	expect(0, RPC_RENAME, 1);
	assert_int_equal(expect(1, RPC_LEASE, 2).entry.lease.type, LEASE_EXCLUSIVE);
	end_all();
}

/* A client that has the lower lease and asks for the higher, as COPY does, may need both before it
 * can return either. */
static void wait__is_for_several_in_the_order_of_their_numbers(void **state)
{
	uint64_t two[2], low, high;

	begin_all();
	make_two(two);
	high = take(2, two[1], LEASE_EXCLUSIVE);
	ask_for_exchange(1);
	await_recall(2, LEASE_NONE);
	low = take(1, two[0], LEASE_EXCLUSIVE);
	give_back(2, two[1], high, LEASE_NONE);
	await_recall(1, LEASE_NONE);
	high = take(1, two[1], LEASE_EXCLUSIVE);
	give_back(1, two[0], low, LEASE_NONE);
	await_recall(1, LEASE_NONE);
	give_back(1, two[1], high, LEASE_NONE);
	expect(0, RPC_RENAME, 1);
	end_all();
}

/* ---- LOOKUP ---------------------------------------------------------------------------------- */

static struct rpc_request look_request(const char *name)
{
	return (struct rpc_request){
		.op = RPC_LOOKUP, .name = {ROOT_INO, str(name), LOOK_LEASE | LOOK_LEASE_DIR}};
}

static struct rpc_entry_reply look(unsigned i, const char *name)
{
	struct rpc_request req = look_request(name);
	struct rpc_reply rep;

	assert_int_equal(client_call(&clients[i], 0, &req, &rep), 0);
	return rep.entry;
}

static void look__gives_back_to_who_changes(void **state)
{
	struct rpc_entry_reply looked, second;
	uint64_t ino;

	begin_all();
	ino = make_file(0, "file");
	looked = look(1, "file");
	assert_int_equal(looked.lease.type, LEASE_SHARED);
	assert_int_equal(looked.lease.ms, LEASE_MS);
	assert_int_equal(looked.parent_lease.type, LEASE_SHARED);
	assert_int_equal(looked.parent_lease.ms, LEASE_MS);
	ask(0, 0, (struct rpc_request){.op = RPC_UNLINK, .name = {ROOT_INO, str("file")}});
	expect_no_recall(0);
	expect_recall(1, ROOT_INO, looked.parent_lease.number, LEASE_NONE);
	/* While a request waits for a lease, no other client gets that lease without asking for
	 * it. */
	second = look(2, "file");
	assert_int_equal(second.parent_lease.type, LEASE_NONE);
	assert_int_equal(second.lease.type, LEASE_SHARED);
	give_back(1, ROOT_INO, looked.parent_lease.number, LEASE_NONE);
	await_recall(1, LEASE_NONE);
	expect_recall(1, ino, looked.lease.number, LEASE_NONE);
	expect_recall(2, ino, second.lease.number, LEASE_NONE);
	give_back(1, ino, looked.lease.number, LEASE_NONE);
	give_back(2, ino, second.lease.number, LEASE_NONE);
	assert_int_equal(expect(0, RPC_UNLINK, 0).remove.child.ino, ino);
	expect_no_recall(1);
	end_all();
}

/* Two clients that look up and make names in one directory do not wait for each other. */
static void look__does_not_go_back_and_forth(void **state)
{
	char name[16];
	struct rpc_request make = {.op = RPC_MKDIR, .create = {.parent = ROOT_INO}};
	struct rpc_reply rep;
	uint64_t number;

	begin_all();
	number = look(1, "0").parent_lease.number;
	make.create.name = str("0");
	ask(0, 0, make);
	expect_no_recall(0);
	expect_recall(1, ROOT_INO, number, LEASE_NONE);
	give_back(1, ROOT_INO, number, LEASE_NONE);
	expect(0, RPC_MKDIR, 0);
	for (unsigned i = 1; i < 20; i++) {
		snprintf(name, sizeof(name), "%u", i);
		make.create.name = str(name);
		assert_int_equal(look(i % 2, name).parent_lease.type, LEASE_NONE);
		assert_int_equal(client_call(&clients[i % 2], 0, &make, &rep), 0);
	}
	assert_true(status_says("\"recalled\":1"));
	end_all();
}

static void look__is_repeated_alike(void **state)
{
	struct rpc_request req = look_request("file");
	uint64_t number;

	begin_all();
	make_file(0, "file");
	ask(1, 3, req);
	number = expect(1, RPC_LOOKUP, 3).entry.parent_lease.number;
	give_back(1, ROOT_INO, number, LEASE_NONE);
	client_drop(&clients[1]);
	client_resume(&clients[1]);
	req.slot = 3;
	req.seq = clients[1].seq[3];
	client_send(&clients[1], &req);
	assert_int_equal(expect(1, RPC_LOOKUP, 3).entry.parent_lease.number, number);
	end_all();
}

/* ---- cancelled requests ---------------------------------------------------------------------- */

static struct rpc_request chmod_request(uint64_t ino, uint32_t mode)
{
	return (struct rpc_request){
		.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_MODE, .mode = mode}};
}

static void cancel__what_waits_is_not_executed(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino, number;

	begin_all();
	ino = make_file(0, "file");
	number = take(0, ino, LEASE_EXCLUSIVE);
	ask(1, 3, chmod_request(ino, 0600));
	expect_no_recall(1);
	cancel(1, 3, clients[1].seq[3] - 1);
	expect_cancelled(1);
	cancel(1, 4, clients[1].seq[3]);
	expect_cancelled(1);
	expect_recall(0, ino, number, LEASE_NONE);
	cancel(1, 3, clients[1].seq[3]);
	client_receive(&clients[1], &rep);
	assert_int_equal(rep.op, RPC_SETATTR);
	assert_int_equal(rep.slot, 3);
	assert_int_equal(rep.status, -EINTR);
	expect_cancelled(1);
	await_recall(0, LEASE_EXCLUSIVE);
	give_back(0, ino, number, LEASE_NONE);
	req = getattr_request(ino);
	assert_int_equal(client_call(&clients[2], 0, &req, &rep), 0);
	assert_int_equal(rep.attr.attr.mode & 07777, 0644);
	/* The slot still works. */
	req = chmod_request(ino, 0640);
	assert_int_equal(client_call(&clients[1], 3, &req, &rep), 0);
	assert_int_equal(rep.attr.attr.mode & 07777, 0640);
	end_all();
}

static void cancel__what_was_executed_stays_so(void **state)
{
	struct rpc_request req;
	struct rpc_reply rep;
	uint64_t ino;

	begin(0, ATTACH_SHARED);
	ino = make_file(0, "file");
	req = chmod_request(ino, 0600);
	assert_int_equal(client_call(&clients[0], 3, &req, &rep), 0);
	cancel(0, 3, clients[0].seq[3]);
	expect_cancelled(0);
	client_send(&clients[0], &req);
	assert_int_equal(expect(0, RPC_SETATTR, 3).attr.attr.mode & 07777, 0600);
	cancel(0, UINT16_MAX, 1);
	expect_cancelled(0);
	client_fini(&clients[0]);
}

/* ---- many at random -------------------------------------------------------------------------- */

enum { FILES = 4, STEPS = 3000, RETURN_SLOT = 15 };

/* The leases that each client has by the server's replies, and the leases that it has asked for. */
static struct holding {
	uint8_t type;
	uint64_t number;
	bool asked;
} holdings[CLIENTS][FILES];
static uint64_t files[FILES];
static unsigned ngranted[LEASE_TYPES];

static unsigned chance(unsigned n)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

static void granted(unsigned i, unsigned file, const struct lease *lease)
{
	struct holding *h = &holdings[i][file];

	for (unsigned k = 0; k < CLIENTS; k++) {
		uint8_t other = k == i ? LEASE_NONE : holdings[k][file].type;

		assert_false(lease_conflicts(lease->type, lease_bit(other)));
	}
	assert_true(lease->number > h->number);
	*h = (struct holding){lease->type, lease->number, false};
	ngranted[lease->type]++;
}

static void answered(unsigned i, const struct rpc_reply *rep)
{
	assert_int_equal(rep->status, 0);
	if (rep->op == RPC_LEASE)
		granted(i, rep->slot, &rep->entry.lease);
	else if (rep->op == RPC_GETATTR)
		holdings[i][rep->slot].asked = false;
}

/* Other replies may come in any order before this one. */
static void receive_until(unsigned i, uint16_t op, struct rpc_reply *rep)
{
	do {
		client_receive(&clients[i], rep);
		answered(i, rep);
	} while (rep->op != op);
}

static void return_one(unsigned i, unsigned file, uint8_t keep)
{
	struct holding *h = &holdings[i][file];
	struct rpc_reply rep;

	h->type = lease_common(h->type, keep);
	send_return(i, RETURN_SLOT, files[file], h->number, keep, (enum return_pin)chance(2));
	receive_until(i, RPC_RETURN, &rep);
}

static unsigned file_of(uint64_t ino)
{
	for (unsigned file = 0; file < FILES; file++)
		if (files[file] == ino)
			return file;
	fail();
	return 0;
}

static void answer_recalls(unsigned i)
{
	struct rpc_request req = {.op = RPC_PING, .slot = RPC_NO_SLOT};
	struct rpc_recall recalls[FILES];
	struct rpc_reply rep;
	struct wire_in r;
	unsigned n = 0;

	client_send(&clients[i], &req);
	receive_until(i, RPC_PING, &rep);
	r = rpc_tail_reader(&rep.ping.tail);
	while (n < FILES && rpc_get_recall(&r, &recalls[n]))
		n++;
	assert_int_equal(wire_in_left(&r), 0);
	for (unsigned k = 0; k < n; k++)
		return_one(i, file_of(recalls[k].ino), recalls[k].keep);
}

static void ask_for_something(unsigned i)
{
	unsigned file = chance(FILES);
	struct rpc_request req =
		lease_request(files[file], chance(3) ? LEASE_SHARED : LEASE_EXCLUSIVE);

	if (holdings[i][file].asked)
		return;
	if (!chance(4))
		req = getattr_request(files[file]);
	else if (holdings[i][file].type != LEASE_NONE)
		return_one(i, file, LEASE_NONE);
	req.lease.flags = req.op == RPC_LEASE ? (uint8_t)chance(8) : 0;
	holdings[i][file].asked = true;
	ask(i, file, req);
}

static bool is_asking(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		for (unsigned file = 0; file < FILES; file++)
			if (holdings[i][file].asked)
				return true;
	return false;
}

static void many__never_have_what_conflicts_and_all_get_it(void **state)
{
	int64_t until;
	char name[8];

	memset(holdings, 0, sizeof(holdings));
	begin_all();
	for (unsigned file = 0; file < FILES; file++) {
		snprintf(name, sizeof(name), "%u", file);
		files[file] = make_file(0, name);
	}
	for (unsigned step = 0; step < STEPS; step++) {
		ask_for_something(chance(CLIENTS));
		answer_recalls(step % CLIENTS);
	}
	until = now_ms() + WAIT_MS;
	for (unsigned i = 0; is_asking(); i = (i + 1) % CLIENTS) {
		assert_true(now_ms() < until);
		answer_recalls(i);
	}
	for (unsigned type = LEASE_LAYOUT; type < LEASE_TYPES; type++)
		assert_true(ngranted[type] > STEPS / 100);
	assert_true(status_says("\"waiting\":0"));
	end_all();
}

/* ---- turns of the sessions ------------------------------------------------------------------- */

static void ask_for_files(unsigned i, unsigned n)
{
	char name[32];

	for (unsigned slot = 0; slot < n; slot++) {
		struct rpc_request req = {
			.op = RPC_CREATE, .create = {.parent = ROOT_INO, .mode = S_IFREG | 0644}};

		snprintf(name, sizeof(name), "file %u of %u", slot, i);
		req.create.name = str(name);
		ask(i, slot, req);
	}
}

/* Returns the greatest inode number of the files that were made. */
static uint64_t last_made(unsigned i, unsigned n)
{
	uint64_t last = 0;

	for (unsigned slot = 0; slot < n; slot++) {
		struct rpc_reply rep;

		client_receive(&clients[i], &rep);
		assert_int_equal(rep.op, RPC_CREATE);
		assert_int_equal(rep.status, 0);
		last = max_u64(last, rep.entry.attr.ino);
	}
	return last;
}

static bool is_stopped(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	return strstr(line, ") T ");
}

/* A session that asks for much at once waits behind its own requests, even though it asked
 * first. */
static void turns__are_the_sessions(void **state)
{
	enum { MUCH = 15, LITTLE = 3 };
	uint64_t much, little;

	client_init(&clients[0], &server, "client 0", 1);
	clients[0].flags = ATTACH_SHARED;
	clients[0].nchannels = 2;
	client_begin(&clients[0]);
	client_init(&clients[1], &server, "client 0", 1);
	clients[1].flags = ATTACH_SHARED;
	clients[1].nchannels = 2;
	clients[1].index = 1;
	clients[1].attached = clients[0].attached;
	client_resume(&clients[1]);
	begin(2, ATTACH_SHARED);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	while (!is_stopped(server.pid))
		usleep(1000);
	ask_for_files(0, MUCH);
	ask_for_files(1, MUCH);
	ask_for_files(2, LITTLE);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	little = last_made(2, LITTLE);
	much = max_u64(last_made(0, MUCH), last_made(1, MUCH));
	/* Over tcp another thread receives, so only the first requests may have come when the
	 * server goes on. */
	if (driver_kind != TRANSPORT_TCP)
		assert_true(little <= much - (2 * MUCH - LITTLE - 1));
	end_all();
}

/* ---- WHO ------------------------------------------------------------------------------------- */

/* Gets the answer's text, with a NUL. */
static int who(unsigned i, const char *export, const char *path, char *json, size_t len)
{
	struct rpc_request req = {.op = RPC_WHO,
		.slot = RPC_NO_SLOT,
		.who = {.export_name = str(export), .path = str(path)}};
	struct rpc_reply rep;

	client_send(&clients[i], &req);
	client_receive(&clients[i], &rep);
	assert_int_equal(rep.op, RPC_WHO);
	if (rep.status) {
		snprintf(json, len, "%.*s", rep.text.len, rep.text.s);
		return rep.status;
	}
	assert_int_equal(rep.status_text.total, rep.status_text.tail.len);
	snprintf(json, len, "%.*s", (int)rep.status_text.tail.len,
		(const char *)rep.status_text.tail.data);
	return 0;
}

static void expect_words(const char *json, const char *words)
{
	if (!strstr(json, words))
		fail_msg("%s is not in %s", words, json);
}

/* Only root and the server's user may see names of files, and only over the socket of this
 * machine. */
static void who__has_and_who_waits(void **state)
{
	struct rpc_request lock = {
		.op = RPC_LOCK, .lock = {.owner = 5, .end = 9, .pid = 77, .kind = LOCK_KIND_POSIX}};
	static char json[RPC_MSG_BYTES];
	struct rpc_reply rep;
	uint64_t ino;
	char number[32];

	begin(0, ATTACH_SHARED);
	begin(1, ATTACH_SHARED);
	ino = make_file(0, "file");
	if (driver_kind != TRANSPORT_SHM) {
		assert_int_equal(who(0, "default", "/file", json, sizeof(json)), -EPERM);
		client_fini(&clients[1]);
		client_fini(&clients[0]);
		return;
	}
	take(0, ino, LEASE_EXCLUSIVE);
	lock.lock.ino = ino;
	lock.lock.type = LOCK_EXCLUSIVE;
	assert_int_equal(client_call(&clients[0], 1, &lock, &rep), 0);
	lock.lock.wait = 1;
	lock.lock.start = 3;
	assert_int_equal(client_call(&clients[1], 1, &lock, &rep), -EINPROGRESS);
	ask(1, 0, lease_request(ino, LEASE_SHARED));
	expect_no_recall(1);
	assert_int_equal(who(0, "default", "/file", json, sizeof(json)), 0);
	expect_words(json, "\"path\":\"/file\"");
	expect_words(json, "\"shared\":true,\"lease_ms\":");
	expect_words(json,
		"\"state\":\"active\",\"waits_for\":[],\"lease\":\"exclusive\",\"pin\":true,\"since\":1");
	expect_words(json, "\"recall\":{\"keep\":\"shared\",\"ms\":");
	expect_words(json, "\"request\":\"lease\",\"lease\":\"shared\",\"ms\":");
	expect_words(json,
		"\"kind\":\"fcntl\",\"lock\":\"exclusive\",\"read_only\":false,\"start\":0,\"end\":9,"
		"\"pid\":77}]");
	expect_words(json, "\"start\":3,\"end\":9,\"pid\":77,\"ms\":");
	assert_true(status_says("\"locks\":1,\"lock_waits\":1}"));
	assert_true(status_says("\"contested\":[{\"inode\":2,\"path\":null,\"waiting\":1"));
	assert_true(status_says(
		"\"leases\":{\"layouts\":0,\"shared\":0,\"exclusive\":1,\"pins\":1,\"locks\":1}"));
	snprintf(number, sizeof(number), "%llu", (unsigned long long)ino);
	assert_int_equal(who(1, "default", number, json, sizeof(json)), 0);
	expect_words(json, "\"path\":null,\"inode\":2,");
	assert_int_equal(who(1, "none", "/file", json, sizeof(json)), -ENOENT);
	expect_words(json, "exports: default");
	assert_int_equal(who(1, "default", "/none", json, sizeof(json)), -ENOENT);
	expect_words(json, "has no file /none");
	expect_words(json, "without the mount point");
	assert_int_equal(who(1, "default", "99999999", json, sizeof(json)), -ENOENT);
	expect_words(json, "has no inode 99999999");
	assert_int_equal(who(1, "default", "file", json, sizeof(json)), -EINVAL);
	assert_int_equal(who(1, "default", "/", json, sizeof(json)), 0);
	expect_words(json, "\"holders\":[],\"waiting\":[],\"locks\":[],\"lock_waits\":[]}");
	client_fini(&clients[1]);
	client_fini(&clients[0]);
}

int driver_run_leases(void)
{
	static const struct CMUnitTest tests[] = {
		SHARERS_TEST(share__only_with_those_who_do),
		SHARERS_TEST(share__is_refused_with_words),
		SHARERS_TEST(share__is_for_a_sessions_life),
		SHARERS_TEST(share__one_becomes_a_writer_while_others_read),
		SHARERS_TEST(recall__is_told_until_nobody_wants_it),
		SHARERS_TEST(recall__is_of_what_was_pinned_anew),
		SHARERS_TEST(recall__of_shared_ones_reaches_all),
		SHARERS_TEST(recall__is_of_each_file_that_is_waited_for),
		SHARERS_TEST(wait__is_over_in_the_order_of_coming),
		SHARERS_TEST(wait__of_a_writer_ends_though_readers_keep_coming),
		SHARERS_TEST(wait__is_not_for_those_who_went),
		SHARERS_TEST(wait__brings_what_was_committed),
		SHARERS_TEST(wait__for_a_file_that_goes_is_stale),
		SHARERS_TEST(wait__of_who_takes_the_last_name),
		SHARERS_TEST(wait__is_for_several_though_writers_keep_coming),
		SHARERS_TEST(wait__is_for_several_in_the_order_of_their_numbers),
		SHARERS_TEST(look__gives_back_to_who_changes),
		SHARERS_TEST(look__does_not_go_back_and_forth),
		SHARERS_TEST(look__is_repeated_alike),
		SHARERS_TEST(cancel__what_waits_is_not_executed),
		SHARERS_TEST(cancel__what_was_executed_stays_so),
		SHARERS_TEST(many__never_have_what_conflicts_and_all_get_it),
		SHARERS_TEST(turns__are_the_sessions),
		SHARERS_TEST(who__has_and_who_waits),
	};
	static const struct CMUnitTest shm_tests[] = {
		SHARERS_TEST(wait__is_over_by_what_came_with_a_breach),
	};
	int failed = cmocka_run_group_tests_name("leases", tests, NULL, NULL);

	if (driver_kind == TRANSPORT_SHM)
		failed += cmocka_run_group_tests_name("batches", shm_tests, NULL, NULL);
	return failed;
}
