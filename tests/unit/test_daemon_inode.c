/* What the client learns of inodes while others are forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/fs_internal.h"

enum { OTHER = 70, INO = 71, SIZE = 12345 };

static const struct attr file = {.ino = INO, .mode = S_IFREG | 0600, .nlink = 1, .size = SIZE};

static int setup(void **state)
{
	struct fs *fs = calloc(1, sizeof(*fs));

	if (!fs || inode_table_init(&fs->inodes))
		return -1;
	grants_init(&fs->grants);
	*state = fs;
	return 0;
}

static int teardown(void **state)
{
	struct fs *fs = *state;

	inode_table_fini(&fs->inodes);
	grants_fini(&fs->grants);
	free(fs);
	return 0;
}

/* An inode that was changed here leaves the table. */
static void forget_changed(struct fs *fs)
{
	struct inode *inode = inode_get(fs, OTHER);

	inode_change_begin(inode);
	inode_change_end(inode, NULL);
	inode_put(inode);
}

static void inode_learn__refuses_what_is_older_than_a_forgotten_change(void **state)
{
	struct fs *fs = *state;
	uint64_t epoch = inode_epoch(fs);
	struct inode *inode;
	struct attr attr;

	forget_changed(fs);
	inode = inode_get(fs, INO);
	assert_false(inode_learn(inode, &file, epoch));
	assert_false(inode_attr(inode, &attr));
	assert_true(inode_learn(inode, &file, inode_epoch(fs)));
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.size, SIZE);
	inode_put(inode);
}

static void inode_learn_new__takes_it_whatever_is_forgotten(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);
	struct attr attr;

	forget_changed(fs);
	inode_learn_new(inode, &file);
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.mode, file.mode);
	inode_put(inode);
}

static void inode_learn_new__leaves_what_is_known(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);
	struct attr newer = file, attr;

	newer.mode = S_IFREG | 0400;
	assert_true(inode_learn(inode, &newer, inode_epoch(fs)));
	inode_learn_new(inode, &file);
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.mode, newer.mode);
	inode_put(inode);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			inode_learn__refuses_what_is_older_than_a_forgotten_change, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			inode_learn_new__takes_it_whatever_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(
			inode_learn_new__leaves_what_is_known, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
