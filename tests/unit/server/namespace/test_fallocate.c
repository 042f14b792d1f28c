/* test_fallocate.c - FALLOCATE: pages, bytes, size and times after each mode. */
#include "tests/unit/server/meta_fixture.h"

#include <linux/falloc.h>

enum {
	KEEP = FALLOC_FL_KEEP_SIZE,
	PUNCH = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	ZERO = FALLOC_FL_ZERO_RANGE,
};

static int step(uint64_t ino, uint32_t mode, uint64_t offset, uint64_t len)
{
	return FX_RUN(.op = RPC_FALLOCATE, .fallocate = {ino, mode, offset, len});
}

/* Repeats the request until all is done; returns the number of steps. */
static unsigned whole(uint64_t ino, uint32_t mode, uint64_t offset, uint64_t len)
{
	unsigned nsteps = 0;

	while (len) {
		assert_int_equal(step(ino, mode, offset, len), 0);
		assert_in_range(fx.rep.progress.done, 1, len);
		offset += fx.rep.progress.done;
		len -= fx.rep.progress.done;
		nsteps++;
	}
	return nsteps;
}

static uint32_t count_extents(uint64_t ino)
{
	struct rpc_request req = {.op = RPC_EXTENTS, .extents = {.ino = ino}};
	uint32_t n = 0;
	struct extent e;
	struct wire_in r;

	do {
		assert_int_equal(fx_run(&req), 0);
		r = rpc_tail_reader(&fx.rep.extents.tail);
		while (rpc_get_extent(&r, &e)) {
			req.extents.fpage = e.fpage + e.npages;
			n++;
		}
	} while (!fx.rep.extents.last);
	return n;
}

static void assert_bytes(const struct extent *e, uint64_t from, uint64_t to, uint8_t want)
{
	for (uint64_t i = from; i < to; i++)
		assert_int_equal(fx_page(e, 0)[i], want);
}

/* ---- allocating ------------------------------------------------------------------------------ */

static void allocate__one_extent_and_the_size(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx.ctx.now = 3000;
	assert_int_equal(step(ino, 0, 100, 300 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.progress.done, 300 * PAGE_BYTES);
	assert_int_equal(fx.rep.progress.attr.size, 300 * PAGE_BYTES + 100);
	assert_int_equal(fx.rep.progress.attr.npages, 301);
	assert_int_equal(fx.rep.progress.attr.mtime, 3000);
	assert_int_equal(fx.rep.progress.attr.ctime, 3000);
	assert_int_equal(count_extents(ino), 1);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 301);
}

static void allocate__beyond_the_end_keeps_the_size(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	assert_int_equal(step(ino, KEEP, 10 * PAGE_BYTES, 5 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.progress.attr.size, 0);
	assert_int_equal(fx.rep.progress.attr.npages, 5);
	/* Setting the same size drops them. */
	assert_int_equal(fx_truncate(ino, 0), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 0);
	/* Setting a greater size does not. */
	assert_int_equal(step(ino, KEEP, 10 * PAGE_BYTES, 5 * PAGE_BYTES), 0);
	assert_int_equal(fx_truncate(ino, 12 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 5);
	assert_int_equal(fx_truncate(ino, 11 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 1);
}

static void allocate__fills_the_holes_only(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 4, 2);

	memset(fx_page(&e, 0), 0x5a, 2 * PAGE_BYTES);
	assert_int_equal(whole(ino, 0, 0, 10 * PAGE_BYTES), 1);
	assert_int_equal(fx_attr(ino).npages, 10);
	assert_int_equal(fx_attr(ino).size, 10 * PAGE_BYTES);
	assert_bytes(&e, 0, 2 * PAGE_BYTES, 0x5a);
	assert_int_equal(whole(ino, 0, 0, 10 * PAGE_BYTES), 1);
	assert_int_equal(fx_attr(ino).npages, 10);
}

/* The size comes with the last step. */
static void allocate__of_many_holes_in_steps(void **state)
{
	uint64_t ino = fx_fragmented("file", 200), size = fx_attr(ino).size;

	assert_int_equal(step(ino, 0, 0, 500 * PAGE_BYTES), 0);
	assert_true(fx.rep.progress.done < 500 * PAGE_BYTES);
	assert_int_equal(fx.rep.progress.attr.size, size);
	assert_true(whole(ino, 0, 0, 500 * PAGE_BYTES) > 3);
	assert_int_equal(fx_attr(ino).size, 500 * PAGE_BYTES);
	assert_int_equal(fx_attr(ino).npages, 500);
}

static void allocate__spans_regions(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	whole(ino, 0, 0, FX_PAGES * PAGE_BYTES);
	assert_int_equal(count_extents(ino), 2);
	assert_int_equal(fx_usage().free_pages, 0);
}

static void allocate__no_space(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), size = (uint64_t)FX_PAGES * PAGE_BYTES;

	/* A request that can never succeed is not begun. */
	assert_int_equal(step(ino, 0, 0, size + 1), -ENOSPC);
	assert_int_equal(fx_attr(ino).npages, 0);
	assert_int_equal(step(ino, 0, 0, INT64_MAX), -ENOSPC);
	/* Nor is one that can't succeed while other files have their pages. */
	assert_int_equal(whole(fx_file(ROOT_INO, "other"), 0, 0, PAGE_BYTES), 1);
	assert_int_equal(step(ino, 0, 0, size), -ENOSPC);
	assert_int_equal(fx_attr(ino).npages, 0);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 1);
	size -= PAGE_BYTES;
	/* Pages granted to a client are not available now, so it goes as far as it can. */
	fx_grant_run(100);
	assert_int_equal(step(ino, 0, 0, size), 0);
	assert_int_equal(fx.rep.progress.done, size - 100 * PAGE_BYTES);
	assert_int_equal(fx.rep.progress.attr.size, 0);
	assert_int_equal(step(ino, 0, size - PAGE_BYTES, PAGE_BYTES), -ENOSPC);
	assert_true(fx.rep.text.len > 0);
	assert_int_equal(fx_attr(ino).size, 0);
}

