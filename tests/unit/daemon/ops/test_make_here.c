/* A mount with names=local: the files that it makes by itself, and those that it leaves to the
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/file/unmade.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { NUMBER = 100 };

static struct fs_fixture fx;

/* The fixture's inode is an empty directory that this mount has made, and a number is lent. */
static int setup(void **state)
{
	struct attr attr = {.ino = FIXTURE_INO, .mode = S_IFDIR | 0755, .nlink = 2};

	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	fx.fs.options.names = NAMES_LOCAL;
	fx.session.lease_ms = 60000;
	fx.session.renewed_ms = now_ms();
	fx.inode->type = S_IFDIR;
	inode_learn_new(fx.inode, &attr, inode_epoch(&fx.fs));
	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NUMBER, 1});
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

/* Whether the server is asked. */
static bool asks(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_CREATE);

	req->args.mode = 0644;
	req->args.flags = O_WRONLY | O_CREAT;
	op_create(req);
	return op_of(req)->call.req.op == RPC_CREATE;
}

static void create__is_answered_without_the_server(void **state)
{
	struct inode *made;

	assert_false(asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	made = inode_find(&fx.fs, NUMBER);
	assert_non_null(made->unmade);
	assert_int_equal(unmade_count(fx.fs.unmade), 1);
	inode_put(made);
}

/* A hostile server lent the number of a file that is there. */
static void create__takes_no_number_of_an_inode(void **state)
{
	struct inode *there = inode_get(&fx.fs, NUMBER);

	inode_set_type(there, S_IFREG);
	assert_true(asks());
	assert_null(there->unmade);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
	inode_put(there);
}

static void create__takes_no_number_where_the_server_makes_the_file(void **state)
{
	fx.inode->attr.flags = ATTR_DEFAULT_ACL;
	assert_true(asks());
	assert_int_equal(unmade_take_number(fx.fs.unmade), NUMBER);
}

static void create__asks_where_there_are_quotas(void **state)
{
	fx.session.quotas = 1;
	assert_true(asks());
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(create__is_answered_without_the_server),
		CASE(create__takes_no_number_of_an_inode),
		CASE(create__takes_no_number_where_the_server_makes_the_file),
		CASE(create__asks_where_there_are_quotas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
