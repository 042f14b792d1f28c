/* The pages that a write must ask for while a snapshot is in progress, and when FROZEN is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_private.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/fs.h"

enum { INO = 71, SNAPSHOT = 5, REGION_PAGES = 1000, NREGIONS = 3, MAX = 8, THREADS = 2 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct inode *inode;
};

/* An answer to FROZEN: no page was asked for yet. */
static void remember(struct fixture *fx)
{
	snapshot_freeze_forget_pages(fx->fs.freeze, SNAPSHOT);
	assert_int_equal(atomic_load(&fx->fs.freeze->bits_id), SNAPSHOT);
}

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	if (!fx)
		return -1;
	fs_wire(&fx->fs, &fx->parts);
	if (inode_table_init(fx->fs.inodes, &inode_parts_hooks))
		return -1;
	fx->fs.session = &fx->session;
	atomic_store(&fx->session.snapshot, SNAPSHOT);
	atomic_store(&fx->session.nregions, NREGIONS);
	atomic_store(&fx->session.region_bytes, (uint64_t)REGION_PAGES << PAGE_SHIFT);
	grants_init(fx->fs.grants);
	snapshot_freeze_init(fx->fs.freeze, &fx->fs);
	fx->inode = inode_get(&fx->fs, INO);
	fx->inode->written_to = UINT64_MAX;
	*state = fx;
	return fx->inode ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	inode_table_fini(fx->fs.inodes);
	snapshot_freeze_fini(fx->fs.freeze);
	grants_fini(fx->fs.grants);
	free(fx);
	return 0;
}

static void put(struct fixture *fx, uint64_t fpage, uint32_t npages, uint16_t region, uint32_t page,
	enum extent_state state)
{
	struct extent e = {.fpage = fpage, .npages = npages, .page = page, .region = region};

	assert_int_equal(extent_map_insert(&fx->inode->map, &e, state), 0);
}

static unsigned ask(struct fixture *fx, uint64_t from, uint64_t end, struct extent out[MAX])
{
	uint64_t fpage = from;
	unsigned n = snapshot_freeze_protected_locked(fx->inode, &fpage, end, out, MAX);

	assert_true(n == MAX || fpage == end);
	return n;
}

static void assert_extent(const struct extent *e, uint16_t region, uint32_t page, uint32_t npages)
{
	assert_int_equal(e->region, region);
	assert_int_equal(e->page, page);
	assert_int_equal(e->npages, npages);
}

/* Pages from grants came after the marker. A page whose COMMIT is not answered may have come
 * before.
 */
static void protected__what_may_be_in_the_marker(void **state)
{
	struct fixture *fx = *state;
	struct extent out[MAX];

	remember(fx);
	put(fx, 0, 10, 0, 100, EXTENT_COMMITTED);
	put(fx, 10, 10, 0, 200, EXTENT_DIRTY);
	put(fx, 20, 10, 0, 300, EXTENT_FILLING);
	put(fx, 30, 10, 2, 400, EXTENT_COMMITTING);
	assert_int_equal(ask(fx, 5, 100, out), 2);
	assert_extent(&out[0], 0, 105, 5);
	assert_extent(&out[1], 2, 400, 10);
	assert_int_equal(ask(fx, 10, 30, out), 0);
	assert_int_equal(ask(fx, 40, 100, out), 0);
}

static void protected__what_was_asked_for_is_not_asked_again(void **state)
{
	struct fixture *fx = *state;
	struct extent out[MAX], asked = {.npages = 10, .page = 110, .region = 1};

	remember(fx);
	put(fx, 0, 50, 1, 100, EXTENT_COMMITTED);
	snapshot_freeze_unprotected(&fx->fs, &asked, 1);
	assert_int_equal(ask(fx, 10, 20, out), 0);
	assert_int_equal(ask(fx, 15, 22, out), 1);
	assert_extent(&out[0], 1, 120, 2);
	assert_int_equal(ask(fx, 8, 12, out), 1);
	assert_extent(&out[0], 1, 108, 4);
	/* The same page numbers in other regions are other pages. */
	put(fx, 100, 10, 0, 110, EXTENT_COMMITTED);
	put(fx, 200, 10, 2, 110, EXTENT_COMMITTED);
	assert_int_equal(ask(fx, 100, 300, out), 2);
}

