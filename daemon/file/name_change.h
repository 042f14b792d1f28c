/* name_change.h - one change of names or attributes that this client has made by itself
 * (name_queue.h).
 *
 * OWNERSHIP  A struct name_change is its maker's until it is queued, and then the queue's. It has
 *            references to the inodes that it names.
 * THREADS    It does not change once it is queued, but for its link.
 */
#ifndef RMEMFS_DAEMON_FILE_NAME_CHANGE_H
#define RMEMFS_DAEMON_FILE_NAME_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/op/op.h"

struct inode;

struct name_change {
	struct list link;
	struct inode *inode, *dir; /* referenced; NAME_SET: without dir and name */
	uint64_t number;           /* it counts the mount's */
	int64_t time;
	enum rpc_name_kind kind;
	/* NAME_MKDIR; NAME_SET, without umask; NAME_SYMLINK: the owners */
	uint32_t mode, umask, uid, gid;
	uint64_t lent;        /* NAME_LINK: the inode number that it uses up (unmade.h) */
	uint32_t valid;       /* NAME_SET: of NAME_SET_ALL */
	int64_t atime, mtime; /* NAME_SET */
	/* NAME_SET: the directory whose fsync tells of a refusal; referenced; NULL: its own */
	struct inode *teller;
	/* NAME_MOVE; referenced. replaced: has the new name, and points here, too; NULL: none */
	struct inode *new_dir, *replaced;
	char *text; /* NAME_MOVE: the new name; NAME_SYMLINK: the target */
	uint16_t text_len, len;
	char name[NAME_BYTES_MAX + 1];
};

/* A name and the inode that has it; NULL: none. */
struct name_place {
	struct inode *dir, *inode;
	const char *name;
};

/* A NAME_REMOVE, unless the caller makes it a NAME_MKDIR or NAME_LINK; a NAME_SYMLINK, whose owners
 * the caller fills; a NAME_MOVE; and a NAME_SET, which the caller fills. A number that was lent
 * counts as taken (unmade.h). NULL: no memory. name_change_drop() is for one that was not added. */
struct name_change *name_change_new(
	struct inode *inode, struct inode *dir, const char *name, int64_t time);
struct name_change *name_change_new_symlink(
	const struct name_place *at, const char *target, int64_t time);
struct name_change *name_change_new_move(
	const struct name_place *from, const struct name_place *to, int64_t time);
struct name_change *name_change_new_set(struct inode *inode, struct inode *teller, int64_t time);
void name_change_drop(struct name_change *one);
/* The same of one whose inodes are gone. */
void name_change_free(struct name_change *one);
/* Whether it uses up a number that was lent. */
bool name_change_takes_number(const struct name_change *one);
/* The inode that loses its name by it; NULL: none. */
struct inode *name_change_loser(const struct name_change *one);
/* Its length in a message; and puts it there. keep: the client still uses the inode that loses its
 * name. */
size_t name_change_bytes(const struct name_change *one);
void name_change_put(const struct name_change *one, bool keep, struct wire_out *w);
/* Whether a request that is about these comes behind it. */
bool name_change_is_about(const struct name_change *one, const struct op_about *about);

#endif
