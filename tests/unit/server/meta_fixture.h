/* meta_fixture.h - a metadata core on a store of its own, and requests in one line.
 *
 * Each request runs in a batch of its own, as a session's. The fixture is one static struct: a
 * cmocka program uses one at a time. */
#ifndef RMEMFS_TESTS_META_FIXTURE_H
#define RMEMFS_TESTS_META_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/rpc/rpc.h"
#include "common/base/util.h"
#include "server/namespace/execute.h"
#include "server/base/bits.h"
#include "server/check/check.h"
#include "server/meta/meta.h"
#include "server/meta/meta_internal.h"
#include "server/meta/share.h"
#include "server/space/space_run.h"
#include "tests/unit/memory_dir.h"

enum { FX_REGIONS = 4, FX_REGION_PAGES = 1024, FX_PAGES = 1800, FX_STORE_MIB = 16 };

struct fx {
	char dir[64], why[256];
	void *bases[FX_REGIONS];
	struct meta_export exports[2]; /* one is served, but where a case says so */
	struct meta_config config;
	struct meta *m;
	struct meta_ctx ctx;
	struct rpc_reply rep;
	int result; /* of the last execute_request */
	uint8_t tail[RPC_MSG_BYTES];
	uint8_t out[RPC_MSG_BYTES]; /* a request's tail */
};

static struct fx fx;

/* ---- set up ---------------------------------------------------------------------------------- */

static inline void fx_fail(const char *line, void *arg)
{
	print_error("%s\n", line);
}

/* The pages in files, as memory has them, are those without a stored run. */
static inline void fx_check_in_file(struct volume *v)
{
	struct store_key start = STORE_KEY((uint64_t)v->id << 48), key;
	struct space *sp = &v->space;
	uint64_t *bits = bits_new(sp->npages), session, total = 0;
	enum page_state state;
	struct store_val val;
	struct page_run run;
	int err;

	assert_non_null(bits);
	bits_assign(bits, 0, sp->npages, true);
	assert_int_equal(store_begin_read(fx.m->store), 0);
	err = store_seek(fx.m->store, STORE_SPACE, start, &key, &val);
	while (!err && key.hi >> 48 == v->id) {
		assert_int_equal(space_run_parse(sp, key, &val, &run, &state, &session), 0);
		bits_assign(bits, run.region * sp->region_pages + run.page, run.npages, false);
		err = store_next(fx.m->store, STORE_SPACE, &key, &val);
	}
	store_abort(fx.m->store);
	assert_memory_equal(bits, sp->in_file, bits_bytes(sp->npages));
	for (uint64_t i = 0; i < sp->npages; i++)
		total += bits_get(bits, i);
	assert_int_equal(space_in_file(sp), total);
	free(bits);
}

/* The store has as many pages as memory counts for all exports. One where the records of two meet
 * may count to either. All records of removed exports have gone. */
static inline void fx_check_shares(void)
{
	int64_t counts[ARRAY_SIZE(fx.exports)], difference = -fx.m->now.removed_pages;

	assert_int_equal(store_begin_read(fx.m->store), 0);
	assert_int_equal(share_count(fx.m, counts), 0);
	store_abort(fx.m->store);
	for (unsigned i = 0; i < fx.m->nvolumes; i++)
		difference += counts[i] - fx.m->volumes[i]->now.store_pages;
	assert_int_equal(difference, 0);
}

static inline void fx_check(void)
{
	const struct check_report report = {.problem = fx_fail};
	uint64_t nproblems;

	assert_int_equal(meta_check(fx.m, &report, &nproblems), 0);
	assert_int_equal(nproblems, 0);
	for (unsigned i = 0; i < fx.m->nvolumes; i++)
		if (fx.m->volumes[i]->id)
			fx_check_in_file(fx.m->volumes[i]);
	fx_check_shares();
}

static inline int fx_open(void)
{
	return meta_open(&fx.config, &fx.m, fx.why, sizeof(fx.why));
}

static inline uint64_t fx_new_session(void)
{
	struct meta_session s = {.instance = 7, .nchannels = 16, .client = "test:/mnt"};

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &s), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return s.id;
}

static inline void fx_set_up_sized(uint64_t npages, uint64_t region_pages, uint64_t store_bytes)
{
	uint64_t len = region_pages * PAGE_BYTES;

	memset(&fx, 0, sizeof(fx));
	memory_dir(fx.dir, sizeof(fx.dir));
	for (unsigned i = 0; i < FX_REGIONS; i++) {
		fx.bases[i] =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(fx.bases[i], MAP_FAILED);
	}
	fx.exports[0] = (struct meta_export){
		.name = "default",
		.npages = npages,
		.nregions = (uint32_t)div_round_up(npages, region_pages),
		.region_pages = region_pages,
		.bases = fx.bases,
	};
	fx.config = (struct meta_config){fx.dir, store_bytes, fx.exports, 1};
	fx.ctx.now = 1000;
	assert_int_equal(fx_open(), 0);
	fx.ctx.session = fx_new_session();
}

