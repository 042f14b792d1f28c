/* inodes.h - what the kernel was told of an inode, so that another daemon can go on to
 * answer for it.
 *
 * These are the kernel's lookups, its open handles and their numbers, the attributes, and failures
 * that were not told yet. An inode that is described has nothing under way, and nothing that is not
 * committed. So its map is fetched from the server anew. Not handed over: names that a directory is
 * known to lack, and paths for messages.
 *
 * On mounts that share there are leases, too, and what the kernel keeps under them: sharing.h.
 *
 * OWNERSHIP  The caller has the arrays.
 * THREADS    inodes_describe() in any thread while the mount stands (serve/pause.h); inodes_adopt()
 *            while no I/O thread runs.
 */
#ifndef RMEMFS_DAEMON_HANDOVER_INODES_H
#define RMEMFS_DAEMON_HANDOVER_INODES_H

#include "common/base/types.h"
#include "daemon/file/inode.h"

struct handle_state {
	uint64_t number;                         /* the kernel's name for it */
	uint8_t kind;                            /* enum open_kind */
	bool writes, appends, flushed, appended; /* handle.h */
	bool stores, stale, unlocked;            /* of mounts that share: session_renewal.h */
	uint64_t told, told_pages;
	uint64_t opened_by; /* not described: handle.h */
};

struct inode_state {
	uint64_t ino, nlookup;
	uint32_t type;
	struct attr attr;
	bool attr_valid, sized, changed, stale, orphan, nameless, returned, caps;
	uint32_t nopen; /* of files the handles, of directories the times that they are open */
	/* commit.h */
	int32_t error, page_error;
	uint64_t nfailures, npage_failures;
	bool told;
	int32_t names_error;
	uint64_t read_from, read_to; /* stale_pages.h */
	uint32_t nhandles;
};

/* Whether the kernel knows the inode, so that another daemon has to. */
bool inodes_is_to_be_described(const struct inode *inode);
/* Its handles: room of them in v. Returns their number, which may be greater. */
uint32_t inodes_describe_handles(struct inode *inode, struct handle_state *v, uint32_t room);
/* -EBUSY: something of it is under way, or the server has refused what was written. */
int inodes_describe(struct inode *inode, struct inode_state *state);

/* The inode with its handles, [state->nhandles], whose numbers fs->inherited has. -ENOMEM; -EINVAL:
 * the state makes no sense, or the inode is there already. */
int inodes_adopt(
	struct fs *fs, const struct inode_state *state, const struct handle_state *handles);
/* One more handle of a file that was adopted. -ENOMEM, -EINVAL: likewise. */
int inodes_adopt_handle(struct inode *inode, const struct handle_state *state);

#endif
