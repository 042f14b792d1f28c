/* A session that changes its transport while it runs, against the real server. This machine may
 * have no RDMA device, so the second path is another tcp transport: the session does not look at
 * what a path is when it moves. tests/e2e/transport.bats has the real thing. */
#include "tests/unit/daemon/remote_server.h"

#include "common/base/log.h"
#include "common/transport/kinds.h"
#include "daemon/remote/remote_private.h"
#include "daemon/remote/remote_view.h"
#include "daemon/remote/scout.h"

static int begin_auto(struct drive *d, const struct session_options *options)
{
	int err = drive_open(d, options);

	return err ? err : drive_connect(d);
}

static struct session_options auto_options(void)
{
	struct session_options options = options_for("/mnt/a");

	options.auto_transport = true;
	return options;
}

static void say_begun(struct drive *d, const struct session_options *options)
{
	if (begin_auto(d, options) != 0)
		fail_msg("%s", d->why);
}

/* Opens the place of verbs, as the scout does. */
static void open_second(struct session *s)
{
	struct session_path *second = &s->paths[TRANSPORT_VERBS];
	const struct session_path *first = &s->paths[TRANSPORT_TCP];
	char why[128];

	assert_null(second->transport);
	*second = *first;
	second->nusers = 0;
	second->transport = NULL;
	assert_int_equal(transport_open(&first->address, &s->config, 1000, &second->transport), 0);
	assert_int_equal(paths_register_verbs(s, why, sizeof(why)), 0);
}

static unsigned users(struct session *s, enum transport_kind kind)
{
	return s->paths[kind].nusers;
}

static bool all_on(struct drive *d, enum transport_kind kind)
{
	for (unsigned i = 0; i < d->nthreads; i++)
		if (atomic_load(&d->session->threads[i].ready) != &d->session->paths[kind])
			return false;
	return true;
}

static uint64_t losses(struct drive *d)
{
	struct session_view view;

	session_look(d->session, &view);
	return view.nlosses;
}

/* Calls of all kinds are anywhere on their way when the path changes. */
static void move__amid_calls__everything_is_done_once(void **state)
{
	struct session_options options;
	struct drive d;

	server_init(state);
	options = auto_options();
	say_begun(&d, &options);
	assert_true(d.session->moves);
	grant_pages(&d);
	for (uint32_t round = 0; round < 6; round++) {
		bool to_second = round % 2 == 0;
		char prefix[16];

		if (to_second)
			open_second(d.session);
		snprintf(prefix, sizeof(prefix), "r%u.", round);
		fill(&d, round);
		creates_start(&d, prefix);
		ios_start(&d, IO_WRITE);
		drive_until(&d, count_done(calls) >= 20);
		assert_true(count_done(calls) < ARRAY_SIZE(calls));
		paths_move(d.session, to_second ? TRANSPORT_VERBS : TRANSPORT_TCP, "the test");
		drive_until(
			&d, count_done(calls) == ARRAY_SIZE(calls) && count_done(ios.io) == NIOS);
		drive_until(&d, all_on(&d, to_second ? TRANSPORT_VERBS : TRANSPORT_TCP));
		creates_verify(&d);
		ios_verify();
		read_verify(&d, round);
		assert_int_equal(users(d.session, TRANSPORT_VERBS), to_second ? d.nthreads : 0);
		if (!to_second)
			paths_close_verbs(d.session);
		assert_int_equal(!!d.session->paths[TRANSPORT_VERBS].transport, to_second);
	}
	assert_int_equal(losses(&d), 0);
	drive_stop(&d, 5000);
	drive_close(&d);
}

