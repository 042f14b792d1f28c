/* inode.h - the records of inodes.
 *
 * A record has the attributes and the file's first extents (those with the lowest pages). Further
 * extents are in the table of extents. If a file is cut short by many extents they stay in the
 * table, hidden at and beyond page `cut`, until the reaper has freed them all. A dead inode only
 * waits for that.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   -ESTALE: there is no such inode. Others: the store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_INODE_H
#define RMEMFS_SERVER_RECORD_INODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/types.h"
#include "server/record/quota.h"
#include "server/record/volume.h"

enum { INODE_REAPING = 1, INODE_DEAD = 2, INODE_FLAGS_ALL = 3 };

enum { NLINK_MAX = INT32_MAX };

/* A value of stored_inode.cut, the first hidden page: none is hidden. */
#define NO_CUT UINT64_MAX

struct stored_inode {
	uint64_t key;
	struct attr attr;
	uint8_t flags;
	uint64_t parent;   /* directories: inode of ".." */
	uint32_t nextents; /* that are not hidden */
	struct extent head[INLINE_EXTENTS];
	uint64_t cut;               /* INODE_REAPING; kept in the reaper's record */
	struct quota_share counted; /* as its stored record is counted */
};

static inline bool inode_is_dir(const struct stored_inode *i)
{
	return S_ISDIR(i->attr.mode);
}

static inline uint32_t inode_nhead(const struct stored_inode *i)
{
	return i->nextents < INLINE_EXTENTS ? i->nextents : INLINE_EXTENTS;
}

/* A dead inode is -ESTALE here. */
int inode_load(struct volume *v, uint64_t ino, struct stored_inode *out);
/* The same for directories that may get entries: -ENOTDIR; -ENOENT for an unlinked one. */
int inode_load_dir(struct volume *v, uint64_t ino, struct stored_inode *out);
/* Loads dead inodes too. */
int inode_load_any(struct volume *v, uint64_t ino, struct stored_inode *out);
/* inode_save(), inode_add() and inode_delete() keep the export's count of inodes and its quotas
 * equal to what the records say. A dead inode counts for nobody. */
int inode_save(struct volume *v, struct stored_inode *i);

/* Takes the next number and fills the record, with one link (two for a directory); not saved. */
void inode_init(struct volume *v, struct stored_inode *i, uint32_t mode, uint32_t uid, uint32_t gid,
	int64_t now);
/* The same with a number that was lent, so that it is not taken now. */
void inode_init_lent(struct volume *v, struct stored_inode *i, uint64_t ino, uint32_t mode,
	uint32_t uid, uint32_t gid, int64_t now);
/* The first save; it packs the table's pages full. An inode that has the number is damage. */
int inode_add(struct volume *v, struct stored_inode *i);
int inode_delete(struct volume *v, const struct stored_inode *i);

/* How the inode is counted once it is saved. */
static inline struct quota_share inode_share(const struct stored_inode *i)
{
	bool dead = i->flags & INODE_DEAD;

	return (struct quota_share){
		.uid = i->attr.uid,
		.gid = i->attr.gid,
		.npages = dead ? 0 : i->attr.npages,
		.inodes = dead ? 0 : 1,
	};
}

#endif
