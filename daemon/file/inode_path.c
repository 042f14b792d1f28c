#include "daemon/file/inode_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/op/fs_parts.h"
#include "daemon/file/inode.h"

enum { DEPTH_MAX = 256 }; /* names that others have moved may make a circle */

void path_note(struct inode *inode, uint64_t parent, const char *name)
{
	struct place *place = &inode->place;
	char *copy;

	if (!inode->fs->sharing || path_is_dots(name))
		return;
	pthread_mutex_lock(&inode->lock);
	if (!place->name || strcmp(place->name, name) != 0) {
		copy = strdup(name);
		if (copy) {
			free(place->name);
			place->name = copy;
			place->parent = parent;
		}
	} else {
		place->parent = parent;
	}
	pthread_mutex_unlock(&inode->lock);
}

/* Puts "/NAME" before what is there. False: the name is not known, or there is no room. */
static bool prepend(struct inode *inode, char *text, size_t *at, uint64_t *parent)
{
	size_t n = 0;
	bool put;

	pthread_mutex_lock(&inode->lock);
	if (inode->place.name)
		n = strlen(inode->place.name) + 1;
	put = n && n <= *at;
	if (put) {
		*at -= n;
		text[*at] = '/';
		memcpy(text + *at + 1, inode->place.name, n - 1);
		*parent = inode->place.parent;
	}
	pthread_mutex_unlock(&inode->lock);
	return put;
}

/* Room for "..." is kept. */
void path_describe(struct inode *inode, char *text, size_t len)
{
	char path[PATH_TEXT_BYTES];
	size_t at = min_u64(sizeof(path), len) - 4;
	size_t end = at;
	struct inode *node = inode_ref(inode);
	uint64_t parent = 0;

	for (unsigned depth = 0; node && node->ino != ROOT_INO && depth < DEPTH_MAX; depth++) {
		bool put = prepend(node, path, &at, &parent);

		inode_put(node);
		node = put ? inode_find(inode->fs, parent) : NULL;
	}
	if (at == end)
		snprintf(text, len, "%s", node && node->ino == ROOT_INO ? "/" : "?");
	else
		snprintf(text, len, "%s%.*s", node && node->ino == ROOT_INO ? "" : "...",
			(int)(end - at), path + at);
	if (node)
		inode_put(node);
}

const char *path_name_inode(struct inode *inode, char text[PATH_INODE_BYTES])
{
	char path[PATH_TEXT_BYTES];

	path_describe(inode, path, sizeof(path));
	snprintf(text, PATH_INODE_BYTES, "inode %" PRIu64 "%s%s", inode->ino,
		*path == '?' ? "" : ", ", *path == '?' ? "" : path);
	return text;
}
