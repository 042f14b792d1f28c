/* transfer.h - plans the transfer of a range of a file: its extents into works on the request's
 * data buffer, or into pieces of memory where the regions are mapped here.
 *
 * THREADS    The caller holds the inode's lock, and is inside its gate, so that what was planned
 *            stays where it is until the transfer has ended.
 */
#ifndef RMEMFS_DAEMON_FILE_TRANSFER_H
#define RMEMFS_DAEMON_FILE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/file/inode.h"
#include "daemon/request/request.h"

/* Fills req->buf's works and returns how many. Bytes of holes are set to zero in the buffer, and
 * counted: there are none where pages were filled for a write. */
uint32_t transfer_plan_read_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len, uint32_t *zeroed);
uint32_t transfer_plan_write_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len);

/* Finds the range, holes included, where it lies in this process, without a data buffer. False:
 * not all of it is mapped here, now. */
bool transfer_mapped_locked(struct request *req, const struct inode *inode, uint64_t offset,
	uint32_t len, struct pieces *pieces);

#endif
