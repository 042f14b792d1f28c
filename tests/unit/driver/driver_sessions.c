/* driver_sessions.c - rules of ATTACH, and the ends of a session or only of a channel. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/driver/holder.h"
#include "tests/unit/emulated.h"

static struct test_server server;
static struct rpc_client client;
static char text[RPC_TEXT_MAX + 1];

enum { FIRST_SESSION = 1 }; /* of a new server */

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static struct rpc_request lookup_request(const char *name)
{
	return (struct rpc_request){.op = RPC_LOOKUP, .name = {ROOT_INO, str(name)}};
}

static struct rpc_request mkdir_request(const char *name)
{
	return (struct rpc_request){.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = S_IFDIR | 0755, .name = str(name)}};
}

/* ---- another client, in a process of its own ------------------------------------------------- */

static void hold_export_as(
	struct holder *h, const char *owner, unsigned instance, uint32_t attach_flags)
{
	holder_start(h, &server, owner, instance, attach_flags);
}

static void hold_export(struct holder *h, const char *owner, unsigned instance)
{
	hold_export_as(h, owner, instance, 0);
}

/* ---- exports and owners ---------------------------------------------------------------------- */

static void attach__unknown_export_is_refused(void **state)
{
	client_init(&client, &server, "owner", 1);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "nosuch", 0, 0, text),
		driver_kind == TRANSPORT_SHM ? -ENOENT : -EACCES);
	assert_non_null(strstr(text, "no export 'nosuch'"));
	assert_int_equal(client_attach(&client, "default", 0, 0, text), 0);
	client_fini(&client);
}

static void attach__second_owner_is_refused_naming_the_first(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	client_init(&client, &server, "second", 1);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "client first"));
	assert_non_null(strstr(text, transport_kind_name(driver_kind)));
	holder_kill(&h);
	client_fini(&client);
}

static void attach__who_wants_the_export_alone_is_refused_while_another_has_it(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	client_init(&client, &server, "second", 1);
	client.flags = ATTACH_EXCLUSIVE;
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "client first"));
	assert_non_null(strstr(
		text, "exclusive, or cache=exclusive, needs an export that no other mount uses"));
	holder_kill(&h);
	client_fini(&client);
}

static void attach__nobody_gets_in_beside_one_that_has_the_export_alone(void **state)
{
	struct rpc_client alone;

	client_init(&alone, &server, "first", 1);
	alone.flags = ATTACH_EXCLUSIVE;
	client_begin(&alone);
	client_init(&client, &server, "second", 1);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "for itself alone (exclusive, or cache=exclusive)"));
	client_fini(&client);
	client_fini(&alone);
}

static void attach__second_owner_gets_in_when_the_first_says_bye(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	close(h.go);
	client_init(&client, &server, "second", 1);
	client_begin(&client);
	assert_false(client.attached.resumed);
	holder_wait(&h);
	client_fini(&client);
}

static void attach__second_owner_gets_in_when_the_first_is_dead(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	holder_kill(&h);
	client_init(&client, &server, "second", 1);
	client_begin(&client);
	client_fini(&client);
}

/* The lease time is so long that no client waits for it to pass. */
static void attach__successor_of_a_dead_process_gets_in_at_once(void **state)
{
	struct holder h;

	hold_export(&h, "owner", 2);
	holder_kill(&h);
	/* The lower instance number looks as if the clock had been set back. */
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_false(client.attached.resumed);
	server_logs(&server, "has ended: it was mounted again at the same place");
	client_fini(&client);
}

/* The first client gets in again when it comes back. */
static void attach__same_owner_does_not_end_one_that_lives(void **state)
{
	struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	struct rpc_client evil;
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 7);
	client_begin(&client);
	client_init(&evil, &server, "owner", UINT64_MAX);
	client_connect(&evil);
	assert_int_equal(client_attach(&evil, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "is in use by client owner"));
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	client_bye(&client);
	/* It works the other way round, too: a high instance number is no lock. */
	assert_int_equal(client_attach(&evil, "default", 0, WAIT_MS, text), 0);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	client_bye(&evil);
	assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	client_fini(&evil);
	client_fini(&client);
}

