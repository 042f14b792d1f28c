/* rpc.h - the messages between a client and a server: what each carries, and how it is coded.
 *
 * A request is header + body, its reply header + body; an error reply carries a line of text for
 * people instead of the body. Everything is little-endian, fixed fields first, names with a 16-bit
 * length, and in some messages an array as the rest of the message ("tail"). One request at a time
 * is outstanding in a slot of a session.
 *
 * Sequence numbers: a slot's first request has 1, each next one more. The server keeps the reply of
 * the last mutating request of each slot with the change itself. A request with the stored number
 * is answered from there and not executed again; a lower one is a protocol error. Requests that
 * change nothing (rpc_mutates() false) may be executed again.
 *
 * Inode numbers are the export's own; ROOT_INO is its root. Times are the server's.
 *
 * OWNERSHIP  Decoded names, texts and tails point into the message.
 * THREADS    Pure functions.
 * ERRORS     -EPROTO: malformed, too short, trailing bytes, a value out of its range (names of
 *            length 0 or over NAME_BYTES_MAX, with '/' or NUL, "." and ".." but for LOOKUP, unknown
 * ops); -EMSGSIZE: does not fit.
 */
#ifndef RMEMFS_COMMON_RPC_RPC_H
#define RMEMFS_COMMON_RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rpc/rights.h"
#include "common/base/types.h"
#include "common/rpc/wire.h"

enum rpc_op {
	/* Of the session; not in a slot: slot RPC_NO_SLOT, and any seq, which is told back. */
	RPC_ATTACH = 1, /* first on each channel: makes, joins or resumes a session */
	RPC_REGIONS,    /* the region table with this channel's keys */
	RPC_PING,       /* a sign of life; its reply has news, which RPC_RING tells of */
	RPC_BYE,        /* ends the session */
	RPC_STATUS,     /* admin; needs no ATTACH. Over tcp and verbs: only the versions */
	RPC_SNAPSHOT,   /* admin; needs no ATTACH */
	RPC_WHO,        /* the same: who has a file, and who waits for it */
	RPC_CANCEL, /* who asked for something that waits for another session wants it no more */

	/* Reading. */
	RPC_LOOKUP = 16,
	RPC_GETATTR,
	RPC_READLINK,
	RPC_READDIR,
	RPC_EXTENTS,
	RPC_STATFS,
	RPC_GETXATTR,
	RPC_LISTXATTR,
	RPC_FROZEN,    /* this session's writes have ended; answered when they may go on */
	RPC_UNPROTECT, /* pages of a snapshot on its way are going to be written */
	RPC_GETLK,     /* which lock is in the way of another one */

	/* Changing. */
	RPC_SETATTR = 32,
	RPC_CREATE, /* a regular file, opened */
	RPC_MKNOD,
	RPC_MKDIR,
	RPC_SYMLINK,
	RPC_LINK,
	RPC_UNLINK,
	RPC_RMDIR,
	RPC_RENAME,
	RPC_COMMIT,  /* size, times and new extents of data that is remote */
	RPC_GRANT,   /* lend pages */
	RPC_RETURN,  /* unlinked inodes not open any more; unused grants; leases */
	RPC_TMPFILE, /* a regular file without a name, opened */
	RPC_SETXATTR,
	RPC_REMOVEXATTR,
	RPC_STAGE, /* the first parts of a long value, for SETXATTR */
	RPC_FALLOCATE,
	RPC_COPY,  /* from file to file, within the server */
	RPC_QUOTA, /* reserve of somebody's quota, or give back */
	RPC_LEASE, /* a right to an inode of a shared export */
	RPC_LOCK,  /* flock(2) and fcntl(2) at a shared export */
	RPC_OP_MAX,
};

enum { RPC_NO_SLOT = 0xffff, RPC_MSG_BYTES = 16384, RPC_TEXT_MAX = 400 };

struct rpc_op_info {
	const char *name; /* "lookup"; NULL: no such op */
	bool mutates;     /* always: see rpc_mutates() */
	bool slotted;
};
const struct rpc_op_info *rpc_op_info(unsigned op);