static void allocate__waits_for_pages_that_are_scrubbed(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), size = (uint64_t)FX_PAGES * PAGE_BYTES;

	whole(ino, 0, 0, size);
	assert_int_equal(step(ino, PUNCH, 0, 8 * PAGE_BYTES), 0);
	assert_int_equal(step(ino, 0, 0, PAGE_BYTES), -EAGAIN);
	assert_int_equal(fx.result, OUTCOME_PARK);
	fx_settle();
	whole(ino, 0, 0, size);
}

/* The file's old pages, which the reaper has not freed yet, are in the way. */
static void allocate__waits_for_the_reaper(void **state)
{
	uint64_t ino = fx_fragmented("file", 300);

	assert_int_equal(fx_truncate(ino, 20 * PAGE_BYTES), 0);
	assert_int_equal(step(ino, 0, 15 * PAGE_BYTES, 20 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.progress.done, 5 * PAGE_BYTES);
	assert_int_equal(step(ino, 0, 20 * PAGE_BYTES, PAGE_BYTES), -EAGAIN);
	fx_check();
	fx_settle();
	assert_int_equal(step(ino, 0, 20 * PAGE_BYTES, PAGE_BYTES), 0);
}

static void allocate__grows_over_zeros(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_grant_run(4);

	assert_int_equal(fx_commit(ino, &e, 1, 10), 0);
	/* Bytes beyond the size that were never committed. */
	memset(fx_page(&e, 0), 0x55, 4 * PAGE_BYTES);
	assert_int_equal(whole(ino, 0, 0, 4 * PAGE_BYTES), 1);
	assert_bytes(&e, 0, 10, 0x55);
	assert_bytes(&e, 10, 4 * PAGE_BYTES, 0);
}

/* A greater size does the same, in several steps if it is far. */
static void size__grows_over_zeros(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), size = 700 * PAGE_BYTES - 5;
	struct extent e[2] = {fx_grant_run(4), fx_grant_run(600)};
	struct rpc_request req = {
		.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_SIZE, .size = size}};
	unsigned nsteps = 0;

	e[1].fpage = 100;
	assert_int_equal(fx_commit(ino, e, 2, 10), 0);
	memset(fx_page(&e[0], 0), 0x55, 4 * PAGE_BYTES);
	memset(fx_page(&e[1], 0), 0x55, 600 * PAGE_BYTES);
	do {
		assert_int_equal(fx_run(&req), 0);
		assert_in_range(fx.rep.attr.attr.size, 11, size);
		nsteps++;
	} while (fx.rep.attr.attr.size < size);
	assert_int_equal(nsteps, 3);
	assert_int_equal(fx.rep.attr.attr.npages, 604);
	assert_bytes(&e[0], 0, 10, 0x55);
	assert_bytes(&e[0], 10, 4 * PAGE_BYTES, 0);
	assert_bytes(&e[1], 0, 600 * PAGE_BYTES, 0);
}

