/* types.h - types that both programs share: extents, attributes of inodes, leases. Plain data in
 * host byte order; rpc.h puts it on the wire. */
#ifndef RMEMFS_COMMON_BASE_TYPES_H
#define RMEMFS_COMMON_BASE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NAME_BYTES_MAX = 255,     /* one name, without NUL */
	SYMLINK_BYTES_MAX = 4095, /* a link's target, without NUL */
	/* A target that is longer shares no page of the server's store with others. It needs pages
	 * in a row, which only the store's untouched end is sure to have. */
	SYMLINK_BYTES_SHORT = 1900,
	EXPORT_NAME_MAX = 63,
	XATTR_VALUE_MAX = 65536, /* bytes; the kernel's limit, as for the list */
	OWNER_BYTES = 16,
	TOKEN_BYTES = 16,          /* proves that an ATTACH comes from the session's client */
	HOLDER_NAME_MAX = 32,      /* of the server's `clients` */
	EXPORT_REGIONS_MAX = 1024, /* a client's channels have room for so many */
	INLINE_EXTENTS = 4, /* extents kept with the inode and sent with LOOKUP, CREATE and OPEN */
};

/* Inode numbers are local to an export and never used twice. */
enum { ROOT_INO = 1 };

/* Where a run of a file's pages is stored. */
struct extent {
	uint64_t fpage;  /* first page within the file; 0 for grants */
	uint32_t npages; /* at least 1 */
	uint32_t page;   /* first page within the region */
	uint16_t target; /* memory server; 0: there is only one */
	uint16_t region;
};

/* Times are nanoseconds since the epoch, by the server's clock. */
struct attr {
	uint64_t ino;
	uint64_t size;   /* bytes */
	uint64_t npages; /* allocated */
	int64_t atime, mtime, ctime, btime;
	uint32_t mode; /* S_IFMT and permission bits */
	uint32_t nlink;
	uint32_t uid, gid;
	uint32_t rdev;       /* new_encode_dev() form, as FUSE has it */
	uint32_t generation; /* of the store: no lookup uses it, NFS exporters see it */
	uint32_t flags;      /* ATTR_* */
};

/* Flags for what an inode has beside its data. With these flags a client needs no message to learn
 * that something is missing. */
enum {
	ATTR_XATTRS = 1,      /* extended attributes, of any name */
	ATTR_ACL = 2,         /* among them system.posix_acl_access */
	ATTR_DEFAULT_ACL = 4, /* system.posix_acl_default */
	ATTR_CAPS = 8,        /* security.capability, which a write removes */
	ATTR_FLAGS_ALL = 15,
};

/* A client's right to one inode. See ARCHITECTURE.md, and lease_type.h for which leases exclude
 * each other. */
enum lease_type {
	LEASE_NONE,
	LEASE_LAYOUT,    /* of a file: its size and pages stay; they may be read */
	LEASE_OVERWRITE, /* the same, and the client may change bytes in place */
	LEASE_SHARED,    /* the inode does not change */
	LEASE_EXCLUSIVE, /* nobody else changes it, or reads it under a lease */
};

struct lease {
	uint8_t type;
	uint32_t ms;     /* counted from when the client sent the request */
	uint64_t number; /* on a shared export: later ones have greater numbers */
	/* The server has no room for more unused leases: the client gives this one back when the
	 * file is no longer open. */
	bool passing;
};

#endif
