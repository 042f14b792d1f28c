/* caller.h - what is known of the process that a request came from.
 *
 * A request says a user and a group (request.h), or leaves them out: then /proc tells them, as it
 * tells all else. It is read: not for the data path. A process of another PID namespace, or one
 * that has ended, can't be seen there, and has no groups and capabilities that we know of. Through
 * an idmapped mount a caller has other ids than these are, which we do not know.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_DAEMON_REQUEST_CALLER_H
#define RMEMFS_DAEMON_REQUEST_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/rpc/rights.h"

struct io_thread;
struct request;

/* Whether its credentials can be seen. A kernel thread's are not: it acts for others. */
bool caller_is_seen(const struct request *req);

/* Whether it has user 0 of the user namespace that we are in. */
enum caller_root {
	CALLER_IS_NOT_ROOT,
	CALLER_IS_ROOT,
	CALLER_MAY_BE_ROOT, /* neither the request nor /proc says it */
};
enum caller_root caller_root(const struct request *req);

/* capability: CAP_* of capabilities(7), in the caller's own user namespace. */
bool caller_is_capable(const struct request *req, unsigned capability);
bool caller_is_in_our_user_namespace(const struct request *req);

/* The inodes that the caller may change as their owner may. Root: all. Else those of its own user,
 * and with all of these capabilities (1 << CAP_*) also those whose owners its user namespace knows,
 * as the kernel has it (capable_wrt_inode_uidgid()). Of several ranges of ids it is the one that
 * `known` is in, the owner that the inode is thought to have; where that is the caller itself, its
 * capabilities are not looked at. A caller whose user is not known has none. `groups` is none. */
struct rights caller_rights(const struct request *req, uint64_t capabilities, uint32_t known);
/* The groups that the caller counts as a member of, of those that the inode may have: likewise. */
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

/* Whether a wait of the thread `pid` is to end, in which it was signalled at since_ms: it is being
 * killed. Of a caller that can't be seen nobody knows that. So that no signal that it catches ends
 * a shorter wait, and it can be killed all the same, its wait ends interrupt_wait_ms later.
 * `signalled`: it was, or may have been without the kernel telling of it. */
bool caller_ends_wait(
	const struct io_thread *thread, uint32_t pid, bool signalled, int64_t since_ms);

#endif
