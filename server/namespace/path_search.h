/* path_search.h - the inode that a path names, and a path that names an inode: for people.
 *
 * An inode's record does not tell its names. So the search goes through the entries of the
 * directory above, if the inode is a directory, else through those of the whole export. It does a
 * piece at a time, so that nobody waits for it. Of several names any is found; one that is changed
 * meanwhile may be missed.
 *
 * THREADS  The metadata thread, outside batches.
 * ERRORS   The store failed, but for what is said.
 */
#ifndef RMEMFS_SERVER_NAMESPACE_PATH_SEARCH_H
#define RMEMFS_SERVER_NAMESPACE_PATH_SEARCH_H

#include "common/rpc/rpc.h"
#include "server/meta/meta.h"
#include "server/store/store.h"

/* path: from the export's root, with a slash; symbolic links are not followed. Or an inode's
 * number. -EINVAL: neither; -ENOENT, -ENOTDIR. */
int path_search_find(
	struct meta *m, unsigned export_index, const struct rpc_str *path, struct attr *attr);

enum { PATH_TEXT_BYTES = 4096 };

struct path_search {
	unsigned export_index;
	uint64_t ino;          /* its name is sought now */
	bool placed;           /* dir and from are set */
	uint64_t dir;          /* sought in this directory; 0: in all */
	struct store_key from; /* entries before it were looked at */
	size_t at;             /* in text: here begins the end of the path, as far as it is found */
	char text[PATH_TEXT_BYTES];
};

void path_search_begin(struct path_search *p, unsigned export_index, uint64_t ino);
/* -EAGAIN: call it again. 0: path_search_text() is the path; -ENOENT: the inode has no name, or
 * none was found; -ENAMETOOLONG. */
int path_search_step(struct meta *m, struct path_search *p);

static inline const char *path_search_text(const struct path_search *p)
{
	return p->text + p->at;
}

#endif
