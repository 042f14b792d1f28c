/* The session's client against a scripted server: slots, replay, repetition, refusal. */
#include "tests/unit/daemon/remote_bench.h"

#include "common/base/log.h"

/* ---- connecting ------------------------------------------------------------------------------ */

static void connect__learns_what_the_session_has(void **state)
{
	const struct session_info *info;
	struct bench b;

	bench_open(&b, 1);
	info = session_info(b.d.session);
	assert_int_equal(session_nregions(b.d.session), SCRIPT_REGIONS);
	assert_int_equal(info->root.ino, ROOT_INO);
	assert_true(io_limits(&b.d.threads[0])->max_work_bytes >= PAGE_BYTES);
	assert_in_range(session_ttl_ms(b.d.session), SCRIPT_LEASE_MS - 2000, SCRIPT_LEASE_MS);
	assert_in_range(llabs(session_time(b.d.session) - realtime_ns()), 0, 100000000);
	assert_false(session_lost(b.d.session));
	bench_close(&b);
}

static void squashes(struct bench *b, enum squash_kind kind, unsigned id)
{
	struct squash squash = session_squash(b->d.session);

	assert_int_equal(squash.kind, kind);
	if (kind == SQUASH_NONE)
		return;
	assert_int_equal(squash.anonuid, id);
	assert_int_equal(squash.anongid, id);
}

static void becomes(struct bench *b, enum squash_kind kind, unsigned id)
{
	unsigned n = atomic_load(&b->script.nattached) + 1;

	atomic_store(&b->script.squash_id, id);
	atomic_store(&b->script.squash_kind, kind);
	atomic_store(&b->script.cut_once, 1);
	drive_until(
		&b->d, atomic_load(&b->script.nattached) >= n && remote_connected(b->d.threads));
	squashes(b, kind, id);
}

/* A reload of the server's configuration ends the channels of a client that is squashed in another
 * way. */
static void connect__learns_how_users_are_squashed_each_time(void **state)
{
	struct bench b;

	bench_open(&b, 1);
	squashes(&b, SQUASH_NONE, 0);
	becomes(&b, SQUASH_ROOT, 65534);
	becomes(&b, SQUASH_ROOT, 12);
	becomes(&b, SQUASH_ALL, UINT32_MAX - 1);
	becomes(&b, SQUASH_NONE, 0);
	bench_close(&b);
}

static void connect__nobody_listens(void **state)
{
	struct session_options options;
	struct script script;
	char text[100];

	script_init(&script, 0);
	script_start(&script);
	options = options_for(script_port(&script), 1);
	options.connect_timeout_ms = 100;
	script_fini(&script);
	snprintf(text, sizeof(text), "no server at tcp 127.0.0.1:%u: Connection refused",
		options.port);
	connect_fails(&options, -ECONNREFUSED, text);
}

static void connect__refused_by_the_server(void **state)
{
	struct session_options options;
	struct script script;

	script_init(&script, 0);
	atomic_store(&script.refuse, -ENOENT);
	script_start(&script);
	options = options_for(script_port(&script), 1);
	connect_fails(&options, -ENOENT, ": not today");
	script_fini(&script);
}

/* Without a pause there would be thousands. */
static void connect__refused_at_once_is_not_asked_again_at_once(void **state)
{
	struct session_options options;
	struct script script;

	script_init(&script, 0);
	atomic_store(&script.refuse, -EBUSY);
	script_start(&script);
	options = options_for(script_port(&script), 1);
	options.connect_timeout_ms = 1500;
	connect_fails(&options, -EBUSY, ": not today");
	assert_in_range(atomic_load(&script.nrefused), 2, 5);
	script_fini(&script);
}