static inline int fx_set_up(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, (uint64_t)FX_STORE_MIB << 20);
	return 0;
}

static inline void fx_reopen(void)
{
	meta_close(fx.m);
	fx.m = NULL;
	assert_int_equal(fx_open(), 0);
	meta_allow_reuse(fx.m, 0);
}

/* The next open is of an export of n pages, on region files that exist. */
static inline int fx_resize(uint64_t npages)
{
	static const bool used[FX_REGIONS] = {true, true, true, true};
	struct meta_export *e = &fx.exports[0];

	meta_close(fx.m);
	fx.m = NULL;
	e->npages = npages;
	e->nregions = (uint32_t)div_round_up(npages, e->region_pages);
	e->mapped_pages = FX_REGIONS * e->region_pages;
	e->used = used;
	return fx_open();
}

/* Makes the store, which has no names yet, one of a former version. */
static inline void fx_make_wide(void)
{
	fx.m->hash.bits = DIRENT_HASH_BITS_WIDE;
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_save_super(fx.m), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx_reopen();
	assert_int_equal(fx.m->hash.bits, DIRENT_HASH_BITS_WIDE);
}

static inline void fx_remove_store(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/store.mdb", fx.dir);
	unlink(path);
	rmdir(fx.dir);
}

static inline int fx_tear_down(void **state)
{
	if (fx.m) {
		meta_abort(fx.m); /* of a case that failed within a batch */
		fx_check();
		meta_close(fx.m);
	}
	fx_remove_store();
	for (unsigned i = 0; i < FX_REGIONS; i++)
		munmap(fx.bases[i], fx.exports[0].region_pages * PAGE_BYTES);
	return 0;
}

static inline void fx_end_session(void)
{
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_end(fx.m, 0, fx.ctx.session), 0);
	assert_int_equal(meta_commit(fx.m), 0);
}

static inline struct volume *fx_volume(void)
{
	return fx.m->volumes[0];
}

/* ---- requests -------------------------------------------------------------------------------- */

static inline struct rpc_str fx_str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

/* Runs it in the open batch; the reply is in fx.rep. */
static inline int fx_execute(const struct rpc_request *req)
{
	struct wire_out tail;

	wire_out_init(
		&tail, fx.tail, sizeof(fx.tail) - rpc_reply_tail_at(req->op, RMEMFS_WIRE_VERSION));
	fx.result = execute_request(fx.m, &fx.ctx, req, &fx.rep, &tail);
	return fx.result < 0 ? fx.result : fx.rep.status;
}

