/* lease_client.h - one inode of a sharing mount, operations that use it, and a server that answers
 * when the test says so. */
#ifndef RMEMFS_TESTS_LEASE_CLIENT_H
#define RMEMFS_TESTS_LEASE_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "daemon/serve/inode_parts.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_private.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode_return.h"
#include "daemon/serve/fs_block.h"
#include "daemon/lease/lease.h"
#include "common/rpc/lease_type.h"
#include "daemon/serve/fs.h"
#include "daemon/remote/session.h"

enum { INO = 71, OPS = 4, PAGES = 3, LIMIT = 16 };

/* One thread, whose remote is down: sent calls stay with it until the test answers. */
struct fixture {
	struct fs fs;
	struct fs_parts parts;
	struct session session;
	struct remote remote;
	struct io_thread thread;
	struct io_thread_private priv;
	struct inode *inode;
	struct request ops[OPS];
	int went[OPS]; /* 1: went on, -errno: failed, 0: waits */
};

static struct fixture fx;

static inline int setup(void **state)
{
	struct fs_thread *ft = &fx.fs.threads[0];

	memset(&fx, 0, sizeof(fx));
	fs_wire(&fx.fs, &fx.parts);
	if (inode_table_init(fx.fs.inodes, &inode_parts_hooks))
		return -1;
	fx.fs.session = &fx.session;
	fx.fs.requests.sharing = true;
	fx.fs.sharing = true;
	fx.session.sharing = true;
	fx.fs.options.session.io_threads = 1;
	grants_init(fx.fs.grants);
	quota_allowance_init(fx.fs.allowances);
	inode_return_init(fx.fs.returns);
	lease_keeper_init(fx.fs.leases);
	fx.session.lease_limit = LIMIT;
	grant_refill_init(fx.fs.refill, &inode_return_refill_holders);
	fx.thread = (struct io_thread){.fs = &fx.fs,
		.shared = &fx.fs.requests,
		.ops = &fs_fuse_ops,
		.priv = &fx.priv,
		.remote = &fx.remote};
	pthread_mutex_init(&fx.priv.inbox_lock, NULL);
	list_init(&fx.priv.inbox);
	fx.priv.wake_fd = -1;
	fx.remote.thread = &fx.thread;
	fx.remote.session = &fx.session;
	slots_init(&fx.remote);
	fx.remote.nslots = 1;
	ft->thread = &fx.thread;
	list_init(&ft->dirty);
	list_init(&ft->accessed);
	list_init(&ft->interrupted);
	make_batch_init(ft->makes, &fx.thread, &commit_make_hooks);
	fx.inode = inode_get(&fx.fs, INO);
	fx.inode->type = S_IFREG;
	inode_remember(fx.inode);
	/* The kernel knows all ends. */
	kernel_pages_end_is_answered(fx.inode, UINT64_MAX);
	return fx.inode ? 0 : -1;
}

