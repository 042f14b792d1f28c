/* test_data.c - pages: grants, commits, extents, truncation, reaper, scrubber, sessions. */
#include "tests/unit/server/meta_fixture.h"

#include "server/record/inode.h"

/* ---- grants ---------------------------------------------------------------------------------- */

static void grant__is_one_run_where_it_can(void **state)
{
	struct extent a = fx_grant_run(100), b = fx_grant_run(200);

	assert_true(a.region != b.region || a.page + a.npages <= b.page);
	assert_int_equal(fx_usage().granted_pages, 300);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 300);
}

static void grant__spans_regions_in_several_runs(void **state)
{
	assert_int_equal(fx_grant(FX_PAGES, false), 0);
	assert_int_equal(fx.rep.grant.ngrant, 2);
	assert_int_equal(fx.rep.grant.grant[0].npages + fx.rep.grant.grant[1].npages, FX_PAGES);
	assert_int_equal(fx_grant(1, false), -ENOSPC);
	assert_true(fx.rep.text.len > 0);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_int_equal(fx_grant(0, false), -EINVAL);
}

static unsigned three(const void *asker)
{
	return 3;
}

static void grant__leaves_as_much_for_each_who_writes(void **state)
{
	uint64_t left = FX_PAGES;

	fx.ctx.sharers = three;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(fx_grant(FX_PAGES, false), 0);
		left -= left / 6;
		assert_int_equal(fx_usage().free_pages, left);
	}
	/* The last pages can be granted, too. */
	while (left) {
		assert_int_equal(fx_grant(1, false), 0);
		left--;
	}
	assert_int_equal(fx_grant(1, false), -ENOSPC);
}

static unsigned one(const void *asker)
{
	return 1;
}

static unsigned none(const void *asker)
{
	return 0;
}

static void grant__leaves_half_beside_those_who_read(void **state)
{
	fx.ctx.sharers = one;
	assert_int_equal(fx_grant(FX_PAGES, false), 0);
	assert_int_equal(fx_usage().free_pages, FX_PAGES / 2);
	fx.ctx.sharers = none;
	assert_int_equal(fx_grant(FX_PAGES, false), 0);
	assert_int_equal(fx_usage().free_pages, 0);
}

static void grant__gives_at_most_eight_runs(void **state)
{
	struct extent e[40];

	for (unsigned i = 0; i < ARRAY_SIZE(e); i++)
		e[i] = fx_grant_run(1);
	fx_grant(FX_PAGES, false);
	for (unsigned i = 0; i < ARRAY_SIZE(e); i += 2)
		assert_int_equal(fx_return_grants(&e[i], 1), 0);
	fx_settle();
	assert_int_equal(fx_grant(20, false), 0);
	assert_int_equal(fx.rep.grant.ngrant, GRANT_EXTENTS);
	assert_int_equal(fx_usage().free_pages, 20 - GRANT_EXTENTS);
}

static void grant__waits_for_pages_that_are_scrubbed(void **state)
{
	struct extent e;
	bool more;

	fx_grant(FX_PAGES, false);
	e = fx.rep.grant.grant[0];
	assert_int_equal(fx_return_grants(&e, 1), 0);
	assert_int_equal(fx_grant(1, false), -ENOSPC);
	assert_int_equal(fx_grant(1, true), -EAGAIN);
	assert_int_equal(fx.result, OUTCOME_PARK);
	fx_reclaim(&more);
	fx_settle();
	assert_int_equal(fx_grant(1, true), 0);
}

static void grant__pages_are_zero(void **state)
{
	struct extent e = fx_grant_run(FX_REGION_PAGES);
	static const uint8_t zero[PAGE_BYTES];

	memset(fx_page(&e, 0), 0xab, (size_t)e.npages * PAGE_BYTES);
	assert_int_equal(fx_return_grants(&e, 1), 0);
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
	e = fx_grant_run(FX_REGION_PAGES);
	for (uint32_t i = 0; i < e.npages; i++)
		assert_memory_equal(fx_page(&e, i), zero, PAGE_BYTES);
}