/* The one message that a server sends unasked: of no bytes, with the immediate RPC_RING, on a
 * channel whose ATTACH was answered. It says only that there is something new in PING's reply, and
 * asks for a PING. No other ring follows on the channel before a PING has arrived there; since that
 * one may have left before the ring came, a client has room for RPC_RINGS. */
enum { RPC_RING = 1, RPC_RINGS = 2 };

/* A byte string inside a message; not NUL-terminated. */
struct rpc_str {
	const char *s;
	uint16_t len;
};

/* The rest of a message: elements of one type. */
struct rpc_tail {
	const uint8_t *data;
	uint32_t len;
};

/* ---- requests -------------------------------------------------------------------------------- */

enum {
	ATTACH_READ_ONLY = 1,
	ATTACH_EXCLUSIVE = 2, /* no other session has the export meanwhile, whatever it asks for */
	/* Others may write, too, that say this: what is known of an inode needs a lease. */
	ATTACH_SHARED = 4,
	ATTACH_ALL = ATTACH_READ_ONLY | ATTACH_EXCLUSIVE | ATTACH_SHARED,
};

/* Refusals: -EIDRM: the session has ended, and the store is the same; -ESTALE: it is another store,
 * or another client's session, or this ATTACH is a late one; -EBUSY, -EUSERS, -ENOENT as attach.h
 * has them. */
struct rpc_attach {
	/* Which mount: the same when the client's process has died and another one mounts at the
	 * same place. See attach.h for what it gets. */
	uint8_t owner[OWNER_BYTES];
	uint64_t instance; /* which process of the owner */
	uint64_t session;  /* 0: make one; else join or resume this one */
	/* Of the server that is known; with neither `session` nor `ended` anything. */
	uint8_t store_id[16];
	/* Of a client that begins anew: its session before, which the server has ended. All
	 * channels of that are deleted; on shm this says that nothing is mapped any more. 0: there
	 * was none. */
	uint64_t ended;
	uint16_t channel; /* 0 .. nchannels-1: which of the session's channels this is */
	uint16_t nchannels;
	/* READ_ONLY may be another than before where a session is resumed: that is changed, and the
	 * session's other channels end, since their keys are of the other kind. -EROFS: it can't
	 * become one that writes, since others read. */
	uint32_t flags;
	uint32_t wait_ms; /* how long to wait for an export that is in use */
	struct rpc_str export_name;
	struct rpc_str client; /* for people: "host:/mnt/rmem (pid 311)" */
};

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
/* What came after some had been counted; none of it is below 0, whatever a peer says. */
void rpc_counters_subtract(struct rpc_counters *counted, const struct rpc_counters *before);

struct rpc_bye {
	struct rpc_counters counters;
	/* Not all that was written is committed: what the session had as LEASE_EXCLUSIVE may have
	 * changed, as that of one that ends without a word. */
	bool lost;
};

/* The request in this slot of the channel's, if it has this number and waits until another session
 * has given back what is in its way, or until there are pages for it, is answered with -EINTR: it
 * has not been executed, and is not any more. Else nothing comes of it, and the request has the
 * answer that it would have had. */
struct rpc_cancel {
	uint16_t slot;
	uint64_t seq;
};

struct rpc_status {
	uint32_t offset; /* into the JSON text; 0 takes a new snapshot */
};

/* The answer is a JSON text, as that of STATUS, in pieces, too. */
struct rpc_who {
	uint32_t offset; /* into it; 0: it is written anew */
	struct rpc_str export_name;
	struct rpc_str path; /* from the export's root, with a slash; or an inode's number */
};

enum rpc_snapshot_command { SNAPSHOT_START = 1, SNAPSHOT_POLL, SNAPSHOT_CANCEL };

struct rpc_snapshot {
	uint8_t command;
	struct rpc_str export_name;
	struct rpc_str dir; /* START: on the server's machine; else empty */
};

