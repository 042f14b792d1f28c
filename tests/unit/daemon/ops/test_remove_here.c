/* A mount with names=local: the names that it removes by itself, and those that it leaves to the
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

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

enum { FILE_INO = 100, OTHER_DIR_INO = 101 };

static struct fs_fixture fx;
static struct inode *file;

/* The fixture's inode is a directory, and "name" is a file there. */
static int setup(void **state)
{
	struct attr dir = {.ino = FIXTURE_INO, .mode = S_IFDIR | 0755, .nlink = 2, .mtime = 1};
	struct attr attr = {.ino = FILE_INO, .mode = S_IFREG | 0644, .nlink = 1};

	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	fx.fs.options.names = NAMES_LOCAL;
	fx.fs.options.session.sharing = false;
	fx.session.lease_ms = 60000;
	fx.session.renewed_ms = now_ms();
	fx.inode->type = S_IFDIR;
	inode_learn(fx.inode, &dir, inode_epoch(&fx.fs), NULL);
	file = inode_get(&fx.fs, FILE_INO);
	inode_learn(file, &attr, inode_epoch(&fx.fs), NULL);
	local_answer_name_is(fs_fixture_make(&fx, 1, 0, OP_UNLINK), fx.inode, "name", FILE_INO);
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
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_UNLINK);

	op_unlink(req);
	return op_of(req)->call.req.op == RPC_UNLINK;
}

