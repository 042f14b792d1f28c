/* check.h - is the store whole? Walks every record and compares them with each other. Each page of
 * an export is in exactly one state, free pages are zero, totals and link counts agree. Every name
 * leads to an inode. Every inode has a name, or a session keeps it, or it is to be reaped.
 *
 * THREADS  The metadata thread, outside batches. Takes a byte of memory for each page and some for
 *          each name. Takes the time to look at every record and every free page.
 * ERRORS   -ENOMEM, or the store failed otherwise. A record that can't be read is a problem like
 *          the others.
 */
#ifndef RMEMFS_SERVER_CHECK_CHECK_H
#define RMEMFS_SERVER_CHECK_CHECK_H

#include <stdint.h>

struct meta;

struct check_report {
	/* A line for people that names the damaged thing. */
	void (*problem)(const char *line, void *arg);
	/* Names the part that is being checked. NULL: not wanted. */
	void (*progress)(const char *what, void *arg);
	void *arg;
};

/* *nproblems: how many were reported. */
int meta_check(struct meta *m, const struct check_report *report, uint64_t *nproblems);

#endif
