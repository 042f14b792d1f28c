/* test_resize.c - exports that grow and shrink: the places of pages and bytes afterwards. */
#include "tests/unit/server/meta_fixture.h"

#include "server/base/resize.h"

enum { REGION = 64, MIB = 1 << 20 };

static int set_up(void **state)
{
	fx_set_up_sized(FX_REGIONS * REGION, REGION, (uint64_t)FX_STORE_MIB << 20);
	return 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void is_possible__by_whole_regions(void **state)
{
	assert_true(resize_is_possible(8, 8, 4));
	assert_true(resize_is_possible(8, 4, 4));
	assert_true(resize_is_possible(8, 12, 4));
	assert_true(resize_is_possible(10, 10, 4));
	assert_true(resize_is_possible(10, 8, 4));
	assert_false(resize_is_possible(8, 0, 4));
	assert_false(resize_is_possible(8, 9, 4));
	assert_false(resize_is_possible(8, 7, 4));
	assert_false(resize_is_possible(10, 12, 4));
	assert_false(resize_is_possible(10, 9, 4));
}

static void choices__are_named(void **state)
{
	char text[192];

	resize_choices(8 * MIB, 9 * MIB, 4 * MIB, text, sizeof(text));
	assert_string_equal(text, "it can have 8MiB or 12MiB, by whole regions of 4MiB");
	resize_choices(8 * MIB, 3 * MIB, 4 * MIB, text, sizeof(text));
	assert_string_equal(text, "it can't have less than 4MiB, one region");
	resize_choices(10 * MIB, 9 * MIB, 4 * MIB, text, sizeof(text));
	assert_string_equal(text, "it can have 8MiB or 10MiB, by whole regions of 4MiB");
	resize_choices(10 * MIB, 12 * MIB, 4 * MIB, text, sizeof(text));
	assert_string_equal(text, "it can have 8MiB or 10MiB, and not grow, since its last region "
				  "is smaller than the others (4MiB)");
}

/* ---- smaller --------------------------------------------------------------------------------- */

static void fill_bytes(const struct extent *e, uint8_t value)
{
	for (uint32_t i = 0; i < e->npages; i++)
		memset(fx_page(e, i), value + (int)(e->fpage + i), PAGE_BYTES);
}

/* The file has npages from fpage 0 on, in one region below nregions each, with these bytes. */
static void assert_file(uint64_t ino, uint64_t npages, uint8_t value, unsigned nregions)
{
	uint64_t fpage = 0;

	while (fpage < npages) {
		struct extent e;
		struct wire_in r;

		assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {ino, fpage}), 0);
		r = rpc_tail_reader(&fx.rep.extents.tail);
		while (rpc_get_extent(&r, &e)) {
			assert_int_equal(e.fpage, fpage);
			assert_true(e.region < nregions);
			for (uint32_t i = 0; i < e.npages; i++) {
				uint8_t *page = fx_page(&e, i);

				assert_int_equal(page[0], (uint8_t)(value + (int)(fpage + i)));
				assert_memory_equal(page, page + 1, PAGE_BYTES - 1);
			}
			fpage += e.npages;
		}
	}
	assert_int_equal(fx_attr(ino).npages, npages);
}

/* Takes pages until region 3 begins, so that the next ones lie there. */
static void shrink__moves_what_is_in_use(void **state)
{
	uint64_t front = fx_file(ROOT_INO, "front"), back = fx_file(ROOT_INO, "back");
	struct extent a[3], b;
	struct attr attr;

	for (unsigned i = 0; i < 3; i++) {
		a[i] = fx_fill(front, (uint64_t)i * REGION, REGION);
		fill_bytes(&a[i], 1);
	}
	b = fx_fill(back, 0, 40);
	fill_bytes(&b, 7);
	assert_int_equal(b.region, 3);
	attr = fx_attr(back);
	assert_int_equal(fx_truncate(front, REGION * PAGE_BYTES), 0);
	fx_end_session();
	/* The freed pages are still dirty, and they are needed. */
	assert_int_equal(fx_resize(2 * REGION), 0);
	assert_int_equal(fx_usage().npages, 2 * REGION);
	fx.ctx.session = fx_new_session();
	assert_file(front, REGION, 1, 2);
	assert_file(back, 40, 7, 2);
	fx_getattr(back);
	fx_assert_same(&attr, &fx.rep.attr.attr);
	fx_check();
	meta_allow_reuse(fx.m, 0);
	fx_settle();
	assert_int_equal(fx_usage().free_pages, REGION - 40);
}

