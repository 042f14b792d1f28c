/* A mount with names=local: attributes of directories that it sets by itself, and those that it
 * leaves to the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/posix_acl.h>

#include "common/base/clock.h"
#include "common/rpc/acl.h"
#include "common/rpc/set_attr.h"
#include "daemon/file/inode_names.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { OTHER_INO = 100, NUMBER = 101 };

static struct fs_fixture fx;
static const struct attr was = {
	.ino = FIXTURE_INO, .mode = S_IFDIR | 0755, .nlink = 2, .atime = 1, .mtime = 2, .ctime = 3};

/* The fixture's inode is a directory. */
static int setup(void **state)
{
	if (fs_fixture_init(&fx))
		return -1;
	fx.fs.sharing = fx.session.sharing = false;
	atomic_store(&fx.fs.has_shared, false);
	fx.fs.options.names = NAMES_LOCAL;
	fx.fs.options.session.sharing = false;
	fx.session.lease_ms = 60000;
	fx.session.renewed_ms = now_ms();
	fx.inode->type = S_IFDIR;
	inode_learn_new(fx.inode, &was, inode_epoch(&fx.fs));
	return 0;
}

static int teardown(void **state)
{
	fs_fixture_fini(&fx);
	return 0;
}

/* fs_fixture_told() of a whole reply: more may follow. */
static int reply_to(unsigned i)
{
	struct {
		struct fuse_out_header head;
		uint8_t body[512];
	} reply;

	if (read(fx.kernel[0], &reply, sizeof(reply)) < 0)
		return FIXTURE_WAITS;
	assert_int_equal(reply.head.unique, i + 1);
	return reply.head.error;
}

static bool set_by_server(struct request *req)
{
	return op_of(req)->call.req.op == RPC_SETATTR;
}

/* Whether the server is asked. */
static bool asks(unsigned i, uint32_t valid)
{
	struct request *req = fs_fixture_make(&fx, i, 0, OP_SETATTR);

	req->args.set.valid = valid;
	req->args.set.mode = 02710;
	req->args.set.uid = 5;
	req->args.set.gid = 6;
	req->args.set.atime = -7;
	req->args.set.mtime = INT64_MAX;
	op_setattr(req);
	return set_by_server(req);
}

static struct rpc_call *sent(void)
{
	struct list *reserved = &fx.remotes[0].rpc_waiting_reserved;

	name_queue_flush(fx.fs.name_queue, fx.threads[0]);
	assert_false(list_empty(reserved));
	return list_entry(reserved->next, struct rpc_call, link);
}

/* The last change of the message. */
static struct rpc_name_change told(void)
{
	struct wire_in in = rpc_tail_reader(&sent()->req.names.tail);
	struct rpc_name_change change, last = {0};

	while (rpc_get_name_change(&in, &change))
		last = change;
	return last;
}

static void answer(uint16_t done, uint32_t refused)
{
	struct rpc_call *call = sent();
	struct rpc_reply rep = {.op = RPC_NAMES, .names = {done, refused, {0}}};

	assert_true(rpc_cancel(fx.threads[0], call));
	call->done(call, &rep);
	fs_fixture_turn(&fx, 0);
}

static bool is_answered(uint32_t valid)
{
	bool here = !asks(0, valid) && !reply_to(0);

	return here && fx.inode->nsets == 1 && !fx.inode->queued;
}

static void set__of_mode_and_owners(void **state)
{
	struct rpc_name_change change;

	assert_true(is_answered(SET_MODE | SET_OWNERS));
	assert_int_equal(fx.inode->attr.mode, S_IFDIR | 02710);
	assert_int_equal(fx.inode->attr.uid, 5);
	assert_int_equal(fx.inode->attr.gid, 6);
	assert_int_equal(fx.inode->attr.mtime, was.mtime);
	assert_true(fx.inode->attr.ctime > was.ctime);
	change = told();
	assert_int_equal(change.kind, NAME_SET);
	assert_int_equal(change.ino, FIXTURE_INO);
	assert_int_equal(change.valid, SET_MODE | SET_OWNERS);
	assert_int_equal(change.mode, 02710);
	answer(1, 0);
	assert_int_equal(fx.inode->nsets, 0);
	assert_true(fx.inode->attr_valid);
	assert_false(name_queue_any(fx.fs.name_queue));
}

static void set__of_given_times(void **state)
{
	fx.inode->access.dirty = true;
	assert_true(is_answered(SET_ATIME | SET_MTIME));
	assert_int_equal(fx.inode->attr.atime, -7);
	assert_int_equal(fx.inode->attr.mtime, INT64_MAX);
	assert_int_equal(fx.inode->attr.mode, was.mode);
	assert_false(fx.inode->access.dirty);
	assert_int_equal(told().valid, SET_ATIME | SET_MTIME);
}

