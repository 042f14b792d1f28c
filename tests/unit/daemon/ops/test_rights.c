/* test_rights.c - requests of a sharing mount that carry no user and group, as all do where mounts
 * may map ids. Tests which rights go to the server, for callers that can be seen and for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "daemon/request/caller.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/lease/local_answer.h"
#include "daemon/ops/ops.h"
#include "tests/unit/daemon/fs_fixture.h"
#include "daemon/ops/change_attr.h"

enum { ALICE = 41001, BOB = 41002, STAFF = 41003, MODE = S_IFREG | 0644 };

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

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct attr attr_of(uint32_t uid, uint32_t gid)
{
	return (struct attr){.ino = FIXTURE_INO, .mode = MODE, .nlink = 1, .uid = uid, .gid = gid};
}

static void is_told(uint32_t uid, uint32_t gid)
{
	const struct attr attr = attr_of(uid, gid);

	kernel_owner_tell(fx.inode, &attr);
}

static void is_told_by_setattr(uint32_t uid, uint32_t gid)
{
	const struct attr attr = attr_of(uid, gid);

	kernel_owner_settle(fx.inode, &attr);
}

/* The client's knowledge is newer than that. */
static void is_known(uint32_t uid, uint32_t mode)
{
	fx.inode->attr = attr_of(uid, STAFF);
	fx.inode->attr.mode = S_IFREG | mode;
	fx.inode->attr_valid = fx.inode->sure = true;
}

static struct request *ask(enum request_op op, pid_t pid)
{
	struct request *req = fs_fixture_make(&fx, 0, 0, op);

	req->uid = req->gid = REQUEST_NO_ID;
	req->pid = (uint32_t)pid;
	return req;
}

static struct request *chmod_by(pid_t pid, uint32_t mode)
{
	struct request *req = ask(OP_SETATTR, pid);

	req->args.set.valid = SET_MODE;
	req->args.set.mode = mode;
	op_setattr(req);
	return req;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Answers the request, which waits for it. */
static void answers(struct request *req, int status)
{
	struct op *op = op_of(req);
	const struct attr attr = attr_of(BOB, STAFF);

	assert_true(rpc_cancel(req->thread, &op->call));
	op->call.done(&op->call,
		&(struct rpc_reply){
			.op = op->call.req.op, .status = status, .attr = {.attr = attr}});
}

static const struct rpc_setattr *asked(struct request *req)
{
	assert_int_equal(op_of(req)->call.req.op, RPC_SETATTR);
	return &op_of(req)->call.req.setattr;
}

#define assert_range(range, from, to)             \
	do {                                      \
		struct id_range r_ = (range);     \
		assert_int_equal(r_.first, from); \
		assert_int_equal(r_.last, to);    \
	} while (0)

static void is_bound(const struct rights *rights, uint32_t first, uint32_t last)
{
	assert_true(rights->bound);
	assert_range(rights->owners, first, last);
}

static int told(void)
{
	struct {
		struct fuse_out_header head;
		uint8_t body[256];
	} message;

	if (read(fx.kernel[0], &message, sizeof(message)) < 0)
		return FIXTURE_WAITS;
	return message.head.error;
}

/* ---- processes ------------------------------------------------------------------------------- */

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("only root makes processes of others\n");
		skip();
	}
}

