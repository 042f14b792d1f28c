#include "daemon/drop.h"

#include "common/util.h"
#include "daemon/fs_internal.h"

static void dropped(struct notifier_job *job);

/* Several notes become one range: what is dropped without need is only read again. */
static void start_locked(struct inode *inode, struct fuse_port *port)
{
	struct drop *d = &inode->drop;

	d->job = (struct notifier_job){
		.port = port,
		.node = inode_node(inode),
		.off = (int64_t)d->from,
		.len = (int64_t)(d->to - d->from),
		.done = dropped,
	};
	d->from = d->to = 0;
	notifier_add(&inode->fs->dropper, &d->job);
}

static void dropped(struct notifier_job *job)
{
	struct inode *inode = container_of(job, struct inode, drop.job);
	struct drop *d = &inode->drop;
	bool again;

	pthread_mutex_lock(&inode->lock);
	again = d->running = d->from < d->to;
	if (again)
		start_locked(inode, job->port);
	pthread_mutex_unlock(&inode->lock);
	/* Started again, it keeps the reference. */
	if (!again)
		inode_put(inode);
}

void drop_note_locked(struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to)
{
	struct drop *d = &inode->drop;
	bool noted = d->from < d->to;

	d->from = noted ? min_u64(d->from, from) : from;
	d->to = noted ? max_u64(d->to, to) : to;
	if (d->running)
		return;
	d->running = true;
	inode_ref(inode);
	start_locked(inode, port);
}

void drop_unseen_locked(struct inode *inode, struct fuse_port *port, uint64_t from, uint64_t to)
{
	inode->stale = true;
	if (inode->nopen_cached)
		drop_note_locked(inode, port, from, to);
}
