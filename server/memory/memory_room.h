/* memory_room.h - whether a filesystem in memory, and the machine, have room for more bytes.
 *
 * THREADS    The main thread, before it serves.
 * ERRORS     0 or -errno; the reason is logged.
 */
#ifndef RMEMFS_SERVER_MEMORY_MEMORY_ROOM_H
#define RMEMFS_SERVER_MEMORY_MEMORY_ROOM_H

#include <stdint.h>

/* Whether there is room for bytes more in a directory, and in the machine, beside so many that are
 * to be taken before in another one; -EFBIG names needed and free. what: "the regions of 2
 * exports". */
int memory_room_check(
	const char *path, uint64_t bytes, const char *other, uint64_t before, const char *what);

#endif
