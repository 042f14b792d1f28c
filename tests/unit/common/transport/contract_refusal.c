/* contract_refusal.c - refusals of the wrapper before anything is sent, and refusals of the peer to
 * a client with a forged key. */
#include "tests/unit/common/transport/contract.h"

#include <stdlib.h>
#include <sys/mman.h>

/* ---- by the wrapper -------------------------------------------------------------------------- */

static int post_sges(struct fixture *f, enum io_dir dir, const struct sge *sge, uint32_t nsge)
{
	struct work work = {.sge = sge, .nsge = nsge};

	return channel_post(f->ch, dir, &work, 1, NULL);
}

static void post__too_many_sges(void **state)
{
	struct fixture *f = *state;
	uint32_t max = channel_limits(f->ch)->max_sge_write;
	struct sge *sges = calloc(max + 1, sizeof(*sges));

	assert_non_null(sges);
	for (uint32_t i = 0; i <= max; i++)
		sges[i] = sge_at(f, i, 1);
	assert_int_equal(post_sges(f, IO_WRITE, sges, 0), -EINVAL);
	assert_int_equal(post_sges(f, IO_WRITE, sges, max + 1), -EINVAL);
	assert_int_equal(post_sges(f, IO_WRITE, sges, max), 0);
	expect_event(f->q, EV_DONE, 0);
	free(sges);
}

static void post__too_many_works(void **state)
{
	struct fixture *f = *state;
	uint32_t max = channel_limits(f->ch)->max_works_read;
	struct work *works = calloc(max + 1, sizeof(*works));
	struct sge sge = sge_at(f, 0, 1);

	assert_non_null(works);
	for (uint32_t i = 0; i <= max; i++)
		works[i] = (struct work){.sge = &sge, .nsge = 1};
	assert_int_equal(channel_post(f->ch, IO_READ, works, 0, NULL), -EINVAL);
	assert_int_equal(channel_post(f->ch, IO_READ, works, max + 1, NULL), -EINVAL);
	assert_int_equal(channel_post(f->ch, IO_READ, works, max, NULL), 0);
	expect_event(f->q, EV_DONE, 0);
	free(works);
}

static void post__unregistered_memory(void **state)
{
	struct fixture *f = *state;
	struct sge sge = sge_at(f, BUFFER_BYTES - 10, 11);
	uint8_t other[16];

	assert_int_equal(post_sges(f, IO_READ, &sge, 1), -EINVAL);
	sge = (struct sge){.addr = f->buf - 1, .len = 10, .buffer = f->buffer};
	assert_int_equal(post_sges(f, IO_READ, &sge, 1), -EINVAL);
	sge = (struct sge){.addr = other, .len = 10, .buffer = f->buffer};
	assert_int_equal(post_sges(f, IO_READ, &sge, 1), -EINVAL);
	sge = (struct sge){.addr = f->buf, .len = 10};
	assert_int_equal(post_sges(f, IO_READ, &sge, 1), -EINVAL);
	sge = sge_at(f, 0, 0);
	assert_int_equal(post_sges(f, IO_READ, &sge, 1), -EINVAL);
}

static void post__outside_the_region(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(post_one(f, IO_READ, 0, 2, 0, REGION_BYTES - 1, NULL), -EINVAL);
	assert_int_equal(post_one(f, IO_READ, 0, 1, 0, REGION_BYTES, NULL), -EINVAL);
	assert_int_equal(post_one(f, IO_READ, 0, 2, 0, UINT64_MAX, NULL), -EINVAL);
}

static void post__without_key_or_right(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(post_one(f, IO_READ, 0, 1, NREGIONS, 0, NULL), -EINVAL);
	assert_int_equal(post_one(f, IO_READ, 0, 1, 8, 0, NULL), -EINVAL);
	assert_int_equal(post_one(f, IO_READ, 0, 1, UINT32_MAX, 0, NULL), -EINVAL);
	assert_int_equal(post_one(f, IO_WRITE, 0, 1, 1, 0, NULL), -EINVAL);
}