/* The server gets them as they are here. */
static void set__of_times_that_are_now(void **state)
{
	assert_true(is_answered(SET_ATIME | SET_MTIME | SET_ATIME_NOW | SET_MTIME_NOW));
	assert_true(fx.inode->attr.mtime > was.mtime);
	assert_int_equal(fx.inode->attr.mtime, fx.inode->attr.ctime);
	assert_int_equal(told().valid, SET_ATIME | SET_MTIME);
	assert_int_equal(told().atime, fx.inode->attr.atime);
	assert_int_equal(told().mtime, fx.inode->attr.mtime);
}

/* The server makes of the message what callers were told. */
static void set__is_the_same_at_the_server(void **state)
{
	static const uint32_t flags[] = {
		SET_MODE, SET_UID, SET_GID, SET_ATIME, SET_MTIME, SET_ATIME_NOW, SET_MTIME_NOW};

	for (unsigned bits = 1; bits < 1u << ARRAY_SIZE(flags); bits++) {
		struct attr server = fx.inode->attr;
		struct rpc_name_change change;
		uint32_t valid = 0;

		for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
			valid |= bits & 1u << i ? flags[i] : 0;
		assert_true(is_answered(valid));
		change = told();
		set_attr(&server,
			&(struct rpc_setattr){.valid = change.valid | SET_CTIME,
				.mode = change.mode,
				.uid = change.uid,
				.gid = change.gid,
				.atime = change.atime,
				.mtime = change.mtime,
				.ctime = change.time},
			0);
		assert_memory_equal(&server, &fx.inode->attr, sizeof(server));
		answer(1, 0);
	}
}

static void sets__of_a_directory_that_is_not_at_the_server(void **state)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_MKDIR);
	struct inode *made;

	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NUMBER, 1});
	req->args.mode = 0777;
	op_mkdir(req);
	assert_int_equal(reply_to(0), 0);
	made = inode_find(&fx.fs, NUMBER);
	assert_non_null(made);
	for (unsigned i = 1; i <= 2; i++) {
		req = fs_fixture_make(&fx, i, 0, OP_SETATTR);
		req->node = NUMBER;
		req->args.set.valid = i == 1 ? SET_MODE : SET_MTIME;
		req->args.set.mode = 0700;
		op_setattr(req);
		assert_false(set_by_server(req));
		assert_int_equal(reply_to(i), 0);
	}
	assert_int_equal(made->nsets, 2);
	assert_non_null(made->queued);
	assert_int_equal(made->queued->kind, NAME_MKDIR);
	assert_int_equal(told().kind, NAME_SET);
	answer(1, 0);
	assert_null(made->queued);
	assert_int_equal(made->nsets, 2);
	answer(2, 0);
	assert_int_equal(made->nsets, 0);
	inode_put(made);
}

static void set__asks_where_names_are_the_servers(void **state)
{
	fx.fs.options.names = NAMES_REMOTE;
	assert_true(asks(0, SET_MODE));
}

static void set__asks_where_quotas_may_refuse(void **state)
{
	atomic_store(&fx.session.quotas, 1);
	assert_true(asks(0, SET_UID));
}

static void set__asks_of_users_that_are_squashed(void **state)
{
	atomic_store(&fx.session.squash_kind, SQUASH_ROOT);
	assert_true(asks(0, SET_MODE));
}

static void set__asks_of_a_file(void **state)
{
	fx.inode->type = S_IFREG;
	assert_true(asks(0, SET_MODE));
}

static struct inode *make_symlink(void)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, OP_SYMLINK);

	unmade_numbers_came(fx.fs.unmade, &(struct rpc_lent){NUMBER, 1});
	req->args.name2 = "there";
	op_symlink(req);
	assert_int_equal(reply_to(0), 0);
	return inode_find(&fx.fs, NUMBER);
}

/* Whether the server is asked, or the change waits for earlier ones before that. */
static bool asks_of_symlink(unsigned i, uint32_t valid)
{
	struct request *req = fs_fixture_make(&fx, i, 0, OP_SETATTR);

	req->node = NUMBER;
	req->args.set.valid = valid;
	req->args.set.uid = 5;
	op_setattr(req);
	return set_by_server(req) || op_of(req)->wait == OP_AT_NAMES;
}

static void set__of_a_symlink_that_is_not_at_the_server(void **state)
{
	struct inode *made = make_symlink();

	assert_false(asks_of_symlink(1, SET_UID | SET_MTIME));
	assert_int_equal(reply_to(1), 0);
	assert_int_equal(made->attr.uid, 5);
	assert_int_equal(made->nsets, 1);
	assert_int_equal(told().kind, NAME_SET);
	assert_int_equal(told().valid, SET_UID | SET_MTIME);
	answer(2, 0);
	assert_int_equal(made->nsets, 0);
	assert_null(made->queued);
	inode_put(made);
}

