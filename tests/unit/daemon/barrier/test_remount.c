/* When the channels of a mount that becomes read-only are replaced. */
#include <sys/mount.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/request/caller.h"
#include "daemon/op/fs_parts.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/ops/ops.h"
#include "daemon/remote/remote_private.h"
#include "daemon/barrier/remount.h"
#include "daemon/barrier/snapshot_freeze.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/fs.h"

/* One thread, whose loop the test turns. */
struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct remote remote;
	struct io_thread thread;
	struct io_thread_private priv;
	struct request remount, write;
};

static int setup(void **state)
{
	struct fixture *fx = calloc(1, sizeof(*fx));
	struct fs_thread *ft;

	if (!fx)
		return -1;
	fs_wire(&fx->fs, &fx->parts);
	if (inode_table_init(fx->fs.inodes, &inode_parts_hooks))
		return -1;
	ft = &fx->fs.threads[0];
	fx->fs.session = &fx->session;
	fx->fs.options.session.io_threads = fx->session.nchannels = 1;
	fx->thread = (struct io_thread){.fs = &fx->fs,
		.shared = &fx->fs.requests,
		.ops = &fs_fuse_ops,
		.priv = &fx->priv,
		.remote = &fx->remote};
	ft->thread = &fx->thread;
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	snapshot_freeze_init(fx->fs.freeze, &fx->fs);
	snapshot_freeze_thread_init(ft->freeze, &fx->thread);
	make_batch_init(ft->makes, &fx->thread, &commit_make_hooks);
	remount_init(fx->fs.remount, &fx->fs, false);
	fx->fs.root = inode_get(&fx->fs, ROOT_INO);
	fx->remount = (struct request){.thread = &fx->thread,
		.op = OP_REMOUNT,
		.node = ROOT_INO,
		.uid = REQUEST_NO_ID,
		.gid = REQUEST_NO_ID,
		.pid = (uint32_t)getpid(),
		.args.flags = MS_RDONLY};
	fx->write = (struct request){.thread = &fx->thread, .op = OP_WRITE};
	*state = fx;
	return fx->fs.root ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	if (op_of(&fx->remount)->inode) {
		assert_true(op_of(&fx->remount)->withdraw(&fx->remount));
		inode_put(op_of(&fx->remount)->inode);
	}
	inode_put(fx->fs.root);
	remount_fini(fx->fs.remount);
	snapshot_freeze_fini(fx->fs.freeze);
	inode_table_fini(fx->fs.inodes);
	free(fx);
	return 0;
}

static void begin(struct fixture *fx)
{
	if (!caller_is_capable(&fx->remount, CAP_SYS_ADMIN)) {
		print_message("only root may remount\n");
		skip();
	}
	op_remount(&fx->remount);
}

/* Kernels before 6.16 count a page as written back once they have sent it. */
static void read_only__waits_for_writes_on_their_way(void **state)
{
	struct fixture *fx = *state;

	assert_true(snapshot_freeze_enter(&fx->write, NULL));
	begin(fx);
	remount_step(&fx->thread);
	assert_false(fx->session.read_only);
	snapshot_freeze_leave(&fx->write);
	remount_step(&fx->thread);
	assert_true(fx->session.read_only);
}

static void read_only__waits_for_writes_that_a_snapshot_holds(void **state)
{
	struct fixture *fx = *state;
	struct freeze_thread *t = fx->fs.threads[0].freeze;

	t->id = 1;
	assert_false(snapshot_freeze_enter(&fx->write, NULL));
	begin(fx);
	remount_step(&fx->thread);
	assert_false(fx->session.read_only);
	list_del(&op_of(&fx->write)->waiter.link);
	remount_step(&fx->thread);
	assert_true(fx->session.read_only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			read_only__waits_for_writes_on_their_way, setup, teardown),
		cmocka_unit_test_setup_teardown(
			read_only__waits_for_writes_that_a_snapshot_holds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
