/* make_batch.h - the MAKEs of one I/O thread, several files in one message.
 *
 * A file that is to be made is sent at once, in a message of its own, if the thread has a message
 * that is not on its way. Else it waits, and the next message takes all that wait, up to MAKES_MAX.
 * A caller that is about to send many (commit_tick(), make_first()) holds the batch meanwhile.
 * Changes of names that have to come before (name_queue.h) go along in the message. Where that is
 * not possible, the batch waits until they have gone.
 *
 *     make_batch_add() -> [waits] -> hooks.fill -> on its way -> hooks.answered
 *                            ^                          |
 *                            └────── hooks.again ───────┘
 *
 * OWNERSHIP  A struct make_entry is part of its file, which has to stay until hooks.answered, or
 *            until hooks.fill has returned FILL_ENDED, or for hooks.again. The messages are the
 *            batch's, so nothing is allocated.
 * THREADS    The I/O thread's alone. hooks.fill and hooks.answered are called without locks.
 * ERRORS     hooks.answered gets the file's own status. If the server refuses a whole message, one
 * of its files may be the reason: each of them is sent again, alone, and gets that status.
 */
#ifndef RMEMFS_DAEMON_FILE_MAKE_BATCH_H
#define RMEMFS_DAEMON_FILE_MAKE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/list.h"
#include "common/rpc/rpc.h"
#include "daemon/file/name_queue.h"
#include "daemon/remote/remote.h"

struct io_thread;

/* EXTENTS: of one file in one message. TAIL_BYTES: of one message; a file of the greatest length
 * fits behind MAKES_MAX - 1 with the longest names and an extent each. */
enum {
	MAKE_BATCH_MESSAGES = 2,
	MAKE_BATCH_EXTENTS = 256,
	MAKE_BATCH_TAIL_BYTES = RPC_MSG_BYTES - 256,
};

/* A file that waits or is on its way. */
struct make_entry {
	struct list link;
	bool alone; /* together with others it was refused */
};

enum make_fill {
	FILL_TAKEN,
	FILL_ENDED, /* it can't be sent, and its end has been seen to */
	FILL_LATER, /* it has to come behind names that were changed after those of the message */
};

struct make_hooks {
	/* Says what the server is to be told, with extents up to MAKE_BATCH_EXTENTS; they are
	 * copied at once. */
	enum make_fill (*fill)(struct make_entry *entry, struct rpc_making *making);
	void (*answered)(struct make_entry *entry, int status);
	/* It is to be added again: the server has not looked at it, or has refused all together.
	 */
	void (*again)(struct make_entry *entry);
	/* The changes of names before a message: see name_queue_go_along() and those that follow
	 * it. `behind` is the batch's. */
	enum name_along (*names_before)(
		struct io_thread *thread, struct name_behind *behind, struct wire_out *w);
	bool (*names_answered)(
		struct io_thread *thread, int status, const struct rpc_names_reply *rep);
	void (*names_back)(struct io_thread *thread);
	/* See enum rpc_numbers. */
	uint8_t (*ask_numbers)(struct io_thread *thread);
	void (*numbers_came)(struct io_thread *thread, const struct rpc_lent *lent);
};

struct make_message {
	struct make_batch *batch;
	struct rpc_call rpc;
	struct make_entry *entries[MAKES_MAX];
	unsigned n; /* 0: it is not on its way */
	bool names; /* some come before them */
	uint8_t tail[MAKE_BATCH_TAIL_BYTES];
};

struct make_batch {
	struct io_thread *thread;
	const struct make_hooks *hooks;
	struct list waiting; /* struct make_entry */
	unsigned nholds;
	struct name_behind behind;
	bool is_behind; /* that call follows */
	struct thread_call kick;
	bool kicked;
	uint8_t extents[MAKE_BATCH_EXTENTS * RPC_EXTENT_BYTES]; /* room for hooks.fill */
	struct make_message messages[MAKE_BATCH_MESSAGES];
};

void make_batch_init(
	struct make_batch *b, struct io_thread *thread, const struct make_hooks *hooks);

/* Whether a file that is added now has to wait. */
bool make_batch_waits(const struct make_batch *b);
/* It waits; hooks.fill follows. Under any lock. */
void make_batch_add(struct make_batch *b, struct make_entry *entry);
/* If it need not wait, and no change of names comes before it: it is sent alone. Under any lock. */
void make_batch_send_one(
	struct make_batch *b, struct make_entry *entry, const struct rpc_making *making);

/* Between these two all files wait. They may be nested. */
void make_batch_hold(struct make_batch *b);
void make_batch_let_go(struct make_batch *b);

#endif
