/* The session's client against a scripted server: slots, replay, repetition, silence, refusal. */
#include "tests/unit/remote_script.h"

#include "common/log.h"
#include "daemon/fs_internal.h"
#include "daemon/remote_private.h"

static struct fs_options options_for(unsigned port, unsigned nthreads)
{
	struct fs_options options = {
		.source = {.host = "127.0.0.1", .export_name = "default"},
		.mountpoint = "/mnt/rmem",
		.transport = TRANSPORT_TCP,
		.port = port,
		.connect_timeout_ms = 1000,
		.peer_timeout_ms = 5000,
		.io_threads = nthreads,
		.merge_pages = 1,
	};

	return options;
}

struct bench {
	struct script script;
	struct drive d;
};

static void bench_open_for(struct bench *b, unsigned nthreads, unsigned peer_timeout_ms,
	unsigned soft_ms, unsigned server_timeout_ms)
{
	struct fs_options options;

	script_init(&b->script, 0);
	atomic_store(&b->script.timeout_ms, server_timeout_ms);
	script_start(&b->script);
	options = options_for(script_port(&b->script), nthreads);
	options.peer_timeout_ms = peer_timeout_ms;
	options.soft_ms = soft_ms;
	assert_int_equal(drive_open(&b->d, &options), 0);
	if (drive_connect(&b->d) != 0)
		fail_msg("%s", b->d.why);
}

static void bench_open(struct bench *b, unsigned nthreads)
{
	bench_open_for(b, nthreads, 5000, 0, 0);
}

static void bench_close(struct bench *b)
{
	drive_close(&b->d);
	script_fini(&b->script);
	assert_int_equal(atomic_load(&b->script.nviolations), 0);
}

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

static void connect_fails(const struct fs_options *options, int expected, const char *text)
{
	struct drive d;
	int err = drive_open(&d, options);

	assert_int_equal(err, 0);
	assert_int_equal(drive_connect(&d), expected);
	if (!strstr(d.why, text))
		fail_msg("'%s' does not say '%s'", d.why, text);
	drive_close(&d);
}

static void connect__nobody_listens(void **state)
{
	struct fs_options options;
	struct script script;
	char text[100];

	script_init(&script, 0);
	script_start(&script);
	options = options_for(script_port(&script), 1);
	script_fini(&script);
	snprintf(text, sizeof(text), "no server at tcp 127.0.0.1:%u: Connection refused",
		options.port);
	connect_fails(&options, -ECONNREFUSED, text);
}

static void connect__refused_by_the_server(void **state)
{
	struct fs_options options;
	struct script script;

	script_init(&script, 0);
	atomic_store(&script.refuse, -ENOENT);
	script_start(&script);
	options = options_for(script_port(&script), 1);
	connect_fails(&options, -ENOENT, ": not today");
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
	struct fs_options options;
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
	struct fs_options options;
	pthread_t thread;
	unsigned port;
	int fd = listen_dumb(&port);

	options = options_for(port, 1);
	assert_int_equal(pthread_create(&thread, NULL, talk_http, &fd), 0);
	connect_fails(&options, -EPROTO, "no rmemfs server: it does not speak our protocol");
	pthread_join(thread, NULL);
	close(fd);
}

static void open__options_that_exclude_each_other(void **state)
{
	struct fs_options options = options_for(0, 1);
	struct drive d;

	snprintf(options.source.host, sizeof(options.source.host), "/run/x.sock");
	assert_int_equal(drive_open(&d, &options), -EINVAL);
	assert_non_null(strstr(d.why, "which transport=tcp can't use"));
	options.transport = TRANSPORT_SHM;
	options.port = 7470;
	assert_int_equal(drive_open(&d, &options), -EINVAL);
	assert_non_null(strstr(d.why, "shm has no ports"));
	options.port = 0;
	snprintf(options.source.host, sizeof(options.source.host), "192.0.2.1");
	assert_int_equal(drive_open(&d, &options), -EINVAL);
	assert_non_null(strstr(d.why, "192.0.2.1 is not this machine"));
}

static void open__auto_with_a_port_means_tcp_on_this_machine(void **state)
{
	struct fs_options options = options_for(7999, 1);
	struct drive d;

	options.auto_transport = true;
	assert_int_equal(drive_open(&d, &options), 0);
	assert_string_equal(session_server(d.session), "tcp 127.0.0.1:7999");
	drive_close(&d);
}

