/* rpc_ops.h - the operations, and what their messages are made of. See rpc.h. */
#ifndef RMEMFS_COMMON_RPC_RPC_OPS_H
#define RMEMFS_COMMON_RPC_RPC_OPS_H

#include <stdbool.h>
#include <stdint.h>

enum rpc_op {
	/* Of the session. They use no slot: slot is RPC_NO_SLOT, and the reply repeats any seq. */
	RPC_ATTACH = 1, /* the first request on each channel: makes, joins or resumes a session */
	RPC_REGIONS,    /* the region table with this channel's keys */
	RPC_PING,       /* a sign of life; RPC_RING announces news in its reply */
	RPC_BYE,        /* ends the session */
	RPC_STATUS,     /* admin; needs no ATTACH. Over tcp and verbs: by what the key may see */
	RPC_SNAPSHOT,   /* admin; needs no ATTACH */
	RPC_WHO,        /* the same: the sessions that have a file or wait for it */
	RPC_CANCEL,     /* withdraws a request that waits for another session */
	RPC_RELOAD,     /* admin; needs no ATTACH: reads the configuration anew */
	RPC_AUTH,       /* before ATTACH: proves a key, and makes the server prove that it has it */
	RPC_EVICT,      /* admin; needs no ATTACH: ends a session */
	RPC_LOG,        /* the same: sets the server's log level */
	RPC_TRIAL = 15, /* of RMEMFS_WIRE_NEXT, for tests: does nothing */

	/* Reading. */
	RPC_LOOKUP = 16,
	RPC_GETATTR,
	RPC_READLINK,
	RPC_READDIR,
	RPC_EXTENTS,
	RPC_STATFS,
	RPC_GETXATTR,
	RPC_LISTXATTR,
	RPC_FROZEN,    /* this session's writes have ended; the reply lets them go on */
	RPC_UNPROTECT, /* the client will write pages of a snapshot in progress */
	RPC_GETLK,     /* finds a lock that conflicts with another one */

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
	RPC_RETURN,  /* gives back unlinked inodes, unused grants, leases */
	RPC_TMPFILE, /* a regular file without a name, opened */
	RPC_SETXATTR,
	RPC_REMOVEXATTR,
	RPC_STAGE, /* the first parts of a long value, for SETXATTR */
	RPC_FALLOCATE,
	RPC_COPY,    /* from file to file, within the server */
	RPC_QUOTA,   /* reserve pages of an owner's quota, or give them back */
	RPC_LEASE,   /* a right to an inode of a shared export */
	RPC_LOCK,    /* flock(2) and fcntl(2) at a shared export */
	RPC_CONVERT, /* a session that was alone goes by leases from now on */
	RPC_MAKE,    /* CREATEs, and COMMITs of what was written since: of lent inode numbers */
	RPC_NAMES,   /* changes that the client has made by itself, in their order */
	RPC_OP_MAX,
};

enum { RPC_NO_SLOT = 0xffff, RPC_MSG_BYTES = 16384, RPC_TEXT_MAX = 400 };

struct rpc_op_info {
	const char *name; /* "lookup"; NULL: no such op */
	bool mutates;     /* always: see rpc_mutates() */
	bool slotted;
	uint32_t since; /* the first version of the protocol that has it; 0: all have it */
};
const struct rpc_op_info *rpc_op_info(unsigned op);

/* The one message that a server sends unasked. It has no bytes and the immediate RPC_RING, and goes
 * to a channel whose ATTACH was answered. It tells the client that PING's reply has something new,
 * and asks for a PING. The server sends no other ring on the channel before a PING has arrived
 * there. That PING may have left before the ring arrived, so a client has room for RPC_RINGS. */
enum { RPC_RING = 1, RPC_RINGS = 2 };

/* A byte string inside a message; not NUL-terminated. */
struct rpc_str {
	const char *s;
	uint16_t len;
};

/* The rest of a message: elements of one type. version: of the decoded message. */
struct rpc_tail {
	const uint8_t *data;
	uint32_t len;
	uint32_t version;
};

#endif