/* LOOKUP and GETATTR of sessions at a shared export: what is found is wanted as LEASE_SHARED, or
 * the directory that it is looked for in, too. They are given where nobody has to be waited for,
 * and not again and again where they are taken away as often; the reply tells what the session has
 * then of each. One whose directory is wanted finds what is missing, too: attr.ino is 0 then. */
enum { LOOK_LEASE = 1, LOOK_LEASE_DIR = 2 };

/* What whoever asks to change a name takes it to be of: an inode's number, or one of these. Where
 * it is not so any more the answer is -ESTALE if that is a directory which goes on elsewhere, or if
 * the caller insists; what would be refused anyway is refused first. */
struct rpc_name_of {
	uint64_t ino;
	bool exactly; /* else only no directory is to be taken for removed that is not */
};
#define NAME_OF_ANY  UINT64_C(0)
#define NAME_OF_NONE UINT64_MAX

/* LOOKUP, UNLINK, RMDIR. LOOKUP of "." is by the inode number alone: of any kind of inode, while it
 * has a name. */
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
	uint32_t bytes;  /* of tail wanted at most */
	bool plus;       /* with attributes */
};

struct rpc_extents {
	uint64_t ino;
	uint64_t fpage; /* from the extent that holds or follows this page on */
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
	SET_NO_CAPS = 512,        /* security.capability goes */
	SET_NO_PRIVILEGES = 1024, /* see below */
	SET_OWNERS = SET_UID | SET_GID,
	SET_ATIMES = SET_ATIME | SET_ATIME_NOW,
	SET_MTIMES = SET_MTIME | SET_MTIME_NOW,
};

/* A file that is to become longer over pages that were allocated beyond its end may do so in steps:
 * the reply's size tells how far it is, and the rest is to be asked for again.
 *
 * Other sessions may have changed the inode since the caller was found to have the right to this.
 * So it is -EPERM if the rights are not of the owner that there is, and SET_MODE sets no
 * set-group-id where they are not of the group that there is, or comes with it. With
 * SET_NO_PRIVILEGES, of what is no directory, it is the mode that there is which loses what
 * mode_without_privileges() takes away: in_group, if the rights are of the group. */
struct rpc_setattr {
	uint64_t ino;
	uint32_t valid;
	uint32_t mode, uid, gid;
	uint64_t size;
	int64_t atime, mtime, ctime;
	struct rights rights;
};

/* The group by which its caller has rights, of an inode that has gid. */
static inline uint32_t rpc_setattr_group(const struct rpc_setattr *q, uint32_t gid)
{
	return q->valid & SET_MODE && q->valid & SET_GID ? q->gid : gid;
}

struct rpc_create { /* CREATE, MKNOD, MKDIR, SYMLINK; TMPFILE, which has no name */
	uint64_t parent;
	uint32_t mode;  /* S_IFMT included */
	uint32_t umask; /* taken from the mode, unless the parent has a default ACL */
	uint32_t uid, gid;
	uint32_t rdev;
	uint32_t want_pages; /* CREATE: grant wanted along, 0: none */
	bool exclusive;      /* CREATE: -EEXIST if it is there; else it is opened */
	struct rpc_str name;
	struct rpc_str target; /* SYMLINK */
};

struct rpc_link {
	uint64_t ino;
	uint64_t parent;
	struct rpc_str name;
};

struct rpc_rename {
	uint64_t parent, new_parent;
	uint32_t flags; /* RENAME_NOREPLACE and RENAME_WHITEOUT, or RENAME_EXCHANGE */
	struct rpc_str name, new_name;
	uint32_t uid, gid; /* of a whiteout */
	struct rpc_name_of expected, new_expected;
};
/* May these flags stand together? */
bool rpc_rename_flags_ok(uint32_t flags);

/* The same as SETATTR's, so that attributes that were set while the file was written go along. */
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
	uint32_t want_pages;
	/* With it, what the session has of the inode by numbers up to `lease` becomes `keep`, as by
	 * RETURN. Both 0: it stays. */
	uint64_t lease;
	uint8_t keep;
	struct rpc_tail tail; /* extents: pages of this session's grants to be mapped at fpage */
};