/* A living process announces that it ends a channel, and comes back. */
static void attach__same_owner_does_not_end_one_that_connects_anew(void **state)
{
	struct rpc_client other;

	if (driver_kind == TRANSPORT_VERBS)
		return; /* the device may drop the announcement */
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	channel_disconnect(client.channel);
	client_drop(&client);
	client_init(&other, &server, "owner", 2);
	client_connect(&other);
	assert_int_equal(client_attach(&other, "default", 0, 200, text), -EBUSY);
	client_resume(&client);
	assert_true(client.attached.resumed);
	client_fini(&other);
	client_fini(&client);
}

/* One of several channels that ends so proves nothing: only the end of all does. */
static void attach__same_owner_does_not_end_one_with_a_channel_left(void **state)
{
	struct rpc_client second, other;

	client_init(&client, &server, "owner", 1);
	client.nchannels = 2;
	client_begin(&client);
	client_init(&second, &server, "owner", 1);
	second.nchannels = 2;
	second.index = 1;
	second.attached = client.attached;
	client_resume(&second);
	client_drop(&second);
	client_init(&other, &server, "owner", 2);
	client_connect(&other);
	assert_int_equal(client_attach(&other, "default", 0, 200, text), -EBUSY);
	client_drop(&client);
	assert_int_equal(client_attach(&other, "default", 0, WAIT_MS, text), 0);
	client_fini(&other);
	client_fini(&second);
	client_fini(&client);
}

/* The server itself has closed the channel: the client may live. */
static void attach__same_owner_waits_for_one_that_was_cut_off(void **state)
{
	struct rpc_client other;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_send_bytes(&client, "garbage", 7);
	client_wait_closed(&client);
	client_init(&other, &server, "owner", 2);
	client_connect(&other);
	assert_int_equal(client_attach(&other, "default", 0, 200, text), -EBUSY);
	assert_non_null(strstr(text, "which has no connection now, and has to make room in "));
	client_fini(&other);
	client_fini(&client);
}

static void attach__same_process_ends_its_own(void **state)
{
	struct rpc_client again;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_init(&again, &server, "owner", 1);
	client_begin(&again);
	assert_true(again.attached.session > client.attached.session);
	client_wait_closed(&client);
	server_logs(&server, "has ended: its mount begins another one");
	client_fini(&again);
	client_fini(&client);
}

/* The network may delay an ATTACH that the client has given up. */
static void attach__late_one_ends_nothing(void **state)
{
	struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	struct rpc_client late;
	struct rpc_reply rep;

	client_init(&late, &server, "owner", 1);
	client_connect(&late);
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_attach(&late, "default", 0, WAIT_MS, text), -ESTALE);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	client_fini(&client);
	client_fini(&late);
}

/* Two sessions of one owner may share an export if sessions of two owners may. */
static void same_owner__shares_with_itself(uint32_t flags)
{
	struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	struct rpc_client twin;
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client.flags = flags;
	client_begin(&client);
	client_init(&twin, &server, "owner", 2);
	twin.flags = flags;
	client_begin(&twin);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	assert_int_equal(client_call(&twin, 0, &req, &rep), 0);
	client_fini(&twin);
	client_fini(&client);
}

static void readers__of_one_owner_share(void **state)
{
	same_owner__shares_with_itself(ATTACH_READ_ONLY);
}

static void sharers__of_one_owner_share(void **state)
{
	same_owner__shares_with_itself(ATTACH_SHARED);
}

static void attach__session_that_has_ended_or_of_another_store(void **state)
{
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_drop(&client);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 12345, 0, text), -EIDRM);
	assert_non_null(strstr(text, "session 12345 has ended"));
	client.attached.store_id[3]++;
	assert_int_equal(
		client_attach(&client, "default", client.attached.session, 0, text), -ESTALE);
	assert_non_null(strstr(text, "another store"));
	client.ended = 12345;
	assert_int_equal(client_attach(&client, "default", 0, 0, text), -ESTALE);
	client.attached.store_id[3]--;
	assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	client_fini(&client);
}

