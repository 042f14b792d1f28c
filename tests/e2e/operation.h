/* operation.h - programs of single file operations; the tests call them by name:
 *
 *     PROGRAM OPERATION ARGUMENTS...
 *
 * Exit status 0; or 1 with the errno's name on standard error, as in "fsop: EEXIST"; 2 if there is
 * no such operation, or it takes other arguments.
 */
#ifndef RMEMFS_TESTS_OPERATION_H
#define RMEMFS_TESTS_OPERATION_H

#include <stddef.h>

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

#endif
