/* syscalls_locks.h - what the areas of locks share. */
#ifndef RMEMFS_TESTS_SYSCALLS_LOCKS_H
#define RMEMFS_TESTS_SYSCALLS_LOCKS_H

/* Returns when so many wait for a lock of the file f. With RMEMFS_TEST_REMOTE_LOCKS in the
 * environment the kernel does not know, and it is only likely. */
void until_waiting(unsigned n);

#endif
