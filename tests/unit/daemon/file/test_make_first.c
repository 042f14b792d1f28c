/* Requests that wait until the server knows a file that was made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "daemon/file/fetch_map.h"
#include "daemon/file/last_resort.h"
#include "daemon/file/make_first.h"
#include "daemon/file/unmade.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { PARENT = 60 };

static struct fs_fixture fx;
static int went, nwent; /* the last status, and how often it came */

/* The file of the fixture was made here. */
static int setup(void **state)
{
	struct rpc_make make = {.parent = PARENT, .name = {"name", 4}};
	struct unmade *file = unmade_new(FIXTURE_INO, &make);

	if (!file || fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){FIXTURE_INO, 1});
	unmade_take_number(fx.fs.unmade);
	unmade_add(fx.fs.unmade, file);
	fx.inode->unmade = file;
	fx.inode->commit.changes = 1;
	went = nwent = 0;
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

static struct request *begin(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_GETATTR);

	op_of(req)->inode = fx.inode;
	return req;
}

static void answered(struct request *req, const struct rpc_reply *rep)
{
	went = rep->status;
	nwent++;
}

static void look_up(struct request *req)
{
	op_of(req)->call.req.op = RPC_LOOKUP;
	op_of(req)->call.req.name = (struct rpc_name_request){.parent = PARENT};
	op_rpc(req, answered);
}

/* The next call that is to be sent; 0: none. */
static unsigned sent(void)
{
	struct remote *r = &fx.remotes[0];
	struct list *from[] = {&r->rpc_waiting_reserved, &r->rpc_waiting_nested, &r->rpc_waiting};

	for (unsigned i = 0; i < ARRAY_SIZE(from); i++)
		if (!list_empty(from[i]))
			return list_entry(from[i]->next, struct rpc_call, link)->req.op;
	return 0;
}

static void answer(struct rpc_call *call, int status)
{
	struct rpc_reply rep = {.op = call->req.op, .status = status};

	assert_true(rpc_cancel(fx.threads[0], call));
	if (rep.op == RPC_EXTENTS)
		rep.extents.last = true;
	if (rep.op == RPC_MAKE)
		rep.makes.n = 1;
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static void answer_make(int status)
{
	struct rpc_call *call = &fx.fs.threads[0].makes->messages[0].rpc;

	assert_int_equal(sent(), RPC_MAKE);
	answer(call, status);
}

static void request__goes_behind_the_make(void **state)
{
	struct request *req = begin();

	look_up(req);
	answer_make(0);
	assert_null(fx.inode->unmade);
	assert_int_equal(nwent, 0);
	assert_int_equal(sent(), RPC_LOOKUP);
	answer(&op_of(req)->call, -ENOENT);
	assert_int_equal(nwent, 1);
	assert_int_equal(went, -ENOENT);
}

/* Each such request would cost a message and a line in the log, and the error would be told again.
 */
static void request__does_not_repeat_a_make_that_was_refused(void **state)
{
	struct request *req = begin();

	look_up(req);
	answer_make(-EROFS);
	answer(&op_of(req)->call, 0);
	look_up(req);
	assert_int_equal(sent(), RPC_LOOKUP);
	answer(&op_of(req)->call, 0);
	assert_int_equal(nwent, 2);
	assert_int_equal(fx.inode->commit.nfailures, 1);
	/* The next change is a new try. */
	fx.inode->commit.refused = false;
	look_up(req);
	answer_make(0);
	answer(&op_of(req)->call, 0);
	assert_int_equal(nwent, 3);
}

static void known(struct request *req, int status)
{
	went = status;
	nwent++;
}

/* It waits twice, and goes on where it was told to. */
static void extents__are_asked_for_once(void **state)
{
	struct request *req = begin();

	assert_false(op_know_map(req, 5, known));
	answer_make(0);
	assert_int_equal(sent(), RPC_EXTENTS);
	answer(&op_of(req)->call, 0);
	assert_int_equal(sent(), 0);
	assert_int_equal(nwent, 1);
	assert_int_equal(went, 0);
}

/* fsync(2) of the directory promises that the names are at the server. */
static void fsyncdir__tells_that_a_file_was_not_made(void **state)
{
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	answer_make(-EROFS);
	assert_int_equal(fs_fixture_told(&fx, 0), -EROFS);
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	assert_int_equal(fs_fixture_told(&fx, 0), -EROFS);
	fx.inode->commit.refused = false;
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	answer_make(0);
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	op_fsyncdir(fs_fixture_make(&fx, 0, 0, OP_FSYNCDIR));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void lost__is_told_by_fsync_of_the_directory(void **state)
{
	struct inode *dir = inode_get(&fx.fs, PARENT);

	make_first_lost(&fx.fs);
	assert_int_equal(dir->names_error, -EIO);
	inode_put(dir);
}

static void request__that_is_taken_back_sends_nothing(void **state)
{
	struct request *req = begin();

	look_up(req);
	assert_true(op_cancel(req, -EINTR));
	assert_int_equal(nwent, 1);
	assert_int_equal(went, -ECANCELED);
	answer_make(0);
	assert_int_equal(sent(), 0);
	assert_int_equal(nwent, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(request__goes_behind_the_make),
		CASE(request__does_not_repeat_a_make_that_was_refused),
		CASE(extents__are_asked_for_once),
		CASE(fsyncdir__tells_that_a_file_was_not_made),
		CASE(lost__is_told_by_fsync_of_the_directory),
		CASE(request__that_is_taken_back_sends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