/* A growth that ends before allocated pages leaves them alone. */
static void size__grows_before_pages(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_grant_run(4);

	e.fpage = 10;
	assert_int_equal(fx_commit(ino, &e, 1, 10), 0);
	memset(fx_page(&e, 0), 0x55, 4 * PAGE_BYTES);
	assert_int_equal(fx_truncate(ino, 10 * PAGE_BYTES), 0);
	assert_int_equal(fx_attr(ino).size, 10 * PAGE_BYTES);
	assert_bytes(&e, 0, 4 * PAGE_BYTES, 0x55);
	assert_int_equal(fx_truncate(ino, 11 * PAGE_BYTES - 1), 0);
	assert_bytes(&e, 0, PAGE_BYTES, 0);
	assert_bytes(&e, PAGE_BYTES, 4 * PAGE_BYTES, 0x55);
}

/* ---- punching -------------------------------------------------------------------------------- */

static void punch__whole_pages_go_and_edges_are_zero(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 8);

	memset(fx_page(&e, 0), 0x5a, 8 * PAGE_BYTES);
	fx.ctx.now = 4000;
	assert_int_equal(step(ino, PUNCH, PAGE_BYTES + 100, 4 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.progress.done, 4 * PAGE_BYTES);
	assert_int_equal(fx.rep.progress.attr.size, 8 * PAGE_BYTES);
	assert_int_equal(fx.rep.progress.attr.npages, 5);
	assert_int_equal(fx.rep.progress.attr.mtime, 4000);
	assert_bytes(&e, 0, PAGE_BYTES + 100, 0x5a);
	assert_bytes(&e, PAGE_BYTES + 100, 2 * PAGE_BYTES, 0);
	assert_bytes(&e, 5 * PAGE_BYTES, 5 * PAGE_BYTES + 100, 0);
	assert_bytes(&e, 5 * PAGE_BYTES + 100, 8 * PAGE_BYTES, 0x5a);
	assert_int_equal(fx_usage().dirty_pages, 3);
	assert_int_equal(count_extents(ino), 2);
}

static void punch__within_a_page(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 3);

	memset(fx_page(&e, 0), 0x5a, 3 * PAGE_BYTES);
	assert_int_equal(step(ino, PUNCH, PAGE_BYTES + 5, 10), 0);
	assert_int_equal(fx.rep.progress.done, 10);
	/* Parts of two pages, neither of them whole. */
	assert_int_equal(step(ino, PUNCH, 2 * PAGE_BYTES - 3, 9), 0);
	assert_int_equal(fx.rep.progress.done, 9);
	assert_int_equal(fx_attr(ino).npages, 3);
	assert_bytes(&e, PAGE_BYTES + 5, PAGE_BYTES + 15, 0);
	assert_bytes(&e, PAGE_BYTES + 15, 2 * PAGE_BYTES - 3, 0x5a);
	assert_bytes(&e, 2 * PAGE_BYTES - 3, 2 * PAGE_BYTES + 6, 0);
	assert_bytes(&e, 2 * PAGE_BYTES + 6, 3 * PAGE_BYTES, 0x5a);
}

static void punch__of_many_extents_in_steps(void **state)
{
	uint64_t ino = fx_fragmented("file", 200);

	assert_true(whole(ino, PUNCH, PAGE_BYTES, 397 * PAGE_BYTES) > 3);
	assert_int_equal(fx_attr(ino).npages, 2);
	assert_int_equal(count_extents(ino), 2);
	assert_int_equal(fx_attr(ino).size, 399 * PAGE_BYTES);
	assert_int_equal(whole(ino, PUNCH, 0, INT64_MAX), 1);
	assert_int_equal(fx_attr(ino).npages, 0);
}

/* Punches each single page of a file, whichever are left, then fills the file again. */
static void punch__at_every_place(void **state)
{
	enum { N = 12 };

	for (unsigned first = 0; first < N; first++) {
		uint64_t ino = fx_file(ROOT_INO, "file");
		struct extent e;

		fx_fill(ino, 0, N);
		for (unsigned i = 0; i < N; i++) {
			unsigned at = (first + i * 5) % N;

			assert_int_equal(whole(ino, PUNCH, at * PAGE_BYTES, PAGE_BYTES), 1);
			assert_int_equal(fx_attr(ino).npages, N - 1 - i);
			fx_check();
		}
		assert_int_equal(count_extents(ino), 0);
		fx_settle();
		e = fx_fill(ino, 0, N);
		assert_int_equal(e.npages, N);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
		assert_int_equal(fx_return_inode(ino), 0);
		fx_settle();
		assert_int_equal(fx_usage().free_pages, FX_PAGES);
	}
}