static void open__auto_with_a_path_means_shm(void **state)
{
	struct fs_options options = options_for(0, 1);
	struct drive d;

	options.auto_transport = true;
	snprintf(options.source.host, sizeof(options.source.host), "/nowhere/server.sock");
	assert_int_equal(drive_open(&d, &options), 0);
	assert_string_equal(session_server(d.session), "shm /nowhere/server.sock");
	assert_true(drive_connect(&d) < 0);
	assert_non_null(strstr(d.why, "no server at shm /nowhere/server.sock: "));
	drive_close(&d);
}

/* ---- RPCs ------------------------------------------------------------------------------------ */

static struct test_rpc calls[400];

static void rpcs_start(struct bench *b, unsigned n)
{
	memset(calls, 0, sizeof(calls));
	for (unsigned i = 0; i < n; i++) {
		test_rpc_create(&calls[i], "file", i);
		rpc_start(&b->d.threads[i % b->d.nthreads], &calls[i].call);
		assert_int_equal(calls[i].ndone, 0);
	}
}

/* Each was executed once, and each caller got the reply to its own execution. */
static void rpcs_verify(struct bench *b, unsigned n)
{
	uint8_t *seen = calloc(n + 1, 1);

	assert_int_equal(atomic_load(&b->script.nexecuted), n);
	for (unsigned i = 0; i < n; i++) {
		uint64_t ino = calls[i].rep.entry.attr.ino;

		assert_int_equal(calls[i].ndone, 1);
		assert_int_equal(calls[i].status, 0);
		assert_in_range(ino, 1, n);
		assert_int_equal(seen[ino]++, 0);
	}
	free(seen);
}

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

enum { NIOS = 48, IO_WORKS = 24, IO_STRIDE = IO_WORKS * PAGE_BYTES, IO_PAGES = 1000 };

struct ios {
	bool piped; /* READs by the pipe */
	unsigned npiped;
	struct test_io io[NIOS];
	struct sge sges[NIOS][IO_WORKS];
	struct work works[NIOS][IO_WORKS];
};

static const char io_head[] = "what a reply begins with";

/* Puts what came by the pipe where it would have come without. */
static void ios_take_piped(const struct io_call *call, int fd)
{
	char head[sizeof(io_head)];

	assert_int_equal(read(fd, head, sizeof(head)), (ssize_t)sizeof(head));
	assert_memory_equal(head, io_head, sizeof(head));
	for (uint32_t w = 0; w < call->nworks; w++) {
		const struct sge *sge = call->works[w].sge;

		assert_int_equal(read(fd, sge->addr, sge->len), (ssize_t)sge->len);
	}
}

static void ios_done(struct io_call *call, int status)
{
	if (!status && call->piped)
		ios_take_piped(call, io_pipe(container_of(call, struct test_io, call)->thread));
	test_io_done(call, status);
}

/* Each call moves 24 pages between our memory and all regions, each a work of its own; the last
 * calls do again what the first do. */
static void ios_start(struct drive *d, struct ios *ios, enum io_dir dir)
{
	const char *head = ios->piped && dir == IO_READ ? io_head : NULL;

	for (unsigned i = 0; i < NIOS; i++) {
		ios->io[i] = (struct test_io){.call = {.dir = dir,
						      .works = ios->works[i],
						      .nworks = IO_WORKS,
						      .head = head,
						      .headlen = sizeof(io_head),
						      .done = ios_done},
			.thread = &d->threads[i % d->nthreads]};
		for (unsigned w = 0; w < IO_WORKS; w++) {
			unsigned page = (i * IO_WORKS + w) % IO_PAGES;

			ios->sges[i][w] =
				(struct sge){.addr = d->memory + (size_t)page * PAGE_BYTES,
					.len = PAGE_BYTES,
					.buffer = d->buffer};
			ios->works[i][w] = (struct work){.sge = &ios->sges[i][w],
				.nsge = 1,
				.region = page % SCRIPT_REGIONS,
				.offset = (uint64_t)(page / SCRIPT_REGIONS) * PAGE_BYTES};
		}
		io_start(ios->io[i].thread, &ios->io[i].call);
	}
}

static void ios_finish(struct drive *d, struct ios *ios)
{
	drive_until(d, count_done(ios->io) == NIOS);
	for (unsigned i = 0; i < NIOS; i++) {
		assert_int_equal(ios->io[i].ndone, 1);
		assert_int_equal(ios->io[i].status, 0);
		ios->npiped += ios->io[i].call.piped;
	}
}

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

/* By the pipe those go that fit into one batch. */
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

/* The server sees nothing of transfers that it has no part in. */
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

/* Many times faster than an idle channel is pinged. */
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