static void protected__of_another_snapshot__all_is_asked_for(void **state)
{
	struct fixture *fx = *state;
	struct extent out[MAX], asked = {.npages = 50, .page = 100};

	remember(fx);
	put(fx, 0, 50, 0, 100, EXTENT_COMMITTED);
	snapshot_freeze_unprotected(&fx->fs, &asked, 1);
	assert_int_equal(ask(fx, 0, 50, out), 0);
	atomic_store(&fx->session.snapshot, SNAPSHOT + 1);
	assert_int_equal(ask(fx, 0, 50, out), 1);
	assert_extent(&out[0], 0, 100, 50);
	/* An answer that was meant for that snapshot is not remembered, either. */
	snapshot_freeze_unprotected(&fx->fs, &asked, 1);
	snapshot_freeze_forget_pages(fx->fs.freeze, SNAPSHOT + 1);
	assert_int_equal(ask(fx, 0, 50, out), 1);
}

/* Between two snapshots the server was restarted with more regions, or fewer. */
static void forget__of_an_export_that_has_another_size(void **state)
{
	static const unsigned sizes[] = {NREGIONS, 3 * NREGIONS, NREGIONS - 1};
	struct fixture *fx = *state;
	struct extent out[MAX];

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint16_t last = (uint16_t)(sizes[i] - 1);
		struct extent asked = {.npages = 50, .page = 950, .region = last};

		atomic_store(&fx->session.nregions, sizes[i]);
		remember(fx);
		put(fx, i * 100, 50, last, 950, EXTENT_COMMITTED);
		assert_int_equal(ask(fx, i * 100, i * 100 + 50, out), 1);
		snapshot_freeze_unprotected(&fx->fs, &asked, 1);
		assert_int_equal(ask(fx, i * 100, i * 100 + 50, out), 0);
	}
}

/* A file that is written in order asks for the next pages along with it. */
static void protected__in_order__some_ahead(void **state)
{
	struct fixture *fx = *state;
	struct extent out[MAX];

	remember(fx);
	put(fx, 0, 900, 0, 0, EXTENT_COMMITTED);
	assert_int_equal(ask(fx, 10, 20, out), 1);
	assert_extent(&out[0], 0, 10, 10);
	fx->inode->written_to = 10;
	assert_int_equal(ask(fx, 10, 20, out), 1);
	assert_extent(&out[0], 0, 10, 10 + 512);
	snapshot_freeze_unprotected(&fx->fs, out, 1);
	fx->inode->written_to = 20;
	assert_int_equal(ask(fx, 20, 532, out), 0);
	/* At most to the extent's end. */
	fx->inode->written_to = 850;
	assert_int_equal(ask(fx, 850, 860, out), 1);
	assert_extent(&out[0], 0, 850, 50);
}

static void protected__more_than_fit__in_turns(void **state)
{
	struct fixture *fx = *state;
	struct extent out[MAX];
	uint64_t fpage = 0;
	unsigned n, total = 0;

	remember(fx);
	for (uint32_t i = 0; i < 20; i++)
		put(fx, i * 2, 1, 0, 900 - i * 3, EXTENT_COMMITTED);
	do {
		n = snapshot_freeze_protected_locked(fx->inode, &fpage, 40, out, MAX);
		snapshot_freeze_unprotected(&fx->fs, out, n);
		for (unsigned i = 0; i < n; i++)
			assert_extent(&out[i], 0, 900 - (total + i) * 3, 1);
		total += n;
	} while (n);
	assert_int_equal(total, 20);
	assert_int_equal(fpage, 40);
	assert_int_equal(ask(fx, 0, 40, out), 0);
}

static void enter__counted_until_left(void **state)
{
	struct fixture *fx = *state;
	static struct request req;
	struct io_thread thread = {.fs = &fx->fs, .shared = &fx->fs.requests, .ops = &fs_fuse_ops};
	struct freeze_thread *t = fx->fs.threads[0].freeze;

	snapshot_freeze_thread_init(t, &thread);
	req = (struct request){.thread = &thread};
	assert_true(snapshot_freeze_enter(&req, NULL));
	assert_int_equal(t->nwriting, 1);
	snapshot_freeze_leave(&req);
	assert_int_equal(t->nwriting, 0);
	/* A snapshot that waits for FROZEN lets no write begin. */
	t->id = SNAPSHOT;
	assert_false(snapshot_freeze_enter(&req, NULL));
	assert_int_equal(t->nwriting, 0);
	assert_int_equal(op_of(&req)->wait, OP_AT_FREEZE);
	assert_false(list_empty(&t->held));
}

/* ---- several threads ------------------------------------------------------------------------- */

/* The test turns their loops: sent calls stay with their remotes, which are down. */
struct crew {
	struct fixture *fx;
	struct io_thread threads[THREADS];
	struct io_thread_private privs[THREADS];
	struct remote remotes[THREADS];
};

