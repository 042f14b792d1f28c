/* inode_path.h - where in a sharing mount an inode was last seen, so that messages name paths.
 *
 * A name is noted when the kernel looks it up, makes it or moves it. Others may have changed it
 * since: it is a hint.
 *
 * THREADS    A place belongs to its inode's lock.
 */
#ifndef RMEMFS_DAEMON_FILE_INODE_PATH_H
#define RMEMFS_DAEMON_FILE_INODE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fs;
struct inode;
struct request;

enum { PATH_TEXT_BYTES = 1024 };

struct place {
	uint64_t parent;
	char *name; /* NULL: not known */
};
static inline void place_fini(struct place *place)
{
	free(place->name);
}

/* These names depend on where one stands, and are no names of the directory itself. */
static inline bool path_is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The inode is `name` in `parent`. Without memory the old place stays. */
void path_note(struct inode *inode, uint64_t parent, const char *name);

/* "/a/b", from the mount's root; ".../b" where a part is not known, or the path is too long; or
 * "?". The caller holds no lock. */
void path_describe(struct inode *inode, char *text, size_t len);

/* "inode 7, /a/b", or "inode 7" where no path is known, as in a mount that does not share. Returns
 * text. The caller holds no lock. */
enum { PATH_INODE_BYTES = PATH_TEXT_BYTES + 32 };
const char *path_name_inode(struct inode *inode, char text[PATH_INODE_BYTES]);

#endif
