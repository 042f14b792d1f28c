/* test_session.c - sessions that end while the store fails, or while others wait for their
 * pages. */
#include "tests/unit/server/sharing_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "common/transport/transport_ops.h"
#include "server/serve/control.h"
#include "server/serve/dispatch.h"
#include "server/recall/recall.h"
#include "server/session/session.h"
#include "server/snapshot/snapshot.h"

enum { LEASE_MS = 10000 };

static struct server server;
static struct export export;
static struct export *listed[1];
static struct exports exports;

static int set_up(void **state)
{
	struct list *const lists[] = {&server.sessions, &server.peers, &server.unattached,
		&server.turns, &server.ready, &server.parked, &server.waiting, &server.stalled,
		&server.strangers.waiting, &server.clients.waiting, &server.auth_waiting,
		&server.visitors};

	set_up_sessions(state);
	meta_allow_reuse(fx.m, 0);
	export = (struct export){.name = "default", .reuse_allowed = true};
	listed[0] = &export;
	exports = (struct exports){.v = listed, .n = 1};
	server = (struct server){.meta = fx.m,
		.exports = &exports,
		.lease_ms = LEASE_MS,
		.judge_ms = INT64_MAX,
		.events = &control_events};
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		list_init(lists[i]);
	assert_int_equal(recalls_new(&server), 0);
	assert_int_equal(snapshot_init(&server), 0);
	assert_int_equal(sessions_restore(&server), 0);
	return 0;
}

static int tear_down(void **state)
{
	sessions_delete(&server);
	snapshot_end(&server);
	recalls_delete(&server);
	return fx_tear_down(state);
}

/* ---- the store ------------------------------------------------------------------------------- */

static uint8_t record[512];
static size_t record_len;

