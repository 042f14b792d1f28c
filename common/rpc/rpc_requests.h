/* rpc_requests.h - the requests of a client, field by field. See rpc.h. */
#ifndef RMEMFS_COMMON_RPC_RPC_REQUESTS_H
#define RMEMFS_COMMON_RPC_RPC_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "common/rpc/rights.h"
#include "common/rpc/rpc_ops.h"
#include "common/rpc/wire.h"

enum {
	ATTACH_READ_ONLY = 1,
	ATTACH_EXCLUSIVE = 2, /* no other session of any kind has the export meanwhile */
	/* Other sessions with this flag may write, too: what the client knows of an inode needs a
	 * lease. */
	ATTACH_SHARED = 4,
	/* Without ATTACH_SHARED: this session has the export for itself until another one comes.
	 * Then PING's reply asks for CONVERT (RECALL_SHARE). If others are there already, the
	 * answer is -EALREADY, and the client asks again, with ATTACH_SHARED. */
	ATTACH_CONVERTS = 8,
	ATTACH_ALL = ATTACH_READ_ONLY | ATTACH_EXCLUSIVE | ATTACH_SHARED | ATTACH_CONVERTS,
};

/* Refusals: -EIDRM: the session has ended, and the store is the same. -ESTALE: the store is another
 * one, the session is another client's, or this ATTACH is late. -EBUSY, -EUSERS, -ENOENT: see
 * attach.h. */
struct rpc_attach {
	/* Identifies the mount. It stays the same when the client's process dies and another one
	 * mounts at the same place. See attach.h for the consequences. */
	uint8_t owner[OWNER_BYTES];
	uint64_t instance; /* identifies the owner's process */
	uint64_t session;  /* 0: make a session; else join or resume this one */
	/* The store that the client knows. Any value where both `session` and `ended` are 0. */
	const uint8_t *store_id; /* [16], as in struct rpc_str; NULL: zeros */
	/* For a client that begins anew: its session before, which the server has ended. The client
	 * has deleted all channels of that session; on shm it has also unmapped all regions. 0:
	 * there was none. */
	uint64_t ended;
	/* The birth time of the root that it had there. Another one: the export was removed, and a
	 * new one has its name. 0: it does not matter. */
	int64_t born;
	uint16_t channel; /* 0 .. nchannels-1: the number of this channel */
	uint16_t nchannels;
	/* A resumed session may have another READ_ONLY than before. The server then changes the
	 * session, and ends its other channels, since their keys have the other kind of access.
	 * -EROFS: the session can't become one that writes, since others read. */
	uint32_t flags;
	uint32_t wait_ms; /* how long to wait for an export that is in use */
	struct rpc_str export_name;
	/* Of the session that is joined or resumed, as its first answer has brought it. */
	const uint8_t *token;  /* [TOKEN_BYTES]; NULL: zeros */
	struct rpc_str client; /* for people: "host:/mnt/rmem (pid 311)" */
};

/* The handshake of common/auth/handshake.h, a flight a message. The client sends step 1 with its
 * first flight; the reply has the server's. Step 2 has the client's last flight; its reply has
 * none. ATTACH may follow step 2 at once. All have seq 0. Once a channel; -EACCES, "not accepted",
 * and the channel's end to a client that proves no key, whatever the reason. */
enum { RPC_AUTH_FLIGHT_MAX = 4096 };
struct rpc_auth {
	uint8_t step;
	struct rpc_tail tail; /* bytes: 1 .. RPC_AUTH_FLIGHT_MAX */
};

/* The keys of this channel to the regions from first on. A client asks for all before it uses the
 * channel. It asks again, on the ready channel, when an extent names a region that it has no key
 * to: the export has grown. So the server tells nobody of a growth. */
struct rpc_regions {
	uint32_t first; /* index of the first region wanted */
};

/* Totals since the session began, for status and metrics. */
struct rpc_counters {
	uint64_t reads, writes, read_bytes, write_bytes; /* one-sided works and their bytes */
	uint64_t rpcs;
	uint64_t rpc_data_bytes; /* file bytes carried in messages: 0 */
};
void rpc_counters_add(struct rpc_counters *sum, const struct rpc_counters *more);
/* Subtracts what was counted before. No difference is below 0, even if a peer sends wrong
 * numbers. */
