/* The session's client when a scripted server is silent, away or no longer knows the session, and
 * when the session ends. */
#include "tests/unit/daemon/remote_bench.h"

#include "common/base/log.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/remote_private.h"
#include "daemon/lock/lock_wait.h"
#include "daemon/serve/fs_block.h"

static struct ios ios;

/* ---- silence --------------------------------------------------------------------------------- */

static void ping__every_idle_channel(void **state)
{
	struct bench b;

	bench_open_for(&b, 2, 1000, 0, 0);
	drive_until(&b.d,
		atomic_load(&b.script.npings[0]) >= 4 && atomic_load(&b.script.npings[1]) >= 4);
	assert_int_equal(atomic_load(&b.script.nattached), 2);
	bench_close(&b);
}

/* The server sees nothing of transfers that it takes no part in. */
static void ping__a_channel_with_nothing_but_transfers(void **state)
{
	struct bench b;

	bench_open_for(&b, 1, 1000, 0, 0);
	while (atomic_load(&b.script.npings[0]) < 4) {
		ios_start(&b.d, &ios, IO_WRITE);
		ios_finish(&b.d, &ios);
	}
	bench_close(&b);
}

static void ping__as_often_as_the_server_wants_to_hear(void **state)
{
	struct bench b;
	int64_t start = now_ms();

	bench_open_for(&b, 1, 60000, 0, 400);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= 20);
	assert_in_range(now_ms() - start, 1000, 12000);
	bench_close(&b);
}

/* Much faster than an idle channel is pinged. */
static void ring__is_answered_by_a_ping_at_once(void **state)
{
	int64_t start = now_ms();
	struct bench b;

	bench_open(&b, 1);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= 1);
	for (unsigned i = 0; i < 30; i++) {
		unsigned before = atomic_load(&b.script.npings[0]);

		atomic_store(&b.script.ring_once, SCRIPT_RING);
		drive_until(&b.d, atomic_load(&b.script.npings[0]) > before);
	}
	assert_in_range(now_ms() - start, 0, 15000);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

static void ring__while_a_ping_is_on_its_way_brings_another(void **state)
{
	int64_t start = now_ms();
	struct bench b;

	bench_open(&b, 1);
	for (unsigned i = 0; i < 20; i++) {
		unsigned before = atomic_load(&b.script.npings[0]);

		atomic_store(&b.script.silent, true);
		atomic_store(&b.script.ring_once, SCRIPT_RING);
		drive_until(&b.d, b.d.threads[0].remote->ping_ns &&
					  atomic_load(&b.script.npings[0]) > before);
		before = atomic_load(&b.script.npings[0]);
		atomic_store(&b.script.ring_once, SCRIPT_RING);
		drive_until(&b.d, b.d.threads[0].remote->rung);
		assert_int_equal(atomic_load(&b.script.npings[0]), before);
		atomic_store(&b.script.silent, false);
		drive_until(&b.d, atomic_load(&b.script.npings[0]) > before);
		drive_until(&b.d, !b.d.threads[0].remote->ping_ns);
	}
	assert_in_range(now_ms() - start, 0, 15000);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

static void ring__malformed_costs_the_channel_only(void **state)
{
	static const enum script_ring rings[] = {
		SCRIPT_RING_OF_ANOTHER_NUMBER, SCRIPT_RING_WITH_BYTES};
	struct bench b;

	bench_open(&b, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(rings); i++) {
		atomic_store(&b.script.ring_once, rings[i]);
		drive_until(&b.d,
			atomic_load(&b.script.nattached) == i + 2 && remote_connected(b.d.threads));
	}
	rpcs_start(&b, 20);
	drive_until(&b.d, count_done(calls) == 20);
	rpcs_verify(&b, 20);
	bench_close(&b);
}

/* A repeated answer costs nothing, and proves nothing about the PING in flight. */
static void ping__answered_twice_is_answered_once(void **state)
{
	struct bench b;
	int64_t renewed_ms, left_ns;

	bench_open(&b, 1);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= 1 && !b.d.threads[0].remote->ping_ns);
	renewed_ms = atomic_load(&b.d.session->renewed_ms);
	drive_until(&b.d, now_ms() > renewed_ms);
	atomic_store(&b.script.silent, true);
	atomic_store(&b.script.ring_once, SCRIPT_RING);
	drive_until(&b.d, b.d.threads[0].remote->ping_ns);
	left_ns = b.d.threads[0].remote->ping_ns;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t coded = b.d.threads[0].remote->coded_bytes;

		atomic_store(&b.script.again_once, true);
		drive_until(&b.d, b.d.threads[0].remote->coded_bytes > coded);
		assert_int_equal(b.d.threads[0].remote->ping_ns, left_ns);
		assert_int_equal(atomic_load(&b.d.session->renewed_ms), renewed_ms);
	}
	atomic_store(&b.script.silent, false);
	drive_until(&b.d, !b.d.threads[0].remote->ping_ns);
	assert_int_equal(atomic_load(&b.d.session->renewed_ms), left_ns / 1000000);
	atomic_store(&b.script.again_once, true);
	drive_until(&b.d, !atomic_load(&b.script.again_once));
	rpcs_start(&b, 20);
	drive_until(&b.d, count_done(calls) == 20);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