struct rpc_grant {
	uint32_t want_pages;
	/* -ENOSPC only after reaping and scrubbing have been waited for, and at a shared export the
	 * others for what they do not use; of that the session itself has nothing any more. */
	bool wait;
};

enum rpc_return_kind { RETURN_INODES = 1, RETURN_GRANTS, RETURN_LEASES };

struct rpc_return {
	uint32_t kind;
	struct rpc_tail tail; /* inode numbers (u64), extents, or struct rpc_returned */
	/* RETURN_GRANTS: PING's give_pages, where nothing that is not used is left after this; or 0
	 */
	uint64_t answers;
};

enum {
	LEASE_PIN = 1,     /* the file is open from now on: it lives, whoever unlinks it */
	LEASE_IF_FREE = 2, /* what others have is not recalled: a smaller lease, or none, will do */
	/* Where others are in the way, LEASE_LAYOUT will do instead of LEASE_SHARED, and
	 * LEASE_OVERWRITE instead of LEASE_EXCLUSIVE. */
	LEASE_OR_LAYOUT = 4,
};

/* For sessions at a shared export: LEASE_SHARED to read a file and know its size, LEASE_EXCLUSIVE
 * to change its bytes, size and times, LEASE_NONE for a pin alone. Waits until others have given
 * back what is in the way, or have ended, and behind those who waited before; LEASE_IF_FREE does
 * not wait, and brings no less than there was. Whatever the session had of it before it has given
 * back (RETURN) if it is to wait, and what it gets by looking meanwhile it loses then: so it waits
 * for nobody who waits for it. CREATE and
 * TMPFILE pin what they open, and bring LEASE_EXCLUSIVE of what they make, which nobody else can
 * have. The reply's lease is what the session has then, so more than LEASE_NONE where it had that
 * and asked for a pin; its attributes are sure to be the last ones only with LEASE_SHARED or more.
 * -ESTALE: the file is gone.
 *
 * A lease may be kept when the file is closed, up to ATTACH's lease_limit of them: beyond it, or
 * where the server has no room for more, LEASE_IF_FREE brings none, and the others are `passing`.
 * -ENFILE: the session has far more than that.
 *
 * LEASE_LAYOUT and LEASE_OVERWRITE are for files that several have open and some write: each reads
 * and writes pages that are there, where they are, and keeps nothing of them. Who is to know all of
 * the file has those who have LEASE_OVERWRITE tell when they wrote last (COMMIT, which never makes
 * times earlier there), and keep LEASE_LAYOUT.
 *
 * LEASE_SHARED is of an inode of any kind, by LOOKUP and GETATTR: its attributes don't change
 * meanwhile but by the session itself, nor a directory's names. So at a shared export whatever
 * changes them waits until no other session has a lease of one of the inodes concerned: SETATTR,
 * SETXATTR, REMOVEXATTR; of a directory and what its name is of: CREATE, MKNOD, MKDIR, SYMLINK,
 * LINK, UNLINK, RMDIR; RENAME, of both directories and of what is moved, exchanged or replaced.
 * Only the time of reading, which COMMIT tells, may be older. GETATTR, LOOKUP, and CREATE of what
 * is there, wait until no other session has the file as LEASE_EXCLUSIVE or LEASE_OVERWRITE (which
 * may keep less).
 *
 * Who has a lease needs no pin, and so may open the file without asking: before it loses its last
 * name it has been given back by all others, and RETURN says whether it is open. Nobody has a lease
 * of a file without a name but who pins it.
 *
 * SETATTR of the size, FALLOCATE, COPY (of the destination; of the source LEASE_SHARED), and COMMIT
 * of all but times need the session's own LEASE_EXCLUSIVE, that of the mtime LEASE_OVERWRITE:
 * -ESTALE. */
struct rpc_lease {
	uint64_t ino;
	uint8_t type; /* LEASE_NONE, LEASE_SHARED, LEASE_EXCLUSIVE */
	uint8_t flags;
};

enum lock_kind { LOCK_KIND_POSIX = 1, LOCK_KIND_FLOCK };
enum lock_type { LOCK_FREE, LOCK_SHARED, LOCK_EXCLUSIVE };
#define LOCK_END_MAX ((uint64_t)INT64_MAX)

