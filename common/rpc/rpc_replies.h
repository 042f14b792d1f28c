/* rpc_replies.h - the replies of the server, field by field. See rpc.h. */
#ifndef RMEMFS_COMMON_RPC_RPC_REPLIES_H
#define RMEMFS_COMMON_RPC_RPC_REPLIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/types.h"
#include "common/rpc/rpc_ops.h"
#include "common/rpc/rpc_requests.h"
#include "common/rpc/squash.h"
#include "common/rpc/wire.h"

/* AUTH. Empty in the reply to step 2. */
struct rpc_auth_reply {
	struct rpc_tail tail; /* bytes, RPC_AUTH_FLIGHT_MAX at most */
};

struct rpc_attach_reply {
	uint64_t session;
	/* Each later ATTACH of the session shows it. A number that anybody may know, as the
	 * session's, is not enough to join it. */
	uint8_t token[TOKEN_BYTES];
	uint8_t store_id[16]; /* the store's birth */
	uint64_t incarnation; /* the server process's run */
	bool resumed;
	uint16_t nslots;      /* of this channel: the session's slots channel*nslots .. +nslots-1 */
	uint16_t nreserved;   /* of these slots the last ones, for COMMIT and RETURN */
	uint32_t lease_ms;    /* after such a silence the server may end the session */
	uint32_t lease_limit; /* see LEASE */
	uint32_t peer_timeout_ms; /* after such a silence it closes this channel; 0: never */
	int64_t server_time;      /* ns */
	uint32_t nregions;        /* of the export */
	uint64_t npages;          /* of the export */
	bool quotas;              /* some owners are limited: see QUOTA */
	uint64_t snapshot;        /* as in PING's reply */
	struct squash squash;     /* of this session's users */
	struct attr root;
};

/* REGIONS: table version, then a tail of entries. */
struct rpc_region {
	uint32_t index;
	uint64_t len;
	uint64_t addr;
	uint32_t rkey;
	uint32_t access; /* 0: it has lost bytes, and there is no key */
};

struct rpc_regions_reply {
	uint32_t version;
	uint32_t nregions; /* in all; ask on with first = last index + 1 */
	struct rpc_tail tail;
};

struct rpc_ping_reply {
	int64_t server_time;
	/* The snapshot in progress, or 0. frozen: the snapshot waits for this session's FROZEN. */
	uint64_t snapshot;
	bool frozen;
	/* A number, or 0. Other sessions lack pages that this one was granted and does not use.
	 * PING repeats the number until a RETURN, even one of no pages, answers it. */
	uint64_t give_pages;
	uint32_t trial;       /* of RMEMFS_WIRE_NEXT, for tests */
	struct rpc_tail tail; /* struct rpc_recall: leases that others wait for; as many as fit */
};

/* An element of that tail. The session shall RETURN its leases of the inode with numbers up to this
 * one, and may keep `keep`. First it ends what it uses the lease for, and commits it. PING repeats
 * the element until then. A grant with such a number may still be on its way to the client. */
struct rpc_recall {
	uint64_t ino;
	uint64_t number;
	uint8_t keep; /* less than LEASE_EXCLUSIVE; or RECALL_LOCKS to RECALL_ALONE */
};

/* Not a recall: the session can now have a lock of the inode, for which it waits by this number. */
enum { RECALL_LOCKS = 128 };
/* Not a recall, of inode 0: another session wants the export, and waits until this one, which has
 * ATTACH_CONVERTS and is alone, has sent CONVERT. */
enum { RECALL_SHARE = 129 };
/* Nor this: no other session has been at the export for a while. */
enum { RECALL_ALONE = 130 };

/* An element of RETURN_LEASES. A lease that got a greater number since stays, and so does its pin.
 * If the session has neither, RETURN changes nothing. */
enum return_pin {
	RETURN_PIN_AS_IT_IS, /* the client does not know: a reply may be in flight */
	RETURN_UNPIN,        /* the file is not open; if nothing is kept, the pin goes */
	RETURN_PIN,          /* the file is open, and pinned from now on */
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
	uint64_t pause_ns;    /* so long clients could not write */
	struct rpc_str text;  /* FAILED: the reason; else where the snapshot is */
};

