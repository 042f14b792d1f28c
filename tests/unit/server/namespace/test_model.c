/* test_model.c - thousands of random operations against a plain model of files, in batches of which
 * some are aborted, with restarts and ended sessions between.
 *
 * Every committed page has a tag of its place in its file. The tag shows a page that was scrubbed
 * while in a file, or that is in two files. An allocated page is zero. */
#include "tests/unit/server/meta_fixture.h"

#include <linux/falloc.h>

#include "server/record/inode.h"

enum { DIRS = 2, NAMES = 4, FILE_PAGES = 160, POOL = 512, BATCHES = 2500, RESIZED_REGION = 512 };

enum page { HOLE, TAGGED, ZERO };

struct model_file {
	uint64_t ino; /* 0: no such name */
	uint64_t size;
	uint8_t pages[FILE_PAGES]; /* enum page */
};

struct model {
	struct model_file file[DIRS][NAMES];
	struct extent pool[POOL]; /* pages granted, one each; the first npool can be used... */
	unsigned npool, ngranted; /* ... the rest once the batch is committed */
};

static struct model model, before;
static uint64_t dirs[DIRS];
static unsigned seed;
/* The store is nearly full: operations that grow may be refused. */
static bool scarce;
/* Batches after which the reaper had something to do; operations refused: the work must reach both.
 */
static unsigned nreaping, nrefused;
/* Times that the export has shrunk. */
static unsigned nsmaller;

static unsigned pick(unsigned n)
{
	return (unsigned)rand_r(&seed) % n;
}

static struct rpc_str name_of(unsigned name)
{
	static const char *const names[NAMES] = {
		"a", "b", "c", "a-much-longer-name-than-the-others-have"};

	return fx_str(names[name]);
}

/* Runs within the batch. True: go on with status; false: the batch must be aborted. */
static bool run(const struct rpc_request *req, int *status)
{
	*status = fx_execute(req);
	nrefused += fx.result < 0;
	if (fx.result < 0) {
		assert_true(scarce);
		assert_int_equal(fx.result, -EAGAIN);
	}
	return fx.result >= 0;
}

static bool refused(int status, bool *go_on)
{
	*go_on = true;
	nrefused += status == -ENOSPC;
	if (status == -ENOSPC)
		assert_true(scarce);
	else
		assert_int_equal(status, 0);
	return status != 0;
}

/* ---- operations on both ---------------------------------------------------------------------- */

static bool create(unsigned d, unsigned n)
{
	struct model_file *f = &model.file[d][n];
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = dirs[d], .name = name_of(n), .mode = S_IFREG | 0600}};
	bool go_on = false;
	int status;

	if (!run(&req, &status) || refused(status, &go_on))
		return go_on;
	assert_int_equal(fx.rep.entry.created, !f->ino);
	if (f->ino)
		assert_int_equal(fx.rep.entry.attr.ino, f->ino);
	else
		*f = (struct model_file){.ino = fx.rep.entry.attr.ino};
	return true;
}

static bool give_back(uint64_t ino)
{
	uint8_t buf[8];
	struct wire_out w;
	struct rpc_request req = {
		.op = RPC_RETURN, .ret = {.kind = RETURN_INODES, .tail = {buf, sizeof(buf)}}};
	int status;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, ino);
	if (!run(&req, &status))
		return false;
	assert_int_equal(status, 0);
	return true;
}

static bool remove_file(unsigned d, unsigned n)
{
	struct model_file *f = &model.file[d][n];
	struct rpc_request req = {.op = RPC_UNLINK, .name = {dirs[d], name_of(n)}};
	uint64_t ino = f->ino;
	int status;

	if (!run(&req, &status))
		return false;
	assert_int_equal(status, ino ? 0 : -ENOENT);
	if (!ino)
		return true;
	f->ino = 0;
	return give_back(ino);
}

static bool rename_file(unsigned d, unsigned n, unsigned d2, unsigned n2)
{
	struct model_file *from = &model.file[d][n], *to = &model.file[d2][n2];
	struct rpc_request req = {
		.op = RPC_RENAME, .rename = {dirs[d], dirs[d2], 0, name_of(n), name_of(n2)}};
	uint64_t replaced = to->ino;
	bool go_on = false;
	int status;

	if (!run(&req, &status))
		return false;
	if (!from->ino) {
		assert_int_equal(status, -ENOENT);
		return true;
	}
	if (refused(status, &go_on) || from == to)
		return go_on;
	*to = *from;
	from->ino = 0;
	return replaced ? give_back(replaced) : true;
}