/* Starts a process of this user, in this group alone. */
static pid_t start(uint32_t uid, uint32_t gid)
{
	int ready = eventfd(0, EFD_CLOEXEC);
	pid_t pid = fork();
	eventfd_t n;

	assert_true(ready >= 0 && pid >= 0);
	if (pid == 0) {
		n = !setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		eventfd_write(ready, n ? 1 : 2);
		for (;;)
			pause();
	}
	assert_int_equal(eventfd_read(ready, &n), 0);
	assert_int_equal(n, 1);
	close(ready);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- which owner the kernel has -------------------------------------------------------------- */

static void one_owner(uint32_t uid)
{
	const struct request *req = ask(OP_SETATTR, 0);
	struct rights rights;

	assert_true(kernel_owner_rights(req, fx.inode, &rights));
	is_bound(&rights, uid, uid);
	request_end(fx.requests[0]);
}

static void several_owners(void)
{
	const struct request *req = ask(OP_SETATTR, 0);
	struct rights rights;

	assert_false(kernel_owner_rights(req, fx.inode, &rights));
	request_end(fx.requests[0]);
}

static void kernel_owner__is_what_it_was_told(void **state)
{
	several_owners();
	is_told(ALICE, STAFF);
	one_owner(ALICE);
	is_told(ALICE, STAFF);
	one_owner(ALICE);
}

/* The kernel may not accept an answer that is in flight. */
static void kernel_owner__may_be_one_of_several(void **state)
{
	is_told(ALICE, STAFF);
	is_told(BOB, STAFF);
	several_owners();
	is_told(BOB, STAFF);
	several_owners();
	is_told_by_setattr(BOB, STAFF);
	one_owner(BOB);
	is_told(BOB, STAFF);
	one_owner(BOB);
}

static void kernel_owner__root_counts_as_the_only_one(void **state)
{
	is_told(0, 0);
	one_owner(0);
	is_told(BOB, STAFF);
	one_owner(BOB);
	is_told(0, 0);
	several_owners();
}

static void kernel_owner__ends_with_its_lookups(void **state)
{
	is_told(ALICE, STAFF);
	inode_remember(fx.inode);
	inode_forget(fx.inode, 1);
	one_owner(ALICE);
	inode_forget(fx.inode, 1);
	several_owners();
	inode_remember(fx.inode);
	is_told(BOB, STAFF);
	one_owner(BOB);
}

/* While it was alone a mount noted nothing. */
static void kernel_owner__is_not_known_when_a_mount_begins_to_share(void **state)
{
	kernel_owner_share_locked(fx.inode);
	is_told(BOB, STAFF);
	several_owners();
	is_told_by_setattr(BOB, STAFF);
	one_owner(BOB);
}

static void kernel_owner__is_not_asked_of_root(void **state)
{
	struct request *req = ask(OP_SETATTR, 0);
	struct rights rights;

	is_told(ALICE, STAFF);
	req->uid = 0;
	assert_false(kernel_owner_rights(req, fx.inode, &rights));
	request_end(req);
}

/* ---- SETATTR --------------------------------------------------------------------------------- */

static void setattr__is_right_while_the_owner_is_the_one_that_the_kernel_has(void **state)
{
	struct request *req;

	is_told(ALICE, STAFF);
	is_known(BOB, 0644);
	req = chmod_by(0, 0600);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, 0);
	assert_int_equal(told(), 0);
	/* The kernel accepts that answer. */
	one_owner(BOB);
}

/* Others may have changed the owner before it was alone, and the kernel goes by the old one. */
static void setattr__of_a_mount_that_is_alone_again_is_checked(void **state)
{
	struct request *req;

	is_told(ALICE, STAFF);
	is_known(BOB, 0644);
	atomic_store(&fx.fs.sharing, false);
	req = chmod_by(0, 0600);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, 0);
	assert_int_equal(told(), 0);
}

static void kernel_owner__is_right_on_a_mount_that_is_alone_again_if_it_is_the_owner(void **state)
{
	is_told(ALICE, STAFF);
	is_known(ALICE, 0644);
	assert_false(kernel_owner_is_right(fx.inode));
	atomic_store(&fx.fs.sharing, false);
	assert_true(kernel_owner_is_right(fx.inode));
	is_known(BOB, 0644);
	assert_false(kernel_owner_is_right(fx.inode));
	is_known(ALICE, 0644);
	fx.inode->attr_valid = false;
	assert_false(kernel_owner_is_right(fx.inode));
	fx.inode->attr_valid = true;
	is_told(BOB, STAFF);
	assert_false(kernel_owner_is_right(fx.inode));
	is_told_by_setattr(ALICE, BOB);
	assert_false(kernel_owner_is_right(fx.inode));
	is_told_by_setattr(ALICE, STAFF);
	assert_true(kernel_owner_is_right(fx.inode));
}

static void setattr__of_a_mount_that_is_alone_again_is_not_checked_twice(void **state)
{
	struct request *req;

	is_told(ALICE, STAFF);
	is_known(ALICE, 0644);
	atomic_store(&fx.fs.sharing, false);
	req = chmod_by(0, 0600);
	assert_false(asked(req)->rights.bound);
	answers(req, 0);
	assert_int_equal(told(), 0);
}

static void setattr__of_one_who_is_not_seen_is_refused_when_the_owner_has_changed(void **state)
{
	struct request *req;

	is_told(ALICE, STAFF);
	req = chmod_by(0, 0600);
	answers(req, -EPERM);
	is_bound(&asked(req)->rights, 1, 0);
	assert_int_equal(told(), FIXTURE_WAITS);
	answers(req, -EPERM);
	assert_int_equal(told(), -EPERM);
	one_owner(ALICE);
}

