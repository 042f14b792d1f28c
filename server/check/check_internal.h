/* check_internal.h - what the parts of the check share.
 *
 *     check.c           one export after the other, and what belongs to none
 *     check_pages.c     in which state each page is
 *     check_names.c     entries, and the tree that they make
 *     check_inodes.c    attributes, links, extents, targets
 *     check_xattr.c     extended attributes, and values on their way
 *     check_sessions.c  sessions, and what is kept for them
 *     check_leases.c    what they have of inodes
 *     check_locks.c     what they have locked
 *     check_quota.c     what owners use and have reserved
 *
 * Each goes over the records of its tables in the order of their keys and reports what contradicts
 * another; what a record names too much or too little is counted from what was collected before.
 * A record that can't be read is reported and passed over.
 */
#ifndef RMEMFS_SERVER_CHECK_CHECK_INTERNAL_H
#define RMEMFS_SERVER_CHECK_CHECK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/check/check.h"
#include "server/record/inode.h"
#include "server/record/lease.h"
#include "server/record/lock.h"
#include "server/meta/meta_internal.h"
#include "server/record/quota_count.h"

/* Numbers, collected and then counted. */
struct check_list {
	uint64_t *v;
	size_t n, room;
};

int check_list_add(struct check_list *list, uint64_t number);
void check_list_sort(struct check_list *list);
/* The place of the first that is not below. Of a sorted list, as the next. */
size_t check_list_find(const struct check_list *list, uint64_t number);
uint64_t check_list_count(const struct check_list *list, uint64_t number);
bool check_list_has(const struct check_list *list, uint64_t number);

struct check_locks {
	uint64_t key;
	struct lock *v;
	size_t n;
};

struct check {
	struct meta *m;
	struct volume *v; /* NULL: what is looked at belongs to no export */
	const struct check_report *report;
	uint64_t nproblems;
	uint8_t *states;                         /* [npages] of the export; 0: none yet */
	struct check_list sessions;              /* that are at the export */
	struct check_list kept;                  /* inodes that a session keeps without a name */
	struct check_list named;                 /* an inode once for each of its names */
	struct check_list subdirs;               /* a directory once for each directory in it */
	struct check_list dirs;                  /* with names of their own, by number ... */
	struct check_list parents;               /* ... and each one's parent */
	uint64_t inodes, reap_files, reap_pages; /* inodes: but for dead ones */
	struct lease_record lease;               /* the first one of its inode */
	uint8_t lease_types;                     /* of those seen of it: lease_bit() */
	struct lease_counts leases;
	struct check_locks locks; /* seen of its inode */
	bool has_quotas;          /* the export's usage is kept */
	struct quota_sums quotas;
};

void check_problem(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_progress(struct check *c, const char *what);

/* Calls fn for each record of the table with from <= key.hi <= to. It may read other tables, and
 * this one by store_get(). Where it or the record gives -EBADMSG, that is reported. */
int check_each(struct check *c, enum store_table table, uint64_t from, uint64_t to,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val));

/* The same for the records of the export, where inode keys come first. */
int check_each_of_volume(struct check *c, enum store_table table,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val));

/* check_pages.c */
int check_runs(struct check *c);
/* The pages are in an inode's extent. */
void check_mark_file(struct check *c, struct page_run run, uint64_t ino);
/* When all have been marked: none is left over, and the free ones are zero. */
void check_pages(struct check *c);

/* check_names.c */
int check_names(struct check *c);
/* When all inodes have been seen. */
int check_tree(struct check *c);

/* check_inodes.c: after names and runs. */
int check_inodes(struct check *c);

/* check_xattr.c */
int check_xattrs(struct check *c, const struct stored_inode *i);
int check_stages(struct check *c); /* of all sessions */

/* check_sessions.c */
int check_sessions(struct check *c); /* of all exports */
int check_collect_sessions(struct check *c);
int check_orphans(struct check *c);
/* The inode is `held` ("leased to") by the session, which has to be there, and shared if that is
 * said. ended may be NULL. */
int check_holder(
	struct check *c, uint64_t ino, const char *held, uint64_t id, bool shared, bool *ended);

/* check_leases.c: after the sessions were collected, before the orphans. */
int check_leases(struct check *c);

/* check_locks.c: after the sessions were collected. */
int check_locks(struct check *c);

/* check_quota.c: before the inodes, for each, and after them. */
int check_begin_quotas(struct check *c);
int check_count_inode(struct check *c, const struct stored_inode *i);
int check_quotas(struct check *c);
/* Each reservation's export is there. */
int check_held_exports(struct check *c, struct store_key key, const struct store_val *val);

#endif