static void return_all__takes_what_the_session_has_not_used(void **state)
{
	uint64_t first = fx.ctx.session, ino = fx_file(ROOT_INO, "a"), others;
	struct extent used = fx_fill(ino, 0, 3), e, runs[600];

	for (unsigned i = 0; i < ARRAY_SIZE(runs); i++)
		runs[i] = fx_grant_run(1);
	for (unsigned i = 0; i < ARRAY_SIZE(runs); i += 2)
		assert_int_equal(fx_return_grants(&runs[i], 1), 0);
	fx.ctx.session = fx_new_session();
	e = fx_grant_run(5);
	others = fx.ctx.session;
	fx.ctx.session = first;
	assert_int_equal(FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_ALL}), -EINPROGRESS);
	while (FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_ALL}) == -EINPROGRESS)
		continue;
	assert_int_equal(fx.rep.status, 0);
	fx_settle();
	assert_int_equal(fx_usage().granted_pages, 5);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 5 - 3);
	assert_int_equal(FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_ALL}), 0);
	assert_int_equal(fx_return_grants(&used, 1), -EINVAL);
	fx_grant_run(1);
	fx.ctx.session = others;
	assert_int_equal(fx_return_grants(&e, 1), 0);
}

static void return__errors(void **state)
{
	struct extent e[2] = {fx_grant_run(10)}, other;

	e[1] = e[0];
	assert_int_equal(fx_return_grants(e, 2), -EINVAL);
	other = e[0];
	other.npages = 11;
	assert_int_equal(fx_return_grants(&other, 1), -EINVAL);
	other.npages = 0;
	assert_int_equal(fx_return_grants(&other, 1), -EINVAL);
	other = e[0];
	other.region = 9;
	assert_int_equal(fx_return_grants(&other, 1), -EINVAL);
	other = e[0];
	other.target = 1;
	assert_int_equal(fx_return_grants(&other, 1), -EINVAL);
	fx.ctx.session = fx_new_session();
	assert_int_equal(fx_return_grants(e, 1), -EINVAL);
	assert_int_equal(FX_RUN(.op = RPC_RETURN, .ret = {.kind = 7}), -EINVAL);
	assert_int_equal(
		FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_INODES, .tail = {fx.out, 5}}),
		-EINVAL);
	assert_int_equal(fx_usage().granted_pages, 10);
}

/* ---- commit ---------------------------------------------------------------------------------- */

static void commit__maps_parts_of_grants(void **state)
{
	struct extent e = fx_grant_run(10), mid = e;
	uint64_t ino = fx_file(ROOT_INO, "file");

	mid.page += 4;
	mid.npages = 3;
	mid.fpage = 100;
	fx.ctx.now = 4000;
	assert_int_equal(fx_commit(ino, &mid, 1, 103 * PAGE_BYTES - 5), 0);
	assert_int_equal(fx.rep.attr.attr.size, 103 * PAGE_BYTES - 5);
	assert_int_equal(fx.rep.attr.attr.npages, 3);
	assert_int_equal(fx.rep.attr.attr.mtime, 4000);
	assert_int_equal(fx.rep.attr.attr.ctime, 4000);
	assert_int_equal(fx_usage().granted_pages, 7);
	/* The middle part is not granted any more. */
	e.fpage = 200;
	assert_int_equal(fx_commit(ino, &e, 1, 0), -EINVAL);
	e.npages = 4;
	assert_int_equal(fx_commit(ino, &e, 1, 0), 0);
	assert_int_equal(fx.rep.attr.attr.size, 103 * PAGE_BYTES - 5);
}

static void commit__of_size_and_time_alone(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct rpc_commit commit = {.ino = ino, .flags = COMMIT_SIZE, .size = 77, .mtime = 5};

	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(fx_attr(ino).size, 77);
	assert_int_equal(fx_attr(ino).mtime, 1000);
	commit.flags = COMMIT_MTIME;
	commit.size = 99;
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(fx_attr(ino).size, 77);
	assert_int_equal(fx_attr(ino).mtime, 5);
}

static void commit__of_attributes(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct rpc_commit commit = {.ino = ino,
		.flags = COMMIT_MODE | COMMIT_UID | COMMIT_MTIME,
		.mode = S_IFDIR | 04750,
		.uid = 41,
		.gid = 42,
		.mtime = 5,
		.ctime = 3000};

	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(fx_attr(ino).mode, S_IFREG | 04750);
	assert_int_equal(fx_attr(ino).uid, 41);
	assert_int_equal(fx_attr(ino).gid, 20);
	assert_int_equal(fx_attr(ino).mtime, 5);
	assert_int_equal(fx_attr(ino).ctime, 3000);
	commit.flags = COMMIT_GID;
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), 0);
	assert_int_equal(fx_attr(ino).gid, 42);
	assert_int_equal(fx_attr(ino).ctime, 3000);
	commit.ino = fx_dir(ROOT_INO, "dir");
	assert_int_equal(FX_RUN(.op = RPC_COMMIT, .commit = commit), -EINVAL);
}