/* Extents that the reaper has not freed yet are not touched. */
static void punch__beside_hidden_extents(void **state)
{
	uint64_t ino = fx_fragmented("file", 300);

	assert_int_equal(fx_truncate(ino, 20 * PAGE_BYTES), 0);
	whole(ino, PUNCH, 0, 1000 * PAGE_BYTES);
	assert_int_equal(fx_attr(ino).npages, 0);
	assert_int_equal(fx_volume()->now.reap_pages, 290);
	fx_check();
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static void zero__bytes_and_holes(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 4);

	memset(fx_page(&e, 0), 0x5a, 4 * PAGE_BYTES);
	assert_int_equal(whole(ino, ZERO, 100, 6 * PAGE_BYTES), 1);
	assert_int_equal(fx_attr(ino).size, 6 * PAGE_BYTES + 100);
	assert_int_equal(fx_attr(ino).npages, 7);
	assert_bytes(&e, 0, 100, 0x5a);
	assert_bytes(&e, 100, 4 * PAGE_BYTES, 0);
}

static void zero__keeps_the_size(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 4);

	memset(fx_page(&e, 0), 0x5a, 4 * PAGE_BYTES);
	assert_int_equal(whole(ino, ZERO | KEEP, 2 * PAGE_BYTES, 4 * PAGE_BYTES - 7), 1);
	assert_int_equal(fx_attr(ino).size, 4 * PAGE_BYTES);
	assert_int_equal(fx_attr(ino).npages, 6);
	assert_bytes(&e, 0, 2 * PAGE_BYTES, 0x5a);
	assert_bytes(&e, 2 * PAGE_BYTES, 4 * PAGE_BYTES, 0);
}

static void zero__of_many_bytes_in_steps(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), len = 1000 * PAGE_BYTES - 10;
	struct extent e = fx_fill(ino, 0, 1000);

	memset(fx_page(&e, 0), 0x5a, 1000 * PAGE_BYTES);
	assert_int_equal(whole(ino, ZERO, 5, len), 4);
	assert_int_equal(count_extents(ino), 1);
	assert_bytes(&e, 0, 5, 0x5a);
	assert_bytes(&e, 5, len + 5, 0);
	assert_bytes(&e, len + 5, 1000 * PAGE_BYTES, 0x5a);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void fallocate__errors(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");
	uint32_t refused[] = {FALLOC_FL_PUNCH_HOLE, FALLOC_FL_COLLAPSE_RANGE,
		FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE, PUNCH | ZERO, 1u << 31};

	for (unsigned i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(step(ino, refused[i], 0, PAGE_BYTES), -EOPNOTSUPP);
	assert_int_equal(step(dir, 0, 0, 1), -EISDIR);
	assert_int_equal(fx_make(RPC_MKNOD, ROOT_INO, "fifo", S_IFIFO | 0600), 0);
	assert_int_equal(step(fx.rep.entry.attr.ino, 0, 0, 1), -ENODEV);
	assert_int_equal(step(4711, 0, 0, 1), -ESTALE);
	fx.ctx.read_only = true;
	assert_int_equal(step(ino, 0, 0, 1), -EROFS);
	fx.ctx.read_only = false;
	assert_int_equal(fx_attr(ino).npages, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(allocate__one_extent_and_the_size),
		CASE(allocate__beyond_the_end_keeps_the_size),
		CASE(allocate__fills_the_holes_only),
		CASE(allocate__of_many_holes_in_steps),
		CASE(allocate__spans_regions),
		CASE(allocate__no_space),
		CASE(allocate__waits_for_pages_that_are_scrubbed),
		CASE(allocate__waits_for_the_reaper),
		CASE(allocate__grows_over_zeros),
		CASE(size__grows_over_zeros),
		CASE(size__grows_before_pages),
		CASE(punch__whole_pages_go_and_edges_are_zero),
		CASE(punch__within_a_page),
		CASE(punch__of_many_extents_in_steps),
		CASE(punch__at_every_place),
		CASE(punch__beside_hidden_extents),
		CASE(zero__bytes_and_holes),
		CASE(zero__keeps_the_size),
		CASE(zero__of_many_bytes_in_steps),
		CASE(fallocate__errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
