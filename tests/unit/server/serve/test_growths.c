/* test_growths.c - an export that is served gets more regions, or is refused them. */
#include "tests/unit/server/serve_fixture.h"

#include "common/transport/transport_ops.h"
#include "server/memory/export_growth.h"
#include "server/serve/growths.h"
#include "server/session/client_session.h"
#include "server/session/conn.h"
#include "server/snapshot/snapshot.h"

enum { REGION_BYTES = 1 << 20, NREGIONS = 2, NCHANNELS = 3 };

static uint64_t left; /* keys */

static uint64_t keys_left(const struct transport *t)
{
	return left;
}

static const struct transport_ops ops = {.keys_left = keys_left};
static struct transport transport = {.ops = &ops};
static struct port port = {.transport = &transport, .name = "verbs:10.0.0.1:7470"};
static char name[] = "data";
static struct export_config configured = {.name = name};
static struct export *export;
static struct client_session session;
static struct conn conns[NCHANNELS];

static void connect_all(void)
{
	list_init(&server.conns);
	session = (struct client_session){.export = export};
	for (unsigned i = 0; i < NCHANNELS; i++) {
		conns[i] = (struct conn){.port = &port, .session = &session};
		list_add_tail(&server.conns, &conns[i].all);
	}
}

static int set_up(void **state)
{
	configured.size = NREGIONS * REGION_BYTES;
	serve_set_up(state, &configured, REGION_BYTES);
	server.exports = calloc(1, sizeof(*server.exports));
	assert_int_equal(snapshot_init(&server), 0);
	assert_int_equal(export_plan(&config, &server.dir, &configured, 0, &export), 0);
	assert_int_equal(export_prepare(export, &config, &server.dir), 0);
	assert_int_equal(exports_add(server.exports, export), 0);
	connect_all();
	left = UINT64_MAX;
	return 0;
}

static int tear_down(void **state)
{
	serve_drop();
	export_remove_files(export);
	exports_delete(server.exports);
	snapshot_end(&server);
	return serve_tear_down(state);
}

static unsigned files(void)
{
	return serve_files(name);
}

static int plan(uint64_t size)
{
	configured.size = size;
	return growths_plan(&new, export, &configured, why, sizeof(why));
}

static void make(void)
{
	assert_int_equal(new_exports_begin(&new, why, sizeof(why)), 0);
	serve_wait_for(NEW_EXPORTS_MADE);
}

/* They are n exports. */
static void take_growths(unsigned n)
{
	struct changes changes = {0};

	growths_take(&server, &new, &changes);
	assert_int_equal(json_array_size(changes.list), n);
	changes_fini(&changes);
}

static void growth__is_behind_what_is_there(void **state)
{
	const struct region_file *before[NREGIONS] = {export->regions[0], export->regions[1]};
	struct meta_export described[1] = {{0}};

	assert_int_equal(plan(5 * REGION_BYTES), 0);
	make();
	assert_int_equal(files(), 5);
	assert_int_equal(export->nregions, NREGIONS);
	assert_int_equal(growths_check(&new, why, sizeof(why)), 0);
	assert_int_equal(growths_reserve(&new), 0);
	growths_describe(&new, described);
	assert_int_equal(described[0].nregions, 5);
	assert_int_equal(described[0].npages * PAGE_BYTES, 5 * REGION_BYTES);
	take_growths(1);
	new_exports_settle(&new);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), 0);
	assert_int_equal(files(), 5);
	assert_int_equal(export->nregions, 5);
	assert_int_equal(export->npages * PAGE_BYTES, 5 * REGION_BYTES);
	assert_true(server.reclaim);
	for (unsigned i = 0; i < 5; i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/data.%04u", fx.dir, i);
		assert_string_equal(export->regions[i]->path, path);
		assert_ptr_equal(export->regions[i]->addr, export->bases[i]);
		assert_ptr_equal(described[0].bases[i], export->bases[i]);
		if (i < NREGIONS)
			assert_ptr_equal(export->regions[i], before[i]);
	}
}

static void growth__that_nobody_takes_leaves_nothing(void **state)
{
	assert_int_equal(plan(4 * REGION_BYTES), 0);
	make();
	assert_int_equal(growths_reserve(&new), 0);
	new_exports_drop(&new);
	assert_int_equal(files(), NREGIONS);
	assert_int_equal(export->nregions, NREGIONS);
	assert_int_equal(plan(3 * REGION_BYTES), 0);
	make();
	growths_reserve(&new);
	take_growths(1);
	assert_int_equal(export->nregions, 3);
}

static void growth__takes_a_key_for_each_channel_and_region(void **state)
{
	server.ports = &port;
	server.nports = 1;
	left = 3 * NCHANNELS - 1;
	assert_int_equal(plan(5 * REGION_BYTES), -ENOSPC);
	assert_string_equal(why,
		"export 'data' can't grow by 3 regions: its 3 channels over verbs:10.0.0.1:7470 "
		"need a key to each, and the device has 8 left: unmount it where it is not needed, "
		"or add another export, with a larger region_size");
	new_exports_drop(&new);
	left = 3 * NCHANNELS;
	assert_int_equal(plan(5 * REGION_BYTES), 0);
	/* Another mount may come meanwhile. */
	left--;
	assert_int_equal(growths_check(&new, why, sizeof(why)), -ENOSPC);
}

static void size__that_is_no_growth_is_refused(void **state)
{
	assert_int_equal(plan(REGION_BYTES), -EBUSY);
	assert_non_null(strstr(why, "export 'data' has 2MiB and is configured with 1MiB: it can't "
				    "be made smaller while it is served"));
	assert_int_equal(plan(3 * REGION_BYTES + PAGE_BYTES), -EINVAL);
	assert_non_null(strstr(why, "it can have 3MiB or 4MiB, by whole regions of 1MiB"));
	assert_int_equal(plan((uint64_t)(EXPORT_REGIONS_MAX + 1) * REGION_BYTES), -EINVAL);
	assert_non_null(strstr(why, "clients reach 1024 of them, so it can have 1GiB"));
	atomic_store(&export->lost, true);
	assert_int_equal(plan(4 * REGION_BYTES), -EIO);
	assert_non_null(strstr(why, "a part of its memory is lost"));
	assert_int_equal(new.growths.n, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(growth__is_behind_what_is_there),
		TEST(growth__that_nobody_takes_leaves_nothing),
		TEST(growth__takes_a_key_for_each_channel_and_region),
		TEST(size__that_is_no_growth_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