static int commit_atime(uint64_t ino, uint32_t flags, int64_t atime)
{
	return FX_RUN(.op = RPC_COMMIT,
		.commit = {.ino = ino, .flags = flags | COMMIT_ATIME, .atime = atime});
}

static void commit__of_the_time_of_reading(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");

	fx.ctx.now = 3000;
	assert_int_equal(commit_atime(ino, 0, 2000), 0);
	assert_int_equal(fx_attr(ino).atime, 2000);
	assert_int_equal(fx_attr(ino).mtime, 1000);
	assert_int_equal(fx_attr(ino).ctime, 1000);
	assert_int_equal(commit_atime(dir, 0, -5), 0);
	assert_int_equal(fx_attr(dir).atime, -5);
	assert_int_equal(commit_atime(dir, COMMIT_SIZE, 7), -EINVAL);
	assert_int_equal(commit_atime(dir, COMMIT_MTIME, 7), -EINVAL);
	assert_int_equal(fx_attr(dir).atime, -5);
}

static void commit__joins_what_adjoins(void **state)
{
	struct extent e = fx_grant_run(30), part[3];
	uint64_t ino = fx_file(ROOT_INO, "file");

	for (uint32_t i = 0; i < 3; i++) {
		part[i] = e;
		part[i].page += 10 * i;
		part[i].fpage = 10 * i;
		part[i].npages = 10;
	}
	assert_int_equal(fx_commit(ino, &part[2], 1, 0), 0);
	assert_int_equal(fx_commit(ino, &part[0], 1, 0), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.nextents, 2);
	assert_int_equal(fx_commit(ino, &part[1], 1, 0), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.nextents, 1);
	assert_int_equal(fx.rep.entry.head[0].npages, 30);
}

static void commit__errors(void **state)
{
	struct extent e[2] = {fx_grant_run(10), fx_grant_run(10)}, twice[2];
	uint64_t ino = fx_file(ROOT_INO, "file"), dir = fx_dir(ROOT_INO, "dir");

	e[0].fpage = 5;
	e[1].fpage = 14;
	assert_int_equal(fx_commit(ino, e, 2, 0), -EINVAL); /* page 14 of the file twice */
	e[1].fpage = 50;
	assert_int_equal(fx_commit(999, e, 2, 0), -ESTALE);
	assert_int_equal(fx_commit(dir, e, 2, 0), -EINVAL);
	assert_int_equal(fx_commit(ino, e, 2, (uint64_t)INT64_MAX + 1), -EFBIG);
	twice[0] = twice[1] = e[0];
	twice[1].fpage = 90;
	assert_int_equal(fx_commit(ino, twice, 2, 0), -EINVAL); /* a page of memory twice */
	e[0].fpage = UINT64_C(1) << 51;
	e[1].fpage = e[0].fpage + 50;
	assert_int_equal(fx_commit(ino, e, 2, 0), -EFBIG);
	e[0].fpage = 5;
	e[1].fpage = 50;
	assert_int_equal(fx_commit(ino, e, 1, 0), 0);
	e[1].fpage = 0;
	assert_int_equal(fx_commit(ino, &e[1], 1, 0), -EEXIST); /* reaches into page 5 */
	e[1].fpage = 14;
	assert_int_equal(fx_commit(ino, &e[1], 1, 0), -EEXIST);
	e[1].fpage = 15;
	fx.ctx.session = fx_new_session();
	assert_int_equal(fx_commit(ino, &e[1], 1, 0), -EINVAL);
	assert_int_equal(fx_usage().granted_pages, 10);
	assert_int_equal(fx_attr(ino).npages, 10);
}

/* ---- extents --------------------------------------------------------------------------------- */

static void extents__are_paged_through(void **state)
{
	enum { N = 1000 };
	uint64_t ino = fx_file(ROOT_INO, "file"), fpage = 0;
	struct extent e = fx_grant_run(N);
	unsigned n = 0;

	/* This order fills the head from behind and the table from both sides. */
	for (unsigned i = 0; i < N; i++) {
		struct extent one = {.fpage = 3 * ((i * 7) % N),
			.npages = 1,
			.page = e.page + i,
			.region = e.region};

		assert_int_equal(fx_commit(ino, &one, 1, 0), 0);
	}
	do {
		struct wire_in r;

		assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, fpage}), 0);
		r = rpc_tail_reader(&fx.rep.extents.tail);
		while (rpc_get_extent(&r, &e)) {
			assert_int_equal(e.fpage, 3 * n);
			assert_int_equal(e.npages, 1);
			fpage = e.fpage + 1;
			n++;
		}
	} while (!fx.rep.extents.last);
	assert_int_equal(n, N);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.nextents, N);
	assert_int_equal(fx.rep.entry.nhead, INLINE_EXTENTS);
	assert_int_equal(fx.rep.entry.head[3].fpage, 9);
}