void rpc_counters_subtract(struct rpc_counters *counted, const struct rpc_counters *before);

struct rpc_bye {
	struct rpc_counters counters;
	/* Not all that was written is committed. Files that the session had as LEASE_EXCLUSIVE may
	 * have changed, as those of a session that ends without BYE. */
	bool lost;
};

/* Withdraws the request with this number in this slot of the channel. If it waits until another
 * session gives back a lease, or until there are pages, it is answered with -EINTR and is never
 * executed. Else CANCEL does nothing, and the request gets its usual answer. */
struct rpc_cancel {
	uint16_t slot;
	uint64_t seq;
};

struct rpc_status {
	uint32_t offset; /* into the JSON text; 0 takes a new snapshot */
};

/* The answer is a JSON text in pieces, as that of STATUS. */
struct rpc_who {
	uint32_t offset; /* into the text; 0: the server writes it anew */
	struct rpc_str export_name;
	struct rpc_str path; /* from the export's root, with a slash; or an inode's number */
};

struct rpc_evict {
	uint64_t session;
};

struct rpc_log {
	uint8_t level; /* enum log_level */
};

enum rpc_snapshot_command { SNAPSHOT_START = 1, SNAPSHOT_POLL, SNAPSHOT_CANCEL };

struct rpc_snapshot {
	uint8_t command;
	struct rpc_str export_name;
	struct rpc_str dir; /* START: on the server's machine; else empty */
};

/* LOOKUP and GETATTR of sessions at a shared export: the client also wants the inode found as
 * LEASE_SHARED, or the directory it is looked up in. The server grants a lease only where no other
 * session has to be waited for, and not where leases are often recalled. The reply tells the
 * session's lease of each then. A LOOKUP that wants the directory's lease succeeds for a missing
 * name, too: attr.ino is 0 then. */
enum { LOOK_LEASE = 1, LOOK_LEASE_DIR = 2 };

/* The inode that the client takes a name to be of, when it asks to change the name: an inode's
 * number, or one of the constants below. If the name is of another inode, the answer is -ESTALE if
 * the expected one is a directory that still has a name, or if `exactly` is set. Other refusals
 * come first. */
struct rpc_name_of {
	uint64_t ino;
	bool exactly; /* else only a directory that still exists matters */
};
#define NAME_OF_ANY  UINT64_C(0)
#define NAME_OF_NONE UINT64_MAX

/* LOOKUP, UNLINK, RMDIR. LOOKUP of "." goes by the inode number alone: it finds an inode of any
 * kind, as long as it has a name. */
struct rpc_name_request {
	uint64_t parent;
	struct rpc_str name;
	uint8_t look;                /* LOOKUP: LOOK_* */
	struct rpc_name_of expected; /* UNLINK, RMDIR */
};

struct rpc_ino_request { /* GETATTR, READLINK */
	uint64_t ino;
	uint8_t look; /* GETATTR: LOOK_LEASE */
};

struct rpc_readdir {
	uint64_t ino;
	uint64_t cookie; /* 0: from the start; else that of the last entry seen */
	uint32_t bytes;  /* the client wants at most so many bytes of tail */
	bool plus;       /* with attributes */
};

struct rpc_extents {
	uint64_t ino;
	uint64_t fpage; /* from the extent on that holds or follows this page */
};

enum {
	SET_MODE = 1,
	SET_UID = 2,
	SET_GID = 4,
	SET_SIZE = 8,
	SET_ATIME = 16,
	SET_MTIME = 32,
	SET_ATIME_NOW = 64,
	SET_MTIME_NOW = 128,
	SET_CTIME = 256,
	SET_NO_CAPS = 512,        /* removes security.capability */
	SET_NO_PRIVILEGES = 1024, /* see below */
	SET_OWNERS = SET_UID | SET_GID,
	SET_ATIMES = SET_ATIME | SET_ATIME_NOW,
	SET_MTIMES = SET_MTIME | SET_MTIME_NOW,
};

