/* operation.h - programs of single file operations; the tests call them by name:
 *
 *     PROGRAM OPERATION ARGUMENTS...
 *
 * Exit status 0; or 1 with the errno's name on standard error, as in "fsop: EEXIST"; 2 if there is
 * no such operation, or it takes other arguments.
 */
#ifndef RMEMFS_TESTS_OPERATION_H
#define RMEMFS_TESTS_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct operation {
	const char *name;
	int nargs;
	int (*run)(char **args); /* 0 or -errno */
};

int operation_main(
	const char *program, const struct operation *operations, size_t n, int argc, char **argv);

/* ---- shared helpers -------------------------------------------------------------------------- */

/* Fills buf with pseudo-random bytes. */
void operation_pattern(char *buf, size_t len);

/* Returns 0 or -errno; after an error a part may be written. */
int operation_write(int fd, const char *buf, size_t len);

/* Does the file begin with these bytes? -EILSEQ: others are there; -ENODATA: it is shorter.
 */
int operation_compare(int fd, const char *expected, size_t len);

/* CLOCK_MONOTONIC, in milliseconds; and when so many seconds from now are over. */
int64_t operation_now_ms(void);
int64_t operation_until(const char *seconds);

/* Forks, and returns true in the child, which dies with its parent, whatever kills that. */
bool operation_begins_child(void);

/* Waits for n children, and returns their worst result: -errno from their exit statuses, -ECHILD if
 * a signal has ended one. */
int operation_wait_for(unsigned n);

#endif
