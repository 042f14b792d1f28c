/* The session's client against the real server, over shm and tcp: calls are executed once, bytes
 * come back equal, and only the right clients are let in. The server is killed and restarted in the
 * middle of work. */
#include "tests/unit/daemon/remote_server.h"

#include "common/base/log.h"
#include "daemon/record/record.h"
#include "daemon/remote/replay.h"
#include "daemon/remote/session_handover.h"

/* ---- cases ----------------------------------------------------------------------------------- */

static void rpcs_and_io__come_back(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(&d);
	grant_pages(&d);
	fill(&d, 1);
	ios_start(&d, IO_WRITE);
	drive_until(&d, count_done(ios.io) == NIOS);
	ios_verify();
	read_verify(&d, 1);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* The kill comes when some calls are answered and the others are anywhere. */
static void server_killed__everything_is_done_once(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	grant_pages(&d);
	for (uint32_t round = 0; round < 3; round++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "%u-", round);
		fill(&d, round);
		ios_start(&d, IO_WRITE);
		creates_start(&d, prefix);
		drive_until(&d, count_done(calls) >= 100 * round);
		server_end(SIGKILL);
		server_start();
		drive_until(
			&d, count_done(ios.io) == NIOS && count_done(calls) == ARRAY_SIZE(calls));
		ios_verify();
		read_verify(&d, round);
		creates_verify(&d);
	}
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void store_gone__session_is_lost(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	server_end(SIGKILL);
	server_forget_memory();
	creates_start(&d, "file");
	server_start();
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		assert_true(calls[i].status == 0 || calls[i].status == -ESTALE);
	assert_int_equal(calls[ARRAY_SIZE(calls) - 1].status, -ESTALE);
	assert_true(session_lost(d.session));
	drive_close(&d);
}

static void second_mount__is_told_who_has_the_export(void **state)
{
	struct session_options options;
	struct drive d, other;

	server_init(state);
	drive_begin(&d);
	options = options_for("/mnt/b");
	options.connect_timeout_ms = 300;
	assert_int_equal(drive_open(&other, &options), 0);
	assert_int_equal(drive_connect(&other), -EBUSY);
	assert_non_null(strstr(other.why, ":/mnt/a (pid "));
	drive_close(&other);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void second_mount__gets_in_after_the_first_has_ended(void **state)
{
	struct drive d, other;

	server_init(state);
	drive_begin(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
	drive_begin(&other);
	drive_stop(&other, 5000);
	drive_close(&other);
}

static void unknown_export__is_refused_alone(void **state)
{
	struct session_options options;
	struct drive d;

	server_init(state);
	options = options_for("/mnt/a");
	snprintf(options.source.export_name, sizeof(options.source.export_name), "nope");
	assert_int_equal(drive_open(&d, &options), 0);
	assert_int_equal(drive_connect(&d), -EACCES);
	assert_non_null(strstr(d.why, "nope"));
	assert_null(strstr(d.why, "default"));
	drive_close(&d);
}

/* Meanwhile both threads read. */
static void set_read_only(struct drive *d, bool read_only)
{
	ios_start(d, IO_READ);
	session_set_read_only(d->session, read_only);
	assert_false(session_has_keys(d->session));
	drive_until(d, session_has_keys(d->session) && count_done(ios.io) == NIOS);
	ios_verify();
}

static void expect_all(struct drive *d, const char *prefix, int status, int io_status)
{
	creates_start(d, prefix);
	ios_start(d, IO_WRITE);
	drive_until(d, count_done(calls) == ARRAY_SIZE(calls) && count_done(ios.io) == NIOS);
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		assert_int_equal(calls[i].status, status);
	for (unsigned i = 0; i < NIOS; i++)
		assert_int_equal(ios.io[i].status, io_status);
}

static void read_only__is_changed_on_all_channels(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	grant_pages(&d);
	fill(&d, 1);
	expect_all(&d, "before", 0, 0);
	set_read_only(&d, true);
	fill(&d, 2);
	expect_all(&d, "meanwhile", -EROFS, -EIO);
	read_verify(&d, 1);
	set_read_only(&d, false);
	fill(&d, 3);
	expect_all(&d, "after", 0, 0);
	read_verify(&d, 3);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void read_only__is_changed_when_the_server_is_back(void **state)
{
	struct drive d;
	int64_t until;

	server_init(state);
	drive_begin(&d);
	drive_until(&d, session_has_keys(d.session));
	server_end(SIGKILL);
	session_set_read_only(d.session, true);
	until = now_ms() + 300;
	drive_until(&d, now_ms() > until);
	assert_false(session_has_keys(d.session));
	server_start();
	drive_until(&d, session_has_keys(d.session));
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	assert_int_equal(calls[0].status, -EROFS);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* As in another mount namespace. */
static void remount__ends_no_mount_that_lives(void **state)
{
	struct session_options options;
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	options = options_for("/mnt/a");
	options.connect_timeout_ms = 500;
	assert_int_equal(drive_open(&again, &options), 0);
	assert_int_equal(drive_connect(&again), -EBUSY);
	drive_close(&again);
	creates_start(&d, "file");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* Its channels end as those of a killed process, without BYE; the lease is longer than mounting
 * waits. */
static void remount__takes_over_what_a_dead_daemon_left(void **state)
{
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	drive_close(&d);
	drive_begin(&again);
	drive_stop(&again, 5000);
	drive_close(&again);
}

/* ---- in another process ---------------------------------------------------------------------- */

/* Granted pages, and the state of the session: one process tells them the other. */
static struct rpc_grant_reply moved_pages;
static struct session_state moved;
static int moved_owner;

static void rest(struct drive *d)
{
	drive_until(d, remote_connected(&d->threads[0]) && remote_connected(&d->threads[1]) &&
			       remote_has_no_calls(&d->threads[0]) &&
			       remote_has_no_calls(&d->threads[1]));
	for (unsigned i = 0; i < d->nthreads; i++)
		remote_rest(&d->threads[i]);
	moved_owner = session_describe(d->session, d->threads, &moved);
	assert_true(moved_owner >= 0);
}

static void work_before(struct drive *d)
{
	struct test_rpc grant = {.call.done = test_rpc_done};

	grant.call.req.op = RPC_GRANT;
	grant.call.req.grant.want_pages = IO_PAGES;
	rpc_start(&d->threads[0], &grant.call);
	drive_until(d, grant.ndone);
	moved_pages = grant.rep.grant;
	ios_place(d, &moved_pages);
	fill(d, 1);
	expect_all(d, "before", 0, 0);
}

static void take(struct drive *d, const struct transport_address *address)
{
	struct session_options options = options_for("/mnt/a");

	options.taken = address;
	options.instance = 1; /* the session has another one, which the description tells */
	assert_int_equal(drive_open(d, &options), 0);
	assert_int_equal(session_adopt(d->session, d->threads, &moved, dup(moved_owner), d->why,
				 sizeof(d->why)),
		0);
	if (drive_connect(d) != 0)
		fail_msg("%s", d->why);
	ios_place(d, &moved_pages);
}

static void work_after(struct drive *d)
{
	read_verify(d, 1);
	fill(d, 2);
	expect_all(d, "after", 0, 0);
	read_verify(d, 2);
}

/* Runs in a process of its own. A failed assertion there ends it by exit(3). */
static void in_child(struct drive *old, void (*fn)(struct drive *d))
{
	const struct transport_address *address = session_address(old->session);
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct drive d;

		take(&d, address);
		fn(&d);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void work_and_stop(struct drive *d)
{
	work_after(d);
	drive_stop(d, 5000);
}

/* The first process lives, with all that it has mapped, and the session is not its own any more. */
static void another_process__goes_on_with_the_session(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	work_before(&d);
	rest(&d);
	in_child(&d, work_and_stop);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	drive_until(&d, session_lost(d.session));
	drive_close(&d);
}

static void do_nothing(struct drive *d)
{
}

static void another_process__that_ends__leaves_the_session(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	work_before(&d);
	rest(&d);
	in_child(&d, do_nothing);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	work_after(&d);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* ---- after a death --------------------------------------------------------------------------- */

/* A process that died has left this: facts of the session, and which calls were answered. */
static struct left {
	struct session_state facts;
	struct transport_address address;
	uint8_t done[ARRAY_SIZE(calls)];
} * left;

static void create_again(struct drive *d, unsigned i)
{
	struct io_thread *thread = &d->threads[i % d->nthreads];

	test_rpc_create(&calls[i], "once", i);
	calls[i].call.by = i + 1;
	if (!replay_answers(thread, &calls[i].call))
		rpc_start(thread, &calls[i].call);
}

/* Dies amid its calls. */
_Noreturn static void live_and_die(struct record *record, unsigned ndone)
{
	struct drive d;

	drive_begin(&d);
	session_record(d.session, d.threads, record);
	drive_until(&d, remote_connected(&d.threads[0]) && remote_connected(&d.threads[1]));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		create_again(&d, i);
	drive_until(&d, count_done(calls) >= ndone);
	session_describe_facts(d.session, &left->facts);
	left->address = *session_address(d.session);
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		left->done[i] = (uint8_t)calls[i].ndone;
	_exit(0);
}

static void begin_after(struct drive *d, const struct record *record)
{
	struct session_options options = options_for("/mnt/a");

	options.taken = &left->address;
	assert_int_equal(drive_open(d, &options), 0);
	session_adopt_slots(record, &left->facts);
	assert_int_equal(
		session_adopt(d->session, d->threads, &left->facts, -1, d->why, sizeof(d->why)), 0);
}

/* The callers of calls that were not answered ask again: no file is there already. */
static void killed_process__successor_does_nothing_twice(void **state)
{
	struct record *record;
	struct drive d;
	int status;

	server_init(state);
	assert_int_equal(record_new(&record), 0);
	left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(left != MAP_FAILED);
	if (fork() == 0)
		live_and_die(record, 100);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	begin_after(&d, record);
	session_record(d.session, d.threads, record);
	assert_int_equal(session_replay(d.session, d.threads), 0);
	assert_false(session_is_whole(d.session));
	assert_int_equal(drive_connect(&d), 0);
	drive_until(&d, session_is_whole(d.session));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		if (!left->done[i])
			create_again(&d, i);
	drive_until(&d, remote_has_no_calls(&d.threads[0]) && remote_has_no_calls(&d.threads[1]));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		if (left->done[i])
			continue;
		assert_int_equal(calls[i].ndone, 1);
		assert_int_equal(calls[i].status, 0);
		assert_true(calls[i].rep.entry.created);
	}
	drive_stop(&d, 5000);
	drive_close(&d);
	munmap(left, sizeof(*left));
	record_delete(record);
}

static void adopt__of_another_kind_of_mount__is_refused(void **state)
{
	struct session_options options;
	struct session_state other;
	struct drive d, again;

	server_init(state);
	drive_begin(&d);
	rest(&d);
	options = options_for("/mnt/a");
	options.taken = session_address(d.session);
	assert_int_equal(drive_open(&again, &options), 0);
#define refuses(change)                                                                  \
	do {                                                                             \
		other = moved;                                                           \
		change;                                                                  \
		assert_int_equal(session_adopt(again.session, again.threads, &other, -1, \
					 again.why, sizeof(again.why)),                  \
			-EINVAL);                                                        \
	} while (0)
	refuses(other.sharing = true);
	refuses(other.exclusive = true);
	refuses(other.nchannels--);
	refuses(other.nchannels = IO_THREADS_MAX + 1);
	refuses(other.id = 0);
	refuses(other.limits.max_work_bytes = 0);
	refuses(other.slots[1].nslots = SLOTS_MAX + 1);
	refuses(other.slots[1].nreserved = other.slots[1].nslots);
	drive_close(&again);
	options.converts = true;
	assert_int_equal(drive_open(&again, &options), 0);
	refuses(other = moved);
	drive_close(&again);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	drive_stop(&d, 5000);
	drive_close(&d);
}

int main(void)
{
	static enum transport_kind shm = TRANSPORT_SHM, tcp = TRANSPORT_TCP;
#define over(kind, test) cmocka_unit_test_prestate_setup_teardown(test, NULL, server_fini, &(kind))
	const struct CMUnitTest tests[] = {
		over(shm, rpcs_and_io__come_back),
		over(tcp, rpcs_and_io__come_back),
		over(shm, server_killed__everything_is_done_once),
		over(tcp, server_killed__everything_is_done_once),
		over(shm, store_gone__session_is_lost),
		over(tcp, store_gone__session_is_lost),
		over(shm, second_mount__is_told_who_has_the_export),
		over(tcp, second_mount__is_told_who_has_the_export),
		over(shm, read_only__is_changed_on_all_channels),
		over(tcp, read_only__is_changed_on_all_channels),
		over(tcp, read_only__is_changed_when_the_server_is_back),
		over(tcp, unknown_export__is_refused_alone),
		/* Not over shm: there a session whose process lives, as ours does, does not end. */
		over(tcp, second_mount__gets_in_after_the_first_has_ended),
		over(tcp, remount__ends_no_mount_that_lives),
		over(tcp, remount__takes_over_what_a_dead_daemon_left),
		over(shm, another_process__goes_on_with_the_session),
		over(tcp, another_process__goes_on_with_the_session),
		over(shm, killed_process__successor_does_nothing_twice),
		over(tcp, killed_process__successor_does_nothing_twice),
		over(shm, another_process__that_ends__leaves_the_session),
		over(tcp, another_process__that_ends__leaves_the_session),
		over(tcp, adopt__of_another_kind_of_mount__is_refused),
	};

	log_init("test_daemon_session", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