/* Writes the session's record, which its end needs. */
static void put_record(const void *data, size_t len)
{
	struct store_key key = STORE_KEY(fx.ctx.session);

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(store_put(fx.m->store, STORE_SESSION, key, data, len), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static void damage(void)
{
	struct store_val val;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(store_get(fx.m->store, STORE_SESSION, STORE_KEY(fx.ctx.session), &val), 0);
	assert_true(val.len <= sizeof(record));
	record_len = val.len;
	memcpy(record, val.data, val.len);
	store_abort(fx.m->store);
	put_record("x", 1);
}

/* ---- a request ------------------------------------------------------------------------------- */

static uint8_t message[RPC_MSG_BYTES];
static struct rpc_reply answer;
static unsigned nanswers;

static void *send_buffer(struct channel *ch)
{
	return message;
}

static void send_cancel(struct channel *ch, void *buf)
{
}

static int send_reply(struct channel *ch, void *buf, uint32_t len, unsigned flags, uint32_t imm)
{
	assert_int_equal(rpc_reply_decode(&answer, RMEMFS_WIRE_VERSION, buf, len), 0);
	nanswers++;
	return 0;
}

static void recv_done(struct channel *ch, const void *data)
{
}

/* How many keys the device takes before it has bound others. */
static unsigned nbinds;

static int publish(
	struct channel *ch, struct region *region, unsigned access, struct region_key *key)
{
	if (!nbinds)
		return -EAGAIN;
	nbinds--;
	*key = (struct region_key){.len = region->len, .access = access};
	return 0;
}

static const struct transport_ops ops = {.send_buffer = send_buffer,
	.send_cancel = send_cancel,
	.send = send_reply,
	.recv_done = recv_done,
	.publish = publish};
static struct transport transport = {.ops = &ops};
static struct channel channel = {
	.transport = &transport, .state = CH_OPEN, .limits.msg_bytes = RPC_MSG_BYTES};
static struct conn conn;

static void begin_request(struct client_session *session, struct rpc_request rpc)
{
	struct client_request *req = &conn.slots[0];

	nanswers = 0;
	conn = (struct conn){.server = &server, .session = session, .channel = &channel};
	*req = (struct client_request){.conn = &conn, .msg = message, .rpc = rpc};
	req->rpc.seq = 1;
	list_add_tail(&server.ready, &req->link);
}

static void run_until_idle(void)
{
	for (unsigned i = 0; i < 100 && dispatch_run(&server); i++)
		assert_true(i < 99);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void end__that_failed_is_tried_again(void **state)
{
	struct client_session *session = client_session_find(&server, fx.ctx.session);
	int ms;

	damage();
	client_session_end(session, "the test says so");
	assert_ptr_equal(client_session_find(&server, fx.ctx.session), session);
	assert_false(server.reclaim);
	ms = control_tick(&server);
	assert_true(ms > 0 && ms <= RETRY_MIN_MS);
	/* Not without a rest. */
	put_record(record, record_len);
	control_tick(&server);
	assert_non_null(client_session_find(&server, fx.ctx.session));
	retry_now(&session->end_retry);
	control_tick(&server);
	assert_null(client_session_find(&server, fx.ctx.session));
	assert_true(server.reclaim);
	fx_settle();
}

static void end__is_not_tried_of_one_that_goes_on(void **state)
{
	assert_int_equal(sessions_tick(&server, now_ms()), -1);
	assert_non_null(client_session_find(&server, fx.ctx.session));
}

static void take_all_pages(uint64_t session)
{
	int err = 0;

	fx.ctx.session = session;
	while (!err)
		err = FX_RUN(.op = RPC_GRANT, .grant = {UINT32_MAX});
	assert_int_equal(err, -ENOSPC);
}

static void end__of_one_with_pages_is_waited_for_until_it_is_fenced(void **state)
{
	struct client_session *ends = client_session_find(&server, sessions[1]);
	int64_t until = now_ms() + 10000;

	take_all_pages(sessions[1]);
	client_session_find(&server, sessions[2])->spare.none = true;
	ends->ending = true;
	begin_request(client_session_find(&server, sessions[0]),
		(struct rpc_request){.op = RPC_GRANT, .grant = {16, true}});
	run_until_idle();
	assert_int_equal(nanswers, 0);
	client_session_lost_conn(ends, &(struct lost_conn){0});
	while (!nanswers) {
		assert_true(now_ms() < until);
		server.reclaim = true;
		dispatch_run(&server);
	}
	assert_int_equal(answer.status, 0);
	assert_true(answer.grant.ngrant);
}

/* A request that waits for something else ends no session. */
static void reuse__is_awaited_by_who_lacks_pages(void **state)
{
	struct client_session *session = client_session_find(&server, sessions[0]);
	uint64_t ino;

	fx.ctx.lease_limit = 1;
	ino = fx_fragmented("file", 300);
	take_all_pages(sessions[0]);
	assert_int_equal(fx_truncate(ino, 20 * PAGE_BYTES), 0);
	export.reuse_allowed = false;
	begin_request(session,
		(struct rpc_request){.op = RPC_FALLOCATE,
			.fallocate = {.ino = ino, .offset = 20 * PAGE_BYTES, .len = PAGE_BYTES}});
	run_until_idle();
	assert_int_equal(session->nparked, 1);
	assert_false(export.awaits_reuse);
	client_request_drop(&conn.slots[0]);
	begin_request(session, (struct rpc_request){.op = RPC_GRANT, .grant = {16, true}});
	run_until_idle();
	assert_int_equal(session->nparked, 1);
	assert_true(export.awaits_reuse);
	client_request_drop(&conn.slots[0]);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void batch__of_all_that_has_arrived_is_one_transaction(void **state)
{
	struct client_session *session = client_session_find(&server, sessions[0]);
	uint64_t before = fx_usage().transactions;
	char names[CHANNEL_SLOTS][8];

	begin_request(session,
		(struct rpc_request){.op = RPC_MKDIR,
			.create = {.parent = ROOT_INO, .name = fx_str("0"), .mode = 0755}});
	for (unsigned slot = 1; slot < CHANNEL_SLOTS; slot++) {
		struct client_request *req = &conn.slots[slot];

		*req = conn.slots[0];
		snprintf(names[slot], sizeof(names[slot]), "%u", slot);
		req->rpc.slot = (uint16_t)slot;
		req->rpc.create.name = fx_str(names[slot]);
		list_add_tail(&server.ready, &req->link);
	}
	run_until_idle();
	assert_int_equal(nanswers, CHANNEL_SLOTS);
	assert_int_equal(fx_usage().transactions, before + 1);
}

/* ---- keys for regions ------------------------------------------------------------------------ */

enum { REGIONS = 5 };

static struct region memory[REGIONS];
static struct region *regions[REGIONS];
static struct region_file files[REGIONS], *file_list[REGIONS];
static struct region_key keys[REGIONS];
static struct port port;

/* Asks for the regions that the client does not know yet. */
static void ask_for_regions(struct client_session *session)
{
	uint32_t first = conn.nkeys;

	begin_request(
		session, (struct rpc_request){
				 .op = RPC_REGIONS, .slot = RPC_NO_SLOT, .regions.first = first});
	conn.port = &port;
	conn.keys = keys;
	conn.keys_room = REGIONS;
	conn.nkeys = first;
	run_until_idle();
}

static void regions__wait_for_a_device_that_takes_no_more_keys(void **state)
{
	struct client_session *session = client_session_find(&server, sessions[0]);
	autoclose int fd = memfd_create("region", MFD_CLOEXEC);

	assert_int_equal(posix_fallocate(fd, 0, PAGE_BYTES), 0);
	channel.server = true;
	export.nregions = REGIONS;
	export.regions = file_list;
	for (unsigned i = 0; i < REGIONS; i++) {
		memory[i] = (struct region){.transport = &transport, .len = PAGE_BYTES};
		regions[i] = &memory[i];
		files[i] = (struct region_file){
			.fd = fd, .len = PAGE_BYTES, .registered = &regions[i]};
		file_list[i] = &files[i];
	}
	conn.nkeys = 0;
	nbinds = 2;
	ask_for_regions(session);
	assert_int_equal(nanswers, 1);
	assert_int_equal(answer.regions.tail.len, 2 * RPC_REGION_BYTES);
	ask_for_regions(session);
	client_session_retry_stalled(&server);
	assert_int_equal(nanswers, 0);
	nbinds = REGIONS;
	client_session_retry_stalled(&server);
	assert_int_equal(nanswers, 1);
	assert_int_equal(answer.status, 0);
	assert_int_equal(answer.regions.tail.len, 3 * RPC_REGION_BYTES);
	channel.server = false;
}

/* ---- more news than a PING has room for ------------------------------------------------------ */

enum { MANY = 2100, NEWS_MAX = RPC_MSG_BYTES / RPC_RECALL_BYTES };

static struct client_request waiting[MANY];
static uint8_t tellings[MANY];

static void wait_for_all(struct client_session *session)
{
	static struct conn asker;

	fx.ctx.lease_limit = MANY;
	asker = (struct conn){.server = &server, .session = session, .channel = &channel};
	for (unsigned i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		waiting[i] = (struct client_request){.conn = &asker,
			.msg = message,
			.rpc.op = RPC_LEASE,
			.wants = {fx_file(ROOT_INO, name), LEASE_EXCLUSIVE}};
		recall_wait(&waiting[i]);
	}
	recalls_look(&server);
}

static unsigned index_of(uint64_t ino)
{
	for (unsigned i = 0; i < MANY; i++)
		if (waiting[i].wants.ino == ino)
			return i;
	fail_msg("nobody waits for it");
	return 0;
}

/* Returns whether another PING must follow at once. *n: the number of recalls in this one. */
static bool ping(struct client_session *session, unsigned *n)
{
	struct rpc_recall recall;
	struct wire_in r;

	begin_request(session, (struct rpc_request){.op = RPC_PING, .slot = RPC_NO_SLOT});
	run_until_idle();
	assert_int_equal(nanswers, 1);
	r = rpc_tail_reader(&answer.ping.tail);
	for (*n = 0; rpc_get_recall(&r, &recall); ++*n)
		tellings[index_of(recall.ino)]++;
	return session->ring_wanted;
}

static void recalls__of_many_are_told_of_by_turns(void **state)
{
	struct client_session *session = client_session_find(&server, sessions[0]);
	unsigned n, all = 0;

	memset(tellings, 0, sizeof(tellings));
	wait_for_all(client_session_find(&server, sessions[1]));
	assert_int_equal(recalls_of(session), MANY);
	while (ping(session, &n)) {
		assert_in_range(n, 900, NEWS_MAX);
		all += n;
		assert_true(all < MANY);
	}
	/* No recall is urgent any more, and all are told again. */
	for (unsigned i = 0; i < MANY; i++)
		assert_in_range(tellings[i], 1, 2);
	for (unsigned i = 0; i < 3; i++)
		assert_false(ping(session, &n));
	for (unsigned i = 0; i < MANY; i++)
		assert_in_range(tellings[i], 2, 3);
	control_events.news_lost(session);
	assert_true(ping(session, &n));
	for (unsigned i = 0; i < MANY; i++)
		client_request_drop(&waiting[i]);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(end__that_failed_is_tried_again),
		CASE(end__is_not_tried_of_one_that_goes_on),
		CASE(end__of_one_with_pages_is_waited_for_until_it_is_fenced),
		CASE(reuse__is_awaited_by_who_lacks_pages),
		CASE(batch__of_all_that_has_arrived_is_one_transaction),
		CASE(regions__wait_for_a_device_that_takes_no_more_keys),
		CASE(recalls__of_many_are_told_of_by_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
