/* wait_aside.c - see wait_aside.h. */
#include "daemon/lease/wait_aside.h"

#include <errno.h>

#include "daemon/op/fs_parts.h"
#include "daemon/op/op.h"
#include "daemon/pages/landing.h"
#include "daemon/lease/append_order.h"
#include "daemon/lease/lease.h"
#include "daemon/file/inode.h"

/* This many may wait for one inode, however much waits for other clients in all. */
enum { WAITING_ALWAYS = 64 };

static bool wait_few(const struct list *waiting, pthread_mutex_t *lock)
{
	unsigned n = 0;

	pthread_mutex_lock(lock);
	list_for_each (pos, waiting)
		if (++n > WAITING_ALWAYS)
			break;
	pthread_mutex_unlock(lock);
	return n <= WAITING_ALWAYS;
}

static bool wait_aside_may_wait(struct request *req)
{
	struct op *op = op_of(req);
	struct inode *inode = op->wait == OP_AT_APPEND ? shared_op(op)->append.inode
						       : shared_op(op)->at_lease->inode;

	return req->aside || request_may_set_aside(req->thread->shared) ||
	       wait_few(op->wait == OP_AT_APPEND ? &inode->appends->waiting : &inode->lease_waiters,
		       &inode->lock);
}

void wait_aside(struct request *req)
{
	bool may = wait_aside_may_wait(req);

	if (landing_holds(req))
		landing_fetch(req->thread);
	if (!request_set_aside(req) || !may || !request_stow(req))
		op_cancel(req, -ENOMEM);
}
