/* lock_register.c - see lock_register.h. */
#include "daemon/lock/lock_register.h"

#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_path.h"
#include "daemon/lock/local_locks.h"
#include "daemon/lock/lock_owner.h"
#include "daemon/op/fs_parts.h"

/* Messages on their way at once. The server runs those that have come in one batch. */
enum { REGISTER_MAX = 1024 };

struct registration {
	struct rpc_call call;
	struct inode *inode; /* referenced */
};

struct round {
	unsigned nleft, nstarted;
};

static bool is_over(const struct fs *fs)
{
	return session_has_ended(fs->session) || session_lost(fs->session);
}

/* Its other locks are told all the same: its close gives up all of them. */
static void refused(struct inode *inode, uint64_t owner, int status)
{
	char text[PATH_INODE_BYTES];

	pthread_mutex_lock(&inode->lock);
	lock_owner_lost_locked(inode, owner);
	pthread_mutex_unlock(&inode->lock);
	log_error(
		"%s: the server has refused a lock that was had while the mount was alone: %s; it "
		"fails with EIO until it is closed",
		path_name_inode(inode, text), errno_text(status));
}

/* A session that has ended takes all locks along. */
static void register_answered(struct rpc_call *call, const struct rpc_reply *rep)
{
	struct registration *r = container_of(call, struct registration, call);

	if (rep->status && !is_over(r->inode->fs))
		refused(r->inode, call->req.lock.owner, rep->status);
	inode_put(r->inode);
	free(r);
}

static struct registration *registration_new(struct inode *inode, const struct lock *lock)
{
	struct registration *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->inode = inode_ref(inode);
	list_init(&r->call.link);
	r->call.done = register_answered;
	r->call.req.op = RPC_LOCK;
	r->call.req.lock = (struct rpc_lock){
		.ino = inode->ino,
		.owner = lock->owner,
		.start = lock->start,
		.end = lock->end,
		.pid = lock->pid,
		.kind = lock->kind,
		.type = lock->type,
	};
	return r;
}

/* NULL: all are told, or there is no memory; then it is tried again in the next round. */
static struct registration *next_of(struct inode *inode)
{
	struct local_locks *t = inode->locks->local;
	struct registration *r = NULL;

	pthread_mutex_lock(&inode->lock);
	if (t->nregistered < t->n)
		r = registration_new(inode, &t->v[t->nregistered]);
	if (r)
		t->nregistered++;
	pthread_mutex_unlock(&inode->lock);
	return r;
}

static bool stands(struct inode *inode)
{
	bool has;

	pthread_mutex_lock(&inode->lock);
	local_locks_stand_locked(inode);
	has = inode->locks->local;
	pthread_mutex_unlock(&inode->lock);
	return has;
}

static void register_some(struct inode *inode, void *arg)
{
	struct io_thread *thread = inode->fs->threads[0].thread;
	struct round *round = arg;
	struct registration *r;

	if (!stands(inode))
		return;
	while (round->nstarted < REGISTER_MAX && (r = next_of(inode))) {
		round->nstarted++;
		rpc_start(thread, &r->call);
	}
	round->nleft += inode->locks->local->nregistered < inode->locks->local->n;
}

unsigned lock_register_all(struct fs *fs)
{
	struct round round = {0};

	if (atomic_load(&fs->locks->nlocal) || atomic_load(&fs->locks->nlocal_waits))
		inode_each(fs, register_some, &round);
	return round.nleft + round.nstarted;
}

static void end_one(struct inode *inode, void *arg)
{
	local_locks_leave_all(inode);
}

void lock_register_end(struct fs *fs)
{
	local_locks_end(fs);
	if (atomic_load(&fs->locks->nlocal) || atomic_load(&fs->locks->nlocal_waits))
		inode_each(fs, end_one, NULL);
}
