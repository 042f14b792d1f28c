/* transfer.h - plans the transfer of a range of a file: its extents become works on the request's
 * data buffer, or pieces of memory where the regions are mapped here.
 *
 * THREADS    The caller holds the inode's lock, and is inside its gate, so that the planned pages
 *            stay where they are until the transfer has ended.
 */
#ifndef RMEMFS_DAEMON_FILE_TRANSFER_H
#define RMEMFS_DAEMON_FILE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/file/inode.h"
#include "daemon/request/request.h"

/* Fills req->buf's works and returns how many. A read sets bytes of holes to zero in the buffer,
 * and counts them; a write has filled its holes before. */
uint32_t transfer_plan_read_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len, uint32_t *zeroed);
uint32_t transfer_plan_write_locked(
	struct request *req, struct inode *inode, uint64_t offset, uint32_t len);

/* Puts the pages that stand for holes into this process' page tables: see request_room(). */
void transfer_make_zeros_present(void);
/* Finds the range, holes included, in memory that is mapped in this process; no data buffer is
 * used. False: not all of it is mapped here, now. */
bool transfer_mapped_locked(struct request *req, const struct inode *inode, uint64_t offset,
	uint32_t len, struct pieces *pieces);

#endif
