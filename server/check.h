/* check.h - is the store whole? Walks every record and holds them against each other: each page of
 * an export is in exactly one state, totals and link counts agree, every name leads to an inode.
 *
 * THREADS  The metadata thread, outside batches. Takes memory of a byte a page and some a name, and
 *          time for a look at every record.
 * ERRORS   -ENOMEM; -EBADMSG: a record can't be read.
 */
#ifndef RMEMFS_SERVER_CHECK_H
#define RMEMFS_SERVER_CHECK_H

#include <stdint.h>

struct meta;

/* Calls report with a line for each problem; *nproblems counts them. */
int meta_check(struct meta *m, void (*report)(const char *line, void *arg), void *arg,
	uint64_t *nproblems);

#endif