static void attach__twice_on_a_channel(void **state)
{
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_attach(&client, "default", 0, 0, text), -EPROTO);
	client_fini(&client);
}

static void attach__channels_out_of_range(void **state)
{
	client_init(&client, &server, "owner", 1);
	client_connect(&client);
	client.nchannels = 65;
	assert_int_equal(client_attach(&client, "default", 0, 0, text), -EINVAL);
	client.nchannels = 2;
	client.index = 1;
	assert_int_equal(client_attach(&client, "default", 0, 0, text), -EPROTO);
	client_fini(&client);
}

static void attach__another_channel_joins_and_is_replaced(void **state)
{
	struct rpc_client second, third;
	struct rpc_request req = mkdir_request("by-the-second");
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client.nchannels = 2;
	client_begin(&client);
	client_init(&second, &server, "owner", 1);
	second.nchannels = 2;
	second.index = 1;
	second.attached = client.attached;
	client_resume(&second);
	assert_false(second.attached.resumed);
	assert_int_equal(client_call(&second, 0, &req, &rep), 0);

	client_init(&third, &server, "owner", 1);
	third.nchannels = 2;
	third.index = 1;
	third.attached = client.attached;
	client_resume(&third);
	assert_true(third.attached.resumed);
	if (driver_kind != TRANSPORT_SHM)
		client_wait_closed(&second);
	third.seq[0] = second.seq[0];
	req = lookup_request("by-the-second");
	assert_int_equal(client_call(&third, 0, &req, &rep), 0);
	client_fini(&third);
	client_fini(&second);
	client_fini(&client);
}

/* ---- reading only ---------------------------------------------------------------------------- */

static void read_only__changes_are_refused(void **state)
{
	struct rpc_request req = mkdir_request("no");
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client.flags = ATTACH_READ_ONLY;
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), -EROFS);
	req = (struct rpc_request){.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	client_regions(&client);
	assert_int_equal(client.regions[0].access, REGION_READ);
	assert_int_equal(client_transfer(&client, IO_READ, 0, 0, PAGE_BYTES), 0);
	client_fini(&client);
}

/* Attaches a channel in the place of old's. */
static void replace(struct rpc_client *next, const struct rpc_client *old, uint32_t flags)
{
	client_init(next, &server, "owner", 1);
	next->nchannels = old->nchannels;
	next->index = old->index;
	next->attached = old->attached;
	memcpy(next->seq, old->seq, sizeof(next->seq));
	next->flags = flags;
	client_resume(next);
	assert_true(next->attached.resumed);
	client_regions(next);
}

static void expect_writes(struct rpc_client *c, const char *name, bool works)
{
	struct rpc_request req = mkdir_request(name);
	struct rpc_reply rep;

	assert_int_equal(client_call(c, 0, &req, &rep), works ? 0 : -EROFS);
	assert_int_equal(c->regions[0].access, works ? REGION_READ | REGION_WRITE : REGION_READ);
	assert_int_equal(client_transfer(c, IO_READ, 0, 0, PAGE_BYTES), 0);
	if (works)
		assert_int_equal(client_transfer(c, IO_WRITE, 0, 0, PAGE_BYTES), 0);
}

static void read_only__a_session_becomes_so_and_back(void **state)
{
	struct rpc_client second, other, writer;

	client_init(&client, &server, "owner", 1);
	client.nchannels = 2;
	client_begin(&client);
	client_regions(&client);
	expect_writes(&client, "before", true);
	client_init(&second, &server, "owner", 1);
	second.nchannels = 2;
	second.index = 1;
	second.attached = client.attached;
	client_resume(&second);

	replace(&other, &client, ATTACH_READ_ONLY);
	expect_writes(&other, "meanwhile", false);
	/* Its keys were a writer's, so the server closes this channel. */
	client_wait_closed(&second);
	second.flags = ATTACH_READ_ONLY;
	client_resume(&second);
	client_regions(&second);
	expect_writes(&second, "meanwhile", false);

	server_kill(&server);
	server_start(&server);
	replace(&writer, &other, 0);
	expect_writes(&writer, "after", true);
	client_fini(&writer);
	client_fini(&other);
	client_fini(&second);
	client_fini(&client);
}

