/* caller.h - what is known of the process that a request came from, but for what the request says.
 *
 * What can't be known, of another PID namespace's process or one that has ended, it has not. /proc
 * is read: not for the data path.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_CALLER_H
#define RMEMFS_DAEMON_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rights.h"

struct request;

/* By the group of its own, which is known without /proc, or one of its others. */
bool caller_in_group(const struct request *req, uint32_t gid);

/* capability: CAP_* of capabilities(7), in the caller's own user namespace. */
bool caller_is_capable(const struct request *req, unsigned capability);

/* What he may do to inodes as their owners may: root all, whatever they are. `owners`: he is one,
 * and with all of these capabilities (1 << CAP_*) also those of whom his user namespace knows, as
 * the kernel has it (capable_wrt_inode_uidgid()). Of several ranges of ids it is the one that
 * `known` is in, the owner that the inode is thought to have; where that is he, his capabilities
 * are not looked at. `groups` is none. */
struct rights caller_rights(const struct request *req, uint64_t capabilities, uint32_t known);
/* The groups that he counts as a member of, of those that the inode may have: likewise. */
struct id_range caller_groups(const struct request *req, uint32_t known);

enum caller_state {
	/* It goes on, whatever signals it was sent: a file's operations wait (signal(7)). */
	CALLER_LIVES,
	/* It has ended, or ends as soon as it gets a signal that it was sent: SIGKILL, or another
	 * one that neither the thread nor its default action lets pass. */
	CALLER_DYING,
	/* Its signals can't be seen from here: the thread is in another PID namespace (pid 0), or
	 * /proc hides it (hidepid), or is another namespace's. */
	CALLER_UNSEEN,
};
/* Of the thread that a message names (fuse_in_header.pid). Reads /proc. */
enum caller_state caller_state(uint32_t pid);

#endif