/* Runs it in a batch of its own, and returns the reply's status; -EAGAIN if the request parks. */
static inline int fx_run(const struct rpc_request *req)
{
	int status;

	assert_int_equal(meta_begin(fx.m), 0);
	status = fx_execute(req);
	assert_true(fx.result >= 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return fx.result == OUTCOME_PARK || fx.result == OUTCOME_WAIT ? -EAGAIN : status;
}

#define FX_RUN(...) fx_run(&(struct rpc_request){__VA_ARGS__})

static inline int fx_name(uint16_t op, uint64_t parent, const char *name)
{
	return FX_RUN(.op = op, .name = {parent, fx_str(name)});
}

static inline int fx_lookup(uint64_t parent, const char *name)
{
	return fx_name(RPC_LOOKUP, parent, name);
}

static inline int fx_make(uint16_t op, uint64_t parent, const char *name, uint32_t mode)
{
	struct rpc_create create = {.parent = parent,
		.name = fx_str(name),
		.mode = mode,
		.exclusive = true,
		.target = fx_str("over/there"),
		.uid = 10,
		.gid = 20};

	return FX_RUN(.op = op, .create = create);
}

/* Makes a file and returns its number. */
static inline uint64_t fx_file(uint64_t parent, const char *name)
{
	assert_int_equal(fx_make(RPC_CREATE, parent, name, S_IFREG | 0644), 0);
	return fx.rep.entry.attr.ino;
}

static inline uint64_t fx_dir(uint64_t parent, const char *name)
{
	assert_int_equal(fx_make(RPC_MKDIR, parent, name, 0755), 0);
	return fx.rep.entry.attr.ino;
}

static inline int fx_getattr(uint64_t ino)
{
	return FX_RUN(.op = RPC_GETATTR, .ino = {ino});
}

/* All fields of the two are the same; the padding at the end does not count. */
static inline void fx_assert_same(const struct attr *a, const struct attr *b)
{
	assert_memory_equal(a, b, offsetof(struct attr, flags) + sizeof(a->flags));
}

static inline struct attr fx_attr(uint64_t ino)
{
	assert_int_equal(fx_getattr(ino), 0);
	return fx.rep.attr.attr;
}

static inline int fx_rename(uint64_t parent, const char *name, uint64_t new_parent,
	const char *new_name, uint32_t flags)
{
	return FX_RUN(.op = RPC_RENAME,
		.rename = {parent, new_parent, flags, fx_str(name), fx_str(new_name)});
}

static inline int fx_truncate(uint64_t ino, uint64_t size)
{
	return FX_RUN(.op = RPC_SETATTR, .setattr = {.ino = ino, .valid = SET_SIZE, .size = size});
}

static inline struct rpc_tail fx_extents_tail(const struct extent *e, unsigned n)
{
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	while (n--)
		rpc_put_extent(&w, e++);
	assert_false(w.overflow);
	return (struct rpc_tail){fx.out, (uint32_t)wire_out_len(&w)};
}

static inline int fx_commit(uint64_t ino, const struct extent *e, unsigned n, uint64_t size)
{
	struct rpc_commit commit = {.ino = ino,
		.flags = COMMIT_SIZE | COMMIT_MTIME,
		.size = size,
		.mtime = fx.ctx.now,
		.ctime = fx.ctx.now,
		.tail = fx_extents_tail(e, n)};

	return FX_RUN(.op = RPC_COMMIT, .commit = commit);
}

static inline int fx_grant(uint32_t npages, bool wait)
{
	return FX_RUN(.op = RPC_GRANT, .grant = {npages, wait});
}

/* Gets a grant that must be one run. */
static inline struct extent fx_grant_run(uint32_t npages)
{
	assert_int_equal(fx_grant(npages, false), 0);
	assert_int_equal(fx.rep.grant.ngrant, 1);
	assert_int_equal(fx.rep.grant.grant[0].npages, npages);
	return fx.rep.grant.grant[0];
}

static inline int fx_return_grants(const struct extent *e, unsigned n)
{
	return FX_RUN(.op = RPC_RETURN,
		.ret = {.kind = RETURN_GRANTS, .tail = fx_extents_tail(e, n)});
}

static inline int fx_return_inode(uint64_t ino)
{
	struct wire_out w;

	wire_out_init(&w, fx.out, sizeof(fx.out));
	wire_put_u64(&w, ino);
	return FX_RUN(.op = RPC_RETURN, .ret = {.kind = RETURN_INODES, .tail = {fx.out, 8}});
}

/* Gives a file granted pages at fpage, as one extent, and sets the size to their end. */
static inline struct extent fx_fill(uint64_t ino, uint64_t fpage, uint32_t npages)
{
	struct extent e = fx_grant_run(npages);

	e.fpage = fpage;
	assert_int_equal(fx_commit(ino, &e, 1, (fpage + npages) * PAGE_BYTES), 0);
	return e;
}

/* Makes a file of single pages with holes between, so that it has n extents. */
static inline uint64_t fx_fragmented(const char *name, unsigned n)
{
	uint64_t ino = fx_file(ROOT_INO, name);

	for (unsigned i = 0; i < n; i++)
		fx_fill(ino, 2 * i, 1);
	assert_int_equal(fx_lookup(ROOT_INO, name), 0);
	assert_int_equal(fx.rep.entry.nextents, n);
	return ino;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static inline uint8_t *fx_page(const struct extent *e, uint32_t i)
{
	return (uint8_t *)fx.bases[e->region] + (size_t)(e->page + i) * PAGE_BYTES;
}

static inline struct meta_usage fx_usage(void)
{
	struct meta_usage usage;

	meta_usage(fx.m, 0, &usage);
	return usage;
}

static inline uint64_t fx_reclaim(bool *more)
{
	uint64_t freed;

	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_reclaim(fx.m, more, &freed), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	return freed;
}

/* Waits until nothing is left to reap, to take from ended sessions, or to scrub. */
static inline void fx_settle(void)
{
	struct pollfd p = {meta_scrub_fd(fx.m), POLLIN, 0};
	bool more;

	while (fx.m->now.nending || fx_volume()->now.reap_files || fx_usage().dirty_pages) {
		assert_int_equal(poll(&p, 1, 5000), 1);
		fx_reclaim(&more);
	}
}

#endif
