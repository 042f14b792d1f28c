/* caller.h - what is known of the process that a request came from.
 *
 * A request says a user and a group (request.h), or leaves them out. Then /proc tells them, as it
 * tells all else. Reading /proc is not for the data path. A process of another PID namespace, or
 * one that has ended, can't be seen there: its groups and capabilities are not known. Through an
 * idmapped mount a caller has other ids than these, which we do not know. Of a squashed caller
 * (request.h) nothing is seen.
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

/* Whether its credentials can be seen. A kernel thread's can't: it acts for others. */
bool caller_is_seen(const struct request *req);

/* Whether it is user 0 of our own user namespace. */
enum caller_root {
	CALLER_IS_NOT_ROOT,
	CALLER_IS_ROOT,
	CALLER_MAY_BE_ROOT, /* neither the request nor /proc says it */
};
enum caller_root caller_root(const struct request *req);

/* capability: CAP_* of capabilities(7), in the caller's own user namespace. */
bool caller_is_capable(const struct request *req, unsigned capability);
bool caller_is_in_our_user_namespace(const struct request *req);

/* The inodes that the caller may change as their owner may. Root: all. Others: those of their own
 * user. A caller with all of these capabilities (1 << CAP_*) also has those whose owners its user
 * namespace knows, as in the kernel (capable_wrt_inode_uidgid()). Of several ranges of ids it is
 * the one that has `known`, the owner that the inode is thought to have. If that is the caller
 * itself, its capabilities are not looked at. A caller whose user is not known has no inodes.
 * `groups` is none. */
struct rights caller_rights(const struct request *req, uint64_t capabilities, uint32_t known);
/* The same for groups: those that the inode may have, and that the caller counts as a member of. */
struct id_range caller_groups(const struct request *req, uint32_t known);

enum caller_state {
	/* It goes on, whatever signals it was sent: a file's operations wait (signal(7)). So does a
	 * kernel thread. */
	CALLER_LIVES,
	/* It has ended, or ends at a signal that it was sent: SIGKILL, or another one that is not
	 * blocked, ignored or caught, and ends a process by default. */
	CALLER_DYING,
	/* Its signals can't be seen: the thread is in another PID namespace (pid 0), or /proc hides
	 * it (hidepid), or /proc is another namespace's. */
	CALLER_UNSEEN,
};
/* The state of the thread that a message names (fuse_in_header.pid). Reads /proc. */
enum caller_state caller_state(uint32_t pid);

/* An asynchronous request can outlive the thread that made it: one of a program that ends its
 * threads, or of io_uring, whose threads the kernel ends when they are idle. Then the process
 * counts, if it is known from a time when the thread was there. CALLER_NO_PROCESS: it was looked
 * for, and not seen. A process that was killed waits for its requests before it ends. So if the
 * thread has gone, the caller lives as long as no process waits so. */
enum { CALLER_NO_PROCESS = INT32_MAX };
/* Notes the process of the thread `pid` in *process, unless that is not 0. Reads /proc. */
void caller_note_process(uint32_t *process, uint32_t pid);

/* A thread that waits, and its process if that is known; else 0. */
struct caller {
	uint32_t pid, process;
};

/* The caller waits, and was signalled at since_ms. Whether its wait is to end, since it is
 * being killed. For a caller that can't be seen that is not known: its wait ends interrupt_wait_ms
 * later. So a signal that it catches ends no shorter wait, and it can be killed all the same.
 * `signalled`: it was, or may have been without the kernel telling of it. */
bool caller_ends_wait(
	const struct io_thread *thread, struct caller caller, bool signalled, int64_t since_ms);

#endif
