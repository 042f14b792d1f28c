/* The callers that learn that data could not be committed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/remote/session_private.h"
#include "daemon/serve/fs_block.h"

static struct fs fs;
static struct fs_parts parts;
static struct inode *inode;
static struct session session;

static int setup(void **state)
{
	fs_wire(&fs, &parts);
	fs.session = &session;
	if (inode_table_init(fs.inodes, &inode_parts_hooks))
		return -1;
	grants_init(fs.grants);
	inode = inode_get(&fs, 71);
	return inode ? 0 : -1;
}

static int teardown(void **state)
{
	inode_put(inode);
	inode_table_fini(fs.inodes);
	grants_fini(fs.grants);
	return 0;
}

static struct handle opened(void)
{
	struct handle handle = {.kind = OPENED_DIRECT};

	commit_handle_opened_locked(inode, &handle);
	return handle;
}

static void tell__each_handle_once(void **state)
{
	struct handle a = opened(), b = opened();

	assert_int_equal(commit_tell(inode, &a), 0);
	commit_failed_locked(inode, -EIO);
	assert_true(commit_has_to_tell_locked(inode, &a));
	assert_int_equal(commit_tell(inode, &a), -EIO);
	assert_false(commit_has_to_tell_locked(inode, &a));
	assert_int_equal(commit_tell(inode, &a), 0);
	assert_int_equal(commit_tell(inode, &b), -EIO);
	assert_int_equal(commit_tell(inode, &b), 0);
}

static void tell__of_several_failures_the_last(void **state)
{
	struct handle a = opened();

	commit_failed_locked(inode, -EIO);
	commit_failed_locked(inode, -ENOSPC);
	assert_int_equal(commit_tell(inode, &a), -ENOSPC);
	assert_int_equal(commit_tell(inode, &a), 0);
	commit_failed_locked(inode, -EIO);
	assert_int_equal(commit_tell(inode, &a), -EIO);
}

static void told_by_answer__of_that_failure_alone(void **state)
{
	struct handle a = opened(), b = opened();

	commit_failed_locked(inode, -EIO);
	commit_told_by_answer(inode, &a);
	assert_int_equal(commit_tell(inode, &a), 0);
	assert_int_equal(commit_tell(inode, &b), -EIO);
	commit_failed_locked(inode, -ENOSPC);
	commit_failed_locked(inode, -EIO);
	commit_told_by_answer(inode, &a);
	assert_int_equal(commit_tell(inode, &a), -EIO);
	commit_told_by_answer(inode, &a);
	assert_int_equal(commit_tell(inode, &a), 0);
}

/* The kernel has told whom it tells: FSYNC and FLUSH come if it had nothing to tell. */
static void tell_pages__each_handle_that_closes_and_was_not_told(void **state)
{
	struct handle a = opened(), b = opened(), later;

	commit_pages_failed(inode, -ENOSPC);
	assert_int_equal(commit_tell(inode, &a), 0);
	later = opened();
	assert_int_equal(commit_tell_pages(inode, &a, OP_FSYNC), 0);
	assert_int_equal(commit_tell_pages(inode, &a, OP_FLUSH), 0);
	assert_int_equal(commit_tell_pages(inode, &b, OP_FLUSH), -ENOSPC);
	assert_int_equal(commit_tell_pages(inode, &b, OP_FLUSH), 0);
	assert_int_equal(commit_tell_pages(inode, &later, OP_FLUSH), 0);
	commit_pages_failed(inode, -ECANCELED);
	assert_int_equal(commit_tell_pages(inode, &later, OP_FLUSH), -EIO);
}

/* If no open handle could get an error, the next handle gets it. Once a caller knows it, later
 * handles do not get it. */
static void tell__who_opens_later_if_nobody_was(void **state)
{
	struct handle later, latest;

	commit_failed_locked(inode, -EIO);
	later = opened();
	assert_int_equal(commit_tell(inode, &later), -EIO);
	latest = opened();
	assert_int_equal(commit_tell(inode, &latest), 0);
	commit_failed_locked(inode, -ENOSPC);
	assert_int_equal(commit_tell(inode, &latest), -ENOSPC);
	assert_int_equal(commit_tell(inode, &later), -ENOSPC);
}

static void is_at_risk__what_a_close_would_have_told(void **state)
{
	struct commit *c = &inode->commit;

	assert_false(commit_is_at_risk_locked(inode));
	c->changes = 1;
	assert_false(commit_is_at_risk_locked(inode));
	/* Only its bytes changed, in place. */
	c->times_dirty = true;
	assert_false(commit_is_at_risk_locked(inode));
	c->size_dirty = true;
	assert_true(commit_is_at_risk_locked(inode));
	c->size_dirty = false;
	c->set = SET_MODE;
	assert_true(commit_is_at_risk_locked(inode));
	c->set = 0;
	c->telling = SET_UID;
	assert_true(commit_is_at_risk_locked(inode));
	assert_int_equal(commit_sets_locked(c), SET_UID);
	c->telling = 0;
	inode->map.uncommitted = 1;
	assert_true(commit_is_at_risk_locked(inode));
	/* Committed since, but its access time is still in flight. */
	inode->map.uncommitted = 0;
	c->done = c->changes;
	c->running = inode->access.dirty = true;
	assert_false(commit_is_at_risk_locked(inode));
	c->running = inode->access.dirty = false;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(tell__each_handle_once),
		CASE(tell__of_several_failures_the_last),
		CASE(tell__who_opens_later_if_nobody_was),
		CASE(told_by_answer__of_that_failure_alone),
		CASE(tell_pages__each_handle_that_closes_and_was_not_told),
		CASE(is_at_risk__what_a_close_would_have_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
