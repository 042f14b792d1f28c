/* orphan.c - inodes that a session keeps although it has taken their last name. While it has the
 * export for itself, records of their own say so. A session that is converted (CONVERT) keeps those
 * that it has: a LEASE makes one a pin, and a RETURN gives it back. */
#include <errno.h>

#include "server/namespace/ns.h"
#include "server/record/reaper.h"

static struct store_key orphan_key(const struct ns_call *c, uint64_t ino)
{
	return STORE_KEY(c->ctx->session, inode_key(c->v, ino));
}

int ns_orphan_has(struct ns_call *c, uint64_t ino, bool *has)
{
	struct store_val val;
	int err = ino >> INO_BITS ? -ENOENT
				  : store_get(c->m->store, STORE_ORPHAN, orphan_key(c, ino), &val);

	*has = !err;
	return err == -ENOENT ? 0 : err;
}

int ns_orphan_end(struct ns_call *c, uint64_t ino)
{
	return store_del(c->m->store, STORE_ORPHAN, orphan_key(c, ino));
}

int ns_orphan_return(struct ns_call *c, uint64_t ino, bool at_once)
{
	struct stored_inode inode;
	int err = ino >> INO_BITS ? -ENOENT : ns_orphan_end(c, ino);

	if (err)
		return err;
	err = inode_load(c->v, ino, &inode);
	if (err)
		return err == -ESTALE ? store_damaged(c->m->store, STORE_ORPHAN, orphan_key(c, ino))
				      : err;
	return at_once ? reaper_inode(c->v, &inode) : reaper_inode_later(c->v, &inode);
}
