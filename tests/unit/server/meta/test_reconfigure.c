/* test_reconfigure.c - exports that come, and limits that change, while the store is open. */
#include "tests/unit/server/reconfigure_fixture.h"

#include "server/record/quota.h"

static struct quota_limit limit = {.kind = QUOTA_USER, .id = 5, .npages = 100};

static int set_up(void **state)
{
	reconfigure_set_up(state);
	return 0;
}

static void add__is_empty_and_stays(void **state)
{
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "old", S_IFREG | 0644), 0);
	assert_false(knows("more"));
	assert_int_equal(reconfigure(&none), 0);
	assert_true(knows("more"));
	use(1);
	assert_int_equal(fx_lookup(ROOT_INO, "old"), -ENOENT);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "new", S_IFREG | 0644), 0);
	fx_check();
	fx_reopen();
	assert_int_equal(fx_lookup(ROOT_INO, "new"), 0);
	fx.ctx.export_index = 0;
	assert_int_equal(fx_lookup(ROOT_INO, "new"), -ENOENT);
	assert_int_equal(fx_lookup(ROOT_INO, "old"), 0);
}

static void add__shares_the_store(void **state)
{
	fx.exports[0].metadata_bytes = 12 << 20;
	fx.exports[1].metadata_bytes = 4 << 20;
	assert_int_equal(reconfigure(&none), 0);
	assert_int_equal(fx.m->volumes[0]->share.pages, 3072);
	assert_int_equal(fx.m->volumes[1]->share.pages, 1024);
}

static void add__of_a_known_name_is_refused(void **state)
{
	fx.exports[1].name = "default";
	assert_int_equal(reconfigure(&none), -EEXIST);
	assert_int_equal(fx.m->nvolumes, 1);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "file", S_IFREG | 0644), 0);
}

static void grow__keeps_all(void **state)
{
	uint64_t bytes = (uint64_t)2 * FX_STORE_MIB << 20;
	struct store_growth growth;
	struct meta_usage usage;

	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "before", S_IFREG | 0644), 0);
	assert_int_equal(meta_grow_prepare(fx.m, bytes, &growth, fx.why, sizeof(fx.why)), 0);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "meanwhile", S_IFREG | 0644), 0);
	assert_int_equal(reconfigure(&growth), 0);
	meta_usage(fx.m, 0, &usage);
	assert_int_equal(usage.store_bytes, bytes);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "after", S_IFREG | 0644), 0);
	fx_check();
	fx_reopen();
	meta_usage(fx.m, 0, &usage);
	assert_int_equal(usage.store_bytes, bytes);
	assert_int_equal(fx_lookup(ROOT_INO, "before"), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "meanwhile"), 0);
	assert_int_equal(fx_lookup(ROOT_INO, "after"), 0);
}

static void grow__that_is_cancelled_gives_the_memory_back(void **state)
{
	struct store_growth growth;
	struct stat before, after;
	char path[128];

	snprintf(path, sizeof(path), "%s/store.mdb", fx.dir);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(
		meta_grow_prepare(fx.m, (uint64_t)64 << 20, &growth, fx.why, sizeof(fx.why)), 0);
	meta_grow_cancel(fx.m, &growth);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "file", S_IFREG | 0644), 0);
}

static void grow__without_memory_names_the_room(void **state)
{
	struct store_growth growth;

	assert_int_equal(
		meta_grow_prepare(fx.m, UINT64_C(1) << 44, &growth, fx.why, sizeof(fx.why)),
		-ENOSPC);
	assert_non_null(strstr(fx.why, "make the exports smaller or the memory larger"));
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "file", S_IFREG | 0644), 0);
}