/* One bad work among good ones: none is posted. */
static void post__one_bad_work(void **state)
{
	struct fixture *f = *state;
	struct sge sge = sge_at(f, 0, 1);
	struct work works[2] = {
		{.sge = &sge, .nsge = 1},
		{.sge = &sge, .nsge = 1, .offset = REGION_BYTES},
	};

	f->buf[0] = 1;
	assert_int_equal(channel_post(f->ch, IO_WRITE, works, 2, NULL), -EINVAL);
	expect_silence(f->q, 0);
	assert_int_equal(f->memory[0].addr[0], 0);
}

static void mapped__what_no_transfer_would_reach(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[2];

	assert_null(channel_mapped(f->ch, IO_READ, NREGIONS, 0, 1));
	assert_null(channel_mapped(f->ch, IO_READ, UINT32_MAX, 0, 1));
	assert_null(channel_mapped(f->ch, IO_READ, 0, 0, 0));
	assert_null(channel_mapped(f->ch, IO_READ, 0, REGION_BYTES - 1, 2));
	assert_null(channel_mapped(f->ch, IO_READ, 0, UINT64_MAX, 2));
	key.access = REGION_WRITE;
	assert_int_equal(channel_set_key(f->ch, 2, &key), 0);
	assert_null(channel_mapped(f->ch, IO_READ, 2, 0, 1));
	key.access = REGION_READ;
	assert_int_equal(channel_set_key(f->ch, 2, &key), 0);
	assert_null(channel_mapped(f->ch, IO_WRITE, 2, 0, 1));
	assert_null(channel_mapped(f->ch, IO_WRITE, 0, REGION_BYTES - 1, 2));
}

static void set_key__invalid(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[0];

	assert_int_equal(channel_set_key(f->ch, 8, &key), -EINVAL);
	key.len = 0;
	assert_int_equal(channel_set_key(f->ch, 0, &key), -EINVAL);
	key = f->keys[0];
	key.access = 0;
	assert_int_equal(channel_set_key(f->ch, 0, &key), -EINVAL);
	key.access = 4;
	assert_int_equal(channel_set_key(f->ch, 0, &key), -EINVAL);
	key = f->keys[0];
	key.addr = UINT64_MAX;
	assert_int_equal(channel_set_key(f->ch, 0, &key), -EINVAL);
	/* The old key still works. */
	do_one(f, IO_READ, 0, PAGE_BYTES, 0, 0);
}

static void register__invalid(void **state)
{
	struct fixture *f = *state;
	struct buffer *b;
	struct region *r;

	assert_int_equal(buffer_register(f->t, f->buf, 0, &b), -EINVAL);
	assert_int_equal(buffer_register(f->t, NULL, 1, &b), -EINVAL);
	assert_int_equal(
		region_register(f->t, f->memory[0].fd, -1, f->memory[0].addr, 0, &r), -EINVAL);
}

static void client__may_not_serve(void **state)
{
	struct fixture *f = *state;
	struct region_key key;
	struct region *r;

	assert_int_equal(region_register(f->t, f->memory[0].fd, f->memory[0].rofd,
				 f->memory[0].addr, REGION_BYTES, &r),
		0);
	assert_int_equal(channel_publish(f->ch, r, REGION_READ, &key), -EINVAL);
	assert_int_equal(channel_fence(f->ch), -EINVAL);
	region_deregister(r);
}

static void publish__invalid(void **state)
{
	struct fixture *f = *state;
	int memory[NREGIONS];
	struct region_key key;
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_publish(ch, f->regions[0], REGION_READ, &key), -ENOTCONN);
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	assert_int_equal(channel_publish(ch, f->regions[0], 0, &key), -EINVAL);
	assert_int_equal(channel_publish(ch, f->regions[0], 4, &key), -EINVAL);
	fence_delete(f, ch);
	peer_expect(&f->peer, PEER_OPEN);
	peer_expect(&f->peer, PEER_CLOSED);
}

