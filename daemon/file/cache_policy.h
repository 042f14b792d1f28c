/* cache_policy.h - which opened files use the kernel's page cache: the policy of -o cache=.
 *
 * none       Each file goes past it.
 * shared     Files that are read use it and keep it. When write(2) returns, its data is remote.
 * exclusive  All use it, and the kernel writes it back when it likes: a regular file's size and
 *            times are the kernel's, and reach us by WRITE and SETATTR. No other client has the
 *            export meanwhile.
 * readers    Files that are opened to be read only use it. Users can't ask for it: a mount that has
 *            its export alone until others come keeps `shared` in this way. Files that are open
 *            then stay cached, and others change them (kernel_pages.h). So nobody writes or
 *            appends through the cache.
 *
 * THREADS    Pure functions.
 */
#ifndef RMEMFS_DAEMON_FILE_CACHE_POLICY_H
#define RMEMFS_DAEMON_FILE_CACHE_POLICY_H

#include <stdint.h>

#include "daemon/op/fs_options.h"

enum open_kind { OPENED_DIRECT = 1, OPENED_CACHED = 2 };

/* The handles that a file has. */
struct cache_handles {
	unsigned nopen, ncached;
};

struct fs_features;

/* How a file is opened next, with open(2)'s flags. */
enum open_kind cache_open_kind(enum cache_mode mode, const struct fs_features *features,
	struct cache_handles handles, uint32_t flags);

#endif
