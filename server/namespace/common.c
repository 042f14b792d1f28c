/* common.c - checks and steps that the operations share; see ns.h. */
#include "server/namespace/ns.h"

#include <errno.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "common/rpc/change_time.h"
#include "server/meta/share.h"
#include "server/record/extents.h"
#include "server/space/protect.h"

static const char full[] = "the export is full";
static const char store_full[] = "the memory for metadata is full";
static const char share_full[] = "the export's share of the memory for metadata is used up";
static const char inodes_used[] = "the export has as many inodes as it may have";
static const char other_name[] = "the name is of another inode by now";
static const char quota_used[] = "the owner's quota is used up";

/* Store pages for the usage and the reservations of an operation's owners. */
enum { ROOM_PAGES_QUOTA = 16 };

int ns_room(struct ns_call *c, uint64_t npages, bool grows)
{
	int err;

	npages += quota_on(c->v) ? ROOM_PAGES_QUOTA : 0;
	err = share_room(c->v, npages, grows);
	if (err) {
		c->m->lacks_pages = grows && share_has_room_but_for_grants(c->v, npages);
		c->rep->text = (struct rpc_str){share_full, sizeof(share_full) - 1};
		return err;
	}
	err = meta_room(c->m, npages, grows);
	if (err != -ENOSPC)
		return err;
	c->m->lacks_pages = grows && meta_has_room_but_for_grants(c->m, c->v, npages);
	c->rep->text = (struct rpc_str){store_full, sizeof(store_full) - 1};
	return err;
}

bool ns_more_room(struct ns_call *c, uint64_t npages)
{
	uint64_t quota = quota_on(c->v) ? ROOM_PAGES_QUOTA : 0;

	return store_has_room(c->m->store, npages + quota, 0) && !ns_room(c, npages, false);
}

int ns_no_quota(struct ns_call *c)
{
	if (c->m->now.nending && meta_may_reclaim(c->m, &c->m->drain_retry))
		return NS_PARK;
	c->rep->text = (struct rpc_str){quota_used, sizeof(quota_used) - 1};
	return -EDQUOT;
}

int ns_check_quota(struct ns_call *c, const struct quota_share *from, const struct quota_share *to)
{
	int err = quota_check(c->v, from, to);

	return err == -EDQUOT ? ns_no_quota(c) : err;
}

int ns_check_new(struct ns_call *c, uint32_t uid, uint32_t gid)
{
	const struct quota_share nothing = {0}, share = {.uid = uid, .gid = gid, .inodes = 1};

	if (c->v->now.inodes >= c->v->max_inodes) {
		c->rep->text = (struct rpc_str){inodes_used, sizeof(inodes_used) - 1};
		return -ENOSPC;
	}
	return ns_check_quota(c, &nothing, &share);
}

static bool is_dot(const struct rpc_str *name)
{
	return name->len <= 2 && memcmp(name->s, "..", name->len) == 0;
}

int ns_may_change_bytes(struct ns_call *c)
{
	return protect_has_room(c->v->protect) ? 0 : NS_PARK;
}

void ns_give_up_pages(struct ns_call *c, struct page_run run)
{
	protect_give_up_now(c->v->protect, run);
}

int ns_check_rights(const struct stored_inode *i, const struct rights *rights)
{
	return rights_of_owner(rights, i->attr.uid) ? 0 : -EPERM;
}

