/* bounded.h - does something in a process of its own, which is killed when its time is over. So it
 * may block, leak and crash.
 *
 * THREADS    Of programs with one thread: the process is a fork of the caller.
 * ERRORS     0 or -errno. -ETIMEDOUT: it did not end in time. Others: it could not begin. After a
 *            kill the process may stay for long, in a system call that never ends; it is left to
 *            itself then.
 */
#ifndef RMEMFS_DAEMON_CTL_BOUNDED_H
#define RMEMFS_DAEMON_CTL_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>

/* Calls run(arg). *status is that of waitpid(2). Results of the process must be in memory that
 * both share. */
int bounded_run(void (*run)(void *arg), void *arg, int limit_ms, int *status);

/* The text that a process has written. */
struct bounded_text {
	char *text; /* the caller frees it; NULL only after an error other than -ETIMEDOUT */
	size_t len; /* without the NUL behind it */
	bool cut;   /* it was more than there is room for, and the process was killed */
	int status; /* of waitpid(2), unless it was killed */
};

/* The same, and keeps the first `max` bytes that the process writes to standard output and standard
 * error. Its standard input is empty. After -ETIMEDOUT, written has what came until then. */
int bounded_read(
	void (*run)(void *arg), void *arg, int limit_ms, size_t max, struct bounded_text *written);

#endif