/* LOCK, for sessions at a shared export: from then on the owner has [start, end] of the inode as
 * `type`, instead of what it had of that; of the kind flock all of the file is one lock. What is in
 * the way is what another owner, of whatever session, has of the same kind, but that an exclusive
 * lock of a session that only reads is in no other session's way that may write: -EAGAIN; of the
 * kind flock the owner's own lock is given up then, as by the kernel. -ENOLCK: the session has too
 * many of the inode or of all, or waits for too many, or the server has no room for more;
 * LOCK_FREE, too, out of the middle of one, which makes two of it. A lock is kept until its owner
 * gives it up, or the session ends, whatever becomes of the server.
 *
 * wait: a number of the client's choice. No request stays unanswered while it waits: it is noted,
 * and the answer is -EINPROGRESS; of the kind flock the owner's own lock is given up then. What
 * comes later, waits, too, and is in its way, comes behind it for a while, unless its owner has
 * record locks of the inode. When it may have the lock, or waits in a circle by now, the session is
 * told so by PING (RECALL_LOCKS), until it sends the same request again, with a new sequence
 * number. A server that was started again knows of no waits: all are to be sent again then.
 * -EDEADLK: whoever has the lock waits for this owner. LOCK_FREE: what it was waiting for is not
 * wanted any more, and its locks stay as they are.
 *
 * owner: a number that is never used again, so one of each file. In its last bits all those agree
 * that one process has record locks by: it waits as one, and circles are found over several files.
 *
 * GETLK: a lock that LOCK of this would find in its way; wait is 0, and the type not LOCK_FREE. */
enum { LOCK_PROCESS_BITS = 24 };

static inline uint32_t lock_process(uint64_t owner)
{
	return owner & ((1U << LOCK_PROCESS_BITS) - 1);
}

struct rpc_lock {
	uint64_t ino;
	uint64_t owner;
	uint64_t wait;       /* 0: it doesn't */
	uint64_t start, end; /* inclusive, up to LOCK_END_MAX */
	uint32_t pid;        /* for GETLK's reply */
	uint8_t kind;        /* enum lock_kind */
	uint8_t type;        /* enum lock_type */
};

/* A value in parts: `offset` and what a part holds; `sum` (of the whole value, XXH3) tells whether
 * all of them came from one value. With a number to keep it by, what is longer than a message is
 * kept at offset 0 for the parts that follow on this channel by that number; -ERANGE: it isn't. */
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

/* As of SETATTR: -EPERM if the rights are not of the owner that there is; and an access control
 * list that changes the mode leaves no set-group-id if they are not of the group. */
struct rpc_setxattr {
	uint64_t ino;
	uint32_t flags;
	uint32_t stage; /* where the first total - tail.len bytes were put by STAGE; else 0 */
	uint32_t total; /* bytes of the value */
	struct rights rights;
	struct rpc_str name;
	struct rpc_tail tail; /* the last of them */
};

struct rpc_removexattr {
	uint64_t ino;
	struct rpc_str name;
	struct rights rights; /* as of SETXATTR */
};

/* A session has at most so many values on their way: -ENOSPC. The SETXATTR that names one ends it,
 * whatever becomes of it; so does a STAGE of no bytes at offset 0. */
enum { STAGES_MAX = 256 };

struct rpc_stage {
	uint32_t stage;  /* of the client's choice; offset 0 begins it anew */
	uint32_t offset; /* where the part before ended */
	struct rpc_tail tail;
};

/* What the server can do of it at once: the reply tells how far it is. The session has nothing of
 * the file that is not committed, and no I/O of it on the way. */
struct rpc_fallocate {
	uint64_t ino;
	uint32_t mode; /* of fallocate(2) */
	uint64_t offset, len;
};

/* The same for two files, or one whose ranges don't overlap; of the source within its size. A step
 * that has given the destination pages, or has made it longer, may be of no bytes. */
struct rpc_copy {
	uint64_t src, src_offset;
	uint64_t dst, dst_offset;
	uint64_t len;
};