static void ping__malformed_recalls_cost_the_channel_only(void **state)
{
	struct bench b;
	unsigned npings;

	bench_open(&b, 1);
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
	/* The last sign of life was the answer to ATTACH, or to a PING before this. */
	assert_in_range(now_ms() - start, 600, 3000);
	assert_true(session_ttl_ms(b.d.session) > 0);
	bench_close(&b);
}

/* Transfers go on, but whoever is to answer does not. */
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

/* The answers are here, but the time is looked at before them. */
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

/* Nothing is sent to a server that is away, so that nothing of it is in doubt. */
static void soft__calls_can_be_taken_back_while_the_server_is_away(void **state)
{
	struct bench b;
	int64_t start;

	bench_open_for(&b, 1, 60000, 1000, 0);
	start = now_ms();
	atomic_store(&b.script.silent, true);
	drive_until(&b.d, remote_gives_up(b.d.threads));
	assert_in_range(now_ms() - start, 600, 3000);
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
	assert_in_range(now_ms() - start, 800, 3000);
	drive_close(&b.d);
}

/* It was away, and comes back without what we had there: that is not EIO. */
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

/* What is asked of the filesystem by the end of one that shares. */
static struct fs *share(struct bench *b)
{
	struct fs *fs = calloc(1, sizeof(*fs));

	assert_non_null(fs);
	locks_init(&fs->locks);
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
	/* Nothing goes out before another one is asked for. */
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
	session_begin_anew(b.d.session);
	assert_false(session_is_made(b.d.session));
	drive_until(&b.d, atomic_load(&b.script.nattached) == 4);
	attach = &b.script.channels[0].attach.attach;
	assert_int_equal(attach->session, 0);
	assert_int_equal(attach->ended, SCRIPT_SESSION);
	assert_memory_equal(attach->store_id, "a store", 8);
	assert_int_equal(b.script.channels[1].attach.attach.session, SCRIPT_SESSION + 1);
	assert_true(session_is_made(b.d.session));
	/* By the first numbers of its slots, which the server holds us to. */
	rpcs_start(&b, 60);
	drive_until(&b.d, count_done(calls) == 60);
	rpcs_verify(&b, 60);
	drive_stop(&b.d, 10000);
	bench_close(&b);
	locks_fini(&fs->locks);
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
	locks_fini(&fs->locks);
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

/* A server that lets an export have more than a client of this version reaches. */
static void session__more_regions_than_it_reaches_is_lost(void **state)
{
	struct fs_options options;
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

/* What gives up without a server, or answers without it, does so after a loss or a failure, and not
 * while a thread makes its first connection beside others that stand. */
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
		cmocka_unit_test(connect__nobody_listens),
		cmocka_unit_test(connect__refused_by_the_server),
		cmocka_unit_test(connect__server_is_mute),
		cmocka_unit_test(connect__another_kind_of_server),
		cmocka_unit_test(open__options_that_exclude_each_other),
		cmocka_unit_test(open__auto_with_a_port_means_tcp_on_this_machine),
		cmocka_unit_test(open__auto_with_a_path_means_shm),
		cmocka_unit_test(rpc__many_at_once),
		cmocka_unit_test(rpc__executed_once_though_replies_are_lost),
		cmocka_unit_test(rpc__commit_passes_those_that_wait),
		cmocka_unit_test(rpc_cancel__only_before_it_is_sent),
		cmocka_unit_test(rpc__too_long_for_a_message_is_not_sent),
		cmocka_unit_test(rpc__malformed_reply_costs_the_channel_only),
		cmocka_unit_test(io__comes_back_equal),
		cmocka_unit_test(io__comes_back_equal_though_channels_are_cut),
		cmocka_unit_test(io__comes_back_equal_by_the_pipe),
		cmocka_unit_test(io__comes_back_equal_by_the_pipe_though_channels_are_cut),
		cmocka_unit_test(io__beyond_a_region_is_an_error_of_the_call),
		cmocka_unit_test(io_cancel__only_before_it_is_posted),
		cmocka_unit_test(ping__every_idle_channel),
		cmocka_unit_test(ping__a_channel_with_nothing_but_transfers),
		cmocka_unit_test(ping__as_often_as_the_server_wants_to_hear),
		cmocka_unit_test(ring__is_answered_by_a_ping_at_once),
		cmocka_unit_test(ring__while_a_ping_is_on_its_way_brings_another),
		cmocka_unit_test(ring__malformed_costs_the_channel_only),
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
		cmocka_unit_test(threads__each_with_its_channel),
	};

	log_init("test_daemon_remote", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