static void publish__once_a_region_and_not_too_many(void **state)
{
	enum { MAX_REGIONS = 8 };
	struct fixture *f = *state;
	struct region *regions[MAX_REGIONS + 1];
	struct memory *memory = &f->memory[0];
	int fds[NREGIONS];
	struct region_key key;
	struct channel *ch;

	for (int i = 0; i < NREGIONS; i++)
		fds[i] = f->memory[i].fd;
	for (int i = 0; i <= MAX_REGIONS; i++)
		assert_int_equal(region_register(f->t, memory->fd, memory->rofd, memory->addr,
					 REGION_BYTES, &regions[i]),
			0);
	peer_start(&f->peer, ROLE_CLIENT, fds, &f->address);
	ch = expect_event(f->q, EV_INCOMING, 0).channel;
	assert_int_equal(channel_accept(ch), 0);
	expect_event(f->q, EV_OPEN, 0);
	for (int i = 0; i < MAX_REGIONS; i++)
		assert_int_equal(channel_publish(ch, regions[i], REGION_READ, &key), 0);
	assert_int_equal(channel_publish(ch, regions[3], REGION_READ, &key), -EEXIST);
	assert_int_equal(channel_publish(ch, regions[MAX_REGIONS], REGION_READ, &key), -ENOSPC);
	peer_expect(&f->peer, PEER_OPEN);
	peer_kill(&f->peer);
	expect_event(f->q, EV_CLOSED, -ECONNRESET);
	fence_delete(f, ch);
	for (int i = 0; i <= MAX_REGIONS; i++)
		region_deregister(regions[i]);
}

/* ---- by the peer ----------------------------------------------------------------------------- */

/* The access is refused, the channel ends on both sides, and the region is unchanged. */
static void expect_refused(struct fixture *f, enum io_dir dir, uint32_t region, uint64_t offset)
{
	int status;

	memset(f->buf, 0xee, PAGE_BYTES);
	assert_int_equal(post_one(f, dir, 0, PAGE_BYTES, region, offset, f), 0);
	assert_ptr_equal(expect_event(f->q, EV_DONE, -EACCES).cookie, f);
	expect_event(f->q, EV_CLOSED, -EACCES);
	assert_int_equal(post_one(f, dir, 0, PAGE_BYTES, 0, 0, NULL), -ENOTCONN);
	status = peer_expect(&f->peer, PEER_CLOSED).status;
	/* A NIC need not tell the server why it ended the connection. */
	if (contract_kind != TRANSPORT_VERBS)
		assert_int_equal(status, -EACCES);
	for (int i = 0; i < NREGIONS; i++)
		assert_pattern(f->memory[i].addr, REGION_BYTES, 20);
	/* Other channels still work. */
	channel_delete(f->ch);
	f->ch = connect_channel(f);
	take_keys(f, f->ch, f->keys);
	do_one(f, IO_READ, 0, 1 << 20, 0, 0);
	assert_pattern(f->buf, 1 << 20, 20);
}

static void forge(struct fixture *f, uint32_t index, struct region_key key)
{
	for (int i = 0; i < NREGIONS; i++)
		fill_pattern(f->memory[i].addr, REGION_BYTES, 20);
	assert_int_equal(channel_set_key(f->ch, index, &key), 0);
}

static void forged__read_beyond_the_end(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[0];

	key.len += 1ULL << 30;
	forge(f, 0, key);
	assert_null(channel_mapped(f->ch, IO_READ, 0, REGION_BYTES - PAGE_BYTES + 1, PAGE_BYTES));
	expect_refused(f, IO_READ, 0, REGION_BYTES - PAGE_BYTES + 1);
}

static void forged__write_beyond_the_end(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[0];

	key.len += 1ULL << 30;
	forge(f, 0, key);
	expect_refused(f, IO_WRITE, 0, REGION_BYTES - PAGE_BYTES + 1);
}

static void forged__unknown_rkey(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[0];

	key.rkey ^= 0x5a5a5a5a;
	forge(f, 0, key);
	expect_refused(f, IO_READ, 0, 0);
}