static int listen_dumb(unsigned *port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static void connect__server_is_mute(void **state)
{
	struct session_options options;
	unsigned port;
	int fd = listen_dumb(&port);

	options = options_for(port, 1);
	connect_fails(&options, -ETIMEDOUT, "no answer from tcp 127.0.0.1:");
	close(fd);
}

static void *talk_http(void *arg)
{
	static const char text[] =
		"HTTP/1.0 400 Bad Request: this is no memory server at all\r\n\r\n";
	int fd = accept(*(int *)arg, NULL, NULL);

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	return NULL;
}

static void connect__another_kind_of_server(void **state)
{
	struct session_options options;
	pthread_t thread;
	unsigned port;
	int fd = listen_dumb(&port);

	options = options_for(port, 1);
	assert_int_equal(pthread_create(&thread, NULL, talk_http, &fd), 0);
	connect_fails(&options, -EPROTO, "no rmemfs server: it does not speak our protocol");
	pthread_join(thread, NULL);
	close(fd);
}

static void open__shm_is_on_this_machine(void **state)
{
	struct session_options options = options_for(0, 1);
	struct drive d;

	options.transport = TRANSPORT_SHM;
	snprintf(options.source.host, sizeof(options.source.host), "192.0.2.1");
	assert_int_equal(drive_open(&d, &options), -EINVAL);
	assert_non_null(strstr(d.why, "192.0.2.1 is not this machine"));
}

static void open__auto_with_a_port_means_tcp_on_this_machine(void **state)
{
	struct session_options options = options_for(7999, 1);
	struct drive d;

	options.auto_transport = true;
	assert_int_equal(drive_open(&d, &options), 0);
	assert_string_equal(session_server(d.session), "tcp 127.0.0.1:7999");
	drive_close(&d);
}

static void open__auto_with_a_path_means_shm(void **state)
{
	struct session_options options = options_for(0, 1);
	struct drive d;

	options.auto_transport = true;
	options.connect_timeout_ms = 100;
	snprintf(options.source.host, sizeof(options.source.host), "/nowhere/server.sock");
	assert_int_equal(drive_open(&d, &options), 0);
	assert_string_equal(session_server(d.session), "shm /nowhere/server.sock");
	assert_int_equal(drive_connect(&d), -ECONNREFUSED);
	assert_non_null(
		strstr(d.why, "no server at shm /nowhere/server.sock: No such file or directory"));
	drive_close(&d);
}

/* Nothing goes out before the mount's demand can be met. */
static void open__what_the_demand_excludes(void **state)
{
	static const struct {
		enum transport_kind kind;
		const char *key, *why;
	} cases[] = {
		{TRANSPORT_VERBS, "/k",
			"protection=all: verbs does not encrypt the bytes of files: mount with "
			"transport=tcp, or transport=auto"},
		{TRANSPORT_TCP, NULL,
			"protection=all: without a key nothing is encrypted over tcp: mount with "
			"key=FILE"},
	};
	struct session_options options = options_for(7999, 1);
	struct drive d;

	options.protection = PROTECTION_ALL;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		options.transport = cases[i].kind;
		options.key_file = cases[i].key;
		assert_int_equal(drive_open(&d, &options), -EINVAL);
		assert_string_equal(d.why, cases[i].why);
	}
	options.key_file = NULL;
	options.auto_transport = true;
	assert_int_equal(drive_open(&d, &options), -EINVAL);
	assert_string_equal(d.why, cases[1].why);
	/* Over shm no byte leaves the machine. */
	options.port = 0;
	snprintf(options.source.host, sizeof(options.source.host), "/nowhere/server.sock");
	assert_int_equal(drive_open(&d, &options), 0);
	drive_close(&d);
}

/* ---- RPCs ------------------------------------------------------------------------------------ */

static void rpc__many_at_once(void **state)
{
	struct bench b;

	bench_open(&b, 2);
	rpcs_start(&b, ARRAY_SIZE(calls));
	drive_until(&b.d, count_done(calls) == ARRAY_SIZE(calls));
	rpcs_verify(&b, ARRAY_SIZE(calls));
	bench_close(&b);
}

static void rpc__executed_once_though_replies_are_lost(void **state)
{
	struct bench b;

	bench_open(&b, 2);
	atomic_store(&b.script.drop_every, 61);
	rpcs_start(&b, ARRAY_SIZE(calls));
	drive_until(&b.d, count_done(calls) == ARRAY_SIZE(calls));
	rpcs_verify(&b, ARRAY_SIZE(calls));
	assert_true(atomic_load(&b.script.nattached) > 4);
	assert_true(atomic_load(&b.script.nreplayed) > 0);
	bench_close(&b);
}

