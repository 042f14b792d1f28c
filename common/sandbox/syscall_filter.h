/* syscall_filter.h - forbids system calls that the programs never need, by seccomp(2).
 *
 * It is a list of what is forbidden, since libraries need others from one version to the next:
 * libc, libibverbs and its drivers, OpenSSL. The units have lists of what is allowed.
 *
 * THREADS    Holds for all threads of the process.
 */
#ifndef RMEMFS_COMMON_SANDBOX_SYSCALL_FILTER_H
#define RMEMFS_COMMON_SANDBOX_SYSCALL_FILTER_H

#include <stdbool.h>

/* Also sets NO_NEW_PRIVS. 0 or -errno; -ENOSYS: the kernel has no such filters. */
int syscall_filter_enter(bool may_unmount);

#endif
