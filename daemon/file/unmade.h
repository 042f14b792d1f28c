/* unmade.h - files that this client has made by itself, and that the server does not know yet.
 *
 * A CREATE is answered here if the directory is known to lack the name, and the server has lent
 * inode numbers. Such a file is dirty from its beginning. Its first COMMIT is a MAKE (commit.h),
 * which makes it at the server and tells what was written: at its close, at fsync, or within a
 * second. A request that could see at the server that the file is missing sends that MAKE first,
 * and waits for it (make_first.h).
 *
 * OWNERSHIP  A struct unmade belongs to its inode, from the CREATE's answer to the MAKE's. struct
 *            unmade_files is the mount's.
 * THREADS    Any. The lock is taken inside an inode's lock, and none is taken inside it. The fields
 *            of a struct unmade do not change.
 * ERRORS     None: where a number is missing, or memory, the server is asked as ever.
 */
#ifndef RMEMFS_DAEMON_FILE_UNMADE_H
#define RMEMFS_DAEMON_FILE_UNMADE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/op/op.h"

struct unmade {
	struct list link;
	uint64_t ino, number; /* number: it counts the mount's */
	struct rpc_make make; /* without `numbers` and `nextents` */
	char name[NAME_BYTES_MAX + 1];
};

struct unmade_files {
	pthread_mutex_t lock;
	struct list all;
	atomic_uint n;
	uint64_t last;           /* the number of the last one */
	struct rpc_lent lent[2]; /* inode numbers that were not used; the first ones are next */
	uint64_t highest;        /* of all that came */
	/* Numbers whose file has not been added yet, and of new directories and symbolic links; and
	 * those that no inode gets, whose room a name takes (LINK): these are nrooms. */
	unsigned ntaken, nrooms;
	bool asking; /* a request on its way asks for more */
};

void unmade_init(struct unmade_files *u);
void unmade_fini(struct unmade_files *u);

/* ---- inode numbers --------------------------------------------------------------------------- */

/* Returns which of enum rpc_numbers a request asks for that is about to be sent. If it asks,
 * unmade_numbers_came() has to follow, with what its answer brought. NUMBERS_ANEW once all are
 * gone: some were taken for files that did not come to be, and the server still counts these as
 * lent.
 *
 * A server lends ascending numbers. Others are not taken: each would be used twice. */
uint8_t unmade_ask_numbers(struct unmade_files *u);
void unmade_numbers_came(struct unmade_files *u, const struct rpc_lent *lent);
/* 0: there is none. Else unmade_add() follows, of the file that has it, or unmade_lose_number(): no
 * inode gets it, or the server knows the directory or link that has it. */
uint64_t unmade_take_number(struct unmade_files *u);
/* The same of one that no inode gets, whose room is used: unmade_lose_room() follows. */
uint64_t unmade_take_room(struct unmade_files *u);
void unmade_lose_room(struct unmade_files *u);
/* The server takes no MAKE any more: numbers that were lent do not count. No number is taken. */
void unmade_forget_numbers(struct unmade_files *u);
void unmade_lose_number(struct unmade_files *u);

/* ---- files ----------------------------------------------------------------------------------- */

/* NULL: no memory. It counts from unmade_add() to unmade_delete(); unmade_drop() is for one that
 * was not added. NULL: both do nothing. */
struct unmade *unmade_new(uint64_t ino, const struct rpc_make *make);
void unmade_drop(struct unmade *file);
void unmade_add(struct unmade_files *u, struct unmade *file);
void unmade_delete(struct unmade_files *u, struct unmade *file);

static inline bool unmade_any(const struct unmade_files *u)
{
	return atomic_load(&u->n);
}

/* Inodes that the server does not know yet. */
unsigned unmade_count(struct unmade_files *u);

/* Whether one is in that directory, or is that file. */
bool unmade_any_in(struct unmade_files *u, uint64_t ino);
/* Finds one after *number that the request is about: its inode number, and *number. 0: none. Those
 * that were added behind `last` do not count. */
uint64_t unmade_find(
	struct unmade_files *u, const struct op_about *about, uint64_t last, uint64_t *number);
/* The number of the last one that was added. */
uint64_t unmade_last(struct unmade_files *u);

#endif
