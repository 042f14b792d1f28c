/* CREATE of a squashed caller makes a file or nothing: the kernel would not check one that is
 * found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { ANON = 65534 };

static struct fs_fixture fx;

static int setup(void **state)
{
	return fs_fixture_init(&fx);
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static struct request *create(bool squashed, uint32_t flags)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_CREATE);

	req->squashed = squashed;
	req->uid = req->gid = squashed ? ANON : 0;
	req->args.mode = 0644;
	req->args.flags = O_WRONLY | O_CREAT | flags;
	op_create(req);
	assert_int_equal(op_of(req)->call.req.op, RPC_CREATE);
	return req;
}

static const struct rpc_create *asked(struct request *req)
{
	return &op_of(req)->call.req.create;
}

static void answer(struct request *req, int status)
{
	struct op *op = op_of(req);

	assert_true(rpc_cancel(req->thread, &op->call));
	op->call.done(&op->call, &(struct rpc_reply){.op = RPC_CREATE, .status = status});
}

static void create__of_a_squashed_caller_finds_no_file(void **state)
{
	struct request *req = create(true, 0);

	assert_true(asked(req)->exclusive);
	assert_int_equal(asked(req)->uid, ANON);
	assert_int_equal(asked(req)->gid, ANON);
	answer(req, -EEXIST);
	/* The kernel looks the name up again, and opens the file. */
	assert_int_equal(fs_fixture_told(&fx, 0), -ESTALE);
}

static void create__that_must_make_the_file_says_that_it_is_there(void **state)
{
	struct request *req = create(true, O_EXCL);

	assert_true(asked(req)->exclusive);
	answer(req, -EEXIST);
	assert_int_equal(fs_fixture_told(&fx, 0), -EEXIST);
}

static void create__of_others_may_find_one(void **state)
{
	struct request *req = create(false, 0);

	assert_false(asked(req)->exclusive);
	answer(req, -EACCES);
	assert_int_equal(fs_fixture_told(&fx, 0), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			create__of_a_squashed_caller_finds_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			create__that_must_make_the_file_says_that_it_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(create__of_others_may_find_one, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
