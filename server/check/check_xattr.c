/* check_xattr.c - extended attributes: the values are whole, and the inode agrees with them. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/util.h"
#include "common/rpc/acl.h"
#include "server/record/stage.h"
#include "server/store/store_format.h"
#include "server/record/xattr.h"

/* ---- attributes of one inode ----------------------------------------------------------------- */

/* The sums over its records. */
struct sums {
	uint32_t names, flags;
	uint64_t nparts;
};

/* An attribute as messages name it. */
struct label {
	char text[NAME_BYTES_MAX + 64];
};

static struct label label_of(const struct stored_inode *i, const struct xattr *x)
{
	struct label l;

	snprintf(l.text, sizeof(l.text), "attribute '%.*s' of inode %" PRIu64, x->name.len,
		x->name.s, i->attr.ino);
	for (char *s = l.text; *s; s++)
		if ((unsigned char)*s < ' ')
			*s = '?';
	return l;
}

static void check_acl(struct check *c, const struct stored_inode *i, const struct xattr *x,
	const uint8_t *value, uint32_t flag)
{
	struct acl acl;

	if (acl_decode(&acl, value, x->len) || acl.n == 0)
		check_problem(c, "%s is no valid ACL", label_of(i, x).text);
	else if (flag == ATTR_ACL && acl_to_mode(&acl, i->attr.mode) != i->attr.mode)
		check_problem(
			c, "%s and mode %" PRIo32 " disagree", label_of(i, x).text, i->attr.mode);
	else if (flag == ATTR_DEFAULT_ACL && !inode_is_dir(i))
		check_problem(c, "%s is no directory's", label_of(i, x).text);
}

static int check_value(struct check *c, const struct stored_inode *i, const struct xattr *x)
{
	uint8_t value[XATTR_VALUE_MAX];
	uint32_t flag = xattr_flag(&x->name);
	struct label label = label_of(i, x);
	int err = xattr_read(c->v, i, x, 0, value, x->len);

	if (err == -EBADMSG) {
		check_problem(c, "%s has a value that can't be read", label.text);
		return 0;
	}
	if (err)
		return err;
	if (store_hash(value, x->len) != x->sum)
		check_problem(c, "%s has another value than its sum tells", label.text);
	if (flag & (ATTR_ACL | ATTR_DEFAULT_ACL))
		check_acl(c, i, x, value, flag);
	return 0;
}

static int check_xattr(
	struct check *c, const struct stored_inode *i, const struct xattr *x, struct sums *sums)
{
	uint64_t first = dirent_first_cookie(&c->m->hash, &x->name);

	if (x->cookie < first || x->cookie >= first + DIRENT_COLLISIONS)
		check_problem(c, "%s has a cookie that is not its name's", label_of(i, x).text);
	sums->names += x->name.len + 1u;
	sums->flags |= ATTR_XATTRS | xattr_flag(&x->name);
	sums->nparts += xattr_nparts(x);
	return check_value(c, i, x);
}

static int count_parts(struct check *c, const struct stored_inode *i, uint64_t *n)
{
	struct store_key key;
	int err = store_seek(c->m->store, STORE_XVALUE, STORE_KEY(i->key), &key, NULL);

	for (*n = 0; !err && key.hi == i->key; ++*n)
		err = store_next(c->m->store, STORE_XVALUE, &key, NULL);
	return err == -ENOENT ? 0 : err;
}

static int check_sums(struct check *c, const struct stored_inode *i, const struct sums *sums)
{
	uint32_t names;
	uint64_t nparts;
	int err = count_parts(c, i, &nparts);

	if (err)
		return err;
	if (sums->flags != (i->attr.flags & ATTR_FLAGS_ALL))
		check_problem(c,
			"inode %" PRIu64 " says that it has attributes %" PRIx32
			", and has %" PRIx32,
			i->attr.ino, i->attr.flags, sums->flags);
	if (sums->nparts != nparts)
		check_problem(c,
			"inode %" PRIu64 " has values of %" PRIu64 " parts, and %" PRIu64
			" are there",
			i->attr.ino, sums->nparts, nparts);
	err = xattr_names_len(c->v, i, &names);
	if (err != -EBADMSG && !err && names != sums->names)
		check_problem(c,
			"inode %" PRIu64 " has names of %" PRIu32 " bytes, and says %" PRIu32,
			i->attr.ino, sums->names, names);
	if (err == -EBADMSG)
		check_problem(
			c, "inode %" PRIu64 " does not say how long its names are", i->attr.ino);
	return err == -EBADMSG ? 0 : err;
}

int check_xattrs(struct check *c, const struct stored_inode *i)
{
	struct sums sums = {0};
	uint64_t cookie = XATTR_HEADER;
	struct xattr x;
	int err = 0;

	/* A dead inode is no longer whole. For an inode without attributes see check_owners(). */
	if (i->flags & INODE_DEAD || !i->attr.flags)
		return 0;
	while (!(err = xattr_next(c->v, i, cookie, &x))) {
		cookie = x.cookie;
		err = check_xattr(c, i, &x, &sums);
		if (err)
			return err;
	}
	if (err == -EBADMSG)
		check_problem(
			c, "inode %" PRIu64 " has attributes that can't be read", i->attr.ino);
	if (err == -ENOENT)
		return check_sums(c, i, &sums);
	return err == -EBADMSG ? 0 : err;
}

/* ---- values on their way --------------------------------------------------------------------- */

/* Each piece except the first must follow one that ends where it begins. */
static int check_piece(struct check *c, struct store_key key, const struct store_val *val)
{
	uint32_t stage = (uint32_t)(key.lo >> STAGE_SHIFT), offset = (uint32_t)key.lo;
	struct store_val record, before;
	int err = store_get(c->m->store, STORE_SESSION, STORE_KEY(key.hi), &record);

	if (err == -ENOENT)
		check_problem(c,
			"a value is on its way from session %" PRIu64 ", which is not there",
			key.hi);
	if (err && err != -ENOENT && err != -EBADMSG)
		return err;
	if (!val->len || val->len > STAGE_PIECE_BYTES || offset % STAGE_PIECE_BYTES)
		return -EBADMSG;
	if (!offset)
		return 0;
	err = store_get(
		c->m->store, STORE_STAGE, STORE_KEY(key.hi, key.lo - STAGE_PIECE_BYTES), &before);
	if (err == -ENOENT || (!err && before.len != STAGE_PIECE_BYTES))
		check_problem(c,
			"value %" PRIu32 " on its way from session %" PRIu64
			" has a gap before byte %" PRIu32,
			stage, key.hi, offset);
	return err == -ENOENT ? 0 : err;
}

int check_stages(struct check *c)
{
	return check_each(c, STORE_STAGE, 0, UINT64_MAX, check_piece);
}
