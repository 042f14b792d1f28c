/* rules.h - the rights that each request of a squashed caller needs, by the rules of its system call.
 *
 * Such a caller is its request's uid, is in the group gid alone, and has no capabilities. The rules
 * ask for one fact after the other, so that no more is asked of the server than they need: call
 * rules_check() again with that fact, until it does not ask any more.
 *
 * READ, WRITE and all else by an open file need nothing: OPEN was checked. Nor do questions of
 * attributes, since the kernel's own walk to the name is all that stat(2) needs.
 *
 * THREADS    Pure functions.
 * SOURCE     The manual page of each system call; the kernel's fs/namei.c (may_create(),
 *            may_delete(), vfs_rename()), fs/attr.c (setattr_prepare()), fs/xattr.c
 *            (xattr_permission()).
 */
#ifndef RMEMFS_DAEMON_SQUASH_RULES_H
#define RMEMFS_DAEMON_SQUASH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/request/request.h"
#include "daemon/squash/access_set.h"

/* The inodes that a rule may be about. */
enum rules_inode {
	RULES_NODE,   /* the request's */
	RULES_NODE2,  /* RENAME's new parent */
	RULES_CHILD,  /* the name in the request's directory */
	RULES_CHILD2, /* RENAME's new name in its new parent */
	RULES_INODES,
};

struct rules_fact {
	bool known;
	bool missing; /* there is no such name: the operation says so, or makes it */
	uint32_t uid, gid, mode;
	access_set allowed; /* to the caller */
};

enum { RULES_ASK = 1 };

/* 0: it may. RULES_ASK: *ask is to become known first. Else the error that its system call has.
 * write_back: the kernel owns the times of files, and tells them by SETATTRs of its own. */
int rules_check(const struct request *req, const struct rules_fact facts[RULES_INODES],
	bool write_back, enum rules_inode *ask);

#endif
