/* contract_io.c - READ and WRITE: bytes, batches, order, room, threads. */
#include "tests/unit/common/transport/contract.h"

#include "common/transport/kinds.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

static void write__lands(void **state)
{
	struct fixture *f = *state;

	fill_pattern(f->buf, 1 << 20, 1);
	do_one(f, IO_WRITE, 0, 1 << 20, 0, 12345);
	assert_pattern(f->memory[0].addr + 12345, 1 << 20, 1);
	assert_int_equal(f->memory[0].addr[12344], 0);
	assert_int_equal(f->memory[0].addr[12345 + (1 << 20)], 0);
}

static void read__fetches(void **state)
{
	struct fixture *f = *state;

	fill_pattern(f->memory[1].addr + 777, 1 << 20, 2);
	do_one(f, IO_READ, 100, 1 << 20, 1, 777);
	assert_pattern(f->buf + 100, 1 << 20, 2);
	assert_int_equal(f->buf[99], 0);
	assert_int_equal(f->buf[100 + (1 << 20)], 0);
}

static void post__single_bytes_at_the_edges(void **state)
{
	struct fixture *f = *state;

	f->buf[0] = 0xa5;
	do_one(f, IO_WRITE, 0, 1, 0, 0);
	do_one(f, IO_WRITE, 0, 1, 0, REGION_BYTES - 1);
	assert_int_equal(f->memory[0].addr[0], 0xa5);
	assert_int_equal(f->memory[0].addr[REGION_BYTES - 1], 0xa5);
	do_one(f, IO_READ, BUFFER_BYTES - 1, 1, 0, REGION_BYTES - 1);
	assert_int_equal(f->buf[BUFFER_BYTES - 1], 0xa5);
}

/* A batch of pages scattered over the buffer, against ranges scattered over two regions. */
enum { STREWN_WORKS = 4, STREWN_SGES = 16 };

struct strewn {
	struct sge sges[STREWN_WORKS][STREWN_SGES];
	struct work works[STREWN_WORKS];
	uint32_t nsge;
};

static uint64_t strewn_local(uint32_t i)
{
	return (uint64_t)(i * 37 % 128) * 2 * PAGE_BYTES;
}

static uint64_t strewn_remote(uint32_t work)
{
	return (uint64_t)(STREWN_WORKS - work) * (1 << 20) + work * 512;
}

static void strewn_make(const struct fixture *f, struct strewn *s, uint32_t max_sge)
{
	s->nsge = MIN(STREWN_SGES, max_sge);
	for (uint32_t w = 0; w < STREWN_WORKS; w++) {
		for (uint32_t i = 0; i < s->nsge; i++)
			s->sges[w][i] =
				sge_at(f, strewn_local(w * STREWN_SGES + i), PAGE_BYTES - i);
		s->works[w] = (struct work){
			.sge = s->sges[w],
			.nsge = s->nsge,
			.region = w % 2 ? 2 : 0,
			.offset = strewn_remote(w),
		};
	}
}

/* Compares the SGEs of each work, one after the other, with its range. */
static void strewn_compare(const struct fixture *f, const struct strewn *s)
{
	for (uint32_t w = 0; w < STREWN_WORKS; w++) {
		const uint8_t *remote = f->memory[s->works[w].region].addr + s->works[w].offset;

		for (uint32_t i = 0; i < s->nsge; i++) {
			assert_memory_equal(s->sges[w][i].addr, remote, s->sges[w][i].len);
			remote += s->sges[w][i].len;
		}
	}
}

static uint32_t batch_works(uint32_t max_works)
{
	return MIN(STREWN_WORKS, max_works);
}

static void write__many_sges_and_ranges(void **state)
{
	struct fixture *f = *state;
	struct strewn s;

	assert_true(batch_works(channel_limits(f->ch)->max_works_write) == STREWN_WORKS);
	strewn_make(f, &s, channel_limits(f->ch)->max_sge_write);
	fill_pattern(f->buf, 1 << 20, 3);
	assert_int_equal(channel_post(f->ch, IO_WRITE, s.works, STREWN_WORKS, &s), 0);
	assert_ptr_equal(expect_event(f->q, EV_DONE, 0).cookie, &s);
	strewn_compare(f, &s);
	assert_pattern(f->buf, 1 << 20, 3);
}