/* A file that grows over pages allocated beyond its end may grow in steps. The reply's size tells
 * how far it is, and the client asks again for the rest.
 *
 * Other sessions may have changed the inode since the client checked the caller's rights. So the
 * server refuses with -EPERM if `rights` are not those of the present owner. SET_MODE sets no
 * set-group-id bit if `rights` are not of the present group, or of the group that comes with it.
 * SET_NO_PRIVILEGES does nothing to directories. On others it takes from the present mode the bits
 * of mode_without_privileges(); in_group is true if `rights` are of the group. */
struct rpc_setattr {
	uint64_t ino;
	uint32_t valid;
	uint32_t mode, uid, gid;
	uint64_t size;
	int64_t atime, mtime, ctime;
	struct rights rights;
};

/* The group to check a caller's rights against, for an inode that has gid. */
static inline uint32_t rpc_setattr_group(const struct rpc_setattr *q, uint32_t gid)
{
	return q->valid & SET_MODE && q->valid & SET_GID ? q->gid : gid;
}

/* Inode numbers that the server lends to a session, so that the client can answer a creation
 * itself, and tell of it by MAKE or NAMES. These ask for them, and CREATE, MKDIR, SYMLINK and LINK.
 * A creation with such a number is not refused for want of room or rights. So none is lent while
 * room is short, at an export with quotas, or to a session that shares its export or whose users
 * are squashed. */
enum rpc_numbers {
	NUMBERS_NONE,
	NUMBERS_MORE,
	NUMBERS_ANEW, /* the client has none, and uses none of those that it was lent before */
};
enum { NUMBERS_LENT = 64 }; /* at once */

struct rpc_create { /* CREATE, MKNOD, MKDIR, SYMLINK; TMPFILE, which has no name */
	uint64_t parent;
	uint32_t mode;  /* S_IFMT included */
	uint32_t umask; /* taken from the mode, unless the parent has a default ACL */
	uint32_t uid, gid;
	uint32_t rdev;
	uint32_t want_pages; /* CREATE, TMPFILE: pages to grant with the reply, 0: none */
	bool exclusive;      /* CREATE of an existing file: -EEXIST; else it is opened */
	uint8_t numbers;     /* CREATE, MKDIR, SYMLINK: enum rpc_numbers */
	struct rpc_str name;
	struct rpc_str target; /* SYMLINK */
};

struct rpc_link {
	uint64_t ino;
	uint64_t parent;
	struct rpc_str name;
	uint8_t numbers; /* enum rpc_numbers */
};

struct rpc_rename {
	uint64_t parent, new_parent;
	uint32_t flags; /* RENAME_NOREPLACE and RENAME_WHITEOUT, or RENAME_EXCHANGE */
	struct rpc_str name, new_name;
	uint32_t uid, gid; /* of a whiteout */
	struct rpc_name_of expected, new_expected;
};
/* Whether these flags are allowed together. */
bool rpc_rename_flags_ok(uint32_t flags);

/* The same bits as SETATTR's, so that COMMIT carries attributes that were set while the file was
 * written. */
enum {
	COMMIT_MODE = SET_MODE,
	COMMIT_UID = SET_UID,
	COMMIT_GID = SET_GID,
	COMMIT_SIZE = SET_SIZE,
	COMMIT_ATIME = SET_ATIME,
	COMMIT_MTIME = SET_MTIME,
};

struct rpc_commit {
	uint64_t ino;
	uint32_t flags;
	uint64_t size;        /* COMMIT_SIZE: the size grows to this, never shrinks */
	int64_t mtime, ctime; /* COMMIT_MTIME: both */
	int64_t atime;
	uint32_t mode, uid, gid;
	/* The session's lease of the inode, if its number is up to `lease`, becomes `keep` with
	 * this COMMIT, as by RETURN. Both 0: it stays. */
	uint64_t lease;
	uint8_t keep;
	struct rpc_tail tail; /* extents: pages of this session's grants to be mapped at fpage */
};

