/* needs.c - what each operation needs of the leases of its inodes. */
#include <fcntl.h>

#include "daemon/kcache/kernel_pages.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/handle.h"
#include "daemon/lease/lease.h"
#include "daemon/lease/lease_private.h"
#include "daemon/op/op.h"
#include "daemon/file/inode.h"
#include "daemon/file/op_inode.h"

/* The lease that the request needs of its inode. */
static struct op_lease need_of(const struct request *req)
{
	bool writes = (req->args.flags & O_ACCMODE) != O_RDONLY, cached = req->args.cached;
	uint32_t valid = req->args.set.valid;

	/* Other clients may not change what the kernel caches. */
	switch (req->op) {
	case OP_READ:
		return (struct op_lease){.type = cached ? LEASE_SHARED : LEASE_LAYOUT,
			.use = cached ? USE_READS_PAGES : USE_PLAIN};
	case OP_LSEEK:
		return (struct op_lease){.type = LEASE_LAYOUT};
	case OP_WRITE:
		return (struct op_lease){.type = cached ? LEASE_EXCLUSIVE : LEASE_OVERWRITE,
			.use = cached ? USE_WRITES_PAGES_BACK : USE_PLAIN};
	case OP_FALLOCATE:
		return (struct op_lease){.type = LEASE_EXCLUSIVE};
	case OP_SETATTR:
		if (op_set_attr_keeps_others_out(req->thread->fs, valid))
			return (struct op_lease){.type = LEASE_EXCLUSIVE,
				.use = valid & SET_SIZE ? USE_HOLDS_WRITING_BACK : USE_PLAIN};
		break;
	case OP_GETATTR:
	case OP_STATX:
		return (struct op_lease){.use = USE_TELLS_END};
	case OP_OPEN:
		return (struct op_lease){
			.pin = true,
			.use = handle_may_store(req) ? USE_MAY_STORE : USE_PLAIN,
			.type = req->args.flags & O_TRUNC ? LEASE_EXCLUSIVE : LEASE_NONE,
			.hint = writes ? LEASE_OVERWRITE : LEASE_LAYOUT,
		};
	default:
		break;
	}
	return (struct op_lease){0};
}

/* The needs of COPY, by inode numbers, so that no two operations wait for each other. */
static unsigned needs_of_copy(const struct request *req, struct op_lease needs[OP_LEASES])
{
	struct inode *source = op_inode_of(req);
	struct inode *target = inode_of_node(req->thread->fs, req->args.node2);
	struct op_lease read = {.inode = source, .type = LEASE_SHARED};
	struct op_lease write = {.inode = target, .type = LEASE_EXCLUSIVE};
	bool first = source->ino < target->ino;

	if (source == target) {
		inode_put(source);
		needs[0] = write;
		return 1;
	}
	needs[0] = first ? read : write;
	needs[1] = first ? write : read;
	return 2;
}

unsigned lease_needs_of(const struct request *req, struct op_lease needs[OP_LEASES])
{
	unsigned n = 0, kept = 0;

	if (req->op == OP_COPY) {
		n = needs_of_copy(req, needs);
	} else {
		needs[0] = need_of(req);
		n = needs[0].type || needs[0].pin || needs[0].use;
		if (n)
			needs[0].inode = op_inode_of(req);
	}
	for (unsigned i = 0; i < n; i++) {
		if (inode_is_regular(needs[i].inode))
			needs[kept++] = needs[i];
		else
			inode_put(needs[i].inode);
	}
	return kept;
}
