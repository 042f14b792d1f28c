/* test_size.c - how much of the store a file takes: 100,000 small ones, names of 16 bytes in
 * random order, each with one extent; and how much a long value of an extended attribute takes. */
#include "tests/unit/server/xattr_fixture.h"

#include "server/record/xattr.h"

enum { FILES = 100000, BATCH = 32, BYTES_PER_FILE_MAX = 600 };
enum { SIZE_PAGES = 2 * FILES, GRANT_PAGES = 1024 };
enum { VALUES = 50, VALUE_PARTS = 30, VALUE_BYTES = VALUE_PARTS * XATTR_PART_BYTES };

static struct extent granted;

static void ask_for_pages(void)
{
	struct rpc_request req = {.op = RPC_GRANT, .grant = {GRANT_PAGES, false}};

	assert_int_equal(fx_execute(&req), 0);
	assert_int_equal(fx.rep.grant.ngrant, 1);
	granted = fx.rep.grant.grant[0];
}

static uint64_t create(unsigned i)
{
	struct rpc_request req = {.op = RPC_CREATE,
		.create = {.parent = ROOT_INO, .mode = S_IFREG | 0644, .exclusive = true}};
	char name[17];

	snprintf(name, sizeof(name), "%08x%08x", i * 2654435761U, i);
	req.create.name = fx_str(name);
	assert_int_equal(fx_execute(&req), 0);
	return fx.rep.entry.attr.ino;
}

static void commit_page(uint64_t ino)
{
	struct rpc_request req = {
		.op = RPC_COMMIT, .commit = {.ino = ino, .flags = COMMIT_SIZE, .size = PAGE_BYTES}};
	struct extent e = granted;

	e.npages = 1;
	req.commit.tail = fx_extents_tail(&e, 1);
	assert_int_equal(fx_execute(&req), 0);
	granted.page++;
	granted.npages--;
}

static void create_batch(unsigned first)
{
	assert_int_equal(meta_begin(fx.m), 0);
	for (unsigned i = first; i < first + BATCH; i++) {
		if (!granted.npages)
			ask_for_pages();
		commit_page(create(i));
	}
	assert_int_equal(meta_commit(fx.m), 0);
}

static void small_files__take_few_bytes_of_the_store(void **state)
{
	uint64_t before = fx_usage().store_used_bytes, each;

	granted.npages = 0;
	for (unsigned i = 0; i < FILES; i += BATCH)
		create_batch(i);
	each = (fx_usage().store_used_bytes - before) / FILES;
	print_message("%u bytes of the store a file\n", (unsigned)each);
	assert_true(each <= BYTES_PER_FILE_MAX);
	fx_reopen();
	assert_int_equal(fx_usage().inodes, FILES + 1);
}

/* Two parts fit on a page of the store. */
static void long_values__fill_their_pages_of_the_store(void **state)
{
	static uint8_t value[VALUE_BYTES];
	uint64_t before = fx_usage().store_used_bytes, each;

	for (unsigned i = 0; i < VALUES; i++) {
		char name[17];

		snprintf(name, sizeof(name), "%u", i);
		fx_pattern(value, sizeof(value), i);
		assert_int_equal(
			fx_setxattr(fx_file(ROOT_INO, name), "user.a", value, sizeof(value), 0), 0);
	}
	each = (fx_usage().store_used_bytes - before) / VALUES;
	print_message("%u bytes of the store a value\n", (unsigned)each);
	assert_true(each <= (VALUE_PARTS / 2 + 3) * PAGE_BYTES);
}

static int set_up(void **state)
{
	fx_set_up_sized(SIZE_PAGES, FILES, 128 << 20);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			small_files__take_few_bytes_of_the_store, set_up, fx_tear_down),
		cmocka_unit_test_setup_teardown(
			long_values__fill_their_pages_of_the_store, set_up, fx_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