static void shrink__moves_extents_of_the_table(void **state)
{
	uint64_t big = fx_file(ROOT_INO, "big"), ino = fx_file(ROOT_INO, "file");
	unsigned n = 50;

	for (unsigned i = 0; i < 3; i++)
		fx_fill(big, (uint64_t)i * REGION, REGION);
	/* Written backwards, so that each page is an extent of its own. */
	for (unsigned i = n; i-- > 0;) {
		struct extent e = fx_fill(ino, i, 1);

		fill_bytes(&e, 9);
		assert_int_equal(e.region, 3);
	}
	assert_int_equal(fx_truncate(ino, (uint64_t)n * PAGE_BYTES), 0);
	assert_int_equal(fx_truncate(big, 0), 0);
	fx_end_session();
	assert_int_equal(fx_resize(REGION), 0);
	fx.ctx.session = fx_new_session();
	assert_file(ino, n, 9, 1);
	assert_int_equal(fx_lookup(ROOT_INO, "file"), 0);
	assert_int_equal(fx.rep.entry.nextents, 1);
}

static void shrink__takes_back_what_a_session_had(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	for (unsigned i = 0; i < 4; i++)
		fx_fill(ino, (uint64_t)i * REGION, REGION);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	fx_end_session();
	assert_int_equal(fx_resize(REGION), 0);
	assert_int_equal(fx_usage().inodes, 1);
	assert_int_equal(fx_usage().free_pages + fx_usage().dirty_pages, REGION);
}

static void shrink__refuses_less_than_is_used(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");

	fx_fill(ino, 0, REGION);
	fx_fill(ino, REGION, 1);
	fx_end_session();
	assert_int_equal(fx_resize(REGION), -EINVAL);
	assert_string_equal(
		fx.why, "export 'default': 260KiB are in use; the smallest size is 512KiB");
	assert_int_equal(fx_resize(4 * REGION), 0);
	assert_int_equal(fx_attr(ino).npages, REGION + 1);
	assert_int_equal(fx_resize(2 * REGION), 0);
}

static void shrink__under_a_session_that_has_nothing_there(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e;

	fx_fill(ino, 0, 10);
	e = fx_grant_run(10);
	assert_int_equal(fx_resize(2 * REGION), 0);
	fx_check();
	e.fpage = 10;
	assert_int_equal(fx_commit(ino, &e, 1, 20 * PAGE_BYTES), 0);
	assert_int_equal(fx_grant(2 * REGION, false), 0);
	for (unsigned i = 0; i < fx.rep.grant.ngrant; i++)
		assert_true(fx.rep.grant.grant[i].region < 2);
}

static void shrink__refuses_what_a_session_can_reach(void **state)
{
	uint64_t ino = fx_file(ROOT_INO, "file");
	struct extent e;

	for (unsigned i = 0; i < 3; i++)
		fx_grant_run(REGION);
	e = fx_grant_run(1);
	assert_int_equal(e.region, 3);
	assert_int_equal(fx_resize(3 * REGION), -EBUSY);
	assert_string_equal(fx.why,
		"export 'default' can't be made smaller while test:/mnt has it mounted and has "
		"pages in the regions that are to go: start with 1MiB, unmount it there "
		"(where that is gone for good, mount and unmount it anywhere else), then make it "
		"smaller");
	assert_int_equal(fx_resize(4 * REGION), 0);
	assert_int_equal(fx_commit(ino, &e, 1, PAGE_BYTES), 0);
	assert_int_equal(fx_resize(3 * REGION), -EBUSY);
	assert_int_equal(fx_resize(4 * REGION), 0);
	fx_end_session();
	assert_int_equal(fx_resize(3 * REGION), 0);
	assert_int_equal(fx_attr(ino).npages, 1);
}

static int set_up_partial(void **state)
{
	fx_set_up_sized(2 * REGION + 10, REGION, (uint64_t)FX_STORE_MIB << 20);
	return 0;
}

static void shrink__by_a_last_region_that_is_smaller(void **state)
{
	assert_int_equal(fx_resize(3 * REGION), -EINVAL);
	assert_non_null(strstr(fx.why, "it can have 512KiB or 552KiB, and not grow"));
	assert_int_equal(fx_resize(2 * REGION + 9), -EINVAL);
	assert_int_equal(fx_resize(2 * REGION), 0);
	assert_int_equal(fx_resize(3 * REGION), 0);
	assert_int_equal(fx_usage().npages, 3 * REGION);
}

static void shrink__needs_the_files_that_are_to_go(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.exports[0].npages = REGION;
	fx.exports[0].nregions = 1;
	fx.exports[0].mapped_pages = 3 * REGION;
	assert_int_equal(fx_open(), -EBADMSG);
	assert_string_equal(fx.why,
		"export default: its region default.0003 is missing or has lost bytes: put it "
		"back, or leave the export out of the configuration");
	assert_int_equal(fx_resize(REGION), 0);
}

/* ---- larger ---------------------------------------------------------------------------------- */

static void grow__over_files_that_were_there(void **state)
{
	assert_int_equal(fx_resize(REGION), 0);
	memset(fx.bases[1], 0x5a, REGION * PAGE_BYTES);
	assert_int_equal(fx_resize(2 * REGION), 0);
	assert_int_equal(fx_usage().free_pages + fx_usage().dirty_pages, 2 * REGION);
	fx_check();
	meta_allow_reuse(fx.m, 0);
	fx_settle();
	assert_int_equal(fx_usage().free_pages, 2 * REGION);
	fx_check();
}