static inline int teardown(void **state)
{
	inode_forget(fx.inode, 1);
	inode_put(fx.inode);
	inode_table_fini(fx.fs.inodes);
	lease_keeper_fini(fx.fs.leases);
	inode_return_fini(fx.fs.returns);
	quota_allowance_fini(fx.fs.allowances);
	grants_fini(fx.fs.grants);
	return 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

static inline void op_went(struct request *req, int status)
{
	fx.went[req - fx.ops] = status ? status : 1;
}

static inline void begin(unsigned i, enum request_op op, uint32_t flags)
{
	struct request *req = &fx.ops[i];

	*req = (struct request){.thread = &fx.thread, .op = op, .node = INO};
	req->args.flags = flags;
	fx.went[i] = 0;
	if (lease_admit(req, op_went))
		fx.went[i] = 1;
}

static inline void run_calls_of(struct io_thread_private *priv)
{
	struct list *link;

	while ((link = list_pop(&priv->inbox))) {
		struct thread_call *call = list_entry(link, struct thread_call, link);

		call->run(call);
	}
}

static inline void run_calls(void)
{
	run_calls_of(&fx.priv);
}

static inline void end(unsigned i)
{
	assert_int_equal(fx.went[i], 1);
	lease_leave(&fx.ops[i]);
	run_calls();
}

/* ---- the server ------------------------------------------------------------------------------ */

static inline struct rpc_call *take(struct list *waiting)
{
	struct list *link = list_pop(waiting);
	struct rpc_call *call = link ? list_entry(link, struct rpc_call, link) : NULL;

	if (call)
		call->sent = true;
	return call;
}

static inline void assert_nothing_sent(void)
{
	assert_true(list_empty(&fx.remote.rpc_waiting));
	assert_true(list_empty(&fx.remote.rpc_waiting_nested));
	assert_true(list_empty(&fx.remote.rpc_waiting_reserved));
}

static inline struct rpc_call *take_any_lease(enum lease_type type, unsigned flags)
{
	/* Calls that make no other client wait have slots of their own. */
	struct rpc_call *call = take(
		flags & LEASE_IF_FREE ? &fx.remote.rpc_waiting_nested : &fx.remote.rpc_waiting);

	assert_non_null(call);
	assert_int_equal(call->req.op, RPC_LEASE);
	assert_int_equal(call->req.lease.ino, INO);
	assert_int_equal(call->req.lease.type, type);
	assert_int_equal(call->req.lease.flags, flags);
	assert_nothing_sent();
	return call;
}

/* A LEASE of a reader or an overwriter (LEASE_OR_LAYOUT); take_strict_lease() takes those that
 * accept nothing less. */
static inline struct rpc_call *take_lease(enum lease_type type, unsigned flags)
{
	return take_any_lease(type, flags | LEASE_OR_LAYOUT);
}

static inline struct rpc_call *take_strict_lease(enum lease_type type, unsigned flags)
{
	return take_any_lease(type, flags);
}

static inline void grant_size(
	struct rpc_call *call, enum lease_type type, uint64_t number, uint64_t size)
{
	struct rpc_reply rep = {.op = RPC_LEASE};

	rep.entry.attr = (struct attr){
		.ino = INO, .mode = S_IFREG | 0644, .nlink = 1, .size = size, .npages = PAGES};
	rep.entry.lease = (struct lease){.type = (uint8_t)type, .number = number};
	rep.entry.nextents = rep.entry.nhead = 1;
	rep.entry.head[0] = (struct extent){.npages = PAGES, .page = 9};
	call->done(call, &rep);
	run_calls();
}

static inline void grant(struct rpc_call *call, enum lease_type type, uint64_t number)
{
	grant_size(call, type, number, 100);
}

static inline void answer(struct rpc_call *call, int status)
{
	call->done(call, &(struct rpc_reply){.op = call->req.op, .status = status});
	run_calls();
}

static inline struct rpc_call *take_return(
	uint64_t number, enum lease_type keep, enum return_pin pin)
{
	struct rpc_call *call = take(&fx.remote.rpc_waiting_reserved);
	struct rpc_returned r;
	struct wire_in in;

	assert_non_null(call);
	assert_int_equal(call->req.op, RPC_RETURN);
	assert_int_equal(call->req.ret.kind, RETURN_LEASES);
	in = rpc_tail_reader(&call->req.ret.tail);
	assert_true(rpc_get_returned(&in, &r));
	assert_int_equal(wire_in_left(&in), 0);
	assert_int_equal(r.ino, INO);
	assert_int_equal(r.number, number);
	assert_int_equal(r.keep, keep);
	assert_int_equal(r.pin, pin);
	assert_nothing_sent();
	return call;
}

static inline struct rpc_call *take_commit(void)
{
	struct rpc_call *call = take(&fx.remote.rpc_waiting_reserved);

	assert_non_null(call);
	assert_int_equal(call->req.op, RPC_COMMIT);
	assert_nothing_sent();
	return call;
}

static inline void recall_of(uint64_t ino, uint64_t number, uint8_t keep)
{
	struct rpc_recall recall = {.ino = ino, .number = number, .keep = keep};
	uint8_t tail[RPC_RECALL_BYTES];
	struct wire_out w;

	wire_out_init(&w, tail, sizeof(tail));
	rpc_put_recall(&w, &recall);
	fs_session_events.news(&fx.thread, &(struct rpc_tail){.data = tail, .len = sizeof(tail)});
	run_calls();
}

static inline void recall(uint64_t number, enum lease_type keep)
{
	recall_of(INO, number, (uint8_t)keep);
}

/* An open file with a lease of that number. */
static inline void open_with(enum lease_type type, uint64_t number)
{
	bool writes = lease_includes(type, LEASE_OVERWRITE);

	begin(0, OP_OPEN, writes ? O_RDWR : O_RDONLY);
	assert_int_equal(fx.went[0], 0);
	grant(take_lease(writes ? LEASE_EXCLUSIVE : LEASE_SHARED, LEASE_PIN | LEASE_IF_FREE), type,
		number);
	fx.inode->nopen++;
	fx.inode->nwriters += writes;
	end(0);
	assert_nothing_sent();
}

static inline void close_file(void)
{
	fx.inode->nopen--;
	fx.inode->nwriters = 0;
	lease_settle(fx.inode, &fx.thread);
}

static inline bool is_left(void)
{
	const struct inode_lease *l = fx.inode->lease;

	return !fx.inode->lease_type && !l->pinned && !l->unsure && l->state == LEASE_IDLE &&
	       !lease_is_used_locked(fx.inode) && !fx.fs.leases->nlisted && !fx.fs.leases->nleaving;
}

/* As the kernel does when it needs memory, or unlinks. */
static inline void forget(void)
{
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	inode_remember(fx.inode);
}

/* Both leave nothing behind for the next test. close_and_return() is for a pin alone,
 * close_and_leave() for a lease, which is kept. */
static inline void close_and_return(uint64_t number)
{
	close_file();
	answer(take_return(number, LEASE_NONE, RETURN_UNPIN), 0);
	assert_nothing_sent();
	assert_true(is_left());
}

static inline void leave(uint64_t number)
{
	inode_forget(fx.inode, 1);
	lease_settle(fx.inode, &fx.thread);
	assert_nothing_sent();
	lease_keep_flush(&fx.thread);
	answer(take_return(number, LEASE_NONE, RETURN_UNPIN), 0);
	assert_nothing_sent();
	assert_true(is_left());
	inode_remember(fx.inode);
}

static inline void close_and_leave(uint64_t number)
{
	close_file();
	leave(number);
}

/* CREATE's answer, for an op that goes on or waits for a lease. */
static inline void create_with_answered(
	unsigned i, uint32_t flags, const struct lease *lease, bool created, uint64_t notes)
{
	struct rpc_entry_reply entry = {.created = created, .lease = *lease};
	struct request *req = &fx.ops[i];

	entry.attr = (struct attr){.ino = INO, .mode = S_IFREG | 0644, .nlink = 1};
	*req = (struct request){.thread = &fx.thread, .op = OP_CREATE, .node = INO};
	req->args.flags = flags;
	fx.went[i] = 0;
	if (lease_take_opened(req, fx.inode, &entry, inode_epoch(&fx.fs), notes, op_went))
		fx.went[i] = 1;
}

static inline void create_answered(
	unsigned i, const struct lease *lease, bool created, uint64_t notes)
{
	create_with_answered(i, O_RDONLY, lease, created, notes);
}

static inline void create_pins(unsigned i, uint64_t number)
{
	create_answered(i, &(struct lease){.number = number}, false, lease_notes(&fx.fs));
}

static inline void make_dirty(void)
{
	pthread_mutex_lock(&fx.inode->lock);
	fx.inode->attr.size = 5000;
	fx.inode->commit.size_dirty = true;
	commit_dirty_locked(fx.inode, &fx.thread);
	pthread_mutex_unlock(&fx.inode->lock);
}

static inline void list_none_dirty(void)
{
	assert_true(commit_tick(&fx.thread));
}

#endif
