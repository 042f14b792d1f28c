/* failing_fsync.h - an fsync(2) for a test's program that fails when the test wants it.
 *
 * THREADS  One at a time.
 */
#ifndef RMEMFS_TESTS_FAILING_FSYNC_H
#define RMEMFS_TESTS_FAILING_FSYNC_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* So many calls succeed, and all later ones fail with EIO; -1: none fails. */
static int fsync_fails_after = -1;

int fsync(int fd)
{
	if (fsync_fails_after == 0) {
		errno = EIO;
		return -1;
	}
	if (fsync_fails_after > 0)
		fsync_fails_after--;
	return (int)syscall(SYS_fsync, fd);
}

#endif
