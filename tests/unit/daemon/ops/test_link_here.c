/* A mount with names=local: the names that it gives an inode by itself, and those that it leaves to
 * the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/local_answer.h"
#include "daemon/ops/make_here.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { FILE_INO = 70, NUMBER = 100 };

static struct fs_fixture fx;
static struct inode *file;

/* The fixture's inode is an empty directory that this mount has made, and a number is lent. */
static int setup(void **state)
{
	const struct attr dir = {.ino = FIXTURE_INO, .mode = S_IFDIR | 0755, .nlink = 2};
	const struct attr attr = {.ino = FILE_INO, .mode = S_IFREG | 0644, .nlink = 1, .ctime = 1};

	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	fx.fs.options.names = NAMES_LOCAL;
	fx.session.lease_ms = 60000;
	fx.session.renewed_ms = now_ms();
	fx.inode->type = S_IFDIR;
	inode_learn_new(fx.inode, &dir, inode_epoch(&fx.fs));
	file = inode_get(&fx.fs, FILE_INO);
	inode_learn_new(file, &attr, inode_epoch(&fx.fs));
	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NUMBER, 1});
	return 0;
}

static int teardown(void **state)
{
	inode_put(file);
	fs_fixture_fini(&fx);
	return 0;
}

/* Whether the server is asked. */
static bool asks(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_LINK);

	req->args.node2 = FILE_INO;
	op_link(req);
	return op_of(req)->call.req.op == RPC_LINK;
}

static void link__is_answered_without_the_server(void **state)
{
	assert_false(asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	assert_non_null(file->queued);
	assert_int_equal(file->queued->kind, NAME_LINK);
	assert_int_equal(file->queued->lent, NUMBER);
	assert_int_equal(file->attr.nlink, 2);
	assert_int_equal(file->attr.ctime, fx.inode->attr.mtime);
	assert_int_equal(fx.inode->attr.nlink, 2);
	assert_int_equal(local_answer_name_of(fx.requests[0], fx.inode, "name"), FILE_INO);
	assert_false(inode_names_lack(fx.inode, "name"));
	assert_int_equal(unmade_take_number(fx.fs.unmade), 0);
	/* No inode is made. */
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
	assert_int_equal(unmade_ask_numbers(fx.fs.unmade), NUMBERS_MORE);
}

/* It still has its number, and the file is as it was. */
static void assert_asks(void)
{
	assert_true(asks());
	assert_null(file->queued);
	assert_int_equal(unmade_take_number(fx.fs.unmade), NUMBER);
}

static void link__asks_where_a_folder_is_not_made(void **state)
{
	fx.inode->attr.flags = ATTR_DEFAULT_ACL;
	assert_asks();
}

static void link__asks_where_the_name_is_not_known(void **state)
{
	dir_names_forget(&fx.inode->names, &fx.fs.inodes->names);
	assert_asks();
}

static void link__asks_where_no_number_is_lent(void **state)
{
	struct rpc_reply rep = {.op = RPC_LINK, .entry = {.lent = {300, 2}}};
	struct rpc_call *call;

	assert_int_equal(unmade_take_number(fx.fs.unmade), NUMBER);
	assert_true(asks());
	assert_int_equal(file->attr.nlink, 1);
	assert_int_equal(op_of(fx.requests[0])->call.req.link.numbers, NUMBERS_MORE);
	unmade_lose_number(fx.fs.unmade);
	rep.entry.attr = file->attr;
	call = &op_of(fx.requests[0])->call;
	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	assert_int_equal(unmade_take_number(fx.fs.unmade), 300);
}

static void link__of_a_file_with_all_the_names_it_can_have_asks(void **state)
{
	file->attr.nlink = MAKE_HERE_LINKS_MAX;
	assert_asks();
}

/* By O_TMPFILE, or since it was removed: the server keeps it, or does not. */
static void link__of_a_file_without_a_name_asks(void **state)
{
	file->attr.nlink = 0;
	assert_asks();
}

static void link__asks_while_another_link_of_it_is_on_its_way(void **state)
{
	file->nlinking = 1;
	assert_asks();
	file->nlinking = 0;
}

static void link__asks_of_a_file_whose_attributes_are_not_known(void **state)
{
	file->attr_valid = false;
	assert_asks();
}

/* Its last name has gone, and the server may not know that yet. */
static void link__of_a_file_that_was_removed_asks(void **state)
{
	file->orphan = true;
	asks();
	assert_null(file->queued);
	assert_int_equal(file->attr.nlink, 1);
	file->orphan = false;
}

static void link__of_a_file_that_is_linked_already_waits(void **state)
{
	struct request *req;

	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NUMBER + 1, 5});
	assert_false(asks());
	req = fs_fixture_make(&fx, 1, 0, OP_LINK);
	req->args.name = "other";
	req->args.node2 = FILE_INO;
	op_link(req);
	assert_int_equal(file->attr.nlink, 2);
	assert_int_equal(op_of(req)->wait, OP_AT_NAMES);
}

static void link__asks_while_the_file_is_changed(void **state)
{
	inode_change_begin(file);
	assert_asks();
	inode_change_end(file, NULL);
}

static void link__asks_of_a_file_that_the_server_does_not_know(void **state)
{
	struct rpc_make make = {.parent = FIXTURE_INO, .name = {"other", 5}};

	file->unmade = unmade_new(FILE_INO, &make);
	unmade_add(fx.fs.unmade, file->unmade);
	asks();
	assert_null(file->queued);
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
}

static struct rpc_call *sent(void)
{
	struct list *reserved = &fx.remotes[0].rpc_waiting_reserved;

	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_false(list_empty(reserved));
	return list_entry(reserved->next, struct rpc_call, link);
}

static void answer(uint16_t done, uint32_t refused)
{
	struct rpc_call *call = sent();
	struct rpc_reply rep = {.op = RPC_NAMES, .names = {done, refused, {0}}};

	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static void link__is_told(void **state)
{
	struct rpc_name_change told;
	struct wire_in in;

	assert_false(asks());
	in = rpc_tail_reader(&sent()->req.names.tail);
	assert_true(rpc_get_name_change(&in, &told));
	assert_int_equal(told.kind, NAME_LINK);
	assert_int_equal(told.ino, FILE_INO);
	assert_int_equal(told.lent, NUMBER);
	assert_int_equal(sent()->req.names.numbers, NUMBERS_MORE);
	answer(1, 0);
	assert_null(file->queued);
	assert_true(file->attr_valid);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
}

static void link__that_the_server_refuses_is_not_believed(void **state)
{
	assert_false(asks());
	answer(0, EIO);
	assert_false(file->attr_valid);
	assert_false(file->orphan);
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_int_equal(local_answer_name_of(fx.requests[0], fx.inode, "name"), 0);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(link__is_answered_without_the_server),
		CASE(link__asks_where_a_folder_is_not_made),
		CASE(link__asks_where_the_name_is_not_known),
		CASE(link__asks_where_no_number_is_lent),
		CASE(link__of_a_file_with_all_the_names_it_can_have_asks),
		CASE(link__of_a_file_without_a_name_asks),
		CASE(link__asks_while_another_link_of_it_is_on_its_way),
		CASE(link__asks_of_a_file_whose_attributes_are_not_known),
		CASE(link__of_a_file_that_was_removed_asks),
		CASE(link__of_a_file_that_is_linked_already_waits),
		CASE(link__asks_while_the_file_is_changed),
		CASE(link__asks_of_a_file_that_the_server_does_not_know),
		CASE(link__is_told),
		CASE(link__that_the_server_refuses_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
