/* test_inode_path.c - how messages name inodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/file/inode_path.h"
#include "daemon/file/inode_return.h"
#include "daemon/op/fs_parts.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/inode_parts.h"

enum { DIR = 70, INO = 71 };

static int setup(void **state)
{
	struct fs_block *block = calloc(1, sizeof(*block));
	struct fs *fs = &block->fs;

	if (!block)
		return -1;
	fs_wire(fs, &block->parts);
	if (inode_table_init(fs->inodes, &inode_parts_hooks))
		return -1;
	grants_init(fs->grants);
	inode_return_init(fs->returns);
	fs->sharing = true;
	*state = fs;
	return 0;
}

static int teardown(void **state)
{
	struct fs *fs = *state;

	inode_table_fini(fs->inodes);
	inode_return_fini(fs->returns);
	grants_fini(fs->grants);
	free(fs);
	return 0;
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
			name__has_the_path_as_far_as_it_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(
			name__is_a_number_where_no_path_is_noted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
