/* gate.h - which reads and writes of one inode may run at the same time.
 *
 * Reads run beside everything but an exclusive pass and some writes. A write that was acknowledged
 * before a read came has happened for everybody; a read that touches a common page waits for it. It
 * also waits for a write that keeps readers out. Writes that touch a common page run in the order
 * they came. So each page is filled by one write at a time, and overlapping writes end as on a
 * local filesystem. An exclusive pass (truncate) waits until all that was admitted before it has
 * left, and holds up all that comes after it.
 *
 * OWNERSHIP  A pass belongs to its request and stays in place from gate_enter() to gate_leave().
 * THREADS    The caller holds the inode's lock, and wakes those that were admitted.
 */
#ifndef RMEMFS_DAEMON_FILE_GATE_H
#define RMEMFS_DAEMON_FILE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"

enum gate_kind { GATE_READ, GATE_WRITE, GATE_EXCLUSIVE };

struct gate_pass {
	struct list link;
	enum gate_kind kind;
	uint64_t first, end; /* GATE_READ, GATE_WRITE: pages [first, end) */
	bool waiting;
	bool keeps_out; /* of a write: reads that come later */
	/* Of a write: its number among the acknowledged ones; 0: none. Of others: how many writes
	 * had been acknowledged when they came. */
	uint64_t acks;
	uint64_t size_before; /* of an acknowledged write */
};

struct gate {
	unsigned nreads;
	bool exclusive;
	uint64_t acks;       /* writes that were acknowledged inside, ever */
	unsigned nacked;     /* those that are still inside */
	unsigned nkeep_out;  /* writes that keep readers out */
	struct list writes;  /* admitted */
	struct list waiting; /* in the order they came */
};

void gate_init(struct gate *gate);

/* True: admitted. False: queued; a later gate_leave() or gate_withdraw() hands the pass out. */
bool gate_enter(struct gate *gate, struct gate_pass *pass);

void gate_leave(struct gate *gate, struct gate_pass *pass);

/* The caller of an admitted write is told now that it is done, though it has not left. size_before:
 * the file's size without it; UINT64_MAX: it does not change the size. */
void gate_acknowledge(struct gate *gate, struct gate_pass *pass, uint64_t size_before);
/* Reads that come from now on, and touch a page of this admitted write, wait until it has left. */
void gate_keep_readers_out(struct gate *gate, struct gate_pass *pass);
bool gate_has_acknowledged(const struct gate *gate);
/* True: all that is inside or waits has either happened already for everybody, or changes nothing.
 */
bool gate_is_settled(const struct gate *gate);
/* The file's size without those writes still inside that were acknowledged after the first `acks`
 * ones. size: the size with all of them. */
uint64_t gate_size(const struct gate *gate, uint64_t acks, uint64_t size);

/* Takes a waiting pass back. False: it was admitted already, and is to leave. */
bool gate_withdraw(struct gate_pass *pass);

/* After gate_leave() and gate_withdraw(): admits and returns the next pass that may run now, until
 * there is none (NULL). */
struct gate_pass *gate_next(struct gate *gate);

/* Nothing is inside and nothing waits. */
bool gate_idle(const struct gate *gate);

#endif
