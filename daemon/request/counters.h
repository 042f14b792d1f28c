/* counters.h - how many requests an I/O thread has answered, with which result, and in what time.
 *
 * A request counts once, when its answer goes to the kernel: its time lasts from the turn of the
 * loop that read it. A WRITE that is acknowledged early counts then. Requests that get no answer
 * (FORGET) do not count, nor do messages that are refused before they have become requests, and
 * callers that wait for locks: their requests have ended meanwhile.
 *
 *     latency   [0] below 1 µs, [1] to 1.25 µs ... : four buckets for each doubling, to 68 s; the
 *               last one has all that took longer. A quantile is the bound of its bucket,
 *               at most a quarter too long.
 *
 * The kernel answers what it has in its own caches: that does not come here, and is not counted.
 *
 * OWNERSHIP  Each I/O thread has its own, for its life.
 * THREADS    Only the thread counts, without a lock. Any thread may add them up meanwhile; each
 *            number is whole, but a sum may have a request in n that is not in latency yet.
 */
#ifndef RMEMFS_DAEMON_REQUEST_COUNTERS_H
#define RMEMFS_DAEMON_REQUEST_COUNTERS_H

#include "daemon/request/request.h"

enum {
	LATENCY_PER_DOUBLING = 4,
	LATENCY_DOUBLINGS = 26,
	LATENCY_BUCKETS = 2 + LATENCY_PER_DOUBLING * LATENCY_DOUBLINGS,
};

struct op_counters {
	uint64_t n, errors;
	uint64_t bytes; /* READ, WRITE, COPY: of the file */
	uint64_t ns;    /* the sum of all times */
	uint64_t latency[LATENCY_BUCKETS];
};

struct counters {
	struct op_counters ops[OP_NOPS];
	uint64_t no_room_ms; /* now_ms() of the last answer ENOSPC; 0: there was none */
};

/* The thread's own. ns: the time that it took. */
void counters_add(struct counters *c, enum request_op op, int error, uint64_t bytes, int64_t ns);

/* Adds one kind's counters of a thread to the sum. Any thread. */
void counters_sum(struct op_counters *sum, const struct counters *c, enum request_op op);

/* The same time. Any thread. */
uint64_t counters_no_room_ms(const struct counters *c);

/* The bucket of such a time, and the first time in ns that is too long for a bucket; the last
 * bucket has no such: UINT64_MAX. */
unsigned latency_bucket(uint64_t ns);
uint64_t latency_bound_ns(unsigned bucket);

/* The time in ns that so many of a thousand requests did not exceed, as the bucket's bound; 0:
 * there were none. */
uint64_t latency_quantile_ns(const struct op_counters *c, unsigned permille);

/* "read", "write" ... */
const char *request_op_name(enum request_op op);

#endif
