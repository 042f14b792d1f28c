/* local_answer.h - names and attributes that a sharing mount tells without asking the server.
 *
 * Under a lease of the directory a name stays what it is, and under one of the inode its attributes
 * do, but for changes of our own. The kernel keeps attributes for a time (kernel_attr.h), and no
 * names (its entries have none), so it asks us, and we tell what is known: the name under the
 * directory's lease, and the attributes of what it is of, at one moment. Of what a change of ours
 * may be about that is on its way nothing is told: another client may have seen it already, and
 * have told of it.
 *
 * There is a notification that makes the kernel ask for all names anew, without a lock that one of
 * our callers may have (FUSE_NOTIFY_INC_EPOCH, Linux 6.16). But it throws away what it has, instead
 * of comparing it with the next answer: mounts below a name would go, open files would look
 * removed, and all inodes that nobody uses would be forgotten, with their leases and pages (seen
 * with Linux 6.18). And it would be due before each first change of ours in a directory.
 *
 * A lease for that is asked for along with the second question within some seconds, so that whoever
 * walks through a tree once leaves none behind; and not while the server gives none.
 *
 * Others' reading changes only the time of the last one: it is asked for once in a while.
 *
 * THREADS    Any I/O thread; struct look_up and struct look_change belong to their request.
 */
#ifndef RMEMFS_DAEMON_LEASE_LOCAL_ANSWER_H
#define RMEMFS_DAEMON_LEASE_LOCAL_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rpc.h"
#include "daemon/kcache/name_cache.h"
#include "daemon/kcache/kernel_names.h"

struct attr;
struct inode;
struct request;

struct local_answers {
	struct name_cache names;
	struct kernel_names shown;
	/* Changes on their way that take a name from an inode, which one is not known. */
	atomic_uint nblind;
};
int local_answer_init(struct local_answers *looks);
void local_answer_fini(struct local_answers *looks);

/* ---- questions ------------------------------------------------------------------------------- */

/* What was known when a question was sent. */
struct look_up {
	uint64_t epoch, notes;
	struct name_key key;
	uint64_t asked, dir_lease;
	uint8_t look; /* LOOK_*: what was asked for along */
};

/* LOOKUP of a name other than "." and "..". The inode, with a reference and attributes in *attr, or
 * *missing; else NULL: to be asked for. */
struct inode *local_answer_up_here(
	struct request *req, struct inode *dir, struct attr *attr, bool *missing);
/* Before it is asked for: what is to be in its `look`. dots: nothing is to be known of it. */
uint8_t local_answer_up_begin(
	struct request *req, struct inode *dir, bool dots, struct look_up *look);
/* Its answer. child NULL: there is none. True: child has got a lease, and its attributes with it.
 */
bool local_answer_up_end(struct request *req, struct inode *dir, struct inode *child,
	const struct look_up *look, const struct rpc_entry_reply *entry);

/* The kernel is told that the name is of that inode; NULL: of none. On a mount that does not share
 * this does nothing. */
void local_answer_up_shown(
	struct request *req, struct inode *dir, const struct inode *child, const struct attr *attr);

/* GETATTR, likewise. */
bool local_answer_at_here(struct request *req, struct inode *inode, struct attr *attr);
uint8_t local_answer_at_begin(struct request *req, struct inode *inode, struct look_up *look);
bool local_answer_at_end(struct request *req, struct inode *inode, const struct look_up *look,
	const struct rpc_attr_reply *rep);

/* ---- changes --------------------------------------------------------------------------------- */

/* One name, and what it is of before. */
struct look_change {
	struct name_key key;
	uint64_t changed, dir_lease;
	struct inode *child; /* that loses the name, or gets another one; referenced */
	uint64_t epoch;
	bool blind;                  /* it is not known which inode that is */
	struct rpc_name_of expected; /* for the request: what the kernel takes it to be of */
	bool again;                  /* the one before was refused */
};

/* What a change takes a name from: from nothing, from an inode that goes on elsewhere, or from one
 * that the kernel then counts a link less of, or none. */
enum look_taking { LOOK_TAKES_NOTHING, LOOK_MOVES, LOOK_ENDS };

/* Before the request is sent. On a mount that does not share these do nothing. */
void local_answer_change_begin(struct request *req, struct inode *dir, const char *name,
	enum look_taking taking, struct look_change *change);
/* What the kernel is to be told where the server has answered `status`. */
int local_answer_change_status(struct request *req, const struct look_change *change, int status);
/* When it has ended: now the name is of that inode (0: of none). The child's change is ended by
 * local_answer_change_child(). */
void local_answer_change_end(
	struct request *req, struct inode *dir, struct look_change *change, uint64_t ino);
void local_answer_change_end_unknown(struct request *req, struct look_change *change);
/* What the answer says of the inode that had the name; NULL: nothing has changed. */
void local_answer_change_child(
	struct request *req, struct look_change *change, const struct attr *attr);

#endif
