/* ns.h - the operations on files and directories, one for each RPC.
 *
 * Each has the same order: load and check everything, then ns_room(), then change. After its first
 * change only a failure of the store may end it.
 *
 * THREADS  The metadata thread, in a batch.
 * ERRORS   -errno of the request's own; the store's failure shows in store_failed().
 */
#ifndef RMEMFS_SERVER_NAMESPACE_NS_H
#define RMEMFS_SERVER_NAMESPACE_NS_H

#include "common/rpc/acl.h"
#include "server/record/inode.h"
#include "server/meta/meta_internal.h"

enum {
	NS_PARK = 1,
	NS_WAIT, /* for another session's lease: meta.wait says which */
};

struct ns_call {
	struct meta *m;
	struct volume *v;
	const struct meta_ctx *ctx;
	const struct rpc_request *req;
	struct rpc_reply *rep;
	struct wire_out *tail;
};

/* 0, -errno, NS_PARK or NS_WAIT. */
int ns_lookup(struct ns_call *c);
int ns_getattr(struct ns_call *c);
int ns_readlink(struct ns_call *c);
int ns_readdir(struct ns_call *c);
int ns_extents(struct ns_call *c);
int ns_statfs(struct ns_call *c);
int ns_unprotect(struct ns_call *c);
int ns_setattr(struct ns_call *c);
int ns_create(struct ns_call *c);
int ns_tmpfile(struct ns_call *c);
int ns_mknod(struct ns_call *c);
int ns_mkdir(struct ns_call *c);
int ns_symlink(struct ns_call *c);
int ns_link(struct ns_call *c);
int ns_unlink(struct ns_call *c);
int ns_rmdir(struct ns_call *c);
int ns_rename(struct ns_call *c);
int ns_commit(struct ns_call *c);
int ns_make(struct ns_call *c);
int ns_names(struct ns_call *c);
int ns_grant(struct ns_call *c);
int ns_return(struct ns_call *c);
int ns_fallocate(struct ns_call *c);
int ns_copy(struct ns_call *c);
int ns_quota(struct ns_call *c);
int ns_getxattr(struct ns_call *c);
int ns_listxattr(struct ns_call *c);
int ns_setxattr(struct ns_call *c);
int ns_removexattr(struct ns_call *c);
int ns_stage(struct ns_call *c);
int ns_lease(struct ns_call *c);
int ns_lock(struct ns_call *c);
int ns_convert(struct ns_call *c);
int ns_getlk(struct ns_call *c);

/* ---- shared by them, common.c ---------------------------------------------------------------- */

/* Room in the store for the operation; grows: it makes records that stay. */
int ns_room(struct ns_call *c, uint64_t npages, bool grows);
/* After ns_room() has allowed what the operation needs, without growth: is there so much more? */
bool ns_more_room(struct ns_call *c, uint64_t npages);

/* A quota is used up: -EDQUOT with its text, or NS_PARK where an ended session may give some back.
 */
int ns_no_quota(struct ns_call *c);
/* Checks that an inode which counts as `from` may count as `to`; else ns_no_quota(). */
int ns_check_quota(struct ns_call *c, const struct quota_share *from, const struct quota_share *to);
/* The same for one more inode; -ENOSPC: the export may not have it. */
int ns_check_new(struct ns_call *c, uint32_t uid, uint32_t gid);

/* A snapshot may want the bytes of files as they are. So an operation that changes bytes itself
 * asks whether there is room to keep them, with the checks before its first change: 0 or NS_PARK.
 * Before each change it gives the pages up. */
int ns_may_change_bytes(struct ns_call *c);
void ns_give_up_pages(struct ns_call *c, struct page_run run);

/* -EPERM: the caller has no right to the inode, as it is now. */
int ns_check_rights(const struct stored_inode *i, const struct rights *rights);

/* A name that can be made or removed: -EINVAL for "." and "..", -ENAMETOOLONG. */
int ns_check_name(const struct rpc_str *name);

/* Loads a directory and finds a name in it; slot->ino is 0 if it is not there. */
int ns_find(struct ns_call *c, uint64_t parent, const struct rpc_str *name,
	struct stored_inode *dir, struct dirent_slot *slot);

/* -ESTALE: the name is of another inode than the request expects (rpc_name_of), and that matters.
 * Asked after all that may refuse the request. */
int ns_check_expected(
	struct ns_call *c, const struct dirent_slot *slot, const struct rpc_name_of *expected);