/* fsync of the folder that it is in tells it: a link has none. */
static void set__of_a_symlink_that_the_server_refuses(void **state)
{
	struct inode *made = make_symlink();

	assert_false(asks_of_symlink(1, SET_UID));
	answer(1, EIO);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_true(fx.inode->attr_valid);
	assert_false(made->attr_valid);
	assert_int_equal(made->nsets, 0);
	inode_put(made);
}

static void set__asks_for_a_symlinks_mode(void **state)
{
	inode_put(make_symlink());
	assert_true(asks_of_symlink(1, SET_MODE | SET_UID));
}

static void set__asks_of_a_symlink_that_the_server_knows(void **state)
{
	inode_put(make_symlink());
	sent();
	answer(1, 0);
	assert_true(asks_of_symlink(1, SET_UID));
}

static void set__asks_for_anything_else(void **state)
{
	assert_true(asks(0, SET_MTIME | SET_CTIME));
	assert_int_equal(fx.inode->nsets, 0);
}

static void set__asks_where_a_list_follows_the_mode(void **state)
{
	fx.inode->attr.flags = ATTR_ACL | ATTR_DEFAULT_ACL;
	assert_false(asks(0, SET_MTIME | SET_UID));
	assert_true(asks(1, SET_MODE));
}

static void set__asks_while_the_directory_is_changed(void **state)
{
	inode_change_begin(fx.inode);
	assert_true(asks(0, SET_MODE));
	inode_change_end(fx.inode, NULL);
}

static void set__asks_of_a_directory_without_a_name(void **state)
{
	fx.inode->orphan = true;
	assert_true(asks(0, SET_MODE));
}

/* After it has shared: another owner than the one that the kernel was told. */
static void set__asks_where_the_kernel_has_checked_another_owner(void **state)
{
	struct attr other = was;

	atomic_store(&fx.fs.has_shared, true);
	kernel_owner_settle(fx.inode, &was);
	assert_false(asks(0, SET_MODE));
	assert_int_equal(reply_to(0), 0);
	other.uid = 9;
	kernel_owner_tell(fx.inode, &other);
	assert_true(asks(1, SET_MODE));
}

static void set__asks_where_attributes_are_not_known(void **state)
{
	fx.inode->attr_valid = false;
	assert_true(asks(0, SET_MODE));
}

static void set__of_the_access_time_asks_while_an_older_one_is_on_its_way(void **state)
{
	fx.inode->commit.running = true;
	assert_false(asks(0, SET_MODE | SET_MTIME));
	assert_int_equal(reply_to(0), 0);
	asks(1, SET_ATIME);
	assert_int_equal(fx.inode->nsets, 1);
	assert_int_equal(reply_to(1), FIXTURE_WAITS);
	fx.inode->commit.running = false;
}

/* Its MAKE sets the directory's mtime, and takes the group of the directory. */
static void set__asks_where_a_file_is_to_be_made(void **state)
{
	struct rpc_make make = {.parent = FIXTURE_INO, .name = {"file", 4}};
	struct inode *file = inode_get(&fx.fs, OTHER_INO);

	file->unmade = unmade_new(OTHER_INO, &make);
	unmade_add(fx.fs.unmade, file->unmade);
	asks(0, SET_MTIME);
	assert_int_equal(fx.inode->nsets, 0);
	assert_int_equal(reply_to(0), FIXTURE_WAITS);
	inode_put(file);
}

/* Whether the server is asked for a list of so many entries; three say what a mode says. */
static bool list_asks(unsigned i, unsigned n, uint32_t flags)
{
	static const struct acl acl = {
		4, {{ACL_USER_OBJ, 7, UINT32_MAX}, {ACL_GROUP_OBJ, 5, UINT32_MAX},
			   {ACL_OTHER, 1, UINT32_MAX}}};
	static uint8_t buf[ACL_BYTES_MAX];
	struct request *req = fs_fixture_make(&fx, i, 0, OP_SETXATTR);
	struct acl list = acl;

	list.n = n;
	if (n == 4) {
		list.entries[3] = list.entries[2];
		list.entries[2] = (struct acl_entry){ACL_MASK, 5, UINT32_MAX};
	}
	req->args.name = "system.posix_acl_access";
	req->args.value = buf;
	req->args.size = (uint32_t)acl_encode(&list, buf);
	req->args.flags = flags;
	op_setxattr(req);
	return op_of(req)->call.req.op == RPC_SETXATTR;
}

