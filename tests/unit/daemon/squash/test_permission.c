/* The station where squashed callers are checked: which requests pass at once, what the others ask
 * the server for, and what comes of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>

#include "common/base/clock.h"
#include "common/rpc/wire.h"
#include "daemon/lease/lease.h"
#include "daemon/squash/access_set.h"
#include "daemon/squash/permission.h"
#include "tests/unit/daemon/fs_fixture.h"

enum { ALICE = 41001, ANON = 65533, ANON_GROUP = 65532, WAITS = FIXTURE_WAITS };

static struct fs_fixture fx;
static unsigned npassed;

static int setup(void **state)
{
	npassed = 0;
	return fs_fixture_init(&fx);
}

static int teardown(void **state)
{
	assert_int_equal(fx.inode->refs, 2);
	assert_true(list_empty(&fx.remotes[0].rpc_waiting));
	fs_fixture_fini(&fx);
	return 0;
}

static void squash(enum squash_kind kind)
{
	atomic_store(&fx.session.squash_ids, (uint64_t)ANON << 32 | ANON_GROUP);
	atomic_store(&fx.session.squash_kind, (uint8_t)kind);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct request *request_by(uint32_t uid, enum request_op op)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, op);

	req->uid = req->gid = uid;
	return req;
}

static void passed(struct request *req)
{
	npassed++;
}

/* The operation, which the request goes on to, finds its state empty. It ends at once. */
static void has_passed(struct request *req)
{
	for (size_t i = 0; i < sizeof(req->state); i++)
		assert_int_equal(req->state[i], 0);
	reply_error(req, -ENOSYS);
	assert_int_equal(fs_fixture_told(&fx, 0), -ENOSYS);
}

static void passes(struct request *req)
{
	assert_true(permission_enter(req, passed));
	assert_int_equal(npassed, 0);
	has_passed(req);
}

static void waits(struct request *req)
{
	assert_false(permission_enter(req, passed));
	assert_int_equal(fs_fixture_told(&fx, 0), WAITS);
	assert_int_equal(npassed, 0);
}

static void has_passed_later(struct request *req)
{
	assert_int_equal(npassed, 1);
	has_passed(req);
}

static void was_refused(int error)
{
	assert_int_equal(fs_fixture_told(&fx, 0), error);
	assert_int_equal(npassed, 0);
}

static void is_anonymous(const struct request *req)
{
	assert_true(req->squashed);
	assert_int_equal(req->uid, ANON);
	assert_int_equal(req->gid, ANON_GROUP);
}

/* ---- the server ------------------------------------------------------------------------------ */

static enum rpc_op asks_for(struct request *req)
{
	assert_int_equal(op_of(req)->wait, OP_AT_RPC);
	return op_of(req)->call.req.op;
}

static void answer(struct request *req, struct rpc_reply rep)
{
	struct op *op = op_of(req);

	rep.op = op->call.req.op;
	assert_true(rpc_cancel(req->thread, &op->call));
	op->call.done(&op->call, &rep);
}

static struct attr attr_of(uint32_t mode, uint32_t uid, uint32_t flags)
{
	return (struct attr){.ino = FIXTURE_INO,
		.nlink = 1,
		.mode = mode,
		.uid = uid,
		.gid = uid,
		.flags = flags};
}

static void answer_attr(struct request *req, uint32_t mode, uint32_t uid, uint32_t flags)
{
	assert_int_equal(asks_for(req), RPC_GETATTR);
	assert_int_equal(op_of(req)->call.req.ino.ino, FIXTURE_INO);
	assert_int_equal(op_of(req)->call.req.ino.look, 0);
	answer(req, (struct rpc_reply){.attr.attr = attr_of(mode, uid, flags)});
}

/* The list gives the anonymous user these permissions. */
static void answer_list(struct request *req, uint16_t permissions)
{
	const struct {
		uint16_t tag, permissions;
		uint32_t id;
	} entries[] = {
		{ACL_USER_OBJ, 6, UINT32_MAX},
		{ACL_USER, permissions, ANON},
		{ACL_GROUP_OBJ, 0, UINT32_MAX},
		{ACL_MASK, 7, UINT32_MAX},
		{ACL_OTHER, 0, UINT32_MAX},
	};
	uint8_t value[64];
	struct wire_out out;

	assert_int_equal(asks_for(req), RPC_GETXATTR);
	wire_out_init(&out, value, sizeof(value));
	wire_put_u32(&out, POSIX_ACL_XATTR_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		wire_put_u16(&out, entries[i].tag);
		wire_put_u16(&out, entries[i].permissions);
		wire_put_u32(&out, entries[i].id);
	}
	answer(req, (struct rpc_reply){.getxattr = {.total = (uint32_t)wire_out_len(&out),
					       .tail = {value, (uint32_t)wire_out_len(&out)}}});
}

