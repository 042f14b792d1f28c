/* ns.h - the operations on files and directories, as RPCs ask for them.
 *
 * Each has the same order: load and check everything, then ns_room(), then change. After its first
 * change only a failure of the store may end it.
 *
 * THREADS  The metadata thread, in a batch.
 * ERRORS   -errno of the request's own; the store's failure shows in store_failed().
 */
#ifndef RMEMFS_SERVER_NS_H
#define RMEMFS_SERVER_NS_H

#include "server/inode.h"
#include "server/meta_internal.h"

enum { NS_PARK = 1 };

struct ns_call {
	struct meta *m;
	struct volume *v;
	const struct meta_ctx *ctx;
	const struct rpc_request *req;
	struct rpc_reply *rep;
	struct wire_out *tail;
};

/* 0, -errno or NS_PARK. */
int ns_lookup(struct ns_call *c);
int ns_getattr(struct ns_call *c);
int ns_readlink(struct ns_call *c);
int ns_readdir(struct ns_call *c);
int ns_extents(struct ns_call *c);
int ns_statfs(struct ns_call *c);
int ns_setattr(struct ns_call *c);
int ns_create(struct ns_call *c);
int ns_mknod(struct ns_call *c);
int ns_mkdir(struct ns_call *c);
int ns_symlink(struct ns_call *c);
int ns_link(struct ns_call *c);
int ns_unlink(struct ns_call *c);
int ns_rmdir(struct ns_call *c);
int ns_rename(struct ns_call *c);
int ns_commit(struct ns_call *c);
int ns_grant(struct ns_call *c);
int ns_return(struct ns_call *c);

/* ---- shared by them, ns_common.c ------------------------------------------------------------- */

/* Room in the store for the operation; grows: it makes records that stay. */
int ns_room(struct ns_call *c, uint64_t npages, bool grows);

/* A name that can be made or removed: -EINVAL for "." and "..", -ENAMETOOLONG. */
int ns_check_name(const struct rpc_str *name);

/* Loads a directory and finds a name in it; slot->ino is 0 if it is not there. */
int ns_find(struct ns_call *c, uint64_t parent, const struct rpc_str *name, struct inode *dir,
	struct dirent_slot *slot);

/* Loads what an entry names: a dead or missing inode is damage. */
int ns_load_entry(struct ns_call *c, const struct dirent_slot *slot, struct inode *out);

/* Entries came or went: mtime and ctime. */
int ns_touch_dir(struct ns_call *c, struct inode *dir);

/* Takes a name away from an inode: fewer links, or all of a directory's; without any it is kept
 * for the session. */
int ns_drop_link(struct ns_call *c, struct inode *i);

void ns_fill_entry(struct ns_call *c, const struct inode *i, const struct inode *parent);

/* The same with room for what may come of *want granted pages; without that room, or pages,
 * *want becomes less: the operation itself goes on. */
int ns_room_and_grant(struct ns_call *c, uint64_t npages, bool grows, uint64_t *want);

/* Up to want pages into grant[GRANT_EXTENTS]. */
int ns_take_grant(struct ns_call *c, uint64_t want, struct extent grant[GRANT_EXTENTS], uint8_t *n);

#endif