static void grow__waits_for_a_view(void **state)
{
	struct store_growth growth;
	struct store_view *view;

	assert_int_equal(
		meta_grow_prepare(fx.m, (uint64_t)32 << 20, &growth, fx.why, sizeof(fx.why)), 0);
	assert_int_equal(store_view_open(fx.m->store, &view), 0);
	assert_int_equal(reconfigure(&growth), -EBUSY);
	assert_non_null(strstr(fx.why, "while a snapshot is written"));
	assert_false(knows("more"));
	store_view_close(view);
	assert_int_equal(reconfigure(&growth), 0);
	assert_true(knows("more"));
}

/* Before the memory is made. */
static void may__tells_of_a_view_and_of_first_quotas(void **state)
{
	struct store_view *view;

	assert_int_equal(meta_may_reconfigure(fx.m, &fx.config, fx.why, sizeof(fx.why)), 0);
	assert_int_equal(store_view_open(fx.m->store, &view), 0);
	assert_int_equal(meta_may_reconfigure(fx.m, &fx.config, fx.why, sizeof(fx.why)), 0);
	fx.config.store_bytes *= 2;
	assert_int_equal(meta_may_reconfigure(fx.m, &fx.config, fx.why, sizeof(fx.why)), -EBUSY);
	assert_non_null(strstr(fx.why, "while a snapshot is written"));
	store_view_close(view);
	assert_int_equal(meta_may_reconfigure(fx.m, &fx.config, fx.why, sizeof(fx.why)), 0);
	fx.exports[0].quotas = &limit;
	fx.exports[0].nquotas = 1;
	assert_int_equal(
		meta_may_reconfigure(fx.m, &fx.config, fx.why, sizeof(fx.why)), -EOPNOTSUPP);
	assert_non_null(strstr(fx.why, "its first quotas take a restart"));
	assert_false(knows("more"));
}

static void limits__of_inodes(void **state)
{
	fx.config.nexports = 1;
	fx.exports[0].max_inodes = 2;
	assert_int_equal(reconfigure(&none), 0);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "one", S_IFREG | 0644), 0);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "two", S_IFREG | 0644), -ENOSPC);
	fx.exports[0].max_inodes = 0;
	assert_int_equal(reconfigure(&none), 0);
	assert_int_equal(fx_make(RPC_CREATE, ROOT_INO, "two", S_IFREG | 0644), 0);
}

static void limits__first_quotas_are_refused_and_nothing_is_added(void **state)
{
	fx.exports[0].quotas = &limit;
	fx.exports[0].nquotas = 1;
	assert_int_equal(reconfigure(&none), -EOPNOTSUPP);
	assert_string_equal(fx.why, "export 'default': its first quotas take a restart of the "
				    "server, which counts what each user has");
	assert_false(knows("more"));
	assert_int_equal(fx.m->nvolumes, 1);
}

static uint64_t limit_seen;

static void see_limit(const struct quota_entry *entry, void *arg)
{
	if (entry->limit.id == limit.id)
		limit_seen = entry->limit.npages;
}

static void limits__of_quotas(void **state)
{
	fx.exports[1].quotas = &limit;
	fx.exports[1].nquotas = 1;
	assert_int_equal(reconfigure(&none), 0);
	limit.npages = 200;
	assert_int_equal(reconfigure(&none), 0);
	assert_int_equal(meta_quotas(fx.m, 1, see_limit, NULL), 0);
	assert_int_equal(limit_seen, 200);
	fx.exports[1].nquotas = 0;
	assert_int_equal(reconfigure(&none), -EOPNOTSUPP);
	assert_true(meta_has_quotas(fx.m, 1));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, fx_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(add__is_empty_and_stays),
		TEST(add__shares_the_store),
		TEST(add__of_a_known_name_is_refused),
		TEST(grow__keeps_all),
		TEST(grow__that_is_cancelled_gives_the_memory_back),
		TEST(grow__without_memory_names_the_room),
		TEST(grow__waits_for_a_view),
		TEST(may__tells_of_a_view_and_of_first_quotas),
		TEST(limits__of_inodes),
		TEST(limits__first_quotas_are_refused_and_nothing_is_added),
		TEST(limits__of_quotas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
