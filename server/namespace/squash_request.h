/* squash_request.h - the server's half of a squash: requests of a session whose users are squashed
 * become what these users may ask for, or are refused.
 *
 * The server can't tell which of the client's users asks, and sees no READ and no WRITE. So it
 * keeps watch over what a request makes and gives away, whatever the client's software is. Access
 * to names and bytes is for the client's daemon to check, which ATTACH has told the squash.
 *
 *     request                       SQUASH_ROOT                      SQUASH_ALL
 *     CREATE, TMPFILE, MKNOD,       owner 0 becomes                  any owner becomes
 *     MKDIR, SYMLINK; RENAME of     anonuid, anongid                 anonuid, anongid
 *     a whiteout
 *     CREATE, TMPFILE, MKNOD        with a set-user-id or set-group-id bit: -EPERM
 *     MKNOD of a device             -EPERM, but for a whiteout, which opens nothing
 *     SETATTR of mode, owners       of an inode that 0 owns:         that anonuid does not own:
 *     or given times                -EPERM                           -EPERM
 *     SETATTR of owners             0 becomes anonuid, anongid       others than these: -EPERM
 *                                   both bits go, as after an unprivileged caller's chown(2)
 *     SETATTR of the mode           that adds one of both bits, but to a directory: -EPERM
 *     COMMIT of mode, owners        without those that SETATTR would refuse
 *     NAMES of mode, owners,        likewise
 *         times
 *     NAMES, MAKE of a new inode    0 becomes anonuid, anongid       anonuid, anongid
 *                                   a file of MAKE loses both bits
 *     SETXATTR, REMOVEXATTR of
 *         a POSIX ACL               as SETATTR of the mode
 *         trusted.*, security.*     -EPERM, but that security.capability may be removed
 *
 * All others are executed as they are. They name no owner, or they need none:
 * - QUOTA names the owner of a file that is about to be written, whoever writes it.
 * - An entry of an ACL gives a user rights to the caller's own inode, and no ownership.
 * - A directory with set-group-id gives new inodes its own group, even group 0.
 * - The size, a time that is now, and the times of a write are for all that may write.
 * - On directories the two bits are no privilege.
 *
 * The rule behind the rows: a client gets what the most powerful of its squashed users would get of
 * an NFS server with root_squash or all_squash. SQUASH_ROOT leaves users of each id but 0. There
 * are three exceptions:
 * - A file that is given to 0 gets the anonymous owner, instead of -EPERM.
 * - Not even a file's owner may set the two bits: machines of other clients would run the file.
 * - Users without capabilities have no business with trusted.* and security.*.
 *
 * THREADS    Pure functions.
 * SOURCE     exports(5); nfsd_setuser() and nfsd_sanitize_attrs() of Linux' fs/nfsd.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_SQUASH_REQUEST_H
#define RMEMFS_SERVER_NAMESPACE_SQUASH_REQUEST_H

#include "common/rpc/rpc.h"
#include "common/rpc/squash.h"

/* Changes the request to what may be executed. Doing so twice changes nothing more. -EPERM: it is
 * refused, and *why has a text of static storage. */
int squash_request(const struct squash *squash, struct rpc_request *req, struct rpc_str *why);

/* The same for a file of MAKE: it was answered to its caller before the server squashed, so it is
 * never refused. */
void squash_request_making(const struct squash *squash, struct rpc_making *making);

/* The same for a change of NAMES, but for the rights to a directory whose attributes are set. */
void squash_request_name_change(const struct squash *squash, struct rpc_name_change *change);

/* The rights that the most powerful of the session's users has: where COMMIT and NAMES, which have
 * no rights of their own, may change the mode and owners. */
struct rights squash_request_rights(const struct squash *squash);

/* Takes from a change of an inode the set-id bits that it may not bring: new ones, and with new
 * owners those that are there, too. before: the inode's mode. False: it took some. */
bool squash_request_mode(const struct squash *squash, uint32_t before, struct rpc_setattr *set);

/* The reason for -EPERM where SETATTR asked for some of them. */
extern const struct rpc_str squash_request_no_set_id;

#endif
