/* syscalls_locks.h - shared by the areas of locks. */
#ifndef RMEMFS_TESTS_SYSCALLS_LOCKS_H
#define RMEMFS_TESTS_SYSCALLS_LOCKS_H

/* Returns when n processes wait for a lock of the file f. With RMEMFS_TEST_REMOTE_LOCKS in the
 * environment the kernel does not know of the waits, and it is only likely. */
void until_waiting(unsigned n);

#endif