static void read__many_sges_and_ranges(void **state)
{
	struct fixture *f = *state;
	const struct channel_counters *n = channel_counters(f->ch);
	uint64_t doorbells = n->doorbells;
	struct strewn s;

	assert_true(batch_works(channel_limits(f->ch)->max_works_read) == STREWN_WORKS);
	strewn_make(f, &s, channel_limits(f->ch)->max_sge_read);
	fill_pattern(f->memory[0].addr, REGION_BYTES, 4);
	fill_pattern(f->memory[2].addr, REGION_BYTES, 5);
	assert_int_equal(channel_post(f->ch, IO_READ, s.works, STREWN_WORKS, &s), 0);
	assert_ptr_equal(expect_event(f->q, EV_DONE, 0).cookie, &s);
	strewn_compare(f, &s);
	/* Memory needs none. */
	assert_int_equal(n->doorbells - doorbells, contract_kind == TRANSPORT_SHM ? 0 : 1);
	/* Nothing was written between the SGEs. */
	assert_int_equal(f->buf[strewn_local(0) + PAGE_BYTES], 0);
}

static void post__largest_batch(void **state)
{
	struct fixture *f = *state;
	const struct channel_limits *limits = channel_limits(f->ch);
	uint32_t nworks = limits->max_works_write, nsge = limits->max_sge_write;
	struct sge *sges = calloc((size_t)nworks * nsge, sizeof(*sges));
	struct work *works = calloc(nworks, sizeof(*works));
	uint32_t each = 64;

	assert_non_null(sges);
	assert_non_null(works);
	fill_pattern(f->buf, (size_t)nworks * nsge * each, 6);
	for (uint32_t i = 0; i < nworks * nsge; i++)
		sges[i] = sge_at(f, (uint64_t)i * each, each);
	for (uint32_t w = 0; w < nworks; w++)
		works[w] = (struct work){
			.sge = sges + (size_t)w * nsge,
			.nsge = nsge,
			.offset = (uint64_t)w * nsge * each,
		};
	for (int round = 0; round < 3; round++) {
		assert_int_equal(channel_post(f->ch, IO_WRITE, works, nworks, f), 0);
		expect_event(f->q, EV_DONE, 0);
	}
	assert_pattern(f->memory[0].addr, (size_t)nworks * nsge * each, 6);
	free(works);
	free(sges);
}

/* One thread has sixteen operations in flight, each in its own place, many times over; each
 * completes. */
static void post__16_in_flight(void **state)
{
	enum { DEPTH = 16, LEN = 96 << 10, TURNS = 200 };
	struct fixture *f = *state;
	uint64_t posted = 0, done = 0;

	fill_pattern(f->memory[1].addr, REGION_BYTES, 7);
	while (done < TURNS) {
		while (posted < TURNS && posted < done + DEPTH) {
			uint64_t slot = posted % DEPTH;
			int err = post_one(f, IO_READ, slot * LEN, LEN, 1, slot * LEN,
				(void *)(uintptr_t)posted);

			if (err == -EAGAIN)
				break;
			assert_int_equal(err, 0);
			posted++;
		}
		assert_int_equal((uintptr_t)expect_event(f->q, EV_DONE, 0).cookie, done);
		done++;
	}
	assert_pattern(f->buf, DEPTH * LEN, 7);
}

static void post__completes_in_order(void **state)
{
	struct fixture *f = *state;
	uintptr_t posted = 0, done = 0;
	int err;

	while (done < 300) {
		enum io_dir dir = posted % 3 ? IO_WRITE : IO_READ;
		uint32_t len = (uint32_t)(1 + posted * 7919 % 100000);

		err = post_one(
			f, dir, dir == IO_WRITE ? 0 : 4 << 20, len, 0, posted * 64, (void *)posted);
		if (!err) {
			posted++;
			continue;
		}
		assert_int_equal(err, -EAGAIN);
		assert_int_equal((uintptr_t)expect_event(f->q, EV_DONE, 0).cookie, done++);
	}
	while (done < posted)
		assert_int_equal((uintptr_t)expect_event(f->q, EV_DONE, 0).cookie, done++);
}