static void ping__malformed_recalls_cost_the_channel_only(void **state)
{
	struct bench b;
	unsigned npings;

	bench_open_for(&b, 1, 1000, 0, 0);
	atomic_store(&b.script.recall_bytes, 2 * RPC_RECALL_BYTES);
	npings = atomic_load(&b.script.npings[0]);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= npings + 3);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	atomic_store(&b.script.recall_bytes, 2 * RPC_RECALL_BYTES + 1);
	drive_until(&b.d, atomic_load(&b.script.nattached) == 2);
	atomic_store(&b.script.recall_bytes, 0);
	rpcs_start(&b, 20);
	drive_until(&b.d, count_done(calls) == 20);
	rpcs_verify(&b, 20);
	bench_close(&b);
}

static void silence__idle_channel_is_given_up_in_time(void **state)
{
	struct bench b;
	int64_t start;

	bench_open_for(&b, 1, 1000, 0, 0);
	start = now_ms();
	atomic_store(&b.script.silent, true);
	drive_until(&b.d, atomic_load(&b.script.nattached) == 2);
	/* The last sign of life was the answer to ATTACH, or to an earlier PING. */
	assert_true(now_ms() - start >= 600);
	assert_true(session_ttl_ms(b.d.session) > 0);
	bench_close(&b);
}

/* Transfers go on, but the server answers no message. */
static void silence__not_hidden_by_transfers_for_ever(void **state)
{
	struct bench b;
	int64_t start;

	bench_open_for(&b, 1, 500, 0, 0);
	start = now_ms();
	atomic_store(&b.script.silent, true);
	while (atomic_load(&b.script.nattached) < 2) {
		assert_true(now_ms() - start < DRIVE_LIMIT_MS);
		ios_start(&b.d, &ios, IO_WRITE);
		ios_finish(&b.d, &ios);
	}
	assert_true(now_ms() - start >= 1500);
	bench_close(&b);
}

/* The answers have arrived, but the client checks the time before it reads them. */
static void silence__our_own_pause_is_none(void **state)
{
	struct bench b;
	unsigned npings;

	bench_open_for(&b, 1, 1000, 0, 0);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= 1);
	poll(NULL, 0, 1500);
	remote_tick(&b.d.threads[0], now_ms());
	npings = atomic_load(&b.script.npings[0]);
	drive_until(&b.d, atomic_load(&b.script.npings[0]) >= npings + 4);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

