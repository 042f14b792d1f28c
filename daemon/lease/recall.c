/* recall.c - what the tail of a PING's reply says is to go back. */
#include <stdlib.h>

#include "daemon/op/fs_parts.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/lease_private.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"

/* Of an inode that is not known here any more, which therefore has nothing to be given back. */
struct disclaimer {
	struct io_thread *thread;
	struct rpc_recall recall; /* of all of it */
	struct rpc_call call;
	uint8_t tail[RPC_RETURNED_BYTES];
};

/* Who looked at it meanwhile may have been told of what the server had not taken back yet: he sees
 * the note, or what he believes in is here. */
static void disclaimed(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct disclaimer *d = container_of(call, struct disclaimer, call);
	struct fs *fs = d->thread->fs;
	struct inode *inode;

	lease_note(fs, d->recall.ino);
	inode = rep->status ? NULL : inode_find(fs, d->recall.ino);
	if (inode) {
		lease_recalled(inode, d->thread, &d->recall);
		inode_put(inode);
	}
	free(d);
}

/* Without memory the next PING's reply says it again. */
static void disclaim(struct io_thread *thread, const struct rpc_recall *recall)
{
	struct disclaimer *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	d->thread = thread;
	d->recall = (struct rpc_recall){
		.ino = recall->ino, .number = recall->number, .keep = LEASE_NONE};
	d->call.done = disclaimed;
	d->call.req.op = RPC_RETURN;
	list_init(&d->call.link);
	lease_put_returned(&d->call.req.ret, d->tail,
		&(struct rpc_returned){.ino = recall->ino, .number = recall->number});
	rpc_start(thread, &d->call);
}

/* NULL: it is disclaimed. What CREATE's answer brings just now is seen here, or sees the note. */
static struct inode *find_recalled(struct io_thread *thread, const struct rpc_recall *recall)
{
	struct inode *inode = inode_find(thread->fs, recall->ino);

	if (inode)
		return inode;
	lease_note(thread->fs, recall->ino);
	inode = inode_find(thread->fs, recall->ino);
	if (!inode)
		disclaim(thread, recall);
	return inode;
}

void lease_recall(struct io_thread *thread, const struct rpc_recall *recall)
{
	struct inode *inode = find_recalled(thread, recall);

	if (!inode)
		return;
	lease_recalled(inode, thread, recall);
	inode_put(inode);
}
