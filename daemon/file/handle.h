/* handle.h - a file that was opened once, as the kernel names it in its requests.
 *
 * OWNERSHIP  In its inode's list from OPEN to RELEASE, or until the inode goes; the kernel does not
 *            forget the inode before RELEASE is answered. A request may use its handle only while
 *            the kernel waits for its answer, and not once it is abandoned.
 * THREADS    Fields that change are under the inode's lock, but for those that are said to be
 *            atomic.
 */
#ifndef RMEMFS_DAEMON_FILE_HANDLE_H
#define RMEMFS_DAEMON_FILE_HANDLE_H

#include <stdatomic.h>

#include "common/base/list.h"
#include "daemon/file/cache_policy.h"
#include "daemon/request/request.h"

struct fs;
struct inode;
struct record_handle;

struct handle {
	struct list link;           /* inode.handles */
	struct inode *inode;        /* the data path finds the inode here */
	uint64_t number;            /* the kernel's, if it is not the address: inherited.h */
	struct record_handle *note; /* NULL: it is not recorded */
	uint64_t opened_by; /* of a killed daemon's handle: the request that may come again */
	enum open_kind kind;
	bool writes; /* or may */
	bool stores; /* or may, into a mapping of a sharing mount */
	bool appends;
	bool flushed;  /* once, with something to commit: lease.h */
	uint64_t told; /* failures of commit.h up to this one were told, or are not its user's */
	uint64_t told_pages; /* the same of pages of the kernel's cache */
	/* Atomic, session_renewal.h's. session: the one in which it was opened, or in which its
	 * user was told that the one before was lost. unlocked: a lock had by it was lost with a
	 * session, so nothing can be done by it any more. */
	atomic_uint session;
	atomic_bool unlocked;
	atomic_bool appended; /* a WRITE has appended */
};

static inline uint64_t handle_number(const struct handle *handle)
{
	return handle->number ? handle->number : (uint64_t)(uintptr_t)handle;
}

/* A zeroed handle; NULL: no memory. */
struct handle *handle_new(struct fs *fs);
/* It is about to be told to the kernel, by the answer to that request: request_number(). */
void handle_record(const struct handle *handle, uint64_t opened_by);
/* It was closed, and is in no list. */
void handle_delete(struct fs *fs, struct handle *handle);

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