static void rpc__commit_passes_those_that_wait(void **state)
{
	struct test_rpc commit = {.call.done = test_rpc_done};
	struct bench b;

	bench_open(&b, 1);
	atomic_store(&b.script.hold, true);
	rpcs_start(&b, 40);
	commit.call.req.op = RPC_COMMIT;
	commit.call.req.commit.ino = 5;
	rpc_start(&b.d.threads[0], &commit.call);
	drive_until(&b.d, commit.ndone == 1);
	assert_int_equal(commit.rep.attr.attr.ino, 5);
	assert_int_equal(count_done(calls), 0);
	bench_close(&b);
}

static unsigned count_sent(const struct test_rpc *rpcs, unsigned n)
{
	unsigned nsent = 0;

	for (unsigned i = 0; i < n; i++)
		nsent += rpcs[i].call.sent;
	return nsent;
}

/* Ops that are sent under a lease, except CREATE. */
static void start_some(struct bench *b, struct test_rpc *rpcs, unsigned n, enum rpc_op op)
{
	for (unsigned i = 0; i < n; i++) {
		struct rpc_request *req = &rpcs[i].call.req;

		test_rpc_create(&rpcs[i], "file", i);
		rpcs[i].call.nested = op != RPC_CREATE;
		if (op == RPC_FALLOCATE)
			*req = (struct rpc_request){.op = op, .fallocate = {.ino = 5, .len = 1}};
		else if (op == RPC_LEASE)
			*req = (struct rpc_request){.op = op, .lease = {5, LEASE_SHARED, 0}};
		else if (op == RPC_EXTENTS)
			*req = (struct rpc_request){.op = op, .extents = {.ino = 5}};
		rpc_start(&b->d.threads[0], &rpcs[i].call);
	}
}

/* Calls wait at the server in any number and order. */
static void rpc__that_waits_for_nobody_gets_through(void **state)
{
	enum { MANY = SCRIPT_SLOTS, KINDS = 3 };
	static const enum rpc_op kinds[KINDS] = {RPC_CREATE, RPC_FALLOCATE, RPC_LEASE};
	static struct test_rpc waiting[KINDS][MANY], extents;

	for (unsigned first = 0; first < KINDS; first++) {
		struct bench b;

		bench_open_shared(&b);
		atomic_store(&b.script.hold, true);
		for (unsigned i = first; i < first + KINDS; i++)
			start_some(&b, waiting[i % KINDS], MANY, kinds[i % KINDS]);
		start_some(&b, &extents, 1, RPC_EXTENTS);
		assert_true(extents.call.sent);
		/* Nor do these wait for slots that only other calls would free. */
		assert_true(count_sent(waiting[1], MANY) > 0);
		assert_true(count_sent(waiting[2], MANY) > 0);
		bench_close(&b);
	}
}

static void rpc_cancel__only_before_it_is_sent(void **state)
{
	struct bench b;
	unsigned n = SCRIPT_SLOTS - SCRIPT_RESERVED;

	bench_open(&b, 1);
	atomic_store(&b.script.hold, true);
	rpcs_start(&b, n + 1);
	assert_false(rpc_cancel(&b.d.threads[0], &calls[n - 1].call));
	assert_true(rpc_cancel(&b.d.threads[0], &calls[n].call));
	atomic_store(&b.script.hold, false);
	atomic_store(&b.script.cut_once, 1);
	drive_until(&b.d, count_done(calls) == n);
	rpcs_verify(&b, n);
	assert_int_equal(calls[n].ndone, 0);
	bench_close(&b);
}

static void rpc__too_long_for_a_message_is_not_sent(void **state)
{
	static const uint8_t tail[RPC_MSG_BYTES];
	struct test_rpc bad = {.call.done = test_rpc_done}, good;
	struct bench b;

	bench_open(&b, 1);
	bad.call.req.op = RPC_COMMIT;
	bad.call.req.commit.tail = (struct rpc_tail){.data = tail, .len = sizeof(tail)};
	test_rpc_create(&good, "good", 0);
	rpc_start(&b.d.threads[0], &bad.call);
	assert_int_equal(bad.ndone, 0);
	rpc_start(&b.d.threads[0], &good.call);
	drive_until(&b.d, bad.ndone && good.ndone);
	assert_int_equal(bad.status, -EMSGSIZE);
	assert_int_equal(good.status, 0);
	assert_int_equal(atomic_load(&b.script.nexecuted), 1);
	bench_close(&b);
}

