/* landlock.h - forbids the server more than system calls tell, by landlock(7).
 *
 * THREADS    Holds for the calling thread, and for those that it starts later.
 */
#ifndef RMEMFS_COMMON_SANDBOX_LANDLOCK_H
#define RMEMFS_COMMON_SANDBOX_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The version of this kernel's interface, or 0. */
unsigned landlock_version(void);

/* From version 2 (Linux 5.19) on: no file is executed, and no device file is made. From 4 (Linux
 * 6.7) on: TCP listens on the ports alone, and connects to name servers alone (port 53). From 6
 * (Linux 6.12) on: no other process gets a signal.
 *
 * Also sets NO_NEW_PRIVS. 0 or -errno; -ENOSYS: an older version, which would forbid renames. */
int landlock_enter(unsigned version, const uint16_t *ports, size_t nports);

#endif
