/* xattr.c - operations on extended attributes: GETXATTR, LISTXATTR, SETXATTR, REMOVEXATTR, and
 * STAGE, which brings values that are too long for one message. */
#include <errno.h>
#include <linux/xattr.h>

#include "common/base/crash_point.h"
#include "common/base/util.h"
#include "server/namespace/kept_values.h"
#include "server/namespace/ns.h"
#include "server/record/stage.h"
#include "server/record/xattr.h"

/* ---- names ----------------------------------------------------------------------------------- */

static bool begins_with(const struct rpc_str *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return name->len >= len && memcmp(name->s, prefix, len) == 0;
}

static bool is_acl(const struct rpc_str *name)
{
	return xattr_flag(name) & (ATTR_ACL | ATTR_DEFAULT_ACL);
}

/* -EOPNOTSUPP: the name is in no known namespace. */
static int check_name(const struct rpc_str *name)
{
	static const char *const prefixes[] = {
		XATTR_USER_PREFIX, XATTR_TRUSTED_PREFIX, XATTR_SECURITY_PREFIX};

	if (name->len == 0 || name->len > NAME_BYTES_MAX)
		return -ERANGE;
	for (size_t n = 0; n < ARRAY_SIZE(prefixes); n++) {
		if (begins_with(name, prefixes[n]))
			return name->len > strlen(prefixes[n]) ? 0 : -EINVAL;
	}
	return is_acl(name) ? 0 : -EOPNOTSUPP;
}

/* Attributes that may be changed: user attributes belong to inodes with data of their own, since
 * anybody may open a device or a link. */