/* Where a file grows it shows zeros, also over bytes that were written beyond its end. */
static void grow_to(struct model_file *f, uint64_t size)
{
	uint64_t end = div_round_up(size, PAGE_BYTES);

	for (uint64_t p = div_round_up(f->size, PAGE_BYTES); p < end; p++)
		if (f->pages[p] == TAGGED)
			f->pages[p] = ZERO;
}

/* A growth may be one step of several. */
static bool truncate_file(unsigned d, unsigned n)
{
	struct model_file *f = &model.file[d][n];
	/* A size never ends within a tag. */
	uint64_t size = (uint64_t)pick(FILE_PAGES) * PAGE_BYTES + (pick(2) ? 8 + pick(4000) : 0);
	struct rpc_request req = {
		.op = RPC_SETATTR, .setattr = {.ino = f->ino, .valid = SET_SIZE, .size = size}};
	int status;

	if (!f->ino)
		return true;
	if (!run(&req, &status))
		return false;
	assert_int_equal(status, 0);
	for (uint64_t p = div_round_up(size, PAGE_BYTES); size <= f->size && p < FILE_PAGES; p++)
		f->pages[p] = HOLE;
	if (size > f->size)
		size = fx.rep.attr.attr.size;
	grow_to(f, size);
	f->size = size;
	return true;
}

static bool grant(unsigned npages)
{
	struct rpc_request req = {.op = RPC_GRANT, .grant = {npages, false}};
	static const uint8_t zero[PAGE_BYTES];
	int status;

	if (model.ngranted + npages > POOL)
		return true;
	if (!run(&req, &status))
		return false;
	if (status) {
		assert_int_equal(status, -ENOSPC);
		return true;
	}
	for (unsigned i = 0; i < fx.rep.grant.ngrant; i++) {
		const struct extent *e = &fx.rep.grant.grant[i];

		for (uint32_t k = 0; k < e->npages; k++) {
			assert_memory_equal(fx_page(e, k), zero, PAGE_BYTES);
			model.pool[model.ngranted++] = (struct extent){
				.npages = 1, .page = e->page + k, .region = e->region};
		}
	}
	return true;
}

static struct extent take_from_pool(unsigned i)
{
	struct extent e = model.pool[i];

	model.pool[i] = model.pool[--model.npool];
	model.pool[model.npool] = model.pool[--model.ngranted];
	return e;
}

static bool give_back_grants(unsigned n)
{
	struct extent e[16];
	struct rpc_request req = {.op = RPC_RETURN, .ret = {.kind = RETURN_GRANTS}};
	unsigned count = 0;
	int status;

	while (count < n && model.npool)
		e[count++] = take_from_pool(pick(model.npool));
	req.ret.tail = fx_extents_tail(e, count);
	if (!run(&req, &status))
		return false;
	assert_int_equal(status, 0);
	return true;
}

static uint64_t tag(uint64_t ino, uint64_t fpage)
{
	return ino << 20 | fpage << 4 | 0xf;
}

static bool commit(unsigned d, unsigned n, unsigned count)
{
	struct model_file *f = &model.file[d][n];
	struct rpc_request req = {.op = RPC_COMMIT, .commit = {.ino = f->ino}};
	unsigned first = pick(FILE_PAGES - 16), step = 1 + pick(2), used = 0;
	struct extent e[16];
	bool taken = false;
	int status;

	if (!f->ino || model.npool < count)
		return true;
	for (; used < count && first + used * step < FILE_PAGES; used++) {
		e[used] = model.pool[model.npool - 1 - used];
		e[used].fpage = first + used * step;
		taken = taken || f->pages[e[used].fpage] != HOLE;
	}
	req.commit.tail = fx_extents_tail(e, used);
	if (!run(&req, &status))
		return false;
	if (fx.result == OUTCOME_PARK)
		return true;
	assert_int_equal(status, taken ? -EEXIST : 0);
	for (unsigned i = 0; !taken && i < used; i++) {
		uint64_t t = tag(f->ino, e[i].fpage);

		memcpy(fx_page(&e[i], 0), &t, sizeof(t));
		f->pages[e[i].fpage] = TAGGED;
		take_from_pool(model.npool - 1);
	}
	return true;
}

