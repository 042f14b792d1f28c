/* contract_end.c - peers that die, and fencing those that don't. */
#include "tests/unit/common/transport/contract.h"

#include <signal.h>

static void start_client(struct fixture *f)
{
	int memory[NREGIONS];

	for (int i = 0; i < NREGIONS; i++)
		memory[i] = f->memory[i].fd;
	peer_start(&f->peer, ROLE_CLIENT, memory, &f->address);
}

/* Batches that the server can't answer any more: each ends once, then the channel ends. */
static void death__of_the_server(void **state)
{
	struct fixture *f = *state;
	uintptr_t posted = 0, done = 0;
	struct event event;

	peer_freeze(&f->peer);
	while (!post_one(f, IO_WRITE, 0, 1 << 20, 0, 0, (void *)posted))
		posted++;
	assert_true(posted > 0);
	peer_kill(&f->peer);
	for (event = next_event(f->q); event.type == EV_DONE; event = next_event(f->q))
		assert_int_equal((uintptr_t)event.cookie, done++);
	assert_int_equal(event.type, EV_CLOSED);
	assert_int_equal(event.status, -ECONNRESET);
	assert_int_equal(done, posted);
	expect_silence(f->q, 0);
	assert_int_equal(post_one(f, IO_READ, 0, 1, 0, 0, NULL), -ENOTCONN);
}

static void death__of_an_idle_server(void **state)
{
	struct fixture *f = *state;

	peer_kill(&f->peer);
	expect_event(f->q, EV_CLOSED, -ECONNRESET);
}

static void death__of_the_client(void **state)
{
	struct fixture *f = *state;
	struct channel *ch;
	struct event event;

	start_client(f);
	ch = accept_channel(f);
	peer_expect(&f->peer, PEER_OPEN);
	peer_expect(&f->peer, PEER_WROTE);
	peer_kill(&f->peer);
	event = expect_event(f->q, EV_CLOSED, -ECONNRESET);
	assert_true(event.hung_up);
	fence_delete(f, ch);
	expect_silence(f->q, 0);
}

/* The client lives, and ends the channel in order. */
static void end__of_the_client_in_order(void **state)
{
	struct fixture *f = *state;
	struct event event;
	struct channel *ch;

	start_client(f);
	ch = accept_channel(f);
	peer_expect(&f->peer, PEER_OPEN);
	peer_expect(&f->peer, PEER_WROTE);
	peer_tell(&f->peer, PEER_RELEASE);
	event = expect_event(f->q, EV_CLOSED, 0);
	assert_false(event.hung_up);
	peer_stop(&f->peer);
	fence_delete(f, ch);
}

/* A client stopped in the middle of its WRITEs: once it is fenced, none of its bytes land, even
 * when it continues. On shm only the end of the process fences. */
static void fence__of_a_stopped_client(void **state)
{
	struct fixture *f = *state;
	struct channel *ch;

	start_client(f);
	ch = accept_channel(f);
	peer_expect(&f->peer, PEER_OPEN);
	peer_expect(&f->peer, PEER_WROTE);
	peer_freeze(&f->peer);
	assert_int_equal(channel_fence(ch), 0);
	if (contract_kind == TRANSPORT_SHM) {
		expect_silence(f->q, 200);
		peer_kill(&f->peer);
	}
	assert_ptr_equal(expect_event(f->q, EV_FENCED, 0).channel, ch);
	fill_pattern(f->memory[0].addr, REGION_BYTES, 30);
	if (contract_kind != TRANSPORT_SHM) {
		assert_int_equal(kill(f->peer.pid, SIGCONT), 0);
		assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, -ECONNRESET);
	}
	assert_pattern(f->memory[0].addr, REGION_BYTES, 30);
	channel_delete(ch);
}

static void fence__of_a_busy_client(void **state)
{
	struct fixture *f = *state;

	if (contract_kind == TRANSPORT_SHM)
		return; /* here, too, only the process's end fences */
	for (unsigned i = 0; i < 5; i++) {
		struct channel *ch;

		start_client(f);
		ch = accept_channel(f);
		peer_expect(&f->peer, PEER_OPEN);
		peer_expect(&f->peer, PEER_WROTE);
		assert_int_equal(channel_fence(ch), 0);
		assert_ptr_equal(expect_event(f->q, EV_FENCED, 0).channel, ch);
		fill_pattern(f->memory[0].addr, REGION_BYTES, 31 + i);
		assert_int_equal(peer_expect(&f->peer, PEER_CLOSED).status, -ECONNRESET);
		assert_pattern(f->memory[0].addr, REGION_BYTES, 31 + i);
		channel_delete(ch);
		peer_stop(&f->peer);
	}
}

static const struct CMUnitTest tests[] = {
	CHANNEL_CASE(death__of_the_server),
	CHANNEL_CASE(death__of_an_idle_server),
	SERVER_CASE(death__of_the_client),
	SERVER_CASE(end__of_the_client_in_order),
	SERVER_CASE(fence__of_a_stopped_client),
	SERVER_CASE(fence__of_a_busy_client),
};

const struct cases end_cases = {"end", tests, ARRAY_SIZE(tests), ALL_KINDS};
