/* check.h - is the store whole? Walks every record and holds them against each other: each page of
 * an export is in exactly one state, free ones are zero, totals and link counts agree, every name
 * leads to an inode and every inode belongs to somebody.
 *
 * THREADS  The metadata thread, outside batches. Takes memory of a byte a page and some a name, and
 *          time for a look at every record and every free page.
 * ERRORS   -ENOMEM, or the store failed otherwise. What can't be read is a problem like the others.
 */
#ifndef RMEMFS_SERVER_CHECK_CHECK_H
#define RMEMFS_SERVER_CHECK_CHECK_H

#include <stdint.h>

struct meta;

struct check_report {
	/* A line for people that names the thing. */
	void (*problem)(const char *line, void *arg);
	/* What is looked at now; NULL: nobody asks. */
	void (*progress)(const char *what, void *arg);
	void *arg;
};

/* *nproblems: how many were reported. */
int meta_check(struct meta *m, const struct check_report *report, uint64_t *nproblems);

#endif
