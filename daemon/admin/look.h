/* look.h - what the I/O threads of a mount are at: each one is asked, and tells its own state.
 *
 * A thread answers between two turns of its loop, within 100 ms. A thread that stands still (the
 * process is stopped, or a page of its memory can't be had) does not answer; looks_take() says so
 * after its limit, and that thread's answer counts for the next look.
 *
 *     looks_new -> looks_take, any number of times -> (the I/O threads have ended) looks_delete
 *
 * THREADS    One thread takes looks.
 */
#ifndef RMEMFS_DAEMON_ADMIN_LOOK_H
#define RMEMFS_DAEMON_ADMIN_LOOK_H

#include "common/base/cpu_wait.h"
#include "common/rpc/rpc.h"
#include "daemon/op/op.h"
#include "daemon/remote/remote_view.h"
#include "daemon/request/request.h"

/* Of each thread the requests that were read first are told one by one. All of those whose callers
 * wait count. */
enum { LOOK_REQUESTS = 32 };

struct look_request {
	enum request_op op;
	enum op_wait wait;
	enum rpc_op rpc; /* OP_AT_RPC */
	/* OP_AT_RPC: for so long that the server waits for another mount's lease, as it answers. */
	bool for_mounts;
	uint64_t ino;     /* of the export; 0: not known */
	uint32_t pid;     /* of the thread that asked; 0: of another PID namespace */
	int64_t since_ns; /* when it was read, as CLOCK_BOOTTIME tells */
};

struct look {
	bool answered; /* false: the thread stands still, and the rest is from before */
	struct remote_view remote;
	unsigned nrequests;          /* that have not ended */
	unsigned nlisted;            /* in requests */
	unsigned nwaiting[OP_WAITS]; /* by the thing that the operation waits for: callers wait */
	int64_t oldest_ns; /* when the oldest of them, or of what is parked, was read; 0: none */
	unsigned nparked;  /* messages that wait for room */
	struct cpu_wait_view cpu;
	unsigned nlock_waits; /* callers that wait for locks: they are no requests meanwhile */
	struct look_request requests[LOOK_REQUESTS];
};

struct looks;

/* first: the mount's thread 0. -ENOMEM. */
int looks_new(struct io_thread *first, struct looks **out);
void looks_delete(struct looks *looks);

/* Asks all threads, and waits for limit_ms at most. Returns their answers, [*n]. */
const struct look *looks_take(struct looks *looks, unsigned limit_ms, unsigned *n);

#endif