static void unlink__is_answered_without_the_server(void **state)
{
	int64_t mtime = fx.inode->attr.mtime;
	struct attr attr;

	assert_false(asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	assert_non_null(file->queued);
	assert_true(file->orphan);
	assert_true(inode_attr(file, &attr));
	assert_int_equal(attr.nlink, 0);
	assert_true(fx.inode->attr.mtime > mtime);
	assert_int_equal(file->queued->time, fx.inode->attr.mtime);
	/* The next LOOKUP is told so at once. */
	op_lookup(fs_fixture_make(&fx, 0, 0, OP_LOOKUP));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void unlink__of_a_name_that_is_not_known_asks(void **state)
{
	local_answer_forget_name(fx.inode, "name");
	assert_true(asks());
	assert_null(file->queued);
}

static void unlink__asks_where_the_file_does_not_go_with_the_name(void **state)
{
	file->attr.nlink = 2;
	assert_true(asks());
	assert_false(file->orphan);
}

static void unlink__asks_while_the_file_is_changed(void **state)
{
	inode_change_begin(file);
	assert_true(asks());
	inode_change_end(file, NULL);
}

static void unlink__asks_while_the_directory_is_changed(void **state)
{
	inode_change_begin(fx.inode);
	assert_true(asks());
	assert_null(file->queued);
}

static void unlink__asks_of_a_directory(void **state)
{
	file->type = S_IFDIR;
	assert_true(asks());
}

static void unlink__of_a_symlink_is_answered_without_the_server(void **state)
{
	file->type = S_IFLNK;
	assert_false(asks());
	assert_non_null(file->queued);
}

/* "name" is a directory, which is not known to have names. */
static void make_it_a_directory(void)
{
	file->type = S_IFDIR;
	file->attr.nlink = 2;
	fx.inode->attr.nlink = 3;
	dir_names_begin(&file->names);
}

static bool rmdir_asks(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_RMDIR);

	op_rmdir(req);
	return op_of(req)->call.req.op == RPC_RMDIR;
}

static void rmdir__of_an_empty_directory_is_answered_without_the_server(void **state)
{
	make_it_a_directory();
	inode_names_add(file, "in");
	inode_names_remove(file, "in");
	assert_false(rmdir_asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	assert_true(file->orphan);
	assert_int_equal(file->attr.nlink, 0);
	assert_int_equal(fx.inode->attr.nlink, 2);
	op_lookup(fs_fixture_make(&fx, 0, 0, OP_LOOKUP));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
}

static void rmdir__asks_where_there_may_be_names(void **state)
{
	make_it_a_directory();
	inode_names_add(file, "in");
	assert_true(rmdir_asks());
	assert_int_equal(fx.inode->attr.nlink, 3);
}

static void rmdir__asks_where_the_names_are_not_known(void **state)
{
	make_it_a_directory();
	dir_names_forget(&file->names, &fx.fs.inodes->names);
	assert_true(rmdir_asks());
}

/* A name is being made there. */
static void rmdir__asks_while_the_directory_is_changed(void **state)
{
	make_it_a_directory();
	inode_change_begin(file);
	assert_true(rmdir_asks());
	inode_change_end(file, NULL);
}

static void rmdir__asks_of_a_file(void **state)
{
	assert_true(rmdir_asks());
}

static void unlink__asks_when_the_lease_of_the_session_has_ended(void **state)
{
	fx.session.renewed_ms = 0;
	assert_true(asks());
}

static void unlink__asks_while_a_remount_waits(void **state)
{
	atomic_store(&fx.fs.committing_all, true);
	assert_true(asks());
}

static void unlink__asks_where_there_are_quotas(void **state)
{
	fx.session.quotas = 1;
	assert_true(asks());
}

static void unlink__asks_of_a_file_that_the_server_does_not_know(void **state)
{
	struct rpc_make make = {.parent = FIXTURE_INO, .name = {"name", 4}};

	file->unmade = unmade_new(FILE_INO, &make);
	unmade_add(fx.fs.unmade, file->unmade);
	/* The MAKE comes first. */
	op_unlink(fs_fixture_make(&fx, 0, 0, OP_UNLINK));
	assert_null(file->queued);
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
}

static struct rpc_call *sent(void)
{
	struct list *reserved = &fx.remotes[0].rpc_waiting_reserved;

	assert_false(list_empty(reserved));
	return list_entry(reserved->next, struct rpc_call, link);
}

static bool keeps(void)
{
	struct wire_in in = rpc_tail_reader(&sent()->req.names.tail);
	struct rpc_name_change removal;

	assert_true(rpc_get_name_change(&in, &removal));
	assert_int_equal(removal.ino, FILE_INO);
	return removal.keep;
}

static void answer(uint16_t done, uint32_t refused)
{
	struct rpc_call *call = sent();
	struct rpc_reply rep = {.op = RPC_NAMES, .names = {done, refused}};

	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static void file__that_nobody_uses_ends_with_its_name(void **state)
{
	assert_false(asks());
	assert_false(file->returned);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_false(keeps());
	assert_true(file->returned);
	answer(1, 0);
	assert_null(file->queued);
	assert_true(inode_return_is_idle(&fx.fs));
}

/* A RELEASE that comes before the message is sent counts; one that comes later brings a RETURN. */
static void file__that_is_open_is_returned_when_it_is_closed(void **state)
{
	file->nopen = 1;
	assert_false(asks());
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_true(keeps());
	file->nopen = 0;
	inode_return_settle(file, fx.threads[0]);
	assert_false(file->returned);
	answer(1, 0);
	assert_true(file->returned);
	assert_false(inode_return_is_idle(&fx.fs));
}

/* The kernel does not tell when a directory is in use. */
static void directory__that_the_kernel_knows_is_returned_when_it_is_forgotten(void **state)
{
	make_it_a_directory();
	inode_remember(file);
	assert_false(rmdir_asks());
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_true(keeps());
	answer(1, 0);
	inode_forget(file, 1);
	assert_false(file->returned);
	inode_put(file);
	assert_false(inode_return_is_idle(&fx.fs));
	file = inode_get(&fx.fs, FILE_INO);
}

static void directory__that_the_kernel_has_forgotten_ends_with_its_name(void **state)
{
	make_it_a_directory();
	assert_false(rmdir_asks());
	inode_put(file);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_false(keeps());
	answer(1, 0);
	assert_true(inode_return_is_idle(&fx.fs));
	assert_null(inode_find(&fx.fs, FILE_INO));
	file = inode_get(&fx.fs, FILE_INO);
}

static void directory__that_the_server_does_not_remove_is_there_again(void **state)
{
	make_it_a_directory();
	assert_false(rmdir_asks());
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer(0, ENOTEMPTY);
	assert_false(file->orphan);
	assert_false(file->attr_valid);
	assert_false(dir_names_are_none(&file->names));
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -ENOTEMPTY);
	assert_true(inode_return_is_idle(&fx.fs));
}

static void file__that_the_server_does_not_remove_is_there_again(void **state)
{
	assert_false(asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer(0, EIO);
	assert_false(file->orphan);
	assert_false(file->returned);
	assert_false(file->attr_valid);
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_true(inode_return_is_idle(&fx.fs));
	/* The server is asked for it. */
	op_lookup(fs_fixture_make(&fx, 0, 0, OP_LOOKUP));
	assert_int_equal(fs_fixture_told(&fx, 0), FIXTURE_WAITS);
}

/* A name that is believed to be nobody's would be made here, and refused. */
static void file__that_is_not_removed__is_asked_for_though_the_kernel_forgot_the_directory(
	void **state)
{
	struct attr attr = {.ino = OTHER_DIR_INO, .mode = S_IFDIR | 0755, .nlink = 2, .mtime = 1};
	struct inode *dir = inode_get(&fx.fs, OTHER_DIR_INO);
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_UNLINK);

	inode_learn(dir, &attr, inode_epoch(&fx.fs), NULL);
	local_answer_name_is(fs_fixture_make(&fx, 1, 0, OP_UNLINK), dir, "name", FILE_INO);
	req->node = OTHER_DIR_INO;
	op_unlink(req);
	assert_non_null(file->queued);
	assert_true(local_answer_lacks_name(fx.requests[1], dir, "name"));
	inode_put(dir);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer(0, EIO);
	dir = inode_get(&fx.fs, OTHER_DIR_INO);
	assert_false(local_answer_lacks_name(fx.requests[1], dir, "name"));
	inode_put(dir);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(unlink__is_answered_without_the_server),
		CASE(unlink__of_a_name_that_is_not_known_asks),
		CASE(unlink__asks_where_the_file_does_not_go_with_the_name),
		CASE(unlink__asks_while_the_file_is_changed),
		CASE(unlink__asks_while_the_directory_is_changed),
		CASE(unlink__asks_of_a_directory),
		CASE(unlink__of_a_symlink_is_answered_without_the_server),
		CASE(rmdir__of_an_empty_directory_is_answered_without_the_server),
		CASE(rmdir__asks_where_there_may_be_names),
		CASE(rmdir__asks_where_the_names_are_not_known),
		CASE(rmdir__asks_while_the_directory_is_changed),
		CASE(rmdir__asks_of_a_file),
		CASE(unlink__asks_when_the_lease_of_the_session_has_ended),
		CASE(unlink__asks_while_a_remount_waits),
		CASE(unlink__asks_where_there_are_quotas),
		CASE(unlink__asks_of_a_file_that_the_server_does_not_know),
		CASE(file__that_nobody_uses_ends_with_its_name),
		CASE(file__that_is_open_is_returned_when_it_is_closed),
		CASE(directory__that_the_kernel_knows_is_returned_when_it_is_forgotten),
		CASE(directory__that_the_kernel_has_forgotten_ends_with_its_name),
		CASE(directory__that_the_server_does_not_remove_is_there_again),
		CASE(file__that_the_server_does_not_remove_is_there_again),
		CASE(file__that_is_not_removed__is_asked_for_though_the_kernel_forgot_the_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
