/* remote_bench.h - the session's client against a scripted server, and many of its calls at
 * once. */
#ifndef RMEMFS_TESTS_REMOTE_BENCH_H
#define RMEMFS_TESTS_REMOTE_BENCH_H

#include "tests/unit/daemon/remote_script.h"

/* ---- a client and its server ----------------------------------------------------------------- */

static inline struct session_options options_for(unsigned port, unsigned nthreads)
{
	struct session_options options = {
		.source = {.host = "127.0.0.1", .export_name = "default"},
		.mountpoint = "/mnt/rmem",
		.transport = TRANSPORT_TCP,
		.port = port,
		.connect_timeout_ms = 1000,
		.peer_timeout_ms = 5000,
		.io_threads = nthreads,
	};

	return options;
}

struct bench {
	struct script script;
	struct drive d;
};

static inline void bench_connect(struct bench *b, const struct session_options *options)
{
	assert_int_equal(drive_open(&b->d, options), 0);
	if (drive_connect(&b->d) != 0)
		fail_msg("%s", b->d.why);
}

static inline void bench_open_for(struct bench *b, unsigned nthreads, unsigned peer_timeout_ms,
	unsigned soft_ms, unsigned server_timeout_ms)
{
	struct session_options options;

	script_init(&b->script, 0);
	atomic_store(&b->script.timeout_ms, server_timeout_ms);
	script_start(&b->script);
	options = options_for(script_port(&b->script), nthreads);
	options.peer_timeout_ms = peer_timeout_ms;
	options.soft_ms = soft_ms;
	bench_connect(b, &options);
}

/* One thread, at a shared export. */
static inline void bench_open_shared(struct bench *b)
{
	struct session_options options;

	script_init(&b->script, 0);
	script_start(&b->script);
	options = options_for(script_port(&b->script), 1);
	options.sharing = true;
	bench_connect(b, &options);
}

static inline void bench_open(struct bench *b, unsigned nthreads)
{
	bench_open_for(b, nthreads, 5000, 0, 0);
}

static inline void bench_close(struct bench *b)
{
	drive_close(&b->d);
	script_fini(&b->script);
	assert_int_equal(atomic_load(&b->script.nviolations), 0);
}

static inline void connect_fails(
	const struct session_options *options, int expected, const char *text)
{
	struct drive d;
	int err = drive_open(&d, options);

	assert_int_equal(err, 0);
	assert_int_equal(drive_connect(&d), expected);
	if (!strstr(d.why, text))
		fail_msg("'%s' does not say '%s'", d.why, text);
	drive_close(&d);
}

/* ---- RPCs ------------------------------------------------------------------------------------ */

static struct test_rpc calls[400];

static inline void rpcs_start(struct bench *b, unsigned n)
{
	memset(calls, 0, sizeof(calls));
	for (unsigned i = 0; i < n; i++) {
		test_rpc_create(&calls[i], "file", i);
		rpc_start(&b->d.threads[i % b->d.nthreads], &calls[i].call);
		assert_int_equal(calls[i].ndone, 0);
	}
}

/* Each call was executed once, and each caller got the reply to its own execution. */
static inline void rpcs_verify(struct bench *b, unsigned n)
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

/* ---- I/O ------------------------------------------------------------------------------------- */

enum { NIOS = 48, IO_WORKS = 24, IO_STRIDE = IO_WORKS * PAGE_BYTES, IO_PAGES = 1000 };

struct ios {
	bool piped; /* READs through the pipe */
	unsigned npiped;
	struct test_io io[NIOS];
	struct sge sges[NIOS][IO_WORKS];
	struct work works[NIOS][IO_WORKS];
};

static const char io_head[] = "what a reply begins with";

/* Copies bytes from the pipe to where they would have come without it. */
static inline void ios_take_piped(const struct io_call *call, int fd)
{
	char head[sizeof(io_head)];

	assert_int_equal(read(fd, head, sizeof(head)), (ssize_t)sizeof(head));
	assert_memory_equal(head, io_head, sizeof(head));
	for (uint32_t w = 0; w < call->nworks; w++) {
		const struct sge *sge = call->works[w].sge;

		assert_int_equal(read(fd, sge->addr, sge->len), (ssize_t)sge->len);
	}
}

static inline void ios_done(struct io_call *call, int status)
{
	if (!status && call->piped)
		ios_take_piped(call, io_pipe(container_of(call, struct test_io, call)->thread));
	test_io_done(call, status);
}

/* Each call moves 24 pages between our memory and all regions, each page a work of its own. The
 * last calls repeat the first ones. */
static inline void ios_start(struct drive *d, struct ios *ios, enum io_dir dir)
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

static inline void ios_finish(struct drive *d, struct ios *ios)
{
	drive_until(d, count_done(ios->io) == NIOS);
	for (unsigned i = 0; i < NIOS; i++) {
		assert_int_equal(ios->io[i].ndone, 1);
		assert_int_equal(ios->io[i].status, 0);
		ios->npiped += ios->io[i].call.piped;
	}
}

#endif
