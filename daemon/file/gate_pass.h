/* gate_pass.h - how an operation goes through the gate of an inode, and waits before it.
 *
 * THREADS    The request's own, but for a pass that another operation admits, under its inode's
 *            lock.
 */
#ifndef RMEMFS_DAEMON_FILE_GATE_PASS_H
#define RMEMFS_DAEMON_FILE_GATE_PASS_H

#include "daemon/file/gate.h"
#include "daemon/file/inode.h"
#include "daemon/op/op.h"

/* An operation's way through the gate of an inode. */
struct op_pass {
	struct gate_pass pass;
	struct op *op;
	struct inode *inode;
	bool inside;
};

/* The state of an operation on a file begins with this one. */
struct file_op {
	struct op op;
	struct op_pass pass;     /* its own inode's */
	struct op_pass *at_gate; /* OP_AT_GATE: the pass that waits */
};

static inline struct file_op *file_op(struct op *op)
{
	return (struct file_op *)(void *)op;
}

static inline struct file_op *file_op_of(struct request *req)
{
	return (struct file_op *)(void *)req->state;
}

/* Enters the inode's gate. True: inside. False: then(req, 0) is called when it is. */
bool gate_pass_enter(struct request *req, enum gate_kind kind, uint64_t first, uint64_t end,
	void (*then)(struct request *req, int status));
void gate_pass_leave(struct request *req);
/* The same under the inode's lock, so that nobody sees it inside after a change that it made under
 * that lock. True: the inode is an orphan: inode_return_settle() has to follow, without the lock.
 */
bool gate_pass_leave_locked(struct request *req);
/* The same for another inode. Two gates are entered in the order of inode numbers, so that no two
 * operations wait for each other. */
bool gate_pass_enter_with(struct request *req, struct op_pass *pass, struct inode *inode,
	enum gate_kind kind, void (*then)(struct request *req, int status));
void gate_pass_leave_with(struct request *req, struct op_pass *pass);

/* Waits until all writes of the inode that were acknowledged before are remote, or have failed.
 * True: there are none. False: then(req, status) follows. The caller is outside of the gate. */
bool op_wait_acknowledged(struct request *req, void (*then)(struct request *req, int status));

/* Whether a change of these (SET_*) keeps all I/O of the file out meanwhile. On a sharing mount
 * such a change has LEASE_EXCLUSIVE before it enters the gate. If it waited for a lease inside, the
 * operations that use the present one could not end. */
bool op_set_attr_keeps_others_out(const struct fs *fs, uint32_t valid);
/* Whether it changes an owner whose pages are counted. */
bool op_sets_counted_owner(const struct fs *fs, uint32_t valid);

#endif