static void fill_and_drain(struct fixture *f, enum io_dir dir)
{
	uint64_t posted = 0;
	int err;

	do {
		err = post_one(f, dir, 0, 64 << 10, 0, 0, NULL);
		posted += !err;
	} while (!err);
	assert_int_equal(err, -EAGAIN);
	assert_true(posted >= 1 && posted <= NWORK);
	for (uint64_t i = 0; i < posted; i++)
		expect_event(f->q, EV_DONE, 0);
	expect_silence(f->q, 0);
}

static void post__full_queue(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++) {
		fill_and_drain(f, IO_WRITE);
		fill_and_drain(f, IO_READ);
	}
}

/* Large transfers in both directions fill all socket buffers; neither side may block the other. */
static void post__both_ways_large(void **state)
{
	struct fixture *f = *state;
	enum { LEN = 4 << 20, TURNS = 8 };
	uint32_t len = MIN(LEN, channel_limits(f->ch)->max_work_bytes);
	int posted = 0;

	fill_pattern(f->buf, len, 8);
	fill_pattern(f->memory[1].addr, len, 9);
	for (int i = 0; i < TURNS; i++) {
		posted += !post_one(f, IO_WRITE, 0, len, 0, 0, NULL);
		posted += !post_one(f, IO_READ, LEN, len, 1, 0, NULL);
	}
	assert_true(posted >= 2);
	while (posted--)
		expect_event(f->q, EV_DONE, 0);
	assert_pattern(f->memory[0].addr, len, 8);
	assert_pattern(f->buf + LEN, len, 9);
}

/* After the call the works and SGEs belong to the caller again. */
static void post__copies_works(void **state)
{
	struct fixture *f = *state;
	struct sge sge = sge_at(f, 0, 1 << 20);
	struct work work = {.sge = &sge, .nsge = 1};

	fill_pattern(f->buf, 1 << 20, 10);
	assert_int_equal(channel_post(f->ch, IO_WRITE, &work, 1, NULL), 0);
	memset(&sge, 0xff, sizeof(sge));
	memset(&work, 0xff, sizeof(work));
	expect_event(f->q, EV_DONE, 0);
	assert_pattern(f->memory[0].addr, 1 << 20, 10);
}

static void post__counts(void **state)
{
	struct fixture *f = *state;
	struct channel_counters before = *channel_counters(f->ch);
	const struct channel_counters *now = channel_counters(f->ch);

	do_one(f, IO_READ, 0, 5000, 0, 0);
	do_one(f, IO_WRITE, 0, 300, 0, 0);
	assert_int_equal(now->reads - before.reads, 1);
	assert_int_equal(now->read_bytes - before.read_bytes, 5000);
	assert_int_equal(now->writes - before.writes, 1);
	assert_int_equal(now->write_bytes - before.write_bytes, 300);
	assert_int_equal(now->batches - before.batches, 2);
}

static void mapped__shows_what_a_read_would_fetch(void **state)
{
	struct fixture *f = *state;
	struct channel_counters before = *channel_counters(f->ch);
	const struct channel_counters *now = channel_counters(f->ch);
	const uint8_t *at = channel_mapped(f->ch, IO_READ, 1, 777, 1 << 20);

	fill_pattern(f->memory[1].addr + 777, 1 << 20, 13);
	if (!transport_maps_regions(f->t)) {
		assert_null(at);
		assert_int_equal(now->reads - before.reads, 0);
		return;
	}
	assert_non_null(at);
	assert_pattern(at, 1 << 20, 13);
	channel_count_mapped(f->ch, IO_READ, 1 << 20);
	assert_int_equal(now->reads - before.reads, 1);
	assert_int_equal(now->read_bytes - before.read_bytes, 1 << 20);
	assert_int_equal(now->batches - before.batches, 0);
	expect_silence(f->q, 0);
	/* It is the channel's own memory: a WRITE posted on the channel is seen there, too. */
	at = channel_mapped(f->ch, IO_READ, 0, REGION_BYTES - 100, 100);
	fill_pattern(f->buf, 100, 14);
	do_one(f, IO_WRITE, 0, 100, 0, REGION_BYTES - 100);
	assert_pattern(at, 100, 14);
}