static int check_type(const struct stored_inode *i, const struct rpc_str *name)
{
	bool has_data = S_ISREG(i->attr.mode) || S_ISDIR(i->attr.mode);

	if (begins_with(name, XATTR_USER_PREFIX) && !has_data)
		return -EPERM;
	return is_acl(name) && S_ISLNK(i->attr.mode) ? -EOPNOTSUPP : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Loads the inode and the attribute, which must exist. */
static int ns_xattr_find(struct ns_call *c, uint64_t ino, const struct rpc_str *name,
	struct stored_inode *i, struct xattr *x)
{
	int err = inode_load(c->v, ino, i);

	if (!err)
		err = check_name(name);
	if (!err)
		err = xattr_find(c->v, &c->m->hash, i, name, x);
	if (err == -ENOSPC || (!err && !x->exists))
		return -ENODATA;
	return err;
}

static uint32_t part_len(const struct ns_call *c, uint32_t total)
{
	return (uint32_t)min_u64(total - c->req->getxattr.offset, wire_out_room(c->tail));
}

/* The caller has put the part in its place. */
static void answer_part(struct ns_call *c, uint32_t total, uint64_t sum)
{
	struct wire_out *w = c->tail;
	uint32_t len = part_len(c, total);

	c->rep->getxattr = (struct rpc_getxattr_reply){total, sum, {w->pos, len}};
	w->pos += len;
}

/* Keeps the whole value, for the parts that follow this one. */
static int ns_xattr_keep(struct ns_call *c, const struct stored_inode *i, const struct xattr *x)
{
	struct kept_value value = {malloc(x->len), i->attr.ino, x->sum, x->len};
	int err = value.data ? xattr_read(c->v, i, x, 0, value.data, x->len) : -ENOMEM;

	if (err)
		free(value.data);
	else
		kept_values_put(c->ctx->kept, c->req->getxattr.keep, &value);
	return err;
}

static int read_part(struct ns_call *c)
{
	const struct rpc_getxattr *req = &c->req->getxattr;
	struct stored_inode inode;
	struct xattr x;
	uint32_t len;
	int err = ns_xattr_find(c, req->ino, &req->name, &inode, &x);

	if (!err && req->offset > x.len)
		err = -ERANGE;
	if (err)
		return err;
	len = part_len(c, x.len);
	err = xattr_read(c->v, &inode, &x, req->offset, c->tail->pos, len);
	if (!err && req->keep && len < x.len)
		err = ns_xattr_keep(c, &inode, &x);
	if (!err)
		answer_part(c, x.len, x.sum);
	return err;
}

static int read_kept(struct ns_call *c)
{
	const struct rpc_getxattr *req = &c->req->getxattr;
	const struct kept_value *value = kept_values_find(c->ctx->kept, req->keep, req->ino);
	uint32_t len;

	if (!value || req->offset > value->len)
		return -ERANGE;
	len = part_len(c, value->len);
	memcpy(c->tail->pos, value->data + req->offset, len);
	answer_part(c, value->len, value->sum);
	if (req->offset + len == value->len)
		kept_values_drop(c->ctx->kept, req->keep);
	return 0;
}

int ns_getxattr(struct ns_call *c)
{
	const struct rpc_getxattr *req = &c->req->getxattr;

	if (req->keep > GETXATTR_KEPT_MAX || (req->keep && !c->ctx->kept))
		return -EINVAL;
	return req->keep && req->offset ? read_kept(c) : read_part(c);
}

int ns_listxattr(struct ns_call *c)
{
	const struct rpc_listxattr *req = &c->req->listxattr;
	struct wire_out *w = c->tail;
	const uint8_t *start = w->pos;
	uint64_t cookie = req->cookie;
	struct stored_inode inode;
	struct xattr x;
	bool fits = true;
	int err = inode_load(c->v, req->ino, &inode);

	while (!err && fits) {
		err = xattr_next(c->v, &inode, cookie, &x);
		if (err)
			break;
		cookie = x.cookie;
		fits = rpc_put_xattr_entry(w, &(struct rpc_xattr_entry){cookie, x.name});
	}
	if (err && err != -ENOENT)
		return err;
	c->rep->listxattr.last = err == -ENOENT;
	c->rep->listxattr.tail = (struct rpc_tail){start, (uint32_t)(w->pos - start)};
	return 0;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* A change of an inode's attribute, and of its mode with it. */
struct change {
	struct stored_inode inode;
	const struct rpc_str *name;
	struct xattr there;
	bool removes;
	const void *data;
	uint32_t len;
	uint32_t mode;
	uint64_t room; /* store pages for other changes that go with it */
	bool has_room; /* room was asked for: that can be done once */
	uint8_t acl[ACL_BYTES_MAX];
};

static int ns_xattr_load(struct ns_call *c, uint64_t ino, const struct rpc_str *name,
	const struct rights *rights, struct change *ch)
{
	int err = inode_load(c->v, ino, &ch->inode);

	ch->name = name;
	ch->mode = ch->inode.attr.mode;
	if (!err)
		err = check_name(name);
	if (!err)
		err = check_type(&ch->inode, name);
	if (!err)
		err = ns_check_rights(&ch->inode, rights);
	if (!err)
		err = ns_check_one_unknown(c, &ch->inode);
	return err ? err : xattr_find(c->v, &c->m->hash, &ch->inode, name, &ch->there);
}

static int is_same(struct ns_call *c, const struct change *ch, bool *same)
{
	*same = !ch->there.exists;
	return ch->removes ? 0
			   : xattr_equals(c->v, &ch->inode, &ch->there, ch->data, ch->len, same);
}

/* The list of all names must stay short enough for listxattr(2). */
static int check_names_len(struct ns_call *c, const struct change *ch)
{
	uint32_t len = 0;
	int err = ch->there.exists || ch->removes ? 0 : xattr_names_len(c->v, &ch->inode, &len);

	return !err && len + ch->name->len + 1 > XATTR_NAMES_MAX ? -ENOSPC : err;
}

static int change_records(struct ns_call *c, struct change *ch)
{
	struct stored_inode *i = &ch->inode;

	if (!ch->removes)
		return xattr_put(c->v, i, &ch->there, ch->name, ch->data, ch->len);
	return ch->there.exists ? xattr_del(c->v, i, &ch->there, ch->name) : 0;
}

static int ns_xattr_apply(struct ns_call *c, struct change *ch)
{
	struct stored_inode *i = &ch->inode;
	bool same;
	int err = is_same(c, ch, &same);

	c->rep->attr.attr = i->attr;
	if (err || (same && ch->mode == i->attr.mode))
		return err;
	err = check_names_len(c, ch);
	if (!err)
		err = ns_room(c,
			ROOM_PAGES + ch->room + xattr_room(&ch->there, ch->removes ? 0 : ch->len),
			!ch->removes);
	ch->has_room = !err;
	if (!err && !same)
		err = change_records(c, ch);
	if (err)
		return err;
	i->attr.mode = ch->mode;
	ns_changed(c, &i->attr);
	c->rep->attr.attr = i->attr;
	return inode_save(c->v, i);
}

static bool kills_sgid(const struct ns_call *c, const struct stored_inode *i)
{
	const struct rpc_setxattr *req = &c->req->setxattr;

	return req->flags & SETXATTR_KILL_SGID || !rights_of_group(&req->rights, i->attr.gid);
}

/* The server sees to the meaning of the lists. The flags of setxattr(2) are not for them. */
static int set_acl(struct ns_call *c, struct change *ch)
{
	bool is_access = xattr_flag(ch->name) == ATTR_ACL;
	struct acl acl;
	int err = acl_decode(&acl, ch->data, ch->len);

	if (err)
		return err;
	ch->removes = acl.n == 0;
	if (is_access && acl.n) {
		ch->removes = acl_is_mode(&acl);
		ch->mode = acl_to_mode(&acl, ch->mode);
	}
	if (is_access && kills_sgid(c, &ch->inode))
		ch->mode &= ~(uint32_t)S_ISGID;
	if (!is_access && acl.n && !inode_is_dir(&ch->inode))
		return -EACCES;
	ch->data = ch->acl;
	ch->len = (uint32_t)acl_encode(&acl, ch->acl);
	return ns_xattr_apply(c, ch);
}

static int set_value(struct ns_call *c, struct change *ch)
{
	uint32_t flags = c->req->setxattr.flags;

	if (flags & SETXATTR_CREATE && ch->there.exists)
		return -EEXIST;
	if (flags & SETXATTR_REPLACE && !ch->there.exists)
		return -ENODATA;
	return ns_xattr_apply(c, ch);
}

static int ns_xattr_set(struct ns_call *c, struct change *ch, const void *data)
{
	const struct rpc_setxattr *req = &c->req->setxattr;
	int err = ns_xattr_load(c, req->ino, &req->name, &req->rights, ch);

	if (err)
		return err;
	ch->data = data;
	ch->len = req->total;
	return is_acl(&req->name) ? set_acl(c, ch) : set_value(c, ch);
}

int ns_removexattr(struct ns_call *c)
{
	const struct rpc_removexattr *req = &c->req->removexattr;
	struct change ch = {.removes = true};
	int err = ns_xattr_load(c, req->ino, &req->name, &req->rights, &ch);

	/* As in other filesystems: an ACL that is not there says what the mode says. */
	if (err == -ENOSPC || (!err && !ch.there.exists && !is_acl(&req->name)))
		return -ENODATA;
	return err ? err : ns_xattr_apply(c, &ch);
}

/* ---- long values ----------------------------------------------------------------------------- */

/* Puts the value together in buf. */
static int ns_xattr_collect(struct ns_call *c, uint8_t buf[XATTR_VALUE_MAX])
{
	const struct rpc_setxattr *req = &c->req->setxattr;
	uint32_t staged = req->total - req->tail.len, len;
	int err = stage_len(c->m->store, c->ctx->session, req->stage, &len);

	if (!err && len != staged)
		err = -EINVAL;
	if (!err)
		err = stage_read(c->m->store, c->ctx->session, req->stage, buf, len);
	if (!err)
		memcpy(buf + staged, req->tail.data, req->tail.len);
	return err;
}

static int set_staged(struct ns_call *c)
{
	const struct rpc_setxattr *req = &c->req->setxattr;
	struct change ch = {.room = stage_room(req->total - req->tail.len)};
	uint8_t buf[XATTR_VALUE_MAX];
	int err = ns_xattr_collect(c, buf), dropped = 0;

	if (err)
		return err;
	err = ns_xattr_set(c, &ch, buf);
	if (store_failed(c->m->store) || err == NS_WAIT)
		return err;
	/* The stage goes, whether its value was taken or not. */
	if (!ch.has_room)
		dropped = ns_room(c, ROOM_PAGES + ch.room, false);
	if (!dropped)
		dropped = stage_drop(c->m->store, c->ctx->session, req->stage);
	CRASH_POINT("xattr.set");
	return err ? err : dropped;
}

int ns_setxattr(struct ns_call *c)
{
	const struct rpc_setxattr *req = &c->req->setxattr;
	struct change ch = {0};

	if (req->total > XATTR_VALUE_MAX)
		return -E2BIG;
	if (req->tail.len > req->total || (req->stage != 0) != (req->tail.len < req->total))
		return -EINVAL;
	return req->stage ? set_staged(c) : ns_xattr_set(c, &ch, req->tail.data);
}

/* A session has few stages: those that it leaves behind take memory from all. */
static int check_count(struct ns_call *c)
{
	static const char too_many[] = "too many values are on their way";
	unsigned n;
	int err = stage_count(c->m->store, c->ctx->session, &n);

	if (err || n < STAGES_MAX)
		return err;
	c->rep->text = (struct rpc_str){too_many, sizeof(too_many) - 1};
	return -ENOSPC;
}

/* The client does not want the value any more. */
static int drop_stage(struct ns_call *c, uint32_t there)
{
	int err = there ? ns_room(c, ROOM_PAGES + stage_room(there), false) : 0;

	return err ? err : stage_drop(c->m->store, c->ctx->session, c->req->stage.stage);
}

int ns_stage(struct ns_call *c)
{
	const struct rpc_stage *req = &c->req->stage;
	struct store *s = c->m->store;
	uint64_t session = c->ctx->session;
	uint32_t there;
	int err = stage_len(s, session, req->stage, &there);

	if (err)
		return err;
	if (req->stage && !req->tail.len && !req->offset)
		return drop_stage(c, there);
	if (!req->stage || !req->tail.len || (req->offset && req->offset != there) ||
		!range_within(req->offset, req->tail.len, XATTR_VALUE_MAX))
		return -EINVAL;
	if (!there)
		err = check_count(c);
	if (!err)
		err = ns_room(c,
			ROOM_PAGES + stage_room(req->tail.len) +
				(req->offset ? 0 : stage_room(there)),
			true);
	if (!err && there && !req->offset)
		err = stage_drop(s, session, req->stage);
	if (!err)
		err = stage_add(s, session, req->stage, req->offset, req->tail.data, req->tail.len);
	CRASH_POINT("xattr.staged");
	return err;
}