/* Loads the inode that an entry names: a dead or missing one is damage. */
int ns_load_entry(struct ns_call *c, const struct dirent_slot *slot, struct stored_inode *out);

/* Numbers that the session asks for by CREATE or MAKE, and may have (enum rpc_numbers). They come
 * with the operation's other changes; without room for them it goes on. In lend.c. */
bool ns_may_lend(struct ns_call *c, uint8_t numbers);
int ns_lend(struct ns_call *c, uint8_t numbers, struct rpc_lent *lent);

/* The inode's contents were changed, or its attributes alone: mtime and ctime, or ctime, are now.
 * They don't go back; see change_time.h. */
void ns_modified(const struct ns_call *c, struct attr *attr);
void ns_changed(const struct ns_call *c, struct attr *attr);

/* Entries came or went: sets mtime and ctime. */
int ns_touch_dir(struct ns_call *c, struct stored_inode *dir);

/* Takes a name away from an inode: one link, or all links of a directory. Without any link the
 * inode is kept for the session. *number: that of its record then, at a shared export. */
int ns_drop_link(struct ns_call *c, struct stored_inode *i, uint64_t *number);

void ns_fill_entry(
	struct ns_call *c, const struct stored_inode *i, const struct stored_inode *parent);

/* As ns_room(), with room for the records of *want granted pages. Without that room, or pages,
 * *want becomes less, and the operation itself goes on. */
int ns_room_and_grant(struct ns_call *c, uint64_t npages, bool grows, uint64_t *want);

/* Grants up to want pages, in grant[GRANT_EXTENTS]. */
int ns_take_grant(struct ns_call *c, uint64_t want, struct extent grant[GRANT_EXTENTS], uint8_t *n);

/* Whether pages that are not used any more become free in time. */
bool ns_dirty_comes(const struct ns_call *c);
/* No page is free. NS_PARK: some are on their way to be; else -ENOSPC, with a text. */
int ns_no_pages(struct ns_call *c);
/* Pages of an earlier truncation are still in the table where the caller wants to map. NS_PARK;
 * -EIO: they can't be reaped; -ENOSPC: the store has no room for that. */
int ns_wait_for_reaper(const struct ns_call *c);

/* ---- leases, lease.c -------------------------------------------------------------------------
 *
 * Sessions that aren't shared need none, and these functions cost them nothing. The checks come
 * before the operation's first change. */

/* NS_WAIT: another session may have changed the inode, so that the store does not know its
 * attributes. */
int ns_check_known(struct ns_call *c, const struct stored_inode *i);
int ns_is_known(struct ns_call *c, const struct stored_inode *i, bool *known);
/* These inodes are about to change, each in any attribute or name: no other session may know one of
 * them. Else NS_WAIT, for the one with the lowest number that another session knows (recall.h). */
int ns_check_unknown(struct ns_call *c, const struct stored_inode *const *inodes, unsigned n);
int ns_check_one_unknown(struct ns_call *c, const struct stored_inode *i);
/* -ESTALE: the session itself has less than this lease. For COMMIT: the lease that its contents
 * need; it never waits. */
int ns_check_lease(struct ns_call *c, const struct stored_inode *i, uint8_t type);
int ns_check_commit_lease(struct ns_call *c, const struct stored_inode *i);

/* Whether there is room for the leases of an operation that looks at two inodes at most. Zero
 * before the first. */
struct ns_look_room {
	bool asked, there;
};
/* Gives the session a lease of an inode that it looks at, if that is possible; ns_check_known()
 * came before. *lease: the lease that it has then. Fails only with the store. */
int ns_look(struct ns_call *c, const struct stored_inode *i, struct ns_look_room *room,
	struct lease *lease);

/* Whether one more lease record may not take the store's reserve: there are as many as that is kept
 * for. */
bool ns_lease_grows(const struct ns_call *c);

/* Pins a file that the session has opened. The reply's lease says what the session has of it:
 * LEASE_EXCLUSIVE of a file that was just made, as long as it may keep more. */
int ns_pin(struct ns_call *c, const struct stored_inode *i, bool made);

/* Keeps an inode without a name, as long as the session wants it. *number: see ns_drop_link(). */
int ns_keep(struct ns_call *c, const struct stored_inode *i, uint64_t *number);
/* -ENOENT: the session may not give a name to an inode that has none. Where others may have taken
 * its last name meanwhile, it may only if the inode never had one. */
