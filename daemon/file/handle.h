/* handle.h - a file that was opened once, as the kernel names it in its requests.
 *
 * OWNERSHIP  In its inode's list from OPEN to RELEASE, or until the inode goes, which the kernel
 *            does not forget before its RELEASE is answered. A request may use its handle for as
 *            long as the kernel waits for its answer, and not once it is abandoned.
 * THREADS    What changes is under the inode's lock, but for what is said to be atomic.
 */
#ifndef RMEMFS_DAEMON_FILE_HANDLE_H
#define RMEMFS_DAEMON_FILE_HANDLE_H

#include <stdatomic.h>

#include "common/base/list.h"
#include "daemon/file/cache_policy.h"
#include "daemon/request/request.h"

struct inode;

struct handle {
	struct list link;    /* inode.handles */
	struct inode *inode; /* so that the data path has not to look for it */
	enum open_kind kind;
	bool writes; /* or may */
	bool stores; /* or may, into a mapping of a sharing mount */
	bool appends;
	bool flushed;  /* with something to commit, once: lease.h */
	uint64_t told; /* failures of commit.h up to here are known to its user, or not his */
	/* session_renewal.h's. Atomic: the session that it was opened in, or its user knows to be
	 * lost; a lock that was had by it was lost with one, so nothing can be done by it any more.
	 */
	atomic_uint session;
	atomic_bool unlocked;
	atomic_bool appended; /* something was, by a WRITE */
};

static inline uint64_t handle_number(const struct handle *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/* Whether the handle that is opened can be mapped shared, to store into the mapping. */
bool handle_may_store(const struct request *req);

/* NULL: a directory's. */
static inline struct handle *handle_of(const struct request *req)
{
	return (struct handle *)(uintptr_t)req->args.fh;
}

/* COPY's target. */
static inline struct handle *handle_of_target(const struct request *req)
{
	return (struct handle *)(uintptr_t)req->args.fh2;
}

#endif
