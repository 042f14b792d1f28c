#include "daemon/file/inode_here.h"

#include "daemon/file/inode.h"
#include "daemon/op/fs_parts.h"

void inode_settle_squash_locked(struct inode *inode)
{
	if (session_squash(inode->fs->session).kind == SQUASH_NONE || inode->orphan ||
		inode->returned)
		return;
	inode->attr_valid = false;
	inode_next_epoch(inode->fs);
}

void inode_settle_squash(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	inode_settle_squash_locked(inode);
	pthread_mutex_unlock(&inode->lock);
}

void inode_settle_names(struct inode *dir)
{
	pthread_mutex_lock(&dir->lock);
	if (!dir->attr_valid)
		inode_next_epoch(dir->fs);
	pthread_mutex_unlock(&dir->lock);
}