/* ---- callers --------------------------------------------------------------------------------- */

static void enter__without_squash_changes_nothing(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	assert_true(permission_enter(req, passed));
	assert_false(req->squashed);
	assert_int_equal(req->uid, 0);
	has_passed(req);
}

static void enter__root_squash_leaves_other_users(void **state)
{
	struct request *req = request_by(ALICE, OP_OPEN);

	squash(SQUASH_ROOT);
	req->gid = 0;
	passes(req);
	assert_false(req->squashed);
	assert_int_equal(req->uid, ALICE);
	assert_int_equal(req->gid, ANON_GROUP);
}

/* Requests are used again. */
static void enter__one_callers_squash_is_no_other_callers(void **state)
{
	enum { MORE_THAN_THERE_ARE = 300 };
	struct request *req;

	squash(SQUASH_ROOT);
	for (unsigned i = 0; i < MORE_THAN_THERE_ARE; i++)
		passes(request_by(0, OP_WRITE));
	req = request_by(ALICE, OP_OPEN);
	passes(req);
	assert_false(req->squashed);
	assert_int_equal(req->uid, ALICE);
}

static void enter__all_squash_checks_everybody(void **state)
{
	struct request *req = request_by(ALICE, OP_OPEN);

	squash(SQUASH_ALL);
	waits(req);
	is_anonymous(req);
	answer_attr(req, S_IFREG | 0600, ALICE, 0);
	was_refused(-EACCES);
}

/* No process has this number, so nobody knows that it is not root. */
static void enter__a_caller_that_nobody_sees_counts_as_root(void **state)
{
	struct request *req = request_by(REQUEST_NO_ID, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	is_anonymous(req);
	answer_attr(req, S_IFREG | 0600, ALICE, 0);
	was_refused(-EACCES);
}

/* The request begins anew after its session's end, with its new ids. */
static void enter__a_squashed_caller_stays_so(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFREG | 0604, ALICE, 0);
	assert_int_equal(npassed, 1);
	npassed = 0;
	assert_false(permission_enter(req, passed));
	is_anonymous(req);
	answer_attr(req, S_IFREG | 0600, ALICE, 0);
	was_refused(-EACCES);
}

static void enter__a_remount_is_the_machines_own(void **state)
{
	struct request *req = request_by(0, OP_REMOUNT);

	squash(SQUASH_ALL);
	passes(req);
	assert_false(req->squashed);
	assert_int_equal(req->uid, 0);
}

static void enter__an_open_file_needs_no_check(void **state)
{
	struct request *req = request_by(0, OP_WRITE);

	squash(SQUASH_ROOT);
	passes(req);
	is_anonymous(req);
	/* But the caller has no privilege to leave set-user-id by. */
	assert_true(req->args.kill_priv);
}

/* Only root's owner 0 becomes another one: the server refuses all where everybody is squashed. */
static void enter__chown_to_root_is_to_the_anonymous_user(void **state)
{
	struct request *req = request_by(ALICE, OP_SETATTR);

	squash(SQUASH_ROOT);
	req->args.set.valid = SET_OWNERS;
	passes(req);
	assert_int_equal(req->args.set.uid, ANON);
	assert_int_equal(req->args.set.gid, ANON_GROUP);

	req = request_by(0, OP_SETATTR);
	squash(SQUASH_ALL);
	req->args.set.valid = SET_OWNERS;
	waits(req);
	assert_int_equal(req->args.set.uid, 0);
	answer_attr(req, S_IFREG | 0666, ANON, 0);
	was_refused(-EPERM);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void enter__passes_by_the_servers_attributes(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFREG | 0604, ALICE, 0);
	has_passed_later(req);
}

