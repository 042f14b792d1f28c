/* A mount with names=local: the names that it changes by itself, and those that it leaves to the
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/inode_return.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/local_answer.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { FILE_INO = 100, OTHER_INO = 101, DIR_INO = 102 };

static struct fs_fixture fx;
static struct inode *file, *other, *dir;

static struct inode *learn(uint64_t ino, uint32_t mode, uint32_t nlink)
{
	struct attr attr = {.ino = ino, .mode = mode, .nlink = nlink, .mtime = 1};
	struct inode *inode = inode_get(&fx.fs, ino);

	inode_learn_new(inode, &attr, inode_epoch(&fx.fs));
	return inode;
}

static void name_is(struct inode *parent, const char *name, uint64_t ino)
{
	inode_names_add(parent, name);
	local_answer_name_is(fs_fixture_make(&fx, 1, 0, OP_RENAME), parent, name, ino);
}

/* The fixture's inode is a directory with the files "name" and "other"; `dir` is another one. */
static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	fx.fs.options.names = NAMES_LOCAL;
	fx.fs.options.session.sharing = false;
	fx.session.lease_ms = 60000;
	fx.session.renewed_ms = now_ms();
	fx.inode->type = S_IFDIR;
	inode_put(learn(FIXTURE_INO, S_IFDIR | 0755, 2));
	dir = learn(DIR_INO, S_IFDIR | 0755, 2);
	file = learn(FILE_INO, S_IFREG | 0644, 1);
	other = learn(OTHER_INO, S_IFREG | 0644, 1);
	name_is(fx.inode, "name", FILE_INO);
	name_is(fx.inode, "other", OTHER_INO);
	return 0;
}

static int teardown(void **state)
{
	inode_put(file);
	inode_put(other);
	inode_put(dir);
	fs_fixture_fini(&fx);
	return 0;
}

/* Whether the server is asked. */
static bool asks(uint64_t to, const char *name, uint32_t flags)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_RENAME);

	req->args.node2 = to;
	req->args.name2 = name;
	req->args.flags = flags;
	op_rename(req);
	return op_of(req)->call.req.op == RPC_RENAME;
}

static bool is_named(struct inode *parent, const char *name, uint64_t ino)
{
	return local_answer_name_of(fx.requests[1], parent, name) == ino &&
	       inode_names_lack(parent, name) == !ino;
}

static void rename__onto_nothing_is_answered_without_the_server(void **state)
{
	assert_false(asks(FIXTURE_INO, "new", RENAME_NOREPLACE));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	assert_non_null(file->queued);
	assert_int_equal(file->queued->kind, NAME_MOVE);
	assert_null(file->queued->replaced);
	assert_int_equal(file->attr.ctime, fx.inode->attr.mtime);
	assert_true(is_named(fx.inode, "name", 0));
	assert_true(is_named(fx.inode, "new", FILE_INO));
}

static void rename__between_directories(void **state)
{
	assert_false(asks(DIR_INO, "new", 0));
	assert_true(is_named(fx.inode, "name", 0));
	assert_true(is_named(dir, "new", FILE_INO));
	assert_int_equal(dir->attr.mtime, fx.inode->attr.mtime);
	assert_true(dir->attr.mtime > 1);
}

static void rename__replaces_a_file(void **state)
{
	assert_false(asks(FIXTURE_INO, "other", 0));
	assert_true(other->orphan);
	assert_int_equal(other->attr.nlink, 0);
	assert_ptr_equal(other->queued, file->queued);
	assert_true(is_named(fx.inode, "other", FILE_INO));
	/* The name can go with its file. */
	inode_names_remove(fx.inode, "other");
	assert_true(inode_names_lack(fx.inode, "other"));
}

static void rename__asks_where_flags_want_more(void **state)
{
	assert_true(asks(FIXTURE_INO, "other", RENAME_EXCHANGE));
	assert_null(file->queued);
}

static void rename__that_may_not_replace_asks(void **state)
{
	assert_true(asks(FIXTURE_INO, "other", RENAME_NOREPLACE));
	assert_false(other->orphan);
}

static void rename__to_a_longer_name_asks(void **state)
{
	assert_true(asks(FIXTURE_INO, "longer", 0));
}

static void rename__asks_where_the_new_name_is_not_known(void **state)
{
	dir_names_forget(&fx.inode->names, &fx.fs.inodes->names);
	assert_true(asks(FIXTURE_INO, "new", 0));
}

static void rename__asks_where_the_old_name_is_not_known(void **state)
{
	local_answer_forget_name(fx.inode, "name");
	assert_true(asks(FIXTURE_INO, "new", 0));
}

static void rename__of_a_directory_in_its_parent(void **state)
{
	file->type = S_IFDIR;
	assert_false(asks(FIXTURE_INO, "new", 0));
	assert_int_equal(file->queued->kind, NAME_MOVE);
	assert_true(is_named(fx.inode, "name", 0));
	assert_true(is_named(fx.inode, "new", FILE_INO));
	assert_int_equal(fx.inode->attr.nlink, 2);
}

static void rename__asks_of_a_directory_that_gets_another_parent(void **state)
{
	file->type = S_IFDIR;
	assert_true(asks(DIR_INO, "new", 0));
	assert_null(file->queued);
}

