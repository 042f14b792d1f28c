/* The room that a thread has while its requests wait for other clients, or are waited for by them.
 */
#include "tests/unit/daemon/lease_client.h"

#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/fuse/decode.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/lease/lease.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/way.h"
#include "daemon/fuse/receive.h"

enum { PAGE = 4096, KERNEL = 1, OURS = 0, FAR = 1000, PARKED_MAX = 64 << 20 };

static struct handle handle, other;
static int ends[2];
static uint64_t last;

static int setup_receiving(void **state)
{
	int r = setup(state);

	list_init(&fx.fs.giver.jobs);
	pthread_mutex_init(&fx.fs.giver.lock, NULL);
	pthread_cond_init(&fx.fs.giver.filled, NULL);
	fx.fs.features.direct_io_allow_mmap = true;
	session_renewal_init(fx.fs.renewal, &fx.fs, NULL);
	list_init(&fx.fs.threads[0].lock_waits);
	list_init(&fx.priv.parked);
	list_init(&fx.priv.free_requests);
	list_init(&fx.priv.used_requests);
	list_init(&fx.priv.free_notes);
	list_add_tail(&fx.priv.free_notes, &fx.priv.notes[0].link);
	handle = (struct handle){.inode = fx.inode};
	last = 0;
	fx.fs.requests.aside_max = UINT64_MAX;
	if (r || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends))
		return -1;
	fx.priv.fuse_fd = ends[OURS];
	return request_pools_init(&fx.thread, 2);
}

