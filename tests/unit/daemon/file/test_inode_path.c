/* test_inode_path.c - how messages name inodes. */
#include "daemon/file/inode_path.h"
#include "tests/unit/daemon/inode_table_fixture.h"

enum { DIR = 70, INO = 71 };

static int setup(void **state)
{
	int r = inode_table_setup(state);
	struct fs *fs = *state;

	if (!r)
		fs->sharing = true;
	return r;
}

static void assert_named(struct inode *inode, const char *expected)
{
	char text[PATH_INODE_BYTES];

	assert_string_equal(path_name_inode(inode, text), expected);
}

static void name__has_the_path_as_far_as_it_is_known(void **state)
{
	struct fs *fs = *state;
	struct inode *root = inode_get(fs, ROOT_INO), *dir = inode_get(fs, DIR),
		     *inode = inode_get(fs, INO);

	assert_named(root, "inode 1, /");
	assert_named(inode, "inode 71");
	path_note(inode, DIR, "a");
	assert_named(inode, "inode 71, .../a");
	path_note(dir, ROOT_INO, "d");
	assert_named(inode, "inode 71, /d/a");
	/* Names are any bytes. */
	path_note(inode, DIR, "?");
	assert_named(inode, "inode 71, /d/?");
	inode_put(inode);
	inode_put(dir);
	inode_put(root);
}

static void name__is_a_number_where_no_path_is_noted(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);

	fs->sharing = false;
	path_note(inode, ROOT_INO, "a");
	assert_named(inode, "inode 71");
	inode_put(inode);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			name__has_the_path_as_far_as_it_is_known, setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			name__is_a_number_where_no_path_is_noted, setup, inode_table_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