/* A path that does not work is left, and nothing of what waited is lost. */
static void move__from_a_path_that_leads_nowhere(void **state)
{
	struct session_options options;
	struct sockaddr_in *in;
	struct drive d;

	server_init(state);
	options = auto_options();
	say_begun(&d, &options);
	drive_until(&d, all_on(&d, TRANSPORT_TCP));
	open_second(d.session);
	in = (struct sockaddr_in *)&d.session->paths[TRANSPORT_VERBS].address.addr;
	in->sin_port = htons((uint16_t)free_port());
	paths_move(d.session, TRANSPORT_VERBS, "");
	drive_until(&d, users(d.session, TRANSPORT_VERBS) == d.nthreads);
	creates_start(&d, "file");
	for (unsigned i = 0; i < 20; i++)
		drive_turn(&d.threads[i % d.nthreads], 5);
	assert_int_equal(count_done(calls), 0);
	paths_close_verbs(d.session);
	assert_non_null(d.session->paths[TRANSPORT_VERBS].transport);
	paths_move(d.session, TRANSPORT_TCP, "nothing is there");
	drive_until(&d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(&d);
	assert_true(all_on(&d, TRANSPORT_TCP));
	paths_close_verbs(d.session);
	assert_null(d.session->paths[TRANSPORT_VERBS].transport);
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void lead_nowhere(struct session *s)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&s->paths[TRANSPORT_VERBS].address.addr;

	in->sin_port = htons((uint16_t)free_port());
}

/* A session on the second path, and its scout. */
static void begin_with_scout(struct drive *d, bool leads_nowhere)
{
	struct session_options options = auto_options();

	say_begun(d, &options);
	drive_until(d, all_on(d, TRANSPORT_TCP));
	open_second(d->session);
	if (leads_nowhere)
		lead_nowhere(d->session);
	paths_move(d->session, TRANSPORT_VERBS, "");
	drive_until(d, leads_nowhere ? users(d->session, TRANSPORT_VERBS) == d->nthreads
				     : all_on(d, TRANSPORT_VERBS));
	scout_start(d->session);
}

static void end_with_scout(struct drive *d)
{
	drive_until(d, all_on(d, TRANSPORT_TCP));
	creates_start(d, "file");
	drive_until(d, count_done(calls) == ARRAY_SIZE(calls));
	creates_verify(d);
	drive_stop(d, 5000);
	scout_stop(d->session);
	drive_close(d);
}

static bool is_on(struct drive *d, enum transport_kind kind)
{
	return session_address(d->session) == &d->session->paths[kind].address;
}

/* Each refused ATTACH of each thread calls the scout. */
static void scout__looks__though_it_is_called_all_the_time(void **state)
{
	struct drive d;

	server_init(state);
	begin_with_scout(&d, true);
	drive_until(&d, (scout_look_now(d.session), is_on(&d, TRANSPORT_TCP)));
	assert_int_equal(d.session->scout.penalty_ms, 0);
	end_with_scout(&d);
}

/* Ends all connections to the server. */
static void cut_all(void)
{
	for (int fd = 0; fd < 256; fd++) {
		struct sockaddr_in in = {0};
		socklen_t len = sizeof(in);

		if (getpeername(fd, (struct sockaddr *)&in, &len) == 0 &&
			in.sin_family == AF_INET && ntohs(in.sin_port) == sv.port)
			shutdown(fd, SHUT_RDWR);
	}
}

/* A process that takes the session over waits as long, and longer the next time. */
static void assert_taken_over(struct session *s)
{
	struct session next = {.moves = true};
	struct session_verbs verbs;

	scout_describe(s, &verbs);
	assert_false(verbs.refused);
	assert_non_null(strstr(verbs.why, "connections over verbs do not last"));
	scout_take(&next, &verbs);
	assert_int_equal(next.scout.penalty_ms, s->scout.penalty_ms);
	assert_true(next.scout.again_ms > now_ms());
	assert_true(next.scout.again_ms - s->scout.again_ms < 5000);
	assert_string_equal(next.no_verbs, s->no_verbs);
}

/* The path carries what it takes to make a channel, and no more. */
static void scout__leaves_a_path_whose_channels_do_not_last(void **state)
{
	int64_t cut_ms = 0;
	struct drive d;

	server_init(state);
	begin_with_scout(&d, false);
	drive_until(&d, ({
		if (all_on(&d, TRANSPORT_VERBS) && now_ms() - cut_ms > 1500) {
			cut_ms = now_ms();
			cut_all();
		}
		is_on(&d, TRANSPORT_TCP);
	}));
	assert_true(losses(&d) >= 3);
	assert_true(d.session->scout.again_ms > now_ms());
	drive_until(&d, ({
		struct session_verbs verbs;

		scout_describe(d.session, &verbs);
		verbs.why[0];
	}));
	assert_taken_over(d.session);
	end_with_scout(&d);
}

/* The values of another process are bounded. A session that does not move ignores them. */
static void scout_take__of_any_values(void **state)
{
	struct session_verbs verbs = {true, UINT32_MAX, UINT32_MAX, "protection"};
	struct session next = {.moves = true}, still = {0};

	pthread_mutex_init(&next.lock, NULL);
	scout_take(&next, &verbs);
	assert_true(next.verbs_refused);
	assert_string_equal(next.no_verbs, "protection");
	assert_int_equal(next.scout.penalty_ms, 3600000);
	assert_true(next.scout.again_ms <= now_ms() + 3600000);
	scout_describe(&next, &verbs);
	assert_true(verbs.refused);
	assert_string_equal(verbs.why, "protection");
	pthread_mutex_destroy(&next.lock);
	scout_take(&still, &verbs);
	assert_false(still.verbs_refused);
	assert_int_equal(still.scout.again_ms, 0);
}

/* A loss or two are no reason. */
static void scout__keeps_a_path_after_a_loss(void **state)
{
	struct drive d;
	int64_t until_ms;

	server_init(state);
	begin_with_scout(&d, false);
	cut_all();
	drive_until(&d, losses(&d) == 1);
	until_ms = now_ms() + 2500;
	drive_until(&d, now_ms() >= until_ms);
	assert_true(is_on(&d, TRANSPORT_VERBS));
	paths_move(d.session, TRANSPORT_TCP, "the test");
	end_with_scout(&d);
}

/* The scout has seen that all is well, and looks each minute. */
static void let_scout_rest(struct drive *d)
{
	int64_t until_ms = now_ms() + 1500;

	drive_until(d, now_ms() >= until_ms);
	assert_true(all_on(d, TRANSPORT_VERBS));
}

/* No channel was lost: another process had the session. */
static void scout__looks_after_a_rest(void **state)
{
	struct drive d;

	server_init(state);
	begin_with_scout(&d, false);
	let_scout_rest(&d);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_rest(&d.threads[i]);
	lead_nowhere(d.session);
	for (unsigned i = 0; i < d.nthreads; i++)
		remote_resume(&d.threads[i]);
	drive_until(&d, is_on(&d, TRANSPORT_TCP));
	end_with_scout(&d);
}

/* Nor was it here: the session gave them up itself. */
static void scout__looks_when_channels_get_other_keys(void **state)
{
	struct drive d;

	server_init(state);
	begin_with_scout(&d, false);
	let_scout_rest(&d);
	lead_nowhere(d.session);
	session_set_read_only(d.session, true);
	drive_until(&d, is_on(&d, TRANSPORT_TCP));
	session_set_read_only(d.session, false);
	end_with_scout(&d);
}

/* Works are planned with the session's limits. */
static void limits__of_a_channel_that_takes_less(void **state)
{
	struct session_options options;
	struct channel_limits limits;
	struct drive d;

	server_init(state);
	options = auto_options();
	say_begun(&d, &options);
	limits = (struct channel_limits){.max_sge_read = d.session->limits.max_sge_read,
		.max_sge_write = d.session->limits.max_sge_write,
		.max_work_bytes = d.session->limits.max_work_bytes};
	assert_true(paths_limits_suffice(d.session, &limits));
	limits.max_sge_read--;
	assert_false(paths_limits_suffice(d.session, &limits));
	limits.max_sge_read++;
	limits.max_work_bytes--;
	assert_false(paths_limits_suffice(d.session, &limits));
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void told(struct session *s, const char *reason)
{
	struct session_view view;

	session_look(s, &view);
	assert_string_equal(view.no_verbs, reason);
}

/* The reason why a session is on tcp is told from the beginning. */
static void open__says_why_not_verbs(void **state)
{
	struct session_options options;
	char why[256];
	struct drive d;

	server_init(state);
	options = auto_options();
	say_begun(&d, &options);
	told(d.session, "no RDMA device serves a loopback address");
	assert_int_equal(paths_try_verbs(d.session, why, sizeof(why)), -EOPNOTSUPP);
	assert_string_equal(why, "no RDMA device serves a loopback address");
	drive_stop(&d, 5000);
	drive_close(&d);
}

static void open__of_one_transport__does_not_move(void **state)
{
	struct drive d;

	server_init(state);
	drive_begin(&d);
	assert_false(d.session->moves);
	told(d.session, "");
	drive_stop(&d, 5000);
	drive_close(&d);
}

int main(void)
{
	static enum transport_kind shm = TRANSPORT_SHM, tcp = TRANSPORT_TCP;
#define over(kind, test) cmocka_unit_test_prestate_setup_teardown(test, NULL, server_fini, &(kind))
	const struct CMUnitTest tests[] = {
		over(tcp, move__amid_calls__everything_is_done_once),
		over(tcp, move__from_a_path_that_leads_nowhere),
		over(tcp, scout__looks__though_it_is_called_all_the_time),
		over(tcp, scout__leaves_a_path_whose_channels_do_not_last),
		cmocka_unit_test(scout_take__of_any_values),
		over(tcp, scout__keeps_a_path_after_a_loss),
		over(tcp, scout__looks_after_a_rest),
		over(tcp, scout__looks_when_channels_get_other_keys),
		over(tcp, limits__of_a_channel_that_takes_less),
		over(tcp, open__says_why_not_verbs),
		over(tcp, open__of_one_transport__does_not_move),
		over(shm, open__of_one_transport__does_not_move),
	};

	log_init("test_daemon_paths", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