int ns_check_name(const struct rpc_str *name)
{
	if (name->len == 0)
		return -ENOENT;
	if (name->len > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	return is_dot(name) ? -EINVAL : 0;
}

int ns_find(struct ns_call *c, uint64_t parent, const struct rpc_str *name,
	struct stored_inode *dir, struct dirent_slot *slot)
{
	int err = ns_check_name(name);

	if (!err)
		err = inode_load_dir(c->v, parent, dir);
	return err ? err : dirent_find(c->v, &c->m->hash, dir->key, name, slot);
}

/* 1, 0, or an error. */
static int is_living_directory(struct ns_call *c, uint64_t ino)
{
	struct stored_inode i;
	int err = inode_load(c->v, ino, &i);

	if (err)
		return err == -ESTALE ? 0 : err;
	return inode_is_dir(&i) && i.attr.nlink > 0;
}

int ns_check_expected(
	struct ns_call *c, const struct dirent_slot *slot, const struct rpc_name_of *expected)
{
	int matters = expected->exactly;

	if (expected->ino == NAME_OF_ANY || expected->ino == (slot->ino ? slot->ino : NAME_OF_NONE))
		return 0;
	if (!matters)
		matters = is_living_directory(c, expected->ino);
	if (matters <= 0)
		return matters;
	c->rep->text = (struct rpc_str){other_name, sizeof(other_name) - 1};
	return -ESTALE;
}

int ns_load_entry(struct ns_call *c, const struct dirent_slot *slot, struct stored_inode *out)
{
	int err = inode_load(c->v, slot->ino, out);

	if (err == -ESTALE)
		return store_damaged(c->m->store, STORE_DIRENT, STORE_KEY(slot->dir, slot->cookie));
	return err;
}

void ns_changed(const struct ns_call *c, struct attr *attr)
{
	attr->ctime = change_time(attr->ctime, c->ctx->now);
}

void ns_modified(const struct ns_call *c, struct attr *attr)
{
	attr->mtime = change_time(attr->mtime, c->ctx->now);
	ns_changed(c, attr);
}

int ns_touch_dir(struct ns_call *c, struct stored_inode *dir)
{
	ns_modified(c, &dir->attr);
	return inode_save(c->v, dir);
}

void ns_fill_entry(
	struct ns_call *c, const struct stored_inode *i, const struct stored_inode *parent)
{
	struct rpc_entry_reply *entry = &c->rep->entry;

	entry->attr = i->attr;
	if (parent)
		entry->parent = parent->attr;
	entry->lease.type = c->ctx->shared ? LEASE_NONE : LEASE_EXCLUSIVE;
	entry->nextents = i->nextents;
	entry->nhead = (uint8_t)inode_nhead(i);
	memcpy(entry->head, i->head, entry->nhead * sizeof(entry->head[0]));
}

int ns_room_and_grant(struct ns_call *c, uint64_t npages, bool grows, uint64_t *want)
{
	uint64_t with_grant;
	int err;

	*want = volume_is_lost(c->v) ? 0 : min_u64(*want, c->v->space.now.free);
	if (*want == 0)
		return ns_room(c, npages, grows);
	with_grant = npages + ROOM_PAGES_QUOTA + *want / PAGES_PER_STORE_PAGE;
	err = share_room(c->v, with_grant, true);
	if (!err)
		err = meta_room(c->m, with_grant, true);
	if (err != -ENOSPC)
		return err;
	*want = 0;
	return ns_room(c, npages, grows);
}

/* The share of one of several sessions: if it does not use that, enough is left for the others.
 * Sessions that read may write later. */
static uint64_t share(const struct ns_call *c)
{
	unsigned n = c->ctx->sharers ? c->ctx->sharers(c->ctx->asker) : 0;

	return n ? max_u64(1, c->v->space.now.free / (2 * n)) : UINT64_MAX;
}

int ns_take_grant(struct ns_call *c, uint64_t want, struct extent grant[GRANT_EXTENTS], uint8_t *n)
{
	unsigned count = 0;
	int err;

	*n = 0;
	if (!want)
		return 0;
	err = space_grant(&c->v->space, c->ctx->session, min_u64(want, share(c)), grant,
		GRANT_EXTENTS, &count);
	if (count)
		CRASH_POINT("grant");
	*n = (uint8_t)count;
	return err;
}

bool ns_dirty_comes(const struct ns_call *c)
{
	return c->v->space.reuse || !c->ctx->dirty_comes || c->ctx->dirty_comes(c->ctx->asker);
}

/* Pages become dirty before they become free, so none come without ns_dirty_comes(). */
static bool pages_may_come(const struct ns_call *c)
{
	if (!ns_dirty_comes(c))
		return false;
	return (c->v->space.now.dirty && meta_may_reclaim(c->m, &c->m->scrub_retry)) ||
	       (c->v->now.reap_pages && meta_may_reclaim(c->m, &c->v->reap_retry)) ||
	       (c->m->now.nending && meta_may_reclaim(c->m, &c->m->drain_retry));
}

int ns_no_pages(struct ns_call *c)
{
	c->m->lacks_pages = true;
	if (pages_may_come(c))
		return NS_PARK;
	c->rep->text = (struct rpc_str){full, sizeof(full) - 1};
	return -ENOSPC;
}

int ns_wait_for_reaper(const struct ns_call *c)
{
	if (!retry_is_due(&c->v->reap_retry))
		return -EIO;
	return meta_may_reclaim(c->m, &c->v->reap_retry) ? NS_PARK : -ENOSPC;
}
