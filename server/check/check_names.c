/* check_names.c - every entry leads to an inode, and every directory to the root. */
#include "server/check/check_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/util.h"

/* ---- one entry ------------------------------------------------------------------------------- */

/* An entry as messages name it. */
struct name_place {
	char text[NAME_BYTES_MAX + 64];
};

static struct name_place place_of(uint64_t dir, const struct dirent_entry *e)
{
	struct name_place p;

	snprintf(p.text, sizeof(p.text), "'%.*s' in directory %" PRIu64, e->name.len, e->name.s,
		dir);
	for (char *s = p.text; *s; s++)
		if ((unsigned char)*s < ' ')
			*s = '?';
	return p;
}

static bool name_is_possible(const struct rpc_str *name)
{
	return !memchr(name->s, '/', name->len) && !memchr(name->s, '\0', name->len) &&
	       !(name->s[0] == '.' && name->len <= 2 && name->s[name->len - 1] == '.');
}

/* Names with colliding hashes follow each other. */
static int check_twice(struct check *c, struct store_key key, const struct dirent_entry *e)
{
	struct store_key at = STORE_KEY(key.hi, dirent_first_cookie(&c->m->hash, &e->name));
	struct dirent_entry other;
	struct store_val val;

	for (; at.lo < key.lo; at.lo++) {
		int err = store_get(c->m->store, STORE_DIRENT, at, &val);

		if (!err)
			err = dirent_decode(c->v, at, &val, &other);
		if (err == -ENOENT || err == -EBADMSG)
			continue;
		if (err)
			return err;
		if (other.name.len == e->name.len &&
			memcmp(other.name.s, e->name.s, e->name.len) == 0)
			check_problem(c, "%s is there twice", place_of(ino_of_key(key.hi), e).text);
	}
	return 0;
}

static int check_cookie(struct check *c, struct store_key key, const struct dirent_entry *e)
{
	uint64_t first = dirent_first_cookie(&c->m->hash, &e->name);

	if (e->cookie >= first && e->cookie < first + DIRENT_COLLISIONS)
		return check_twice(c, key, e);
	check_problem(
		c, "%s has a cookie that is not its name's", place_of(ino_of_key(key.hi), e).text);
	return 0;
}

static int check_inode_of(struct check *c, uint64_t dir, const struct dirent_entry *e)
{
	struct stored_inode i;
	int err = inode_load(c->v, e->ino, &i);

	if (err == -ESTALE || err == -EBADMSG) {
		check_problem(c, "%s names inode %" PRIu64 ", which %s", place_of(dir, e).text,
			e->ino, err == -ESTALE ? "is not there" : "can't be read");
		return 0;
	}
	if (err)
		return err;
	if (e->type != dirent_type(i.attr.mode))
		check_problem(c, "%s has another type than inode %" PRIu64, place_of(dir, e).text,
			e->ino);
	if (inode_is_dir(&i) && i.parent != dir)
		check_problem(c, "%s names a directory whose parent is %" PRIu64,
			place_of(dir, e).text, i.parent);
	err = check_list_add(&c->named, e->ino);
	return !err && inode_is_dir(&i) ? check_list_add(&c->subdirs, dir) : err;
}

/* ---- all entries ----------------------------------------------------------------------------- */

static int check_entry(struct check *c, struct store_key key, const struct store_val *val)
{
	uint64_t dir = ino_of_key(key.hi);
	struct dirent_entry e;
	int err = dirent_decode(c->v, key, val, &e);

	if (err)
		return err;
	if (!name_is_possible(&e.name))
		check_problem(c, "%s is no possible name", place_of(dir, &e).text);
	err = check_cookie(c, key, &e);
	return err ? err : check_inode_of(c, dir, &e);
}

static int check_directory_of(struct check *c, uint64_t dir)
{
	struct stored_inode i;
	int err = inode_load(c->v, dir, &i);

	if (err == -ESTALE)
		check_problem(
			c, "there are entries of directory %" PRIu64 ", which is not there", dir);
	else if (!err && !inode_is_dir(&i))
		check_problem(c, "inode %" PRIu64 " has entries and is no directory", dir);
	else if (!err && i.attr.nlink == 0)
		check_problem(c, "directory %" PRIu64 " has entries and was removed", dir);
	return err == -ESTALE || err == -EBADMSG ? 0 : err;
}

static int check_directories(struct check *c)
{
	uint64_t from = inode_key(c->v, 0);
	struct store_key key;
	int err;

	while (!(err = store_seek(c->m->store, STORE_DIRENT, STORE_KEY(from), &key, NULL)) &&
		key.hi >> INO_BITS == c->v->id) {
		err = check_directory_of(c, ino_of_key(key.hi));
		if (err)
			return err;
		from = key.hi + 1;
	}
	return err == -ENOENT ? 0 : err;
}

int check_names(struct check *c)
{
	int err;

	check_progress(c, "names");
	err = check_each_of_volume(c, STORE_DIRENT, check_entry);
	if (!err)
		err = check_directories(c);
	check_list_sort(&c->named);
	check_list_sort(&c->subdirs);
	return err;
}

/* ---- the tree -------------------------------------------------------------------------------- */

enum { UNKNOWN, ON_PATH, REACHED, LOST };

/* Climbs from a directory to one that is known, and returns the state of that. */
static uint8_t climb(const struct check *c, const uint8_t *known, uint8_t *path, uint64_t dir)
{
	for (;;) {
		size_t at = check_list_find(&c->dirs, dir);

		if (at == c->dirs.n || c->dirs.v[at] != dir || path[at] == ON_PATH)
			return LOST;
		if (dir == ROOT_INO || known[at])
			return dir == ROOT_INO ? REACHED : known[at];
		path[at] = ON_PATH;
		dir = c->parents.v[at];
	}
}

static void settle_path(const struct check *c, uint8_t *known, uint8_t *path, size_t at, uint8_t is)
{
	while (at < c->dirs.n && path[at] == ON_PATH) {
		path[at] = UNKNOWN;
		known[at] = is;
		at = check_list_find(&c->dirs, c->parents.v[at]);
	}
}

int check_tree(struct check *c)
{
	autofree uint8_t *known = calloc(c->dirs.n + 1, 1), *path = calloc(c->dirs.n + 1, 1);

	if (!known || !path)
		return -ENOMEM;
	for (size_t i = 0; i < c->dirs.n; i++) {
		uint8_t is = climb(c, known, path, c->dirs.v[i]);

		settle_path(c, known, path, i, is);
		if (is == LOST)
			check_problem(c, "directory %" PRIu64 " is not reached from the root",
				c->dirs.v[i]);
	}
	return 0;
}
