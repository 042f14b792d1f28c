/* local_answer.h - names and attributes that a sharing mount tells without asking the server.
 *
 * Under a lease of the directory its names change only by this client, and under a lease of an
 * inode its attributes do. The kernel keeps attributes for a time (kernel_attr.h), and no names:
 * its entries have no time. So the kernel asks us. We answer what is known at one moment: the name
 * under the directory's lease, and the attributes of its inode. While a change of ours is on its
 * way, we answer nothing that it may be about: another client may have seen the change, and told of
 * it.
 *
 * A notification could make the kernel ask for all names anew, without any lock that one of our
 * callers may have (FUSE_NOTIFY_INC_EPOCH, Linux 6.16). But the kernel then throws away what it has
 * instead of comparing it with the next answer (seen with Linux 6.18). Mounts below a name would
 * go, open files would look removed, and all unused inodes would be forgotten, with their leases
 * and pages. And it would be due before each first change of ours in a directory.
 *
 * A question asks for a lease, too, if it is the second one within some seconds. So a program that
 * walks through a tree once leaves no leases behind. It does not ask while the server gives none.
 *
 * Reading by other clients changes only the access time, which is asked for once in a while.
 *
 * A mount that is alone with its export needs no lease, and the kernel keeps names and attributes.
 * If it changes names by itself (names=local), it notes the same way which inodes its names are of.
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
struct names_list;
struct request;

struct local_answers {
	struct name_cache names;
	struct kernel_names shown;
	/* Names that a mount knows without leases have this in place of a lease's number. It
	 * changes when others may change names. */
	atomic_uint_fast64_t alone;
	/* Changes on their way that take a name from an inode that is not known. */
	atomic_uint nblind;
};
int local_answer_init(struct local_answers *looks);
void local_answer_fini(struct local_answers *looks);
/* The mount was alone, and is no more. No request runs. */
void local_answer_forget_alone(struct local_answers *looks);

/* ---- questions ------------------------------------------------------------------------------- */

/* The state when a question is sent; its answer is compared with that. */
struct look_up {
	uint64_t epoch, notes;
	struct name_key key;
	uint64_t asked, dir_lease;
	uint8_t look; /* LOOK_*: the leases that were asked for along */
};

/* LOOKUP of a name other than "." and "..". Returns the inode with a reference and attributes in
 * *attr; or NULL with *missing: there is none. NULL without it: the server is to be asked. */
struct inode *local_answer_up_here(
	struct request *req, struct inode *dir, struct attr *attr, bool *missing);
/* Before the server is asked. Returns the request's `look`. dots: the answer teaches no name. */
uint8_t local_answer_up_begin(
	struct request *req, struct inode *dir, bool dots, struct look_up *look);
/* The answer. child NULL: there is none. True: child has got a lease, and the attributes with
 * it. */
bool local_answer_up_end(struct request *req, struct inode *dir, struct inode *child,
	const struct look_up *look, const struct rpc_entry_reply *entry);

/* The kernel is told that the name is that inode's; NULL: that there is none. On a mount that does
 * not share this does nothing. */
void local_answer_up_shown(
	struct request *req, struct inode *dir, const struct inode *child, const struct attr *attr);

/* The same for each entry that a READDIR shows. A mount that shares learns nothing of it. */
void local_answer_listed(struct request *req, struct inode *dir, const struct names_list *list,
	const char *name, size_t len, uint64_t ino);

/* ---- names of a mount that is alone and changes some by itself ------------------------------- */

/* The inode that has the name; 0: that is not known, or there is none. */
uint64_t local_answer_name_of(struct request *req, struct inode *dir, const char *name);
/* The name is known to be nobody's: it was looked up so, or was removed here. */
bool local_answer_lacks_name(struct request *req, struct inode *dir, const char *name);
/* It is that inode's from now on, by a change that the server is told later; 0: nobody's. */
void local_answer_name_is(struct request *req, struct inode *dir, const char *name, uint64_t ino);
void local_answer_forget_name(struct inode *dir, const char *name);

/* GETATTR, likewise. */
bool local_answer_at_here(struct request *req, struct inode *inode, struct attr *attr);
uint8_t local_answer_at_begin(struct request *req, struct inode *inode, struct look_up *look);
bool local_answer_at_end(struct request *req, struct inode *inode, const struct look_up *look,
	const struct rpc_attr_reply *rep);

/* ---- changes --------------------------------------------------------------------------------- */

/* A change of one name, and the inode that has the name before. */
struct look_change {
	struct name_key key;
	uint64_t changed, dir_lease;
	struct inode *dir;   /* of a mount that keeps names; the operation has a reference */
	struct inode *child; /* it loses the name, or gets another one; referenced */
	uint64_t epoch;
	bool blind;                  /* that inode is not known */
	struct rpc_name_of expected; /* for the request: the inode that the kernel expects */
	bool again;                  /* the change before was refused */
};

/* A change takes a name from nothing, from an inode that goes on elsewhere, or from one that the
 * kernel then counts a link less of, or none. */
enum look_taking { LOOK_TAKES_NOTHING, LOOK_MOVES, LOOK_ENDS };

/* Before the request is sent. On a mount that does not share these do nothing. */
void local_answer_change_begin(struct request *req, struct inode *dir, const char *name,
	enum look_taking taking, struct look_change *change);
/* The status that the kernel is told, where the server has answered `status`. */
int local_answer_change_status(struct request *req, const struct look_change *change, int status);
/* The change has ended, and the name is that inode's now (0: nobody's). The child's change is ended
 * by local_answer_change_child(). */
void local_answer_change_end(
	struct request *req, struct inode *dir, struct look_change *change, uint64_t ino);
void local_answer_change_end_unknown(struct request *req, struct look_change *change);
/* The attributes that the answer has of the inode that had the name; NULL: nothing has changed. */
void local_answer_change_child(
	struct request *req, struct look_change *change, const struct attr *attr);

#endif