static void rename__asks_of_a_directory_that_replaces(void **state)
{
	file->type = other->type = S_IFDIR;
	assert_true(asks(FIXTURE_INO, "other", 0));
	assert_null(file->queued);
}

static void rename__asks_where_the_other_file_stays(void **state)
{
	other->attr.nlink = 2;
	assert_true(asks(FIXTURE_INO, "other", 0));
	assert_false(other->orphan);
}

static void rename__of_two_names_of_one_file_asks(void **state)
{
	name_is(fx.inode, "same", FILE_INO);
	assert_true(asks(FIXTURE_INO, "same", 0));
}

static void rename__asks_of_a_file_that_the_server_does_not_know(void **state)
{
	struct rpc_make make = {.parent = FIXTURE_INO, .name = {"name", 4}};

	file->unmade = unmade_new(FILE_INO, &make);
	unmade_add(fx.fs.unmade, file->unmade);
	asks(FIXTURE_INO, "new", 0);
	assert_null(file->queued);
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
}

static void rename__asks_while_the_file_is_changed(void **state)
{
	inode_change_begin(file);
	assert_true(asks(FIXTURE_INO, "new", 0));
	inode_change_end(file, NULL);
}

static void rename__asks_while_a_directory_is_changed(void **state)
{
	inode_change_begin(dir);
	assert_true(asks(DIR_INO, "new", 0));
	assert_null(file->queued);
	inode_change_end(dir, NULL);
}

static struct rpc_call *sent(void)
{
	struct list *reserved = &fx.remotes[0].rpc_waiting_reserved;

	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_false(list_empty(reserved));
	return list_entry(reserved->next, struct rpc_call, link);
}

static struct rpc_name_change told(void)
{
	struct wire_in in = rpc_tail_reader(&sent()->req.names.tail);
	struct rpc_name_change change;

	assert_true(rpc_get_name_change(&in, &change));
	return change;
}

static void answer(uint16_t done, uint32_t refused)
{
	struct rpc_call *call = sent();
	struct rpc_reply rep = {.op = RPC_NAMES, .names = {done, refused, {0}}};

	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static void replaced__that_is_open_is_returned_when_it_is_closed(void **state)
{
	other->nopen = 1;
	assert_false(asks(FIXTURE_INO, "other", 0));
	assert_true(told().keep);
	assert_int_equal(told().replaced, OTHER_INO);
	answer(1, 0);
	assert_null(file->queued);
	assert_null(other->queued);
	assert_false(other->returned);
	other->nopen = 0;
	inode_return_settle(other, fx.threads[0]);
	assert_true(other->returned);
}

static void replaced__that_nobody_uses_ends_with_its_name(void **state)
{
	assert_false(asks(FIXTURE_INO, "other", 0));
	assert_false(told().keep);
	assert_true(other->returned);
	answer(1, 0);
	assert_true(inode_return_is_idle(&fx.fs));
}

static void rename__that_the_server_refuses_is_not_believed(void **state)
{
	assert_false(asks(DIR_INO, "new", 0));
	answer(0, EIO);
	assert_false(file->attr_valid);
	assert_false(file->orphan);
	assert_false(fx.inode->attr_valid);
	assert_false(dir->attr_valid);
	assert_int_equal(dir->names_error, -EIO);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_false(inode_names_lack(fx.inode, "name"));
	assert_int_equal(local_answer_name_of(fx.requests[1], dir, "new"), 0);
}

static void rename__of_a_directory_that_the_server_refuses_is_not_believed(void **state)
{
	file->type = S_IFDIR;
	assert_false(asks(FIXTURE_INO, "new", 0));
	answer(0, EIO);
	assert_false(file->attr_valid);
	assert_null(file->queued);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_int_equal(local_answer_name_of(fx.requests[1], fx.inode, "new"), 0);
}

static void replaced__that_the_server_does_not_replace_is_there_again(void **state)
{
	assert_false(asks(FIXTURE_INO, "other", 0));
	answer(0, EIO);
	assert_false(other->orphan);
	assert_false(other->returned);
	assert_false(other->attr_valid);
	assert_true(inode_return_is_idle(&fx.fs));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(rename__onto_nothing_is_answered_without_the_server),
		CASE(rename__between_directories),
		CASE(rename__replaces_a_file),
		CASE(rename__asks_where_flags_want_more),
		CASE(rename__that_may_not_replace_asks),
		CASE(rename__to_a_longer_name_asks),
		CASE(rename__asks_where_the_new_name_is_not_known),
		CASE(rename__asks_where_the_old_name_is_not_known),
		CASE(rename__of_a_directory_in_its_parent),
		CASE(rename__asks_of_a_directory_that_gets_another_parent),
		CASE(rename__asks_of_a_directory_that_replaces),
		CASE(rename__asks_where_the_other_file_stays),
		CASE(rename__of_two_names_of_one_file_asks),
		CASE(rename__asks_of_a_file_that_the_server_does_not_know),
		CASE(rename__asks_while_the_file_is_changed),
		CASE(rename__asks_while_a_directory_is_changed),
		CASE(replaced__that_is_open_is_returned_when_it_is_closed),
		CASE(replaced__that_nobody_uses_ends_with_its_name),
		CASE(rename__that_the_server_refuses_is_not_believed),
		CASE(rename__of_a_directory_that_the_server_refuses_is_not_believed),
		CASE(replaced__that_the_server_does_not_replace_is_there_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