static void read_only__is_all_that_a_session_can_change(void **state)
{
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_drop(&client);
	client_connect(&client);
	client.flags = ATTACH_EXCLUSIVE;
	assert_int_equal(
		client_attach(&client, "default", client.attached.session, 0, text), -EINVAL);
	assert_non_null(strstr(text, "exclusive"));
	client.flags = 0;
	assert_int_equal(client_attach(&client, "default", client.attached.session, 0, text), 0);
	client_fini(&client);
}

/* Over shm the server can't fence the channel of a process that still lives. */
static void read_only__who_is_refused_has_changed_nothing(void **state)
{
	struct holder h;

	hold_export(&h, "owner", 1);
	client_init(&client, &server, "owner", 1);
	client.flags = ATTACH_READ_ONLY;
	client_connect(&client);
	client_know_store(&client);
	memcpy(client.attached.token, h.token, TOKEN_BYTES);
	if (driver_kind == TRANSPORT_SHM) {
		assert_int_equal(client_attach(&client, "default", FIRST_SESSION, 0, text), -EBUSY);
		assert_non_null(strstr(text, "can't be fenced"));
		assert_false(server_logged(&server, "is read-only now"));
	} else {
		assert_int_equal(client_attach(&client, "default", FIRST_SESSION, 0, text), 0);
		server_logs(&server, "is read-only now");
	}
	holder_kill(&h);
	client_fini(&client);
}

/* ---- readers, who share an export ------------------------------------------------------------ */

enum { READERS = 4 };

static struct rpc_client readers[READERS];

static void begin_readers(unsigned n)
{
	char owner[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(owner, sizeof(owner), "reader %u", i);
		client_init(&readers[i], &server, owner, 1);
		readers[i].flags = ATTACH_READ_ONLY;
		client_begin(&readers[i]);
		client_regions(&readers[i]);
	}
}

static void end_readers(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		client_fini(&readers[i]);
}

static void readers__share_an_export(void **state)
{
	struct rpc_reply rep;

	begin_readers(READERS);
	for (unsigned i = 0; i < READERS; i++) {
		struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};

		assert_int_equal(client_call(&readers[i], 0, &req, &rep), 0);
		assert_int_equal(client_transfer(&readers[i], IO_READ, 0, 0, PAGE_BYTES), 0);
		assert_int_equal(readers[i].attached.session, FIRST_SESSION + i);
	}
	end_readers(READERS);
}

/* Each reader is a process of its own: over shm a mapping ends only with its process. */
static void readers__keep_a_writer_out_and_are_named(void **state)
{
	struct holder holders[READERS];
	char owner[32];

	for (unsigned i = 0; i < READERS; i++) {
		snprintf(owner, sizeof(owner), "reader %u", i);
		hold_export_as(&holders[i], owner, 1, ATTACH_READ_ONLY);
	}
	client_init(&client, &server, "writer", 1);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "client reader 0"));
	assert_non_null(strstr(text, "and 3 more; one of the two can't share it"));
	for (unsigned i = 0; i < READERS; i++)
		close(holders[i].go);
	assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	for (unsigned i = 0; i < READERS; i++)
		holder_wait(&holders[i]);
	client_fini(&client);
}

static void readers__are_kept_out_by_a_writer(void **state)
{
	struct holder h;

	hold_export(&h, "writer", 1);
	client_init(&client, &server, "reader", 1);
	client.flags = ATTACH_READ_ONLY;
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(text, "client writer"));
	assert_non_null(strstr(text, "one of the two can't share it: unmount it there"));
	holder_kill(&h);
	client_fini(&client);
}