/* Nothing is sent to a server that is away, so no call has an open outcome. */
static void soft__calls_can_be_taken_back_while_the_server_is_away(void **state)
{
	struct bench b;
	int64_t start;

	bench_open_for(&b, 1, 60000, 1000, 0);
	start = now_ms();
	atomic_store(&b.script.silent, true);
	drive_until(&b.d, remote_gives_up(b.d.threads));
	assert_true(now_ms() - start >= 600);
	rpcs_start(&b, 2);
	ios_start(&b.d, &ios, IO_WRITE);
	assert_true(rpc_cancel(b.d.threads, &calls[1].call));
	for (unsigned i = 1; i < NIOS; i++)
		assert_true(io_cancel(b.d.threads, &ios.io[i].call));
	atomic_store(&b.script.silent, false);
	drive_until(&b.d, calls[0].ndone && ios.io[0].ndone);
	assert_false(remote_gives_up(b.d.threads));
	assert_int_equal(calls[0].status, 0);
	assert_int_equal(ios.io[0].status, 0);
	assert_int_equal(atomic_load(&b.script.nexecuted), 1);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

static void soft__lost_connection_counts_from_the_last_sign_of_life(void **state)
{
	struct bench b;
	int64_t start = now_ms();

	bench_open_for(&b, 1, 5000, 800, 0);
	script_fini(&b.script);
	drive_until(&b.d, !remote_connected(b.d.threads));
	assert_false(remote_gives_up(b.d.threads));
	drive_until(&b.d, remote_gives_up(b.d.threads));
	assert_true(now_ms() - start >= 800);
	drive_close(&b.d);
}

/* The server was away, and comes back without our session: that is not EIO. */
static void soft__lost_session_is_not_given_up(void **state)
{
	struct bench b;

	bench_open_for(&b, 1, 60000, 500, 0);
	atomic_store(&b.script.silent, true);
	drive_until(&b.d, remote_gives_up(b.d.threads));
	atomic_store(&b.script.refuse, -ESTALE);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, session_lost(b.d.session));
	assert_false(remote_gives_up(b.d.threads));
	rpcs_start(&b, 1);
	drive_until(&b.d, calls[0].ndone);
	assert_int_equal(calls[0].status, -ESTALE);
	bench_close(&b);
}

static void hard__never_gives_up(void **state)
{
	struct bench b;

	bench_open_for(&b, 1, 400, 0, 0);
	atomic_store(&b.script.silent, true);
	drive_until(&b.d, atomic_load(&b.script.nattached) >= 3);
	assert_false(remote_gives_up(b.d.threads));
	bench_close(&b);
}

/* ---- the session's end ----------------------------------------------------------------------- */

static void session__refused_when_it_resumes_is_lost(void **state)
{
	struct bench b;
	struct test_rpc late;

	bench_open(&b, 2);
	atomic_store(&b.script.refuse, -ESTALE);
	atomic_store(&b.script.hold, true);
	rpcs_start(&b, 60);
	ios_start(&b.d, &ios, IO_WRITE);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, count_done(calls) == 60 && count_done(ios.io) == NIOS);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(calls[i].status, -ESTALE);
	assert_true(session_lost(b.d.session));
	assert_int_equal(session_ttl_ms(b.d.session), 0);
	test_rpc_create(&late, "late", 0);
	rpc_start(&b.d.threads[1], &late.call);
	drive_until(&b.d, late.ndone);
	assert_int_equal(late.status, -ESTALE);
	drive_stop(&b.d, 10000);
	bench_close(&b);
}

/* The calls into the filesystem when a sharing session ends. */
static struct fs *share(struct bench *b)
{
	struct fs_block *block = calloc(1, sizeof(*block));
	struct fs *fs = &block->fs;

	assert_non_null(block);
	fs_wire(fs, &block->parts);
	locks_init(fs->locks);
	for (unsigned i = 0; i < b->d.nthreads; i++) {
		list_init(&fs->threads[i].lock_waits);
		b->d.threads[i].fs = fs;
	}
	b->d.session->sharing = true;
	return fs;
}

static bool all_idle(const struct drive *d)
{
	for (unsigned i = 0; i < d->nthreads; i++)
		if (!remote_is_idle(&d->threads[i]))
			return false;
	return true;
}