enum rpc_quota_kind { QUOTA_USER = 1, QUOTA_GROUP };
#define QUOTA_UNLIMITED UINT64_MAX

/* Pages of an owner's quota, to be accounted for before data is accepted. */
struct rpc_quota {
	uint8_t kind;
	uint32_t id;
	uint64_t npages;
	bool give_back; /* else they are wanted */
};

struct rpc_unprotect {
	struct rpc_tail tail; /* extents; fpage 0 */
};

struct rpc_frozen {
	uint64_t snapshot; /* as PING's reply told it */
};

struct rpc_request {
	uint16_t op; /* enum rpc_op */
	uint16_t slot;
	uint64_t seq;
	union {
		struct rpc_attach attach;
		struct rpc_regions regions;
		struct rpc_counters ping;
		struct rpc_bye bye;
		struct rpc_cancel cancel;
		struct rpc_status status;
		struct rpc_who who;
		struct rpc_name_request name;
		struct rpc_ino_request ino;
		struct rpc_readdir readdir;
		struct rpc_extents extents;
		struct rpc_setattr setattr;
		struct rpc_create create;
		struct rpc_link link;
		struct rpc_rename rename;
		struct rpc_commit commit;
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
	};
};

/* Whether it changes something, were it only a lease, and so its reply is stored. */
static inline bool rpc_mutates(const struct rpc_request *req)
{
	return rpc_op_info(req->op)->mutates || (req->op == RPC_LOOKUP && req->name.look) ||
	       (req->op == RPC_GETATTR && req->ino.look);
}

/* ---- replies --------------------------------------------------------------------------------- */

struct rpc_attach_reply {
	uint64_t session;
	uint8_t store_id[16]; /* the store's birth */
	uint64_t incarnation; /* the server process's run */
	bool resumed;
	uint16_t nslots;      /* of this channel: the session's slots channel*nslots .. +nslots-1 */
	uint16_t nreserved;   /* the last of them, for COMMIT and RETURN */
	uint32_t lease_ms;    /* silence after which the session may be ended */
	uint32_t lease_limit; /* see LEASE */
	uint32_t peer_timeout_ms; /* silence after which this channel is closed; 0: it never is */
	int64_t server_time;      /* ns */
	uint32_t nregions;        /* of the export */
	uint64_t npages;          /* of the export */
	bool quotas;              /* some owners are limited: see QUOTA */
	uint64_t snapshot;        /* as in PING's reply */
	struct attr root;
};

/* REGIONS: table version, then a tail of entries. */
struct rpc_region {
	uint32_t index;
	uint64_t len;
	uint64_t addr;
	uint32_t rkey;
	uint32_t access;
};

struct rpc_regions_reply {
	uint32_t version;
	uint32_t nregions; /* in all; ask on with first = last index + 1 */
	struct rpc_tail tail;
};

struct rpc_ping_reply {
	int64_t server_time;
	/* The snapshot on its way, or 0; frozen: it waits for this session's FROZEN. */
	uint64_t snapshot;
	bool frozen;
	/* Others lack pages that the session was granted and does not use. A number, or 0: it is
	 * told until RETURN answers it, be it of none. */
	uint64_t give_pages;
	struct rpc_tail tail; /* struct rpc_recall: what others wait for; as much as fits */
};

/* An element of that tail: what has numbers up to this one is to be given back by RETURN, when what
 * it was used for has ended and was committed, and `keep` may be kept. Told until it is. A grant
 * of such a number may still be on its way to the client. */
struct rpc_recall {
	uint64_t ino;
	uint64_t number;
	uint8_t keep; /* less than LEASE_EXCLUSIVE; or RECALL_LOCKS */
};

/* No recall: a lock of the inode can be had that this session waits for by this number. */
enum { RECALL_LOCKS = 128 };

/* What RETURN_LEASES has. A lease that got a greater number since stays, a pin too. Of who has
 * neither it changes nothing. */