static void set__by_a_list_that_says_a_mode(void **state)
{
	fx.inode->attr.mode = S_IFDIR | S_ISVTX | S_ISGID | 0700;
	assert_false(list_asks(0, 3, 0));
	assert_int_equal(reply_to(0), 0);
	assert_int_equal(fx.inode->attr.mode, S_IFDIR | S_ISVTX | S_ISGID | 0751);
	assert_int_equal(fx.inode->nsets, 1);
	assert_int_equal(told().valid, SET_MODE);
	assert_int_equal(told().mode, S_ISVTX | S_ISGID | 0751);
	answer(1, 0);
	fx.inode->attr.mode = S_IFDIR | S_ISGID | 0700;
	assert_false(list_asks(0, 3, SETXATTR_KILL_SGID));
	assert_int_equal(fx.inode->attr.mode, S_IFDIR | 0751);
}

static void set__by_another_list_asks(void **state)
{
	assert_true(list_asks(0, 4, 0));
	assert_int_equal(fx.inode->nsets, 0);
}

static void set__by_a_list_in_place_of_another_asks(void **state)
{
	fx.inode->attr.flags = ATTR_ACL;
	assert_true(list_asks(0, 3, 0));
	assert_int_equal(fx.inode->nsets, 0);
}

static void set__that_the_server_refuses_is_not_believed(void **state)
{
	assert_true(is_answered(SET_MODE));
	answer(0, EIO);
	assert_false(fx.inode->attr_valid);
	assert_int_equal(fx.inode->names_error, -EIO);
	assert_int_equal(fx.inode->nsets, 0);
}

/* Replies that were on their way know nothing of it. */
static void set__is_newer_than_any_reply(void **state)
{
	struct attr old = was, seen;

	assert_true(is_answered(SET_MODE));
	assert_true(inode_learn(fx.inode, &old, inode_epoch(&fx.fs), &seen));
	assert_int_equal(seen.mode, S_IFDIR | 02710);
	fx.inode->attr_valid = false;
	assert_true(inode_learn(fx.inode, &old, inode_epoch(&fx.fs), &seen));
	assert_false(fx.inode->attr_valid);
	fx.inode->attr_valid = true;
	inode_changed_since(fx.inode, &old, inode_epoch(&fx.fs), 0);
	assert_false(fx.inode->attr_valid);
}

/* The server has moved it before, and has answered this since. */
static void set__while_the_directory_is_moved_is_newer_than_the_answer(void **state)
{
	struct attr old = was;
	uint64_t move = inode_move_begin(&fx.fs);

	assert_true(is_answered(SET_MODE));
	answer(0, 0);
	assert_int_equal(fx.inode->nsets, 0);
	inode_changed_since(fx.inode, &old, inode_epoch(&fx.fs), move);
	inode_move_end(&fx.fs);
	assert_false(fx.inode->attr_valid);
}

static void set__before_the_directory_is_moved_is_in_the_answer(void **state)
{
	struct attr moved = was;
	uint64_t move;

	inode_move_begin(&fx.fs);
	assert_true(is_answered(SET_MODE));
	answer(0, 0);
	moved.mode = S_IFDIR | 02750;
	move = inode_move_begin(&fx.fs);
	inode_changed_since(fx.inode, &moved, inode_epoch(&fx.fs), move);
	assert_true(fx.inode->attr_valid);
	assert_int_equal(fx.inode->attr.mode, S_IFDIR | 02750);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(set__of_mode_and_owners),
		CASE(set__of_given_times),
		CASE(set__of_times_that_are_now),
		CASE(set__is_the_same_at_the_server),
		CASE(sets__of_a_directory_that_is_not_at_the_server),
		CASE(set__asks_where_names_are_the_servers),
		CASE(set__asks_where_quotas_may_refuse),
		CASE(set__asks_of_users_that_are_squashed),
		CASE(set__asks_of_a_file),
		CASE(set__of_a_symlink_that_is_not_at_the_server),
		CASE(set__of_a_symlink_that_the_server_refuses),
		CASE(set__asks_of_a_symlink_that_the_server_knows),
		CASE(set__asks_for_a_symlinks_mode),
		CASE(set__asks_for_anything_else),
		CASE(set__asks_where_a_list_follows_the_mode),
		CASE(set__asks_while_the_directory_is_changed),
		CASE(set__asks_of_a_directory_without_a_name),
		CASE(set__asks_where_the_kernel_has_checked_another_owner),
		CASE(set__asks_where_attributes_are_not_known),
		CASE(set__of_the_access_time_asks_while_an_older_one_is_on_its_way),
		CASE(set__asks_where_a_file_is_to_be_made),
		CASE(set__by_a_list_that_says_a_mode),
		CASE(set__by_another_list_asks),
		CASE(set__by_a_list_in_place_of_another_asks),
		CASE(set__that_the_server_refuses_is_not_believed),
		CASE(set__while_the_directory_is_moved_is_newer_than_the_answer),
		CASE(set__before_the_directory_is_moved_is_in_the_answer),
		CASE(set__is_newer_than_any_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
