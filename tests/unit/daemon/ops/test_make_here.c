/* A mount with names=local: the files that it makes by itself, and those that it leaves to the
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "daemon/barrier/conversion.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/lease/local_answer.h"
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

static bool mkdir_asks(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_MKDIR);

	req->args.mode = 01777;
	req->args.umask = 022;
	op_mkdir(req);
	return op_of(req)->call.req.op == RPC_MKDIR;
}

static void mkdir__is_answered_without_the_server(void **state)
{
	struct inode *made;
	struct attr attr;

	fx.inode->attr.mode |= S_ISGID;
	fx.inode->attr.gid = 77;
	assert_false(mkdir_asks());
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	made = inode_find(&fx.fs, NUMBER);
	assert_non_null(made->queued);
	assert_int_equal(made->queued->kind, NAME_MKDIR);
	assert_true(inode_attr(made, &attr));
	assert_int_equal(attr.mode, S_IFDIR | S_ISGID | 01755);
	assert_int_equal(attr.gid, 77);
	assert_int_equal(attr.nlink, 2);
	assert_int_equal(fx.inode->attr.nlink, 3);
	assert_true(inode_names_lack(made, "any"));
	assert_int_equal(unmade_count(fx.fs.unmade), 1);
	inode_put(made);
}

/* To request 0, by the server. */
static void answer_request(const struct rpc_reply *rep)
{
	struct rpc_call *call = &op_of(fx.requests[0])->call;

	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, rep);
}

static bool symlink_asks(const char *target)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_SYMLINK);

	req->args.name2 = target;
	req->args.umask = 022;
	op_symlink(req);
	return op_of(req)->call.req.op == RPC_SYMLINK;
}

static void symlink__is_answered_without_the_server(void **state)
{
	struct inode *made;
	struct attr attr;

	fx.inode->attr.mode |= S_ISGID;
	fx.inode->attr.gid = 77;
	assert_false(symlink_asks("../there"));
	assert_int_equal(fs_fixture_told(&fx, 0), 0);
	made = inode_find(&fx.fs, NUMBER);
	assert_non_null(made->queued);
	assert_int_equal(made->queued->kind, NAME_SYMLINK);
	assert_string_equal(made->queued->text, "../there");
	assert_true(inode_attr(made, &attr));
	assert_int_equal(attr.mode, S_IFLNK | 0777);
	assert_int_equal(attr.size, 8);
	assert_int_equal(attr.gid, 77);
	assert_int_equal(attr.nlink, 1);
	assert_int_equal(fx.inode->attr.nlink, 2);
	assert_int_equal(unmade_count(fx.fs.unmade), 1);
	inode_put(made);
}

static void symlink__to_a_long_target_asks(void **state)
{
	char target[SYMLINK_BYTES_SHORT + 2];

	memset(target, 't', sizeof(target));
	target[SYMLINK_BYTES_SHORT + 1] = '\0';
	assert_true(symlink_asks(target));
	assert_int_equal(unmade_take_number(fx.fs.unmade), NUMBER);
}

static void symlink__to_the_longest_target_that_is_none(void **state)
{
	char target[SYMLINK_BYTES_SHORT + 1];

	memset(target, 't', sizeof(target));
	target[SYMLINK_BYTES_SHORT] = '\0';
	assert_false(symlink_asks(target));
}

static void symlink__that_the_server_makes_brings_numbers(void **state)
{
	struct rpc_reply rep = {.op = RPC_SYMLINK, .entry = {.lent = {300, 2}}};

	unmade_forget_numbers(fx.fs.unmade);
	assert_true(symlink_asks("there"));
	assert_int_equal(op_of(fx.requests[0])->call.req.create.numbers, NUMBERS_ANEW);
	rep.entry.attr = (struct attr){.ino = 299, .mode = S_IFLNK | 0777, .nlink = 1};
	answer_request(&rep);
	assert_int_equal(unmade_take_number(fx.fs.unmade), 300);
}

static void mkdir__asks_where_a_file_is_not_made(void **state)
{
	fx.inode->attr.flags |= ATTR_DEFAULT_ACL;
	assert_true(mkdir_asks());
	fx.inode->attr.flags = 0;
	inode_names_add(fx.inode, "name");
	assert_true(mkdir_asks());
	assert_int_equal(fx.inode->attr.nlink, 2);
}

static struct rpc_call *sent(void)
{
	struct list *reserved = &fx.remotes[0].rpc_waiting_reserved;

	assert_false(list_empty(reserved));
	return list_entry(reserved->next, struct rpc_call, link);
}