enum return_pin {
	RETURN_PIN_AS_IT_IS, /* the client does not know: an answer may be on its way to it */
	RETURN_UNPIN,        /* the file is not open, and with nothing kept not pinned any more */
	RETURN_PIN,          /* it is open, and pinned from now on */
};
struct rpc_returned {
	uint64_t ino;
	uint64_t number;
	uint8_t keep;
	uint8_t pin; /* enum return_pin */
};

struct rpc_status_reply {
	uint32_t total; /* bytes of the text */
	struct rpc_tail tail;
};

enum rpc_snapshot_state {
	SNAPSHOT_NONE,
	SNAPSHOT_FREEZING,
	SNAPSHOT_COPYING,
	SNAPSHOT_DONE,
	SNAPSHOT_FAILED,
};

struct rpc_snapshot_reply {
	uint8_t state;
	uint64_t done, total; /* pages */
	uint64_t pause_ns;    /* for which clients could not write */
	struct rpc_str text;  /* FAILED: why; else where it is */
};

enum { GRANT_EXTENTS = 8 };

/* LOOKUP, CREATE, TMPFILE, MKNOD, MKDIR, SYMLINK, LINK, LEASE. */
struct rpc_entry_reply {
	struct attr attr;
	struct attr parent; /* ones that change it, or bring its lease; else ino 0 */
	struct lease lease, parent_lease;
	bool created;      /* CREATE, TMPFILE */
	uint32_t nextents; /* of the file in all; the first nhead are here */
	uint8_t nhead, ngrant;
	struct extent head[INLINE_EXTENTS];
	struct extent grant[GRANT_EXTENTS];
};

/* GETATTR, SETATTR, COMMIT, SETXATTR, REMOVEXATTR. */
struct rpc_attr_reply {
	struct attr attr;
	struct lease lease; /* GETATTR */
	uint8_t ngrant;
	struct extent grant[GRANT_EXTENTS];
};

/* UNLINK, RMDIR. child.nlink 0: the inode lives, without a name, until this session RETURNs it, and
 * who else has it open: at a shared export by RETURN_LEASES with that number, or that of a lease
 * which came later. Here and in RENAME's reply size and times of a file that another session of a
 * shared export may be changing are as they were committed last. */
struct rpc_remove_reply {
	struct attr child;
	struct attr parent;
	uint64_t number;
};

struct rpc_rename_reply {
	struct attr parent, new_parent;
	struct attr moved;
	/* Replaced (nlink 0: as in rpc_remove_reply, with the number) or exchanged; ino 0: none. */
	struct attr other;
	uint64_t number;
};

struct rpc_readlink_reply {
	struct rpc_str target;
};

/* READDIR: a tail of entries; none: the end. Without "." and "..". */
struct rpc_dirent {
	uint64_t cookie;
	uint64_t ino;
	uint8_t type; /* DT_* */
	struct rpc_str name;
	/* With plus; else only ino and the type in mode, as of a file that another session of a
	 * shared export may be changing: nlink 0. */
	struct attr attr;
};

struct rpc_readdir_reply {
	uint64_t parent; /* inode of ".." */
	bool plus;
	struct rpc_tail tail;
};

struct rpc_extents_reply {
	bool last; /* no extents after these */
	struct rpc_tail tail;
};

struct rpc_statfs_reply {
	uint64_t pages, free_pages;
	uint64_t inodes, free_inodes; /* used; left by the limit and the store */
};

struct rpc_getxattr_reply {
	uint32_t total; /* bytes of the value */
	uint64_t sum;
	struct rpc_tail tail;
};

struct rpc_listxattr_reply {
	bool last; /* no entries after these */
	struct rpc_tail tail;
};

/* An element of that tail. */
struct rpc_xattr_entry {
	uint64_t cookie;
	struct rpc_str name;
};

/* FALLOCATE, COPY. */
struct rpc_progress_reply {
	struct attr attr; /* COPY: of the destination */
	uint64_t done;    /* bytes from the offset on; the rest is to be asked for again */
};

struct rpc_quota_reply {
	uint64_t npages; /* reserved, perhaps fewer; QUOTA_UNLIMITED: nobody counts */
};

