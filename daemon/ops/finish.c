/* finish.c - see finish.h. */
#include "daemon/ops/finish.h"

#include <errno.h>

#include "common/base/log.h"
#include "daemon/barrier/conversion.h"
#include "daemon/barrier/session_renewal.h"
#include "daemon/file/commit.h"
#include "daemon/file/inode_path.h"
#include "daemon/kcache/kernel_owner.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/lease/append_order.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/op_inode.h"

/* If the program has unmapped the file, it may learn of the loss only from the log. */
static void log_lost_stores(const struct request *req, struct inode *inode, int status)
{
	static struct log_ratelimit limit;
	char path[PATH_TEXT_BYTES];

	if (!log_ratelimit_ok(&limit, 1000))
		return;
	path_describe(inode, path, sizeof(path));
	log_error("%s: %u bytes at %llu, stored into a mapping, are lost: %s", path, req->args.size,
		(unsigned long long)req->args.offset, errno_text(status));
}

static void lose_stores(const struct request *req, int status)
{
	struct inode *inode = op_inode_of(req);

	log_lost_stores(req, inode, status);
	commit_pages_failed(inode, status);
	inode_put(inode);
}

void op_refuse(struct request *req, int status)
{
	if (req->op == OP_WRITE && req->args.cached)
		lose_stores(req, status);
	append_order_leave(req, status);
	reply_error(req, status);
}

struct ttl op_ttl(struct request *req)
{
	const struct fs *fs = req->thread->fs;
	uint32_t ms;

	if (fs->sharing)
		return (struct ttl){.attr_ms = op_of(req)->attr_ms};
	ms = conversion_ttl_ms(fs, session_ttl_ms(fs->session));
	return (struct ttl){.entry_ms = ms, .attr_ms = ms};
}

bool op_is_removed_directory(struct request *req, int status)
{
	const struct fs *fs = req->thread->fs;

	return status == -ESTALE && fs->sharing && S_ISDIR(op_of(req)->inode->type) &&
	       !session_lost(fs->session) && !fs_is_renewing(fs);
}

void op_reply_entry(struct request *req, struct inode *inode)
{
	struct ttl ttl = op_ttl(req);
	struct attr attr = op_of(req)->seen;

	if (!req->replied) {
		inode_remember(inode);
		kernel_owner_tell(inode, &attr);
	}
	path_note(inode, req->node, req->args.name);
	attr.size = kernel_pages_size_of_entry(inode, attr.size);
	op_end(req);
	reply_entry(req, inode_node(inode), &attr, ttl);
	inode_put(inode);
}