/* Runs one step, of whole pages. The reply's progress tells how far it came. */
static bool fallocate_step(unsigned d, unsigned n, uint32_t mode)
{
	struct model_file *f = &model.file[d][n];
	uint64_t first = pick(FILE_PAGES), npages = 1 + pick((unsigned)(FILE_PAGES - first));
	struct rpc_request req = {.op = RPC_FALLOCATE,
		.fallocate = {f->ino, mode, first * PAGE_BYTES, npages * PAGE_BYTES}};
	bool punch = mode & FALLOC_FL_PUNCH_HOLE, go_on;
	uint64_t done;
	int status;

	if (!f->ino)
		return true;
	if (!run(&req, &status))
		return false;
	if (fx.result == OUTCOME_PARK)
		return true;
	if (status == -ENOSPC && !punch && !fx_volume()->space.now.free)
		return true;
	if (refused(status, &go_on))
		return go_on;
	done = fx.rep.progress.done / PAGE_BYTES;
	for (uint64_t p = first; p < first + done; p++)
		if (punch || f->pages[p] == HOLE)
			f->pages[p] = punch ? HOLE : ZERO;
	return true;
}

static bool random_fallocate(unsigned d, unsigned n)
{
	/* Without KEEP_SIZE the tags beyond the end, which a client's size did not cover, would
	 * go. */
	static const uint32_t modes[] = {
		FALLOC_FL_KEEP_SIZE, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE};

	return fallocate_step(d, n, modes[pick(ARRAY_SIZE(modes))]);
}

static bool random_operation(void)
{
	unsigned d = pick(DIRS), n = pick(NAMES);

	switch (pick(28)) {
	case 0:
	case 1:
	case 2:
		return create(d, n);
	case 3:
		return remove_file(d, n);
	case 4:
		return rename_file(d, n, pick(DIRS), pick(NAMES));
	case 5:
		return truncate_file(d, n);
	case 6:
	case 7:
	case 8:
		return grant(1 + pick(100));
	case 9:
	case 10:
		return give_back_grants(1 + pick(16));
	case 11:
	case 12:
	case 13:
	case 14:
		return random_fallocate(d, n);
	default:
		return commit(d, n, 1 + pick(8));
	}
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* Beyond the end, an aborted growth may have zeroed bytes that were written there. */
static void forgive_aborted(const struct model_file *f, uint8_t *pages)
{
	for (uint64_t p = div_round_up(f->size, PAGE_BYTES); p < FILE_PAGES; p++)
		if (f->pages[p] == TAGGED && pages[p] == ZERO)
			pages[p] = TAGGED;
}

static void compare_extents(const struct model_file *f)
{
	uint8_t pages[FILE_PAGES] = {HOLE};
	uint64_t fpage = 0, npages = 0;

	do {
		struct extent e;
		struct wire_in r;

		assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {f->ino, fpage}), 0);
		r = rpc_tail_reader(&fx.rep.extents.tail);
		while (rpc_get_extent(&r, &e)) {
			for (uint32_t i = 0; i < e.npages; i++) {
				uint64_t t;

				memcpy(&t, fx_page(&e, i), sizeof(t));
				assert_true(t == 0 || t == tag(f->ino, e.fpage + i));
				pages[e.fpage + i] = t ? TAGGED : ZERO;
				npages++;
			}
			fpage = e.fpage + e.npages;
		}
	} while (!fx.rep.extents.last);
	forgive_aborted(f, pages);
	assert_memory_equal(pages, f->pages, sizeof(pages));
	assert_int_equal(fx_attr(f->ino).npages, npages);
	assert_int_equal(fx_attr(f->ino).size, f->size);
}

static void compare(void)
{
	for (unsigned d = 0; d < DIRS; d++) {
		for (unsigned n = 0; n < NAMES; n++) {
			const struct model_file *f = &model.file[d][n];
			int status = FX_RUN(.op = RPC_LOOKUP, .name = {dirs[d], name_of(n)});

			assert_int_equal(status, f->ino ? 0 : -ENOENT);
			if (!f->ino)
				continue;
			assert_int_equal(fx.rep.entry.attr.ino, f->ino);
			compare_extents(f);
		}
	}
	assert_int_equal(fx_usage().granted_pages, model.npool);
	fx_check();
}

/* ---- the run --------------------------------------------------------------------------------- */