static void rpc__malformed_reply_costs_the_channel_only(void **state)
{
	struct bench b;

	bench_open(&b, 1);
	atomic_store(&b.script.garbage_once, true);
	drive_until(&b.d, atomic_load(&b.script.nattached) == 2 && remote_connected(b.d.threads));
	rpcs_start(&b, 20);
	drive_until(&b.d, count_done(calls) == 20);
	bench_close(&b);
}

/* ---- I/O ------------------------------------------------------------------------------------- */

static void fill(uint8_t *memory, unsigned seed)
{
	for (size_t i = 0; i < DRIVE_MEMORY / sizeof(uint32_t); i++)
		((uint32_t *)(void *)memory)[i] = (uint32_t)i * 2654435761U + seed;
}

static struct ios ios;

static void write_and_read_back(struct bench *b, unsigned cuts)
{
	size_t len = IO_PAGES * PAGE_BYTES;
	uint8_t *expected = malloc(len);

	fill(b->d.memory, cuts + 1);
	memcpy(expected, b->d.memory, len);
	for (unsigned i = 0; i <= cuts; i++) {
		ios_start(&b->d, &ios, IO_WRITE);
		atomic_store(&b->script.cut_once, cuts != 0);
		ios_finish(&b->d, &ios);
	}
	for (unsigned i = 0; i <= cuts; i++) {
		memset(b->d.memory, 0, len);
		ios_start(&b->d, &ios, IO_READ);
		atomic_store(&b->script.cut_once, cuts != 0);
		ios_finish(&b->d, &ios);
		assert_memory_equal(b->d.memory, expected, len);
	}
	free(expected);
}

static void io__comes_back_equal(void **state)
{
	struct bench b;

	bench_open(&b, 2);
	write_and_read_back(&b, 0);
	bench_close(&b);
}

static void io__comes_back_equal_though_channels_are_cut(void **state)
{
	struct bench b;

	bench_open(&b, 2);
	write_and_read_back(&b, 5);
	assert_true(atomic_load(&b.script.nattached) > 4);
	bench_close(&b);
}

/* READs that fit into one batch go through the pipe. */
static void by_the_pipe(unsigned cuts)
{
	struct bench b;

	ios.piped = true;
	ios.npiped = 0;
	bench_open(&b, 2);
	write_and_read_back(&b, cuts);
	assert_in_range(ios.npiped, 1, (cuts + 1) * NIOS - 1);
	bench_close(&b);
	ios.piped = false;
}

static void io__comes_back_equal_by_the_pipe(void **state)
{
	by_the_pipe(0);
}

static void io__comes_back_equal_by_the_pipe_though_channels_are_cut(void **state)
{
	by_the_pipe(5);
}

