/* The kernel's notifications after an abandoned operation has ended: the messages themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/kcache/expire.h"
#include "daemon/op/fs_parts.h"
#include "daemon/fuse/private.h"
#include "daemon/op/op.h"
#include "daemon/serve/fs_block.h"

enum { DIR = 11, OTHER = 12, FILE_INO = 13, CHILD = 14, OTHER_CHILD = 15, WAIT_MS = 60000 };

struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct fuse_port port;
	struct io_thread thread;
	struct request req;
	int kernel; /* messages written to the port are read here, one by one */
};

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));
	int fds[2];

	if (!fx)
		return -1;
	fs_wire(&fx->fs, &fx->parts);
	if (inode_table_init(fx->fs.inodes, &inode_parts_hooks) ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -1;
	fx->port.fd = fds[0];
	fx->kernel = fds[1];
	fx->thread = (struct io_thread){.fs = &fx->fs, .port = &fx->port};
	fx->req.thread = &fx->thread;
	expiries_init(fx->fs.expiries);
	*state = fx;
	return notifier_start(&fx->fs.notifier) || notifier_start(&fx->fs.expirer);
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	expiries_fini(fx->fs.expiries);
	inode_table_fini(fx->fs.inodes);
	close(fx->port.fd);
	close(fx->kernel);
	free(fx);
	return 0;
}

static void stop(struct fixture *fx)
{
	notifier_stop(&fx->fs.notifier);
	notifier_stop(&fx->fs.expirer);
}

/* The operation in DIR, as it ends. */
static struct op *begin(struct fixture *fx, enum request_op what)
{
	struct op *op = op_of(&fx->req);

	memset(&fx->req.state, 0, sizeof(fx->req.state));
	fx->req.op = what;
	fx->req.node = DIR;
	op->inode = inode_get(&fx->fs, DIR);
	assert_non_null(op->inode);
	return op;
}

static void end(struct fixture *fx)
{
	expire_changed(&fx->req);
	inode_put(op_of(&fx->req)->inode);
	/* As if another request used the memory. */
	memset(&fx->req.state, 0xa5, sizeof(fx->req.state));
	memset(&fx->req.args, 0xa5, sizeof(fx->req.args));
}

struct message {
	struct fuse_out_header header;
	union {
		struct fuse_notify_inval_inode_out inode;
		struct {
			struct fuse_notify_inval_entry_out out;
			char name[NAME_BYTES_MAX + 1];
		} entry;
	};
};

static void take(struct fixture *fx, struct message *msg)
{
	struct pollfd pfd = {.fd = fx->kernel, .events = POLLIN};
	ssize_t len;

	assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	len = read(fx->kernel, msg, sizeof(*msg));
	assert_int_equal(len, msg->header.len);
	assert_int_equal(msg->header.unique, 0);
}

/* Invalidations of these nodes, in any order; of attributes alone. */
static void expect_nodes(struct fixture *fx, const uint64_t *nodes, unsigned n)
{
	uint64_t seen = 0, expected = 0;
	struct message msg;

	for (unsigned i = 0; i < n; i++) {
		expected |= UINT64_C(1) << nodes[i];
		take(fx, &msg);
		assert_int_equal(msg.header.error, FUSE_NOTIFY_INVAL_INODE);
		assert_int_equal(msg.inode.off, -1);
		assert_in_range(msg.inode.ino, DIR, OTHER_CHILD);
		seen |= UINT64_C(1) << msg.inode.ino;
	}
	assert_int_equal(seen, expected);
}

static void expect_name(struct fixture *fx, uint64_t parent, const char *name)
{
	struct message msg;

	take(fx, &msg);
	assert_int_equal(msg.header.error, FUSE_NOTIFY_INVAL_ENTRY);
	assert_int_equal(msg.entry.out.parent, parent);
	assert_int_equal(msg.entry.out.flags, FUSE_EXPIRE_ONLY);
	assert_int_equal(msg.entry.out.namelen, strlen(name));
	assert_string_equal(msg.entry.name, name);
}