static void extents__from_the_middle_of_one(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e;
	struct wire_in r;

	fx_fill(ino, 10, 10);
	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, 15}), 0);
	r = rpc_tail_reader(&fx.rep.extents.tail);
	assert_true(rpc_get_extent(&r, &e));
	assert_int_equal(e.fpage, 10);
	assert_true(fx.rep.extents.last);
	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, 20}), 0);
	assert_int_equal(fx.rep.extents.tail.len, 0);
	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {999, 0}), -ESTALE);
}

/* Fills the holes of a fragmented file one by one: the result is one extent, as in memory. */
static void extents__head_and_table_join(void **state)
{
	enum { N = 64 };
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_grant_run(N);

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = pass; i < N; i += 2) {
			struct extent one = {
				.fpage = i, .npages = 1, .page = e.page + i, .region = e.region};

			assert_int_equal(fx_commit(ino, &one, 1, 0), 0);
		}
		fx_check();
	}
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.nextents, 1);
	assert_int_equal(fx.rep.entry.head[0].npages, N);
}

/* ---- truncation ------------------------------------------------------------------------------ */

static void truncate__frees_pages_and_zeroes_the_tail(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_fill(ino, 0, 4);

	memset(fx_page(&e, 0), 0x55, 4 * PAGE_BYTES);
	fx.ctx.now = 6000;
	assert_int_equal(fx_truncate(ino, PAGE_BYTES + 100), 0);
	assert_int_equal(fx.rep.attr.attr.size, PAGE_BYTES + 100);
	assert_int_equal(fx.rep.attr.attr.npages, 2);
	assert_int_equal(fx.rep.attr.attr.mtime, 6000);
	assert_int_equal(fx.rep.attr.attr.ctime, 6000);
	assert_int_equal(fx_page(&e, 1)[99], 0x55);
	for (unsigned i = 100; i < PAGE_BYTES; i++)
		assert_int_equal(fx_page(&e, 1)[i], 0);
	assert_int_equal(fx_usage().dirty_pages, 2);
	assert_int_equal(fx_truncate(ino, 0), 0);
	assert_int_equal(fx_usage().dirty_pages, 4);
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

static void truncate__up_makes_a_hole(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_grant_run(1);

	assert_int_equal(fx_commit(ino, &e, 1, 10), 0);
	/* Bytes beyond the size that were never committed. */
	memset(fx_page(&e, 0), 0x55, PAGE_BYTES);
	assert_int_equal(fx_truncate(ino, UINT64_C(1) << 40), 0);
	assert_int_equal(fx_attr(ino).size, UINT64_C(1) << 40);
	assert_int_equal(fx_attr(ino).npages, 1);
	assert_int_equal(fx_page(&e, 0)[9], 0x55);
	assert_int_equal(fx_page(&e, 0)[10], 0);
	assert_int_equal(fx_page(&e, 0)[PAGE_BYTES - 1], 0);
}

static void truncate__at_every_place(void **state)
{
	for (unsigned keep = 0; keep <= 12; keep++) {
		uint64_t ino = fx_fragmented("file", 12);

		/* Within the page before the hole, or exactly at its end. */
		assert_int_equal(fx_truncate(ino, keep ? (2 * keep - 1) * PAGE_BYTES : 0), 0);
		assert_int_equal(fx.rep.attr.attr.npages, keep);
		assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
		assert_int_equal(fx.rep.entry.nextents, keep);
		fx_check();
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
		assert_int_equal(fx_return_inode(ino), 0);
		fx_settle();
		assert_int_equal(fx_usage().free_pages, FX_PAGES);
	}
}

static void truncate__cuts_an_extent_of_the_table(void **state)
{
	uint64_t ino = fx_fragmented("file", 6);

	fx_fill(ino, 100, 50);
	assert_int_equal(fx_truncate(ino, 120 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 26);
	fx_fill(ino, 130, 5);
	assert_int_equal(fx_truncate(ino, 110 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 16);
}

/* ---- lack of pages --------------------------------------------------------------------------- */

enum { SMALL_STORE = 4 << 20 };

static int set_up_small_store(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, SMALL_STORE);
	return 0;
}

static int allocate(uint64_t ino, uint64_t npages)
{
	return FX_RUN(.op = RPC_FALLOCATE, .fallocate = {.ino = ino, .len = npages * PAGE_BYTES});
}

static void lack__of_pages(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), full = fx_file(ROOT_INO, "full");

	fx_fill(full, 0, 1);
	assert_int_equal(fx_grant(FX_PAGES, true), 0);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_true(meta_lacks_pages(fx.m));
	assert_int_equal(allocate(ino, 1), -ENOSPC);
	assert_true(meta_lacks_pages(fx.m));
	assert_int_equal(FX_RUN(.op = RPC_COPY, .copy = {full, 0, ino, 0, 1}), -ENOSPC);
	assert_true(meta_lacks_pages(fx.m));
	/* This is more than there are. */
	assert_int_equal(allocate(ino, FX_PAGES + 1), -ENOSPC);
	assert_false(meta_lacks_pages(fx.m));
}

static void lack__of_what_is_no_page(void **state)
{
	static const uint8_t byte;
	int status = 0;

	fx.exports[0].max_inodes = 2;
	fx_reopen();
	fx_file(ROOT_INO, "file");
	assert_int_equal(fx_grant(FX_PAGES, true), 0);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "another", S_IFREG | 0644), -ENOSPC);
	assert_false(meta_lacks_pages(fx.m));
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	for (uint32_t i = 1; !status && i <= STAGES_MAX + 1; i++)
		status = FX_RUN(.op = RPC_STAGE, .stage = {i, 0, {&byte, 1}});
	assert_int_equal(status, -ENOSPC);
	assert_false(meta_lacks_pages(fx.m));
}