static void readers__one_that_wants_the_export_alone_does_not_share(void **state)
{
	begin_readers(1);
	client_init(&client, &server, "alone", 1);
	client.flags = ATTACH_READ_ONLY | ATTACH_EXCLUSIVE;
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	assert_non_null(strstr(
		text, "exclusive, or cache=exclusive, needs an export that no other mount uses"));
	client_fini(&client);
	end_readers(1);
}

/* The refusal leaves the session as it is. A reader that is alone may become a writer. */
static void readers__none_becomes_a_writer_while_others_read(void **state)
{
	struct rpc_client *reader = &readers[0];
	struct holder h;

	begin_readers(1);
	hold_export_as(&h, "other", 1, ATTACH_READ_ONLY);
	client_drop(reader);
	client_connect(reader);
	reader->flags = 0;
	assert_int_equal(
		client_attach(reader, "default", reader->attached.session, 0, text), -EROFS);
	assert_non_null(strstr(text, "export 'default' has 1 more readers, such as client other"));
	reader->flags = ATTACH_READ_ONLY;
	assert_int_equal(client_attach(reader, "default", reader->attached.session, 0, text), 0);
	close(h.go);
	holder_wait(&h);
	client_drop(reader);
	client_connect(reader);
	reader->flags = 0;
	assert_int_equal(client_attach(reader, "default", reader->attached.session, 0, text), 0);
	client_regions(reader);
	expect_writes(reader, "alone", true);
	end_readers(1);
}

/* A writer must wait until all readers have come back, or their time is over. */
static void readers__keep_their_sessions_over_a_restart(void **state)
{
	begin_readers(2);
	server_kill(&server);
	server_start(&server);
	for (unsigned i = 0; i < 2; i++)
		client_wait_closed(&readers[i]);
	client_resume(&readers[1]);
	assert_true(readers[1].attached.resumed);
	client_init(&client, &server, "writer", 1);
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	client_resume(&readers[0]);
	client_regions(&readers[0]);
	assert_int_equal(client_transfer(&readers[0], IO_READ, 0, 0, PAGE_BYTES), 0);
	client_fini(&client);
	end_readers(2);
}

/* A writer that other readers keep out anyway ends no disconnected reader's session. */
static void readers__are_not_ended_for_a_writer_that_is_refused(void **state)
{
	struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	int64_t lease_is_over = now_ms() + 1300;
	struct rpc_reply rep;

	begin_readers(2);
	client_drop(&readers[1]);
	client_init(&client, &server, "writer", 1);
	client_connect(&client);
	do {
		assert_int_equal(client_call(&readers[0], 0, &req, &rep), 0);
		assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	} while (now_ms() < lease_is_over);
	client_resume(&readers[1]);
	assert_true(readers[1].attached.resumed);
	client_fini(&client);
	end_readers(2);
}

/* Only over shm can a client whose session has ended still read; the other transports cut it
 * off. */
static void readers__that_are_not_fenced_yet_keep_a_writer_out(void **state)
{
	struct rpc_client *reader = &readers[0];
	struct holder h;

	if (driver_kind != TRANSPORT_SHM)
		return;
	begin_readers(1);
	hold_export_as(&h, "other", 1, ATTACH_READ_ONLY);
	client_init(&client, &server, "other", 1);
	client.flags = ATTACH_READ_ONLY;
	client_connect(&client);
	assert_int_equal(client_attach(&client, "default", 0, 50, text), -EBUSY);
	client_fini(&client);
	client_drop(reader);
	client_connect(reader);
	reader->flags = 0;
	assert_int_equal(
		client_attach(reader, "default", reader->attached.session, 0, text), -EROFS);
	assert_non_null(strstr(text, "a client that read export 'default' can't be fenced"));
	holder_kill(&h);
	assert_int_equal(client_attach(reader, "default", reader->attached.session, 0, text), 0);
	end_readers(1);
}