static void setattr__of_one_who_is_seen_goes_by_the_caller_when_the_owner_has_changed(void **state)
{
	struct request *req;
	pid_t alice;

	need_root();
	alice = start(ALICE, ALICE);
	is_told(ALICE, STAFF);
	is_known(BOB, 0644);
	req = chmod_by(alice, 0600);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, -EPERM);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, -EPERM);
	assert_int_equal(told(), -EPERM);
	req = chmod_by(getpid(), 0600);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, -EPERM);
	assert_false(asked(req)->rights.bound);
	answers(req, 0);
	assert_int_equal(told(), 0);
	end(alice);
}

static void setattr__goes_by_the_caller_when_the_kernel_may_have_several_owners(void **state)
{
	struct request *req;

	need_root();
	is_told(ALICE, STAFF);
	is_told(BOB, STAFF);
	is_known(BOB, 0644);
	req = chmod_by(0, 0600);
	is_bound(&asked(req)->rights, 1, 0);
	answers(req, -EPERM);
	assert_int_equal(told(), -EPERM);
	req = chmod_by(getpid(), 0600);
	assert_false(asked(req)->rights.bound);
	answers(req, 0);
	assert_int_equal(told(), 0);
}

/* The kernel has checked another user, who may own the file, or be root. */
static void setattr__of_a_squashed_caller_goes_by_the_anonymous_user(void **state)
{
	struct request *req = ask(OP_SETATTR, getpid());

	is_told(ALICE, STAFF);
	is_known(ALICE, 0644);
	req->squashed = true;
	req->uid = req->gid = BOB;
	req->args.set.valid = SET_MODE;
	req->args.set.mode = 02600;
	op_setattr(req);
	is_bound(&asked(req)->rights, BOB, BOB);
	assert_range(asked(req)->rights.groups, 1, 0);
	answers(req, -EPERM);
	assert_int_equal(told(), -EPERM);
}

/* The kernel leaves the bit in the mode for members only. */
static void setattr__keeps_a_set_group_id_of_the_group_that_the_kernel_has(void **state)
{
	struct request *req;
	pid_t alice;

	need_root();
	is_told(ALICE, STAFF);
	is_known(ALICE, 0644);
	req = chmod_by(0, 02755);
	assert_range(asked(req)->rights.groups, STAFF, STAFF);
	answers(req, 0);
	assert_int_equal(told(), 0);
	alice = start(ALICE, ALICE);
	is_told_by_setattr(ALICE, STAFF);
	req = chmod_by(alice, 02755);
	assert_range(asked(req)->rights.groups, STAFF, STAFF);
	answers(req, 0);
	assert_int_equal(told(), 0);
	is_told_by_setattr(ALICE, STAFF);
	req = chmod_by(getpid(), 02755);
	assert_range(asked(req)->rights.groups, 0, UINT32_MAX);
	answers(req, 0);
	assert_int_equal(told(), 0);
	is_told_by_setattr(ALICE, ALICE);
	is_told(ALICE, STAFF);
	req = chmod_by(alice, 02755);
	assert_range(asked(req)->rights.groups, 1, 0);
	answers(req, 0);
	assert_int_equal(told(), 0);
	end(alice);
}

/* ---- chown(2) of neither user nor group ------------------------------------------------------ */

static struct request *chown_by(pid_t pid)
{
	struct request *req = ask(OP_SETATTR, pid);

	req->args.set.valid = 0;
	op_setattr(req);
	return req;
}

static void chown_of_nobody__takes_set_user_id_of_its_owner(void **state)
{
	struct request *req;
	pid_t alice;

	need_root();
	alice = start(ALICE, ALICE);
	is_known(ALICE, 04755);
	req = chown_by(alice);
	assert_int_equal(asked(req)->valid, SET_NO_PRIVILEGES);
	is_bound(&asked(req)->rights, ALICE, ALICE);
	answers(req, 0);
	assert_int_equal(told(), 0);
	is_known(ALICE, 04755);
	req = chown_by(getpid());
	assert_false(asked(req)->rights.bound);
	answers(req, 0);
	assert_int_equal(told(), 0);
	end(alice);
}

/* The kernel has not checked whose file it is, and sends the same before a write. */
static void chown_of_nobody__leaves_what_is_not_its_own(void **state)
{
	struct request *req;

	is_known(ALICE, 04755);
	req = chown_by(0);
	is_bound(&asked(req)->rights, 1, 0);
	answers(req, -EPERM);
	assert_int_equal(told(), 0);
}

static void chown_of_nobody__asks_nobody_without_such_bits(void **state)
{
	is_known(ALICE, 0755);
	chown_by(0);
	assert_int_equal(told(), 0);
}

/* ---- access control lists -------------------------------------------------------------------- */