/* MAKE: files that the client has made by itself, each with what was written into it since. They
 * are made in their order and in one transaction, and each has a status of its own. It is checked
 * as if it came alone, behind those before it: programs were told of each file, and nobody knows
 * which of them belong together. So a file that is refused changes nothing, and neither undoes nor
 * skips another one. A number that comes twice is used the second time, a name that comes twice is
 * there, and a page that comes twice is not granted any more.
 *
 * -EINVAL: the number was not lent, or was used. -EAGAIN: the transaction has no room for the file;
 * it was not looked at, and the client sends it again. The first file never has that status.
 *
 * Only these refuse the request itself, with all files: the session is read-only, or it shares its
 * export, so that no file would be made; or the store fails, which undoes the transaction. Then one
 * file may be the reason, and the client sends each alone. */
enum { MAKES_MAX = 16 };

struct rpc_makes {
	uint8_t numbers;      /* enum rpc_numbers */
	struct rpc_tail tail; /* struct rpc_making: 1 .. MAKES_MAX */
	/* So many bytes of the tail come before these: struct rpc_name_change, as in NAMES. Unless
	 * all of them take effect, no file is looked at. */
	uint16_t names_bytes;
};
/* The two parts of the tail. */
void rpc_makes_parts(const struct rpc_makes *makes, struct rpc_tail *names, struct rpc_tail *files);

/* A file that the client has made: the name, which nobody has, and what CREATE tells. */
struct rpc_make {
	uint64_t parent;
	int64_t time; /* of the creation, which the file and its directory get */
	uint32_t mode, umask, uid, gid;
	struct rpc_str name;
};

/* An element of that tail. */
struct rpc_making {
	struct rpc_make make;
	struct rpc_commit commit; /* of the new file: without lease */
};

/* NAMES: changes of names, and of attributes of directories and symbolic links, that the client has
 * made by itself, as its callers were told. They take effect in their order, each as by the request
 * of its kind, and in one transaction: after a crash of the server the store has all that the reply
 * tells of, or none. Only of a session that has the export for itself. */
struct rpc_names {
	struct rpc_tail tail; /* struct rpc_name_change; at least one */
	uint8_t numbers;      /* enum rpc_numbers */
};

enum rpc_name_kind {
	NAME_REMOVE, /* UNLINK, RMDIR: the name has to be that inode's, and a directory empty */
	NAME_MKDIR,  /* of a lent number */
	/* RENAME in place of the replaced inode or of none. A directory gets another name in its
	 * parent, and replaces none. */
	NAME_MOVE,
	/* SETATTR of a directory's mode, owners and times, or of a symbolic link's owners and
	 * times. Callers were told that it is done. So no quota refuses it, and of a squashed
	 * session it leaves out what SETATTR would refuse. */
	NAME_SET,
	NAME_SYMLINK, /* of a lent number */
	/* LINK of what is no directory, and has a name. It uses up a lent number, and takes its
	 * room. */
	NAME_LINK,
};

/* SETATTR's flags that NAME_SET may have. Times are given: the client knows what is now. */
enum { NAME_SET_ALL = SET_MODE | SET_OWNERS | SET_ATIME | SET_MTIME };

/* An element of that tail. parent, keep and name: not of NAME_SET. */
struct rpc_name_change {
	uint64_t parent, ino;
	/* Of the change. The directories get it, and an inode that is moved or set. */
	int64_t time;
	/* NAME_REMOVE and the replaced inode, if it was the last name: the client still uses the
	 * inode, and will RETURN it. Else the inode ends with its name. */
	bool keep;
	struct rpc_str name;
	uint8_t kind; /* enum rpc_name_kind */
	/* NAME_MKDIR: as MKDIR tells them; NAME_SET, without umask: as SETATTR does; NAME_SYMLINK:
	 * the owners */
	uint32_t mode, umask, uid, gid;
	/* NAME_MOVE. replaced: the inode that has the new name, and is no directory; 0: none. */
	uint64_t new_parent, replaced;
	struct rpc_str new_name;
	struct rpc_str target; /* NAME_SYMLINK: 1 to SYMLINK_BYTES_SHORT */
	uint64_t lent;         /* NAME_LINK: that number */
	uint32_t valid;        /* NAME_SET: at least one of NAME_SET_ALL */
	int64_t atime, mtime;
};

struct rpc_grant {
	uint32_t want_pages;
	/* With it, -ENOSPC comes only after the server has waited for reaping and scrubbing. At a
	 * shared export it has also waited for the pages that other sessions do not use; this
	 * session has no unused ones left then. */
	bool wait;
};