static void forged__write_by_a_read_key(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[1];

	key.access |= REGION_WRITE;
	forge(f, 1, key);
	expect_refused(f, IO_WRITE, 1, 0);
}

/* A batch with one refused work, which is on the wire behind good ones. */
static void forged__one_of_a_batch(void **state)
{
	struct fixture *f = *state;
	struct sge sge = sge_at(f, 0, PAGE_BYTES);
	struct region_key key = f->keys[0];
	struct work works[3] = {
		{.sge = &sge, .nsge = 1},
		{.sge = &sge, .nsge = 1, .offset = REGION_BYTES},
		{.sge = &sge, .nsge = 1},
	};

	key.len += 1ULL << 30;
	forge(f, 0, key);
	assert_int_equal(channel_post(f->ch, IO_READ, works, 3, f), 0);
	assert_ptr_equal(expect_event(f->q, EV_DONE, -EACCES).cookie, f);
	expect_event(f->q, EV_CLOSED, -EACCES);
}

/* Batches posted before succeed; those after end with an error, each once. */
static void forged__amid_others(void **state)
{
	struct fixture *f = *state;
	struct region_key key = f->keys[0];
	int status[3];
	intptr_t posted;

	key.len += 1ULL << 30;
	forge(f, 0, key);
	assert_int_equal(post_one(f, IO_READ, 0, PAGE_BYTES, 2, 0, (void *)0), 0);
	assert_int_equal(post_one(f, IO_READ, 0, PAGE_BYTES, 0, REGION_BYTES, (void *)1), 0);
	posted = 2 + !post_one(f, IO_READ, 0, PAGE_BYTES, 2, 0, (void *)2);
	for (intptr_t i = 0; i < posted; i++) {
		struct event event = next_event(f->q);

		assert_int_equal(event.type, EV_DONE);
		assert_int_equal((intptr_t)event.cookie, i);
		status[i] = event.status;
	}
	expect_event(f->q, EV_CLOSED, -EACCES);
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], -EACCES);
	if (posted == 3)
		assert_int_not_equal(status[2], 0);
}

/* Not on shm: there a process that has the descriptor has the memory. */
static void forged__key_of_another_channel(void **state)
{
	struct fixture *f = *state;
	struct region_key keys[NREGIONS];
	struct channel *other;

	if (contract_kind == TRANSPORT_SHM)
		return;
	other = connect_channel(f);
	take_keys(f, other, keys);
	forge(f, 0, keys[0]);
	if (keys[0].rkey == f->keys[0].rkey) {
		/* One in 65,536 on tcp: the key is right by chance. */
		channel_delete(other);
		return;
	}
	expect_refused(f, IO_WRITE, 0, 0);
	channel_delete(other);
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(post__too_many_sges),
	CHANNEL_CASE(post__too_many_works),
	CHANNEL_CASE(post__unregistered_memory),
	CHANNEL_CASE(post__outside_the_region),
	CHANNEL_CASE(post__without_key_or_right),
	CHANNEL_CASE(post__one_bad_work),
	CHANNEL_CASE(mapped__what_no_transfer_would_reach),
	CHANNEL_CASE(set_key__invalid),
	CLIENT_CASE(register__invalid),
	CHANNEL_CASE(client__may_not_serve),
	SERVER_CASE(publish__invalid),
	SERVER_CASE(publish__once_a_region_and_not_too_many),
	CHANNEL_CASE(forged__read_beyond_the_end),
	CHANNEL_CASE(forged__write_beyond_the_end),
	CHANNEL_CASE(forged__unknown_rkey),
	CHANNEL_CASE(forged__write_by_a_read_key),
	CHANNEL_CASE(forged__one_of_a_batch),
	CHANNEL_CASE(forged__amid_others),
	CHANNEL_CASE(forged__key_of_another_channel),
};

const struct cases refusal_cases = {"refusal", tests, ARRAY_SIZE(tests), ALL_KINDS};