static void session__that_has_ended_is_followed_by_another(void **state)
{
	const struct rpc_attach *attach;
	struct test_rpc late;
	struct bench b;
	struct fs *fs;

	bench_open(&b, 2);
	fs = share(&b);
	drive_until(&b.d, remote_connected(&b.d.threads[1]));
	atomic_store(&b.script.refuse, -EIDRM);
	atomic_store(&b.script.hold, true);
	rpcs_start(&b, 60);
	ios_start(&b.d, &ios, IO_WRITE);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, count_done(calls) == 60 && count_done(ios.io) == NIOS);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(calls[i].status, -ESTALE);
	assert_true(session_has_ended(b.d.session));
	assert_false(session_lost(b.d.session));
	assert_int_equal(session_ttl_ms(b.d.session), 0);
	/* No call is sent before another session is asked for. */
	test_rpc_create(&late, "late", 0);
	rpc_start(&b.d.threads[1], &late.call);
	drive_until(&b.d, late.ndone && all_idle(&b.d));
	assert_int_equal(late.status, -ESTALE);
	atomic_store(&b.script.refuse, 0);
	atomic_store(&b.script.hold, false);
	atomic_store(&b.script.nended, 1);
	for (unsigned i = 0; i < 20; i++)
		drive_turn(&b.d.threads[0], 5);
	assert_int_equal(atomic_load(&b.script.nattached), 2);
	for (unsigned i = 0; i < b.d.nthreads; i++)
		remote_begin_anew(&b.d.threads[i]);
	assert_int_equal(record_new(&b.d.session->record), 0);
	atomic_store(&record_head(b.d.session->record)->lives, RECORD_LIVES);
	session_begin_anew(b.d.session);
	assert_int_equal(atomic_load(&record_head(b.d.session->record)->lives), RECORD_OUTDATED);
	record_delete(steal_ptr(&b.d.session->record));
	assert_false(session_is_made(b.d.session));
	drive_until(&b.d, atomic_load(&b.script.nattached) == 4);
	attach = &b.script.channels[0].attach.attach;
	assert_int_equal(attach->session, 0);
	assert_int_equal(attach->ended, SCRIPT_SESSION);
	assert_memory_equal(attach->store_id, "a store", 8);
	assert_int_equal(b.script.channels[1].attach.attach.session, SCRIPT_SESSION + 1);
	assert_true(session_is_made(b.d.session));
	/* With the first numbers of its slots, which the server checks. */
	rpcs_start(&b, 60);
	drive_until(&b.d, count_done(calls) == 60);
	rpcs_verify(&b, 60);
	drive_stop(&b.d, 10000);
	bench_close(&b);
	/* Only the calls of the new session are counted there. */
	assert_int_equal(b.script.bye.rpcs, 60);
	assert_int_equal(b.script.bye.writes, 0);
	locks_fini(fs->locks);
	free(fs);
}

static void session__of_one_that_does_not_share_is_lost(void **state)
{
	struct bench b;

	bench_open(&b, 1);
	atomic_store(&b.script.refuse, -EIDRM);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, session_lost(b.d.session));
	assert_false(session_has_ended(b.d.session));
	bench_close(&b);
}

static void session__that_has_ended_with_the_store_is_lost(void **state)
{
	struct bench b;
	struct fs *fs;

	bench_open(&b, 1);
	fs = share(&b);
	atomic_store(&b.script.refuse, -EIDRM);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, session_has_ended(b.d.session) && all_idle(&b.d));
	atomic_store(&b.script.refuse, -ESTALE);
	session_begin_anew(b.d.session);
	drive_until(&b.d, session_lost(b.d.session));
	bench_close(&b);
	locks_fini(fs->locks);
	free(fs);
}

static void session__goes_on_when_the_export_has_grown(void **state)
{
	struct bench b;

	bench_open(&b, 1);
	atomic_store(&b.script.nregions, EXPORT_REGIONS_MAX);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, atomic_load(&b.script.nattached) == 2 && remote_connected(b.d.threads));
	assert_int_equal(session_nregions(b.d.session), EXPORT_REGIONS_MAX);
	rpcs_start(&b, 20);
	drive_until(&b.d, count_done(calls) == 20);
	rpcs_verify(&b, 20);
	bench_close(&b);
}

/* A server that allows an export more regions than a client of this version reaches. */
static void session__more_regions_than_it_reaches_is_lost(void **state)
{
	struct session_options options;
	struct bench b;

	bench_open(&b, 1);
	atomic_store(&b.script.hold, true);
	rpcs_start(&b, 20);
	atomic_store(&b.script.nregions, EXPORT_REGIONS_MAX + 1);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, count_done(calls) == 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(calls[i].status, -ESTALE);
	assert_true(session_lost(b.d.session));
	options = options_for(script_port(&b.script), 1);
	connect_fails(
		&options, -E2BIG, "the export has 1025 regions, more than the 1024 we can reach");
	bench_close(&b);
}

