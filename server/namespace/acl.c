/* acl.c - ACLs and capabilities that other operations make, adapt or remove; see ns.h. */
#include <errno.h>
#include <linux/xattr.h>

#include "server/namespace/ns.h"
#include "server/record/xattr.h"

static const struct rpc_str access_name = {
	XATTR_NAME_POSIX_ACL_ACCESS, sizeof(XATTR_NAME_POSIX_ACL_ACCESS) - 1};
static const struct rpc_str default_name = {
	XATTR_NAME_POSIX_ACL_DEFAULT, sizeof(XATTR_NAME_POSIX_ACL_DEFAULT) - 1};
static const struct rpc_str caps_name = {XATTR_NAME_CAPS, sizeof(XATTR_NAME_CAPS) - 1};

/* Finds an attribute that the inode's flags say is there. */
static int ns_acl_find(struct ns_call *c, const struct stored_inode *i, const struct rpc_str *name,
	struct xattr *x)
{
	int err = xattr_find(c->v, &c->m->hash, i, name, x);

	if (err == -ENOSPC || (!err && !x->exists))
		return store_damaged(c->m->store, STORE_XATTR, STORE_KEY(i->key));
	return err;
}

/* Reads a stored list. It was valid when it was set, so a list that is not is damage. */
static int read_acl(struct ns_call *c, const struct stored_inode *i, const struct rpc_str *name,
	struct xattr *x, struct acl *acl)
{
	uint8_t buf[ACL_BYTES_MAX];
	int err = ns_acl_find(c, i, name, x);

	if (!err && x->len <= sizeof(buf))
		err = xattr_read(c->v, i, x, 0, buf, x->len);
	if (!err && (x->len > sizeof(buf) || acl_decode(acl, buf, x->len) || !acl->n))
		err = store_damaged(c->m->store, STORE_XATTR, STORE_KEY(i->key, x->cookie));
	return err;
}

static int put_new(struct ns_call *c, struct stored_inode *i, const struct rpc_str *name,
	const uint8_t *data, size_t len)
{
	struct xattr x;
	int err = len ? xattr_find(c->v, &c->m->hash, i, name, &x) : 0;

	return err || !len ? err : xattr_put(c->v, i, &x, name, data, (uint32_t)len);
}

/* ---- inheritance ----------------------------------------------------------------------------- */

static uint64_t room_of(size_t len)
{
	static const struct xattr none;

	return len ? xattr_room(&none, (uint32_t)len) : 0;
}

int ns_inherit(struct ns_call *c, const struct stored_inode *dir, uint32_t mode, uint32_t umask,
	struct heritage *h, uint64_t *room)
{
	struct acl acl;
	struct xattr x;
	int err;

	h->mode = mode;
	h->naccess = h->ndefault = 0;
	if (S_ISLNK(mode))
		return 0;
	if (!(dir->attr.flags & ATTR_DEFAULT_ACL)) {
		h->mode = mode_of_new_inode(mode, umask);
		return 0;
	}
	err = read_acl(c, dir, &default_name, &x, &acl);
	if (err)
		return err;
	if (S_ISDIR(mode))
		h->ndefault = acl_encode(&acl, h->default_acl);
	h->mode = acl_inherit(&acl, mode);
	if (!acl_is_mode(&acl))
		h->naccess = acl_encode(&acl, h->access_acl);
	*room += room_of(h->naccess) + room_of(h->ndefault);
	return 0;
}

int ns_heritage_put(struct ns_call *c, const struct heritage *h, struct stored_inode *i)
{
	int err = put_new(c, i, &access_name, h->access_acl, h->naccess);

	return err ? err : put_new(c, i, &default_name, h->default_acl, h->ndefault);
}

/* ---- SETATTR --------------------------------------------------------------------------------- */

static bool drops_caps(const struct stored_inode *i, uint32_t valid)
{
	uint32_t reasons = SET_NO_CAPS;

	if (S_ISREG(i->attr.mode))
		reasons |= SET_SIZE | SET_OWNERS;
	return i->attr.flags & ATTR_CAPS && valid & reasons;
}

static bool changes_acl(const struct stored_inode *i, uint32_t valid)
{
	return i->attr.flags & ATTR_ACL && valid & SET_MODE;
}

int ns_setattr_xattrs_room(
	struct ns_call *c, const struct stored_inode *i, uint32_t valid, uint64_t *room)
{
	struct xattr x;
	int err = 0;

	if (drops_caps(i, valid)) {
		err = ns_acl_find(c, i, &caps_name, &x);
		*room += err ? 0 : xattr_room(&x, 0);
	}
	if (!err && changes_acl(i, valid)) {
		err = ns_acl_find(c, i, &access_name, &x);
		*room += err ? 0 : xattr_room(&x, x.len);
	}
	return err;
}

static int drop_caps(struct ns_call *c, struct stored_inode *i)
{
	struct xattr x;
	int err = ns_acl_find(c, i, &caps_name, &x);

	return err ? err : xattr_del(c->v, i, &x, &caps_name);
}

static int follow_mode(struct ns_call *c, struct stored_inode *i)
{
	uint8_t buf[ACL_BYTES_MAX];
	struct acl acl;
	struct xattr x;
	size_t len;
	int err = read_acl(c, i, &access_name, &x, &acl);

	if (err || acl_to_mode(&acl, i->attr.mode) == i->attr.mode)
		return err;
	acl_set_mode(&acl, i->attr.mode);
	len = acl_encode(&acl, buf);
	return xattr_put(c->v, i, &x, &access_name, buf, (uint32_t)len);
}

int ns_setattr_xattrs(struct ns_call *c, struct stored_inode *i, uint32_t valid)
{
	int err = drops_caps(i, valid) ? drop_caps(c, i) : 0;

	return !err && changes_acl(i, valid) ? follow_mode(c, i) : err;
}