static void random_batch(void)
{
	bool go_on = true, more;
	uint64_t freed;

	before = model;
	assert_int_equal(meta_begin(fx.m), 0);
	for (unsigned n = 1 + pick(8); go_on && n; n--)
		go_on = random_operation();
	if (go_on && pick(3) == 0) {
		int err = meta_reclaim(fx.m, &more, &freed);

		if (err) {
			assert_true(scarce && err == -EAGAIN);
			go_on = false;
		}
	}
	if (go_on && pick(10)) {
		assert_int_equal(meta_commit(fx.m), 0);
		model.npool = model.ngranted;
		nreaping += fx_volume()->now.reap_files > 0;
		return;
	}
	meta_abort(fx.m);
	model = before;
}

/* The session ends, and all its grants go back. */
static void change_session(void)
{
	fx_end_session();
	fx.ctx.session = fx_new_session();
	model.npool = model.ngranted = 0;
	fx_settle();
}

static void workload(void)
{
	nreaping = nrefused = 0;
	for (unsigned i = 0; i < BATCHES; i++) {
		random_batch();
		if (i % 100 == 0)
			compare();
		if (i % 400 == 399)
			change_session();
		if (i % 500 == 250)
			fx_reopen();
	}
	compare();
}

/* Resizes to a random size. It is refused if that is too small, or if a session has pages in the
 * part that is to go. */
static void resize(void)
{
	uint64_t npages = (1 + pick(FX_REGIONS)) * RESIZED_REGION, size = fx_usage().npages;
	bool session = pick(2);
	int err;

	if (!session)
		fx_end_session();
	err = fx_resize(npages);
	assert_true(!err || npages < size);
	assert_true(!err || err == -EINVAL || (session && err == -EBUSY));
	nsmaller += !err && npages < size;
	if (err)
		assert_int_equal(fx_resize(size), 0);
	meta_allow_reuse(fx.m, 0);
	if (!session) {
		fx.ctx.session = fx_new_session();
		model.npool = model.ngranted = 0;
		fx_settle();
		assert_true(err != -EINVAL || space_in_file(&fx_volume()->space) > npages);
	}
	compare();
}

static void set_up_files(void)
{
	memset(&model, 0, sizeof(model));
	for (unsigned d = 0; d < DIRS; d++) {
		char name[8];

		snprintf(name, sizeof(name), "dir%u", d);
		dirs[d] = fx_dir(ROOT_INO, name);
	}
}

static void random_work__while_the_export_changes_its_size(void **state)
{
	seed = 3;
	scarce = false;
	nsmaller = 0;
	set_up_files();
	for (unsigned i = 0; i < BATCHES; i++) {
		random_batch();
		if (i % 20 == 19)
			resize();
	}
	assert_true(nsmaller > 20);
}

static void remove_all(void)
{
	for (unsigned d = 0; d < DIRS; d++) {
		for (unsigned n = 0; n < NAMES; n++) {
			assert_int_equal(meta_begin(fx.m), 0);
			assert_true(remove_file(d, n));
			assert_int_equal(meta_commit(fx.m), 0);
		}
	}
	change_session();
	assert_int_equal(fx_usage().free_pages, FX_PAGES);
}

static void random_work__agrees_with_the_model(void **state)
{
	seed = 1;
	scarce = false;
	set_up_files();
	workload();
	assert_true(nreaping > BATCHES / 100);
	remove_all();
	assert_int_equal(fx_usage().inodes, 1 + DIRS);
}

static void random_work__in_a_store_that_is_full(void **state)
{
	unsigned i = 0;
	char name[16];

	seed = 2;
	scarce = true;
	set_up_files();
	do
		snprintf(name, sizeof(name), "fill-%u", i++);
	while (fx_make(RPC_MKDIR, ROOT_INO, name, 0755) == 0);
	/* Makes some room again, so that operations have something to run out of. */
	while (i-- % 256) {
		snprintf(name, sizeof(name), "fill-%u", i);
		fx_name(RPC_RMDIR, ROOT_INO, name);
	}
	workload();
	assert_true(nrefused > BATCHES / 100);
	remove_all();
}

static int small_store(void **state)
{
	fx_set_up_sized(FX_PAGES, FX_REGION_PAGES, 4 << 20);
	return 0;
}

static int small_regions(void **state)
{
	fx_set_up_sized(FX_REGIONS * RESIZED_REGION, RESIZED_REGION, (uint64_t)FX_STORE_MIB << 20);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			random_work__agrees_with_the_model, fx_set_up, fx_tear_down),
		cmocka_unit_test_setup_teardown(
			random_work__in_a_store_that_is_full, small_store, fx_tear_down),
		cmocka_unit_test_setup_teardown(random_work__while_the_export_changes_its_size,
			small_regions, fx_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
