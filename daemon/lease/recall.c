/* recall.c - what the tail of a PING's reply recalls. */
#include <stdlib.h>

#include "common/base/probes.h"
#include "daemon/op/fs_parts.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/lease_private.h"
#include "daemon/lease/keep.h"
#include "daemon/file/inode.h"

/* The RETURN of an inode that is not known here any more. So nothing of it has to be given back
 * before. */
struct disclaimer {
	struct io_thread *thread;
	struct rpc_recall recall; /* keep is LEASE_NONE */
	struct rpc_call call;
	uint8_t tail[RPC_RETURNED_BYTES];
};

/* A LOOKUP or GETATTR may have been told of a lease that the server had not taken back yet. Either
 * it sees the note, or the inode with that lease is here by now. */
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

/* Without memory it does nothing: the next PING's reply repeats the recall. */
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

/* NULL: the recall is disclaimed. If CREATE's answer brings the inode just now, either it is found
 * here, or CREATE sees the note. */
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

	PROBE(rmemfs, recall_receive, recall->ino, recall->number, recall->keep);
	if (!inode)
		return;
	lease_recalled(inode, thread, recall);
	inode_put(inode);
}