static void io__beyond_a_region_is_an_error_of_the_call(void **state)
{
	struct test_io io = {.call = {.dir = IO_READ, .nworks = 1, .done = test_io_done}};
	struct sge sge;
	struct work work;
	struct bench b;

	bench_open(&b, 1);
	sge = (struct sge){.addr = b.d.memory, .len = PAGE_BYTES, .buffer = b.d.buffer};
	work = (struct work){.sge = &sge, .nsge = 1, .offset = SCRIPT_REGION_BYTES};
	io.call.works = &work;
	io_start(&b.d.threads[0], &io.call);
	assert_int_equal(io.ndone, 0);
	drive_until(&b.d, io.ndone);
	assert_int_equal(io.status, -EIO);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

/* ---- an export that grows -------------------------------------------------------------------- */

static void open_to_grow(struct bench *b, unsigned nthreads)
{
	struct session_options options;

	script_init(&b->script, 0);
	atomic_store(&b->script.nregions, 1);
	atomic_store(&b->script.nhidden, SCRIPT_REGIONS - 1);
	script_start(&b->script);
	options = options_for(script_port(&b->script), nthreads);
	bench_connect(b, &options);
	assert_int_equal(session_nregions(b->d.session), 1);
}

/* No channel is lost for it, and each fetches the keys that it lacks. */
static void growth__is_learnt_from_the_first_transfer_there(void **state)
{
	struct bench b;

	open_to_grow(&b, 2);
	atomic_store(&b.script.nhidden, 0);
	write_and_read_back(&b, 0);
	assert_int_equal(session_nregions(b.d.session), SCRIPT_REGIONS);
	assert_int_equal(atomic_load(&b.script.nattached), 2);
	bench_close(&b);
}

static void growth__is_learnt_though_channels_are_cut(void **state)
{
	struct bench b;

	open_to_grow(&b, 2);
	atomic_store(&b.script.nhidden, 0);
	write_and_read_back(&b, 3);
	bench_close(&b);
}

/* Reads a page of a region. Returns the status. */
static int read_region(struct bench *b, uint32_t region)
{
	struct sge sge = {.addr = b->d.memory, .len = PAGE_BYTES, .buffer = b->d.buffer};
	struct work work = {.sge = &sge, .nsge = 1, .region = region};
	struct test_io io = {
		.call = {.dir = IO_READ, .works = &work, .nworks = 1, .done = test_io_done}};

	io_start(&b->d.threads[0], &io.call);
	drive_until(&b->d, io.ndone);
	return io.status;
}

/* A damaged record may name any region. Such a call must not hold up the others, and the answer
 * counts for no later question. */
static void growth__region_that_is_not_there_is_an_error_of_the_call(void **state)
{
	struct bench b;

	open_to_grow(&b, 1);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS), -EIO);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS - 1), -EIO);
	assert_int_equal(read_region(&b, 0), 0);
	atomic_store(&b.script.nhidden, 1);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS - 1), -EIO);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS - 2), 0);
	atomic_store(&b.script.nhidden, 0);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS - 1), 0);
	assert_int_equal(read_region(&b, SCRIPT_REGIONS), -EIO);
	assert_int_equal(atomic_load(&b.script.nattached), 1);
	bench_close(&b);
}

/* ---- refused --------------------------------------------------------------------------------- */

/* The next connections go to a server that refuses WRITEs. */
static void open_refusing(struct bench *b, unsigned nconnections, bool restart)
{
	bench_open(b, 1);
	atomic_store(&b->script.restart, restart);
	atomic_store(&b->script.refuse_writes, nconnections);
	atomic_store(&b->script.cut_once, 1);
	drive_until(
		&b->d, atomic_load(&b->script.nattached) == 2 && remote_connected(b->d.threads));
}

/* Many at once, each of several batches, which all end with the channel. */
static void io__refused_by_servers_that_die_is_repeated(void **state)
{
	struct bench b;

	open_refusing(&b, 4, true);
	ios_start(&b.d, &ios, IO_WRITE);
	ios_finish(&b.d, &ios);
	assert_int_equal(atomic_load(&b.script.nattached), 2 + 4);
	bench_close(&b);
}

/* I/O posted behind it ends with it, and is repeated. */
static void io__refused_twice_by_one_server_is_an_error_of_that_call_alone(void **state)
{
	struct test_io io[8];
	struct work work[ARRAY_SIZE(io)];
	struct sge sge;
	struct bench b;

	open_refusing(&b, 1000, false);
	sge = (struct sge){.addr = b.d.memory, .len = PAGE_BYTES, .buffer = b.d.buffer};
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++) {
		work[i] = (struct work){.sge = &sge, .nsge = 1, .region = i != 0};
		io[i] = (struct test_io){.call = {.dir = IO_WRITE,
						 .works = &work[i],
						 .nworks = 1,
						 .done = test_io_done}};
	}
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		io_start(&b.d.threads[0], &io[i].call);
	drive_until(&b.d, count_done(io) == ARRAY_SIZE(io));
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		assert_int_equal(io[i].status, i == 0 ? -EIO : 0);
	assert_int_equal(atomic_load(&b.script.nattached), 2 + 2);
	bench_close(&b);
}