int ns_keeps(struct ns_call *c, const struct stored_inode *i);
/* The inode has a name again. */
int ns_named(struct ns_call *c, const struct stored_inode *i);

/* ---- inodes without a name, orphan.c --------------------------------------------------------- */

/* Whether the session keeps the inode by a record of its own (STORE_ORPHAN), and not by a pin. */
int ns_orphan_has(struct ns_call *c, uint64_t ino, bool *has);
/* It is kept in another way from now on. */
int ns_orphan_end(struct ns_call *c, uint64_t ino);
/* The inode goes. -ENOENT: there is no such record. */
int ns_orphan_return(struct ns_call *c, uint64_t ino, bool at_once);

/* RETURN of an inode that the session keeps by a pin, and RETURN of leases. */
int ns_return_pin(struct ns_call *c, uint64_t ino, bool at_once);
int ns_return_leases(struct ns_call *c);
/* The session is about to have the export for itself: it has no lease and no pin from now on, and
 * keeps the inodes without a name that it had one of. -EBUSY: it has too many. */
int ns_give_up_leases(struct ns_call *c);
/* COMMIT also returns the part of the lease that the session no longer needs. */
int ns_commit_lowers_lease(struct ns_call *c);

/* ---- bytes and holes of files, pages.c -------------------------------------------------------
 *
 * The server's own CPU touches only bytes that no client reads or writes meanwhile: the client has
 * ended its I/O of the file. It does so within the batch. If that is aborted, or the process is
 * killed, the request runs again before anything else can ask for these bytes. */

/* Zeroes the mapped bytes of [from, to). After ns_may_change_bytes(). */
int ns_zero(struct ns_call *c, const struct stored_inode *i, uint64_t from, uint64_t to);
/* The same from there to the end of its page: bytes that were cut off may not be seen again. */
int ns_zero_tail(struct ns_call *c, const struct stored_inode *i, uint64_t from);
/* Zeroes mapped bytes that a file is going to grow over, from its end up to `size`. *to: how far
 * that went, by a bounded number of extents and pages. After ns_may_change_bytes(). */
int ns_zero_growth(struct ns_call *c, const struct stored_inode *i, uint64_t size, uint64_t *to);
/* The bytes of a file from an offset on: *at, or NULL for a hole; *len: so many bytes at least. */
int ns_bytes_at(struct ns_call *c, const struct stored_inode *i, uint64_t offset,
	const uint8_t **at, uint64_t *len);
/* Writes to the mapped bytes of len at offset. After ns_may_change_bytes(). */
int ns_write(struct ns_call *c, const struct stored_inode *i, uint64_t offset, const uint8_t *from,
	uint64_t len);
/* Gives a hole pages from fpage on, in one run, up to *end; sets *end to where the run ends.
 * NS_PARK, -EDQUOT, -ENOSPC, -EIO: see above, and nothing was changed. */
int ns_fill_hole(struct ns_call *c, struct stored_inode *i, uint64_t fpage, uint64_t *end);

/* Sets mode, owners and times, and what goes with them; ns_setattr_xattrs_room() came before.
 * Without SET_CTIME the ctime is now. In setattr.c. */
int ns_set_attr(struct ns_call *c, struct stored_inode *i, const struct rpc_setattr *set);

/* ---- attributes that go with others, acl.c --------------------------------------------------- */

/* The mode and the lists of a new inode, from its directory's default ACL. Without one: the mode
 * less the umask. */
struct heritage {
	uint32_t mode;
	size_t naccess, ndefault; /* bytes; 0: no such list */
	uint8_t access_acl[ACL_BYTES_MAX], default_acl[ACL_BYTES_MAX];
};

/* Finds the heritage of a new inode of this type and mode; changes nothing. Adds to *room the store
 * pages that ns_heritage_put() may touch. */
int ns_inherit(struct ns_call *c, const struct stored_inode *dir, uint32_t mode, uint32_t umask,
	struct heritage *h, uint64_t *room);
/* Called between inode_init(), with h->mode, and inode_add(). */
int ns_heritage_put(struct ns_call *c, const struct heritage *h, struct stored_inode *i);

/* The changes of ACL and capabilities that go with SETATTR's valid (SET_*). The first adds to *room
 * the store pages that they may touch. The second makes them, once the new mode is in the inode. */
int ns_setattr_xattrs_room(
	struct ns_call *c, const struct stored_inode *i, uint32_t valid, uint64_t *room);
int ns_setattr_xattrs(struct ns_call *c, struct stored_inode *i, uint32_t valid);

#endif
