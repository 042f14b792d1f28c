#include "daemon/kcache/kernel_owner.h"

#include "daemon/request/caller.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode.h"

/* The kernel has made the root's inode itself, before it was told of any owner. */
static void kernel_owner_begin_locked(struct inode *inode, const struct attr *attr)
{
	bool root = inode->ino == ROOT_INO;

	*inode->kernel_owner = (struct kernel_owner){
		.told = true,
		.one_uid = true,
		.one_gid = true,
		.uid = root ? 0 : attr->uid,
		.gid = root ? 0 : attr->gid,
	};
}

static void kernel_owner_tell_locked(struct inode *inode, const struct attr *attr)
{
	struct kernel_owner *o = inode->kernel_owner;

	if (!o->told)
		kernel_owner_begin_locked(inode, attr);
	if (o->uid == 0)
		o->uid = attr->uid;
	o->one_uid &= o->uid == attr->uid;
	o->one_gid &= o->gid == attr->gid;
}

void kernel_owner_tell(struct inode *inode, const struct attr *attr)
{
	if (fs_kernel_knows_owners(inode->fs))
		return;
	pthread_mutex_lock(&inode->lock);
	kernel_owner_tell_locked(inode, attr);
	pthread_mutex_unlock(&inode->lock);
}

void kernel_owner_settle(struct inode *inode, const struct attr *attr)
{
	if (fs_kernel_knows_owners(inode->fs))
		return;
	pthread_mutex_lock(&inode->lock);
	*inode->kernel_owner = (struct kernel_owner){true, true, true, attr->uid, attr->gid};
	pthread_mutex_unlock(&inode->lock);
}

/* Several owners count as one that is not known. */
void kernel_owner_share_locked(struct inode *inode)
{
	*inode->kernel_owner = (struct kernel_owner){.told = true};
}

/* The kernel may have looked it up again meanwhile, and been told already. */
void kernel_owner_forget(struct inode *inode)
{
	pthread_mutex_lock(&inode->lock);
	if (!__atomic_load_n(&inode->nlookup, __ATOMIC_ACQUIRE))
		inode->kernel_owner->told = false;
	pthread_mutex_unlock(&inode->lock);
}

static bool is_told_of_owner_locked(const struct inode *inode)
{
	const struct kernel_owner *o = inode->kernel_owner;

	return inode->attr_valid && o->told && o->one_uid && o->one_gid &&
	       o->uid == inode->attr.uid && o->gid == inode->attr.gid;
}

bool kernel_owner_is_right(struct inode *inode)
{
	bool right;

	if (fs_kernel_knows_owners(inode->fs))
		return true;
	if (atomic_load(&inode->fs->sharing))
		return false;
	pthread_mutex_lock(&inode->lock);
	right = is_told_of_owner_locked(inode);
	pthread_mutex_unlock(&inode->lock);
	return right;
}

bool kernel_owner_rights(const struct request *req, struct inode *inode, struct rights *rights)
{
	struct kernel_owner o;

	pthread_mutex_lock(&inode->lock);
	o = *inode->kernel_owner;
	pthread_mutex_unlock(&inode->lock);
	if (!o.told || !o.one_uid || req->uid == 0 || req->squashed)
		return false;
	*rights = (struct rights){true, {o.uid, o.uid}, ID_RANGE_NONE};
	return true;
}

struct id_range kernel_owner_groups(const struct request *req, struct inode *inode, uint32_t known)
{
	struct kernel_owner o;

	if (caller_root(req) == CALLER_IS_ROOT)
		return ID_RANGE_ALL;
	pthread_mutex_lock(&inode->lock);
	o = *inode->kernel_owner;
	pthread_mutex_unlock(&inode->lock);
	if (!o.told || !o.one_gid || req->squashed)
		return caller_groups(req, known);
	return (struct id_range){o.gid, o.gid};
}