static void stop__says_bye_with_the_totals(void **state)
{
	struct bench b;

	bench_open(&b, 2);
	ios_start(&b.d, &ios, IO_WRITE);
	ios_finish(&b.d, &ios);
	rpcs_start(&b, ARRAY_SIZE(calls));
	drive_until(&b.d, count_done(calls) == ARRAY_SIZE(calls));
	drive_stop(&b.d, 5000);
	bench_close(&b);
	assert_int_equal(atomic_load(&b.script.nbyes), 1);
	assert_int_equal(b.script.bye.writes, NIOS * IO_WORKS);
	assert_int_equal(b.script.bye.write_bytes, (uint64_t)NIOS * IO_STRIDE);
	assert_int_equal(b.script.bye.rpcs, ARRAY_SIZE(calls));
	assert_int_equal(b.script.bye.rpc_data_bytes, 0);
}

static void stop__without_a_server_ends_in_time(void **state)
{
	struct bench b;
	int64_t start;

	bench_open(&b, 2);
	script_fini(&b.script);
	drive_until(&b.d, !remote_connected(&b.d.threads[0]) && !remote_connected(&b.d.threads[1]));
	start = now_ms();
	drive_stop(&b.d, 400);
	assert_in_range(now_ms() - start, 300, 1000);
	drive_close(&b.d);
}

/* A call gives up without a server, or answers without it, only after a loss or a failure. It does
 * not while a thread makes its first connection beside others that are up. */
static void disconnected__not_while_the_first_connection_is_made(void **state)
{
	struct bench b;
	struct io_thread *second = &b.d.threads[1];

	bench_open(&b, 2);
	assert_false(remote_connected(second));
	assert_false(remote_disconnected(second));
	drive_turn(second, 0);
	assert_false(remote_connected(second));
	assert_false(remote_disconnected(second));
	drive_until(&b.d, remote_connected(second));
	assert_false(remote_disconnected(second));
	script_fini(&b.script);
	drive_until(&b.d, remote_disconnected(second) && remote_disconnected(&b.d.threads[0]));
	drive_stop(&b.d, 400);
	drive_close(&b.d);
}

static void disconnected__when_the_first_connection_fails(void **state)
{
	struct bench b;
	struct io_thread *second = &b.d.threads[1];

	bench_open(&b, 2);
	script_fini(&b.script);
	assert_false(remote_disconnected(second));
	drive_until(&b.d, remote_disconnected(second));
	assert_false(remote_connected(second));
	drive_stop(&b.d, 400);
	drive_close(&b.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping__every_idle_channel),
		cmocka_unit_test(ping__a_channel_with_nothing_but_transfers),
		cmocka_unit_test(ping__as_often_as_the_server_wants_to_hear),
		cmocka_unit_test(ring__is_answered_by_a_ping_at_once),
		cmocka_unit_test(ring__while_a_ping_is_on_its_way_brings_another),
		cmocka_unit_test(ring__malformed_costs_the_channel_only),
		cmocka_unit_test(ping__answered_twice_is_answered_once),
		cmocka_unit_test(ping__malformed_recalls_cost_the_channel_only),
		cmocka_unit_test(silence__idle_channel_is_given_up_in_time),
		cmocka_unit_test(silence__not_hidden_by_transfers_for_ever),
		cmocka_unit_test(silence__our_own_pause_is_none),
		cmocka_unit_test(soft__calls_can_be_taken_back_while_the_server_is_away),
		cmocka_unit_test(soft__lost_connection_counts_from_the_last_sign_of_life),
		cmocka_unit_test(soft__lost_session_is_not_given_up),
		cmocka_unit_test(hard__never_gives_up),
		cmocka_unit_test(session__refused_when_it_resumes_is_lost),
		cmocka_unit_test(session__that_has_ended_is_followed_by_another),
		cmocka_unit_test(session__of_one_that_does_not_share_is_lost),
		cmocka_unit_test(session__that_has_ended_with_the_store_is_lost),
		cmocka_unit_test(session__goes_on_when_the_export_has_grown),
		cmocka_unit_test(session__more_regions_than_it_reaches_is_lost),
		cmocka_unit_test(stop__says_bye_with_the_totals),
		cmocka_unit_test(stop__without_a_server_ends_in_time),
		cmocka_unit_test(disconnected__not_while_the_first_connection_is_made),
		cmocka_unit_test(disconnected__when_the_first_connection_fails),
	};

	log_init("test_daemon_remote_loss", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
