/* memory_room.h - whether a filesystem in memory, and the machine, have room for more bytes.
 *
 * THREADS    Any.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_MEMORY_ROOM_H
#define RMEMFS_SERVER_MEMORY_MEMORY_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether both are on one filesystem, or will be. */
bool memory_room_is_one(const char *path, const char *other);

/* Whether a directory and the machine have room for bytes more, after the start has taken `before`
 * bytes in the directory other. -EFBIG: the log has the bytes needed and free. For example, what is
 * "the regions of 2 exports". */
int memory_room_check(
	const char *path, uint64_t bytes, const char *other, uint64_t before, const char *what);

#endif
