/* path_search.c - see path_search.h. */
#include "server/namespace/path_search.h"

#include <errno.h>
#include <string.h>

#include "server/record/dirent.h"
#include "server/record/inode.h"
#include "server/meta/meta_internal.h"

/* Entries of one step: some ten microseconds. */
enum { STEP_ENTRIES = 256 };

/* ---- by the path ----------------------------------------------------------------------------- */

/* Cuts the next component off; false: there is none. */
static bool next_name(struct rpc_str *path, struct rpc_str *name)
{
	while (path->len && *path->s == '/') {
		path->s++;
		path->len--;
	}
	*name = (struct rpc_str){path->s, 0};
	while (path->len && *path->s != '/') {
		name->len++;
		path->s++;
		path->len--;
	}
	return name->len > 0;
}

static int read_number(struct rpc_str text, uint64_t *number)
{
	*number = 0;
	for (uint16_t i = 0; i < text.len; i++) {
		if (text.s[i] < '0' || text.s[i] > '9')
			return -EINVAL;
		*number = *number * 10 + (uint64_t)(text.s[i] - '0');
		if (*number >> INO_BITS)
			return -ENOENT;
	}
	return text.len ? 0 : -EINVAL;
}

static int load_number(struct volume *v, struct rpc_str text, struct stored_inode *inode)
{
	uint64_t ino;
	int err = read_number(text, &ino);

	return err ? err : inode_load(v, ino, inode);
}

static int walk(struct meta *m, struct volume *v, struct rpc_str path, struct stored_inode *inode)
{
	struct dirent_slot slot;
	struct rpc_str name;
	int err = inode_load(v, ROOT_INO, inode);

	while (!err && next_name(&path, &name)) {
		if (!inode_is_dir(inode))
			return -ENOTDIR;
		err = dirent_find(v, &m->hash, inode->key, &name, &slot);
		if (err == -ENOSPC || (!err && !slot.ino))
			return -ENOENT;
		if (!err)
			err = inode_load(v, slot.ino, inode);
	}
	return err;
}

int path_search_find(
	struct meta *m, unsigned export_index, const struct rpc_str *path, struct attr *attr)
{
	struct volume *v = m->volumes[export_index];
	struct stored_inode inode;
	int err = store_begin_read(m->store);

	if (err)
		return err;
	if (path->len && *path->s == '/')
		err = walk(m, v, *path, &inode);
	else
		err = load_number(v, *path, &inode);
	if (!err)
		*attr = inode.attr;
	store_abort(m->store);
	return err == -ESTALE ? -ENOENT : err;
}

/* ---- by the inode ---------------------------------------------------------------------------- */

void path_search_begin(struct path_search *p, unsigned export_index, uint64_t ino)
{
	*p = (struct path_search){
		.export_index = export_index, .ino = ino, .at = PATH_TEXT_BYTES - 1};
}

static int path_search_place(struct volume *v, struct path_search *p)
{
	struct stored_inode inode;
	int err = inode_load(v, p->ino, &inode);

	if (err)
		return err == -ESTALE ? -ENOENT : err;
	p->dir = inode_is_dir(&inode) ? inode_key(v, inode.parent) : 0;
	p->from = STORE_KEY(p->dir ? p->dir : inode_key(v, 0));
	p->placed = true;
	return 0;
}

/* The inode's name is found: goes on with the directory that has it. */
static int ascend(struct path_search *p, uint64_t dir, const struct rpc_str *name)
{
	if (p->at < (size_t)name->len + 1)
		return -ENAMETOOLONG;
	p->at -= name->len;
	memcpy(p->text + p->at, name->s, name->len);
	p->text[--p->at] = '/';
	p->ino = ino_of_key(dir);
	p->placed = false;
	return p->ino == ROOT_INO ? 0 : -EAGAIN;
}

static bool is_within(const struct volume *v, const struct path_search *p, struct store_key key)
{
	return p->dir ? key.hi == p->dir : key.hi >> INO_BITS == v->id;
}

static int path_search_look(struct volume *v, struct path_search *p)
{
	struct dirent_entry e;
	struct store_key key;
	struct store_val val;
	int err = store_seek(v->store, STORE_DIRENT, p->from, &key, &val);

	for (unsigned n = 0; !err && n < STEP_ENTRIES; n++) {
		if (!is_within(v, p, key))
			return -ENOENT;
		err = dirent_decode(v, key, &val, &e);
		if (err)
			return err;
		if (e.ino == p->ino)
			return ascend(p, key.hi, &e.name);
		p->from = STORE_KEY(key.hi, key.lo + 1);
		err = store_next(v->store, STORE_DIRENT, &key, &val);
	}
	return err ? err : -EAGAIN;
}

int path_search_step(struct meta *m, struct path_search *p)
{
	struct volume *v = m->volumes[p->export_index];
	int err;

	if (p->ino == ROOT_INO) {
		p->text[--p->at] = '/';
		return 0;
	}
	err = store_begin_read(m->store);
	if (err)
		return err;
	err = p->placed ? 0 : path_search_place(v, p);
	if (!err)
		err = path_search_look(v, p);
	store_abort(m->store);
	return err;
}
