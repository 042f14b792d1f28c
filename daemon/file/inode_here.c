#include "daemon/file/inode_here.h"

#include <sys/stat.h>

#include "daemon/file/inode.h"
#include "daemon/file/name_queue.h"
#include "daemon/file/unmade.h"
#include "daemon/op/fs_parts.h"

/* Names in it are changed, or made, and the server does not know that: its own attributes are
 * older.
 */
static bool has_changes_inside(const struct inode *dir)
{
	const struct op_about about = {.ino = {dir->ino}};
	uint64_t number = 0;

	return name_queue_before(dir->fs->name_queue, &about) ||
	       (unmade_any(dir->fs->unmade) &&
		       unmade_find(dir->fs->unmade, &about, UINT64_MAX, &number));
}

bool inode_is_changed_here_locked(const struct inode *inode)
{
	return inode->nsets || inode->queued || (S_ISDIR(inode->type) && has_changes_inside(inode));
}

void inode_settle_squash_locked(struct inode *inode)
{
	if (session_squash(inode->fs->session).kind != SQUASH_NONE)
		inode->attr_valid = false;
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
