#include "daemon/request/trace.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

static const char *op_text(enum request_op op)
{
	static const char *const names[OP_NOPS] = {
		[OP_LOOKUP] = "lookup",
		[OP_FORGET] = "forget",
		[OP_GETATTR] = "getattr",
		[OP_SETATTR] = "setattr",
		[OP_READLINK] = "readlink",
		[OP_SYMLINK] = "symlink",
		[OP_MKNOD] = "mknod",
		[OP_MKDIR] = "mkdir",
		[OP_UNLINK] = "unlink",
		[OP_RMDIR] = "rmdir",
		[OP_RENAME] = "rename",
		[OP_LINK] = "link",
		[OP_OPEN] = "open",
		[OP_READ] = "read",
		[OP_WRITE] = "write",
		[OP_STATFS] = "statfs",
		[OP_RELEASE] = "release",
		[OP_FSYNC] = "fsync",
		[OP_FLUSH] = "flush",
		[OP_OPENDIR] = "opendir",
		[OP_READDIR] = "readdir",
		[OP_RELEASEDIR] = "releasedir",
		[OP_FSYNCDIR] = "fsyncdir",
		[OP_CREATE] = "create",
		[OP_LSEEK] = "lseek",
		[OP_GETXATTR] = "getxattr",
		[OP_LISTXATTR] = "listxattr",
		[OP_SETXATTR] = "setxattr",
		[OP_REMOVEXATTR] = "removexattr",
		[OP_FALLOCATE] = "fallocate",
		[OP_COPY] = "copy",
		[OP_TMPFILE] = "tmpfile",
		[OP_STATX] = "statx",
		[OP_REMOUNT] = "remount",
		[OP_GETLK] = "getlk",
		[OP_SETLK] = "setlk",
	};

	return names[op];
}

void trace_begin(struct request *req, uint64_t ino)
{
	req->trace.ino = ino;
	req->trace.begun_ns = clock_ns(CLOCK_MONOTONIC);
}

void trace_end(const struct request *req, int error, size_t len)
{
	long long us = (clock_ns(CLOCK_MONOTONIC) - req->trace.begun_ns) / 1000;
	char result[64];

	if (error)
		snprintf(result, sizeof(result), "%s", errno_text(error));
	else
		snprintf(result, sizeof(result), "%zu bytes answered", len);
	log_debug("%s inode %llu offset %llu length %u: %s%s in %lld us", op_text(req->op),
		(unsigned long long)req->trace.ino, (unsigned long long)req->args.offset,
		req->args.size, result, req->replied ? ", given up before," : "", us);
}
