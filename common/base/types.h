/* types.h - what both programs mean by an extent, an inode's attributes, a lease. Plain data in
 * host byte order; rpc.h puts it on the wire. */
#ifndef RMEMFS_COMMON_BASE_TYPES_H
#define RMEMFS_COMMON_BASE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NAME_BYTES_MAX = 255,     /* one name, without NUL */
	SYMLINK_BYTES_MAX = 4095, /* a link's target, without NUL */
	EXPORT_NAME_MAX = 63,
	XATTR_VALUE_MAX = 65536, /* of an extended attribute; the kernel's limit, as for the list */
	OWNER_BYTES = 16,
	EXPORT_REGIONS_MAX = 1024, /* what a client's channels have room for */
	INLINE_EXTENTS = 4, /* extents kept with the inode and sent with LOOKUP, CREATE and OPEN */
};

/* Inode numbers are local to an export and never used twice. */
enum { ROOT_INO = 1 };

/* Where a run of a file's pages lives. */
struct extent {
	uint64_t fpage;  /* first page within the file; 0 for grants */
	uint32_t npages; /* at least 1 */
	uint32_t page;   /* first page within the region */
	uint16_t target; /* memory server: 0, until there are several */
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
	uint32_t generation; /* changes with the store: part of no lookup, shown to NFS exporters */
	uint32_t flags;      /* ATTR_* */
};

/* What an inode has beside its data, so that asking for what is not there costs no message. */
enum {
	ATTR_XATTRS = 1,      /* extended attributes, of whatever name */
	ATTR_ACL = 2,         /* among them system.posix_acl_access */
	ATTR_DEFAULT_ACL = 4, /* system.posix_acl_default */
	ATTR_CAPS = 8,        /* security.capability, which a write takes away */
	ATTR_FLAGS_ALL = 15,
};

/* A client's right to one inode; see ARCHITECTURE.md, and lease_type.h for how they go together. */
enum lease_type {
	LEASE_NONE,
	LEASE_LAYOUT,    /* of a file: its size and pages stay what they are, and may be read */
	LEASE_OVERWRITE, /* the same, and its bytes be changed where they are */
	LEASE_SHARED,    /* nothing of it changes */
	LEASE_EXCLUSIVE, /* nobody else changes it, or reads it under a lease */
};

struct lease {
	uint8_t type;
	uint32_t ms;     /* from when the request was sent */
	uint64_t number; /* on a shared export: later ones have greater numbers */
	/* The server has no room for more that nobody uses: to be given back when the file is open
	 * no more. */
	bool passing;
};

#endif
