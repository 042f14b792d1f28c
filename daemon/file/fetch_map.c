/* fetch_map.c - see fetch_map.h. */
#include "daemon/file/fetch_map.h"

#include <errno.h>

#include "common/base/log.h"
#include "daemon/file/inode_path.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/last_resort.h"

/* Cuts off the part before fpage. False: nothing is left. */
static bool cut_front(struct extent *e, uint64_t fpage)
{
	uint64_t before = fpage - e->fpage;

	if (before >= e->npages)
		return false;
	e->fpage = fpage;
	e->page += (uint32_t)before;
	e->npages -= (uint32_t)before;
	return true;
}

static int put_extents_locked(struct inode *inode, const struct rpc_extents_reply *rep)
{
	struct wire_in r = rpc_tail_reader(&rep->tail);
	uint64_t known = inode->map.known_end;
	struct extent e;
	int status;

	while (rpc_get_extent(&r, &e)) {
		/* The first extent may begin among pages that are known. */
		if (e.fpage < known && !cut_front(&e, known))
			return -EPROTO;
		status = extent_map_learn(&inode->map, &e);
		if (status)
			return status == -EEXIST ? -EPROTO : status;
	}
	if (r.truncated || (!rep->last && inode->map.known_end == known))
		return -EPROTO;
	if (rep->last)
		extent_map_learned_all(&inode->map);
	return 0;
}

static void extents_answered(struct request *req, const struct rpc_reply *rep)
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	int status = rep->status;
	char text[PATH_INODE_BYTES];

	pthread_mutex_lock(&inode->lock);
	if (!status)
		status = put_extents_locked(inode, &rep->extents);
	inode->fetching = false;
	/* If only this request was taken back, each waiter asks for itself. */
	waiters_wake(&inode->fetchers, status == -ECANCELED ? 0 : status);
	pthread_mutex_unlock(&inode->lock);
	if (status == -EPROTO)
		log_error("%s: the server's list of extents makes no sense",
			path_name_inode(inode, text));
	op->learned(req, status == -EPROTO ? -EIO : status);
}

bool op_know_map(struct request *req, uint64_t end, void (*then)(struct request *req, int status))
{
	struct op *op = op_of(req);
	struct inode *inode = op->inode;
	uint64_t known;
	bool fetch;

	pthread_mutex_lock(&inode->lock);
	known = inode->map.known_end;
	if (known >= end) {
		pthread_mutex_unlock(&inode->lock);
		return true;
	}
	fetch = !inode->fetching;
	inode->fetching = true;
	if (!fetch) {
		waiter_init(&op->waiter, req, then);
		op_waits(op, OP_AT_INODE, &inode->lock);
		list_add_tail(&inode->fetchers, &op->waiter.link);
	}
	pthread_mutex_unlock(&inode->lock);
	if (fetch) {
		op->learned = then;
		op->call.req.op = RPC_EXTENTS;
		op->call.req.extents = (struct rpc_extents){.ino = inode->ino, .fpage = known};
		op_rpc(req, extents_answered);
	}
	return false;
}
