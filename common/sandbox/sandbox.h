/* sandbox.h - gives up what a program needs no more, so that an attacker who takes it over gets no
 * further: no other program is executed, nothing is mounted, no other process is touched.
 *
 * It holds for every thread, and for the rest of the process's life. It does not say which files
 * may be read and written. An admin names directories for snapshots and files of keys while the
 * server runs, and Landlock takes no rules later; the units limit files by mount namespaces
 * instead.
 *
 * RMEMFS_SANDBOX=off in the environment leaves it out: for debuggers that run in the process, as
 * valgrind. Builds with a sanitizer have none.
 *
 * Where the kernel lacks a part, one line of level info says so, and the rest holds. A
 * refused call fails with EPERM, or EACCES by Landlock. The process is not killed: a library may
 * try something that it can do without. The kernel logs each refused system call by its audit
 * (type=1326), with the name of the program and the call's number.
 */
#ifndef RMEMFS_COMMON_SANDBOX_SANDBOX_H
#define RMEMFS_COMMON_SANDBOX_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

/* Before the process has other threads. It may listen on the TCP ports, in host byte order, and on
 * Unix sockets, at any time later. */
void sandbox_enter_server(const uint16_t *ports, size_t nports);

/* When all is mounted. It may unmount. Other threads are included. Does nothing for ordinary users,
 * whose mounts end by fusermount3, a set-user-id program. */
void sandbox_enter_mount(void);

/* Drops all of root's capabilities that a mount never needs, also for what is executed. Before the
 * process has other threads. */
void sandbox_drop_capabilities(void);

#endif
