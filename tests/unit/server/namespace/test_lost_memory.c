/* Requests at an export that has lost a part of its memory. */
#include "tests/unit/server/meta_fixture.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "common/base/cut_guard.h"

static atomic_bool lost;

static int set_up(void **state)
{
	fx_set_up(state);
	lost = false;
	fx.exports[0].lost = &lost;
	fx_reopen();
	fx.ctx.session = fx_new_session();
	return 0;
}

static void lost__takes_no_data(void **state)
{
	uint64_t a = fx_file(ROOT_INO, "a"), b = fx_file(ROOT_INO, "b");
	struct extent e = fx_fill(a, 0, 4), granted = fx_grant_run(4);

	lost = true;
	assert_int_equal(fx_grant(1, false), -EIO);
	assert_int_equal(fx_grant(1, true), -EIO);
	assert_int_equal(fx_commit(b, &granted, 1, PAGE_BYTES), -EIO);
	assert_int_equal(fx_commit(b, NULL, 0, PAGE_BYTES), -EIO);
	assert_int_equal(fx_truncate(a, 1), -EIO);
	assert_int_equal(FX_RUN(.op = RPC_FALLOCATE, .fallocate = {.ino = b, .len = 1}), -EIO);
	assert_int_equal(FX_RUN(.op = RPC_COPY, .copy = {a, 0, b, 0, PAGE_BYTES}), -EIO);
	assert_int_equal(fx_attr(a).size, 4 * PAGE_BYTES);
	assert_int_equal(fx_attr(b).npages, 0);
	assert_int_equal(FX_RUN(.op = RPC_EXTENTS, .extents = {.ino = a}), 0);
	assert_int_equal(e.npages, 4);
}

static void lost__names_can_be_changed(void **state)
{
	uint64_t a = fx_file(ROOT_INO, "a");

	fx_fill(a, 0, 4);
	lost = true;
	fx_dir(ROOT_INO, "dir");
	assert_int_equal(fx_lookup(ROOT_INO, "a"), 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "a"), 0);
	assert_int_equal(FX_RUN(.op = RPC_CREATE, .create = {.parent = ROOT_INO,
							  .mode = S_IFREG | 0600,
							  .want_pages = 4,
							  .name = fx_str("c")}),
		0);
	assert_int_equal(fx.rep.entry.ngrant, 0);
}

/* The pages stay dirty, since nobody can zero them. */
static void lost__is_not_scrubbed(void **state)
{
	struct extent e = fx_grant_run(4);
	bool more;

	assert_int_equal(fx_return_grants(&e, 1), 0);
	lost = true;
	fx_reclaim(&more);
	assert_false(meta_has_reclaim(fx.m));
	assert_int_equal(fx_usage().dirty_pages, 4);
	lost = false;
	fx_reclaim(&more);
	fx_settle();
}

/* The copy itself meets the lost bytes: it says so, and the destination is as before. */
static void lost__during_a_copy(void **state)
{
	uint64_t a = fx_file(ROOT_INO, "a"), b = fx_file(ROOT_INO, "b");
	struct rpc_request req = {.op = RPC_COPY, .copy = {a, 0, b, 0, PAGE_BYTES}};
	struct extent e = fx_fill(a, 0, 1);
	struct cut_guard guard;
	int fd = memfd_create("region", MFD_CLOEXEC);
	uint8_t *page = fx_page(&e, 0);

	assert_int_equal(fx_run(&req), 0); /* gives it pages */
	assert_int_equal(fx.rep.progress.done, 0);
	assert_ptr_equal(
		mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
		page);
	assert_int_equal(cut_guard_add(&guard, fd, page, PAGE_BYTES, &lost), 0);
	assert_int_equal(fx_run(&req), -EIO);
	assert_true(lost);
	assert_int_equal(fx_attr(b).size, 0);
	cut_guard_remove(&guard);
	close(fd);
}

static void open__refuses_a_region_with_holes(void **state)
{
	meta_close(fx.m);
	fx.m = NULL;
	fx.exports[0].holed = "default.0001";
	fx.exports[0].holed_region = 1;
	assert_int_equal(fx_open(), -EBADMSG);
	assert_non_null(strstr(fx.why, "export default: its region default.0001 has holes: "));
	/* A region that the store does not have yet: a start was killed while it made it. */
	fx.exports[0].holed_region = fx.exports[0].nregions;
	assert_int_equal(fx_open(), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(lost__takes_no_data),
		CASE(lost__names_can_be_changed),
		CASE(lost__is_not_scrubbed),
		CASE(lost__during_a_copy),
		CASE(open__refuses_a_region_with_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