static void answer_names(uint16_t done, uint32_t refused)
{
	struct rpc_call *call = sent();
	struct rpc_reply rep = {.op = RPC_NAMES, .names = {done, refused, {200, 5}}};

	assert_int_equal(call->req.op, RPC_NAMES);
	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static void mkdir__is_told_and_brings_numbers(void **state)
{
	struct inode *made;

	assert_false(mkdir_asks());
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	/* The number may be the last one, and still counts. */
	assert_int_equal(sent()->req.names.numbers, NUMBERS_MORE);
	answer_names(1, 0);
	made = inode_find(&fx.fs, NUMBER);
	assert_null(made->queued);
	inode_put(made);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
	assert_int_equal(unmade_take_number(fx.fs.unmade), 200);
}

static bool readlink_asks(void)
{
	struct request *req = fs_fixture_make(&fx, 1, 0, OP_READLINK);

	req->node = NUMBER;
	op_readlink(req);
	return op_of(req)->call.req.op == RPC_READLINK;
}

static void symlink__that_the_server_does_not_know_tells_its_target(void **state)
{
	struct {
		struct fuse_out_header head;
		char body[512];
	} reply;

	assert_false(symlink_asks("../there"));
	assert_true(read(fx.kernel[0], &reply, sizeof(reply)) > 0);
	assert_false(readlink_asks());
	assert_int_equal(read(fx.kernel[0], &reply, sizeof(reply)), sizeof(reply.head) + 8);
	assert_int_equal(reply.head.error, 0);
	assert_memory_equal(reply.body, "../there", 8);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer_names(1, 0);
	assert_true(readlink_asks());
}

static void symlink__that_the_server_refuses_is_not_believed(void **state)
{
	struct inode *made;

	assert_false(symlink_asks("there"));
	made = inode_find(&fx.fs, NUMBER);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer_names(0, EIO);
	assert_false(made->attr_valid);
	assert_null(made->queued);
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
	inode_put(made);
}

static void symlink__is_told(void **state)
{
	struct rpc_name_change told;
	struct wire_in in;

	assert_false(symlink_asks("../there"));
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	in = rpc_tail_reader(&sent()->req.names.tail);
	assert_true(rpc_get_name_change(&in, &told));
	assert_int_equal(told.kind, NAME_SYMLINK);
	assert_int_equal(told.ino, NUMBER);
	assert_int_equal(told.target.len, 8);
	assert_memory_equal(told.target.s, "../there", 8);
	assert_int_equal(sent()->req.names.numbers, NUMBERS_MORE);
	answer_names(1, 0);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
}

static void mkdir__that_the_server_refuses_is_not_believed(void **state)
{
	struct inode *made;

	assert_false(mkdir_asks());
	made = inode_find(&fx.fs, NUMBER);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer_names(0, EIO);
	assert_false(made->attr_valid);
	assert_false(made->orphan);
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_int_equal(unmade_count(fx.fs.unmade), 0);
	inode_put(made);
}

/* A removal of it is the server's, behind it. */
static void rmdir__of_a_directory_that_the_server_does_not_know_waits(void **state)
{
	struct request *req;

	assert_false(mkdir_asks());
	req = fs_fixture_make(&fx, 1, 0, OP_RMDIR);
	op_rmdir(req);
	assert_int_equal(op_of(req)->wait, OP_AT_NAMES);
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

/* The directory is one that this mount has not made. */
static void forget_names(void)
{
	dir_names_forget(&fx.inode->names, &fx.fs.inodes->names);
}

static void create__asks_in_a_directory_that_is_not_known(void **state)
{
	forget_names();
	assert_true(asks());
}

/* look_up(CHANGES): the server has answered that there is no such name. */
static void look_up(bool changes)
{
	struct request *req = fs_fixture_make(&fx, 1, 1, OP_LOOKUP);
	struct look_change change;
	struct look_up look;

	local_answer_up_begin(req, fx.inode, false, &look);
	if (changes)
		local_answer_change_begin(
			req, fx.inode, req->args.name, LOOK_TAKES_NOTHING, &change);
	local_answer_up_end(req, fx.inode, NULL, &look, NULL);
	if (changes)
		local_answer_change_end_unknown(req, &change);
}

static void create__of_a_name_that_the_server_lacks(void **state)
{
	forget_names();
	look_up(false);
	assert_false(asks());
}

static void create__asks_if_the_name_changes_while_it_is_looked_up(void **state)
{
	forget_names();
	look_up(true);
	assert_true(asks());
}

/* Others may have made it since. */
static void create__asks_if_the_mount_has_shared_since_the_name_was_looked_up(void **state)
{
	forget_names();
	look_up(false);
	local_answer_forget_alone(fx.fs.looks);
	assert_true(asks());
	assert_int_equal(local_answer_name_of(fx.requests[0], fx.inode, "name"), 0);
}

static void create__asks_for_numbers_anew_after_the_mount_has_shared(void **state)
{
	unmade_forget_numbers(fx.fs.unmade);
	assert_true(asks());
	assert_int_equal(op_of(fx.requests[0])->call.req.create.numbers, NUMBERS_ANEW);
}

/* Attributes that an answer has, which was on its way before the directory in it was made. */
static void attributes__of_a_directory_with_changes_inside_are_not_learnt(void **state)
{
	struct attr older = fx.inode->attr, seen;
	uint64_t epoch;

	assert_false(mkdir_asks());
	assert_int_equal(fx.inode->attr.nlink, 3);
	fx.inode->attr_valid = false;
	assert_true(inode_learn(fx.inode, &older, inode_epoch(&fx.fs), &seen));
	assert_int_equal(seen.nlink, 3);
	assert_false(fx.inode->attr_valid);
	epoch = inode_epoch(&fx.fs);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	answer_names(1, 0);
	assert_true(inode_epoch(&fx.fs) != epoch);
	older.nlink = 7;
	assert_true(inode_learn(fx.inode, &older, inode_epoch(&fx.fs), &seen));
	assert_int_equal(seen.nlink, 7);
}

/* The server may have given it to somebody else. */
static void attributes__are_asked_for_if_users_are_squashed_by_now(void **state)
{
	struct inode *made;

	assert_false(mkdir_asks());
	made = inode_find(&fx.fs, NUMBER);
	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_true(made->attr_valid);
	atomic_store(&fx.session.squash_kind, SQUASH_ROOT);
	answer_names(1, 0);
	assert_false(made->attr_valid);
	inode_put(made);
}

static void create__is_answered_by_a_mount_that_may_share_later(void **state)
{
	fx.fs.options.session.converts = true;
	assert_false(asks());
}

static void create__asks_while_another_mount_comes(void **state)
{
	fx.fs.options.session.converts = true;
	conversion_wanted(fx.threads[0]);
	assert_true(asks());
	conversion_is_over(&fx.fs);
}

static void create__asks_while_the_mount_shares(void **state)
{
	fx.fs.sharing = true;
	assert_true(asks());
}

/* read_list(CHANGES): a list with another name comes to its end. */
static void read_list(bool changes)
{
	struct names_list list;

	inode_names_list_begin(fx.inode, &list, 0);
	inode_names_listed(fx.inode, &list, "other", 5, 10);
	if (changes)
		inode_names_add(fx.inode, "new");
	inode_names_list_end(fx.inode, &list);
}

static void create__in_a_directory_that_was_read_to_its_end(void **state)
{
	forget_names();
	read_list(false);
	assert_true(inode_names_lack(fx.inode, "name"));
	assert_false(inode_names_lack(fx.inode, "other"));
	assert_false(asks());
}

static void create__asks_if_a_name_came_while_the_directory_was_read(void **state)
{
	forget_names();
	read_list(true);
	assert_true(asks());
}

static void create__asks_if_the_directory_was_read_during_a_change(void **state)
{
	forget_names();
	inode_change_begin(fx.inode);
	read_list(false);
	inode_change_end(fx.inode, &fx.inode->attr);
	assert_true(asks());
}

/* Others add names, too. */
static void names_list__of_a_sharing_mount_tells_nothing(void **state)
{
	forget_names();
	fx.fs.sharing = true;
	read_list(false);
	assert_false(inode_names_lack(fx.inode, "name"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(create__is_answered_without_the_server),
		CASE(symlink__is_answered_without_the_server),
		CASE(symlink__to_a_long_target_asks),
		CASE(symlink__that_the_server_makes_brings_numbers),
		CASE(symlink__that_the_server_does_not_know_tells_its_target),
		CASE(symlink__to_the_longest_target_that_is_none),
		CASE(symlink__that_the_server_refuses_is_not_believed),
		CASE(symlink__is_told),
		CASE(mkdir__is_answered_without_the_server),
		CASE(mkdir__asks_where_a_file_is_not_made),
		CASE(mkdir__is_told_and_brings_numbers),
		CASE(mkdir__that_the_server_refuses_is_not_believed),
		CASE(rmdir__of_a_directory_that_the_server_does_not_know_waits),
		CASE(create__takes_no_number_of_an_inode),
		CASE(create__takes_no_number_where_the_server_makes_the_file),
		CASE(create__asks_where_there_are_quotas),
		CASE(create__asks_in_a_directory_that_is_not_known),
		CASE(create__of_a_name_that_the_server_lacks),
		CASE(create__asks_if_the_name_changes_while_it_is_looked_up),
		CASE(create__asks_if_the_mount_has_shared_since_the_name_was_looked_up),
		CASE(create__asks_for_numbers_anew_after_the_mount_has_shared),
		CASE(attributes__of_a_directory_with_changes_inside_are_not_learnt),
		CASE(attributes__are_asked_for_if_users_are_squashed_by_now),
		CASE(create__is_answered_by_a_mount_that_may_share_later),
		CASE(create__asks_while_another_mount_comes),
		CASE(create__asks_while_the_mount_shares),
		CASE(create__in_a_directory_that_was_read_to_its_end),
		CASE(create__asks_if_a_name_came_while_the_directory_was_read),
		CASE(create__asks_if_the_directory_was_read_during_a_change),
		CASE(names_list__of_a_sharing_mount_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
