/* syscalls_locks.h - what the areas of locks share. */
#ifndef RMEMFS_TESTS_SYSCALLS_LOCKS_H
#define RMEMFS_TESTS_SYSCALLS_LOCKS_H

/* Returns when so many wait for a lock of the file f. */
void until_waiting(unsigned n);

#endif