static void make_until_full(const char *prefix)
{
	char name[32];
	int status = 0;

	for (unsigned i = 0; !status; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		status = fx_make(RPC_CREATE, ROOT_INO, name, S_IFREG | 0644);
	}
	assert_int_equal(status, -ENOSPC);
}

/* A part of the store is kept for pages that are granted. */
static void lack__of_memory_for_metadata(void **state)
{
	struct extent grant[GRANT_EXTENTS];
	unsigned n;

	assert_int_equal(fx_grant(FX_PAGES, true), 0);
	n = fx.rep.grant.ngrant;
	memcpy(grant, fx.rep.grant.grant, n * sizeof(grant[0]));
	make_until_full("with");
	assert_true(meta_lacks_pages(fx.m));
	assert_int_equal(fx_return_grants(grant, n), 0);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "file", S_IFREG | 0644), 0);
	make_until_full("without");
	assert_false(meta_lacks_pages(fx.m));
}

/* ---- reaping --------------------------------------------------------------------------------- */

static void truncate__of_many_extents_is_left_to_the_reaper(void **state)
{
	uint64_t ino = fx_fragmented("file", 300), dirty;
	struct extent e = fx_grant_run(1);
	bool more;

	assert_int_equal(fx_truncate(ino, 20 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 10);
	assert_int_equal(fx_volume()->now.reap_pages, 290);
	dirty = fx_usage().dirty_pages;
	assert_int_equal(dirty, 290);
	assert_int_equal(FX_RUN(.op = RPC_STATFS), 0);
	assert_int_equal(fx.rep.statfs.free_pages, FX_PAGES - 11);
	fx_check();
	/* Hidden extents can't be seen. */
	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, 20}), 0);
	assert_int_equal(fx.rep.extents.tail.len, 0);
	/* Before the cut the file can change, beyond it only when all is reaped. */
	assert_int_equal(fx_truncate(ino, 16 * PAGE_BYTES), 0);
	assert_int_equal(fx.rep.attr.attr.npages, 8);
	e.fpage = 500;
	assert_int_equal(fx_commit(ino, &e, 1, 0), -EAGAIN);
	fx_reclaim(&more);
	assert_true(more);
	fx_check();
	fx_reopen();
	fx_settle();
	assert_int_equal(fx_commit(ino, &e, 1, 0), 0);
	assert_int_equal(fx_attr(ino).npages, 9);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 9);
}

static void truncate__twice_before_it_is_reaped(void **state)
{
	uint64_t ino = fx_fragmented("file", 300);

	assert_int_equal(fx_truncate(ino, 400 * PAGE_BYTES), 0);
	assert_int_equal(fx_volume()->now.reap_pages, 100);
	assert_int_equal(fx_truncate(ino, 100 * PAGE_BYTES), 0);
	assert_int_equal(fx_volume()->now.reap_pages, 250);
	assert_int_equal(fx_truncate(ino, UINT64_C(1000) * PAGE_BYTES), 0);
	assert_int_equal(fx_attr(ino).npages, 50);
	fx_check();
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_volume()->now.reap_pages, 300);
	fx_check();
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
	assert_int_equal(fx_usage().inodes, 1);
}