static void crew_init(struct crew *crew, struct fixture *fx)
{
	*crew = (struct crew){.fx = fx};
	fx->fs.options.session.io_threads = THREADS;
	pthread_mutex_init(&fx->session.lock, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		struct fs_thread *ft = &fx->fs.threads[i];

		crew->threads[i] = (struct io_thread){.index = i,
			.fs = &fx->fs,
			.shared = &fx->fs.requests,
			.ops = &fs_fuse_ops,
			.priv = &crew->privs[i],
			.remote = &crew->remotes[i]};
		pthread_mutex_init(&crew->privs[i].inbox_lock, NULL);
		list_init(&crew->privs[i].inbox);
		crew->privs[i].wake_fd = -1;
		slots_init(&crew->remotes[i]);
		ft->thread = &crew->threads[i];
		list_init(&ft->dirty);
		snapshot_freeze_thread_init(ft->freeze, ft->thread);
		make_batch_init(ft->makes, ft->thread, &commit_make_hooks);
	}
}

/* The session gets this from PING's reply. */
static void told(struct crew *crew, uint64_t freezing)
{
	atomic_store(&crew->fx->session.freezing, freezing);
}

static void step(struct crew *crew, unsigned thread)
{
	snapshot_freeze_step(&crew->threads[thread]);
}

/* Runs the threads' calls until none is left. */
static void run_calls(struct crew *crew)
{
	struct list *link;

	for (unsigned i = 0; i < THREADS; i++)
		while ((link = list_pop(&crew->privs[i].inbox))) {
			struct thread_call *call = list_entry(link, struct thread_call, link);

			call->run(call);
			i = 0;
		}
}

/* Takes the FROZEN that was sent last; returns 0 if there was none. */
static uint64_t take_frozen(struct crew *crew)
{
	for (unsigned i = 0; i < THREADS; i++) {
		struct list *link = list_pop(&crew->remotes[i].rpc_waiting_nested);

		if (link)
			return list_entry(link, struct rpc_call, link)->req.frozen.snapshot;
	}
	return 0;
}

static void answer_frozen(struct crew *crew)
{
	struct rpc_call *call = &crew->fx->fs.freeze->call;

	call->done(call, &(struct rpc_reply){.op = RPC_FROZEN});
	run_calls(crew);
}

static void frozen__sent_once_when_no_thread_writes(void **state)
{
	static struct crew crew;
	static struct request req;

	crew_init(&crew, *state);
	req = (struct request){.thread = &crew.threads[1]};
	assert_true(snapshot_freeze_enter(&req, NULL));
	told(&crew, SNAPSHOT);
	step(&crew, 0);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), 0);
	snapshot_freeze_leave(&req);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), SNAPSHOT);
	for (unsigned i = 0; i < THREADS; i++)
		step(&crew, i);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), 0);
	answer_frozen(&crew);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(crew.fx->fs.threads[i].freeze->id, 0);
}

/* The state has changed since it began its turn: the others have gone further meanwhile, and what
 * they have said holds. */
static void frozen__a_thread_that_hears_late_holds_up_nothing(void **state)
{
	static struct crew crew;

	crew_init(&crew, *state);
	told(&crew, SNAPSHOT);
	step(&crew, 1);
	told(&crew, SNAPSHOT + 1);
	step(&crew, 0);
	told(&crew, 0);
	step(&crew, 1);
	told(&crew, SNAPSHOT + 1);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), SNAPSHOT + 1);
	answer_frozen(&crew);
}

static void frozen__of_the_next_snapshot__after_the_answer(void **state)
{
	static struct crew crew;

	crew_init(&crew, *state);
	told(&crew, SNAPSHOT);
	step(&crew, 0);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), SNAPSHOT);
	told(&crew, SNAPSHOT + 1);
	step(&crew, 1);
	run_calls(&crew);
	assert_int_equal(take_frozen(&crew), 0);
	answer_frozen(&crew);
	assert_int_equal(take_frozen(&crew), SNAPSHOT + 1);
	answer_frozen(&crew);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(protected__what_may_be_in_the_marker),
		CASE(protected__what_was_asked_for_is_not_asked_again),
		CASE(protected__of_another_snapshot__all_is_asked_for),
		CASE(forget__of_an_export_that_has_another_size),
		CASE(protected__in_order__some_ahead),
		CASE(protected__more_than_fit__in_turns),
		CASE(enter__counted_until_left),
		CASE(frozen__sent_once_when_no_thread_writes),
		CASE(frozen__a_thread_that_hears_late_holds_up_nothing),
		CASE(frozen__of_the_next_snapshot__after_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