static void enter__asks_for_a_list(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFREG | 0660, ALICE, ATTR_ACL);
	assert_string_equal(op_of(req)->call.req.getxattr.name.s, XATTR_NAME_POSIX_ACL_ACCESS);
	answer_list(req, ACCESS_WRITE);
	was_refused(-EACCES);

	req = request_by(0, OP_OPEN);
	waits(req);
	answer_attr(req, S_IFREG | 0660, ALICE, ATTR_ACL);
	answer_list(req, ACCESS_READ);
	has_passed_later(req);
}

static void enter__a_list_that_has_gone_leaves_the_mode(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFREG | 0664, ALICE, ATTR_ACL);
	answer(req, (struct rpc_reply){.status = -ENODATA});
	has_passed_later(req);
}

static void enter__a_malformed_list_allows_nothing(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFREG | 0666, ALICE, ATTR_ACL);
	answer(req,
		(struct rpc_reply){.getxattr = {.total = 1, .tail = {(const uint8_t *)"x", 1}}});
	was_refused(-EIO);

	/* A part may lack the mask. */
	req = request_by(0, OP_OPEN);
	waits(req);
	answer_attr(req, S_IFREG | 0666, ALICE, ATTR_ACL);
	answer(req, (struct rpc_reply){
			    .getxattr = {.total = 12, .tail = {(const uint8_t *)"\2\0\0\0", 4}}});
	was_refused(-EIO);
}

static void knows(uint32_t mode, uint32_t uid)
{
	fx.inode->attr = attr_of(mode, uid, 0);
	fx.inode->attr_valid = true;
}

static void enter__a_mount_that_does_not_share_asks_for_nothing(void **state)
{
	fx.fs.sharing = false;
	squash(SQUASH_ROOT);
	knows(S_IFREG | 0604, ALICE);
	passes(request_by(0, OP_OPEN));
	knows(S_IFREG | 0640, ALICE);
	assert_false(permission_enter(request_by(0, OP_OPEN), passed));
	was_refused(-EACCES);
	fx.fs.sharing = true;
}

static void server_was_heard(void)
{
	fx.remotes[0].state = REMOTE_READY;
	fx.session.lease_ms = 10000;
	fx.session.renewed_ms = now_ms();
}

static void has_lease(enum lease_type type, bool sure)
{
	squash(SQUASH_ROOT);
	knows(S_IFREG | 0604, ALICE);
	fx.inode->sure = sure;
	fx.inode->lease_type = (uint8_t)type;
	fx.inode->lease_number = 1;
}

/* Knowledge under a lease is true as long as the session lives. */
static void enter__a_lease_is_enough(void **state)
{
	server_was_heard();
	has_lease(LEASE_SHARED, true);
	passes(request_by(0, OP_OPEN));
	has_lease(LEASE_NONE, false);
}

/* The mode that is known here is an old one. */
static void asks_all_the_same(void)
{
	struct request *req = request_by(0, OP_OPEN);

	/* Without a slot the question is not sent: there is no channel. */
	fx.remotes[0].nslots = fx.remotes[0].free_slots = 0;
	waits(req);
	answer_attr(req, S_IFREG | 0600, ALICE, 0);
	was_refused(-EACCES);
	has_lease(LEASE_NONE, false);
}

static void enter__a_lease_of_a_silent_server_is_not(void **state)
{
	has_lease(LEASE_SHARED, true);
	asks_all_the_same();
}

static void enter__a_lease_with_attributes_in_doubt_is_not(void **state)
{
	server_was_heard();
	has_lease(LEASE_SHARED, false);
	asks_all_the_same();
}

static void enter__a_lease_of_the_files_pages_is_not(void **state)
{
	server_was_heard();
	has_lease(LEASE_OVERWRITE, true);
	asks_all_the_same();
}

static void enter__asks_for_a_name_of_a_sticky_directory(void **state)
{
	struct request *req = request_by(0, OP_UNLINK);

	squash(SQUASH_ROOT);
	fx.inode->type = S_IFDIR;
	waits(req);
	answer_attr(req, S_IFDIR | 01777, ALICE, 0);
	assert_int_equal(asks_for(req), RPC_LOOKUP);
	assert_int_equal(op_of(req)->call.req.name.parent, FIXTURE_INO);
	assert_string_equal(op_of(req)->call.req.name.name.s, "name");
	answer(req, (struct rpc_reply){.entry.attr = {.ino = 99, .mode = S_IFREG, .uid = ALICE}});
	was_refused(-EPERM);

	req = request_by(0, OP_UNLINK);
	waits(req);
	answer_attr(req, S_IFDIR | 01777, ALICE, 0);
	answer(req, (struct rpc_reply){.status = -ENOENT});
	has_passed_later(req);
	fx.inode->type = S_IFREG;
}