static void readers__successor_of_a_dead_one_ends_nobody_else(void **state)
{
	struct rpc_request req = {.op = RPC_GETATTR, .ino.ino = ROOT_INO};
	struct rpc_reply rep;
	struct holder h;

	begin_readers(1);
	hold_export_as(&h, "other", 1, ATTACH_READ_ONLY);
	holder_kill(&h);
	client_init(&client, &server, "other", 2);
	client.flags = ATTACH_READ_ONLY;
	client_begin(&client);
	assert_int_equal(client.attached.session, FIRST_SESSION + 2);
	assert_int_equal(client_call(&readers[0], 0, &req, &rep), 0);
	client_fini(&client);
	end_readers(1);
}

/* ---- breaches of the protocol ---------------------------------------------------------------- */

static void slots__lower_sequence_number_closes_the_channel(void **state)
{
	struct rpc_request req = mkdir_request("a");
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	req = mkdir_request("b");
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	req.seq--;
	client_send(&client, &req);
	client_wait_closed(&client);
	client_fini(&client);
}

static void slots__used_number_for_another_request_closes_the_channel(void **state)
{
	struct rpc_request req = mkdir_request("a");
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	req.op = RPC_RMDIR;
	req.name = (struct rpc_name_request){ROOT_INO, str("a")};
	client_send(&client, &req);
	client_wait_closed(&client);
	client_fini(&client);
}

static void slots__of_another_channel_closes_the_channel(void **state)
{
	struct rpc_request req = mkdir_request("a");

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_number(&client, 0, &req);
	req.slot = CLIENT_SLOTS;
	client_send(&client, &req);
	client_wait_closed(&client);
	client_fini(&client);
}

static void request__before_attach_closes_the_channel(void **state)
{
	struct rpc_request req = mkdir_request("a");

	client_init(&client, &server, "owner", 1);
	client_connect(&client);
	client_number(&client, 0, &req);
	client_send(&client, &req);
	client_wait_closed(&client);
	client_fini(&client);
}

static void garbage__closes_one_channel_and_nothing_else(void **state)
{
	struct rpc_request req = mkdir_request("still-here");
	struct rpc_client bad;
	struct rpc_reply rep;
	uint8_t bytes[512];

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_init(&bad, &server, "bad", 1);
	srand(7);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rand();
		client_connect(&bad);
		client_send_bytes(&bad, bytes, round * 25);
		client_wait_closed(&bad);
	}
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	client_fini(&bad);
	client_fini(&client);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void sigterm__exits_0_and_sessions_resume(void **state)
{
	struct rpc_request req = mkdir_request("kept");
	struct rpc_reply rep;
	uint64_t incarnation;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	incarnation = client.attached.incarnation;
	server_stop(&server);
	client_wait_closed(&client);
	server_start(&server);
	client_resume(&client);
	assert_int_not_equal(client.attached.incarnation, incarnation);
	req = lookup_request("kept");
	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	client_fini(&client);
}

static void restart__unresumed_session_gives_way_after_the_lease(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	server_kill(&server);
	server_start(&server);
	holder_kill(&h);
	client_init(&client, &server, "second", 1);
	client_begin(&client);
	assert_false(client.attached.resumed);
	client_fini(&client);
}

/* The client's process may come back. Over shm the server sees that it has ended. */
static void restart__unresumed_session_gives_way_to_its_owner_after_the_lease(void **state)
{
	struct holder h;

	skip_if_emulated(); /* its times are too short for that */
	hold_export(&h, "owner", 1);
	server_kill(&server);
	server_start(&server);
	holder_kill(&h);
	client_init(&client, &server, "owner", 2);
	client_connect(&client);
	if (driver_kind != TRANSPORT_SHM)
		assert_int_equal(client_attach(&client, "default", 0, 0, text), -EBUSY);
	assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	client_fini(&client);
}

/* The server that granted the memory is gone. Over shm the client's mapping remains. */
static void restart__living_shm_process_keeps_the_export(void **state)
{
	struct holder h;

	hold_export(&h, "first", 1);
	server_kill(&server);
	server_start(&server);
	client_init(&client, &server, "second", 1);
	client_connect(&client);
	if (driver_kind == TRANSPORT_SHM)
		assert_int_equal(client_attach(&client, "default", 0, 1300, text), -EBUSY);
	else
		assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	holder_kill(&h);
	if (driver_kind == TRANSPORT_SHM)
		assert_int_equal(client_attach(&client, "default", 0, WAIT_MS, text), 0);
	client_fini(&client);
}

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	return 0;
}

