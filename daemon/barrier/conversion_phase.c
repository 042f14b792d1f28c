/* conversion_phase.c - the phases of both ways of a conversion: see conversion_private.h. */
#include "common/base/util.h"
#include "daemon/barrier/conversion_private.h"
#include "daemon/barrier/remount.h"
#include "daemon/file/commit.h"
#include "daemon/file/dir_names.h"
#include "daemon/file/inode.h"
#include "daemon/lease/keep.h"
#include "daemon/lock/local_locks.h"
#include "daemon/record/record.h"

bool conversion_holds(const struct fs *fs)
{
	enum conversion_phase phase = conversion_phase_of(fs);

	return phase != CONVERSION_NONE && phase != CONVERSION_FORGETS;
}

bool conversion_go_on(struct fs *fs, enum conversion_phase from, enum conversion_phase to)
{
	struct conversion *c = fs->conversion;
	bool was;

	pthread_mutex_lock(&c->lock);
	was = conversion_phase_of(fs) == from;
	if (was) {
		c->idle = 0;
		atomic_store_explicit(&c->phase, to, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
	if (was && !conversion_holds(fs))
		barrier_wake(&c->hold);
	return was;
}

void conversion_commit_all(struct fs *fs, bool all)
{
	if (atomic_load(&fs->remount->phase) == REMOUNT_DONE)
		atomic_store(&fs->committing_all, all);
}

void conversion_is_over(struct fs *fs)
{
	enum conversion_phase phase = conversion_phase_of(fs);

	if (phase == CONVERSION_NONE)
		return;
	fs->conversion->telling = false;
	fs->conversion->back = false;
	fs->conversion->locks = false;
	lease_keep_hold(fs, false);
	conversion_commit_all(fs, false);
	/* It did not come to CONVERT_SHARES, or that was refused. */
	if (local_locks_are_kept(fs))
		record_set_alone(fs->record, true);
	conversion_go_on(fs, phase, CONVERSION_NONE);
}

void conversion_send(struct io_thread *thread, enum rpc_convert_state state,
	void (*done)(struct rpc_call *call, const struct rpc_reply *rep))
{
	struct conversion *c = thread->fs->conversion;

	c->call = (struct rpc_call){.done = done};
	list_init(&c->call.link);
	c->call.req.op = RPC_CONVERT;
	c->call.req.convert.state = (uint8_t)state;
	rpc_start(thread, &c->call);
}

void conversion_note_told(struct fs *fs)
{
	struct record_head *head = fs->record ? record_head(fs->record) : NULL;

	if (!head)
		return;
	atomic_store(&head->ttl_ms, fs->conversion->ttl_ms);
	atomic_store(&head->told_ms, fs->conversion->told_ms);
	atomic_store(&head->has_shared, atomic_load(&fs->has_shared));
}

void conversion_forget_locked(struct fs *fs, struct inode *inode)
{
	if (!commit_is_clean_locked(inode))
		commit_forget_locked(inode);
	inode_unlease_locked(inode);
	dir_names_forget(&inode->names, &fs->inodes->names);
}
