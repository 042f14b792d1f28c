/* sharers.h - players at several mounts of one export, while some of the mounts are struck: killed,
 * stopped, cut off. Players note their operations in a journal outside the filesystem. So the
 * others can tell what must be there, what may be there, and what must not.
 *
 *     logs       all append whole records to them; now and then one checks and empties one   logs.c
 *     registers  blocks that one after the other overwrites, under a record lock        registers.c
 *     spool      messages: made in tmp, renamed to new, taken by a rename to cur, removed spool.c
 *
 * A struck player has operations whose outcome nobody knows. From then on its unsynced data may be
 * there or not. Data that it was told to be safe is there. Once another player has its locks, none
 * of its data may arrive any more. All other players may notice nothing of this but a pause.
 *
 * A struck player ends with its first operation that fails; another one at the same mount goes on
 * in its place.
 *
 * THREADS  One process per player, with a second thread that only checks whether the process runs.
 */
#ifndef RMEMFS_TESTS_SHARERS_H
#define RMEMFS_TESTS_SHARERS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/stress/small.h"

enum {
	PLAYERS_MAX = 8,
	LOGS = 2,
	REGISTERS = 16,
	RECORDS_MAX = 1 << 18,
	MESSAGES_MAX = 1 << 18,
	OUTSTANDING = 20,   /* messages of one player that nobody has taken */
	VERSIONS_OPEN = 16, /* of a register, until they are synced */
	VERSIONS_MAX = 64,
	REGISTER_BYTES = 8192,
	RECORD_BYTES_MAX = 8192,
	MESSAGE_BYTES_MAX = 1 << 16,
	EXIT_STRUCK = 3,
};

enum operation {
	OP_OPEN,
	OP_READ,
	OP_WRITE,
	OP_SYNC,
	OP_CUT,
	OP_NAME,
	OP_LOCK,
	OP_UNLOCK,
	OP_KINDS
};

/* Of a record, or a message. */
enum state { NONE, BEGUN, DONE, SAFE, TAKEN };

struct player {
	_Atomic uint32_t strikes; /* how often it was struck */
	_Atomic bool leave;       /* it is to end */
	_Atomic int64_t late_ns;  /* time in which its process was ready but did not run */

	/* Its present operation, and the longest one so far. */
	_Atomic uint32_t strikes_then; /* strikes, when it began to play */
	_Atomic int64_t since_ns;      /* 0: nothing */
	_Atomic int64_t late_then_ns;
	_Atomic unsigned doing;
	_Atomic int64_t longest_ns;
	_Atomic unsigned longest_doing;
	_Atomic uint64_t operations;

	_Atomic uint32_t records[LOGS]; /* the last record that was begun */
	_Atomic uint8_t record[LOGS][RECORDS_MAX];
	_Atomic uint32_t messages;
	_Atomic uint8_t message[MESSAGES_MAX];
};

/* Under the log's lock, held alone. */
struct log_state {
	uint32_t emptied[PLAYERS_MAX];  /* records of each that were seen, and are gone */
	uint32_t emptying[PLAYERS_MAX]; /* that will be, if the cut in progress happens */
	uint32_t strikes[PLAYERS_MAX];  /* when it was emptied */
};

struct version {
	uint64_t number;
	uint32_t player, strikes;
};

struct register_state {
	_Atomic uint64_t holder; /* of its lock, and its strikes then; 0: nobody */
	/* Under its lock: the last one is the newest. If its writer was struck, an earlier one may
	 * be there in its place, wholly or in part. */
	struct version versions[VERSIONS_MAX];
	unsigned nversions;
};

struct journal {
	unsigned nplayers;
	uint64_t seed;
	_Atomic uint64_t version; /* of registers, the last one */
	/* All may wait for one that stands still: see "hold" in sharers.c. */
	_Atomic bool held;
	_Atomic int64_t went_on_ns;
	struct player players[PLAYERS_MAX];
	struct log_state logs[LOGS];
	struct register_state registers[REGISTERS];
};

/* Of this process. */
struct game {
	struct journal *journal;
	struct player *me;
	unsigned index;
	uint32_t strikes; /* me->strikes, when this process began */
	uint64_t random;
	int log[LOGS], registers, registers_direct;
	uint32_t unsynced[LOGS]; /* the first of my records that is not SAFE */
	uint8_t *buf, *expected; /* BUF_BYTES; buf is aligned for direct I/O */
};

enum { BUF_BYTES = 4 << 20 };

/* ---- for the games --------------------------------------------------------------------------- */

uint64_t chance(struct game *g, uint64_t below);
/* Fills buf with bytes that identify their place. */
void fill(uint8_t *buf, size_t len, uint64_t what, uint64_t number);

bool is_struck(const struct game *g);
/* Whether the player was struck since its strikes were counted. */
bool was_struck(const struct journal *j, unsigned player, uint32_t strikes);

int64_t timing_begin(struct game *g, enum operation op);
void timing_end(struct game *g, int64_t since_ns);

/* Makes one system call of a player, and takes its time. Gives the call's result. */
#define TIMED(g, op, call)                            \
	({                                            \
		int64_t since_ = timing_begin(g, op); \
		__typeof__(call) result_ = (call);    \
		int errno_ = errno;                   \
		timing_end(g, since_);                \
		errno = errno_;                       \
		result_;                              \
	})

/* Ends the process if the operation failed. */
void need(struct game *g, bool ok, const char *what);
/* Reports a violation and ends the process. For a struck player it is no violation. */
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

void logs_make(void);
void logs_open(struct game *g);
void log_append(struct game *g);
void log_empty(struct game *g);
void logs_check(struct game *g);

void registers_make(struct game *g);
void registers_open(struct game *g);
void register_write(struct game *g);
void registers_check(struct game *g);

void spool_make(void);
/* Removes what an earlier player of the same number has left. */
void spool_sweep(struct game *g);
void spool_put(struct game *g);
void spool_take(struct game *g);
void spool_check(struct game *g);

#endif
