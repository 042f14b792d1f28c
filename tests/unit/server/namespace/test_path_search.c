/* test_path_search.c - inodes by their paths, and paths of inodes. */
#include "tests/unit/server/meta_fixture.h"

#include "server/namespace/path_search.h"

/* ---- by the path ----------------------------------------------------------------------------- */

static int find(const char *path, uint64_t *ino)
{
	const struct rpc_str text = fx_str(path);
	struct attr attr;
	int err = path_search_find(fx.m, 0, &text, &attr);

	*ino = err ? 0 : attr.ino;
	return err;
}

static void find__walks_from_the_root(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), sub = fx_dir(dir, "sub");
	uint64_t file = fx_file(sub, "a file"), ino;

	assert_int_equal(find("/", &ino), 0);
	assert_int_equal(ino, ROOT_INO);
	assert_int_equal(find("/dir/sub/a file", &ino), 0);
	assert_int_equal(ino, file);
	assert_int_equal(find("//dir//sub/", &ino), 0);
	assert_int_equal(ino, sub);
	assert_int_equal(find("/dir/none", &ino), -ENOENT);
	assert_int_equal(find("/none/sub", &ino), -ENOENT);
	assert_int_equal(find("/dir/sub/a file/more", &ino), -ENOTDIR);
}

static void find__takes_a_number(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file"), ino;
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)file);
	assert_int_equal(find(text, &ino), 0);
	assert_int_equal(ino, file);
	assert_int_equal(find("999", &ino), -ENOENT);
	assert_int_equal(find("281474976710657", &ino), -ENOENT); /* 2^48 + 1 */
	assert_int_equal(find("99999999999999999999999999", &ino), -ENOENT);
	assert_int_equal(find("file", &ino), -EINVAL);
	assert_int_equal(find("", &ino), -EINVAL);
}

/* ---- by the inode ---------------------------------------------------------------------------- */

static struct path_search search;
static unsigned nsteps;

static int path_of(uint64_t ino)
{
	int err;

	nsteps = 0;
	path_search_begin(&search, 0, ino);
	do {
		err = path_search_step(fx.m, &search);
		nsteps++;
	} while (err == -EAGAIN);
	return err;
}

static void expect_path(uint64_t ino, const char *path)
{
	assert_int_equal(path_of(ino), 0);
	assert_string_equal(path_search_text(&search), path);
}

static void search__finds_files_and_directories(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), sub = fx_dir(dir, "sub");
	uint64_t file = fx_file(sub, "a file");

	expect_path(ROOT_INO, "/");
	expect_path(dir, "/dir");
	expect_path(sub, "/dir/sub");
	expect_path(file, "/dir/sub/a file");
	assert_int_equal(fx_rename(dir, "sub", ROOT_INO, "moved", 0), 0);
	expect_path(file, "/moved/a file");
}

static void search__is_in_pieces(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), last = 0;
	char name[16];

	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		last = fx_file(dir, name);
	}
	for (unsigned i = 0; i < 5; i++) {
		uint64_t ino = last - 400 * i;

		snprintf(name, sizeof(name), "/dir/%u", 1999 - 400 * i);
		expect_path(ino, name);
		assert_in_range(nsteps, 2, 2002 / 256 + 2);
	}
}

static void search__finds_any_of_several_names(void **state)
{
	uint64_t dir = fx_dir(ROOT_INO, "dir"), file = fx_file(ROOT_INO, "one");

	assert_int_equal(FX_RUN(.op = RPC_LINK, .link = {file, dir, fx_str("two")}), 0);
	assert_int_equal(path_of(file), 0);
	assert_true(strcmp(path_search_text(&search), "/one") == 0 ||
		    strcmp(path_search_text(&search), "/dir/two") == 0);
	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "one"), 0);
	expect_path(file, "/dir/two");
}

static void search__of_what_has_no_name(void **state)
{
	uint64_t file = fx_file(ROOT_INO, "file");

	assert_int_equal(fx_name(RPC_UNLINK, ROOT_INO, "file"), 0);
	assert_int_equal(path_of(file), -ENOENT);
	assert_int_equal(path_of(999), -ENOENT);
}

/* 17 times 250 bytes are more than a path may have. */
static void search__of_a_path_that_is_too_long(void **state)
{
	uint64_t dir = ROOT_INO;
	char name[251];

	memset(name, 'x', 250);
	name[250] = '\0';
	for (unsigned i = 0; i < 16; i++)
		dir = fx_dir(dir, name);
	assert_int_equal(path_of(dir), 0);
	assert_int_equal(strlen(path_search_text(&search)), 16 * 251);
	dir = fx_dir(dir, name);
	assert_int_equal(path_of(dir), -ENAMETOOLONG);
}

/* A search ends even if directories on the path move meanwhile. */
static void search__while_directories_move(void **state)
{
	uint64_t a = fx_dir(ROOT_INO, "a"), b = fx_dir(ROOT_INO, "b"), c = fx_dir(a, "c");

	path_search_begin(&search, 0, c);
	assert_int_equal(path_search_step(fx.m, &search), -EAGAIN); /* has found "c" in a */
	assert_int_equal(fx_rename(ROOT_INO, "a", b, "a", 0), 0);
	assert_int_equal(path_search_step(fx.m, &search), -EAGAIN);
	assert_int_equal(path_search_step(fx.m, &search), 0);
	assert_string_equal(path_search_text(&search), "/b/a/c");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fx_set_up, fx_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(find__walks_from_the_root),
		TEST(find__takes_a_number),
		TEST(search__finds_files_and_directories),
		TEST(search__is_in_pieces),
		TEST(search__finds_any_of_several_names),
		TEST(search__of_what_has_no_name),
		TEST(search__of_a_path_that_is_too_long),
		TEST(search__while_directories_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