struct rpc_grant_reply {
	uint8_t ngrant;
	struct extent grant[GRANT_EXTENTS];
	/* What PING has asked for by numbers up to this one (give_pages) is answered: the session
	 * had none when there were none here either. 0: there were some at once. */
	uint64_t answers;
};

struct rpc_getlk_reply {
	uint8_t type; /* LOCK_FREE: none is in the way */
	uint32_t pid; /* as its LOCK said; 0: of another session */
	uint64_t start, end;
};

struct rpc_reply {
	uint16_t op;
	uint16_t slot;
	uint64_t seq;
	int32_t status;      /* 0 or -errno */
	struct rpc_str text; /* status != 0: why, for people; may be empty */
	union {
		struct rpc_attach_reply attach;
		struct rpc_regions_reply regions;
		struct rpc_ping_reply ping;
		struct rpc_status_reply status_text; /* STATUS and WHO */
		struct rpc_entry_reply entry;
		struct rpc_attr_reply attr;
		struct rpc_remove_reply remove;
		struct rpc_rename_reply rename;
		struct rpc_readlink_reply readlink;
		struct rpc_readdir_reply readdir;
		struct rpc_extents_reply extents;
		struct rpc_statfs_reply statfs;
		struct rpc_grant_reply grant;
		struct rpc_snapshot_reply snapshot;
		struct rpc_getxattr_reply getxattr;
		struct rpc_listxattr_reply listxattr;
		struct rpc_progress_reply progress;
		struct rpc_quota_reply quota;
		struct rpc_getlk_reply getlk;
	}; /* BYE, CANCEL, RETURN, STAGE, FROZEN, UNPROTECT, LOCK: nothing */
};

/* ---- coding ---------------------------------------------------------------------------------- */

/* Codes the whole message and gives its length. A tail in the struct is copied in, unless it is
 * already at its place: see rpc_reply_tail_at. */
int rpc_request_encode(const struct rpc_request *req, void *buf, size_t buflen, size_t *len);
int rpc_request_decode(struct rpc_request *req, const void *buf, size_t len);
int rpc_reply_encode(const struct rpc_reply *rep, void *buf, size_t buflen, size_t *len);
int rpc_reply_decode(struct rpc_reply *rep, const void *buf, size_t len);

/* Bytes before the tail of a reply of this op: who fills a tail in place writes at buf + this. */
size_t rpc_reply_tail_at(unsigned op);
size_t rpc_request_tail_at(unsigned op);

/* Elements of tails. Put: beyond the end sets w->overflow. Get: false at the end or on a malformed
 * element (then r->truncated). */
enum {
	RPC_EXTENT_BYTES = 20,
	RPC_REGION_BYTES = 28,
	RPC_RECALL_BYTES = 17,
	RPC_RETURNED_BYTES = 18
};
void rpc_put_extent(struct wire_out *w, const struct extent *e);
bool rpc_get_extent(struct wire_in *r, struct extent *e);
void rpc_put_region(struct wire_out *w, const struct rpc_region *region);
bool rpc_get_region(struct wire_in *r, struct rpc_region *region);
/* All or nothing: an entry that does not fit is not begun (returns false, no overflow). */
bool rpc_put_dirent(struct wire_out *w, const struct rpc_dirent *d, bool plus);
bool rpc_get_dirent(struct wire_in *r, struct rpc_dirent *d, bool plus);

void rpc_put_recall(struct wire_out *w, const struct rpc_recall *recall);
bool rpc_get_recall(struct wire_in *r, struct rpc_recall *recall);
void rpc_put_returned(struct wire_out *w, const struct rpc_returned *returned);
bool rpc_get_returned(struct wire_in *r, struct rpc_returned *returned);

bool rpc_put_xattr_entry(struct wire_out *w, const struct rpc_xattr_entry *e);
bool rpc_get_xattr_entry(struct wire_in *r, struct rpc_xattr_entry *e);

static inline struct wire_in rpc_tail_reader(const struct rpc_tail *tail)
{
	return (struct wire_in){.pos = tail->data, .end = tail->data + tail->len};
}

#endif