static void expect_no_more(struct fixture *fx)
{
	char byte;

	stop(fx);
	assert_int_equal(recv(fx->kernel, &byte, 1, MSG_DONTWAIT), -1);
	assert_true(list_empty(&fx->fs.expiries->all));
}

static void expire_changed__a_name_that_was_made_or_removed_and_its_parent(void **state)
{
	static const enum request_op ops[] = {
		OP_MKNOD, OP_MKDIR, OP_SYMLINK, OP_CREATE, OP_UNLINK, OP_RMDIR};
	struct fixture *fx = *state;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		char name[NAME_BYTES_MAX + 1] = {0};

		memset(name, 'a' + (int)i, NAME_BYTES_MAX);
		begin(fx, ops[i]);
		fx->req.args = (struct request_args){.name = name, .name2 = "target"};
		end(fx);
		expect_nodes(fx, (uint64_t[]){DIR}, 1);
		memset(name, 'a' + (int)i, NAME_BYTES_MAX);
		expect_name(fx, DIR, name);
	}
	expect_no_more(fx);
}

static void expire_changed__a_link_and_its_file(void **state)
{
	struct fixture *fx = *state;

	begin(fx, OP_LINK);
	fx->req.args = (struct request_args){.name = "new", .node2 = FILE_INO};
	end(fx);
	expect_nodes(fx, (uint64_t[]){DIR, FILE_INO}, 2);
	expect_name(fx, DIR, "new");
	expect_no_more(fx);
}

static void expire_changed__both_names_of_a_rename_and_what_they_stood_for(void **state)
{
	struct fixture *fx = *state;
	struct op *op = begin(fx, OP_RENAME);

	op->children[0] = CHILD;
	op->children[1] = OTHER_CHILD;
	fx->req.args = (struct request_args){.name = "old", .name2 = "new", .node2 = OTHER};
	end(fx);
	expect_nodes(fx, (uint64_t[]){DIR, OTHER, CHILD, OTHER_CHILD}, 4);
	expect_name(fx, DIR, "old");
	expect_name(fx, OTHER, "new");
	expect_no_more(fx);
}

static void expire_changed__the_file_that_a_create_has_found(void **state)
{
	struct fixture *fx = *state;
	struct op *op = begin(fx, OP_CREATE);

	inode_put(op->inode);
	op->inode = inode_get(&fx->fs, FILE_INO);
	fx->req.args = (struct request_args){.name = "a"};
	end(fx);
	expect_nodes(fx, (uint64_t[]){DIR, FILE_INO}, 2);
	expect_name(fx, DIR, "a");
	expect_no_more(fx);
}

/* The name is an attribute's, which the kernel does not cache, or is only looked up. */
static void expire_changed__no_name_where_none_changes(void **state)
{
	static const enum request_op ops[] = {
		OP_LOOKUP, OP_SETXATTR, OP_REMOVEXATTR, OP_SETATTR, OP_WRITE, OP_TMPFILE};
	struct fixture *fx = *state;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		begin(fx, ops[i]);
		fx->req.args = (struct request_args){.name = "user.a"};
		end(fx);
		expect_nodes(fx, (uint64_t[]){DIR}, 1);
	}
	expect_no_more(fx);
}

/* They are freed with the rest: a sanitizer would report a leak. */
static void expiries_fini__what_was_not_told(void **state)
{
	struct fixture *fx = *state;

	stop(fx);
	list_init(&fx->fs.notifier.jobs);
	pthread_mutex_init(&fx->fs.notifier.lock, NULL);
	pthread_cond_init(&fx->fs.notifier.filled, NULL);
	begin(fx, OP_MKDIR);
	fx->req.args = (struct request_args){.name = "made"};
	end(fx);
	assert_false(list_empty(&fx->fs.expiries->all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			expire_changed__a_name_that_was_made_or_removed_and_its_parent, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			expire_changed__a_link_and_its_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			expire_changed__both_names_of_a_rename_and_what_they_stood_for, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			expire_changed__the_file_that_a_create_has_found, setup, teardown),
		cmocka_unit_test_setup_teardown(
			expire_changed__no_name_where_none_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(expiries_fini__what_was_not_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