static void mapped__takes_what_a_write_would_bring(void **state)
{
	struct fixture *f = *state;
	struct channel_counters before = *channel_counters(f->ch);
	const struct channel_counters *now = channel_counters(f->ch);
	uint8_t *at = channel_mapped(f->ch, IO_WRITE, 0, 4096, 300000);

	if (!transport_maps_regions(f->t)) {
		assert_null(at);
		return;
	}
	assert_non_null(at);
	assert_int_equal(now->writes - before.writes, 0);
	fill_pattern(at, 300000, 15);
	assert_pattern(f->memory[0].addr + 4096, 300000, 15);
	channel_count_mapped(f->ch, IO_WRITE, 300000);
	assert_int_equal(now->writes - before.writes, 1);
	assert_int_equal(now->write_bytes - before.write_bytes, 300000);
	expect_silence(f->q, 0);
	/* It is the channel's own memory: a READ posted on the channel fetches it. */
	do_one(f, IO_READ, 0, 300000, 0, 4096);
	assert_pattern(f->buf, 300000, 15);
}

static void mapped__by_kind(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(transport_maps_regions(f->t), contract_kind == TRANSPORT_SHM);
}

static uint64_t peer_nallocs(struct fixture *f)
{
	send_ask(f->ch, (struct ask){.op = ASK_NALLOCS});
	return expect_ask(f->q).value;
}

static void post__allocates_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t theirs;
	long ours;

	if (nallocs() < 0)
		return; /* the sanitizer owns malloc; the plain build counts */
	theirs = peer_nallocs(f);
	ours = nallocs();
	for (int i = 0; i < 50; i++) {
		do_one(f, IO_WRITE, 0, 64 << 10, 0, 0);
		do_one(f, IO_READ, 0, 64 << 10, 0, 0);
		send_ask(f->ch, (struct ask){.op = ASK_ECHO});
		expect_ask(f->q);
	}
	assert_int_equal(nallocs(), ours);
	assert_int_equal(peer_nallocs(f), theirs);
}

static void delete__leaves_read_memory_alone(void **state)
{
	struct fixture *f = *state;
	enum { LEN = 1 << 20 };
	struct event event;

	fill_pattern(f->memory[0].addr, LEN, 11);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_one(f, IO_READ, i * LEN, LEN, 0, 0, NULL), 0);
	channel_delete(f->ch);
	fill_pattern(f->buf, 4 * LEN, 12);
	assert_int_equal(evq_poll(f->q, &event, 1), 0);
	/* By the time the server has noticed, all bytes in flight have arrived. */
	peer_expect(&f->peer, PEER_CLOSED);
	f->ch = connect_channel(f);
	take_keys(f, f->ch, f->keys);
	do_one(f, IO_READ, 8 * LEN, LEN, 0, 0);
	assert_pattern(f->buf, 4 * LEN, 12);
	assert_pattern(f->buf + 8 * LEN, LEN, 11);
}

/* ---- two queues ------------------------------------------------------------------------------ */

struct worker {
	struct fixture f; /* a copy with its own queue, channel and part of the buffer */
	unsigned index;
	bool ok;
};

