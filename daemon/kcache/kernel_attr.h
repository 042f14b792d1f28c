/* kernel_attr.h - attributes that the kernel of a sharing mount keeps for a time, so that it need
 * not ask.
 *
 * Facts that are known under a lease (local_answer.h) stay true until the lease goes, or we change
 * it. So an answer of LOOKUP or GETATTR that says what is known gives it a time. If a recall, or
 * anything else, ends that knowledge sooner, a notification takes the attributes back; so it does
 * before we send a change. The kernel's access control lists of the inode go with the attributes:
 * the kernel uses them while the attributes have time. So the first question under a lease gets no
 * time. It has the kernel forget lists that came without the lease, or are on their way.
 *
 *     kernel_attr_attr_locked -> the answer        kernel_attr_take_back_locked -> RETURN
 *
 * The kernel does not keep an answer that the notification overtakes: it counts what each inode was
 * told, and takes no answer to an older question. For GETATTR the kernel has the inode. But while a
 * LOOKUP's answer is on its way, the kernel may not have it. Then a timer tries again, until the
 * inode is there, or all lookups are forgotten. The kernel has to notice an inode that went and
 * came again meanwhile (fs_features.evictions_seen); else LOOKUP's answers get no time. Answers of
 * CREATE, SETATTR and the like never get one: the kernel believes them whatever came later.
 *
 * An answer that is not taken leaves the kernel its old size. lseek(2) and O_APPEND go by that,
 * where stat(2) shows the answer. So no time is given while the file is open here, and attributes
 * are taken back when it is opened: no notification overtakes the questions of its readers and
 * writers.
 *
 * A time ends before others can have what the lease is for. It counts from when the last message
 * was sent that the server has answered, and ends a share of the lease time early. So the kernel of
 * a daemon that stands still goes on to tell the truth.
 *
 * A change of ours by name may be about an inode that is not known here (local_answer.h). It is
 * reached by other names, or by open files: inodes with several names get no time.
 *
 * The kernel's notification waits for an inode that the kernel is just letting go of. On a sharing
 * mount that waits for no answer of ours: reads and writes have the file open, and keep the inode.
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
	uint64_t number;         /* the lease under which the kernel has nothing from before */
	int64_t since_ms;        /* when taking the last answer back was tried first; 0: never */
	struct thread_call call; /* the next try; has a reference to the inode */
	struct io_thread *thread;
};

void kernel_attr_init(struct kernel_attr *told, struct inode *inode);

/* The answer to the request says what is known of the inode. Returns for how many milliseconds the
 * kernel may keep it. */
uint32_t kernel_attr_attr_locked(struct inode *inode, const struct request *req);
/* A change of the inode begins, or was made and others are about to see it, or the inode is opened.
 * False: the kernel may still have attributes, since it does not know the inode at this moment. A
 * caller whose request proves that the kernel knows it may ignore that. */
bool kernel_attr_try_take_back_locked(struct inode *inode);
/* The session, and the lease with it, has ended, perhaps before its time. */
void kernel_attr_forget_locked(struct inode *inode);
/* Before the lease goes. True: the kernel has nothing. False: lease_settle() is called in this
 * thread when it is worth asking again. */
bool kernel_attr_take_back_locked(struct inode *inode, struct io_thread *thread);

#endif