static int teardown_receiving(void **state)
{
	assert_int_equal(fx.priv.nused, 0);
	assert_int_equal(fx.priv.aside_bytes, 0);
	assert_int_equal(fx.fs.requests.aside_bytes, 0);
	request_pools_fini(&fx.thread);
	close(ends[0]);
	close(ends[1]);
	session_renewal_fini(fx.fs.renewal);
	return teardown(state);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

struct message {
	struct fuse_in_header h;
	union {
		struct fuse_read_in read;
		struct fuse_interrupt_in interrupt;
		struct {
			struct fuse_write_in write;
			uint8_t bytes[PAGE];
		};
	};
};

static uint64_t receive_of(
	struct message *m, const struct inode *inode, uint32_t opcode, size_t body)
{
	m->h = (struct fuse_in_header){
		.len = (uint32_t)(sizeof(m->h) + body),
		.opcode = opcode,
		.unique = ++last,
		.nodeid = inode_node(inode),
		.pid = m->h.pid,
	};
	assert_int_equal(send(ends[KERNEL], m, m->h.len, 0), m->h.len);
	assert_int_equal(fuse_receive(&fx.thread), RECEIVE_ONE);
	return last;
}

static uint64_t receive(struct message *m, uint32_t opcode, size_t body)
{
	return receive_of(m, fx.inode, opcode, body);
}

static uint64_t receive_read_by(const struct handle *h, uint64_t page)
{
	struct message m = {.read = {.fh = (uintptr_t)h, .offset = page * PAGE, .size = PAGE}};

	return receive_of(&m, h->inode, FUSE_READ, sizeof(m.read));
}

static uint64_t receive_read(uint64_t page)
{
	return receive_read_by(&handle, page);
}

/* A READ that bypasses the kernel's cache. */
static uint64_t receive_direct_read(void)
{
	struct message m = {
		.read = {
			.fh = (uintptr_t)&handle, .size = PAGE, .read_flags = FUSE_READ_LOCKOWNER}};

	return receive(&m, FUSE_READ, sizeof(m.read));
}

/* Waits for the server, whatever leases there are. */
static uint64_t receive_readlink(void)
{
	struct message m;

	return receive(&m, FUSE_READLINK, 0);
}

static uint64_t receive_write(uint64_t page)
{
	struct message m = {
		.write = {.fh = (uintptr_t)&handle, .offset = page * PAGE, .size = PAGE}};

	memset(m.bytes, 0x5a, sizeof(m.bytes));
	return receive(&m, FUSE_WRITE, sizeof(m.write) + sizeof(m.bytes));
}

static void receive_interrupt(uint64_t unique)
{
	struct message m = {.interrupt = {.unique = unique}};

	receive(&m, FUSE_INTERRUPT, sizeof(m.interrupt));
}

static void assert_not_answered(void)
{
	struct fuse_out_header out;

	assert_int_equal(recv(ends[KERNEL], &out, sizeof(out), 0), -1);
}

static void assert_answered(uint64_t unique, int error)
{
	struct fuse_out_header out;

	assert_int_equal(recv(ends[KERNEL], &out, sizeof(out), 0), sizeof(out));
	assert_int_equal(out.unique, unique);
	assert_int_equal(out.error, error);
}

static bool is_at(uint64_t unique, enum op_wait wait)
{
	struct request *req = request_find(&fx.thread, unique);

	return req && op_of(req)->wait == wait;
}

static bool waits_for_others(uint64_t unique)
{
	return is_at(unique, OP_AT_LEASE) && request_find(&fx.thread, unique)->aside;
}

/* An admitted request gets as far as its buffer. */
static bool is_inside(uint64_t unique)
{
	return is_at(unique, OP_AT_BUFFER);
}

static void take_buffers(void)
{
	assert_true(request_refill_recv(&fx.priv));
	list_init(&fx.priv.free_buffers);
}

/* More requests than there may be at once. */
static void receive_too_many(void)
{
	take_buffers();
	for (unsigned i = 0; i < THREAD_REQUESTS + 10; i++)
		receive_readlink();
	assert_true(is_at(UNRESERVED_REQUESTS, OP_AT_RPC));
	assert_null(request_find(&fx.thread, UNRESERVED_REQUESTS + 1));
	assert_int_equal(fx.priv.nused, UNRESERVED_REQUESTS);
	assert_int_equal(fuse_receive_parked(&fx.thread), 0);
}

/* ---- the lease ------------------------------------------------------------------------------- */

/* Two cached ranges are recalled; the first one is being dropped. */
static void recall_what_is_cached(void)
{
	open_with(LEASE_SHARED, 1);
	pthread_mutex_lock(&fx.inode->lock);
	assert_true(kernel_pages_make_locked(fx.inode));
	fx.inode->cached->pages->mapped = true;
	kernel_pages_note_locked(fx.inode, &fx.thread, (struct cached_range){0, PAGE}, true);
	kernel_pages_note_locked(
		fx.inode, &fx.thread, (struct cached_range){100 * PAGE, 101 * PAGE}, true);
	pthread_mutex_unlock(&fx.inode->lock);
	recall(1, LEASE_NONE);
	assert_true(fuse_receive_is_dropping(&fx.thread));
}

static void drop_next(void)
{
	struct list *link = list_pop(&fx.fs.giver.jobs);
	struct notifier_job *job;

	assert_non_null(link);
	job = list_entry(link, struct notifier_job, link);
	job->done(job);
	run_calls();
}

static void end_request(struct request *req, void *arg)
{
	struct fuse_out_header out;

	assert_true(op_cancel(req, -EINTR));
	run_calls();
	while (recv(ends[KERNEL], &out, sizeof(out), 0) > 0)
		;
}

/* No request waits here that could be asked for again. */
static void end_all(uint64_t number)
{
	fuse_receive_drop_parked(&fx.thread);
	request_each(&fx.thread, end_request, NULL);
	assert_int_equal(fx.priv.nused, 0);
	while (!list_empty(&fx.fs.giver.jobs))
		drop_next();
	assert_false(fuse_receive_is_dropping(&fx.thread));
	answer(take_return(number, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(number);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void receive__what_waits_at_the_server__leaves_requests_for_what_is_dropped(void **state)
{
	uint64_t read;

	recall_what_is_cached();
	receive_too_many();
	read = receive_read(0);
	assert_true(is_inside(read));
	assert_int_equal(fx.priv.nused, UNRESERVED_REQUESTS + 1);
	end_all(1);
}

static void receive__read_of_what_is_dropped_next__is_let_in_then(void **state)
{
	uint64_t read;

	recall_what_is_cached();
	receive_too_many();
	read = receive_read(100);
	assert_int_equal(fuse_receive_parked(&fx.thread), 0);
	assert_null(request_find(&fx.thread, read));
	drop_next();
	assert_int_equal(fuse_receive_parked(&fx.thread), 1);
	assert_true(is_inside(read));
	end_all(1);
}

static void receive__when_there_is_room_for_none__reads_on_while_pages_are_dropped(void **state)
{
	recall_what_is_cached();
	receive_too_many();
	fx.priv.parked_bytes += PARKED_MAX;
	assert_true(fuse_receive_ready(&fx.thread));
	assert_answered(receive_write(FAR), -ENOMEM);
	drop_next();
	drop_next();
	/* Tells the kernel its end. */
	drop_next();
	assert_false(fuse_receive_is_dropping(&fx.thread));
	assert_false(fuse_receive_ready(&fx.thread));
	fx.priv.parked_bytes -= PARKED_MAX;
	end_all(1);
}

static void wait_for_others__with_what_is_reserved__gives_it_back(void **state)
{
	struct message m = {.read = {.fh = (uintptr_t)&handle, .offset = FAR * PAGE, .size = PAGE}};
	struct request *req;

	recall_what_is_cached();
	receive_too_many();
	/* As if its range had been dropped just before the READ comes to the lease. */
	m.h = (struct fuse_in_header){.len = sizeof(m.h) + sizeof(m.read),
		.opcode = FUSE_READ,
		.unique = ++last,
		.nodeid = inode_node(fx.inode)};
	req = request_new(&fx.thread);
	assert_int_equal(fuse_decode(&m, m.h.len, req), 0);
	assert_int_equal(fx.priv.nused, UNRESERVED_REQUESTS + 1);
	way_barrier(req);
	assert_true(waits_for_others(last));
	assert_int_equal(fx.priv.nused, UNRESERVED_REQUESTS);
	end_all(1);
}

/* ---- messages set aside ---------------------------------------------------------------------- */

static void wait_for_others__of_any_number__leaves_requests_for_all_else(void **state)
{
	uint64_t link;

	recall_what_is_cached();
	for (unsigned i = 0; i < 2 * THREAD_REQUESTS; i++) {
		assert_true(fuse_receive_ready(&fx.thread));
		assert_true(waits_for_others(i % 2 ? receive_read(FAR + i) : receive_write(FAR)));
	}
	assert_int_equal(fx.priv.nused, 0);
	link = receive_readlink();
	assert_true(is_at(link, OP_AT_RPC));
	end_all(1);
}

/* Only the pin of the open file is left here. */
static void return_lease(void)
{
	open_with(LEASE_SHARED, 1);
	recall(1, LEASE_NONE);
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
}

static void close_all(uint64_t number)
{
	request_each(&fx.thread, end_request, NULL);
	recall(number, LEASE_NONE);
	answer(take_return(number, LEASE_NONE, RETURN_PIN), 0);
	close_and_return(number);
}

static unsigned count_inside(void)
{
	unsigned n = 0;

	for (uint64_t unique = 1; unique <= last; unique++)
		n += is_inside(unique);
	return n;
}

static void lease__that_many_have_waited_for__is_used_by_some_at_a_time(void **state)
{
	return_lease();
	take_buffers();
	for (unsigned i = 0; i < 3 * LEASE_TURN; i++)
		receive_direct_read();
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	assert_true(is_inside(LEASE_TURN));
	assert_int_equal(count_inside(), LEASE_TURN);
	/* A request that comes now queues behind them. */
	receive_direct_read();
	assert_true(waits_for_others(last));
	end_request(request_find(&fx.thread, 1), NULL);
	assert_true(is_inside(LEASE_TURN + 1));
	assert_int_equal(count_inside(), LEASE_TURN);
	assert_nothing_sent();
	close_all(2);
}

static void lease__recalled_while_many_wait__goes_back_after_those_that_use_it(void **state)
{
	return_lease();
	take_buffers();
	for (unsigned i = 0; i < 2 * LEASE_TURN; i++)
		receive_direct_read();
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 2);
	recall(2, LEASE_NONE);
	for (uint64_t unique = 1; unique <= LEASE_TURN; unique++) {
		assert_nothing_sent();
		end_request(request_find(&fx.thread, unique), NULL);
	}
	answer(take_return(2, LEASE_NONE, RETURN_PIN), 0);
	assert_int_equal(count_inside(), 0);
	grant(take_lease(LEASE_SHARED, 0), LEASE_SHARED, 3);
	assert_int_equal(count_inside(), LEASE_TURN);
	close_all(3);
}

static void wait_for_others__where_memory_ends__is_refused_to_many_of_one_inode(void **state)
{
	uint64_t read;

	other = (struct handle){.inode = inode_get(&fx.fs, INO + 1)};
	other.inode->type = S_IFREG;
	inode_remember(other.inode);
	recall_what_is_cached();
	fx.fs.requests.aside_max = 1;
	for (unsigned i = 0; i < 64; i++)
		assert_true(waits_for_others(receive_read(FAR + i)));
	assert_answered(receive_read(FAR), -ENOMEM);
	assert_true(request_refill_recv(&fx.priv));
	assert_answered(receive_write(FAR), -ENOMEM);
	assert_true(request_refill_recv(&fx.priv));
	read = receive_read_by(&other, 0);
	assert_true(waits_for_others(read));
	end_request(request_find(&fx.thread, read), NULL);
	inode_forget(other.inode, 1);
	inode_put(other.inode);
	end_all(1);
}

/* ---- what is read on for --------------------------------------------------------------------- */

enum { MUCH = ASIDE_BYTES, LONG_MS = 1000 };

static void receive__while_much_is_aside__waits_until_it_becomes_no_less(void **state)
{
	fx.priv.now = 1;
	fx.priv.aside_bytes = MUCH - 1;
	assert_true(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes = MUCH;
	assert_false(fuse_receive_ready(&fx.thread));
	fx.priv.now += LONG_MS;
	assert_true(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes += MUCH - 1;
	assert_true(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes += 1;
	assert_false(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes = 0;
}

static void receive__while_much_is_aside_and_becomes_less__waits(void **state)
{
	recall_what_is_cached();
	drop_next();
	drop_next();
	drop_next();
	assert_false(fuse_receive_is_dropping(&fx.thread));
	answer(take_return(1, LEASE_NONE, RETURN_PIN), 0);
	receive_read(FAR);
	receive_read(FAR);
	fx.priv.now = 1;
	fx.priv.aside_bytes += MUCH;
	for (unsigned i = 1; i <= 2; i++) {
		assert_false(fuse_receive_ready(&fx.thread));
		fx.priv.now += LONG_MS;
		end_request(request_find(&fx.thread, i), NULL);
		assert_false(fuse_receive_ready(&fx.thread));
	}
	fx.priv.now += LONG_MS;
	assert_true(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes -= MUCH;
	close_and_return(1);
}

static void receive__while_much_is_aside__reads_on_for_pages_that_are_dropped(void **state)
{
	recall_what_is_cached();
	fx.priv.now = 1;
	fx.priv.aside_bytes = MUCH;
	assert_true(fuse_receive_ready(&fx.thread));
	fx.priv.aside_bytes = 0;
	end_all(1);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void receive__writes_that_wait__keep_no_buffer(void **state)
{
	uint64_t write;

	recall_what_is_cached();
	for (unsigned i = 0; i < 10; i++) {
		assert_true(fuse_receive_ready(&fx.thread));
		write = receive_write(FAR + i);
		assert_true(waits_for_others(write));
		assert_null(request_find(&fx.thread, write)->buf);
	}
	end_all(1);
}

/* ---- signals --------------------------------------------------------------------------------- */

enum { WAIT_MS = 3000, READ_AT_MS = 500, SIGNALLED_AT_MS = 1000 };

/* It is read, but there is no room for it. pid 0: its caller belongs to another PID namespace. */
static uint64_t park(uint32_t opcode, uint32_t pid)
{
	struct message m = {.h = {.pid = pid}};
	size_t len = opcode == FUSE_FLUSH  ? sizeof(struct fuse_flush_in)
		     : opcode == FUSE_READ ? sizeof(m.read)
					   : 0;

	if (opcode == FUSE_READ)
		m.read = (struct fuse_read_in){
			.fh = (uintptr_t)&handle, .size = PAGE, .read_flags = FUSE_READ_LOCKOWNER};
	fx.fs.requests.interrupt_wait_ms = WAIT_MS;
	recall_what_is_cached();
	receive_too_many();
	fx.priv.now = READ_AT_MS;
	return receive(&m, opcode, len);
}

static uint64_t park_one_that_is_unseen(uint32_t opcode)
{
	return park(opcode, 0);
}

static void tick_at(int64_t now)
{
	fx.priv.now = now;
	fuse_receive_give_up_parked(&fx.thread);
}

static void parked__of_an_unseen_caller__ends_some_time_after_a_signal(void **state)
{
	uint64_t parked = park_one_that_is_unseen(FUSE_READLINK);

	fx.priv.now = SIGNALLED_AT_MS;
	receive_interrupt(parked);
	tick_at(SIGNALLED_AT_MS + WAIT_MS - 1);
	assert_not_answered();
	tick_at(SIGNALLED_AT_MS + WAIT_MS);
	assert_answered(parked, -EINTR);
	end_all(1);
}

static void parked__of_an_unseen_caller__without_a_signal__waits(void **state)
{
	park_one_that_is_unseen(FUSE_READLINK);
	tick_at(READ_AT_MS + 2 * WAIT_MS);
	assert_not_answered();
	end_all(1);
}

/* Then no signal is reported. */
static void parked__flush_of_an_unseen_caller__ends_some_time_after_the_server_is_away(void **state)
{
	uint64_t parked = park_one_that_is_unseen(FUSE_FLUSH);

	tick_at(SIGNALLED_AT_MS);
	assert_not_answered();
	fx.remote.missed = true;
	tick_at(SIGNALLED_AT_MS);
	tick_at(SIGNALLED_AT_MS + WAIT_MS - 1);
	assert_not_answered();
	tick_at(SIGNALLED_AT_MS + WAIT_MS);
	assert_answered(parked, -EINTR);
	fx.remote.missed = false;
	end_all(1);
}

static void parked__direct_read_of_one_that_is_killed__ends_when_the_server_is_away(void **state)
{
	pid_t pid = fork();
	uint64_t parked;

	if (!pid)
		for (;;)
			pause();
	parked = park(FUSE_READ, (uint32_t)pid);
	tick_at(SIGNALLED_AT_MS);
	assert_not_answered();
	fx.remote.missed = true;
	tick_at(SIGNALLED_AT_MS);
	assert_not_answered();
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tick_at(SIGNALLED_AT_MS);
	assert_answered(parked, -EINTR);
	fx.remote.missed = false;
	end_all(1);
}

static void parked__direct_read_of_an_unseen_caller__without_a_signal__waits(void **state)
{
	park(FUSE_READ, 0);
	fx.remote.missed = true;
	tick_at(READ_AT_MS + 2 * WAIT_MS);
	assert_not_answered();
	fx.remote.missed = false;
	end_all(1);
}

static void parked__that_was_interrupted__is_so_as_a_request(void **state)
{
	uint64_t parked = park_one_that_is_unseen(FUSE_READLINK);
	struct request *req;

	fx.priv.now = SIGNALLED_AT_MS;
	receive_interrupt(parked);
	fx.priv.now = SIGNALLED_AT_MS + 1;
	request_each(&fx.thread, end_request, NULL);
	fuse_receive_parked(&fx.thread);
	req = request_find(&fx.thread, parked);
	assert_non_null(req);
	assert_true(req->interrupted);
	assert_int_equal(req->since_ms, SIGNALLED_AT_MS);
	end_all(1);
}

static void stow__of_a_value__keeps_it_and_its_name(void **state)
{
	struct request *req = request_new(&fx.thread);
	static const char payload[] = "user.a\0value";
	uint8_t *data;

	assert_true(request_take_buffer(req, NULL));
	data = req->buf->data;
	memcpy(data, payload, sizeof(payload));
	req->op = OP_SETXATTR;
	req->args.name = (const char *)data;
	req->args.value = data + 7;
	req->args.size = 5;
	assert_true(request_stow(req));
	assert_null(req->buf);
	memset(data, 0, 12);
	assert_string_equal(req->args.name, "user.a");
	assert_memory_equal(req->args.value, "value", 5);
	request_end(req);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_receiving, teardown_receiving)
		CASE(receive__what_waits_at_the_server__leaves_requests_for_what_is_dropped),
		CASE(receive__read_of_what_is_dropped_next__is_let_in_then),
		CASE(receive__when_there_is_room_for_none__reads_on_while_pages_are_dropped),
		CASE(wait_for_others__with_what_is_reserved__gives_it_back),
		CASE(wait_for_others__of_any_number__leaves_requests_for_all_else),
		CASE(lease__that_many_have_waited_for__is_used_by_some_at_a_time),
		CASE(lease__recalled_while_many_wait__goes_back_after_those_that_use_it),
		CASE(wait_for_others__where_memory_ends__is_refused_to_many_of_one_inode),
		CASE(receive__while_much_is_aside__waits_until_it_becomes_no_less),
		CASE(receive__while_much_is_aside_and_becomes_less__waits),
		CASE(receive__while_much_is_aside__reads_on_for_pages_that_are_dropped),
		CASE(receive__writes_that_wait__keep_no_buffer),
		CASE(parked__of_an_unseen_caller__ends_some_time_after_a_signal),
		CASE(parked__of_an_unseen_caller__without_a_signal__waits),
		CASE(parked__flush_of_an_unseen_caller__ends_some_time_after_the_server_is_away),
		CASE(parked__direct_read_of_one_that_is_killed__ends_when_the_server_is_away),
		CASE(parked__direct_read_of_an_unseen_caller__without_a_signal__waits),
		CASE(parked__that_was_interrupted__is_so_as_a_request),
		CASE(stow__of_a_value__keeps_it_and_its_name),
#undef CASE
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