static void return__of_a_long_file_is_left_to_the_reaper(void **state)
{
	uint64_t ino = fx_fragmented("file", 257);
	bool more;

	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(fx_return_inode(ino), 0);
	assert_int_equal(fx_volume()->now.reap_files, 1);
	assert_int_equal(fx_usage().inodes, 1);
	fx_reclaim(&more);
	assert_true(more);
	fx_check();
	fx_reopen();
	fx_settle();
	assert_int_equal(fx_volume()->now.reap_files, 0);
	assert_int_equal(fx_usage().inodes, 1);
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

static void return__of_many_inodes(void **state)
{
	struct wire_out w;
	char name[16];

	wire_out_init(&w, fx.out, sizeof(fx.out));
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		wire_put_u64(&w, fx_file(ROOT_INO, name));
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, name), 0);
	}
	assert_int_equal(
		FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_INODES,
						 .tail = {fx.out, (uint32_t)wire_out_len(&w)}}),
		0);
	assert_int_equal(fx_getattr(10), -ESTALE);
	fx_settle();
	assert_int_equal(fx_usage().inodes, 1);
}

/* ---- the scrubber ---------------------------------------------------------------------------- */

static void reuse__waits_for_leave_after_a_restart(void **state)
{
	struct extent e = fx_grant_run(8);
	bool more;

	memset(fx_page(&e, 0), 0x77, 8 * PAGE_BYTES);
	assert_int_equal(fx_return_grants(&e, 1), 0);
	meta_close(fx.m);
	assert_int_equal(fx_open(), 0);
	assert_false(meta_is_new(fx.m));
	fx_reclaim(&more);
	fx_reclaim(&more);
	assert_int_equal(fx_usage().dirty_pages, 8);
	assert_int_equal(fx_page(&e, 7)[0], 0x77);
	meta_allow_reuse(fx.m, 0);
	fx_settle();
	assert_int_equal(fx_page(&e, 7)[0], 0);
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

static bool comes(const void *asker)
{
	return *(const bool *)asker;
}

static uint64_t free_pages(void)
{
	assert_int_equal(FX_RUN(.op = RPC_STATFS), 0);
	return fx.rep.statfs.free_pages;
}

static int grant_all(void)
{
	return FX_RUN(.op = RPC_GRANT, .grant = {FX_PAGES, true});
}

static int fallocate_pages(uint64_t ino, uint64_t npages)
{
	return FX_RUN(.op = RPC_FALLOCATE, .fallocate = {.ino = ino, .len = npages * PAGE_BYTES});
}

static void reuse__that_does_not_come_is_not_waited_for(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e = fx_grant_run(8);
	bool waits = true;

	assert_int_equal(fx_return_grants(&e, 1), 0);
	meta_close(fx.m);
	assert_int_equal(fx_open(), 0);
	fx.ctx.dirty_comes = comes;
	fx.ctx.asker = &waits;
	assert_int_equal(free_pages(), FX_PAGES);
	waits = false;
	assert_int_equal(free_pages(), FX_PAGES - 8);
	/* Nothing is begun. */
	assert_int_equal(fallocate_pages(ino, FX_PAGES - 7), -ENOSPC);
	assert_int_equal(fx_attr(ino).npages, 0);
	while (!grant_all())
		;
	assert_int_equal(grant_all(), -ENOSPC);
	waits = true;
	assert_int_equal(grant_all(), -EAGAIN);
	assert_int_equal(fx.result, OUTCOME_PARK);
	assert_int_equal(fallocate_pages(ino, 1), -EAGAIN);
	waits = false;
	assert_int_equal(fallocate_pages(ino, 1), -ENOSPC);
	meta_allow_reuse(fx.m, 0);
	fx_settle();
	assert_int_equal(fallocate_pages(ino, 8), 0);
}

/* Pages that become dirty in a batch are not touched unless it is committed. */
static void scrub__begins_after_the_commit(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file"), freed;
	struct extent e = fx_fill(ino, 0, 4);
	bool more;

	memset(fx_page(&e, 0), 0x33, 4 * PAGE_BYTES);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(fx_execute(&(struct rpc_request){.op = RPC_SETATTR,
				 .setattr = {.ino = ino, .valid = SET_SIZE, .size = 0}}),
		0);
	assert_int_equal(meta_reclaim(fx.m, &more, &freed), 0);
	meta_abort(fx.m);
	fx_reclaim(&more);
	fx_settle();
	assert_int_equal(fx_page(&e, 3)[5], 0x33);
	assert_int_equal(fx_attr(ino).npages, 4);
}

static bool wants_reclaim(void)
{
	struct pollfd p = {meta_scrub_fd(fx.m), POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static int put_reap_record(uint64_t ino, const void *data, size_t len)
{
	struct store_key key = STORE_KEY(inode_key(fx_volume(), ino));

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(store_put(fx.m->store, STORE_REAP, key, data, len), 0);
	return meta_commit(fx.m);
}

static int try_reclaim(bool *more)
{
	uint64_t freed;
	int err;

	assert_int_equal(meta_begin(fx.m), 0);
	err = meta_reclaim(fx.m, more, &freed);
	if (!err)
		return meta_commit(fx.m);
	meta_abort(fx.m);
	return err;
}

/* Reclaim meets the damaged record once, then lets it rest: it does not loop, and all else goes
 * on. */
static void reclaim__goes_on_beside_a_damaged_record(void **state)
{
	uint64_t ino = fx_fragmented("file", 40), other = fx_fragmented("other", 40);
	struct extent e = fx_grant_run(8);
	struct store_val val;
	uint8_t whole[64];
	size_t len;
	bool more;

	assert_int_equal(fx_truncate(ino, PAGE_BYTES), 0);
	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(
		store_get(fx.m->store, STORE_REAP, STORE_KEY(inode_key(fx_volume(), ino)), &val),
		0);
	len = val.len;
	memcpy(whole, val.data, len);
	store_abort(fx.m->store);
	assert_int_equal(put_reap_record(ino, "junk", 4), 0);
	assert_int_equal(fx_return_grants(&e, 1), 0);
	assert_true(wants_reclaim());

	/* Reclaim skips the record, comes round to it, and then lets it rest. */
	assert_int_equal(try_reclaim(&more), -EBADMSG);
	assert_true(wants_reclaim());
	assert_int_equal(try_reclaim(&more), -EBADMSG);
	while (fx_usage().dirty_pages > fx_volume()->now.reap_pages) {
		struct pollfd p = {meta_scrub_fd(fx.m), POLLIN, 0};

		assert_int_equal(poll(&p, 1, 5000), 1);
		assert_int_equal(try_reclaim(&more), 0);
		assert_false(more);
	}
	/* A finished scrub job that was taken before its event was read leaves the event. */
	if (wants_reclaim())
		assert_int_equal(try_reclaim(&more), 0);
	assert_false(wants_reclaim());
	/* No request waits for pages that do not come. */
	e = fx_grant_run(1);
	while (fx_grant(FX_PAGES, false) == 0)
		;
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_false(wants_reclaim());

	/* Another file's pages are freed all the same. */
	assert_int_equal(fx_truncate(other, PAGE_BYTES), 0);
	assert_true(wants_reclaim());
	do
		assert_int_equal(try_reclaim(&more), 0);
	while (more);
	assert_int_equal(fx_volume()->now.reap_files, 1);

	/* Reclaim tries the record again after a while. If it is whole then, all is as before. */
	assert_int_equal(put_reap_record(ino, whole, len), 0);
	retry_now(&fx_volume()->reap_retry);
	fx_reclaim(&more);
	fx_settle();
}

enum { SMALL_RESERVE = 64, LARGE_RESERVE = 4096 };

static const char *long_name(unsigned i)
{
	static char name[200];

	snprintf(name, sizeof(name), "%0*u", (int)sizeof(name) - 1, i);
	return name;
}

/* Fills the store so far that names can still be removed. */
static unsigned fill_store(void)
{
	uint64_t reserve = fx.m->reserve;
	unsigned n = 0;
	int err;

	fx.m->reserve = SMALL_RESERVE;
	while (!(err = fx_make(RPC_MKNOD, ROOT_INO, long_name(n), S_IFREG | 0644)))
		n++;
	assert_int_equal(err, -ENOSPC);
	fx.m->reserve = reserve;
	return n;
}

static void remove_first(unsigned n)
{
	while (n--) {
		assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, long_name(n)), 0);
		assert_int_equal(fx_return_inode(fx.rep.remove.child.ino), 0);
	}
}

/* Until something has changed, reclaim does not try again, and no request waits for it. */
static void reclaim__without_room(void **state)
{
	struct extent e = fx_grant_run(8);
	unsigned n, tries = 0;
	bool more = true;
	int err = 0;

	while (fx_grant(FX_PAGES, false) == 0)
		;
	n = fill_store();
	assert_int_equal(fx_return_grants(&e, 1), 0);
	assert_true(wants_reclaim());
	assert_int_equal(fx_grant(1, true), -EAGAIN);
	for (; !err && more; tries++)
		err = try_reclaim(&more);
	assert_int_equal(err, -ENOSPC);
	assert_in_range(tries, 2, 4);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_false(wants_reclaim());
	remove_first(n);
	assert_true(wants_reclaim());
	assert_int_equal(fx_grant(1, true), -EAGAIN);
	fx_settle();
	assert_int_equal(fx_grant(1, true), 0);
}

/* If reclaim can't do all at once, it takes smaller steps. */
static void reclaim__with_little_room(void **state)
{
	struct extent e = fx_grant_run(8);
	bool more;

	remove_first(fill_store() / 2);
	assert_int_equal(fx_return_grants(&e, 1), 0);
	fx.m->reserve = LARGE_RESERVE;
	assert_int_equal(try_reclaim(&more), 0);
	assert_false(more);
	fx_settle();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

/* ---- ended sessions -------------------------------------------------------------------------- */

static void session_end__takes_everything_back(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "open"), kept = fx_file(ROOT_INO, "kept");
	uint64_t first = fx.ctx.session, seq;
	const void *msg;
	size_t len;

	fx_fill(ino, 0, 5);
	fx_fill(kept, 0, 5);
	for (unsigned i = 0; i < 100; i++)
		fx_grant_run(2);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "open"), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	volume_charge(fx_volume());
	for (unsigned slot = 0; slot < 80; slot++)
		assert_int_equal(meta_reply_store(fx.m, first, slot, 1, "x", 1), 0);
	assert_int_equal(meta_commit(fx.m), 0);

	fx.ctx.session = fx_new_session();
	fx_grant_run(3);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, first), 0);
	assert_int_equal(meta_session_end(fx.m, 0, first), 0);
	assert_int_equal(meta_session_end(fx.m, 0, 4711), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_check();
	fx_reopen();
	fx_settle();
	assert_int_equal(fx_getattr(ino), -ESTALE);
	assert_int_equal(fx_attr(kept).npages, 5);
	assert_int_equal(fx_usage().granted_pages, 3);
	assert_int_equal(fx_usage().free_pages, FX_PAGES - 8);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reply_find(fx.m, first, 3, &seq, &msg, &len), -ENOENT);
	meta_abort(fx.m);
}