static void io_cancel__only_before_it_is_posted(void **state)
{
	struct bench b;
	unsigned cancelled = 0;

	bench_open(&b, 1);
	ios_start(&b.d, &ios, IO_WRITE);
	assert_false(io_cancel(&b.d.threads[0], &ios.io[0].call));
	for (unsigned i = 1; i < NIOS; i++)
		cancelled += io_cancel(&b.d.threads[0], &ios.io[i].call);
	assert_true(cancelled > 0);
	drive_until(&b.d, count_done(ios.io) == NIOS - cancelled);
	bench_close(&b);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
	struct io_thread *thread;
	struct test_rpc calls[200];
	unsigned ndone;
};

static void *work_thread(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ARRAY_SIZE(w->calls); i++) {
		test_rpc_create(&w->calls[i], w->thread->index ? "b" : "a", i);
		rpc_start(w->thread, &w->calls[i].call);
	}
	while (w->ndone < ARRAY_SIZE(w->calls)) {
		drive_turn(w->thread, 5);
		w->ndone = count_done(w->calls);
	}
	remote_stop(w->thread, 5000);
	while (!remote_stopped(w->thread))
		drive_turn(w->thread, 5);
	return NULL;
}

static void threads__each_with_its_channel(void **state)
{
	static struct worker workers[DRIVE_THREADS];
	pthread_t ids[DRIVE_THREADS];
	struct bench b;

	bench_open(&b, DRIVE_THREADS);
	atomic_store(&b.script.drop_every, 101);
	for (unsigned i = 0; i < DRIVE_THREADS; i++) {
		workers[i].thread = &b.d.threads[i];
		assert_int_equal(pthread_create(&ids[i], NULL, work_thread, &workers[i]), 0);
	}
	for (unsigned i = 0; i < DRIVE_THREADS; i++)
		pthread_join(ids[i], NULL);
	bench_close(&b);
	assert_int_equal(atomic_load(&b.script.nbyes), 1);
	assert_int_equal(atomic_load(&b.script.nexecuted), 400);
	assert_int_equal(b.script.bye.rpcs, 400);
	assert_int_equal(b.script.bye.rpc_data_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect__learns_what_the_session_has),
		cmocka_unit_test(connect__learns_how_users_are_squashed_each_time),
		cmocka_unit_test(connect__nobody_listens),
		cmocka_unit_test(connect__refused_by_the_server),
		cmocka_unit_test(connect__refused_at_once_is_not_asked_again_at_once),
		cmocka_unit_test(connect__server_is_mute),
		cmocka_unit_test(connect__another_kind_of_server),
		cmocka_unit_test(open__shm_is_on_this_machine),
		cmocka_unit_test(open__auto_with_a_port_means_tcp_on_this_machine),
		cmocka_unit_test(open__auto_with_a_path_means_shm),
		cmocka_unit_test(open__what_the_demand_excludes),
		cmocka_unit_test(rpc__many_at_once),
		cmocka_unit_test(rpc__executed_once_though_replies_are_lost),
		cmocka_unit_test(rpc__commit_passes_those_that_wait),
		cmocka_unit_test(rpc__that_waits_for_nobody_gets_through),
		cmocka_unit_test(rpc_cancel__only_before_it_is_sent),
		cmocka_unit_test(rpc__too_long_for_a_message_is_not_sent),
		cmocka_unit_test(rpc__malformed_reply_costs_the_channel_only),
		cmocka_unit_test(io__comes_back_equal),
		cmocka_unit_test(io__comes_back_equal_though_channels_are_cut),
		cmocka_unit_test(io__comes_back_equal_by_the_pipe),
		cmocka_unit_test(io__comes_back_equal_by_the_pipe_though_channels_are_cut),
		cmocka_unit_test(io__beyond_a_region_is_an_error_of_the_call),
		cmocka_unit_test(growth__is_learnt_from_the_first_transfer_there),
		cmocka_unit_test(growth__is_learnt_though_channels_are_cut),
		cmocka_unit_test(growth__region_that_is_not_there_is_an_error_of_the_call),
		cmocka_unit_test(io__refused_by_servers_that_die_is_repeated),
		cmocka_unit_test(io__refused_twice_by_one_server_is_an_error_of_that_call_alone),
		cmocka_unit_test(io_cancel__only_before_it_is_posted),
		cmocka_unit_test(threads__each_with_its_channel),
	};

	log_init("test_daemon_remote", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