/* cmocka's asserts are for the main thread only. */
static bool worker_turn(struct worker *w, unsigned turn)
{
	enum { LEN = 128 << 10 };
	uint64_t at = (uint64_t)w->index * (4 << 20);
	enum io_dir dir = turn % 2 ? IO_READ : IO_WRITE;
	struct event event;
	int n;

	if (dir == IO_WRITE)
		fill_pattern(w->f.buf + at, LEN, turn + w->index);
	else
		memset(w->f.buf + at, 0, LEN);
	if (post_one(&w->f, dir, at, LEN, 0, at, w))
		return false;
	do
		n = evq_poll(w->f.q, &event, 1);
	while (n == 0);
	if (n != 1 || event.type != EV_DONE || event.status || event.cookie != w)
		return false;
	return memcmp(w->f.buf + at, w->f.memory[0].addr + at, LEN) == 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	w->ok = true;
	for (unsigned turn = 0; w->ok && turn < 200; turn++)
		w->ok = worker_turn(w, turn);
	return NULL;
}

static void post__two_queues_two_threads(void **state)
{
	struct fixture *f = *state;
	struct worker workers[2];
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){.f = *f, .index = i};
		assert_int_equal(evq_new(f->t, &w->f.q), 0);
		w->f.ch = connect_channel(&w->f);
		take_keys(&w->f, w->f.ch, w->f.keys);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		channel_delete(workers[i].f.ch);
		evq_delete(workers[i].f.q);
	}
	assert_true(workers[0].ok);
	assert_true(workers[1].ok);
}

/* The memory is registered with another transport first, as by a client that has two to choose
 * from. */
static void buffer__registered_with_two_transports(void **state)
{
	struct fixture *f = *state;
	struct transport_config config = contract_config();
	struct buffer *own = f->buffer;
	struct transport *other;

	assert_int_equal(transport_open(&f->address, &config, WAIT_MS, &other), 0);
	assert_int_equal(buffer_register(other, f->buf, BUFFER_BYTES, &f->buffer), 0);
	assert_int_equal(post_one(f, IO_WRITE, 0, PAGE_BYTES, 0, 0, NULL), -EINVAL);
	assert_int_equal(buffer_register_also(f->buffer, other), -EEXIST);
	assert_int_equal(buffer_register_also(f->buffer, f->t), 0);
	assert_int_equal(buffer_register_also(f->buffer, f->t), -EEXIST);
	fill_pattern(f->buf, PAGE_BYTES, 5);
	do_one(f, IO_WRITE, 0, PAGE_BYTES, 0, 3 * PAGE_BYTES);
	do_one(f, IO_READ, PAGE_BYTES, PAGE_BYTES, 0, 3 * PAGE_BYTES);
	assert_pattern(f->buf + PAGE_BYTES, PAGE_BYTES, 5);
	assert_pattern(f->memory[0].addr + 3 * PAGE_BYTES, PAGE_BYTES, 5);
	buffer_deregister_also(f->buffer);
	assert_int_equal(post_one(f, IO_WRITE, 0, PAGE_BYTES, 0, 0, NULL), -EINVAL);
	buffer_deregister(f->buffer);
	f->buffer = own;
	transport_close(other);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(buffer__registered_with_two_transports),
	CHANNEL_CASE(write__lands),
	CHANNEL_CASE(read__fetches),
	CHANNEL_CASE(post__single_bytes_at_the_edges),
	CHANNEL_CASE(write__many_sges_and_ranges),
	CHANNEL_CASE(read__many_sges_and_ranges),
	CHANNEL_CASE(post__largest_batch),
	CHANNEL_CASE(post__16_in_flight),
	CHANNEL_CASE(post__completes_in_order),
	CHANNEL_CASE(post__full_queue),
	CHANNEL_CASE(post__both_ways_large),
	CHANNEL_CASE(post__copies_works),
	CHANNEL_CASE(post__counts),
	CHANNEL_CASE(mapped__shows_what_a_read_would_fetch),
	CHANNEL_CASE(mapped__takes_what_a_write_would_bring),
	CHANNEL_CASE(mapped__by_kind),
	CHANNEL_CASE(post__allocates_nothing),
	CHANNEL_CASE(delete__leaves_read_memory_alone),
	CHANNEL_CASE(post__two_queues_two_threads),
};

const struct cases io_cases = {"io", tests, ARRAY_SIZE(tests), ALL_KINDS};