#define CASE(f)  cmocka_unit_test_setup_teardown(f, fx_set_up, fx_tear_down)
#define SMALL(f) cmocka_unit_test_setup_teardown(f, set_up_small_store, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(grant__is_one_run_where_it_can),
		CASE(grant__spans_regions_in_several_runs),
		CASE(grant__leaves_as_much_for_each_who_writes),
		CASE(grant__leaves_half_beside_those_who_read),
		CASE(grant__gives_at_most_eight_runs),
		CASE(grant__waits_for_pages_that_are_scrubbed),
		CASE(grant__pages_are_zero),
		CASE(return_all__takes_what_the_session_has_not_used),
		CASE(return__errors),
		CASE(commit__maps_parts_of_grants),
		CASE(commit__of_size_and_time_alone),
		CASE(commit__of_attributes),
		CASE(commit__of_the_time_of_reading),
		CASE(commit__joins_what_adjoins),
		CASE(commit__errors),
		CASE(extents__are_paged_through),
		CASE(extents__from_the_middle_of_one),
		CASE(extents__head_and_table_join),
		CASE(truncate__frees_pages_and_zeroes_the_tail),
		CASE(truncate__up_makes_a_hole),
		CASE(truncate__at_every_place),
		CASE(truncate__cuts_an_extent_of_the_table),
		CASE(lack__of_pages),
		CASE(lack__of_what_is_no_page),
		cmocka_unit_test_setup_teardown(
			lack__of_memory_for_metadata, set_up_small_store, fx_tear_down),
		CASE(truncate__of_many_extents_is_left_to_the_reaper),
		CASE(truncate__twice_before_it_is_reaped),
		CASE(return__of_a_long_file_is_left_to_the_reaper),
		CASE(return__of_many_inodes),
		CASE(reuse__waits_for_leave_after_a_restart),
		CASE(reuse__that_does_not_come_is_not_waited_for),
		CASE(scrub__begins_after_the_commit),
		CASE(reclaim__goes_on_beside_a_damaged_record),
		SMALL(reclaim__without_room),
		SMALL(reclaim__with_little_room),
		CASE(session_end__takes_everything_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
