/* test_sure.c - when the attributes that a sharing mount has under a lease are sure to be current:
 * answers and changes of our own overtake each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode_return.h"
#include "daemon/serve/fs_block.h"

enum { INO = 71 };

static const struct attr first = {.ino = INO, .mode = S_IFDIR | 0700, .nlink = 2};
static const struct attr second = {.ino = INO, .mode = S_IFDIR | 0755, .nlink = 2};

static struct fs fs;
static struct fs_parts parts;
static struct inode *inode;

static int set_up(void **state)
{
	fs = (struct fs){.sharing = true};
	fs_wire(&fs, &parts);
	if (inode_table_init(fs.inodes, &inode_parts_hooks))
		return -1;
	grants_init(fs.grants);
	inode_return_init(fs.returns);
	inode = inode_get(&fs, INO);
	inode->lease_type = LEASE_SHARED;
	return 0;
}

static int tear_down(void **state)
{
	inode->lease_type = LEASE_NONE;
	inode_put(inode);
	inode_table_fini(fs.inodes);
	inode_return_fini(fs.returns);
	grants_fini(fs.grants);
	return 0;
}

static void learn(const struct attr *attr, uint64_t epoch)
{
	assert_true(inode_learn(inode, attr, epoch, NULL));
}

static void expect(const struct attr *attr, bool sure)
{
	assert_int_equal(inode->sure, sure);
	assert_int_equal(inode->attr.mode, attr->mode);
}

static void answer__under_the_lease_is_sure(void **state)
{
	learn(&first, inode_epoch(&fs));
	expect(&first, true);
}

static void answer__without_a_lease_is_not(void **state)
{
	inode->lease_type = LEASE_NONE;
	learn(&first, inode_epoch(&fs));
	expect(&first, false);
}

static void answer__from_before_a_change_is_not_taken_after_it(void **state)
{
	uint64_t epoch = inode_epoch(&fs);

	learn(&first, epoch);
	inode_change_begin(inode);
	expect(&first, false);
	inode_change_end(inode, &second);
	expect(&second, true);
	learn(&first, epoch);
	expect(&second, true);
}

static void answer__during_a_change_is_not_sure(void **state)
{
	uint64_t epoch;

	inode_change_begin(inode);
	epoch = inode_epoch(&fs);
	learn(&first, epoch);
	expect(&first, false);
	inode_change_end(inode, NULL);
	/* Attributes that were not sure before it are not sure after it. */
	expect(&first, false);
	learn(&first, epoch);
	expect(&first, false);
	learn(&second, inode_epoch(&fs));
	expect(&second, true);
}

static void change__that_failed_leaves_what_was_sure(void **state)
{
	learn(&first, inode_epoch(&fs));
	inode_change_begin(inode);
	inode_change_end(inode, NULL);
	expect(&first, true);
}

static void change__of_several_at_once_leaves_nothing_sure(void **state)
{
	learn(&first, inode_epoch(&fs));
	inode_change_begin(inode);
	inode_change_begin(inode);
	inode_change_end(inode, &second);
	inode_change_end(inode, &first);
	assert_false(inode->sure);
}

static void lease__that_comes_beside_a_change_is_not_sure(void **state)
{
	uint64_t epoch = inode_epoch(&fs);

	inode_change_begin(inode);
	inode_lease_locked(inode, &first, NULL, epoch);
	expect(&first, false);
	inode_change_end(inode, &second);
	assert_false(inode->sure);
	inode_lease_locked(inode, &first, NULL, epoch);
	expect(&first, false);
	inode_lease_locked(inode, &second, NULL, inode_epoch(&fs));
	expect(&second, true);
}

/* A name was removed, and it was not known to be one of this inode. */
static void changed_since__is_not_sure_where_something_else_came_between(void **state)
{
	uint64_t epoch = inode_epoch(&fs);

	learn(&first, epoch);
	inode_changed_since(inode, &second, epoch, 0);
	expect(&second, true);
	inode_changed_since(inode, &first, epoch, 0);
	assert_false(inode->sure);
}

/* Of a mount that is alone: the kernel lets a directory be changed while it is moved. */
static void changed_since__does_not_undo_a_change_during_a_move(void **state)
{
	uint64_t move;

	fs.sharing = false;
	learn(&first, inode_epoch(&fs));
	move = inode_move_begin(&fs);
	inode_change_begin(inode);
	inode_change_end(inode, &second);
	inode_changed_since(inode, &first, inode_epoch(&fs), move);
	inode_move_end(&fs);
	assert_false(inode->attr_valid);
}

static void change__in_doubt_tells_the_kernel_its_answer(void **state)
{
	struct attr seen;

	fs.sharing = false;
	learn(&first, inode_epoch(&fs));
	inode_change_begin(inode);
	inode_changed_since(inode, &first, inode_epoch(&fs), 0);
	inode_change_end(inode, &second);
	assert_false(inode->attr_valid);
	inode_see(inode, &second, &seen);
	assert_int_equal(seen.mode, second.mode);
}

static void answer__about_one_inode_is_good_while_others_are_moved(void **state)
{
	struct inode *other = inode_get(&fs, INO + 1);
	uint64_t epoch;

	fs.sharing = false;
	inode_move_begin(&fs);
	epoch = inode_epoch(&fs);
	inode_change_begin(other);
	inode_change_end(other, &second);
	learn(&first, epoch);
	inode_move_end(&fs);
	inode_put(other);
}

/* A changed inode that was forgotten has left no trace but the epoch. */
static void answer__from_before_a_changed_inode_was_forgotten(void **state)
{
	uint64_t epoch = inode_epoch(&fs);

	inode_change_begin(inode);
	inode_change_end(inode, &second);
	inode->lease_type = LEASE_NONE;
	inode_put(inode);
	inode = inode_get(&fs, INO);
	inode->lease_type = LEASE_SHARED;
	learn(&first, epoch);
	expect(&first, false);
	learn(&second, inode_epoch(&fs));
	expect(&second, true);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(answer__under_the_lease_is_sure),
		CASE(answer__without_a_lease_is_not),
		CASE(answer__from_before_a_change_is_not_taken_after_it),
		CASE(answer__during_a_change_is_not_sure),
		CASE(change__that_failed_leaves_what_was_sure),
		CASE(change__of_several_at_once_leaves_nothing_sure),
		CASE(lease__that_comes_beside_a_change_is_not_sure),
		CASE(changed_since__is_not_sure_where_something_else_came_between),
		CASE(changed_since__does_not_undo_a_change_during_a_move),
		CASE(change__in_doubt_tells_the_kernel_its_answer),
		CASE(answer__about_one_inode_is_good_while_others_are_moved),
		CASE(answer__from_before_a_changed_inode_was_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