/* RETURN_ALL: all granted pages and all quota that the session has not used. Its process has died,
 * and another one goes on with the session without knowing them. -EINPROGRESS: some are left, and
 * the client asks again. All channels of the dead process are fenced before. */
enum rpc_return_kind { RETURN_INODES = 1, RETURN_GRANTS, RETURN_LEASES, RETURN_ALL };

struct rpc_return {
	uint32_t kind;
	struct rpc_tail tail; /* inode numbers (u64), extents, or struct rpc_returned */
	/* RETURN_GRANTS: PING's give_pages, if the session has no unused pages left after this;
	 * else 0
	 */
	uint64_t answers;
};

enum {
	LEASE_PIN = 1,     /* the file is open from now on: no unlink frees it */
	LEASE_IF_FREE = 2, /* recalls no lease: a smaller one, or none, will do */
	/* If leases of others conflict, LEASE_LAYOUT will do instead of LEASE_SHARED, and
	 * LEASE_OVERWRITE instead of LEASE_EXCLUSIVE. */
	LEASE_OR_LAYOUT = 4,
};

/* LEASE is for sessions at a shared export: LEASE_SHARED to read a file and know its size,
 * LEASE_EXCLUSIVE to change its bytes, size and times, LEASE_NONE for a pin alone. The request
 * waits until other sessions have given back conflicting leases or have ended, and behind earlier
 * waiters. With LEASE_IF_FREE it does not wait, and never lowers the session's lease. Before a
 * LEASE that may wait, the session has given back (RETURN) its own lease. While it waits, the
 * server takes away any lease that the session gets by looking. So it never waits for a session
 * that waits for it.
 *
 * CREATE and TMPFILE pin the file that they open, and bring LEASE_EXCLUSIVE of a file that they
 * make, which nobody else can have. The reply's lease is all that the session has then: more than
 * LEASE_NONE if it had more and asked for a pin. The reply's attributes are sure to be current only
 * with LEASE_SHARED or more. -ESTALE: the file is gone.
 *
 * A session may keep leases of closed files, up to ATTACH's lease_limit. Beyond it, or if the
 * server has no room for more, LEASE_IF_FREE brings none, and the others are `passing`. -ENFILE:
 * the session has far more than that.
 *
 * LEASE_LAYOUT and LEASE_OVERWRITE are for files that several sessions have open and some write.
 * Each session reads and writes existing pages in place, and caches nothing of them. A session that
 * must know all of the file makes the holders of LEASE_OVERWRITE tell when they wrote last, and
 * keep LEASE_LAYOUT. They do so by COMMIT, which under that lease never makes times earlier.
 *
 * LOOKUP and GETATTR give LEASE_SHARED of an inode of any kind. While a session has it, only the
 * session itself changes the attributes, or a directory's names. Only the access time, which COMMIT
 * tells, may be older. So at a shared export a change waits until no other session has a lease of
 * one of the inodes concerned:
 * - SETATTR, SETXATTR, REMOVEXATTR: the inode;
 * - CREATE, MKNOD, MKDIR, SYMLINK, LINK, UNLINK, RMDIR: the directory and the inode of the name;
 * - RENAME: both directories, and the inodes that are moved, exchanged or replaced.
 *
 * GETATTR, LOOKUP, and CREATE of an existing file wait until no other session has the file as
 * LEASE_EXCLUSIVE or LEASE_OVERWRITE (the other session may keep less).
 *
 * A session that has a lease needs no pin, and so may open the file without asking. Before the file
 * loses its last name, all other sessions have given back their leases, and each RETURN says
 * whether the file is open there. Only a session that pins it has a lease of a file without a name.
 *
 * These need the session's own LEASE_EXCLUSIVE, else -ESTALE: SETATTR of the size, FALLOCATE, COPY
 * of the destination (of the source LEASE_SHARED), and COMMIT of more than times. COMMIT of the
 * mtime needs LEASE_OVERWRITE. */
struct rpc_lease {
	uint64_t ino;
	uint8_t type; /* LEASE_NONE, LEASE_SHARED, LEASE_EXCLUSIVE */
	uint8_t flags;
};