static void acl__is_right_while_the_owner_is_the_one_that_the_kernel_has(void **state)
{
	struct request *req = ask(OP_REMOVEXATTR, 0);

	is_told(ALICE, STAFF);
	is_known(BOB, 0644);
	req->args.name = "system.posix_acl_access";
	op_removexattr(req);
	assert_int_equal(op_of(req)->call.req.op, RPC_REMOVEXATTR);
	is_bound(&op_of(req)->call.req.removexattr.rights, ALICE, ALICE);
	assert_range(op_of(req)->call.req.removexattr.rights.groups, STAFF, STAFF);
	answers(req, -EPERM);
	is_bound(&op_of(req)->call.req.removexattr.rights, 1, 0);
	answers(req, -EPERM);
	assert_int_equal(told(), -EPERM);
}

static void acl__of_one_who_is_seen_goes_by_the_caller_when_the_owner_has_changed(void **state)
{
	struct request *req;

	need_root();
	req = ask(OP_REMOVEXATTR, getpid());
	is_told(ALICE, STAFF);
	req->args.name = "system.posix_acl_default";
	op_removexattr(req);
	answers(req, -EPERM);
	assert_false(op_of(req)->call.req.removexattr.rights.bound);
	answers(req, 0);
	assert_int_equal(told(), 0);
}

/* ---- what else depends on the caller --------------------------------------------------------- */

static void set_user_id__goes_unless_root_is_seen(void **state)
{
	struct request *req = ask(OP_COPY, 0);

	is_known(ALICE, 04755);
	assert_true(op_caller_takes_privileges(req, fx.inode));
	req->pid = (uint32_t)getpid();
	assert_int_equal(op_caller_takes_privileges(req, fx.inode), geteuid() != 0);
	is_known(ALICE, 0755);
	req->pid = 0;
	assert_false(op_caller_takes_privileges(req, fx.inode));
	request_end(req);
}

/* A caller that may remove only its own names removes it from that inode alone. Every caller is
 * treated so. */
static void sticky_directory__names_are_taken_from_what_the_kernel_has_seen(void **state)
{
	struct request *req = ask(OP_UNLINK, getpid());
	struct look_change change;
	const struct attr attr = attr_of(ALICE, STAFF);

	fx.inode->type = S_IFDIR;
	is_known(ALICE, 01777);
	fx.inode->attr.mode = S_IFDIR | 01777;
	local_answer_up_shown(req, fx.inode, fx.inode, &attr);
	local_answer_change_begin(req, fx.inode, req->args.name, LOOK_ENDS, &change);
	assert_true(change.expected.exactly);
	assert_int_equal(change.expected.ino, FIXTURE_INO);
	local_answer_change_end_unknown(req, &change);
	fx.inode->type = S_IFREG;
	request_end(req);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_owner__is_what_it_was_told),
		TEST(kernel_owner__may_be_one_of_several),
		TEST(kernel_owner__root_counts_as_the_only_one),
		TEST(kernel_owner__ends_with_its_lookups),
		TEST(kernel_owner__is_not_known_when_a_mount_begins_to_share),
		TEST(kernel_owner__is_not_asked_of_root),
		TEST(setattr__is_right_while_the_owner_is_the_one_that_the_kernel_has),
		TEST(setattr__of_a_mount_that_is_alone_again_is_checked),
		TEST(kernel_owner__is_right_on_a_mount_that_is_alone_again_if_it_is_the_owner),
		TEST(setattr__of_a_mount_that_is_alone_again_is_not_checked_twice),
		TEST(setattr__of_one_who_is_not_seen_is_refused_when_the_owner_has_changed),
		TEST(setattr__of_one_who_is_seen_goes_by_the_caller_when_the_owner_has_changed),
		TEST(setattr__goes_by_the_caller_when_the_kernel_may_have_several_owners),
		TEST(setattr__of_a_squashed_caller_goes_by_the_anonymous_user),
		TEST(setattr__keeps_a_set_group_id_of_the_group_that_the_kernel_has),
		TEST(chown_of_nobody__takes_set_user_id_of_its_owner),
		TEST(chown_of_nobody__leaves_what_is_not_its_own),
		TEST(chown_of_nobody__asks_nobody_without_such_bits),
		TEST(acl__is_right_while_the_owner_is_the_one_that_the_kernel_has),
		TEST(acl__of_one_who_is_seen_goes_by_the_caller_when_the_owner_has_changed),
		TEST(set_user_id__goes_unless_root_is_seen),
		TEST(sticky_directory__names_are_taken_from_what_the_kernel_has_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
