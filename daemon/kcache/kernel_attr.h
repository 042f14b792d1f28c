/* kernel_attr.h - attributes that the kernel of a sharing mount keeps for a time, so that it need not ask.
 *
 * What is known under a lease (local_answer.h) stays as it is until the lease goes, or we change
 * it: so an answer of LOOKUP or GETATTR that says what is known gives it a time. Before that ends,
 * by a recall or otherwise, and before a change of ours is sent, it is taken back by a
 * notification. With the attributes go the access control lists that the kernel has of the inode:
 * it goes by them while the attributes have time. So the first question under a lease gets no time,
 * but has those forgotten that came without it, or are on their way.
 *
 *     kernel_attr_attr_locked -> the answer        kernel_attr_take_back_locked -> RETURN
 *
 * An answer that the notification overtakes is worth nothing to the kernel: each inode there counts
 * what it was told, and answers to what was asked before that are not taken. Who sent GETATTR has
 * the inode, so it is there to be told. It may be missing while a LOOKUP's answer is on its way to
 * it, though: then it is tried again, by a timer, until it is there, or all lookups are forgotten;
 * and one that went and came again meanwhile has to be noticed by the kernel
 * (fs_features.evictions_seen), or LOOKUP's answers get no time. Those of CREATE, SETATTR and the
 * like, which the kernel believes without a look at what came later, never get one.
 *
 * An answer that isn't taken leaves the kernel the size that it had before: lseek(2) and O_APPEND
 * go by that, where stat(2) shows what was answered. So nothing is told of a file that is open
 * here, and what was told is taken back when it is opened: no notification overtakes what its
 * readers and writers ask.
 *
 * A time ends before others can have what the lease is for: this long after the last message was
 * sent that the server has answered, and a share of the lease time before that. So what a kernel
 * goes on to tell whose daemon stands still is true.
 *
 * A change of ours by name may be about an inode that is not known here (local_answer.h). It is
 * reached by other names, or by what is open: inodes with several names get no time.
 *
 * The kernel's notification waits for an inode that it is just letting go of. On a sharing mount
 * that waits for no answer of ours: what is read or written has the file open, and keeps the inode.
 *
 * THREADS    Under the inode's lock.
 */
#ifndef RMEMFS_DAEMON_KCACHE_KERNEL_ATTR_H
#define RMEMFS_DAEMON_KCACHE_KERNEL_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/request/io_thread.h"

struct inode;
struct request;

/* Of one inode. */
struct kernel_attr {
	struct inode *inode;
	bool attr;               /* the kernel may have attributes with a time */
	uint64_t number;         /* of the lease under which it has nothing from before */
	int64_t since_ms;        /* taking the last answer back is tried since then; 0: it is not */
	struct thread_call call; /* the next try; has a reference to the inode */
	struct io_thread *thread;
};

void kernel_attr_init(struct kernel_attr *told, struct inode *inode);

/* What is known of the inode is answered to the request: for how many milliseconds it may be kept.
 */
uint32_t kernel_attr_attr_locked(struct inode *inode, const struct request *req);
/* A change of the inode begins, or was made that others are going to see, or it is opened. False:
 * the kernel may have attributes still, for it does not know the inode at this moment; whoever it
 * knows to have it can take no notice of that. */
bool kernel_attr_try_take_back_locked(struct inode *inode);
/* The session has ended, perhaps before its time, and with it the lease. */
void kernel_attr_forget_locked(struct inode *inode);
/* Before what is known ends. True: the kernel has nothing. False: lease_settle() is called in this
 * thread when it is worth asking again. */
bool kernel_attr_take_back_locked(struct inode *inode, struct io_thread *thread);

#endif