enum { GRANT_EXTENTS = 8 };

/* Inode numbers that the session was lent: enum rpc_numbers. */
struct rpc_lent {
	uint64_t first;
	uint8_t n; /* 0: none */
};

/* LOOKUP, CREATE, TMPFILE, MKNOD, MKDIR, SYMLINK, LINK, LEASE. */
struct rpc_entry_reply {
	struct attr attr;
	struct attr parent; /* for ops that change it or bring its lease; else ino 0 */
	struct lease lease, parent_lease;
	bool created;      /* CREATE, TMPFILE */
	uint32_t nextents; /* of the whole file; the first nhead are here */
	uint32_t trial;    /* of RMEMFS_WIRE_NEXT, for tests */
	uint8_t nhead, ngrant;
	struct extent head[INLINE_EXTENTS];
	struct extent grant[GRANT_EXTENTS];
	struct rpc_lent lent; /* CREATE, MKDIR, SYMLINK, LINK */
};

/* GETATTR, SETATTR, COMMIT, SETXATTR, REMOVEXATTR. */
struct rpc_attr_reply {
	struct attr attr;
	struct lease lease; /* GETATTR */
};

/* NAMES. The first `done` ones have taken effect. refused: the errno of the next one, which has not
 * and will not; or 0. The client sends again what is left. Where the store lacks room for all in
 * one transaction, one takes effect. */
struct rpc_names_reply {
	uint16_t done;
	uint32_t refused;
	struct rpc_lent lent;
};

/* MAKE: of each file 0 or -errno, in the order of the request. n is 0 if not all of the names
 * before them have taken effect; these are told of as by NAMES, without `lent`. */
struct rpc_makes_reply {
	uint8_t n;
	int32_t status[MAKES_MAX];
	struct rpc_lent lent;
	struct rpc_names_reply names;
};

/* UNLINK, RMDIR. child.nlink 0: the inode lives on without a name until this session, and all
 * others that have it open, RETURN it. At a shared export they use RETURN_LEASES with that number,
 * or with that of a later lease. Another session of a shared export may be changing a file: then
 * size and times, here and in RENAME's reply, are as last committed. */
struct rpc_remove_reply {
	struct attr child;
	struct attr parent;
	uint64_t number;
};

struct rpc_rename_reply {
	struct attr parent, new_parent;
	struct attr moved;
	/* Replaced or exchanged; ino 0: none. Replaced with nlink 0: as in rpc_remove_reply, by
	 * `number`. */
	struct attr other;
	uint64_t number;
};

struct rpc_readlink_reply {
	struct rpc_str target;
};

/* READDIR: a tail of entries, without "." and ".."; no entries: the end. */
struct rpc_dirent {
	uint64_t cookie;
	uint64_t ino;
	uint8_t type; /* DT_* */
	struct rpc_str name;
	/* Complete with plus. Else it has only ino and the type in mode, and nlink 0; so it is,
	 * too, for a file that another session of a shared export may be changing. */
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
	uint64_t inodes, free_inodes; /* in use; left by the limit and the store */
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
	uint64_t done;    /* bytes from the offset on; the client asks again for the rest */
};

struct rpc_quota_reply {
	uint64_t npages; /* reserved, perhaps fewer than wanted; QUOTA_UNLIMITED: no limit */
};

struct rpc_grant_reply {
	uint8_t ngrant;
	struct extent grant[GRANT_EXTENTS];
	/* Answers PING's give_pages with numbers up to this one: the session had no unused pages
	 * when the server had none either. 0: the server had some at once. */
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
		struct rpc_auth_reply auth;
		struct rpc_regions_reply regions;
		struct rpc_ping_reply ping;
		struct rpc_status_reply status_text; /* STATUS, WHO, RELOAD */
		struct rpc_entry_reply entry;
		struct rpc_attr_reply attr;
		struct rpc_remove_reply remove;
		struct rpc_makes_reply makes;
		struct rpc_names_reply names;
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

#endif