enum lock_kind { LOCK_KIND_POSIX = 1, LOCK_KIND_FLOCK };
enum lock_type { LOCK_FREE, LOCK_SHARED, LOCK_EXCLUSIVE };
#define LOCK_END_MAX ((uint64_t)INT64_MAX)

/* LOCK is for sessions at a shared export. From then on the owner has [start, end] of the inode as
 * `type`, instead of its earlier locks there; with kind flock one lock covers all of the file.
 *
 * A lock conflicts with those of another owner, of any session, of the same kind: -EAGAIN. But an
 * exclusive lock of a session that only reads does not conflict in another session that may write.
 * With kind flock the owner's own lock is given up on a conflict, as in the kernel. -ENOLCK: the
 * session has too many locks of the inode or of all, or waits for too many, or the server has no
 * room for more. LOCK_FREE out of the middle of a lock makes two of it, and can fail so, too. The
 * server keeps a lock until its owner gives it up or the session ends, also across its own restart.
 *
 * wait: a number of the client's choice. No request stays unanswered while a lock waits: the server
 * notes it and answers -EINPROGRESS; with kind flock the owner's own lock is given up then. A later
 * request that waits, too, and conflicts with it, queues behind it for a while, unless its owner
 * has record locks of the inode. When the lock may be had, or the wait is part of a circle by now,
 * PING tells the session so (RECALL_LOCKS) until it sends the same request again with a new
 * sequence number. A restarted server knows of no waits: the client sends all again. -EDEADLK: the
 * holder of the lock waits for this owner. LOCK_FREE: withdraws the wait, and the owner's locks
 * stay as they are.
 *
 * owner: a number that is never used again, so each number belongs to one file. All owners by which
 * one process has record locks agree in the last bits: the process waits as one, and circles over
 * several files are found.
 *
 * GETLK: finds a lock that would conflict with this LOCK; wait is 0, and the type is not
 * LOCK_FREE. */
enum { LOCK_PROCESS_BITS = 24 };

static inline uint32_t lock_process(uint64_t owner)
{
	return owner & ((1U << LOCK_PROCESS_BITS) - 1);
}

struct rpc_lock {
	uint64_t ino;
	uint64_t owner;
	uint64_t wait;       /* 0: it does not wait */
	uint64_t start, end; /* inclusive, up to LOCK_END_MAX */
	uint32_t pid;        /* for GETLK's reply */
	uint8_t kind;        /* enum lock_kind */
	uint8_t type;        /* enum lock_type */
};

/* A value in parts: `offset` and the part. `sum` (of the whole value, XXH3) tells whether all parts
 * came from one value. If `keep` is not 0, a value longer than a message is kept at offset 0, and
 * later parts on this channel name it by that number. -ERANGE: the value is not kept. */
enum { GETXATTR_KEPT_MAX = 16 };

struct rpc_getxattr {
	uint64_t ino;
	uint32_t offset;
	uint32_t keep; /* 1 .. GETXATTR_KEPT_MAX; 0: nothing is kept */
	struct rpc_str name;
};

struct rpc_listxattr {
	uint64_t ino;
	uint64_t cookie; /* 0: from the start; else that of the last entry seen */
};

enum { SETXATTR_CREATE = 1, SETXATTR_REPLACE = 2, SETXATTR_KILL_SGID = 4 };

/* As with SETATTR: -EPERM if `rights` are not of the present owner. An access control list that
 * changes the mode leaves no set-group-id bit if they are not of the group. */
struct rpc_setxattr {
	uint64_t ino;
	uint32_t flags;
	uint32_t stage; /* STAGE put the first total - tail.len bytes there; else 0 */
	uint32_t total; /* bytes of the value */
	struct rights rights;
	struct rpc_str name;
	struct rpc_tail tail; /* the value's last bytes */
};

struct rpc_removexattr {
	uint64_t ino;
	struct rpc_str name;
	struct rights rights; /* as with SETXATTR */
};

/* A session has at most so many unfinished values: -ENOSPC. The SETXATTR that names a stage ends
 * it, with or without success; so does a STAGE of no bytes at offset 0. */
