#include "daemon/file/inode_names.h"

#include <string.h>

#include "daemon/file/dir_names.h"
#include "daemon/file/inode.h"
#include "daemon/op/fs_parts.h"

static struct name_sets *sets_of(struct inode *dir)
{
	return &dir->fs->inodes->names;
}

/* Counted here, too: a list that ends before the change is counted as begun would lack the name. */
void inode_names_add(struct inode *dir, const char *name)
{
	uint64_t hash = dir_names_sets_hash(sets_of(dir), name, strlen(name));

	pthread_mutex_lock(&dir->lock);
	dir->nrenamed++;
	dir_names_add(&dir->names, sets_of(dir), hash);
	pthread_mutex_unlock(&dir->lock);
}

void inode_names_remove(struct inode *dir, const char *name)
{
	uint64_t hash = dir_names_sets_hash(sets_of(dir), name, strlen(name));

	pthread_mutex_lock(&dir->lock);
	dir_names_remove(&dir->names, hash);
	pthread_mutex_unlock(&dir->lock);
}

bool inode_names_lack(struct inode *dir, const char *name)
{
	uint64_t hash = dir_names_sets_hash(sets_of(dir), name, strlen(name));
	bool lacks;

	pthread_mutex_lock(&dir->lock);
	lacks = dir_names_lack(&dir->names, hash);
	pthread_mutex_unlock(&dir->lock);
	return lacks;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void inode_names_count(struct inode *dir)
{
	pthread_mutex_lock(&dir->lock);
	dir->nrenamed++;
	pthread_mutex_unlock(&dir->lock);
}

void inode_names_list_begin(struct inode *dir, struct names_list *list, uint64_t after)
{
	pthread_mutex_lock(&dir->lock);
	*list = (struct names_list){
		.changes = dir->nrenamed,
		.after = after,
		.sure = fs_knows_names(dir->fs) && !dir->nchanging,
	};
	pthread_mutex_unlock(&dir->lock);
}

bool inode_names_list_is_new(struct inode *dir, const struct names_list *list)
{
	bool is_new;

	pthread_mutex_lock(&dir->lock);
	is_new = dir->nrenamed == list->changes;
	pthread_mutex_unlock(&dir->lock);
	return is_new;
}

static bool tells_names_locked(const struct inode *dir, const struct names_list *list)
{
	return list->sure && dir->nrenamed == list->changes;
}

void inode_names_listed(
	struct inode *dir, struct names_list *list, const char *name, size_t len, uint64_t cookie)
{
	uint64_t hash;

	if (!list->sure)
		return;
	hash = dir_names_sets_hash(sets_of(dir), name, len);
	pthread_mutex_lock(&dir->lock);
	if (tells_names_locked(dir, list))
		dir_names_list(&dir->names, sets_of(dir),
			&(struct names_entry){list->changes, list->after, cookie}, hash);
	pthread_mutex_unlock(&dir->lock);
	list->after = cookie;
}

void inode_names_list_end(struct inode *dir, const struct names_list *list)
{
	pthread_mutex_lock(&dir->lock);
	if (tells_names_locked(dir, list))
		dir_names_list_end(&dir->names, sets_of(dir), list->changes, list->after);
	pthread_mutex_unlock(&dir->lock);
}
