/* check_internal.h - declarations that the parts of the check share.
 *
 *     check.c           one export after the other, and records that belong to none
 *     check_pages.c     the state of each page
 *     check_names.c     entries, and the tree that they make
 *     check_inodes.c    attributes, links, extents, targets
 *     check_xattr.c     extended attributes, and values on their way
 *     check_sessions.c  sessions, and inodes and replies that are kept for them
 *     check_leases.c    leases and pins of sessions
 *     check_locks.c     locks of sessions
 *     check_quota.c     quota that owners use and have reserved
 *
 * Each part goes over the records of its tables in the order of their keys, and reports
 * contradictions. It compares its records with the lists that earlier parts have collected, and so
 * finds missing and surplus ones. A record that can't be read is reported and passed over.
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

/* Numbers that are collected, then sorted and counted. */
struct check_list {
	uint64_t *v;
	size_t n, room;
};

int check_list_add(struct check_list *list, uint64_t number);
void check_list_sort(struct check_list *list);
/* The index of the first number that is not below. This and the next two need a sorted list. */
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
	struct volume *v; /* NULL: the records belong to no export */
	const struct check_report *report;
	uint64_t nproblems;
	uint8_t *states;            /* [npages] of the export; 0: none yet */
	struct check_list sessions; /* those at the export */
	struct check_list kept;     /* inodes without a name that a session keeps */
	struct check_list named;    /* an inode once for each of its names */
	struct check_list subdirs;  /* a directory once for each directory in it */
	struct check_list dirs;     /* all directories that are not removed, by number ... */
	struct check_list parents;  /* ... and each one's parent */
	uint64_t inodes, reap_files, reap_pages; /* inodes: without dead ones */
	struct lease_record lease; /* the first one of the inode whose leases are being read */
	uint8_t lease_types;       /* types of that inode's leases so far: lease_bit() */
	struct lease_counts leases;
	struct check_locks locks; /* locks of the inode that is being read, so far */
	bool has_quotas;          /* the export keeps usage */
	struct quota_sums quotas;
};

void check_problem(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_progress(struct check *c, const char *what);

/* Calls fn for each record of the table with from <= key.hi <= to. fn may read other tables, and
 * this one by store_get(). If fn or the record gives -EBADMSG, that is reported. */
int check_each(struct check *c, enum store_table table, uint64_t from, uint64_t to,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val));

/* The same for the records of the export, if the table's keys begin with an inode key. */
int check_each_of_volume(struct check *c, enum store_table table,
	int (*fn)(struct check *c, struct store_key key, const struct store_val *val));

/* check_pages.c */
int check_runs(struct check *c);
/* The pages are in an inode's extent. */
void check_mark_file(struct check *c, struct page_run run, uint64_t ino);
/* After all pages were marked: no page is without a state, and the free ones are zero. */
void check_pages(struct check *c);

/* check_names.c */
int check_names(struct check *c);
/* After all inodes were seen. */
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
/* The session that the inode is `held` ("leased to") by must exist, and have one of these flags of
 * ATTACH; 0: any. ended may be NULL. */
int check_holder(
	struct check *c, uint64_t ino, const char *held, uint64_t id, uint32_t flags, bool *ended);

/* check_leases.c: after the sessions were collected, before the orphans. */
int check_leases(struct check *c);

/* check_locks.c: after the sessions were collected. */
int check_locks(struct check *c);

/* check_quota.c: before the inodes, for each inode, and after them. */
int check_begin_quotas(struct check *c);
int check_count_inode(struct check *c, const struct stored_inode *i);
int check_quotas(struct check *c);
/* The export of each reservation must exist. */
int check_held_exports(struct check *c, struct store_key key, const struct store_val *val);

#endif