static void enter__a_removed_directory_lists_nothing(void **state)
{
	struct request *req = request_by(0, OP_READDIR);

	squash(SQUASH_ROOT);
	waits(req);
	answer(req, (struct rpc_reply){.status = -ESTALE});
	has_passed_later(req);

	req = request_by(0, OP_OPEN);
	npassed = 0;
	waits(req);
	answer(req, (struct rpc_reply){.status = -ESTALE});
	was_refused(-ESTALE);
}

/* ---- what the kernel left to root ------------------------------------------------------------ */

static void enter__a_directory_that_is_not_searched_tells_names_alone(void **state)
{
	struct request *req = request_by(0, OP_READDIR);

	squash(SQUASH_ROOT);
	waits(req);
	answer_attr(req, S_IFDIR | 0704, ALICE, 0);
	assert_true(req->args.names_only);
	has_passed_later(req);

	npassed = 0;
	req = request_by(0, OP_READDIR);
	waits(req);
	answer_attr(req, S_IFDIR | 0705, ALICE, 0);
	assert_false(req->args.names_only);
	has_passed_later(req);
}

static void enter__set_group_id_is_for_members(void **state)
{
	struct request *req = request_by(0, OP_SETATTR);

	squash(SQUASH_ROOT);
	req->args.set.valid = SET_MODE;
	req->args.set.mode = 02755;
	waits(req);
	answer_attr(req, S_IFREG | 0755, ANON, 0);
	assert_int_equal(req->args.set.mode, 0755);
	has_passed_later(req);

	npassed = 0;
	req = request_by(0, OP_SETXATTR);
	req->args.name = XATTR_NAME_POSIX_ACL_ACCESS;
	waits(req);
	answer_attr(req, S_IFREG | 0755, ANON, 0);
	assert_int_equal(req->args.flags, SETXATTR_KILL_SGID);
	has_passed_later(req);
}

/* ---- the end of a wait ----------------------------------------------------------------------- */

static void enter__a_request_that_waits_is_taken_back(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	assert_true(op_cancel(req, -EINTR));
	was_refused(-EINTR);
}

/* Its caller was told that it is over, and would not close what is opened now. */
static void enter__a_request_that_was_given_up_does_not_go_on(void **state)
{
	struct request *req = request_by(0, OP_OPEN);

	squash(SQUASH_ROOT);
	waits(req);
	request_abandon(req, -EINTR);
	assert_int_equal(fs_fixture_told(&fx, 0), -EINTR);
	answer_attr(req, S_IFREG | 0604, ALICE, 0);
	was_refused(WAITS);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(enter__without_squash_changes_nothing),
		test(enter__root_squash_leaves_other_users),
		test(enter__one_callers_squash_is_no_other_callers),
		test(enter__all_squash_checks_everybody),
		test(enter__a_caller_that_nobody_sees_counts_as_root),
		test(enter__a_squashed_caller_stays_so),
		test(enter__a_remount_is_the_machines_own),
		test(enter__an_open_file_needs_no_check),
		test(enter__chown_to_root_is_to_the_anonymous_user),
		test(enter__passes_by_the_servers_attributes),
		test(enter__asks_for_a_list),
		test(enter__a_list_that_has_gone_leaves_the_mode),
		test(enter__a_malformed_list_allows_nothing),
		test(enter__a_mount_that_does_not_share_asks_for_nothing),
		test(enter__a_lease_is_enough),
		test(enter__a_lease_of_a_silent_server_is_not),
		test(enter__a_lease_with_attributes_in_doubt_is_not),
		test(enter__a_lease_of_the_files_pages_is_not),
		test(enter__asks_for_a_name_of_a_sticky_directory),
		test(enter__a_removed_directory_lists_nothing),
		test(enter__a_directory_that_is_not_searched_tells_names_alone),
		test(enter__set_group_id_is_for_members),
		test(enter__a_request_that_waits_is_taken_back),
		test(enter__a_request_that_was_given_up_does_not_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
