/* The pages that inodes take from their owners' allowances and give back. quota.bats tests from end
 * to end what the server is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/session_private.h"
#include "daemon/serve/fs_block.h"

enum { USER = 1000, OTHER_USER = 1001, GROUP = 100, OTHER_GROUP = 101 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	uint64_t last_ino;
};

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));

	if (!fx)
		return -1;
	fs_wire(&fx->fs, &fx->parts);
	if (inode_table_init(fx->fs.inodes, &inode_parts_hooks))
		return -1;
	fx->fs.session = &fx->session;
	atomic_store(&fx->session.quotas, 1);
	grants_init(fx->fs.grants);
	quota_allowance_init(fx->fs.allowances);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	inode_table_fini(fx->fs.inodes);
	quota_allowance_fini(fx->fs.allowances);
	grants_fini(fx->fs.grants);
	free(fx);
	return 0;
}

static struct inode *file_of(struct fixture *fx, uint32_t uid, uint32_t gid)
{
	struct inode *inode = inode_get(&fx->fs, 10 + fx->last_ino++);

	inode->attr.uid = uid;
	inode->attr.gid = gid;
	return inode;
}

/* Puts so many pages into the pool of each owner. */
static void fill_pools(struct fixture *fx, uint32_t uid, uint32_t gid, uint32_t npages)
{
	struct inode *inode = file_of(fx, uid, gid);

	inode->share = (struct share){.npages = npages, .user = true, .group = true, .epoch = 1};
	quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	assert_int_equal(inode->share.npages, 0);
	inode_put(inode);
}

/* The pages in the owners' pools. */
static uint32_t left_for(struct fixture *fx, uint32_t uid, uint32_t gid)
{
	struct inode *inode = file_of(fx, uid, gid);
	uint32_t left =
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, UINT32_MAX);

	quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	inode_put(inode);
	return left;
}

static void ready__without_quotas__all(void **state)
{
	struct fixture *fx = *state;
	struct inode *inode = file_of(fx, USER, GROUP);

	atomic_store(&fx->session.quotas, 0);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 12345), 12345);
	quota_allowance_use_locked(&inode->share, 12345);
	assert_int_equal(inode->share.npages, 0);
	inode_put(inode);
}

static void ready__empty_pools__nothing(void **state)
{
	struct inode *inode = file_of(*state, USER, GROUP);

	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 1), 0);
	inode_put(inode);
}

/* Both owners must allow the pages. */
static void ready__as_much_as_both_have(void **state)
{
	struct fixture *fx = *state;

	fill_pools(fx, USER, GROUP, 100);
	assert_int_equal(left_for(fx, OTHER_USER, GROUP), 0);
	assert_int_equal(left_for(fx, USER, OTHER_GROUP), 0);
	fill_pools(fx, OTHER_USER, OTHER_GROUP, 30);
	assert_int_equal(left_for(fx, USER, OTHER_GROUP), 30);
	assert_int_equal(left_for(fx, OTHER_USER, GROUP), 30);
	assert_int_equal(left_for(fx, USER, GROUP), 100);
}

/* A user and a group with the same number are two owners. */
static void ready__users_and_groups_are_apart(void **state)
{
	struct fixture *fx = *state;

	fill_pools(fx, 7, 8, 50);
	assert_int_equal(left_for(fx, 8, 7), 0);
	fill_pools(fx, 8 + ALLOWANCE_BUCKETS, 7, 20);
	assert_int_equal(left_for(fx, 7, 8), 50);
	assert_int_equal(left_for(fx, 7, 7), 20);
}

/* So writers meet at the pools' lock only once per share. */
static void share__grows_with_the_appetite(void **state)
{
	struct fixture *fx = *state;
	struct inode *inode = file_of(fx, USER, GROUP);
	uint32_t share = SHARE_PAGES_MIN;

	fill_pools(fx, USER, GROUP, 10000);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(
			quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 1), 1);
		assert_int_equal(inode->share.npages, share);
		quota_allowance_use_locked(&inode->share, share);
		share = share * 2 < SHARE_PAGES_MAX ? share * 2 : SHARE_PAGES_MAX;
	}
	inode_put(inode);
}

/* A share is used up before more is taken. */
static void share__to_its_end(void **state)
{
	struct fixture *fx = *state;
	struct inode *inode = file_of(fx, USER, GROUP);

	fill_pools(fx, USER, GROUP, SHARE_PAGES_MIN + 3);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 10), 10);
	quota_allowance_use_locked(&inode->share, 10);
	assert_int_equal(quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 10),
		SHARE_PAGES_MIN - 10);
	quota_allowance_use_locked(&inode->share, SHARE_PAGES_MIN - 10);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 10), 3);
	quota_allowance_use_locked(&inode->share, 3);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 10), 0);
	inode_put(inode);
}

/* The last reference to an inode gives back its unused share. */
static void share__goes_back_with_its_inode(void **state)
{
	struct fixture *fx = *state;
	struct inode *inode = file_of(fx, USER, GROUP);

	fill_pools(fx, USER, GROUP, 500);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 200), 200);
	assert_int_equal(left_for(fx, USER, GROUP), 300);
	quota_allowance_use_locked(&inode->share, 50);
	inode_put(inode);
	assert_int_equal(left_for(fx, USER, GROUP), 450);
}

/* The server was restarted, and may limit other owners now. */
static void share__of_another_epoch__is_taken_anew(void **state)
{
	struct fixture *fx = *state;
	struct inode *inode = file_of(fx, USER, GROUP);

	fill_pools(fx, USER, GROUP, 100);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 20), 20);
	atomic_store(&fx->session.quotas, 2);
	assert_int_equal(
		quota_allowance_ready_locked(inode->fs, &inode->share, &inode->attr, 90), 90);
	assert_int_equal(inode->share.epoch, 2);
	assert_int_equal(left_for(fx, USER, GROUP), 10);
	inode_put(inode);
}

/* Pages are taken, used and given back in any order: none is lost and none is created. */
static void pools__random__keep_count(void **state)
{
	enum { FILES = 20, TOTAL = 5000 };
	struct fixture *fx = *state;
	struct inode *files[FILES];
	uint32_t used = 0;
	unsigned seed = 7;

	fill_pools(fx, USER, GROUP, TOTAL);
	for (unsigned i = 0; i < FILES; i++)
		files[i] = file_of(fx, USER, GROUP);
	for (unsigned step = 0; step < 3000; step++) {
		struct inode *inode = files[(unsigned)rand_r(&seed) % FILES];
		uint32_t n = quota_allowance_ready_locked(
			inode->fs, &inode->share, &inode->attr, 1 + (uint32_t)rand_r(&seed) % 40);

		n = n ? (uint32_t)rand_r(&seed) % (n + 1) : 0;
		quota_allowance_use_locked(&inode->share, n);
		used += n;
		if (rand_r(&seed) % 8 == 0)
			quota_allowance_return_locked(inode->fs, &inode->share, &inode->attr);
	}
	assert_in_range(used, TOTAL / 2, TOTAL);
	for (unsigned i = 0; i < FILES; i++)
		inode_put(files[i]);
	assert_int_equal(left_for(fx, USER, GROUP), TOTAL - used);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(ready__without_quotas__all),
		CASE(ready__empty_pools__nothing),
		CASE(ready__as_much_as_both_have),
		CASE(ready__users_and_groups_are_apart),
		CASE(share__grows_with_the_appetite),
		CASE(share__to_its_end),
		CASE(share__goes_back_with_its_inode),
		CASE(share__of_another_epoch__is_taken_anew),
		CASE(pools__random__keep_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
