/* gate_pass.c - see gate_pass.h. */
#include "daemon/file/gate_pass.h"

#include "daemon/file/inode_return.h"
#include "daemon/op/fs_parts.h"

/* An operation of another thread learns under the inode's lock that it is inside now. */
static void admit_waiting_locked(struct inode *inode)
{
	struct gate_pass *next;

	while ((next = gate_next(&inode->gate))) {
		struct op_pass *pass = container_of(next, struct op_pass, pass);

		pass->inside = true;
		waiter_wake(&pass->op->waiter, 0);
	}
}

static bool leave_gate(struct request *req)
{
	struct op *op = op_of(req);
	struct inode *inode = file_op(op)->at_gate->inode;
	bool waiting;

	pthread_mutex_lock(&inode->lock);
	waiting = gate_withdraw(&file_op(op)->at_gate->pass);
	if (waiting)
		admit_waiting_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return waiting;
}

static bool enter_pass(
	struct request *req, struct op_pass *pass, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = pass->inode;

	pass->op = op;
	waiter_init(&op->waiter, req, then);
	pthread_mutex_lock(&inode->lock);
	pass->inside = gate_enter(&inode->gate, &pass->pass);
	if (!pass->inside) {
		file_op(op)->at_gate = pass;
		op_waits_by(op, OP_AT_GATE, leave_gate);
	}
	pthread_mutex_unlock(&inode->lock);
	return op->wait != OP_AT_GATE;
}

bool gate_pass_enter(struct request *req, enum gate_kind kind, uint64_t first, uint64_t end,
	void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);

	file_op(op)->pass = (struct op_pass){
		.inode = op->inode, .pass = {.kind = kind, .first = first, .end = end}};
	return enter_pass(req, &file_op(op)->pass, then);
}

bool gate_pass_enter_with(struct request *req, struct op_pass *pass, struct inode *inode,
	enum gate_kind kind, void (*then)(struct request *req, int status))
{
	*pass = (struct op_pass){.inode = inode, .pass = {.kind = kind, .end = UINT64_MAX}};
	return enter_pass(req, pass, then);
}

static bool leave_pass_locked(struct op_pass *pass)
{
	struct inode *inode = pass->inode;

	pass->inside = false;
	if (pass->pass.kind == GATE_EXCLUSIVE)
		inode->growing = false;
	gate_leave(&inode->gate, &pass->pass);
	admit_waiting_locked(inode);
	return inode->orphan;
}

void gate_pass_leave_with(struct request *req, struct op_pass *pass)
{
	struct inode *inode = pass->inode;
	bool orphan;

	pthread_mutex_lock(&inode->lock);
	orphan = leave_pass_locked(pass);
	pthread_mutex_unlock(&inode->lock);
	if (orphan)
		inode_return_settle(inode, req->thread);
}

bool gate_pass_leave_locked(struct request *req)
{
	return leave_pass_locked(&file_op_of(req)->pass);
}

void gate_pass_leave(struct request *req)
{
	gate_pass_leave_with(req, &file_op_of(req)->pass);
}

static void are_remote(struct request *req, int status)
{
	struct op *op = op_of(req);

	if (file_op(op)->pass.inside)
		gate_pass_leave(req);
	op->all_remote(req, status);
}

bool op_wait_acknowledged(struct request *req, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	bool any;

	pthread_mutex_lock(&inode->lock);
	any = gate_has_acknowledged(&inode->gate);
	pthread_mutex_unlock(&inode->lock);
	op->all_remote = then;
	if (!any || !gate_pass_enter(req, GATE_READ, 0, UINT64_MAX, are_remote))
		return !any;
	gate_pass_leave(req);
	return true;
}

bool op_sets_counted_owner(const struct fs *fs, uint32_t valid)
{
	return valid & SET_OWNERS && session_quotas(fs->session);
}

bool op_set_attr_keeps_others_out(const struct fs *fs, uint32_t valid)
{
	return valid & (SET_SIZE | SET_MTIMES) || op_sets_counted_owner(fs, valid);
}