/* The lease time is longer than any test, so a client that waits for it fails the test. */
static int set_up_long_lease(void **state)
{
	server_init_timed(&server, driver_kind, 2 * WAIT_MS / 1000, 2 * WAIT_MS / 1000);
	return 0;
}

static int tear_down(void **state)
{
	server_fini(&server);
	return 0;
}

int driver_run_sessions(void)
{
#define SESSION_TEST(test)    cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define LONG_LEASE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_long_lease, tear_down)
	static const struct CMUnitTest tests[] = {
		SESSION_TEST(attach__unknown_export_is_refused),
		SESSION_TEST(attach__second_owner_is_refused_naming_the_first),
		SESSION_TEST(attach__who_wants_the_export_alone_is_refused_while_another_has_it),
		SESSION_TEST(attach__nobody_gets_in_beside_one_that_has_the_export_alone),
		SESSION_TEST(attach__second_owner_gets_in_when_the_first_says_bye),
		SESSION_TEST(attach__second_owner_gets_in_when_the_first_is_dead),
		LONG_LEASE_TEST(attach__successor_of_a_dead_process_gets_in_at_once),
		LONG_LEASE_TEST(attach__same_owner_does_not_end_one_that_lives),
		LONG_LEASE_TEST(attach__same_owner_does_not_end_one_that_connects_anew),
		LONG_LEASE_TEST(attach__same_owner_does_not_end_one_with_a_channel_left),
		LONG_LEASE_TEST(attach__same_owner_waits_for_one_that_was_cut_off),
		LONG_LEASE_TEST(attach__same_process_ends_its_own),
		LONG_LEASE_TEST(attach__late_one_ends_nothing),
		LONG_LEASE_TEST(readers__of_one_owner_share),
		LONG_LEASE_TEST(sharers__of_one_owner_share),
		SESSION_TEST(attach__session_that_has_ended_or_of_another_store),
		SESSION_TEST(attach__twice_on_a_channel),
		SESSION_TEST(attach__channels_out_of_range),
		SESSION_TEST(attach__another_channel_joins_and_is_replaced),
		SESSION_TEST(read_only__changes_are_refused),
		SESSION_TEST(read_only__a_session_becomes_so_and_back),
		SESSION_TEST(read_only__is_all_that_a_session_can_change),
		SESSION_TEST(read_only__who_is_refused_has_changed_nothing),
		SESSION_TEST(readers__share_an_export),
		SESSION_TEST(readers__keep_a_writer_out_and_are_named),
		SESSION_TEST(readers__are_kept_out_by_a_writer),
		SESSION_TEST(readers__one_that_wants_the_export_alone_does_not_share),
		SESSION_TEST(readers__none_becomes_a_writer_while_others_read),
		SESSION_TEST(readers__keep_their_sessions_over_a_restart),
		SESSION_TEST(readers__are_not_ended_for_a_writer_that_is_refused),
		SESSION_TEST(readers__that_are_not_fenced_yet_keep_a_writer_out),
		SESSION_TEST(readers__successor_of_a_dead_one_ends_nobody_else),
		SESSION_TEST(slots__lower_sequence_number_closes_the_channel),
		SESSION_TEST(slots__used_number_for_another_request_closes_the_channel),
		SESSION_TEST(slots__of_another_channel_closes_the_channel),
		SESSION_TEST(request__before_attach_closes_the_channel),
		SESSION_TEST(garbage__closes_one_channel_and_nothing_else),
		SESSION_TEST(sigterm__exits_0_and_sessions_resume),
		SESSION_TEST(restart__unresumed_session_gives_way_after_the_lease),
		SESSION_TEST(restart__unresumed_session_gives_way_to_its_owner_after_the_lease),
		SESSION_TEST(restart__living_shm_process_keeps_the_export),
	};

	return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