/* ---- larger, while it is open ---------------------------------------------------------------- */

static int grow_open(uint64_t npages)
{
	struct store_growth none = {0};
	struct meta_export *e = &fx.exports[0];
	uint64_t before = e->npages;
	int err;

	e->npages = npages;
	e->nregions = (uint32_t)div_round_up(npages, e->region_pages);
	err = meta_reconfigure(fx.m, &fx.config, &none, fx.why, sizeof(fx.why));
	if (err) {
		e->npages = before;
		e->nregions = (uint32_t)div_round_up(before, e->region_pages);
	}
	return err;
}

/* A file has all of the export's two regions. */
static uint64_t begin_full(void)
{
	uint64_t ino;

	assert_int_equal(fx_resize(2 * REGION), 0);
	meta_allow_reuse(fx.m, 0);
	ino = fx_file(ROOT_INO, "file");
	for (unsigned i = 0; i < 2; i++) {
		struct extent e = fx_fill(ino, (uint64_t)i * REGION, REGION);

		fill_bytes(&e, 5);
	}
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	return ino;
}

static void grow_open__gives_pages_to_sessions_that_lacked_them(void **state)
{
	uint64_t ino = begin_full();
	struct extent e;

	assert_int_equal(grow_open(4 * REGION), 0);
	assert_int_equal(fx_usage().npages, 4 * REGION);
	assert_int_equal(fx_usage().free_pages, 2 * REGION);
	e = fx_fill(ino, 2 * REGION, 40);
	assert_int_equal(e.region, 2);
	fill_bytes(&e, 5);
	fx_check();
	/* Pages that are freed there are scrubbed there. */
	assert_int_equal(fx_truncate(ino, (2 * REGION + 10) * PAGE_BYTES), 0);
	fx_settle();
	assert_int_equal(fx_page(&e, 10)[0], 0);
	assert_int_equal(fx_usage().free_pages, 2 * REGION - 10);
	assert_file(ino, 2 * REGION + 10, 5, 3);
	fx_reopen();
	assert_int_equal(fx_usage().npages, 4 * REGION);
	assert_file(ino, 2 * REGION + 10, 5, 3);
}

static void grow_open__by_parts_of_a_region_is_refused(void **state)
{
	uint64_t ino = begin_full();

	assert_int_equal(grow_open(4 * REGION - 1), -EINVAL);
	fx.exports[0].region_pages = 2 * REGION;
	assert_int_equal(grow_open(4 * REGION), -EINVAL);
	fx.exports[0].region_pages = REGION;
	assert_int_equal(fx_usage().npages, 2 * REGION);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	assert_file(ino, 2 * REGION, 5, 2);
}

/* The removal of another export fails, in the same transaction, and after it. */
static void grow_open__that_fails_has_changed_nothing(void **state)
{
	struct store_growth none = {0};
	struct meta_session user = {.export_index = 1, .instance = 9, .nchannels = 1};
	uint64_t ino = begin_full();

	fx.exports[1] = fx.exports[0];
	fx.exports[1].name = "more";
	fx.exports[1].bases = &fx.bases[3];
	fx.exports[1].npages = REGION;
	fx.exports[1].nregions = 1;
	fx.config.nexports = 2;
	assert_int_equal(meta_reconfigure(fx.m, &fx.config, &none, fx.why, sizeof(fx.why)), 0);
	assert_int_equal(meta_begin(fx.m), 0);
	assert_int_equal(meta_session_new(fx.m, &user), 0);
	assert_int_equal(meta_commit(fx.m), 0);
	fx.exports[1].name = NULL;
	assert_int_equal(grow_open(4 * REGION), -EBUSY);
	fx.exports[1].name = "more";
	assert_int_equal(fx_usage().npages, 2 * REGION);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
	fx_check();
	assert_int_equal(grow_open(3 * REGION), 0);
	fx_fill(ino, 2 * REGION, REGION);
	assert_int_equal(fx_grant(1, true), -ENOSPC);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_possible__by_whole_regions),
		cmocka_unit_test(choices__are_named),
		CASE(shrink__moves_what_is_in_use),
		CASE(shrink__moves_extents_of_the_table),
		CASE(shrink__takes_back_what_a_session_had),
		CASE(shrink__refuses_less_than_is_used),
		CASE(shrink__under_a_session_that_has_nothing_there),
		CASE(shrink__refuses_what_a_session_can_reach),
		CASE(grow_open__gives_pages_to_sessions_that_lacked_them),
		CASE(grow_open__by_parts_of_a_region_is_refused),
		CASE(grow_open__that_fails_has_changed_nothing),
		cmocka_unit_test_setup_teardown(
			shrink__by_a_last_region_that_is_smaller, set_up_partial, fx_tear_down),
		CASE(shrink__needs_the_files_that_are_to_go),
		CASE(grow__over_files_that_were_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
