#include "daemon/file/name_change.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/file/inode.h"

struct name_change *name_change_new(
	struct inode *inode, struct inode *dir, const char *name, int64_t time)
{
	size_t len = strlen(name);
	struct name_change *one = len <= NAME_BYTES_MAX ? malloc(sizeof(*one)) : NULL;

	if (!one)
		return NULL;
	*one = (struct name_change){.kind = NAME_REMOVE,
		.inode = inode_ref(inode),
		.dir = inode_ref(dir),
		.time = time,
		.len = (uint16_t)len};
	memcpy(one->name, name, len + 1);
	return one;
}

static struct name_change *new_with_text(
	const struct name_place *at, const char *text, size_t max, int64_t time)
{
	size_t len = strlen(text);
	struct name_change *one =
		len <= max ? name_change_new(at->inode, at->dir, at->name, time) : NULL;

	if (!one)
		return NULL;
	one->text = strdup(text);
	one->text_len = (uint16_t)len;
	if (one->text)
		return one;
	name_change_drop(one);
	return NULL;
}

struct name_change *name_change_new_symlink(
	const struct name_place *at, const char *target, int64_t time)
{
	struct name_change *one = new_with_text(at, target, SYMLINK_BYTES_SHORT, time);

	if (one)
		one->kind = NAME_SYMLINK;
	return one;
}

struct name_change *name_change_new_move(
	const struct name_place *from, const struct name_place *to, int64_t time)
{
	struct name_change *one = new_with_text(from, to->name, NAME_BYTES_MAX, time);

	if (!one)
		return NULL;
	one->kind = NAME_MOVE;
	one->new_dir = inode_ref(to->dir);
	one->replaced = to->inode ? inode_ref(to->inode) : NULL;
	return one;
}

struct name_change *name_change_new_set(struct inode *inode, struct inode *teller, int64_t time)
{
	struct name_change *one = malloc(sizeof(*one));

	if (one)
		*one = (struct name_change){.kind = NAME_SET,
			.inode = inode_ref(inode),
			.teller = teller ? inode_ref(teller) : NULL,
			.time = time};
	return one;
}

void name_change_free(struct name_change *one)
{
	free(one->text);
	free(one);
}

void name_change_drop(struct name_change *one)
{
	inode_put(one->inode);
	if (one->dir)
		inode_put(one->dir);
	if (one->new_dir)
		inode_put(one->new_dir);
	if (one->replaced)
		inode_put(one->replaced);
	if (one->teller)
		inode_put(one->teller);
	name_change_free(one);
}

/* ---- what the server is told ----------------------------------------------------------------- */

bool name_change_takes_number(const struct name_change *one)
{
	return one->kind == NAME_MKDIR || one->kind == NAME_SYMLINK || one->kind == NAME_LINK;
}

size_t name_change_bytes(const struct name_change *one)
{
	return rpc_name_change_bytes(one->kind, one->len, one->text_len);
}

struct inode *name_change_loser(const struct name_change *one)
{
	return one->kind == NAME_REMOVE ? one->inode : one->replaced;
}

static uint64_t ino_of(const struct inode *inode)
{
	return inode ? inode->ino : 0;
}

void name_change_put(const struct name_change *one, bool keep, struct wire_out *w)
{
	const struct rpc_str text = {one->text, one->text_len}, none = {0};
	const struct rpc_name_change told = {
		.kind = (uint8_t)one->kind,
		.parent = ino_of(one->dir),
		.ino = one->inode->ino,
		.time = one->time,
		.keep = keep,
		.name = {one->name, one->len},
		.mode = one->mode,
		.umask = one->umask,
		.uid = one->uid,
		.gid = one->gid,
		.new_parent = ino_of(one->new_dir),
		.replaced = ino_of(one->replaced),
		.new_name = one->kind == NAME_MOVE ? text : none,
		.target = one->kind == NAME_SYMLINK ? text : none,
		.lent = one->lent,
		.valid = one->valid,
		.atime = one->atime,
		.mtime = one->mtime,
	};

	rpc_put_name_change(w, &told);
}

/* ---- whom it is about ------------------------------------------------------------------------ */

static bool is_named(const struct op_about *about, const struct name_change *one)
{
	return one->dir && about->ino[0] == one->dir->ino && about->name.len == one->len &&
	       memcmp(about->name.s, one->name, one->len) == 0;
}

static bool is_named_anew(const struct op_about *about, const struct name_change *one)
{
	return one->new_dir && about->ino[0] == one->new_dir->ino &&
	       about->name.len == one->text_len &&
	       memcmp(about->name.s, one->text, one->text_len) == 0;
}

static bool is_it(const struct inode *inode, uint64_t ino)
{
	return inode && inode->ino == ino;
}

bool name_change_is_about(const struct name_change *one, const struct op_about *about)
{
	bool is_dir = false;

	/* Names don't depend on attributes of their directory. */
	if (one->kind == NAME_SET && about->name.len)
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(about->ino); i++) {
		if (is_it(one->inode, about->ino[i]) || is_it(one->replaced, about->ino[i]))
			return true;
		is_dir |= is_it(one->dir, about->ino[i]) || is_it(one->new_dir, about->ino[i]);
	}
	return about->name.len ? is_named(about, one) || is_named_anew(about, one) : is_dir;
}
