/* operation.h - programs of single file operations, which tests call by name:
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

/* ---- what several of them do ----------------------------------------------------------------- */

/* Fills buf with bytes that change all the time. */
void operation_pattern(char *buf, size_t len);

/* 0 or -errno, after which a part may be written. */
int operation_write(int fd, const char *buf, size_t len);

/* Whether the file begins with these bytes: -EILSEQ if others are there, -ENODATA if it is shorter.
 */
int operation_compare(int fd, const char *expected, size_t len);

#endif