enum { STAGES_MAX = 256 };

struct rpc_stage {
	uint32_t stage;  /* the client chooses it; offset 0 begins it anew */
	uint32_t offset; /* where the part before ended */
	struct rpc_tail tail;
};

/* The server does as much as it can at once, and the reply tells how far it is. The session has
 * nothing of the file that is not committed, and no I/O on it in progress. */
struct rpc_fallocate {
	uint64_t ino;
	uint32_t mode; /* of fallocate(2) */
	uint64_t offset, len;
};

/* The same for two files, or for one whose ranges don't overlap; the source range is within the
 * source's size. A step may copy no bytes if it has given the destination pages or has made it
 * longer. */
struct rpc_copy {
	uint64_t src, src_offset;
	uint64_t dst, dst_offset;
	uint64_t len;
};

enum rpc_quota_kind { QUOTA_USER = 1, QUOTA_GROUP };
#define QUOTA_UNLIMITED UINT64_MAX

/* Pages of an owner's quota, which the client accounts for before it accepts data. */
struct rpc_quota {
	uint8_t kind;
	uint32_t id;
	uint64_t npages;
	bool give_back; /* else the client wants them */
};

struct rpc_unprotect {
	struct rpc_tail tail; /* extents; fpage 0 */
};

/* Only of a session with ATTACH_CONVERTS. CONVERT_SHARES: nothing of it is under way, all is
 * committed, and from the reply on it goes by leases and has none. Its kernel may still show names
 * and attributes that it was told before, so no other session begins yet. CONVERT_FORGOT: the
 * kernel has no such thing any more, and the files that are open are pinned. CONVERT_ALONE: it has
 * the export for itself from the reply on, and no lease or pin. Inodes without a name that it had
 * one of are kept until it returns them (RETURN_INODES). -EBUSY: another session is there, or it
 * has more than CONVERT_ALONE_MAX leases and pins: nothing has changed. CONVERT_NOT_NOW: it was
 * asked to share, and can't before files that are open there are closed. It stays alone, and is
 * asked again later. */
enum rpc_convert_state { CONVERT_SHARES = 1, CONVERT_FORGOT, CONVERT_ALONE, CONVERT_NOT_NOW };
enum { CONVERT_ALONE_MAX = 4096 };
struct rpc_convert {
	uint8_t state;
};

struct rpc_frozen {
	uint64_t snapshot; /* from PING's reply */
};

struct rpc_request {
	uint16_t op; /* enum rpc_op */
	uint16_t slot;
	uint64_t seq;
	union {
		struct rpc_attach attach;
		struct rpc_auth auth;
		struct rpc_regions regions;
		struct rpc_counters ping;
		struct rpc_bye bye;
		struct rpc_cancel cancel;
		struct rpc_status status;
		struct rpc_who who;
		struct rpc_evict evict;
		struct rpc_log log;
		struct rpc_name_request name;
		struct rpc_ino_request ino;
		struct rpc_readdir readdir;
		struct rpc_extents extents;
		struct rpc_setattr setattr;
		struct rpc_create create;
		struct rpc_link link;
		struct rpc_rename rename;
		struct rpc_commit commit;
		struct rpc_makes makes;
		struct rpc_names names;
		struct rpc_grant grant;
		struct rpc_return ret;
		struct rpc_snapshot snapshot;
		struct rpc_getxattr getxattr;
		struct rpc_listxattr listxattr;
		struct rpc_setxattr setxattr;
		struct rpc_removexattr removexattr;
		struct rpc_stage stage;
		struct rpc_fallocate fallocate;
		struct rpc_copy copy;
		struct rpc_quota quota;
		struct rpc_unprotect unprotect;
		struct rpc_frozen frozen;
		struct rpc_lease lease;
		struct rpc_lock lock; /* LOCK and GETLK */
		struct rpc_convert convert;
	};
};

/* Whether it changes something, be it only a lease, so that the server stores its reply. */
static inline bool rpc_mutates(const struct rpc_request *req)
{
	return rpc_op_info(req->op)->mutates || (req->op == RPC_LOOKUP && req->name.look) ||
	       (req->op == RPC_GETATTR && req->ino.look);
}

#endif
